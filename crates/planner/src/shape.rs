//! Shapes: what queries have in common that differ only in their literals.
//!
//! Two kinds. The *plan shape* ([`plan_shape`]) is what plans may be shared by: the normalized filter with its
//! literals left out, sort, projection and collation. The *query shape* ([`filter_query_shape`]) describes a command as it was
//! written, literals replaced by the names of their types. Their hashes are what explain prints as
//! `planCacheShapeHash` and `queryShapeHash`.

use crate::find::FindQuery;
use crate::rank::Fnv;
use nestor_model::{ArrayRef, BsonType, DocRef, Document, Value, ValueRef, extjson};
use nestor_query::matcher::MatchExpr;
use std::fmt::Write as _;

/// The text of a plan shape. Clauses of `$and`, `$or` and `$nor` come in one order, whatever order they were written in.
pub fn plan_shape(
    filter: &MatchExpr,
    sort: Option<DocRef<'_>>,
    projection: Option<DocRef<'_>>,
    collation: Option<DocRef<'_>>,
) -> String {
    let mut out = String::new();
    filter_shape(filter.serialize().as_ref(), &mut out);
    for part in [sort, collation] {
        out.push('|');
        if let Some(doc) = part {
            extjson::print(doc.into(), extjson::Form::Relaxed, &mut out);
        }
    }
    out.push('|');
    if let Some(doc) = projection {
        // The fields of a projection come in any order.
        let mut fields: Vec<String> = doc
            .iter()
            .map(|(name, value)| format!("{name}:{}", extjson::to_string(value, extjson::Form::Relaxed)))
            .collect();
        fields.sort();
        out.push_str(&fields.join(","));
    }
    out
}

fn filter_shape(doc: DocRef<'_>, out: &mut String) {
    let mut clauses: Vec<String> = doc
        .iter()
        .map(|(name, value)| {
            let mut clause = String::new();
            clause_shape(name, value, &mut clause);
            clause
        })
        .collect();
    clauses.sort();
    out.push('{');
    out.push_str(&clauses.join(","));
    out.push('}');
}

fn clause_shape(name: &str, value: ValueRef<'_>, out: &mut String) {
    out.push_str(name);
    match (name, value) {
        ("$and" | "$or" | "$nor", ValueRef::Array(items)) => {
            let mut clauses: Vec<String> = items
                .iter()
                .filter_map(ValueRef::as_document)
                .map(|doc| {
                    let mut clause = String::new();
                    filter_shape(doc, &mut clause);
                    clause
                })
                .collect();
            clauses.sort();
            let _ = write!(out, "[{}]", clauses.join(","));
        }
        ("$jsonSchema", value) => extjson::print(value, extjson::Form::Relaxed, out),
        ("$exists", ValueRef::Bool(wanted)) => {
            let _ = write!(out, "{wanted}");
        }
        ("$in" | "$nin" | "$all", ValueRef::Array(items)) => {
            let _ = write!(out, "#{}", items.len());
        }
        ("$not" | "$elemMatch", ValueRef::Document(inner)) => filter_shape(inner, out),
        // A literal document is a value; a document of operators is part of the shape.
        (name, ValueRef::Document(inner)) if !name.starts_with('$') && is_operators(inner) => filter_shape(inner, out),
        _ => out.push('?'),
    }
}

fn is_operators(doc: DocRef<'_>) -> bool {
    doc.iter().next().is_some_and(|(name, _)| name.starts_with('$'))
}

/// A filter as a query shape: implicit equalities and conjunctions written out, literals by type.
pub fn filter_query_shape(filter: DocRef<'_>) -> Document {
    let mut clauses = Vec::new();
    conjuncts(filter, &mut clauses);
    match clauses.len() {
        1 => match clauses.swap_remove(0) {
            Value::Document(only) => only,
            _ => Document::new(),
        },
        _ => {
            let mut out = Document::new();
            if !clauses.is_empty() {
                out.push("$and", clauses);
            }
            out
        }
    }
}

