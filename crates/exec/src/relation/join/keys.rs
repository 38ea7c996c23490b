//! What rows of joins are found by.

use crate::relation::{Run, key};
use nestor_model::Result;
use nestor_model::vector::Vector;
use nestor_planner::relation::{Chunk, Scalar};
use std::sync::Arc;

/// What rows are found by.
pub(super) struct Keys {
    pub parts: Vec<Arc<Vector>>,
    /// Which rows have a null among them, if one may.
    has_null: Option<Vec<bool>>,
}

impl Keys {
    /// These.
    pub fn of(parts: Vec<Arc<Vector>>) -> Self {
        let mut has_null = None;
        parts.iter().for_each(|part| note_nulls(part, &mut has_null));
        Self { parts, has_null }
    }

    /// Whether some row may have a null among them.
    pub fn may_be_null(&self) -> bool {
        self.has_null.is_some()
    }

    /// Whether a row has a null among them.
    pub fn is_null(&self, row: usize) -> bool {
        self.has_null.as_ref().is_some_and(|nulls| nulls[row])
    }

    /// Those of the rows at `places`.
    pub fn gather(&self, places: &[u32]) -> Self {
        let pick = |nulls: &Vec<bool>| places.iter().map(|at| nulls[*at as usize]).collect();
        Self {
            parts: self.parts.iter().map(|part| Arc::new(part.gather(places))).collect(),
            has_null: self.has_null.as_ref().map(pick),
        }
    }
}

/// Notes which values are null, if one may be.
fn note_nulls(values: &Vector, has_null: &mut Option<Vec<bool>>) {
    if values.may_be_null() {
        let all = has_null.get_or_insert_with(|| vec![false; values.len()]);
        let rows = all.iter_mut().enumerate();
        rows.for_each(|(row, null)| *null |= values.is_null(row));
    }
}

/// The keys of the rows of a chunk. Errors: those of the expressions.
pub(super) fn keys_of<S: Scalar>(by: &[S], chunk: &Chunk, run: &Run<'_, '_, S>) -> Result<Keys> {
    let mut has_null: Option<Vec<bool>> = None;
    let mut parts = Vec::with_capacity(by.len());
    for part in by {
        let values = part.vector(chunk, &run.env)?;
        note_nulls(&values, &mut has_null);
        parts.push(key::of_vector(part, &values)?);
    }
    Ok(Keys { parts, has_null })
}
