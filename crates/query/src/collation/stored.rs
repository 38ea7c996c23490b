//! Values as indexes with a collation hold them: every string is replaced by its sort key.
//!
//! A sort key is bytes, but index keys and their bounds are made of values. So a sort key takes the form of a string: byte
//! `b` is the character U+00`b`. UTF-8 orders characters as their numbers, hence these strings are ordered, by bytes, as
//! the strings they stand for are by the collation, and are the same when those are equal.
//!
//! ```text
//! sort key 2B 2D 01 8A        stored as the string U+002B U+002D U+0001 U+008A, in UTF-8 2B 2D 01 C2 8A
//! {a: "x", b: [1, "y"]}       {a: key of "x", b: [1, key of "y"]}; names of fields stay
//! ```
//!
//! The first levels of most sort keys of Latin text are below 80, so few grow by this.

use super::{Collator, with_sort_key};
use nestor_model::{Array, Document, Value, ValueRef};
use std::fmt::Write as _;

/// The form in which an index with this collation holds a value; `None` when that is the value itself. A symbol becomes a string.
pub fn stored(value: ValueRef<'_>, collator: &Collator) -> Option<Value> {
    holds_strings(value).then(|| convert(value, collator))
}

fn convert(value: ValueRef<'_>, collator: &Collator) -> Value {
    match value {
        ValueRef::String(text) | ValueRef::Symbol(text) => with_sort_key(collator, text, |key| {
            Value::String(key.iter().map(|byte| char::from(*byte)).collect())
        }),
        ValueRef::Document(doc) => doc
            .iter()
            .map(|(name, value)| (name.into(), convert(value, collator)))
            .collect::<Document>()
            .into(),
        ValueRef::Array(items) => Value::Array(items.iter().map(|item| convert(item, collator)).collect::<Array>()),
        other => other.to_value(),
    }
}

fn holds_strings(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::String(_) | ValueRef::Symbol(_) => true,
        ValueRef::Document(doc) => doc.iter().any(|(_, value)| holds_strings(value)),
        ValueRef::Array(items) => items.iter().any(holds_strings),
        _ => false,
    }
}

/// A sort key that is stored as a string, as MongoDB prints it: `CollationKey(0x2b2d01)`.
pub fn sort_key_text(stored: &str) -> String {
    let mut out = String::from("CollationKey(0x");
    for byte in stored.chars() {
        // Writing into a string cannot fail.
        let _ = write!(out, "{:02x}", u32::from(byte));
    }
    out.push(')');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::{compare, doc, extjson};

    fn collator(spec: Document) -> Collator {
        Collator::parse(spec.as_ref())
            .expect("is a collation")
            .expect("is not simple")
    }

    #[test]
    fn stored_values_compare_as_the_collator_does() {
        let texts = [
            "",
            "a",
            "A",
            "á",
            "b",
            "ab",
            "Ab",
            "a b",
            "a-b",
            "co-op",
            "coop",
            "10",
            "9",
            "ß",
            "ss",
            "中",
            "\u{0}",
            "\u{1F600}",
        ];
        let mut values: Vec<Value> = texts.iter().map(|text| Value::from(*text)).collect();
        values.extend(texts.iter().map(|text| doc! { "x": *text, "y": 1 }.into()));
        values.extend(
            texts
                .iter()
                .map(|text| Value::from(vec![Value::from(1), (*text).into()])),
        );
        values.extend([Value::Null, 5.into(), doc! {}.into(), doc! { "x": 1 }.into()]);
        for spec in [
            doc! { "locale": "en" },
            doc! { "locale": "en", "strength": 1 },
            doc! { "locale": "en", "strength": 2, "numericOrdering": true },
            doc! { "locale": "fr_CA", "alternate": "shifted" },
            doc! { "locale": "de", "strength": 5 },
        ] {
            let collator = collator(spec.clone());
            for a in &values {
                for b in &values {
                    let (x, y) = (convert(a.into(), &collator), convert(b.into(), &collator));
                    let wanted = collator.compare_values(a.into(), b.into());
                    assert_eq!(compare(&x, &y), wanted, "{a:?} and {b:?} under {spec:?}");
                }
            }
        }
    }

    #[test]
    fn only_strings_change() {
        let collator = collator(doc! { "locale": "en", "strength": 2 });
        let doc = extjson::parse_document(r#"{"a":1,"b":{"c":[true,null]},"d":{}}"#).expect("valid JSON");
        assert!(stored(ValueRef::Document(doc.as_ref()), &collator).is_none());
        let key = stored(ValueRef::String("x"), &collator).expect("a string has a sort key");
        let same = |a: Option<Value>, b: &Value| a.is_some_and(|a| compare(&a, b).is_eq());
        assert!(same(stored(ValueRef::Symbol("X"), &collator), &key));
        let Value::String(text) = &key else { panic!("{key:?}") };
        let mut bytes = Vec::new();
        collator.sort_key("x", &mut bytes);
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(sort_key_text(text), format!("CollationKey(0x{digits})"));
        let wanted = doc! { "a": vec![Value::from(1), key.clone()], "b": key };
        let given = doc! { "a": vec![Value::from(1), "X".into()], "b": "x" };
        assert!(same(
            stored(ValueRef::Document(given.as_ref()), &collator),
            &wanted.into()
        ));
    }
}
