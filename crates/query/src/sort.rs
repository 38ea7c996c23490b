//! Sort specifications, sort keys, and their order.
//!
//! A document with arrays has several candidate keys ([`KeyPaths`]); the least in the order of the whole
//! specification is its sort key. Missing sorts as null, an empty array as undefined (below null).
//! Source: manual, `$sort` and `cursor.sort()`.

use crate::collation::{Collator, compare};
use crate::env::DocMeta;
use crate::field_names::validate_path;
use crate::keys::{KEY_FIELDS_MAX, KeyPaths};
use nestor_model::{DocRef, Document, Error, ErrorCode, Path, Result, Value, ValueRef};
use std::cmp::Ordering;

/// One part of a sort.
#[derive(Clone, PartialEq, Debug)]
pub struct SortPart {
    /// The key that is compared.
    pub by: SortBy,
    /// From small to large.
    pub ascending: bool,
}

/// The key that a part of a sort compares.
#[derive(Clone, PartialEq, Debug)]
pub enum SortBy {
    /// The field at a path.
    Path(Path),
    /// Metadata, by its `$meta` name: `textScore`, `searchScore`, `vectorSearchScore`, `score`,
    /// `geoNearDistance` or `randVal`.
    Meta(&'static str),
}

/// A parsed sort specification; one without parts leaves the order open.
#[derive(Clone, Debug)]
pub struct SortSpec {
    parts: Box<[SortPart]>,
    /// The parts that are paths, in order.
    paths: KeyPaths,
    collator: Option<Collator>,
}

/// Metadata that a sort may use.
const SORTABLE_META: [&str; 6] = [
    "textScore",
    "searchScore",
    "vectorSearchScore",
    "score",
    "geoNearDistance",
    "randVal",
];

impl SortSpec {
    /// Parses `{path: 1 | -1 | {$meta: name}, ...}`. `$natural` is for the caller to take out before.
    ///
    /// Errors: 15976 empty, 15974 wrong type, 15975 neither 1 nor -1, 17312, 31138 and 9 for bad `$meta`,
    /// 13103 more than 32 parts, 7472500 a path twice, and those of field paths.
    pub fn parse(spec: DocRef<'_>) -> Result<Self> {
        let mut parts: Vec<SortPart> = Vec::new();
        for (name, value) in spec {
            let part = parse_part(name, value)?;
            let twice = parts
                .iter()
                .any(|p| matches!(&p.by, SortBy::Path(path) if path.as_str() == name));
            if twice && matches!(part.by, SortBy::Path(_)) {
                return Err(Error::location(
                    7_472_500,
                    format!("$sort key must not contain duplicate keys (duplicate: '{name}')"),
                ));
            }
            parts.push(part);
        }
        if parts.is_empty() {
            return Err(Error::location(15976, "$sort stage must have at least one sort key"));
        }
        if parts.len() > KEY_FIELDS_MAX {
            return Err(Error::location(
                13103,
                format!("too many compound keys: a sort has at most {KEY_FIELDS_MAX}"),
            ));
        }
        Ok(Self::of(parts))
    }

    /// A specification of these parts.
    pub fn of(parts: Vec<SortPart>) -> Self {
        let paths = KeyPaths::new(parts.iter().filter_map(|part| match &part.by {
            SortBy::Path(path) => Some(path.clone()),
            SortBy::Meta(_) => None,
        }));
        Self {
            parts: parts.into(),
            paths,
            collator: None,
        }
    }

    /// The same order with strings compared by `collator`.
    #[must_use]
    pub fn under(mut self, collator: Option<&Collator>) -> Self {
        self.collator = collator.cloned();
        self
    }

    /// The collation that strings compare by.
    pub fn collator(&self) -> Option<&Collator> {
        self.collator.as_ref()
    }

    /// The specification, as explain prints it.
    pub fn serialize(&self) -> Document {
        let mut out = Document::with_capacity(self.parts.len());
        for part in &self.parts {
            match &part.by {
                SortBy::Path(path) => out.push(path.as_str(), if part.ascending { 1 } else { -1 }),
                SortBy::Meta(name) => out.push("$computed", nestor_model::doc! { "$meta": *name }),
            }
        }
        out
    }

