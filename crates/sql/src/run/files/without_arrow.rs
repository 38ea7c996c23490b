//! What a build without the feature `parquet` says of such files.

use super::Part;
use crate::catalog::files::Source;
use crate::catalog::{Column, Table};
use crate::error::unsupported;
use crate::run::bounds::Bound;
use nestor_model::Result;
use nestor_model::vector::Vector;
use nestor_planner::relation::explain::ColumnFigures;
use std::path::Path;
use std::sync::Arc;

/// What a scan wants of a file.
pub(super) struct Wanted<'w> {
    /// The table.
    pub table: &'w Arc<Table>,
    /// Which columns are looked at.
    pub needed: &'w [bool],
    /// What bounds their values.
    pub bounds: &'w [Bound],
}

/// The rows of a file, of which there are none.
pub(super) struct Batches;

/// Errors: 0A000.
pub(super) fn columns(_: &Source) -> Result<Vec<Column>> {
    unsupported("Parquet and Arrow in a build without the feature \"parquet\"")
}

impl Batches {
    /// Errors: 0A000.
    pub(super) fn open(source: &Source, _: &Path, wanted: &Wanted<'_>, _: &mut ColumnFigures) -> Result<Self> {
        debug_assert!(
            wanted.needed.len() >= wanted.table.columns.len()
                && wanted.bounds.iter().all(|own| own.column < wanted.needed.len())
        );
        columns(source).map(|_| Self)
    }
}

impl Part for Batches {
    fn advance(&mut self) -> Result<usize> {
        Ok(0)
    }

    fn column(&mut self, _: usize, _: Option<&[u32]>) -> Result<Vector> {
        Ok(Vector::default())
    }

    fn weight(&self) -> usize {
        0
    }
}
