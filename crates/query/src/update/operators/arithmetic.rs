//! Arithmetic shared by `$inc` and `$mul`: operand and field are numbers, and the result is promoted.

use super::{Effect, Existing, Site};
use crate::update::operand::Encoded;
use nestor_model::number::Num;
use nestor_model::{Result, ValueRef, bail, values_equal};

/// The operand. Errors: 14 (TypeMismatch) when it is not a number.
pub(super) fn operand(verb: &str, field: &str, value: ValueRef<'_>) -> Result<Num> {
    match Num::from_ref(value) {
        Some(number) => Ok(number),
        None => bail!(
            TypeMismatch,
            "Cannot {verb} with non-numeric argument: {{{field}: {value:?}}}"
        ),
    }
}

/// Combines the field's value with the operand.
///
/// Errors: 14 (TypeMismatch) when the field is not a number; 2 (BadValue) when a long overflows.
pub(super) fn combine<'u>(
    operator: &str,
    at: &Existing<'u>,
    site: &Site<'_, 'u>,
    combine: impl FnOnce(Num) -> Option<Num>,
) -> Result<Effect<'u>> {
    let Some(old) = Num::from_ref(at.value) else {
        bail!(
            TypeMismatch,
            "Cannot apply {operator} to a value of non-numeric type. {} has the field '{}' of non-numeric type {}",
            site.id(),
            site.field(),
            at.type_name()
        );
    };
    let Some(new) = combine(old) else {
        bail!(
            BadValue,
            "Failed to apply {operator} operations to current value ({:?}) for document {}",
            at.value,
            site.id()
        );
    };
    let new = ValueRef::from(new);
    // An equal number of the same type is no change: 0 added to -0, or to a decimal with its own exponent.
    if new.bson_type() as u8 == at.kind && values_equal(new, at.value) {
        return Ok(Effect::Keep);
    }
    Ok(Effect::Replace(Encoded::new(new)))
}
