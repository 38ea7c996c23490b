//! Fields in the order that PostgreSQL's `jsonb` keeps them in, by which values are equal whatever the order in which their documents have them.

use nestor_model::{Array, Document, Value, ValueRef};

/// Whether a value has documents of several fields.
pub fn has_order(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Document(doc) => doc.iter().count() > 1 || doc.iter().any(|(_, field)| has_order(field)),
        ValueRef::Array(items) => items.iter().any(has_order),
        _ => false,
    }
}

/// The value with the fields of each document in order, the shorter names first; of several of a name the last.
pub fn in_order(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Document(doc) => {
            let mut fields: Vec<(&str, ValueRef<'_>)> = doc.iter().collect();
            fields.sort_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
            let mut out = Document::new();
            for (at, (name, field)) in fields.iter().enumerate() {
                if fields.get(at + 1).is_none_or(|(next, _)| next != name) {
                    out.push(*name, in_order(*field));
                }
            }
            Value::Document(out)
        }
        ValueRef::Array(items) => Value::Array(Array::new(items.iter().map(in_order).collect())),
        other => other.to_value(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    #[test]
    fn fields_are_in_order_at_all_depths() {
        let [value, wanted, plain] = [
            r#"{"bb": 1, "c": {"y": 1, "x": [{"q": 1, "p": 2}]}, "a": 3}"#,
            r#"{"a": 3, "c": {"x": [{"p": 2, "q": 1}], "y": 1}, "bb": 1}"#,
            r#"{"a": [1, {"b": 1}]}"#,
        ]
        .map(|text| parse(text).expect("JSON"));
        assert!(has_order(value.as_ref()) && !has_order(plain.as_ref()));
        assert!(in_order(value.as_ref()).identical(&wanted));
        assert!(!value.identical(&wanted));
    }
}