    /// Whether both put all rows in the same order.
    pub fn is_same_order(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || (self.parts == other.parts && self.collator == other.collator)
    }

    /// The parts, at least one.
    pub fn parts(&self) -> &[SortPart] {
        &self.parts
    }

    /// Writes the sort key of a document into `key` (cleared before); `key[i]` belongs to part `i`.
    ///
    /// Errors: 2 when two paths run through different arrays.
    pub fn key<'d>(&self, doc: DocRef<'d>, meta: Option<&'d DocMeta>, key: &mut Vec<ValueRef<'d>>) -> Result<()> {
        let mut candidate: Vec<ValueRef<'d>> = Vec::new();
        let mut first = true;
        key.clear();
        self.paths
            .for_each_key(doc, &mut |found| {
                let target = if first { &mut *key } else { &mut candidate };
                self.assemble(found, meta, target);
                if !first && self.compare(&candidate, key) == Ordering::Less {
                    std::mem::swap(key, &mut candidate);
                }
                first = false;
                Ok(())
            })
            .map_err(|error| match error.code() {
                ErrorCode::CannotIndexParallelArrays => {
                    Error::bad_value("cannot sort with keys that are parallel arrays")
                }
                _ => error,
            })?;
        Ok(())
    }

    fn assemble<'d>(&self, found: &[ValueRef<'d>], meta: Option<&'d DocMeta>, out: &mut Vec<ValueRef<'d>>) {
        out.clear();
        let mut found = found.iter();
        for part in &self.parts {
            out.push(match part.by {
                SortBy::Path(_) => match found.next() {
                    Some(ValueRef::Missing) | None => ValueRef::Null,
                    Some(value) => *value,
                },
                SortBy::Meta(name) => meta_value(meta, name),
            });
        }
    }

    /// Orders two keys made by [`SortSpec::key`].
    pub fn compare(&self, a: &[ValueRef<'_>], b: &[ValueRef<'_>]) -> Ordering {
        self.compare_with(a.iter().copied(), b.iter().copied())
    }

    /// Orders two owned keys.
    pub fn compare_owned(&self, a: &[Value], b: &[Value]) -> Ordering {
        self.compare_with(a.iter().map(Value::as_ref), b.iter().map(Value::as_ref))
    }

    fn compare_with<'a, 'b>(
        &self,
        a: impl Iterator<Item = ValueRef<'a>>,
        b: impl Iterator<Item = ValueRef<'b>>,
    ) -> Ordering {
        for ((x, y), part) in a.zip(b).zip(&self.parts) {
            let order = compare(x, y, self.collator());
            if order != Ordering::Equal {
                return if part.ascending { order } else { order.reverse() };
            }
        }
        Ordering::Equal
    }
}

fn meta_value<'d>(meta: Option<&'d DocMeta>, name: &str) -> ValueRef<'d> {
    let number = meta.and_then(|meta| match name {
        "textScore" => meta.text_score,
        "searchScore" => meta.search_score,
        "vectorSearchScore" => meta.vector_search_score,
        "score" => meta.score(),
        "geoNearDistance" => meta.geo_distance,
        _ => meta.rand_val,
    });
    number.map_or(ValueRef::Null, ValueRef::Double)
}

fn parse_part(name: &str, value: ValueRef<'_>) -> Result<SortPart> {
    if let ValueRef::Document(doc) = value {
        return parse_meta(doc);
    }
    let ascending = match value {
        ValueRef::Int32(1) | ValueRef::Int64(1) => true,
        ValueRef::Int32(-1) | ValueRef::Int64(-1) => false,
        // Doubles are truncated, decimals rounded half to even, before the value is looked at.
        ValueRef::Double(v) if v.trunc() == 1.0 => true,
        ValueRef::Double(v) if v.trunc() == -1.0 => false,
        ValueRef::Decimal128(v) if v.to_i64_rounded() == Some(1) => true,
        ValueRef::Decimal128(v) if v.to_i64_rounded() == Some(-1) => false,
        _ if value.is_number() => {
            return Err(Error::location(
                15975,
                "$sort key ordering must be 1 (for ascending) or -1 (for descending)",
            ));
        }
        _ => {
            return Err(Error::location(
                15974,
                format!("Illegal key in $sort specification: {name}: {value:?}; a number or {{$meta: ...}} is wanted"),
            ));
        }
    };
    validate_path(name)?;
    Ok(SortPart {
        by: SortBy::Path(Path::new(name)),
        ascending,
    })
}

