//! `$push`, `$addToSet`, `$concatArrays`, `$setUnion`, `$mergeObjects`.

use super::{items, value_bytes};
use crate::collation::{Collator, Key};
use crate::env::Val;
use nestor_model::{Document, Error, Result, Value, ValueRef};
use std::collections::HashSet;

/// All values in order; missing ones are left out.
#[derive(Clone, Debug, Default)]
pub struct Push {
    values: Vec<Value>,
    bytes: usize,
}

impl Push {
    /// Takes a value.
    pub fn add(&mut self, value: Val<'_>) {
        if !value.is_missing() {
            let value = value.into_value();
            self.bytes += value_bytes(&value);
            self.values.push(value);
        }
    }

    /// The values.
    pub fn result(&self) -> Value {
        self.values.clone().into()
    }

    /// Heap bytes held.
    pub fn memory(&self) -> usize {
        self.bytes
    }

    /// The state: the values.
    pub fn partial(&self) -> Value {
        self.result()
    }

    /// Takes what [`Push::partial`] gave.
    pub fn merge(&mut self, partial: ValueRef<'_>) {
        items(partial).for_each(|value| self.add(Val::Ref(value)));
    }
}

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

    /// Takes a value.
    pub fn add(&mut self, value: Val<'_>) {
        if !value.is_missing() {
            self.insert(value.into_value());
        }
    }

    fn insert(&mut self, value: Value) {
        if self.seen.insert(Key::new(value.clone(), self.collator.as_ref())) {
            self.bytes += value_bytes(&value) + size_of::<Key>();
            self.values.push(value);
        }
    }

    /// The values.
    pub fn result(&self) -> Value {
        self.values.clone().into()
    }

    /// Heap bytes held.
    pub fn memory(&self) -> usize {
        self.bytes
    }

    /// The state: the values in the order they came.
    pub fn partial(&self) -> Value {
        self.result()
    }

    /// Takes what [`AddToSet::partial`] gave.
    pub fn merge(&mut self, partial: ValueRef<'_>) {
        items(partial).for_each(|value| self.add(Val::Ref(value)));
    }
}

/// The items of a missing or array value; anything else is an error.
fn items_of<'v>(name: &str, value: ValueRef<'v>) -> Result<Option<nestor_model::ArrayRef<'v>>> {
    match value {
        ValueRef::Missing => Ok(None),
        ValueRef::Array(items) => Ok(Some(items)),
        other => Err(Error::type_mismatch(format!(
            "{name} requires array inputs, but input is of type {}",
            other.bson_type().alias()
        ))),
    }
}

/// The arrays one after the other; a missing one is left out.
#[derive(Clone, Debug, Default)]
pub struct ConcatArrays {
    values: Vec<Value>,
    bytes: usize,
}

impl ConcatArrays {
    /// Takes an array. Error: 14 for anything else but missing.
    pub fn add(&mut self, value: ValueRef<'_>) -> Result<()> {
        for item in items_of("$concatArrays", value)?.into_iter().flatten() {
            let item = item.to_value();
            self.bytes += value_bytes(&item);
            self.values.push(item);
        }
        Ok(())
    }

    /// All items.
    pub fn result(&self) -> Value {
        self.values.clone().into()
    }

    /// Heap bytes held.
    pub fn memory(&self) -> usize {
        self.bytes
    }

    /// The state: all items.
    pub fn partial(&self) -> Value {
        self.result()
    }
}

/// The distinct items of all arrays; a missing array is left out.
#[derive(Clone, Debug, Default)]
pub struct SetUnion(AddToSet);

impl SetUnion {
    /// Strings that `collator` finds equal are one.
    pub fn new(collator: Option<&Collator>) -> Self {
        Self(AddToSet::new(collator))
    }

    /// Takes an array. Error: 14 for anything else but missing.
    pub fn add(&mut self, value: ValueRef<'_>) -> Result<()> {
        for item in items_of("$setUnion", value)?.into_iter().flatten() {
            self.0.insert(item.to_value());
        }
        Ok(())
    }

    /// The items.
    pub fn result(&self) -> Value {
        self.0.result()
    }

    /// Heap bytes held.
    pub fn memory(&self) -> usize {
        self.0.memory()
    }

    /// The state: the items.
    pub fn partial(&self) -> Value {
        self.result()
    }
}

/// The documents laid over one another, later fields winning in place.
#[derive(Clone, Debug, Default)]
pub struct MergeObjects {
    doc: Document,
    bytes: usize,
}

impl MergeObjects {
    /// Takes a document; null and missing are left out. Error: 40400 for anything else.
    pub fn add(&mut self, value: ValueRef<'_>) -> Result<()> {
        match value {
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

    /// The merged document.
    pub fn result(&self) -> Value {
        Value::Document(self.doc.clone())
    }

    /// Heap bytes held.
    pub fn memory(&self) -> usize {
        self.bytes
    }

    /// The state: the merged document.
    pub fn partial(&self) -> Value {
        self.result()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::doc;

    #[test]
    fn merged_fields_that_were_replaced_hold_nothing() {
        let mut merged = MergeObjects::default();
        let doc = doc! { "a": "x".repeat(1_000), "b": 1 };
        merged.add(ValueRef::Document(doc.as_ref())).expect("a document");
        let once = merged.memory();
        for _ in 0..9 {
            merged.add(ValueRef::Document(doc.as_ref())).expect("a document");
        }
        assert_eq!(merged.memory(), once);
    }
}
