//! `$setUnion`.

use super::{Accumulator, AddToSet, Argument, Definition, State, array_of};
use crate::collation::Collator;
use crate::env::Val;
use nestor_model::{Result, Value, ValueRef};

pub(super) const DEFINITION: Definition = Definition {
    name: "$setUnion",
    argument: Argument::Expression,
    start: |settings| Accumulator::SetUnion(SetUnion::new(settings.collator)),
};

/// The distinct items of all arrays; a missing array is left out.
#[derive(Clone, Debug, Default)]
pub struct SetUnion(AddToSet);

impl SetUnion {
    /// Strings that `collator` finds equal are one.
    pub fn new(collator: Option<&Collator>) -> Self {
        Self(AddToSet::new(collator))
    }
}

impl State for SetUnion {
    /// Takes an array. Error: 14 for anything else but missing.
    fn add(&mut self, value: Val<'_>) -> Result<()> {
        let array = array_of("$setUnion", value.as_ref())?;
        for item in array.into_iter().flatten() {
            self.0.insert(item.to_value());
        }
        Ok(())
    }

    fn result(&self) -> Value {
        self.0.result()
    }

    fn memory(&self) -> usize {
        self.0.memory()
    }

    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        self.add(Val::Ref(partial))
    }
}
