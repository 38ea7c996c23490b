//! Values as MongoDB's error messages print them.

use nestor_model::{ArrayRef, DocRef, ValueRef};
use std::fmt::Write as _;

/// A document in the shell's syntax: `{ a: 1, b: "x" }`.
pub fn shell(doc: DocRef<'_>) -> String {
    let mut out = String::new();
    document(&mut out, doc);
    out
}

fn document(out: &mut String, doc: DocRef<'_>) {
    if doc.is_empty() {
        out.push_str("{}");
        return;
    }
    out.push('{');
    for (i, (name, value)) in doc.iter().enumerate() {
        // Writing into a string cannot fail.
        let _ = write!(out, "{} {name}: ", if i > 0 { "," } else { "" });
        value_into(out, value);
    }
    out.push_str(" }");
}

fn array(out: &mut String, items: ArrayRef<'_>) {
    if items.is_empty() {
        out.push_str("[]");
        return;
    }
    out.push('[');
    for (i, item) in items.iter().enumerate() {
        out.push_str(if i > 0 { ", " } else { " " });
        value_into(out, item);
    }
    out.push_str(" ]");
}

/// Appends one value.
pub fn value_into(out: &mut String, value: ValueRef<'_>) {
    let _ = match value {
        ValueRef::Document(doc) => {
            document(out, doc);
            Ok(())
        }
        ValueRef::Array(items) => {
            array(out, items);
            Ok(())
        }
        ValueRef::ObjectId(id) => write!(out, "ObjectId('{id}')"),
        ValueRef::Int64(v) => write!(out, "{v}"),
        ValueRef::Double(v) if v.fract() == 0.0 && v.abs() < 1e15 => write!(out, "{v:.1}"),
        ValueRef::DateTime(v) => write!(out, "new Date({v})"),
        ValueRef::Decimal128(v) => write!(out, "{v}"),
        other => write!(out, "{other:?}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::{Value, doc};

    #[test]
    fn as_the_shell_prints() {
        let doc = doc! { "a": 1, "b": "x", "c": doc! { "d": 2.0 }, "e": vec![Value::Int64(3)], "f": Value::Null };
        assert_eq!(
            shell(doc.as_ref()),
            r#"{ a: 1, b: "x", c: { d: 2.0 }, e: [ 3 ], f: null }"#
        );
    }
}
