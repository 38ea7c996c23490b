//! Sources that are no collection: `$documents` and the server's own state.

use super::PipelineSource;
use crate::batch::Batch;
use crate::kept::Kept;
use crate::operator::{Counters, Operator, Report, Step};
use nestor_model::statement::{effort, work};
use nestor_model::{Document, Error, Result, Value};
use nestor_planner::NodeKind;
use nestor_query::Expr;
use nestor_query::stage::SourceStage;
use std::sync::Arc;

enum Origin {
    Expression(Arc<Expr>),
    Server(SourceStage, PipelineSource),
}

/// Gives documents made at the first pull.
pub(super) struct DocumentsOp {
    origin: Origin,
    rows: Option<std::vec::IntoIter<Document>>,
    kept: Kept,
    counters: Counters,
}

impl DocumentsOp {
    /// The documents of an array expression.
    pub(super) fn of_expression(expr: Arc<Expr>) -> Self {
        Self {
            origin: Origin::Expression(expr),
            rows: None,
            kept: Kept::default(),
            counters: Counters::default(),
        }
    }

    /// The server's own state.
    pub(super) fn of_server(stage: SourceStage, context: PipelineSource) -> Self {
        Self {
            origin: Origin::Server(stage, context),
            rows: None,
            kept: Kept::default(),
            counters: Counters::default(),
        }
    }

    fn make(&self, batch: &Batch<'_>) -> Result<Vec<Document>> {
        match &self.origin {
            Origin::Server(stage, context) => context
                .server
                .documents(stage, &context.namespace, batch.view, batch.op),
            Origin::Expression(expr) => {
                let value = expr.eval_without_document(batch.op)?;
                let Value::Array(items) = &value else {
                    return Err(Error::location(
                        5_858_203,
                        format!("an array is expected, but got {}", value.bson_type().alias()),
                    ));
                };
                items
                    .iter()
                    .map(|item| {
                        effort::made();
                        work(1)?;
                        match item.as_document() {
                            Some(doc) => Ok(doc.to_document()),
                            None => Err(Error::location(
                                40228,
                                format!("'$documents' must hold documents, but found {item:?}"),
                            )),
                        }
                    })
                    .collect()
            }
        }
    }
}

impl Operator for DocumentsOp {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        if !batch.spend()? {
            return Ok(Step::Pause);
        }
        self.counters.works += 1;
        if self.rows.is_none() {
            let made = self.make(batch)?;
            let bytes = made.iter().map(|doc| size_of::<Document>() + doc.weight());
            self.kept.grow(bytes.sum())?;
            self.rows = Some(made.into_iter());
        }
        self.kept
            .shrink_by_one_of(self.rows.as_ref().map_or(0, ExactSizeIterator::len));
        let row = self.rows.as_mut().and_then(Iterator::next);
        Ok(self.counters.gave(row.map_or(Step::Eof, |doc| Step::Row(doc.into()))))
    }

    fn save(&mut self) {
        self.kept.rest();
    }

    fn report(&self) -> Report<'_> {
        Report::new(NodeKind::Documents, &self.counters).holding(self.kept.bytes())
    }
}