fn parse_meta(doc: DocRef<'_>) -> Result<SortPart> {
    let mut fields = doc.iter();
    let (Some(("$meta", kind)), rest) = (fields.next(), fields.next()) else {
        return Err(Error::location(
            17312,
            "$meta is the only expression supported by $sort right now",
        ));
    };
    if rest.is_some() {
        return Err(Error::failed_to_parse(
            "Cannot have additional keys in a $meta sort specification",
        ));
    }
    let known = kind
        .as_str()
        .and_then(|kind| SORTABLE_META.iter().find(|name| **name == kind));
    match known {
        Some(name) => Ok(SortPart {
            by: SortBy::Meta(name),
            // From the highest to the lowest, distances too: MongoDB gives the farthest first.
            ascending: false,
        }),
        None => Err(Error::location(31138, format!("Illegal $meta sort: {kind:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::{doc, extjson};

    fn spec(text: &str) -> Result<SortSpec> {
        SortSpec::parse(extjson::parse_document(text).expect("valid JSON").as_ref())
    }

    #[test]
    fn the_least_key_of_the_whole_specification_counts() {
        let docs = [
            r#"{"_id":1,"a":[5,1]}"#,
            r#"{"_id":2,"a":[]}"#,
            r#"{"_id":3,"a":3}"#,
            r#"{"_id":4}"#,
            r#"{"_id":5,"a":[{"b":1}]}"#,
        ]
        .map(|d| extjson::parse_document(d).expect("valid JSON"));
        for (sort, expected) in [(r#"{"a":1}"#, [2, 4, 1, 3, 5]), (r#"{"a":-1}"#, [5, 1, 3, 4, 2])] {
            let spec = spec(sort).expect("valid");
            let mut keyed: Vec<_> = docs
                .iter()
                .map(|d| {
                    let mut key = Vec::new();
                    spec.key(d.as_ref(), None, &mut key).expect("no parallel arrays");
                    (key, d)
                })
                .collect();
            keyed.sort_by(|x, y| spec.compare(&x.0, &y.0));
            let ids: Vec<String> = keyed
                .iter()
                .map(|(_, d)| format!("{:?}", d.get("_id").expect("given")))
                .collect();
            assert_eq!(ids, expected.map(|id| id.to_string()), "{sort}");
        }
    }

    #[test]
    fn parallel_arrays_have_no_key() {
        let spec = spec(r#"{"a":1,"b":1}"#).expect("valid");
        let d = doc! { "a": vec![Value::from(1)], "b": vec![Value::from(1)] };
        let error = spec.key(d.as_ref(), None, &mut Vec::new()).expect_err("parallel");
        assert_eq!(error.code(), ErrorCode::BadValue);
    }

    #[test]
    fn bad_specifications() {
        for (text, code) in [
            ("{}", 15976),
            (r#"{"a":0}"#, 15975),
            (r#"{"a":"asc"}"#, 15974),
            (r#"{"a":{"$foo":1}}"#, 17312),
            (r#"{"a":{"$meta":"randVal","x":1}}"#, 9),
            (r#"{"a":{"$meta":"indexKey"}}"#, 31138),
            (r#"{"$a":0}"#, 15975),
            (r#"{"$a":1}"#, 16410),
            (r#"{"a..b":1}"#, 15998),
        ] {
            assert_eq!(spec(text).expect_err(text).code().number(), code, "{text}");
        }
        assert!(spec(r#"{"a":1.9,"b":{"$numberDecimal":"-0.6"},"c":{"$meta":"textScore"}}"#).is_ok());
    }
}
