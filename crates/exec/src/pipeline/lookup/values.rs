//! The values that equality of `$lookup` compares.

use nestor_model::statement::{effort, note};
use nestor_model::{DocRef, Document, Path, PathPart, Result, Value, ValueRef, doc};
use nestor_query::Scope;
use nestor_query::collation::Collator;
use nestor_query::matcher::MatchExpr;

/// The values of `localField`: through arrays on the way, an array at the end by its elements; null when
/// there are none at all.
///
/// They are put into `out`, which is empty: its memory serves one outer document after the other.
pub(super) fn local_values(outer: DocRef<'_>, local: &Path, mut out: Vec<Value>) -> Vec<Value> {
    debug_assert!(out.is_empty(), "the values of another document are no longer there");
    let mut seen_array = false;
    gather(ValueRef::Document(outer), local.parts(), &mut seen_array, &mut out);
    if out.is_empty() && !seen_array {
        out.push(Value::Null);
    }
    out
}

fn gather(value: ValueRef<'_>, parts: &[PathPart], seen_array: &mut bool, out: &mut Vec<Value>) {
    let Some((part, rest)) = parts.split_first() else {
        match value {
            ValueRef::Array(items) => {
                *seen_array = true;
                out.extend(items.iter().map(|item| {
                    effort::made();
                    note(1);
                    item.to_value()
                }));
            }
            other => out.push(other.to_value()),
        }
        return;
    };
    match value {
        ValueRef::Document(doc) => match doc.get(&part.name) {
            Some(inner) => gather(inner, rest, seen_array, out),
            None => out.push(Value::Null),
        },
        ValueRef::Array(items) => {
            *seen_array = true;
            if let Some(item) = part.index.and_then(|index| items.get(index as usize)) {
                gather(item, rest, seen_array, out);
                return;
            }
            let before = out.len();
            for item in items {
                effort::made();
                note(1);
                if let ValueRef::Document(_) = item {
                    gather(item, parts, seen_array, out);
                }
            }
            // A position that the array does not have is missing.
            if out.len() == before && !items.is_empty() && part.name.parse::<i64>().is_ok() {
                out.push(Value::Null);
            }
        }
        _ => out.push(Value::Null),
    }
}

/// `{foreign: {$in: values}}`; regular expressions are compared as values, not matched.
pub(in crate::pipeline) fn equality(
    foreign: &Path,
    values: &[Value],
    collator: Option<&Collator>,
) -> Result<MatchExpr> {
    // Filters refuse undefined, which old data may hold: it joins as null does.
    let values: Vec<Value> = values
        .iter()
        .map(|value| match value {
            Value::Undefined => Value::Null,
            value => value.clone(),
        })
        .collect();
    let each: Vec<Value> = values
        .iter()
        .map(|value| one_field(foreign, doc! { "$eq": value.clone() }).into())
        .collect();
    let filter = match each.len() {
        0 => return Ok(MatchExpr::AlwaysFalse),
        1 => each.into_iter().next().expect("one"),
        _ if values.iter().any(is_operator) => doc! { "$or": each }.into(),
        _ => one_field(foreign, doc! { "$in": values }).into(),
    };
    let Value::Document(filter) = filter else {
        return Ok(MatchExpr::AlwaysFalse);
    };
    let mut scope = Scope::new().with_collator(collator.cloned());
    Ok(MatchExpr::parse(filter.as_ref(), &mut scope)?.normalize())
}

/// Whether `$in` takes a value for something else, or refuses it: a pattern, an operator.
fn is_operator(value: &Value) -> bool {
    match value {
        Value::Regex(_) => true,
        Value::Document(doc) => doc.iter().next().is_some_and(|(name, _)| name.starts_with('$')),
        _ => false,
    }
}

/// `{path: condition}`.
pub(in crate::pipeline) fn one_field(path: &Path, condition: Document) -> Document {
    let mut out = Document::with_capacity(1);
    out.push(path.as_str(), condition);
    out
}
