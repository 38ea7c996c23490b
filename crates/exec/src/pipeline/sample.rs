//! `$sample`: the first rows of a random order.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Each, EachRow};
use crate::ops::{Limit, Sort};
use crate::row::Row;
use nestor_model::Result;
use nestor_planner::NodeKind;
use nestor_query::sort::{SortBy, SortPart, SortSpec};
use std::sync::Arc;

/// Gives each row a random number, sorts by it and keeps `size`.
pub(super) fn build(input: BoxOperator, size: u64) -> BoxOperator {
    let spec = SortSpec::of(vec![SortPart {
        by: SortBy::Meta("randVal"),
        ascending: true,
    }]);
    let sorted = Box::new(Sort::new(
        Box::new(Each::over(input, Number)),
        Arc::new(spec),
        Some(size),
        false,
    ));
    Box::new(Limit::new(sorted, size))
}

struct Number;

impl EachRow for Number {
    fn kind(&self) -> NodeKind {
        NodeKind::Sample
    }

    fn row(&mut self, mut row: Row, batch: &Batch<'_>, _: &mut Counters) -> Result<Option<Row>> {
        row.meta.get_or_insert_default().rand_val = Some(batch.op.random_f64());
        Ok(Some(row))
    }
}
