//! Plain projections on owned values, decided field by field from the list of dotted paths.
//! Source: manual, "Project Fields to Return from Query".

use nestor_model::{Array, Document, Value, ValueRef};

/// Applies an inclusion (`include`) or exclusion of `paths` to `doc`. `_id` is a path like any other.
pub fn project(doc: &Document, paths: &[&str], include: bool) -> Document {
    fields(doc, "", paths, include)
}

fn fields(doc: &Document, prefix: &str, paths: &[&str], include: bool) -> Document {
    let mut out = Document::new();
    for (name, value) in doc.iter() {
        let path = if prefix.is_empty() {
            name.to_owned()
        } else {
            format!("{prefix}.{name}")
        };
        out.push(name, at(value.to_value(), &path, paths, include));
    }
    out
}

/// What stays of the value at `path`; missing for nothing.
fn at(value: Value, path: &str, paths: &[&str], include: bool) -> Value {
    if paths.contains(&path) {
        return if include { value } else { Value::Missing };
    }
    let below = format!("{path}.");
    if !paths.iter().any(|p| p.starts_with(&below)) {
        return if include { Value::Missing } else { value };
    }
    inside(value, path, paths, include)
}

fn inside(value: Value, path: &str, paths: &[&str], include: bool) -> Value {
    match value {
        Value::Document(doc) => fields(&doc, path, paths, include).into(),
        Value::Array(items) => {
            let items = items
                .iter()
                .map(|item| inside(ValueRef::to_value(item), path, paths, include));
            Value::Array(items.filter(|v| !v.is_missing()).collect::<Array>())
        }
        _ if include => Value::Missing,
        other => other,
    }
}
