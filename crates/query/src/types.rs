//! `$type` and the type keywords of `$jsonSchema`: sets of BSON types.

use nestor_model::number::whole_number;
use nestor_model::{BsonType, Error, Result, ValueRef, bail};

/// Every type with a number and an alias, in the order of their numbers.
pub(crate) const TYPES: [BsonType; 21] = [
    BsonType::Double,
    BsonType::String,
    BsonType::Object,
    BsonType::Array,
    BsonType::BinData,
    BsonType::Undefined,
    BsonType::ObjectId,
    BsonType::Bool,
    BsonType::Date,
    BsonType::Null,
    BsonType::Regex,
    BsonType::DbPointer,
    BsonType::Javascript,
    BsonType::Symbol,
    BsonType::JavascriptWithScope,
    BsonType::Int,
    BsonType::Timestamp,
    BsonType::Long,
    BsonType::Decimal,
    BsonType::MaxKey,
    BsonType::MinKey,
];

const NUMBERS: [BsonType; 4] = [BsonType::Int, BsonType::Long, BsonType::Double, BsonType::Decimal];

/// A set of BSON types. `number` stands for the four numeric ones and is remembered for printing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TypeSet {
    bits: u32,
    number: bool,
}

impl TypeSet {
    /// The set of `types`.
    pub fn of(types: &[BsonType]) -> Self {
        let mut set = Self::default();
        types.iter().for_each(|t| set.insert(*t));
        set
    }

    /// The four numeric types under their common name.
    pub fn numbers() -> Self {
        Self {
            number: true,
            ..Self::of(&NUMBERS)
        }
    }

    /// Adds a type.
    pub fn insert(&mut self, kind: BsonType) {
        self.bits |= bit(kind);
    }

    /// Adds all of `other`.
    pub fn extend(&mut self, other: TypeSet) {
        self.bits |= other.bits;
        self.number |= other.number;
    }

    /// Whether `kind` is in the set.
    pub fn contains(self, kind: BsonType) -> bool {
        self.bits & bit(kind) != 0
    }

    /// True when all types of `other` are in it.
    pub fn has_all(self, other: TypeSet) -> bool {
        self.bits & other.bits == other.bits
    }

    /// True when no type is in it.
    pub fn is_empty(self) -> bool {
        self.bits == 0
    }

    /// The types in it by number, `number`'s four left out when they came as `number`.
    pub fn iter(self) -> impl Iterator<Item = BsonType> {
        TYPES
            .into_iter()
            .filter(move |t| self.contains(*t) && !(self.number && t.is_number()))
    }

    /// All types in it.
    pub fn all(self) -> impl Iterator<Item = BsonType> {
        TYPES.into_iter().filter(move |t| self.contains(*t))
    }

    /// Whether `number` was given.
    pub fn has_number_alias(self) -> bool {
        self.number
    }

    /// The types an alias stands for.
    pub fn alias(alias: &str) -> Option<Self> {
        if alias == "number" {
            return Some(Self::numbers());
        }
        TYPES.into_iter().find(|t| t.alias() == alias).map(|t| Self::of(&[t]))
    }

    /// Parses the operand of `$type`: a number, an alias, or an array of them.
    ///
    /// # Errors
    /// 2 for an unknown alias or number, 14 for an operand of another type, 9 for an empty array.
    pub fn parse(value: ValueRef<'_>) -> Result<Self> {
        let mut set = Self::default();
        match value {
            ValueRef::Array(items) => {
                for item in items {
                    set.extend(Self::parse_one(item)?);
                }
                if set.is_empty() {
                    bail!(FailedToParse, "$type must match at least one type");
                }
            }
            one => set.extend(Self::parse_one(one)?),
        }
        Ok(set)
    }

    fn parse_one(value: ValueRef<'_>) -> Result<Self> {
        if let ValueRef::String(alias) = value {
            return Self::alias(alias).ok_or_else(|| Error::bad_value(format!("unknown type name alias: {alias}")));
        }
        if !value.is_number() {
            bail!(TypeMismatch, "type must be represented as a number or a string");
        }
        let known = whole_number(value).and_then(|n| {
            // MinKey is -1 here and 255 on the wire; only the former is documented.
            TYPES.into_iter().find(|t| {
                if *t == BsonType::MinKey {
                    n == -1
                } else {
                    n == i64::from(*t as u8)
                }
            })
        });
        match known {
            Some(kind) => Ok(Self::of(&[kind])),
            None => bail!(BadValue, "invalid numerical type code: {value:?}"),
        }
    }
}

fn bit(kind: BsonType) -> u32 {
    match kind {
        BsonType::Missing => 0,
        BsonType::MinKey => 1 << 31,
        BsonType::MaxKey => 1 << 30,
        other => 1 << (other as u8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::Value;

    #[test]
    fn operands() {
        let parse = |v: Value| TypeSet::parse(v.as_ref()).map_err(|e| e.code().number());
        assert_eq!(parse("string".into()), Ok(TypeSet::of(&[BsonType::String])));
        assert_eq!(parse(2.0.into()), Ok(TypeSet::of(&[BsonType::String])));
        assert_eq!(parse(Value::Int64(-1)), Ok(TypeSet::of(&[BsonType::MinKey])));
        assert_eq!(parse("number".into()), Ok(TypeSet::numbers()));
        assert_eq!(
            parse(Value::from(vec!["int".into(), 7.into()])),
            Ok(TypeSet::of(&[BsonType::Int, BsonType::ObjectId]))
        );
        for (bad, code) in [
            (Value::from("Double"), 2),
            (0.into(), 2),
            (1.5.into(), 2),
            (true.into(), 14),
            (Value::Null, 14),
            (Value::from(vec![]), 9),
            (Value::from(vec![Value::from(vec![])]), 14),
        ] {
            assert_eq!(parse(bad.clone()), Err(code), "{bad:?}");
        }
    }
}
