//! COLLSCAN of `local.oplog.rs`: the entries of the journal, in order of their optimes.
//!
//! There is no second copy of the oplog, so this reads the journal through [`Batch::oplog`]. A filter that asks for
//! entries from an optime on (`ts: {$gte: ..}`, as everyone who follows the oplog does) starts there, or with the oldest
//! entry kept; from then on it misses none.

use crate::batch::Batch;
use crate::operator::{Counters, Explain, Operator, Report, Step};
use crate::row::{Row, RowDoc};
use nestor_model::{Document, Result, Timestamp, Value};
use nestor_planner::NodeKind;
use nestor_query::matcher::{CompareOp, MatchExpr, Predicate};
use nestor_storage::Bytes;
use nestor_storage::oplog::OplogCursor;
use std::sync::Arc;

/// Scans the oplog.
pub struct OplogScan {
    filter: Option<Arc<MatchExpr>>,
    forward: bool,
    tailable: bool,
    cursor: Option<OplogCursor>,
    /// Optime of the last entry looked at, or where to start.
    position: Timestamp,
    /// Nothing was read yet.
    is_new: bool,
    counters: Counters,
}

impl OplogScan {
    /// A scan as `plan` says.
    pub fn new(plan: &nestor_planner::plan::CollScan) -> Self {
        let position = if plan.forward {
            plan.filter.as_deref().and_then(start).unwrap_or_default()
        } else {
            Timestamp::from_u64(u64::MAX)
        };
        Self {
            filter: plan.filter.clone(),
            forward: plan.forward,
            tailable: plan.tailable,
            cursor: None,
            position,
            is_new: true,
            counters: Counters::default(),
        }
    }
}

/// The optime after which the first entry lies that can match.
fn start(filter: &MatchExpr) -> Option<Timestamp> {
    match filter {
        MatchExpr::And(children) => children.iter().filter_map(start).max(),
        MatchExpr::Leaf(leaf) if leaf.path.as_str() == "ts" => match &leaf.predicate {
            Predicate::Compare {
                op,
                value: Value::Timestamp(time),
                ..
            } => match op {
                CompareOp::Gt => Some(*time),
                CompareOp::Gte | CompareOp::Eq => Some(Timestamp::from_u64(time.to_u64().saturating_sub(1))),
                CompareOp::Lt | CompareOp::Lte => None,
            },
            _ => None,
        },
        _ => None,
    }
}

impl Operator for OplogScan {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        if self.counters.is_eof && !self.tailable {
            return Ok(Step::Eof);
        }
        loop {
            if !batch.spend()? {
                return Ok(Step::Pause);
            }
            self.counters.works += 1;
            let cursor = match (&mut self.cursor, batch.oplog) {
                (Some(cursor), _) => cursor,
                (None, Some(open)) => {
                    let cursor = open(self.position);
                    self.cursor
                        .insert(if self.is_new { cursor.from_oldest() } else { cursor })
                }
                (None, None) => return Ok(Step::Eof),
            };
            let entry = if self.forward { cursor.next()? } else { cursor.prev()? };
            self.is_new = false;
            self.position = cursor.position();
            let Some(entry) = entry else {
                self.counters.is_eof = true;
                return Ok(Step::Eof);
            };
            self.counters.docs_examined += 1;
            if let Some(filter) = &self.filter {
                if !filter.matches(entry.as_raw().as_doc(), batch.op)? {
                    continue;
                }
            }
            self.counters.advanced += 1;
            return Ok(Step::Row(Row {
                doc: RowDoc::Raw(entry),
                // MongoDB's record ids of oplog entries are their optimes.
                record: Some(Bytes::from(self.position.to_u64().to_be_bytes())),
                meta: None,
            }));
        }
    }

    fn save(&mut self) {
        self.cursor = None;
    }

    fn report(&self) -> Report<'_> {
        Report::new(NodeKind::CollScan, &self.counters).explained_by(self)
    }
}

impl Explain for OplogScan {
    fn plan_fields(&self, out: &mut Document) {
        out.push("direction", if self.forward { "forward" } else { "backward" });
        out.push("docsExamined", Value::count(self.counters.docs_examined));
    }
}
