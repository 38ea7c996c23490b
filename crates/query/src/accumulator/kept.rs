//! The one value that `$first` and `$last` keep.

use super::{items, value_bytes};
use nestor_model::{Value, ValueRef};

/// One value, once there is one.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    value: Option<Value>,
    bytes: usize,
}

impl Kept {
    /// True before the first value.
    pub(super) fn is_empty(&self) -> bool {
        self.value.is_none()
    }

    /// Keeps `value` in place of any before.
    pub(super) fn keep(&mut self, value: Value) {
        self.bytes = value_bytes(&value);
        self.value = Some(value);
    }

    /// The value; missing when it was or when there was none.
    pub(super) fn result(&self) -> Value {
        self.value.clone().unwrap_or(Value::Missing)
    }

    /// Bytes of the value.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// No item when there is no value yet, two when it is missing.
    pub(super) fn partial(&self) -> Value {
        match &self.value {
            None => Vec::new(),
            Some(Value::Missing) => vec![Value::Null, Value::Null],
            Some(value) => vec![value.clone()],
        }
        .into()
    }

    /// The value that [`Kept::partial`] wrote, if there was one.
    pub(super) fn of(partial: ValueRef<'_>) -> Option<ValueRef<'_>> {
        let mut items = items(partial);
        let first = items.next()?;
        Some(items.next().map_or(first, |_| ValueRef::Missing))
    }
}
