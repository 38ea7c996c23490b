//! RETURN_KEY: the index keys by which rows were found.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Each, EachRow};
use crate::row::{Row, RowDoc};
use nestor_model::Result;
use nestor_planner::NodeKind;

/// Each row becomes its index key, or an empty document when no index led to it.
pub type ReturnKey = Each<ReturningKey>;

/// The work of a [`ReturnKey`] on a row.
pub struct ReturningKey;

impl ReturnKey {
    /// Over the rows of `input`, whose scans keep their keys.
    pub fn new(input: BoxOperator) -> Self {
        Self::over(input, ReturningKey)
    }
}

impl EachRow for ReturningKey {
    fn kind(&self) -> NodeKind {
        NodeKind::ReturnKey
    }

    fn row(&mut self, mut row: Row, _: &Batch<'_>, _: &mut Counters) -> Result<Option<Row>> {
        let key = row.meta.as_mut().and_then(|meta| meta.index_key.take());
        row.doc = RowDoc::Owned(key.unwrap_or_default());
        Ok(Some(row))
    }
}
