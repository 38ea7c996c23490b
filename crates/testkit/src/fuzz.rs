//! What fuzz targets do with their input, so that tests replay the corpus the same way.

use crate::golden::Database;
use nestor_model::interrupt::Interrupt;
use nestor_model::{Array, DocRef, Document, RawDoc, Value, ValueRef, doc, statement};
use nestor_query::json_schema::Schema;
use nestor_query::projection::Policy;
use nestor_query::{Env, Expr, MatchExpr, OpContext, Projection, Scope};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Reads a document as a filter, as a projection and as a schema, and applies what parses to the document
/// itself. Returns how many of the three it was.
pub fn mql(doc: RawDoc<'_>) -> usize {
    let op = OpContext::default();
    let doc = DocRef::Raw(doc);
    let mut parsed = 0;
    if let Ok(filter) = MatchExpr::parse(doc, &mut Scope::new()) {
        parsed += 1;
        let _ = filter.matches_with_position(doc, &op);
        let normalized = filter.normalize();
        normalized.serialize();
        let _ = normalized.matches(doc, &op);
    }
    if let Ok(projection) = Projection::parse(doc, &mut Scope::new(), Policy::Find) {
        parsed += 1;
        let _ = projection.apply(&mut Env::new(doc, &op), None);
    }
    if let Ok(schema) = Schema::parse(doc) {
        parsed += 1;
        let _ = schema.failures(ValueRef::Document(doc));
    }
    parsed
}

/// How long one input may take.
const EACH: Duration = Duration::from_millis(50);

/// Reads `e` of a document as an expression and evaluates it on `d`, or on the document itself. Says whether it parses.
/// Evaluation looks at its interrupt and at the limit of memory, so that no expression takes long or grows without end.
pub fn expression(doc: RawDoc<'_>) -> bool {
    let doc = DocRef::Raw(doc);
    let Some(written) = doc.get("e") else { return false };
    let on = doc.get("d").and_then(ValueRef::as_document).unwrap_or(doc);
    let interrupt = Interrupt::new(Arc::default(), Some(Instant::now() + EACH));
    statement::under(&interrupt, None, || {
        let Ok(expression) = Expr::parse(written, &mut Scope::new()) else {
            return false;
        };
        let op = OpContext::default();
        let _ = expression.eval(&mut Env::new(on, &op));
        true
    })
}

/// Runs `p` of a document as a pipeline over the documents `d`, and as an update. Says whether the pipeline ran to its end.
pub fn pipeline(doc: RawDoc<'_>) -> bool {
    thread_local! {
        static DATABASE: RefCell<Database> = RefCell::new(Database::new());
    }
    let doc = DocRef::Raw(doc);
    let (Some(ValueRef::Array(stages)), Some(ValueRef::Array(docs))) = (doc.get("p"), doc.get("d")) else {
        return false;
    };
    let (stages, docs) = (stages.to_array(), docs.to_array());
    DATABASE.with_borrow_mut(|database| {
        database.command(&doc! { "drop": "c" });
        database.command(&doc! { "insert": "c", "documents": docs, "ordered": false });
        let millis = EACH.as_millis() as i32;
        let reply = database.command(&doc! {
        "aggregate": "c", "pipeline": stages.clone(), "cursor": Document::new(), "maxTimeMS": millis });
        let update = Value::from(doc! { "q": Document::new(), "u": stages, "multi": true });
        let updates: Array = [update].into_iter().collect();
        database.command(&doc! { "update": "c", "updates": updates, "maxTimeMS": millis });
        reply.get("ok").is_some_and(ValueRef::truthy)
    })
}
