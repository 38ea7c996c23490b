//! What a view may be on: not on itself through others, not on too many, and on no view of another collation.

use nestor_exec::pipeline::{VIEW_DEPTH_MAX, resolve};
use nestor_model::value::ArrayRef;
use nestor_model::{Document, ErrorCode, Namespace, Result, ValueRef, bail};
use nestor_query::Scope;
use nestor_query::collation::Collator;
use nestor_query::stage::{ParseContext, Pipeline, Place};
use nestor_storage::View;

/// Checks the options that view `ns` is to have against the other views.
///
/// Errors: 5 when it would be on itself, 165 when views would be nested too deep, 167 when it would be on one of another
/// collation.
pub(super) fn check(view: &dyn View, ns: &Namespace, options: &Document) -> Result<()> {
    let collator = match options.get("collation") {
        Some(ValueRef::Document(collation)) => Collator::parse(collation)?,
        _ => None,
    };
    let bases = bases(ns, options, collator.as_ref())?;
    let mut seen = Vec::new();
    let mut path = vec![ns.clone()];
    for base in &bases {
        descend(view, base, &mut path, &mut seen)?;
    }
    for base in &bases {
        match resolve(base, view, collator.as_ref()) {
            Err(error) if error.code() == ErrorCode::OptionNotSupportedOnView => return Err(error),
            // Views that cannot be read can be made, as long as what they are on may change.
            _ => {}
        }
    }
    Ok(())
}

/// Walks what `ns` is on; returns how many views are on one another there, 0 when it is none. `path` leads to it, from the
/// view that is checked; what is in `seen`, each with that number, leads nowhere.
fn descend(
    view: &dyn View,
    ns: &Namespace,
    path: &mut Vec<Namespace>,
    seen: &mut Vec<(Namespace, usize)>,
) -> Result<usize> {
    if path.contains(ns) {
        let names: Vec<String> = path.iter().chain([ns]).map(Namespace::to_string).collect();
        bail!(GraphContainsCycle, "View cycle detected: {}", names.join(" => "));
    }
    let Some(collection) = view.catalog().get(ns).filter(|c| c.is_view()) else {
        return Ok(0);
    };
    let known = seen.iter().find(|(view, _)| view == ns).map(|(_, height)| *height);
    if path.len() + known.unwrap_or(1) > VIEW_DEPTH_MAX {
        bail!(
            ViewDepthLimitExceeded,
            "View depth limit exceeded; maximum depth is {VIEW_DEPTH_MAX}"
        );
    }
    if let Some(height) = known {
        return Ok(height);
    }
    path.push(ns.clone());
    let collator = nestor_exec::catalog::id_collation(collection)?;
    let mut below = 0;
    for base in bases(ns, &collection.options, collator.as_ref())? {
        below = below.max(descend(view, &base, path, seen)?);
    }
    path.pop();
    seen.push((ns.clone(), below + 1));
    Ok(below + 1)
}

/// What a view reads: the collection it is on, and those that its pipeline names.
fn bases(ns: &Namespace, options: &Document, collator: Option<&Collator>) -> Result<Vec<Namespace>> {
    let on = options.get("viewOn").and_then(ValueRef::as_str).unwrap_or_default();
    let mut bases = vec![Namespace::new(ns.db.clone(), on)];
    if let Some(ValueRef::Array(pipeline)) = options.get("pipeline") {
        pipeline_namespaces(ns, pipeline, collator, &mut bases)?;
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