fn conjuncts(filter: DocRef<'_>, out: &mut Vec<Value>) {
    for (name, value) in filter {
        match (name, value) {
            ("$comment", _) => {}
            ("$and", ValueRef::Array(items)) => {
                items
                    .iter()
                    .filter_map(ValueRef::as_document)
                    .for_each(|doc| conjuncts(doc, out));
            }
            ("$or" | "$nor", ValueRef::Array(items)) => {
                let each: Vec<Value> = items
                    .iter()
                    .filter_map(ValueRef::as_document)
                    .map(|doc| filter_query_shape(doc).into())
                    .collect();
                out.push(one(name, each.into()));
            }
            ("$jsonSchema", _) => out.push(one(name, value.to_value())),
            ("$expr", _) => out.push(one(name, expression_shape(value))),
            (_, ValueRef::Document(inner)) if is_operators(inner) => {
                for (operator, operand) in inner {
                    out.push(one(name, one(operator, operand_shape(operator, operand))));
                }
            }
            _ => out.push(one(name, one("$eq", literal(value).into()))),
        }
    }
}

fn operand_shape(operator: &str, operand: ValueRef<'_>) -> Value {
    match (operator, operand) {
        ("$exists", _) => Value::Bool(operand.truthy()),
        ("$type", ValueRef::Array(_)) => operand.to_value(),
        ("$type", _) => Value::from(vec![operand.to_value()]),
        // Each of them is a condition of its own.
        ("$all", ValueRef::Array(items)) => items
            .iter()
            .map(|item| literal(item).into())
            .collect::<Vec<Value>>()
            .into(),
        ("$not" | "$elemMatch", ValueRef::Document(inner)) => {
            if is_operators(inner) && operator == "$elemMatch" || operator == "$not" {
                inner
                    .iter()
                    .map(|(name, value)| (name.into(), operand_shape(name, value)))
                    .collect::<Document>()
                    .into()
            } else {
                filter_query_shape(inner).into()
            }
        }
        _ => literal(operand).into(),
    }
}

fn one(name: &str, value: Value) -> Value {
    let mut doc = Document::new();
    doc.push(name, value);
    Value::Document(doc)
}

/// The name of a literal's type: `?number`, `?array<?string>`.
fn literal(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Array(items) => {
            let mut kinds: Vec<String> = items.iter().map(literal).collect();
            kinds.sort();
            kinds.dedup();
            match kinds.as_slice() {
                [] => "[]".into(),
                [only] => format!("?array<{only}>"),
                _ => "?array<>".into(),
            }
        }
        value => match value.bson_type() {
            kind if kind.is_number() => "?number".into(),
            BsonType::Object => "?object".into(),
            kind => format!("?{}", kind.alias()),
        },
    }
}

/// Any other part of a command as a query shape: operators, names and field paths stay, literals go by type.
pub fn expression_shape(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Document(doc) => doc
            .iter()
            .map(|(name, value)| (name.into(), expression_shape(value)))
            .collect::<Document>()
            .into(),
        ValueRef::Array(items) => items.iter().map(expression_shape).collect::<Vec<_>>().into(),
        ValueRef::String(text) if text.starts_with('$') => value.to_value(),
        _ => literal(value).into(),
    }
}

/// A pipeline as a query shape.
pub fn pipeline_query_shape(pipeline: ArrayRef<'_>) -> Value {
    let stage = |stage: ValueRef<'_>| match stage {
        ValueRef::Document(doc) => doc
            .iter()
            .map(|(name, value)| match (name, value) {
                ("$match", ValueRef::Document(filter)) => (name.into(), filter_query_shape(filter).into()),
                _ => (name.into(), expression_shape(value)),
            })
            .collect::<Document>()
            .into(),
        other => expression_shape(other),
    };
    pipeline.iter().map(stage).collect::<Vec<Value>>().into()
}

/// The hash of a plan shape.
pub fn plan_shape_hash(shape: &str) -> u64 {
    let mut hash = Fnv::default();
    hash.bytes(shape.as_bytes());
    hash.0
}

