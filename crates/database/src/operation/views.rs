//! The namespaces that a view reads.

use nestor_model::collection_options::ViewDefinition;
use nestor_model::value::ArrayRef;
use nestor_model::{Namespace, Result};
use nestor_query::Scope;
use nestor_query::collation::Collator;
use nestor_query::stage::{ParseContext, Pipeline, Place};

/// The collection that `view`, standing at `ns`, is on, and those that its pipeline names; none of a collection.
///
/// Errors: those of its pipeline.
pub fn bases(ns: &Namespace, view: Option<&ViewDefinition>, collator: Option<&Collator>) -> Result<Vec<Namespace>> {
    let mut bases = Vec::new();
    if let Some(view) = view {
        bases.push(Namespace::new(ns.db.clone(), view.on.clone()));
        pipeline_namespaces(ns, view.pipeline.as_ref(), collator, &mut bases)?;
    }
    Ok(bases)
}

fn pipeline_namespaces(
    ns: &Namespace,
    pipeline: ArrayRef<'_>,
    collator: Option<&Collator>,
    found: &mut Vec<Namespace>,
) -> Result<()> {
    let mut scope = Scope::new().with_collator(collator.cloned());
    let mut context = ParseContext::new(&mut scope, ns.clone(), Place::View);
    Pipeline::parse(pipeline, &mut context)?.involved_namespaces(found);
    Ok(())
}
