//! How many index entries plans would read, asked of the trees: what a range of keys costs is known without reading it.

use crate::build::index_of;
use crate::ops::scan_bounds::ScanBounds;
use nestor_model::Result;
use nestor_planner::PlanNode;
use nestor_storage::{Collection, View};

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
    match plan {
        PlanNode::IndexScan(scan) => {
            let index = index_of(&scan.index, collection)?;
            let bounds = ScanBounds::new(&scan.bounds, &index.descending, true);
            let Some((from, to)) = bounds.range() else {
                return Ok(None);
            };
            Ok(Some(Entries {
                count: view.estimate_entries(index.tree, &from, to)?,
                fetched: false,
            }))
        }
        PlanNode::Fetch { input, .. } => Ok(entries(input, collection, view)?.map(|entries| Entries {
            fetched: true,
            ..entries
        })),
        PlanNode::Covered { input, .. } | PlanNode::Filter { input, .. } | PlanNode::Project { input, .. } => {
            entries(input, collection, view)
        }
        _ => Ok(None),
    }
}
