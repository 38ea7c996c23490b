//! `{$pop: {a: 1 | -1}}`: removes the last or the first element of an array.

use super::{Effect, Existing, Modifier, Site, array};
use crate::update::operand::Encoded;
use nestor_model::number::Num;
use nestor_model::{Result, ValueRef, bail};

#[derive(Debug)]
pub(super) enum Pop {
    First,
    Last,
}

impl Pop {
    /// Errors: 9 (FailedToParse) for anything but the numbers 1 and -1.
    pub fn parse(field: &str, value: ValueRef<'_>) -> Result<Self> {
        let Some(number) = Num::from_ref(value) else {
            bail!(FailedToParse, "Expected a number in: {field}: {value:?}");
        };
        match number.to_i64_exact() {
            Some(1) => Ok(Self::Last),
            Some(-1) => Ok(Self::First),
            Some(other) => bail!(FailedToParse, "$pop expects 1 or -1, found: {other}"),
            None => bail!(FailedToParse, "Expected an integer: {field}: {value:?}"),
        }
    }
}

impl Modifier for Pop {
    fn existing<'u>(&'u self, at: &Existing<'u>, site: &Site<'_, 'u>) -> Result<Effect<'u>> {
        let Some(items) = array::elements(at) else {
            bail!(
                TypeMismatch,
                "Path '{}' contains an element of non-array type '{}'",
                site.path(),
                at.type_name()
            );
        };
        let gone = match self {
            Self::First => 0,
            Self::Last => items.elements().count().saturating_sub(1),
        };
        let rest = array::without(items, |i, _| Ok(i == gone))?;
        Ok(rest.map_or(Effect::Keep, Effect::Replace))
    }

    fn missing<'u>(&'u self, _: &Site<'_, 'u>) -> Result<Option<Encoded<'u>>> {
        Ok(None)
    }
}
