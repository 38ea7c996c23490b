//! Rows as keys of hash tables, by canonical equality.

use nestor_model::{Result, Value, hash_value, values_equal};
use nestor_planner::relation::{Env, Scalar};
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

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

/// What rows are found by in a table: columns where they stand, or values that are computed of a row.
pub(super) struct Keys<S> {
    by: Vec<S>,
    /// The columns that all of them are, in a row of the table's own.
    columns: Option<Vec<usize>>,
    /// Each value is its own key.
    is_exact: bool,
}

impl<S: Scalar> Keys<S> {
    /// Keys of rows whose first column is the column `first` of what the expressions see.
    pub fn new(by: Vec<S>, first: usize) -> Self {
        let is_exact = by.iter().all(Scalar::is_own_key);
        let columns = by.iter().map(|part| part.place()?.checked_sub(first));
        Self {
            columns: columns.collect::<Option<_>>().filter(|_| is_exact),
            is_exact,
            by,
        }
    }

    /// Number of parts.
    pub fn len(&self) -> usize {
        self.by.len()
    }

    /// Whether the parts are columns, so that nothing has to be computed or kept of them.
    pub fn are_columns(&self) -> bool {
        self.columns.is_some()
    }

    /// Whether the parts are the values of the expressions themselves.
    pub fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// Sets `into` to what has to be computed for a row, as the expressions see it.
    pub fn compute(&self, row: &[Value], env: &Env<'_>, into: &mut Vec<Value>) -> Result<()> {
        into.clear();
        if self.columns.is_none() {
            for part in &self.by {
                into.push(part.key(part.value(row, env)?));
            }
        }
        Ok(())
    }

    /// Part `i` of the key of a row of its own, with what was computed for it.
    pub fn part<'k>(&self, i: usize, row: &'k [Value], computed: &'k [Value]) -> &'k Value {
        let found = match &self.columns {
            Some(columns) => row.get(columns[i]),
            None => computed.get(i),
        };
        found.unwrap_or(&Value::Null)
    }

    /// The value of part `i` of a row, which need not be its key.
    pub fn value(&self, i: usize, row: &[Value], computed: &[Value], env: &Env<'_>) -> Result<Value> {
        match self.is_exact {
            true => Ok(self.part(i, row, computed).clone()),
            false => self.by[i].value(row, env),
        }
    }
}

/// The hash of the parts of a key.
pub(super) fn hash_of<'k>(state: &RandomState, parts: impl Iterator<Item = &'k Value>) -> u64 {
    let mut hasher = state.build_hasher();
    for part in parts {
        hash_value(part, &mut hasher);
    }
    hasher.finish()
}
