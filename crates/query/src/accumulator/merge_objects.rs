//! `$mergeObjects`.

use super::{Accumulator, Argument, Definition, State, value_bytes};
use crate::env::Val;
use nestor_model::{Document, Error, Result, Value, ValueRef};

pub(super) const DEFINITION: Definition = Definition {
    name: "$mergeObjects",
    argument: Argument::Expression,
    start: |_| Accumulator::MergeObjects(MergeObjects::default()),
};

/// The documents laid over one another, later fields winning in place.
#[derive(Clone, Debug, Default)]
pub struct MergeObjects {
    doc: Document,
    bytes: usize,
}

impl State for MergeObjects {
    /// Takes a document; null and missing are left out. Error: 40400 for anything else.
    fn add(&mut self, value: Val<'_>) -> Result<()> {
        match value.as_ref() {
            ValueRef::Document(doc) => {
                for (name, value) in doc {
                    let value = value.to_value();
                    // A field that is replaced gives its bytes back.
                    match self.doc.get(name) {
                        Some(old) => self.bytes = self.bytes.saturating_sub(value_bytes(&old.to_value())),
                        None => self.bytes += name.len(),
                    }
                    self.bytes += value_bytes(&value);
                    self.doc.set(name, value);
                }
                Ok(())
            }
            ValueRef::Null | ValueRef::Undefined | ValueRef::Missing => Ok(()),
            other => Err(Error::location(
                40400,
                format!(
                    "$mergeObjects requires object inputs, but input {other:?} is of type {}",
                    other.bson_type().alias()
                ),
            )),
        }
    }

    fn result(&self) -> Value {
        Value::Document(self.doc.clone())
    }

    fn memory(&self) -> usize {
        self.bytes
    }

    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        self.add(Val::Ref(partial))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::doc;

    #[test]
    fn merged_fields_that_were_replaced_hold_nothing() {
        let mut merged = MergeObjects::default();
        let doc = Value::Document(doc! { "a": "x".repeat(1_000), "b": 1 });
        merged.add(Val::Ref(doc.as_ref())).expect("a document");
        let once = merged.memory();
        for _ in 0..9 {
            merged.add(Val::Ref(doc.as_ref())).expect("a document");
        }
        assert_eq!(merged.memory(), once);
    }
}
