//! The plan shape of a query: what plans may be shared by, as a hash.
//!
//! It is made of the normalized filter without its literals and what `$expr` computes, and of sort, projection and collation. Clauses of `$and`, `$or`
//! and `$nor`, values of `$in` and fields of a projection count in any order. It is asked for by every query that could run by a
//! cached plan, so it is hashed straight from the parsed query: nothing is printed, but for the few parts whose text matters.

use crate::find::FindQuery;
use nestor_model::fnv::Fnv;
use nestor_model::{DocRef, ValueRef, extjson};
use nestor_query::matcher::{MatchExpr, Predicate};
use nestor_query::sort::SortBy;

/// The plan shape of `query`, whose projection was written so.
pub(super) fn shape(query: &FindQuery, projection: Option<DocRef<'_>>) -> u64 {
    let mut hash = Fnv::default();
    hash.number(filter_shape(&query.filter));
    for part in query.sort.iter().flat_map(|spec| spec.parts()) {
        match &part.by {
            SortBy::Path(path) => hash.bytes(path.as_str().as_bytes()),
            SortBy::Meta(name) => hash.bytes(name.as_bytes()),
        }
        hash.bytes(if part.ascending { b"\x001" } else { b"\x00-" });
    }
    hash.bytes(b"|");
    if let Some(collator) = &query.collation {
        printed((&collator.collation().to_document()).into(), &mut hash);
    }
    hash.bytes(b"|");
    if let Some(projection) = projection.filter(|doc| !doc.is_empty()) {
        let fields = projection.iter().map(|(name, value)| {
            let mut field = Fnv::default();
            field.bytes(name.as_bytes());
            match value {
                ValueRef::Int32(_) | ValueRef::Int64(_) | ValueRef::Double(_) | ValueRef::Bool(_) => {
                    field.bytes(if value.truthy() { b"\x001" } else { b"\x000" });
                }
                other => printed(other, &mut field),
            }
            field.mixed()
        });
        hash.number(fields.fold(0, u64::wrapping_add));
    }
    hash.mixed()
}

/// The shape of a filter.
fn filter_shape(filter: &MatchExpr) -> u64 {
    let mut hash = Fnv::default();
    let mut all = |name: &[u8], clauses: &[MatchExpr]| {
        hash.bytes(name);
        hash.number(clauses.iter().map(filter_shape).fold(0, u64::wrapping_add));
    };
    match filter {
        MatchExpr::AlwaysTrue => hash.bytes(b"$alwaysTrue"),
        MatchExpr::AlwaysFalse => hash.bytes(b"$alwaysFalse"),
        MatchExpr::And(clauses) => all(b"$and", clauses),
        MatchExpr::Or(clauses) => all(b"$or", clauses),
        MatchExpr::Nor(clauses) => all(b"$nor", clauses),
        MatchExpr::Not(inner) => all(b"$not", std::slice::from_ref(inner)),
        MatchExpr::Leaf(leaf) => {
            hash.bytes(leaf.path.as_str().as_bytes());
            hash.bytes(b"\x00");
            predicate_shape(&leaf.predicate, &mut hash);
        }
        // Whatever it computes: no plan depends on it.
        MatchExpr::Expr(_) => hash.bytes(b"$expr"),
        MatchExpr::JsonSchema(_) => printed((&filter.serialize()).into(), &mut hash),
        MatchExpr::SampleRate(_) => hash.bytes(b"$sampleRate"),
        MatchExpr::Text(_) => hash.bytes(b"$text"),
    }
    hash.mixed()
}

fn predicate_shape(predicate: &Predicate, hash: &mut Fnv) {
    match predicate {
        Predicate::Compare { op, .. } => hash.bytes(op.name().as_bytes()),
        Predicate::In(set) => {
            hash.bytes(b"$in");
            // Regular expressions are ranges, and all else is points.
            hash.bytes(&[u8::from(!set.regexes().is_empty())]);
        }
        Predicate::Regex(_) => hash.bytes(b"$regex"),
        Predicate::Exists => hash.bytes(b"$exists"),
        Predicate::Type(_) => hash.bytes(b"$type"),
        Predicate::Size(_) => hash.bytes(b"$size"),
        Predicate::Mod(_) => hash.bytes(b"$mod"),
        Predicate::Bits(test) => hash.bytes(test.op().name().as_bytes()),
        Predicate::Geo(test) => hash.bytes(test.op().name().as_bytes()),
        Predicate::Near(near) => hash.bytes(near.name().as_bytes()),
        Predicate::ElemMatchObject(inner) => {
            hash.bytes(b"$elemMatch{");
            hash.number(filter_shape(inner));
        }
        Predicate::ElemMatchValue(inner) => {
            hash.bytes(b"$elemMatch");
            hash.number(filter_shape(inner));
        }
    }
}

