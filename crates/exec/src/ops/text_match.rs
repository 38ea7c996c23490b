//! TEXT_MATCH: the rows that have what a `$text` asks for.
//!
//! The index has found documents with one of the terms. Phrases, what is negated, and case and diacritics that count are
//! looked for in documents.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Each, EachRow};
use crate::row::Row;
use nestor_model::{Document, Result, Value};
use nestor_planner::NodeKind;
use nestor_planner::plan::TextMatch as TextMatchPlan;

/// Lets documents through that have what is asked for.
pub type TextMatch = Each<TextMatching>;

/// What a [`TextMatch`] does with a row.
pub struct TextMatching {
    plan: TextMatchPlan,
    needs_document: bool,
    rejected: u64,
}

impl TextMatch {
    /// The rows of `input` that have what `plan` asks for.
    pub fn new(input: BoxOperator, plan: TextMatchPlan) -> Self {
        let each = TextMatching {
            needs_document: plan.search.needs_document(),
            plan,
            rejected: 0,
        };
        Self::over(input, each)
    }
}

impl EachRow for TextMatching {
    fn kind(&self) -> NodeKind {
        NodeKind::TextMatch
    }

    fn row(&mut self, row: Row, _: &Batch<'_>, _: &mut Counters) -> Result<Option<Row>> {
        if self.needs_document && !self.plan.search.matches_found(row.as_doc())? {
            self.rejected += 1;
            return Ok(None);
        }
        Ok(Some(row))
    }

    fn plan_fields(&self, _: &Counters, out: &mut Document) {
        self.plan.fields(out);
        out.push("docsRejected", Value::count(self.rejected));
    }
}
