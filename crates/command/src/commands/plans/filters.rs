//! `planCacheSetFilter`, `planCacheListFilters`, `planCacheClearFilters`.

use crate::context::Context;
use crate::facts::Facts;
use crate::needs::Needs;
use crate::plans::shown;
use crate::spec::CommandSpec;
use nestor_database::index_filters::IndexFilter;
use nestor_database::rights::Action;
use nestor_model::{Document, RawWriter, Result, Value, ValueRef, bail, doc};
use nestor_planner::find::AllowedIndex;

/// Sets a filter.
pub const SET: CommandSpec = Facts::collection(
    "planCacheSetFilter",
    "Restricts the indexes that queries of a shape may use.",
)
.needs(Needs::collection(Action::PlanCacheIndexFilter))
.runs(set);

/// Lists filters.
pub const LIST: CommandSpec = Facts::collection("planCacheListFilters", "The index filters of a collection.")
    .needs(Needs::collection(Action::PlanCacheIndexFilter))
    .runs(list);

/// Removes filters.
pub const CLEAR: CommandSpec = Facts::collection("planCacheClearFilters", "Removes index filters of a collection.")
    .needs(Needs::collection(Action::PlanCacheIndexFilter))
    .runs(clear);

fn set(context: &mut Context<'_>, _: &mut RawWriter) -> Result<()> {
    let ns = super::target(context)?;
    if ns.coll.starts_with("system.") {
        bail!(BadValue, "cannot set an index filter on a system collection");
    }
    if !super::exists(context, &ns) {
        bail!(BadValue, "no such collection: {ns}");
    }
    let Some(shape) = super::shape(context, &ns, false)? else {
        bail!(BadValue, "required field query missing");
    };
    let Some(ValueRef::Array(items)) = context.body.get("indexes") else {
        bail!(BadValue, "required field indexes must be an array");
    };
    let mut indexes = Vec::new();
    for item in items {
        indexes.push(match item {
            ValueRef::Document(pattern) if !pattern.is_empty() => AllowedIndex::KeyPattern(pattern.to_document()),
            ValueRef::String(name) if !name.is_empty() => AllowedIndex::Name(name.into()),
            _ => bail!(
                BadValue,
                "each item in indexes must be a key pattern that is not empty or the name of an index"
            ),
        });
    }
    if indexes.is_empty() {
        bail!(BadValue, "required field indexes must contain at least one index");
    }
    let plan_shape = shape.plan_shape;
    let filter = IndexFilter {
        query: shape.query,
        sort: shape.sort,
        projection: shape.projection,
        collation: shape.collation,
        indexes,
    };
    super::forget(context, &ns, Some(plan_shape));
    context.service.index_filters.set(&ns, plan_shape, filter);
    Ok(())
}

fn list(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let ns = super::target(context)?;
    let filters: Vec<Value> = context
        .service
        .index_filters
        .list(&ns)
        .into_iter()
        .map(|f| entry(f).into())
        .collect();
    reply.append("filters", &Value::from(filters));
    Ok(())
}

fn entry(filter: IndexFilter) -> Document {
    let mut out = doc! { "query": filter.query, "sort": filter.sort, "projection": filter.projection };
    if !filter.collation.is_empty() {
        out.push("collation", filter.collation);
    }
    out.push("indexes", filter.indexes.iter().map(shown).collect::<Vec<_>>());
    out
}

fn clear(context: &mut Context<'_>, _: &mut RawWriter) -> Result<()> {
    let ns = super::target(context)?;
    // MongoDB looks no further when there is no collection.
    if !super::exists(context, &ns) {
        return Ok(());
    }
    match super::shape(context, &ns, true)? {
        Some(shape) => {
            super::forget(context, &ns, Some(shape.plan_shape));
            context.service.index_filters.clear(&ns, shape.plan_shape);
        }
        None => {
            super::forget(context, &ns, None);
            context.service.index_filters.clear_all(&ns);
        }
    }
    Ok(())
}
