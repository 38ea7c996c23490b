//! From a name to what it stands for: a collection, through the views over it.

use crate::catalog::Indexes;
use crate::find::FindQuery;
use crate::plan::StageNode;
use crate::reuse::Reused;
use nestor_model::{ArrayRef, Error, ErrorCode, Namespace, Result, Str, TimeSeries};
use nestor_query::Scope;
use nestor_query::collation::Collator;
use nestor_query::masking::Masking;
use nestor_query::stage::{ParseContext, Pipeline, Place, Stage};
use std::sync::Arc;

/// Views on views at most.
pub const VIEW_DEPTH_MAX: usize = 20;

/// The namespaces as planning sees them. A statement plans everything with one state of them.
pub trait Namespaces {
    /// What stands under a name. Errors: those of collations that this version does not know.
    fn entry(&self, namespace: &Namespace) -> Result<Entry<'_>>;

    /// The indexes of a collection, if there is one of this name. Errors: those of parsing what is stored of them.
    fn indexes(&self, namespace: &Namespace) -> Result<Option<&Indexes>>;

    /// The plan that was kept for queries on a collection of the shape of `query`, bound to it; `None` to choose among all.
    fn reuse(&self, _namespace: &Namespace, _query: &FindQuery, _indexes: &Indexes) -> Option<Reused> {
        None
    }
}

/// The collection or view that a name stands for.
#[derive(Debug)]
pub enum Entry<'n> {
    /// Nothing.
    Nothing,
    /// A collection.
    Collection {
        /// The fields that the caller may not see plain.
        masking: Option<Arc<Masking>>,
        /// Its documents are the buckets of a time-series collection with these options.
        buckets: Option<Arc<TimeSeries>>,
    },
    /// A view.
    View {
        /// Name of what it is on, in its own database.
        on: &'n str,
        /// The stages of the view.
        pipeline: ArrayRef<'n>,
        /// How strings compare in it; `None` when that is up to the operation, as for time-series collections.
        collation: Option<Option<Collator>>,
    },
}

/// A namespace resolved through views.
#[derive(Debug)]
pub struct Resolved {
    /// The namespace at the bottom.
    pub namespace: Namespace,
    /// Whether there is a collection of that name.
    pub exists: bool,
    /// The stages of the views, the innermost first.
    pub stages: Vec<StageNode>,
}

/// Resolves a namespace through its views. `keep_written`: the stages are to be explained.
///
/// Errors: 165 when views are nested too deep, 167 when the collation of one is not the operation's.
pub fn resolve(
    namespace: &Namespace,
    namespaces: &dyn Namespaces,
    collator: Option<&Collator>,
    keep_written: bool,
) -> Result<Resolved> {
    let mut namespace = namespace.clone();
    let mut layers: Vec<Pipeline> = Vec::new();
    let mut is_unpacked = false;
    loop {
        let (on, pipeline, collation) = match namespaces.entry(&namespace)? {
            Entry::View {
                on,
                pipeline,
                collation,
            } => (Str::from(on), pipeline, collation),
            other => {
                let layers = layers.iter().rev();
                let layers = layers.flat_map(|layer| StageNode::all(&layer.stages, &layer.written));
                // Everything that is asked of a collection is asked of what the caller may see of it.
                let (masking, buckets) = match &other {
                    Entry::Collection { masking, buckets } => (masking.clone(), buckets.clone()),
                    _ => (None, None),
                };
                let masking = masking.map(|masking| StageNode::of(Stage::Mask(masking)));
                // Whoever does not unpack them sees them as MongoDB documents them.
                let buckets = buckets.filter(|_| !is_unpacked);
                let buckets = buckets.map(|series| StageNode::of(Stage::PublicBuckets(series)));
                let masking = masking.or(buckets);
                return Ok(Resolved {
                    exists: matches!(other, Entry::Collection { .. }),
                    stages: masking.into_iter().chain(layers).collect(),
                    namespace,
                });
            }
        };
        is_unpacked = collation.is_none();
        if layers.len() >= VIEW_DEPTH_MAX {
            return Err(Error::new(
                ErrorCode::ViewDepthLimitExceeded,
                format!("view depth too deep or view cycle detected; maximum depth is {VIEW_DEPTH_MAX}"),
            ));
        }
        if collation
            .as_ref()
            .is_some_and(|collation| collation.as_ref() != collator)
        {
            return Err(Error::new(
                ErrorCode::OptionNotSupportedOnView,
                format!("the collation of the operation is not that of the view {namespace}"),
            ));
        }
        let base = Namespace::new(namespace.db.clone(), on);
        let mut scope = Scope::new().with_collator(collation.flatten());
        let mut context = ParseContext::new(&mut scope, base.clone(), Place::View);
        context.keep_written = keep_written;
        layers.push(Pipeline::parse(pipeline, &mut context)?);
        namespace = base;
    }
}
