//! Reading the options of a stage, with the errors that typed options have everywhere in MongoDB.

use nestor_model::number::Num;
use nestor_model::{ArrayRef, DocRef, Error, Result, ValueRef};

/// The options of a stage, each known and given at most once.
pub(super) struct Options<'a> {
    stage: &'static str,
    found: Vec<(&'static str, ValueRef<'a>)>,
}

impl<'a> Options<'a> {
    /// Reads a document of options. Errors: 40415 unknown, 40413 given twice.
    pub(super) fn read(stage: &'static str, doc: DocRef<'a>, known: &[&'static str]) -> Result<Self> {
        let mut found: Vec<(&'static str, ValueRef<'a>)> = Vec::new();
        for (name, value) in doc {
            let Some(option) = known.iter().find(|option| **option == name) else {
                return Err(Error::location(
                    40415,
                    format!("BSON field '{stage}.{name}' is an unknown field."),
                ));
            };
            if found.iter().any(|(seen, _)| seen == option) {
                return Err(Error::location(
                    40413,
                    format!("BSON field '{stage}.{name}' is a duplicate field"),
                ));
            }
            found.push((option, value));
        }
        Ok(Self { stage, found })
    }

    /// The option, null counting as given.
    pub(super) fn get(&self, name: &str) -> Option<ValueRef<'a>> {
        self.found.iter().find(|(n, _)| *n == name).map(|(_, v)| *v)
    }

    /// The option, null and undefined counting as not given.
    pub(super) fn given(&self, name: &str) -> Option<ValueRef<'a>> {
        self.get(name).filter(|v| !v.is_nullish())
    }

    /// An optional string. Error: 14.
    pub(super) fn string(&self, name: &str) -> Result<Option<&'a str>> {
        self.given(name)
            .map(|v| v.as_str().ok_or_else(|| self.wrong_type(name, v, "string")))
            .transpose()
    }

    /// An optional bool, for which nothing else stands, not even null. Error: 14.
    pub(super) fn strict_bool(&self, name: &str) -> Result<Option<bool>> {
        match self.get(name) {
            None => Ok(None),
            Some(ValueRef::Bool(value)) => Ok(Some(value)),
            Some(other) => Err(self.wrong_type(name, other, "bool")),
        }
    }

    /// An optional document. Error: 14.
    pub(super) fn document(&self, name: &str) -> Result<Option<DocRef<'a>>> {
        self.given(name)
            .map(|v| v.as_document().ok_or_else(|| self.wrong_type(name, v, "object")))
            .transpose()
    }

    /// An optional array. Error: 14.
    pub(super) fn array(&self, name: &str) -> Result<Option<ArrayRef<'a>>> {
        self.given(name)
            .map(|v| v.as_array().ok_or_else(|| self.wrong_type(name, v, "array")))
            .transpose()
    }

    /// The error for a required option that is not given: 40414.
    pub(super) fn missing(&self, name: &str) -> Error {
        Error::location(
            40414,
            format!("BSON field '{}.{name}' is missing but a required field", self.stage),
        )
    }

    /// The error for an option of the wrong type: 14.
    pub(super) fn wrong_type(&self, name: &str, value: ValueRef<'_>, wanted: &str) -> Error {
        Error::type_mismatch(format!(
            "BSON field '{}.{name}' is the wrong type '{}', expected type '{wanted}'",
            self.stage,
            value.bson_type().alias()
        ))
    }
}

/// The error for what is no document where one is expected: 10065.
pub(super) fn not_object(what: &str, value: ValueRef<'_>) -> Error {
    Error::location(
        10065,
        format!(
            "invalid parameter: expected an object ({what}), but got {}",
            value.bson_type().alias()
        ),
    )
}

/// A long of any number, as options take it that forgive fractions: those of doubles are cut off, those of
/// decimals rounded half to even; what is out of range is clamped, NaN is 0.
pub(super) fn long_of(number: Num) -> i64 {
    match number {
        Num::Int32(v) => i64::from(v),
        Num::Int64(v) => v,
        Num::Double(v) => v as i64,
        Num::Decimal(v) if v.is_nan() => 0,
        Num::Decimal(v) => v
            .to_i64_rounded()
            .unwrap_or(if v.is_negative() { i64::MIN } else { i64::MAX }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::Decimal128;

    #[test]
    fn any_number_is_a_long() {
        let decimal = |text: &str| Num::Decimal(Decimal128::parse(text).expect("a decimal").0);
        for (number, long) in [
            (Num::Int32(7), 7),
            (Num::Double(2.9), 2),
            (Num::Double(f64::NAN), 0),
            (Num::Double(f64::INFINITY), i64::MAX),
            (decimal("1.5"), 2),
            (decimal("2.5"), 2),
            (decimal("0.5"), 0),
            (decimal("1E6000"), i64::MAX),
            (decimal("-Infinity"), i64::MIN),
            (decimal("NaN"), 0),
        ] {
            assert_eq!(long_of(number), long, "{number:?}");
        }
    }
}
