//! Commands about plans.

mod clear;
mod filters;
mod representative;
mod settings;
pub mod stored;

use crate::collection_at::collection_text;
use crate::context::Context;
use crate::spec::CommandSpec;
use nestor_database::operation::query;
use nestor_database::read;
use nestor_database::shape::Words;
use nestor_model::{DocRef, Document, ErrorCode, Namespace, RawDoc, Result, ValueRef, bail, raw};
use nestor_planner::Hint;
use nestor_query::Scope;
use nestor_storage::View;

pub(super) const SPECS: &[&CommandSpec] = &[
    &clear::SPEC,
    &filters::SET,
    &filters::LIST,
    &filters::CLEAR,
    &settings::SET,
    &settings::REMOVE,
];

/// The collection that the command's first field names. Errors: 73, 166 for a view.
fn target(context: &Context<'_>) -> Result<Namespace> {
    let Some(name) = context.body.iter().next().and_then(|(_, first)| collection_text(first)) else {
        bail!(InvalidNamespace, "collection name has invalid type");
    };
    let ns = nestor_database::names::collection(context.db(), name)?;
    let snapshot = context.service.engine.snapshot();
    if snapshot.catalog().get(&ns).is_some_and(|found| found.is_view()) {
        return Err(nestor_model::Error::new(
            ErrorCode::CommandNotSupportedOnView,
            format!("namespace {ns} is a view, not a collection"),
        ));
    }
    Ok(ns)
}

fn exists(context: &Context<'_>, ns: &Namespace) -> bool {
    context.service.engine.snapshot().catalog().get(ns).is_some()
}

/// Forgets the cached plans of a collection, all or those of one shape.
fn forget(context: &Context<'_>, ns: &Namespace, shape: Option<u64>) {
    let snapshot = context.service.engine.snapshot();
    let Some(collection) = snapshot.catalog().get(ns) else {
        return;
    };
    let cache = &context.service.plan_cache;
    match shape {
        Some(shape) => cache.clear_shape(collection.id, shape),
        None => cache.clear(collection.id),
    }
}

/// A query as plan commands take it.
struct Shape {
    query: Document,
    sort: Document,
    projection: Document,
    collation: Document,
    /// Its plan shape.
    plan_shape: u64,
}

/// The optional document of that name. Error: 2 for other types.
fn document<'a>(body: RawDoc<'a>, name: &str, null_is_absent: bool) -> Result<Option<RawDoc<'a>>> {
    match body.get(name) {
        None => Ok(None),
        Some(ValueRef::Null | ValueRef::Undefined) if null_is_absent => Ok(None),
        Some(ValueRef::Document(DocRef::Raw(doc))) => Ok(Some(doc)),
        // An empty array is as good as an empty document here.
        Some(ValueRef::Array(items)) if items.is_empty() && name != "collation" => Ok(Some(raw::EMPTY)),
        Some(other) => bail!(
            BadValue,
            "optional field '{name}' must be an object, found {}",
            other.bson_type().alias()
        ),
    }
}

/// Reads `query`, `sort`, `projection` and `collation`; `None` without a query.
///
/// Errors: 2 for the wrong types and for a sort or projection without a query, 40414 for a collation without locale.
fn shape(context: &Context<'_>, ns: &Namespace, null_is_absent: bool) -> Result<Option<Shape>> {
    let body = context.body;
    let sort = document(body, "sort", null_is_absent)?;
    let projection = document(body, "projection", null_is_absent)?;
    let collation = document(body, "collation", null_is_absent)?;
    let Some(filter) = document(body, "query", null_is_absent)? else {
        if sort.is_some() || projection.is_some() || collation.is_some() {
            bail!(BadValue, "sort or projection or collation provided without query");
        }
        return Ok(None);
    };
    if let Some(collation) = collation {
        if collation.is_empty() {
            bail!(BadValue, "optional field 'collation' cannot be empty");
        }
        if collation.get("locale").is_none() {
            bail!(40414, "BSON field 'collation.locale' is missing but a required field");
        }
    }
    let snapshot = context.service.engine.snapshot();
    let collator = read::collator(collation, snapshot.catalog().get(ns).map(|found| &**found))?;
    let words = Words {
        filter: Some(filter),
        sort,
        projection,
        collation,
        ..Words::default()
    };
    let mut scope = Scope::new().with_collator(collator);
    let mut find = read::filtered(&words, &Hint::default(), &mut scope)?;
    query::ordered(&words, &mut find, &mut scope)?;
    let plan_shape = words.written().shape(&find);
    let owned = |doc: Option<RawDoc<'_>>| doc.map_or_else(Document::new, |doc| doc.as_doc().to_document());
    Ok(Some(Shape {
        query: filter.as_doc().to_document(),
        sort: owned(sort),
        projection: owned(projection),
        collation: owned(collation),
        plan_shape,
    }))
}
