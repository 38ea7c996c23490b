//! Aggregation stages as operators.
//!
//! The planner makes the plan of a pipeline ([`nestor_planner::pipeline`]), `lower` makes operators of it: one per stage on top
//! of a source. Stages that read other collections (`$lookup`, `$graphLookup`, `$unionWith`) open them through `open`, which plans again. Stages
//! that read the server's own state ask [`ServerState`]; `$out` and `$merge` are no operators: whoever
//! drains the pipeline writes ([`Pipeline::writes`] tells).
//!
//! [`Pipeline::writes`]: nestor_query::stage::Pipeline::writes

mod bucket_auto;
mod by_columns;
mod densify;
mod depth;
mod documents;
mod explained;
mod facet;
mod fusion;
mod geo_near;
mod graph_lookup;
mod group;
mod hash_join;
mod lookup;
mod lower;
mod map;
mod open;
mod probe;
mod row_store;
mod sample;
mod search;
mod union_with;
mod unpack;
mod unwind;
mod window;

pub use explained::{Explained, explain_stages};
pub use nestor_planner::pipeline::{Restrict, VIEW_DEPTH_MAX};
use open::open_matching;
pub use open::{PipelineSource, plan_stages, resolve};
use probe::Probe;
pub use probe::{PipelineReport, StageReport, report};

use nestor_model::{Document, Error, ErrorCode, Namespace, Result};
use nestor_query::env::OpContext;
use nestor_query::stage::SourceStage;
use nestor_storage::View;

/// Answers the stages that read the server's own state.
pub trait ServerState: Send + Sync {
    /// The documents of `stage` on `namespace`, of what the caller of `op` may see.
    fn documents(
        &self,
        stage: &SourceStage,
        namespace: &Namespace,
        view: &dyn View,
        op: &OpContext,
    ) -> Result<Vec<Document>>;
}

/// A server without state of its own: such stages are refused. For embedding and tests.
#[derive(Debug)]
pub struct NoServerState;

impl ServerState for NoServerState {
    fn documents(&self, _: &SourceStage, _: &Namespace, _: &dyn View, _: &OpContext) -> Result<Vec<Document>> {
        Err(Error::new(ErrorCode::CommandNotSupported, "this stage needs a server"))
    }
}
