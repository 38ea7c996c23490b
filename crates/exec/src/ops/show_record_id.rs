//! `showRecordId`: adds `$recordId` to each stored document.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Each, EachRow};
use crate::row::{Row, RowDoc};
use nestor_model::{Binary, Result, Value};
use nestor_planner::NodeKind;
use nestor_storage::record;

/// Adds the record id: a long, or the encoded `_id` of a clustered collection as binary.
pub type ShowRecordId = Each<ShowingRecordId>;

/// The work of a [`ShowRecordId`] on a row.
pub struct ShowingRecordId;

impl ShowRecordId {
    /// Over the rows of `input`.
    pub fn new(input: BoxOperator) -> Self {
        Self::over(input, ShowingRecordId)
    }
}

impl EachRow for ShowingRecordId {
    fn kind(&self) -> NodeKind {
        NodeKind::ShowRecordId
    }

    fn row(&mut self, mut row: Row, _: &Batch<'_>, _: &mut Counters) -> Result<Option<Row>> {
        if let Some(key) = &row.record {
            let id = match record::record_id(key) {
                Some(id) => Value::Int64(id.0 as i64),
                None => Value::Binary(Binary {
                    subtype: 0,
                    bytes: key.as_slice().into(),
                }),
            };
            let mut doc = row.doc.into_document();
            doc.set("$recordId", id);
            row.doc = RowDoc::Owned(doc);
        }
        Ok(Some(row))
    }
}
