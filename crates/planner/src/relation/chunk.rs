//! Rows column by column.

use super::Tuple;
use nestor_model::vector::{Builder, Vector};
use nestor_model::{Result, Value, statement};
use std::sync::Arc;

/// Rows of a chunk, about: as many as fit the caches with the vectors that are computed of them.
pub const ROWS: usize = 1024;

/// Rows side by side, as one vector for each of their columns. Columns that nobody looks at are null.
#[derive(Clone, Debug, Default)]
pub struct Chunk {
    /// The columns, all of [`Chunk::rows`] rows.
    pub columns: Vec<Arc<Vector>>,
    /// How many rows it has.
    pub rows: usize,
}

impl Chunk {
    /// What builders of all its columns hold.
    pub fn of(columns: Vec<Builder>, rows: usize) -> Self {
        let null = Arc::new(Vector::same(Value::Null, rows));
        let columns = columns.into_iter().map(|column| match column.is_empty() {
            // Nobody added anything.
            true => null.clone(),
            false => Arc::new(column.finish()),
        });
        Self {
            columns: columns.collect(),
            rows,
        }
    }

    /// These rows.
    pub fn of_rows(rows: Vec<Tuple>, width: usize) -> Self {
        let count = rows.len();
        let mut columns: Vec<Builder> = (0..width).map(|_| Builder::default()).collect();
        for row in rows {
            columns
                .iter_mut()
                .zip(row)
                .for_each(|(column, value)| column.push(value));
        }
        Self::of(columns, count)
    }

    /// A row.
    pub fn row(&self, at: usize) -> Tuple {
        self.columns.iter().map(|column| column.value(at)).collect()
    }

    /// The rows at `places`.
    #[must_use]
    pub fn gather(&self, places: &[u32]) -> Self {
        Self {
            columns: self
                .columns
                .iter()
                .map(|column| Arc::new(column.gather(places)))
                .collect(),
            rows: places.len(),
        }
    }

    /// The rows at `places` as far as the columns of which `is_used` says so; the others are null.
    #[must_use]
    pub fn gather_used(&self, places: &[u32], is_used: &dyn Fn(usize) -> bool) -> Self {
        let null = Arc::new(Vector::same(Value::Null, places.len()));
        let columns = self.columns.iter().enumerate().map(|(at, column)| match is_used(at) {
            true => Arc::new(column.gather(places)),
            false => null.clone(),
        });
        Self {
            columns: columns.collect(),
            rows: places.len(),
        }
    }

    /// Bytes of the largest of its rows, if one is large, or more.
    pub fn heaviest(&self) -> usize {
        self.columns.iter().map(|column| column.heaviest()).sum()
    }

    /// Bytes that it takes, about.
    pub fn weight(&self) -> usize {
        self.columns.iter().map(|column| column.weight()).sum()
    }
}

/// The vector of what `value` gives for each row. Errors: its own, and those of the interrupt.
pub fn each_row(rows: usize, mut value: impl FnMut(usize) -> Result<Value>) -> Result<Vector> {
    let mut out = Builder::default();
    for row in 0..rows {
        statement::work(1)?;
        out.push(value(row)?);
    }
    Ok(out.finish())
}
