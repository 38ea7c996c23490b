//! Stages that make at most one document of each: `$replaceRoot`, `$redact`.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Operator, Step};
use crate::row::{Row, RowDoc};
use nestor_model::{Error, Result, Value};
use nestor_query::Expr;
use nestor_query::env::Env;
use nestor_query::stage::{Redact, redact};
use std::sync::Arc;

enum Change {
    ReplaceRoot(Arc<Expr>),
    Redact(Arc<Redact>),
}

/// Changes or drops each row.
pub(super) struct Map {
    input: BoxOperator,
    change: Change,
    counters: Counters,
}

impl Map {
    /// `$replaceRoot`.
    pub(super) fn replace_root(input: BoxOperator, expr: Arc<Expr>) -> Self {
        Self {
            input,
            change: Change::ReplaceRoot(expr),
            counters: Counters::default(),
        }
    }

    /// `$redact`.
    pub(super) fn redact(input: BoxOperator, stage: Arc<Redact>) -> Self {
        Self {
            input,
            change: Change::Redact(stage),
            counters: Counters::default(),
        }
    }

    fn apply(&self, row: &Row, batch: &Batch<'_>) -> Result<Option<RowDoc>> {
        match &self.change {
            Change::ReplaceRoot(expr) => {
                let mut env = Env::new(row.as_doc(), batch.op).with_meta(row.meta.as_deref());
                match expr.eval(&mut env)? {
                    Value::Document(doc) => Ok(Some(RowDoc::Owned(doc))),
                    other => Err(Error::location(
                        40228,
                        format!(
                            "'newRoot' expression must evaluate to an object, but resulting value was: {other:?}; type of resulting value: '{}'",
                            other.bson_type().alias()
                        ),
                    )),
                }
            }
            Change::Redact(stage) => Ok(redact(stage, row.as_doc(), batch.op)?.map(RowDoc::Owned)),
        }
    }
}

impl Operator for Map {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        loop {
            self.counters.works += 1;
            match self.input.next(batch)? {
                Step::Row(row) => {
                    if let Some(doc) = self.apply(&row, batch)? {
                        self.counters.advanced += 1;
                        return Ok(Step::Row(Row {
                            doc,
                            record: None,
                            meta: row.meta,
                        }));
                    }
                }
                Step::Eof => {
                    self.counters.is_eof = true;
                    return Ok(Step::Eof);
                }
                Step::Pause => return Ok(Step::Pause),
            }
        }
    }

    fn is_done(&self) -> bool {
        self.input.is_done()
    }
    fn save(&mut self) {
        self.input.save();
    }
    fn stage(&self) -> &'static str {
        match self.change {
            Change::ReplaceRoot(_) => "$replaceRoot",
            Change::Redact(_) => "$redact",
        }
    }
    fn counters(&self) -> &Counters {
        &self.counters
    }
    fn inputs(&self) -> Vec<&dyn Operator> {
        vec![&*self.input]
    }
}
