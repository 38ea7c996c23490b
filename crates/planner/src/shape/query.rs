//! The query shape: a command as it was written, literals replaced by the names of their types.

use nestor_model::{ArrayRef, BsonType, DocRef, Document, Value, ValueRef};

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

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::extjson;

    fn query(filter: &str) -> String {
        let doc = extjson::parse_document(filter).expect("valid JSON");
        extjson::to_string(&filter_query_shape(doc.as_ref()), extjson::Form::Relaxed)
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
