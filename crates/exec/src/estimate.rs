//! How many index entries plans would read, asked of the trees: what a range of keys costs is known without reading it.

use crate::build::index_of;
use crate::ops::scan_bounds::ScanBounds;
use nestor_model::Result;
use nestor_planner::PlanNode;
use nestor_storage::{Collection, TreeId, View};

/// What a plan reads of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entries {
    /// About how many entries.
    pub count: u64,
    /// The document of each is read as well.
    pub fetched: bool,
}

/// What the plan with the fewest entries reads, if each plan reads one range of one index.
///
/// Errors: those of storage.
pub fn least_entries(plans: &[PlanNode], collection: &Collection, view: &dyn View) -> Result<Option<Entries>> {
    let mut least: Option<Entries> = None;
    for plan in plans {
        let Some(entries) = entries(plan, collection, view)? else {
            return Ok(None);
        };
        if least.is_none_or(|least| entries.count < least.count) {
            least = Some(entries);
        }
    }
    Ok(least)
}

fn entries(plan: &PlanNode, collection: &Collection, view: &dyn View) -> Result<Option<Entries>> {
    let Some(range) = range(plan, collection)? else {
        return Ok(None);
    };
    let (from, to) = range.bounds();
    Ok(Some(Entries {
        count: view.estimate_entries(range.tree, from, to)?,
        fetched: range.fetched,
    }))
}

/// Whether a plan that reads one range of one index reads `most` entries or fewer: what [`least_entries`] would say, for less.
///
/// Errors: those of storage.
pub fn reads_at_most(plan: &PlanNode, collection: &Collection, view: &dyn View, most: u64) -> Result<Option<bool>> {
    let Some(range) = range(plan, collection)? else {
        return Ok(None);
    };
    let (from, to) = range.bounds();
    Ok(Some(view.has_at_most(range.tree, from, to, most)?))
}

/// A range of the entries of an index.
struct Range {
    tree: TreeId,
    from: Vec<u8>,
    /// Behind the last one; `None`: to the end.
    to: Option<Vec<u8>>,
    fetched: bool,
}

impl Range {
    fn bounds(&self) -> (&[u8], Option<&[u8]>) {
        (&self.from, self.to.as_deref())
    }
}

/// The range that a plan reads, if it reads just one.
fn range(plan: &PlanNode, collection: &Collection) -> Result<Option<Range>> {
    match plan {
        PlanNode::IndexScan(scan) => {
            let index = index_of(&scan.index, collection)?;
            let bounds = ScanBounds::new(&scan.bounds, &index.descending, true);
            Ok(bounds.range().map(|(from, to)| Range {
                tree: index.tree,
                from,
                to: to.map(<[u8]>::to_vec),
                fetched: false,
            }))
        }
        PlanNode::Fetch { input, .. } => {
            let range = range(input, collection)?;
            Ok(range.map(|range| Range { fetched: true, ..range }))
        }
        PlanNode::Covered { input, .. } | PlanNode::Filter { input, .. } | PlanNode::Project { input, .. } => {
            range(input, collection)
        }
        _ => Ok(None),
    }
}
