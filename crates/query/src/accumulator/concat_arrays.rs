//! `$concatArrays`.

use super::held::Held;
use super::{Accumulator, Argument, Definition, State, array_of};
use crate::env::Val;
use nestor_model::{Result, Value, ValueRef};

pub(super) const DEFINITION: Definition = Definition {
    name: "$concatArrays",
    argument: Argument::Expression,
    start: |_| Accumulator::ConcatArrays(ConcatArrays::default()),
};

/// The arrays one after the other; a missing one is left out.
#[derive(Clone, Debug, Default)]
pub struct ConcatArrays(Held);

impl State for ConcatArrays {
    /// Takes an array. Error: 14 for anything else but missing.
    fn add(&mut self, value: Val<'_>) -> Result<()> {
        let array = array_of("$concatArrays", value.as_ref())?;
        for item in array.into_iter().flatten() {
            self.0.push(item.to_value());
        }
        Ok(())
    }

    fn result(&self) -> Value {
        self.0.to_array()
    }

    fn memory(&self) -> usize {
        self.0.bytes()
    }

    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        self.add(Val::Ref(partial))
    }
}
