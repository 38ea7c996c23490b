//! Whether the metadata that stages ask for is there.

use crate::plan::StageNode;
use nestor_model::{Result, bail};
use nestor_query::stage::Stage;
use std::collections::BTreeSet;

/// Refuses stages that ask for metadata which nothing below them notes: scores, and how they came about.
///
/// Error: 40218.
pub(super) fn check_metadata(stages: &[StageNode]) -> Result<()> {
    // What makes other documents, or brings others along, has metadata of its own or none.
    let last = stages.iter().position(|stage| {
        matches!(
            stage.parsed(),
            Some(Stage::Group(_) | Stage::BucketAuto(_) | Stage::UnionWith(_) | Stage::Facet(_))
        )
    });
    let asking = &stages[..last.map_or(stages.len(), |last| last + 1)];
    let asked: BTreeSet<&str> = asking.iter().flat_map(StageNode::metadata).collect();
    match asked.into_iter().find(|name| gives(stages, name) == Some(false)) {
        Some(name) => bail!(40218, "query requires {name} metadata, but it is not available"),
        None => Ok(()),
    }
}

/// Whether the source of a pipeline notes this metadata; `None` for what is checked elsewhere, or not at all.
fn gives(stages: &[StageNode], metadata: &str) -> Option<bool> {
    match stages.first().and_then(StageNode::parsed) {
        Some(Stage::Search(search)) => search.gives(metadata),
        Some(Stage::Fusion(fusion)) => fusion.gives(metadata),
        _ => match metadata {
            "score" => {
                let mut filters = stages.iter().map_while(StageNode::filter);
                Some(filters.any(|filter| filter.text().is_some()))
            }
            "scoreDetails" => Some(false),
            _ => None,
        },
    }
}
