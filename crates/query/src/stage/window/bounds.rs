//! The bounds of a window.

use crate::expr::Unit;
use crate::sort::{SortBy, SortSpec};
use nestor_model::number::Num;
use nestor_model::{ArrayRef, DocRef, Error, Result, ValueRef};

/// One end of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound<T> {
    /// The end of the partition.
    Unbounded,
    /// The document itself (range: its value, so ties are in).
    Current,
    /// That far away; negative is before.
    Offset(T),
}

/// Which documents of the partition are in the window of one of them.
#[derive(Clone, Debug, PartialEq)]
pub enum Bounds {
    /// By position.
    Documents(Bound<i64>, Bound<i64>),
    /// By the value of the sort field; with a unit the values are dates.
    Range(Bound<Num>, Bound<Num>, Option<Unit>),
}

impl Bounds {
    /// Whether rows leave the window as it moves on.
    pub fn drops_rows(&self) -> bool {
        match self {
            Self::Documents(lower, _) => !matches!(lower, Bound::Unbounded),
            Self::Range(lower, _, _) => !matches!(lower, Bound::Unbounded),
        }
    }

    /// The whole partition.
    pub const ALL: Self = Self::Documents(Bound::Unbounded, Bound::Unbounded);

    /// `{documents: [lower, upper]}` or `{range: [lower, upper], unit}`.
    ///
    /// Errors: 9 for the form, 5339900 lower above upper, 5339901 documents without `sortBy`, 5339902 a range
    /// without one field in `sortBy`, 8947401 with a descending one.
    pub fn parse(spec: DocRef<'_>, sort: Option<&SortSpec>) -> Result<Self> {
        let (mut documents, mut range, mut unit) = (None, None, None);
        for (name, value) in spec {
            match name {
                "documents" => documents = Some(pair(value)?),
                "range" => range = Some(pair(value)?),
                "unit" => {
                    let named = value.as_str().and_then(Unit::parse);
                    unit = Some(named.ok_or_else(|| match value {
                        ValueRef::String(name) => Error::failed_to_parse(format!("unknown time unit value: {name}")),
                        _ => Error::failed_to_parse("'unit' must be a string"),
                    })?);
                }
                _ => {
                    return Err(Error::failed_to_parse(format!(
                        "'window' field can only contain 'documents' or 'range' with an optional 'unit' field, not '{name}'"
                    )));
                }
            }
        }
        match (documents, range) {
            (Some(_), Some(_)) => Err(Error::failed_to_parse(
                "window bounds can specify either 'documents' or 'range', not both",
            )),
            (None, None) if unit.is_some() => Err(Error::failed_to_parse("'unit' is only valid with a range")),
            (None, None) => Ok(Self::ALL),
            (Some((lower, upper)), None) => {
                if unit.is_some() {
                    return Err(Error::failed_to_parse(
                        "window bounds can only specify 'unit' with range-based bounds",
                    ));
                }
                Self::documents(lower, upper, sort)
            }
            (None, Some((lower, upper))) => Self::range(lower, upper, unit, sort),
        }
    }

    fn documents(lower: ValueRef<'_>, upper: ValueRef<'_>, sort: Option<&SortSpec>) -> Result<Self> {
        let whole = |value: ValueRef<'_>| {
            bound(value)?.map_or_else(
                || {
                    let n = Num::from_ref(value)
                        .and_then(Num::to_i64_exact)
                        .filter(|n| i32::try_from(*n).is_ok());
                    n.map(Bound::Offset)
                        .ok_or_else(|| Error::failed_to_parse("numeric document-based bounds must be an integer"))
                },
                Ok,
            )
        };
        let (lower, upper) = (whole(lower)?, whole(upper)?);
        let at = |bound: Bound<i64>, open: i64| match bound {
            Bound::Unbounded => open,
            Bound::Current => 0,
            Bound::Offset(n) => n,
        };
        if at(lower, i64::MIN) > at(upper, i64::MAX) {
            return Err(Error::location(5_339_900, "lower bound must not exceed upper bound"));
        }
        let all = Self::Documents(lower, upper) == Self::ALL;
        if sort.is_none() && !all {
            return Err(Error::location(5_339_901, "document-based bounds require a sortBy"));
        }
        Ok(Self::Documents(lower, upper))
    }

    fn range(lower: ValueRef<'_>, upper: ValueRef<'_>, unit: Option<Unit>, sort: Option<&SortSpec>) -> Result<Self> {
        let number = |value: ValueRef<'_>| {
            bound(value)?.map_or_else(
                || match Num::from_ref(value) {
                    Some(n) if unit.is_some() && n.to_i64_exact().is_none() => Err(Error::failed_to_parse(
                        "with 'unit', range-based bounds must be an integer",
                    )),
                    Some(n) => Ok(Bound::Offset(n)),
                    None => Err(Error::failed_to_parse(format!(
                        "range-based bounds expression must be a number, found {}",
                        value.bson_type().alias()
                    ))),
                },
                Ok,
            )
        };
        let (lower, upper) = (number(lower)?, number(upper)?);
        let at = |bound: Bound<Num>, open: f64| match bound {
            Bound::Unbounded => open,
            Bound::Current => 0.0,
            Bound::Offset(n) => n.to_f64(),
        };
        if at(lower, f64::NEG_INFINITY) > at(upper, f64::INFINITY) {
            return Err(Error::location(5_339_900, "lower bound must not exceed upper bound"));
        }
        if let Some([part]) = sort.map(SortSpec::parts) {
            if !part.ascending {
                return Err(Error::location(
                    8_947_401,
                    "range-based bounds require an ascending sortBy",
                ));
            }
        }
        let one_ascending =
            sort.is_some_and(|s| matches!(s.parts(), [part] if part.ascending && matches!(part.by, SortBy::Path(_))));
        if !one_ascending {
            return Err(Error::location(
                5_339_902,
                "range-based bounds require a sortBy over a single ascending field",
            ));
        }
        Ok(Self::Range(lower, upper, unit))
    }
}

fn pair<'a>(value: ValueRef<'a>) -> Result<(ValueRef<'a>, ValueRef<'a>)> {
    let items: Option<ArrayRef<'a>> = value.as_array();
    match items.map(|items| items.iter().collect::<Vec<_>>()).as_deref() {
        Some([lower, upper]) => Ok((*lower, *upper)),
        _ => Err(Error::failed_to_parse("window bounds must be a 2-element array")),
    }
}

/// A keyword bound; `None` when the value is no string.
fn bound<T>(value: ValueRef<'_>) -> Result<Option<Bound<T>>> {
    match value {
        ValueRef::String("unbounded") => Ok(Some(Bound::Unbounded)),
        ValueRef::String("current") => Ok(Some(Bound::Current)),
        ValueRef::String(_) => Err(Error::failed_to_parse(
            "window bounds must be 'unbounded', 'current', or a number",
        )),
        _ => Ok(None),
    }
}