fn printed(value: ValueRef<'_>, hash: &mut Fnv) {
    hash.bytes(extjson::to_string(value, extjson::Form::Relaxed).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::doc;
    use nestor_query::Scope;
    use nestor_query::sort::SortSpec;

    fn query(filter: &str) -> FindQuery {
        let doc = extjson::parse_document(filter).expect("valid JSON");
        let parsed = MatchExpr::parse(doc.as_ref(), &mut Scope::new()).expect("a filter");
        FindQuery::all(parsed.normalize().into())
    }

    fn of(filter: &str) -> u64 {
        shape(&query(filter), None)
    }

    #[test]
    fn literals_and_order_are_not_part_of_plan_shapes() {
        for (a, b) in [
            (r#"{"a":1}"#, r#"{"a":{"$eq":"x"}}"#),
            (r#"{"a":1,"b":2}"#, r#"{"$and":[{"b":3},{"a":4}]}"#),
            (r#"{"a":{"$in":[1,2]}}"#, r#"{"a":{"$in":[4,3,"x"]}}"#),
            (
                r#"{"$or":[{"a":1,"c":2},{"b":1}]}"#,
                r#"{"$or":[{"b":1},{"c":1,"a":1}]}"#,
            ),
            (
                r#"{"a":{"$elemMatch":{"b":1,"c":2}}}"#,
                r#"{"a":{"$elemMatch":{"c":"x","b":null}}}"#,
            ),
            (r#"{"$expr":{"$gt":["$a","$b"]}}"#, r#"{"$expr":{"$lt":["$a","$c"]}}"#),
        ] {
            assert_eq!(of(a), of(b), "{a} and {b}");
        }
        for (a, b) in [
            (r#"{"a":1}"#, r#"{"b":1}"#),
            (r#"{"a":1}"#, r#"{"a":{"$gt":1}}"#),
            (r#"{"a":1}"#, r#"{"a":{"$ne":1}}"#),
            (r#"{"a":1,"b":{"$gt":1}}"#, r#"{"b":1,"a":{"$gt":1}}"#),
            (r#"{"a":{"$exists":true}}"#, r#"{"a":{"$exists":false}}"#),
            (r#"{"$or":[{"a":1},{"b":1}]}"#, r#"{"$nor":[{"a":1},{"b":1}]}"#),
            (
                r#"{"a":{"$in":[1,2]}}"#,
                r#"{"a":{"$in":[1,{"$regularExpression":{"pattern":"x","options":""}}]}}"#,
            ),
            (r#"{"$expr":{"$gt":["$a","$b"]}}"#, r#"{"a":{"$gt":"$b"}}"#),
            (
                r#"{"$expr":{"$gt":["$a","$b"]}}"#,
                r#"{"$nor":[{"$expr":{"$gt":["$a","$b"]}}]}"#,
            ),
        ] {
            assert_ne!(of(a), of(b), "{a} and {b}");
        }
    }

    #[test]
    fn sorts_and_projections_are_part_of_plan_shapes() {
        let sorted = |spec: nestor_model::Document| {
            let mut query = query(r#"{"a":1}"#);
            query.sort = Some(SortSpec::parse(spec.as_ref()).expect("a sort").into());
            shape(&query, None)
        };
        assert_ne!(sorted(doc! { "a": 1 }), sorted(doc! { "a": -1 }));
        assert_ne!(sorted(doc! { "a": 1, "b": 1 }), sorted(doc! { "b": 1, "a": 1 }));
        assert_ne!(sorted(doc! { "a": 1 }), of(r#"{"a":1}"#));
        let projected = |spec: nestor_model::Document| shape(&query(r#"{"a":1}"#), Some(spec.as_ref()));
        assert_eq!(
            projected(doc! { "a": 1, "b": 1 }),
            projected(doc! { "b": true, "a": 1i64 })
        );
        assert_eq!(projected(doc! {}), of(r#"{"a":1}"#));
        assert_ne!(projected(doc! { "a": 1 }), projected(doc! { "a": 0 }));
        assert_ne!(projected(doc! { "a": "$b" }), projected(doc! { "a": "$c" }));
    }
}
