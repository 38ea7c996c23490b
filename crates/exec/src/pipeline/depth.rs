//! A limit to the nesting of what stages make.
//!
//! One stage puts what it got a few levels deeper, and a thousand of them would make a value that nothing which walks down it
//! has the stack for. So after every few stages the documents that were computed are looked at.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Operator, Report, Step};
use crate::row::RowDoc;
use nestor_model::Result;
use nestor_planner::plan::{StageNode, StageOp};
use nestor_query::expr::check_document_depth;
use nestor_query::stage::Stage;

/// Stages that may nest deeper without a look between them: with the deepest expressions and paths some thousand levels.
const STAGES_MAX: usize = 8;

/// Counts stages since the last look.
#[derive(Default)]
pub(super) struct Unchecked(usize);

impl Unchecked {
    /// Counts a stage, of which `node` is the operator.
    pub(super) fn after(&mut self, stage: &StageNode, node: BoxOperator) -> BoxOperator {
        self.0 += usize::from(deepens(stage));
        if self.0 < STAGES_MAX {
            return node;
        }
        self.0 = 0;
        bounded(node)
    }
}

fn deepens(stage: &StageNode) -> bool {
    match &stage.op {
        StageOp::TopSort { .. } | StageOp::FilteredChanges(_) => false,
        StageOp::LookupUnwind(_) => true,
        StageOp::Parsed(stage) => !matches!(
            stage,
            Stage::Match(_) | Stage::Sort(_) | Stage::Limit(_) | Stage::Skip(_) | Stage::Sample(_) | Stage::Source(_)
        ),
    }
}

/// Refuses rows that are nested too deep (15). To be put on top of pipelines whose rows go into those of others.
pub(super) fn bounded(input: BoxOperator) -> BoxOperator {
    Box::new(Bounded(input))
}

/// Passes rows on. Everyone who asks sees the operator below.
struct Bounded(BoxOperator);

impl Operator for Bounded {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        let step = self.0.next(batch)?;
        if let Step::Row(row) = &step {
            match &row.doc {
                RowDoc::Owned(doc) => check_document_depth(doc)?,
                RowDoc::Raw(raw) => check_document_depth(&raw.clone().into())?,
                RowDoc::Stored(_) | RowDoc::Key(_) | RowDoc::Unread => {}
            }
        }
        Ok(step)
    }

    fn expect(&mut self, rows: usize) {
        self.0.expect(rows);
    }
    fn save(&mut self) {
        self.0.save();
    }

    fn report(&self) -> Report<'_> {
        self.0.report()
    }
}
