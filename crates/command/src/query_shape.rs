//! The shape of a whole query command: what it is about, with its literals replaced by their types.

use nestor_model::{Document, Namespace, RawDoc, Value, ValueRef, doc};
use nestor_planner::shape::{expression_shape, filter_query_shape, pipeline_query_shape};
use sha2::{Digest, Sha256};

/// The shape of command `name` on `ns`.
pub fn of_command(name: &str, ns: &Namespace, command: RawDoc<'_>) -> Document {
    let cmd_ns = doc! { "db": ns.db.clone(), "coll": ns.coll.clone() };
    let mut shape = doc! { "cmdNs": cmd_ns, "command": name };
    let part = |name: &str| command.get(name).and_then(ValueRef::as_document);
    if let Some(ValueRef::Array(pipeline)) = command.get("pipeline") {
        shape.push("pipeline", pipeline_query_shape(pipeline));
    } else {
        let filter = part("filter").or(part("query"));
        shape.push("filter", filter.map(|f| Value::from(filter_query_shape(f))));
    }
    if let Some(key @ ValueRef::String(_)) = command.get("key") {
        shape.push("key", key);
    }
    for name in ["sort", "projection", "collation"] {
        shape.push(name, part(name).map(|doc| Value::Document(doc.to_document())));
    }
    if let Some(variables) = part("let") {
        shape.push("let", expression_shape(ValueRef::Document(variables)));
    }
    for name in ["skip", "limit"] {
        // Zero is as good as none.
        if command.get(name).is_some_and(|n| n.is_number() && n.truthy()) {
            shape.push(name, "?number");
        }
    }
    shape
}

/// The hash of a query shape: SHA-256 in hexadecimal digits.
pub fn hash(shape: &Document) -> String {
    Sha256::digest(shape.to_raw().as_bytes())
        .iter()
        .map(|byte| format!("{byte:02X}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash_of(command: Document) -> String {
        let raw = command.to_raw();
        let name = command.iter().next().map_or("", |(name, _)| name);
        hash(&of_command(name, &Namespace::new("d", "c"), raw.as_raw()))
    }

    #[test]
    fn literals_are_not_part_of_it_and_all_else_is() {
        let find = |filter: Document| doc! { "find": "c", "filter": filter };
        assert_eq!(hash_of(find(doc! { "a": 1 })), hash_of(find(doc! { "a": 2.5 })));
        assert_eq!(hash_of(find(doc! { "a": 1 })).len(), 64);
        let mut limited = find(doc! { "a": 1 });
        limited.push("limit", 5);
        let mut sorted = find(doc! { "a": 1 });
        sorted.push("sort", doc! { "a": 1 });
        let distinct = |key: &str| doc! { "distinct": "c", "key": key, "query": doc! { "a": 1 } };
        let all = [
            find(doc! { "a": 1 }),
            find(doc! { "b": 1 }),
            find(doc! { "a": "x" }),
            limited,
            sorted,
            distinct("x"),
            distinct("y"),
        ];
        let hashes: std::collections::BTreeSet<String> = all.into_iter().map(hash_of).collect();
        assert_eq!(hashes.len(), 7);
    }
}
