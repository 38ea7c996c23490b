//! Filters on owned values: the values a path reaches are collected first, then tested one by one.
//! Source: manual, "Query an Array", "Query on Embedded/Nested Documents", "Query Operators".

use nestor_model::order::canonical_class;
use nestor_model::{BsonType, Document, Value, ValueRef, compare};

/// Whether `doc` matches `filter`, which must be well-formed and use only what `condition` knows.
pub fn matches(filter: &Document, doc: &Document) -> bool {
    filter.iter().all(|(name, operand)| match name {
        "$and" => documents(operand).iter().all(|f| matches(f, doc)),
        "$or" => documents(operand).iter().any(|f| matches(f, doc)),
        "$nor" => !documents(operand).iter().any(|f| matches(f, doc)),
        path => {
            let parts: Vec<&str> = path.split('.').collect();
            let found = reached(&Value::Document(doc.clone()), &parts);
            field(&found, operand)
        }
    })
}

fn documents(value: ValueRef<'_>) -> Vec<Document> {
    let items = value.as_array().expect("an array of filters");
    items
        .iter()
        .map(|f| f.as_document().expect("a filter").to_document())
        .collect()
}

/// A value at the end of a path; a final array index was given for it if `picked`.
struct Reached {
    value: Value,
    picked: bool,
}

fn reached(value: &Value, parts: &[&str]) -> Vec<Reached> {
    let end = |value: Value| vec![Reached { value, picked: false }];
    let Some((head, rest)) = parts.split_first() else {
        return end(value.clone());
    };
    match value {
        Value::Document(doc) => {
            let inner = doc.get(head).map_or(Value::Missing, ValueRef::to_value);
            reached(&inner, rest)
        }
        Value::Array(items) => {
            let mut out = Vec::new();
            for (i, item) in items.iter().enumerate() {
                let item = item.to_value();
                if let Value::Document(_) = item {
                    out.extend(reached(&item, parts));
                }
                if i.to_string() == **head {
                    match item {
                        item if rest.is_empty() => out.push(Reached {
                            value: item,
                            picked: true,
                        }),
                        Value::Document(_) | Value::Array(_) => out.extend(reached(&item, rest)),
                        _ => {}
                    }
                }
            }
            out
        }
        _ => end(Value::Missing),
    }
}

fn field(found: &[Reached], operand: ValueRef<'_>) -> bool {
    match operand {
        ValueRef::Document(doc) if doc.iter().next().is_some_and(|(name, _)| name.starts_with('$')) => doc
            .iter()
            .all(|(operator, operand)| condition(found, operator, operand)),
        _ => condition(found, "$eq", operand),
    }
}

fn condition(found: &[Reached], operator: &str, operand: ValueRef<'_>) -> bool {
    match operator {
        "$ne" => !condition(found, "$eq", operand),
        "$nin" => !condition(found, "$in", operand),
        "$not" => !field(found, operand),
        "$all" => {
            let items = operand.as_array().expect("an array");
            !items.is_empty() && items.iter().all(|item| condition(found, "$eq", item))
        }
        "$exists" => found.iter().any(|r| !r.value.is_missing()) == operand.truthy(),
        "$size" | "$elemMatch" => found.iter().any(|r| on_one(&r.value, operator, operand)),
        _ => found.iter().any(|r| {
            let elements = match &r.value {
                Value::Array(items) if !r.picked => items.iter().map(ValueRef::to_value).collect(),
                _ => Vec::new(),
            };
            elements.iter().chain([&r.value]).any(|v| on_one(v, operator, operand))
        }),
    }
}

/// One value, arrays not looked into.
fn on_one(value: &Value, operator: &str, operand: ValueRef<'_>) -> bool {
    match operator {
        "$in" => operand
            .as_array()
            .expect("an array")
            .iter()
            .any(|item| compares(value, "$eq", item)),
        "$type" => match operand.as_str() {
            Some("number") => value.as_ref().is_number(),
            alias => Some(value.bson_type().alias()) == alias,
        },
        "$size" => match value {
            Value::Array(items) => compare(operand, &Value::Int32(items.len() as i32)).is_eq(),
            _ => false,
        },
        "$elemMatch" => match value {
            Value::Array(items) => items.iter().any(|item| element(&item.to_value(), operand)),
            _ => false,
        },
        _ => compares(value, operator, operand),
    }
}

fn element(item: &Value, operand: ValueRef<'_>) -> bool {
    let condition = operand.as_document().expect("a document").to_document();
    if condition.iter().next().is_some_and(|(name, _)| name.starts_with('$')) {
        return condition.iter().all(|(operator, operand)| {
            let found = [Reached {
                value: item.clone(),
                picked: true,
            }];
            self::condition(&found, operator, operand)
        });
    }
    match item {
        Value::Document(doc) => matches(&condition, doc),
        Value::Array(items) => {
            let mut by_index = Document::new();
            for (i, item) in items.iter().enumerate() {
                by_index.push(i.to_string(), item.to_value());
            }
            matches(&condition, &by_index)
        }
        _ => false,
    }
}

fn is_nan(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Double(v) => v.is_nan(),
        ValueRef::Decimal128(v) => v.is_nan(),
        _ => false,
    }
}

fn compares(value: &Value, operator: &str, operand: ValueRef<'_>) -> bool {
    let value = value.as_ref();
    let kind = operand.bson_type();
    if kind == BsonType::Null {
        let null = matches!(value, ValueRef::Null | ValueRef::Missing);
        return null && matches!(operator, "$eq" | "$lte" | "$gte");
    }
    let ends = matches!(kind, BsonType::MinKey | BsonType::MaxKey);
    if !ends && canonical_class(value.bson_type()) != canonical_class(kind) {
        return false;
    }
    let order = compare(value, operand);
    if is_nan(value) || is_nan(operand) {
        return order.is_eq() && matches!(operator, "$eq" | "$lte" | "$gte") || ends && order_fits(order, operator);
    }
    order_fits(order, operator)
}

fn order_fits(order: std::cmp::Ordering, operator: &str) -> bool {
    match operator {
        "$eq" => order.is_eq(),
        "$lt" => order.is_lt(),
        "$lte" => order.is_le(),
        "$gt" => order.is_gt(),
        "$gte" => order.is_ge(),
        other => panic!("the reference does not know {other}"),
    }
}
