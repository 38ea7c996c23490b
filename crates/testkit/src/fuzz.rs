//! What fuzz targets do with their input, so that tests replay the corpus the same way.

use nestor_model::{DocRef, RawDoc};
use nestor_query::json_schema::Schema;
use nestor_query::projection::Policy;
use nestor_query::{Env, MatchExpr, OpContext, Projection, Scope};

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
        let _ = schema.failures(nestor_model::ValueRef::Document(doc));
    }
    parsed
}
