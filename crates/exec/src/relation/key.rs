//! Rows as keys of hash tables, by canonical equality.

use nestor_model::vector::Vector;
use nestor_model::{Result, Value, hash_value, values_equal};
use nestor_planner::relation::chunk::each_row;
use nestor_planner::relation::{Env, Scalar};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

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

/// What the values of an expression are told apart by.
pub fn of_vector<S: Scalar>(part: &S, values: &Arc<Vector>) -> Result<Arc<Vector>> {
    match part.is_own_key() {
        true => Ok(values.clone()),
        false => each_row(values.len(), |row| Ok(part.key(values.value(row)))).map(Arc::new),
    }
}
