//! `{$bit: {n: {and | or | xor: mask}}}`: bitwise operations on int and long, in the order given.

use super::{Effect, Existing, Modifier, Site};
use crate::update::operand::Encoded;
use nestor_model::{Result, ValueRef, bail};

#[derive(Debug)]
pub(super) struct Bit(Vec<(BitOp, Integer)>);

#[derive(Clone, Copy, Debug)]
enum BitOp {
    And,
    Or,
    Xor,
}

#[derive(Clone, Copy, Debug)]
enum Integer {
    Int(i32),
    Long(i64),
}

impl Integer {
    fn from_ref(value: ValueRef<'_>) -> Option<Self> {
        match value {
            ValueRef::Int32(v) => Some(Self::Int(v)),
            ValueRef::Int64(v) => Some(Self::Long(v)),
            _ => None,
        }
    }

    fn apply(self, op: BitOp, mask: Self) -> Self {
        match (self, mask) {
            (Self::Int(a), Self::Int(b)) => Self::Int(match op {
                BitOp::And => a & b,
                BitOp::Or => a | b,
                BitOp::Xor => a ^ b,
            }),
            (a, b) => {
                let (a, b) = (a.wide(), b.wide());
                Self::Long(match op {
                    BitOp::And => a & b,
                    BitOp::Or => a | b,
                    BitOp::Xor => a ^ b,
                })
            }
        }
    }

    fn wide(self) -> i64 {
        match self {
            Self::Int(v) => i64::from(v),
            Self::Long(v) => v,
        }
    }

    fn encoded(self) -> Encoded<'static> {
        match self {
            Self::Int(v) => Encoded::new(v),
            Self::Long(v) => Encoded::new(v),
        }
    }
}

impl Bit {
    /// Errors: 2 (BadValue) for anything but a document of `and`, `or`, `xor` with int or long masks.
    pub fn parse(field: &str, value: ValueRef<'_>) -> Result<Self> {
        let ValueRef::Document(doc) = value else {
            bail!(
                BadValue,
                "The $bit modifier is not compatible with a {}. You must pass in an embedded document: {{$bit: {{field: {{and/or/xor: #}}}}",
                value.bson_type().alias()
            );
        };
        let mut ops = Vec::new();
        for (name, mask) in doc {
            let op = match name {
                "and" => BitOp::And,
                "or" => BitOp::Or,
                "xor" => BitOp::Xor,
                _ => bail!(
                    BadValue,
                    "The $bit modifier only supports 'and', 'or', and 'xor', not '{name}' which is an unknown operator: {{{name}: {mask:?}}}"
                ),
            };
            let Some(mask) = Integer::from_ref(mask) else {
                bail!(
                    BadValue,
                    "The $bit modifier field must be an Integer(32/64 bit); a '{}' is not supported here: {{{name}: {mask:?}}}",
                    mask.bson_type().alias()
                );
            };
            ops.push((op, mask));
        }
        if ops.is_empty() {
            bail!(
                BadValue,
                "You must pass in at least one bitwise operation. The format is: {{$bit: {{{field}: {{and/or/xor: #}}}}"
            );
        }
        Ok(Self(ops))
    }

    fn apply(&self, from: Integer) -> Encoded<'static> {
        self.0
            .iter()
            .fold(from, |value, (op, mask)| value.apply(*op, *mask))
            .encoded()
    }
}

impl Modifier for Bit {
    fn existing<'u>(&'u self, at: &Existing<'u>, site: &Site<'_, 'u>) -> Result<Effect<'u>> {
        let Some(old) = Integer::from_ref(at.value) else {
            bail!(
                BadValue,
                "Cannot apply $bit to a value of non-integral type.{} has the field {} of non-integer type {}",
                site.id(),
                site.field(),
                at.type_name()
            );
        };
        Ok(Effect::replace(at, self.apply(old)))
    }

    fn missing<'u>(&'u self, _: &Site<'_, 'u>) -> Result<Option<Encoded<'u>>> {
        Ok(Some(self.apply(Integer::Int(0))))
    }
}
