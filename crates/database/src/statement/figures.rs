//! What a statement counts as it goes: the plan before it runs ([`Statement::note_plan`], also for `currentOp`), its
//! counters afterwards ([`Statement::observe`]). All of it is a few additions, whether or not anybody will look.

use super::Statement;
use crate::lock;
use crate::observe::figures::{CollectionScan, IdLookup};
use crate::observe::op_kind::OpKind;
use nestor_exec::Operator;
use nestor_exec::summary::{self, Totals};
use nestor_exec::write::Writer;
use nestor_planner::NodeKind;

impl Statement<'_> {
    /// Says how the operation reads, before it does. Its first plan stands for it; others follow from that.
    pub fn note_plan(&self, root: &dyn Operator) {
        let plan = &mut lock(&self.slot.operation).plan;
        if !plan.is_empty() {
            return;
        }
        summary::leaves(root, plan);
        // A getMore goes on with a scan that was counted.
        if plan.iter().any(|leaf| leaf.kind == NodeKind::CollScan) && self.op != OpKind::GetMore {
            let described = self.described.borrow();
            let query = described.as_ref().and_then(|described| described.query.as_ref());
            let is_tailable = query.is_some_and(|query| query.tailable);
            self.figures.borrow_mut().collection_scan = Some(CollectionScan { is_tailable });
        }
    }

    /// Adds what a plan has counted, once it ran.
    pub fn observe(&self, root: &dyn Operator) {
        self.observe_since(root, Totals::default());
    }

    /// As [`Statement::observe`], of a plan that had counted `before` in earlier batches.
    pub fn observe_since(&self, root: &dyn Operator, before: Totals) {
        // Which of several plans it is was not known before.
        self.note_plan(root);
        let mut examined = summary::totals(root);
        examined.keys_examined = examined.keys_examined.saturating_sub(before.keys_examined);
        examined.docs_examined = examined.docs_examined.saturating_sub(before.docs_examined);
        let mut figures = self.figures.borrow_mut();
        figures.add(examined);
        if self.database.profiler.is_on() && self.database.profiler.level(self.db()) > 0 {
            figures.stages = Some(nestor_exec::Figures::of(root).document());
        }
    }

    /// Adds what plans have counted that are no operators over documents.
    pub fn observe_totals(&self, totals: Totals) {
        self.figures.borrow_mut().add(totals);
    }

    /// Counts a lookup by `_id` without a plan.
    pub fn observe_id_lookup(&self, lookup: IdLookup, found: bool) {
        let mut figures = self.figures.borrow_mut();
        figures.id_lookup = Some(lookup);
        figures.add(Totals {
            keys_examined: 1,
            docs_examined: u64::from(found),
            ..Totals::default()
        });
    }

    /// Counts the index keys that a writer changed, once its write set can be committed.
    pub fn observe_keys(&self, writer: &Writer<'_>) {
        let mut figures = self.figures.borrow_mut();
        figures.keys_inserted += writer.keys_inserted;
        figures.keys_deleted += writer.keys_deleted;
    }

    /// Notes what became of the cursor of a batch.
    pub fn observe_batch(&self, returned: u64, cursor_id: i64) {
        let mut figures = self.figures.borrow_mut();
        figures.returned = Some(returned);
        figures.cursor_id = (cursor_id != 0).then_some(cursor_id);
        figures.cursor_exhausted = cursor_id == 0;
    }
}
