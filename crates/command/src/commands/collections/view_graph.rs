//! Which namespaces a view may read: not itself through other views, not a chain that is too long, and no view of another collation.

use nestor_database::operation::views::bases;
use nestor_exec::pipeline::{VIEW_DEPTH_MAX, resolve};
use nestor_model::{CollectionOptions, ErrorCode, Namespace, Result, bail};
use nestor_query::collation::Collator;
use nestor_storage::{View, WriteSet};

/// Checks the options that view `ns` is to have against the other views. The commit will conflict if another changed one
/// that was looked at: each of two may be good, and both together a cycle.
///
/// Errors: 5 when it would be on itself, 165 when views would be nested too deep, 167 when it would be on one of another
/// collation.
pub(super) fn check(ws: &mut WriteSet, ns: &Namespace, options: &CollectionOptions) -> Result<()> {
    let collator = match &options.collation {
        Some(collation) => Collator::parse(collation.as_ref())?,
        None => None,
    };
    let bases = bases(ns, options.view.as_ref(), collator.as_ref())?;
    let mut seen = Vec::new();
    let mut path = vec![ns.clone()];
    for base in &bases {
        descend(ws, base, &mut path, &mut seen)?;
    }
    for base in &bases {
        match resolve(base, ws, collator.as_ref()) {
            Err(error) if error.code() == ErrorCode::OptionNotSupportedOnView => return Err(error),
            // Views that cannot be read can be made, as long as what they are on may change.
            _ => {}
        }
    }
    for (base, _) in &seen {
        ws.require_namespace(base);
    }
    Ok(())
}

/// Walks what `ns` is on; returns how many views are on one another there, 0 when it is none. `path` leads to it, from the
/// view that is checked; what is in `seen`, each with that number, leads to no cycle.
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
        seen.push((ns.clone(), 0));
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
    for base in bases(ns, collection.options.view.as_ref(), collator.as_ref())? {
        below = below.max(descend(view, &base, path, seen)?);
    }
    path.pop();
    seen.push((ns.clone(), below + 1));
    Ok(below + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::doc;
    use nestor_storage::{Engine, EngineOptions, StorageError};

    fn view_on(name: &str) -> CollectionOptions {
        CollectionOptions::parse(doc! { "viewOn": name }).expect("valid options")
    }

    #[test]
    fn of_two_views_made_at_once_that_form_a_cycle_one_conflicts() {
        let engine = Engine::ephemeral(EngineOptions::at_time(1_700_000_000));
        let made = |name: &str, on: &str, n: u8| {
            let (ns, options) = (Namespace::new("test", name), view_on(on));
            let mut ws = engine.begin();
            check(&mut ws, &ns, &options).expect("the other is not there yet");
            ws.create_collection(&ns, [n; 16], options).expect("the name is free");
            ws
        };
        let (a, b, c) = (made("a", "b", 1), made("b", "a", 2), made("c", "d", 3));
        engine.commit(a).expect("the first");
        assert!(matches!(engine.commit(b), Err(StorageError::WriteConflict)));
        engine.commit(c).expect("it is on neither");
        let cycle = check(&mut engine.begin(), &Namespace::new("test", "b"), &view_on("a"));
        assert_eq!(cycle.expect_err("seen when it is tried again").code().number(), 5);
    }
}