/// A hash of a plan shape or of a plan cache key as explain prints it: eight hexadecimal digits.
pub fn hash_text(hash: u64) -> String {
    format!("{:08X}", (hash >> 32) as u32 ^ hash as u32)
}

/// The parts of a query as they were written, where they were.
#[derive(Clone, Copy, Debug, Default)]
pub struct Written<'a> {
    /// `filter`.
    pub filter: Option<DocRef<'a>>,
    /// `sort`.
    pub sort: Option<DocRef<'a>>,
    /// `projection`.
    pub projection: Option<DocRef<'a>>,
    /// `collation`.
    pub collation: Option<DocRef<'a>>,
}

impl Written<'_> {
    /// The plan shape of `query`, which was parsed from them: filter, sort and collation count as they were understood.
    pub fn shape(&self, query: &FindQuery) -> String {
        let sort = query.sort.as_ref().map(|spec| spec.serialize());
        let collation = query.collation.as_ref().map(|own| own.collation().to_document());
        plan_shape(
            &query.filter,
            sort.as_ref().map(Document::as_ref),
            self.projection.filter(|doc| !doc.is_empty()),
            collation.as_ref().map(Document::as_ref),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_query::Scope;

    fn shape(filter: &str) -> String {
        let doc = extjson::parse_document(filter).expect("valid JSON");
        let parsed = MatchExpr::parse(doc.as_ref(), &mut Scope::new())
            .expect("a filter")
            .normalize();
        plan_shape(&parsed, None, None, None)
    }

    fn query(filter: &str) -> String {
        let doc = extjson::parse_document(filter).expect("valid JSON");
        extjson::to_string(&filter_query_shape(doc.as_ref()), extjson::Form::Relaxed)
    }

    #[test]
    fn literals_and_order_are_not_part_of_plan_shapes() {
        for (a, b) in [
            (r#"{"a":1}"#, r#"{"a":{"$eq":"x"}}"#),
            (r#"{"a":1,"b":2}"#, r#"{"$and":[{"b":3},{"a":4}]}"#),
            (r#"{"a":{"$in":[1,2]}}"#, r#"{"a":{"$in":[4,3]}}"#),
        ] {
            assert_eq!(shape(a), shape(b), "{a} and {b}");
        }
        for (a, b) in [
            (r#"{"a":1}"#, r#"{"b":1}"#),
            (r#"{"a":1}"#, r#"{"a":{"$gt":1}}"#),
            (r#"{"a":{"$in":[1,2]}}"#, r#"{"a":{"$in":[1,2,3]}}"#),
            (r#"{"a":{"$exists":true}}"#, r#"{"a":{"$exists":false}}"#),
            (r#"{"$or":[{"a":1},{"b":1}]}"#, r#"{"$nor":[{"a":1},{"b":1}]}"#),
        ] {
            assert_ne!(shape(a), shape(b), "{a} and {b}");
        }
    }

    #[test]
    fn query_shapes_keep_what_was_written() {
        assert_eq!(
            query(r#"{"a":1,"b":{"$gt":"x"}}"#),
            r#"{"$and":[{"a":{"$eq":"?number"}},{"b":{"$gt":"?string"}}]}"#
        );
        assert_eq!(query(r#"{"$and":[{"a":1},{"b":2}]}"#), query(r#"{"a":1,"b":2}"#));
        assert_ne!(query(r#"{"b":2,"a":1}"#), query(r#"{"a":1,"b":2}"#));
        assert_ne!(query(r#"{"a":{"$all":[1]}}"#), query(r#"{"a":{"$all":[1,2]}}"#));
        assert_eq!(query(r#"{"a":{"$in":[1,2,3]}}"#), query(r#"{"a":{"$in":[1]}}"#));
        assert_eq!(query(r#"{"a":{"$type":"int"}}"#), query(r#"{"a":{"$type":["int"]}}"#));
    }
}
