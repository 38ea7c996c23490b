//! Rows as keys of hash tables, by canonical equality.

use nestor_model::{Result, Value, hash_value, values_equal};
use nestor_planner::relation::{Env, Scalar};
use std::hash::{Hash, Hasher};

/// Values that are a key together.
#[derive(Clone, Debug)]
pub struct RowKey(pub Vec<Value>);

impl PartialEq for RowKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(a, b)| values_equal(a, b))
    }
}

impl Eq for RowKey {}

impl Hash for RowKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for value in &self.0 {
            hash_value(value, state);
        }
    }
}

/// The key that expressions give for a row.
pub fn of<S: Scalar>(by: &[S], row: &[Value], env: &Env<'_>) -> Result<RowKey> {
    let parts = by.iter().map(|part| Ok(part.key(part.value(row, env)?)));
    Ok(RowKey(parts.collect::<Result<_>>()?))
}

/// As [`of`]; `None` when a part is null, which equals nothing.
pub fn of_join<'s, S: Scalar>(by: impl Iterator<Item = &'s S>, row: &[Value], env: &Env<'_>) -> Result<Option<RowKey>> {
    let mut parts = Vec::new();
    for part in by {
        match part.value(row, env)? {
            Value::Null => return Ok(None),
            value => parts.push(part.key(value)),
        }
    }
    Ok(Some(RowKey(parts)))
}
