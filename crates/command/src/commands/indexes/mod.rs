//! Commands on indexes.

pub mod commit_quorum;
pub mod create_indexes;
pub mod drop_indexes;
pub mod list_indexes;
pub mod re_index;
pub mod search;
pub mod spec;
pub(crate) mod timeseries;

use crate::spec::CommandSpec;
use nestor_model::{Document, IndexSpec};
use nestor_planner::kinds;

/// An index as `listIndexes` and its siblings show it: as it is kept, but for options whose kind shows them otherwise.
pub(crate) fn shown(spec: &IndexSpec) -> Document {
    let mut shown = Document::from(spec.listed().clone());
    for (name, value) in spec.listed().as_raw().iter() {
        if let Some(show) = kinds::option(name).and_then(|(_, option)| option.shown) {
            shown.set(name, show(value));
        }
    }
    shown
}

/// The family.
pub const SPECS: &[&CommandSpec] = &[
    &commit_quorum::SPEC,
    &create_indexes::SPEC,
    &list_indexes::SPEC,
    &drop_indexes::SPEC,
    &re_index::SPEC,
    &search::CREATE,
    &search::UPDATE,
    &search::DROP,
    &search::LIST,
];
