//! Redaction of log lines: values that may tell what clients store or ask for are taken out (`redactClientLogData`).
//!
//! What is not known to be harmless is taken out: texts and whole documents, but for the fields in `PLAIN`; numbers, switches and times
//! stay where they stand alone, since they count and measure. Names of fields stay, as do those within documents.
//!
//! Source: manual, "Log Redaction": error codes, names of commands and collections, and counts are kept, values are not.

use nestor_model::{DocRef, Document, Value, ValueRef};

/// The text in place of a value that was taken out.
pub const MARK: &str = "###";

/// Fields whose values the server makes itself, or operators choose.
const PLAIN: &[&str] = &[
    "address",
    "appName",
    "client",
    "context",
    "db",
    "dbPath",
    "doc",
    "errCode",
    "errName",
    "from",
    "indexes",
    "mechanism",
    "msg",
    "namespace",
    "ns",
    "parameterName",
    "planCacheKey",
    "planCacheShapeHash",
    "planSummary",
    "protocol",
    "queryFramework",
    "queryHash",
    "queryShapeHash",
    "reason",
    "remote",
    "ssl",
    "to",
    "type",
    "user",
    "version",
];

/// The particulars of a line without what clients store or ask for.
pub fn redacted(attr: &Document) -> Document {
    let mut out = Document::new();
    for (name, value) in attr.iter() {
        let kept = match value {
            _ if PLAIN.contains(&name) => value.to_value(),
            ValueRef::Document(doc) => Value::from(within(doc)),
            ValueRef::Array(_) | ValueRef::String(_) | ValueRef::Binary { .. } => hidden(value),
            other => other.to_value(),
        };
        out.push(name, kept);
    }
    out
}

/// A document with the names of its fields only.
fn within(doc: DocRef<'_>) -> Document {
    let mut out = Document::new();
    for (name, value) in doc.iter() {
        out.push(name, hidden(value));
    }
    out
}

fn hidden(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Document(doc) => within(doc).into(),
        ValueRef::Array(items) => items.iter().map(hidden).collect::<Vec<_>>().into(),
        _ => MARK.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::doc;

    #[test]
    fn values_go_and_names_stay() {
        let attr = doc! {
            "type": "command",
            "ns": "shop.orders",
            "command": doc! { "find": "orders", "filter": doc! { "card": doc! { "$in": vec![Value::from(4111i64)] } } },
            "planSummary": "IXSCAN { card: 1 }",
            "docsExamined": 3,
            "errMsg": "E11000 dup key: { card: 4111 }",
            "unheardOf": "4111",
        };
        let expected = doc! {
            "type": "command",
            "ns": "shop.orders",
            "command": doc! { "find": "###", "filter": doc! { "card": doc! { "$in": vec![Value::from("###")] } } },
            "planSummary": "IXSCAN { card: 1 }",
            "docsExamined": 3,
            "errMsg": "###",
            "unheardOf": "###",
        };
        assert_eq!(format!("{:?}", redacted(&attr)), format!("{expected:?}"));
    }
}
