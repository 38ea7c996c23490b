//! What `$queryStats` is told of a query: what it has in common with others, and what it cost.
//!
//! Source: manual, "$queryStats (aggregation)".

use crate::context::Context;
use nestor_database::observe::figures::Figures;
use nestor_database::query_stats::{Cost, Key};
use nestor_database::shape::Shape;
use nestor_model::{DocRef, Document, Value, ValueRef};
use nestor_planner::shape::expression_shape;
use std::time::Duration;

/// Fields of commands that are shown with a query as they are, and those that are shown by their type.
const AS_IS: [&str; 5] = [
    "readConcern",
    "noCursorTimeout",
    "allowPartialResults",
    "apiStrict",
    "apiDeprecationErrors",
];
const BY_TYPE: [&str; 4] = ["hint", "batchSize", "comment", "maxTimeMS"];

/// Records the query that a command was, if it was one and is to be recorded. One whose cursor is open goes on there.
pub fn note(context: &Context<'_>, took: Duration) {
    let stats = &context.service.query_stats;
    let described = context.described.borrow();
    let Some(shape) = described.as_ref().map(|described| &described.shape) else {
        return;
    };
    if !shape.is_settable || context.after.park.is_some() || !stats.wants(took) {
        return;
    }
    let figures = context.figures.borrow();
    let recording = stats.begin(key(context, shape), cost(&figures, took));
    if let Some(id) = figures.cursor_id {
        context.service.cursors.record(id, recording);
    }
}

/// What a command, or one batch of a cursor, has cost.
pub fn cost(figures: &Figures, took: Duration) -> Cost {
    let totals = figures.totals.unwrap_or_default();
    let choice = totals.choice;
    Cost {
        micros: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        docs_returned: figures.returned.unwrap_or(0),
        keys_examined: totals.keys_examined,
        docs_examined: totals.docs_examined,
        has_sort_stage: totals.has_sort_stage,
        used_disk: totals.used_disk,
        from_multi_planner: choice.is_some_and(|choice| choice.by_trial),
        from_plan_cache: choice.is_some_and(|choice| !choice.by_trial && choice.cached_as.is_some()),
    }
}

fn key(context: &Context<'_>, shape: &Shape<'_>) -> Key {
    let query_shape = shape.document();
    let shape_hash = nestor_database::shape::hash(&query_shape);
    let mut document = Document::new();
    document.push("queryShape", shown_shape(query_shape));
    document.push("client", crate::lock(&context.slot.client).clone().map(Value::from));
    document.push("collectionType", collection_type(context, shape));
    for (name, value) in context.body.iter().skip(1) {
        match (name, value) {
            // What a client may leave out.
            (_, value) if value.is_nullish() => {}
            ("readConcern", ValueRef::Document(concern)) => {
                // A time is no setting.
                let settings = concern
                    .iter()
                    .filter(|(name, _)| *name == "level" || *name == "provenance");
                let settings: Document = settings.map(|(name, value)| (name.into(), value.to_value())).collect();
                if !settings.is_empty() {
                    document.push(name, settings);
                }
            }
            ("$readPreference", value) => document.push("readPreference", value),
            ("apiVersion", value) => document.push(name, value),
            ("cursor", ValueRef::Document(options)) if options.get("batchSize").is_some() => {
                document.push(name, expression_shape(value));
            }
            (name, value) if BY_TYPE.contains(&name) => document.push(name, expression_shape(value)),
            (name, value) if AS_IS.contains(&name) => document.push(name, value),
            _ => {}
        }
    }
    Key::new(shape_hash, document)
}

/// A query shape without the literals that hashes of shapes are made with.
fn shown_shape(shape: Document) -> Document {
    shape
        .iter()
        .map(|(name, value)| {
            let value = match (name, value) {
                ("projection", ValueRef::Document(fields)) => fields
                    .iter()
                    .map(|(name, value)| (name.into(), projected(value)))
                    .collect::<Document>()
                    .into(),
                _ => without_schemas(value),
            };
            (name.into(), value)
        })
        .collect()
}

fn projected(value: ValueRef<'_>) -> Value {
    match value {
        value if value.is_number() => value.to_value(),
        ValueRef::Bool(_) => value.to_value(),
        value => expression_shape(value),
    }
}

/// A schema has examples of values in many places.
fn without_schemas(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Document(doc) => document_without_schemas(doc).into(),
        ValueRef::Array(items) => items.iter().map(without_schemas).collect::<Vec<_>>().into(),
        other => other.to_value(),
    }
}

fn document_without_schemas(doc: DocRef<'_>) -> Document {
    doc.iter()
        .map(|(name, value)| match name {
            "$jsonSchema" => (name.into(), "?object".into()),
            _ => (name.into(), without_schemas(value)),
        })
        .collect()
}

fn collection_type(context: &Context<'_>, shape: &Shape<'_>) -> &'static str {
    let first = shape.words.pipeline.and_then(|pipeline| pipeline.iter().next());
    let first_stage = match first {
        Some((_, ValueRef::Document(stage))) => stage.iter().next().map(|(name, _)| name),
        _ => None,
    };
    if first_stage == Some("$changeStream") {
        return "changeStream";
    }
    if shape.ns.coll.is_empty() {
        return "virtual";
    }
    match context.current_view().view().catalog().get(&shape.ns) {
        None => "nonExistent",
        Some(collection) if collection.is_view() => "view",
        Some(_) => "collection",
    }
}
