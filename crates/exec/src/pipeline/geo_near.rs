//! `$geoNear`: what the find below measured, as fields.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Each, EachRow};
use crate::row::{Row, RowDoc};
use nestor_model::Result;
use nestor_planner::NodeKind;
use nestor_query::stage::GeoNear;
use std::sync::Arc;

/// Sets fields of each row.
pub(super) type GeoNearFields = Each<Measured>;

/// The work of [`GeoNearFields`] on a row.
pub(super) struct Measured(Arc<GeoNear>);

/// Fields for distances and locations on top of `input`.
pub(super) fn build(input: BoxOperator, stage: Arc<GeoNear>) -> GeoNearFields {
    Each::over(input, Measured(stage))
}

impl EachRow for Measured {
    fn kind(&self) -> NodeKind {
        NodeKind::GeoNear
    }

    fn row(&mut self, row: Row, _: &Batch<'_>, _: &mut Counters) -> Result<Option<Row>> {
        let mut doc = row.doc.into_document();
        if let Some(meta) = &row.meta {
            self.0
                .set(&mut doc, meta.geo_distance.unwrap_or(0.0), meta.geo_point.as_ref());
        }
        Ok(Some(Row {
            doc: RowDoc::Owned(doc),
            record: None,
            meta: row.meta,
        }))
    }
}
