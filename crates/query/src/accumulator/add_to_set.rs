//! `$addToSet`.

use super::{Accumulator, Argument, Definition, State, add_items, value_bytes};
use crate::collation::{Collator, Key};
use crate::env::Val;
use nestor_model::{Result, Value, ValueRef};
use std::collections::HashSet;

pub(super) const DEFINITION: Definition = Definition {
    name: "$addToSet",
    argument: Argument::Expression,
    start: |settings| Accumulator::AddToSet(AddToSet::new(settings.collator)),
};

/// Each distinct value once, in the order they came; missing ones are left out.
#[derive(Clone, Debug, Default)]
pub struct AddToSet {
    collator: Option<Collator>,
    seen: HashSet<Key>,
    values: Vec<Value>,
    bytes: usize,
}

impl AddToSet {
    /// Strings that `collator` finds equal are one.
    pub fn new(collator: Option<&Collator>) -> Self {
        Self {
            collator: collator.cloned(),
            ..Self::default()
        }
    }

    pub(super) fn insert(&mut self, value: Value) {
        if self.seen.insert(Key::new(value.clone(), self.collator.as_ref())) {
            self.bytes += value_bytes(&value) + size_of::<Key>();
            self.values.push(value);
        }
    }
}

impl State for AddToSet {
    fn add(&mut self, value: Val<'_>) -> Result<()> {
        if !value.is_missing() {
            self.insert(value.into_value());
        }
        Ok(())
    }

    fn result(&self) -> Value {
        self.values.clone().into()
    }

    fn memory(&self) -> usize {
        self.bytes
    }

    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        add_items(self, partial)
    }
}
