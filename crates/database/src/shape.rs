//! Shapes: the parts of a query, and of its plan, that operations have in common when only their literals differ.
//!
//! The *query shape* describes the command as it was written, literals replaced by their types; query settings and
//! `queryShapeHash` go by it. The *plan shape* is what plans are shared by; index filters and `planCacheShapeHash` go by it.
//! Both are made when somebody asks: most operations never need them.

use nestor_model::{ArrayRef, DocRef, Document, Namespace, RawDoc, Value, ValueRef, doc};
use nestor_planner::FindQuery;
use nestor_planner::shape::{Written, expression_shape, filter_query_shape, pipeline_query_shape};
use sha2::{Digest, Sha256};

/// The parts of an operation as its text has them. A part that was not given is `None`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Words<'a> {
    /// The condition.
    pub filter: Option<RawDoc<'a>>,
    /// The order.
    pub sort: Option<RawDoc<'a>>,
    /// The projection.
    pub projection: Option<RawDoc<'a>>,
    /// The collation that strings compare by.
    pub collation: Option<RawDoc<'a>>,
    /// `let`.
    pub variables: Option<RawDoc<'a>>,
    /// The stages of a pipeline, an array as bytes. An operation that has them has no filter of its own.
    pub pipeline: Option<RawDoc<'a>>,
    /// The path whose different values are wanted.
    pub key: Option<&'a str>,
    /// Documents are left out at the beginning.
    pub skips: bool,
    /// There is a largest number of documents.
    pub limits: bool,
}

impl<'a> Words<'a> {
    /// The parts that the shape of a plan is made of, and that an entry of the plan cache shows.
    pub fn written(&self) -> Written<'a> {
        Written {
            filter: self.filter.map(DocRef::Raw),
            sort: self.sort.map(DocRef::Raw),
            projection: self.projection.map(DocRef::Raw),
            collation: self.collation.map(DocRef::Raw),
        }
    }
}

/// An operation apart from its literals.
#[derive(Clone, Debug)]
pub struct Shape<'a> {
    /// How the operation calls itself: `find`, `aggregate`.
    pub command: &'static str,
    /// The namespace it names.
    pub ns: Namespace,
    /// Whether query settings can be set for it. Other operations have no query shape that clients are told of, but in
    /// explain.
    pub is_settable: bool,
    /// Its parts.
    pub words: Words<'a>,
}

impl Shape<'_> {
    /// The query shape. Hashes of it are stored with query settings, so that it must not change.
    pub fn document(&self) -> Document {
        let words = &self.words;
        let cmd_ns = doc! { "db": self.ns.db.clone(), "coll": self.ns.coll.clone() };
        let mut shape = doc! { "cmdNs": cmd_ns, "command": self.command };
        match words.pipeline {
            Some(pipeline) => shape.push("pipeline", pipeline_query_shape(ArrayRef::Raw(pipeline))),
            None => {
                let filter = words.filter.map(DocRef::Raw);
                shape.push("filter", filter.map(|f| Value::from(filter_query_shape(f))));
            }
        }
        shape.push("key", words.key.map(Value::from));
        for (name, part) in [
            ("sort", words.sort),
            ("projection", words.projection),
            ("collation", words.collation),
        ] {
            shape.push(name, part.map(|doc| Value::Document(doc.as_doc().to_document())));
        }
        if let Some(variables) = words.variables {
            shape.push("let", expression_shape(ValueRef::Document(DocRef::Raw(variables))));
        }
        for (name, given) in [("skip", words.skips), ("limit", words.limits)] {
            shape.push(name, given.then_some("?number").map(Value::from));
        }
        shape
    }

    /// The hash of the query shape: SHA-256 in hexadecimal digits.
    pub fn hash(&self) -> String {
        hash(&self.document())
    }

    /// The hash of the plan shape of `query`, which was parsed from these words.
    pub fn plan_hash(&self, query: &FindQuery) -> u64 {
        self.words.written().shape(query)
    }
}

/// The facts about an operation for the profiler, the log and the counters.
pub struct Described<'a> {
    /// The shape by which it is grouped with others.
    pub shape: Shape<'a>,
    /// The query that finds its documents. Lookups by `_id` and pipelines have none.
    pub query: Option<FindQuery>,
}

/// The hash of a query shape.
pub fn hash(shape: &Document) -> String {
    Sha256::digest(shape.to_raw().as_bytes())
        .iter()
        .map(|byte| format!("{byte:02X}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn literals_are_not_part_of_it_and_all_else_is() {
        let (one, two, text) = (
            doc! { "a": 1 }.to_raw(),
            doc! { "a": 2.5 }.to_raw(),
            doc! { "a": "x" }.to_raw(),
        );
        let other = doc! { "b": 1 }.to_raw();
        let words = |filter| Words {
            filter: Some(filter),
            ..Words::default()
        };
        let hash = |command: &'static str, words: Words<'_>| {
            let ns = Namespace::new("d", "c");
            let is_settable = true;
            Shape {
                command,
                ns,
                is_settable,
                words,
            }
            .hash()
        };
        let plain = words(one.as_raw());
        assert_eq!(hash("find", plain), hash("find", words(two.as_raw())));
        assert_eq!(hash("find", plain).len(), 64);
        let keyed = |key| Words {
            key: Some(key),
            ..plain
        };
        let all = [
            ("find", plain),
            ("find", words(other.as_raw())),
            ("find", words(text.as_raw())),
            ("find", Words { limits: true, ..plain }),
            (
                "find",
                Words {
                    sort: Some(one.as_raw()),
                    ..plain
                },
            ),
            ("distinct", keyed("x")),
            ("distinct", keyed("y")),
        ];
        let hashes: BTreeSet<String> = all.into_iter().map(|(command, words)| hash(command, words)).collect();
        assert_eq!(hashes.len(), 7);
    }

    #[test]
    fn stored_hashes_stay_what_they_were() {
        // Query settings that an earlier version stored are found by it.
        let filter = doc! { "a": 1, "s": doc! { "$gt": "x" } }.to_raw();
        let shape = Shape {
            command: "find",
            ns: Namespace::new("d", "c"),
            is_settable: true,
            words: Words {
                filter: Some(filter.as_raw()),
                limits: true,
                ..Words::default()
            },
        };
        assert_eq!(
            format!("{:?}", shape.document()),
            r#"{"cmdNs": {"db": "d", "coll": "c"}, "command": "find", "filter": {"$and": [{"a": {"$eq": "?number"}}, {"s": {"$gt": "?string"}}]}, "limit": "?number"}"#
        );
    }
}
