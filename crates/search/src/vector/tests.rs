//! Indexes of this kind from the outside.

use crate::{Definition, Index, IndexKind, Nearest};
use nestor_model::random::Random;
use nestor_model::{Binary, Document, Value, doc, extjson};
use std::collections::BTreeMap;
use std::sync::Arc;

fn json(text: &str) -> Document {
    extjson::parse_document(text).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

fn index(definition: &str) -> Index {
    let definition = Definition::parse(IndexKind::Vector, json(definition).as_ref()).expect("a definition");
    Index::new(Arc::new(definition))
}

/// Documents under keys that are their places.
fn filled(definition: &str, documents: &[&str]) -> Index {
    let mut change = index(definition).change();
    for (key, document) in (0u8..).zip(documents) {
        let document = json(document).to_raw();
        change.record(&[key], Some(document.as_raw())).expect("a change");
    }
    change.finish().expect("a change")
}

/// What a query finds, as `place: score`.
fn found(index: &Index, query: &str) -> String {
    let nearest = match Nearest::parse(json(query).as_ref()) {
        Ok(nearest) => nearest,
        Err(error) => return format!("unreadable {}", error.code().number()),
    };
    match index.nearest(&nearest) {
        Err(error) => format!("error {}", error.code().number()),
        Ok(found) => {
            let hits = found
                .hits
                .all()
                .into_iter()
                .map(|hit| format!("{}: {:.3}", hit.key[0], hit.score));
            hits.collect::<Vec<_>>().join(", ")
        }
    }
}

fn query(path: &str, vector: &str, options: &str) -> String {
    let comma = if options.is_empty() { "" } else { ", " };
    format!(r#"{{"index": "i", "path": "{path}", "queryVector": {vector}, "exact": true, "limit": 9{comma}{options}}}"#)
}

const SIMILARITIES: &str = r#"{"storedSource": {"include": ["f"]}, "fields": [
    {"type": "vector", "path": "c", "numDimensions": 2, "similarity": "cosine"},
    {"type": "vector", "path": "d.v", "numDimensions": 2, "similarity": "dotProduct"},
    {"type": "vector", "path": "e", "numDimensions": 2, "similarity": "euclidean"},
    {"type": "vector", "path": "b", "numDimensions": 8, "similarity": "euclidean"},
    {"type": "vector", "path": "bc", "numDimensions": 8, "similarity": "cosine"},
    {"type": "filter", "path": "f"}
]}"#;

#[test]
fn scores() {
    let index = filled(
        SIMILARITIES,
        &[
            r#"{"c": [2, 0], "d": {"v": [1, 0]}, "e": [0, 0]}"#,
            r#"{"c": [0, 3], "d": {"v": [0.5, 5]}, "e": [3, 4]}"#,
            r#"{"c": [-1, 0], "d": {"v": [-4, 0]}, "e": [1, 0]}"#,
            r#"{"c": [0, 0], "d": {"v": [1]}, "e": "x"}"#,
            r#"{"c": [1, null], "d": [{"v": [1, 0]}], "e": [1e300, 0]}"#,
            r#"{"f": 1}"#,
        ],
    );
    assert_eq!(index.documents(), 3, "those with a vector");
    let cases = [
        (query("c", "[1, 0]", ""), "0: 1.000, 1: 0.500, 2: 0.000"),
        (query("c", "[50, 50]", ""), "0: 0.854, 1: 0.854, 2: 0.146"),
        (query("c", "[0, 0]", ""), "error 8"),
        (query("c", "[1e-300, 0]", ""), "error 8"),
        (query("c", "[1e39, 1]", ""), "error 8"),
        (query("c", "[3.4028235e38, 1]", ""), "0: 1.000, 1: 0.500, 2: 0.000"),
        (query("c", "[1]", ""), "error 8"),
        (query("c", "[1, 0, 0]", ""), "error 8"),
        (query("c", "[]", ""), "error 8"),
        (query("f", "[1, 0]", ""), "error 8"),
        (query("d", "[1, 0]", ""), "error 8"),
        (query("d.v", "[1, 0]", ""), "0: 1.000, 1: 0.750, 2: 0.000"),
        (query("d.v", "[0, 0]", ""), "0: 0.500, 1: 0.500, 2: 0.500"),
        (query("e", "[0, 0]", ""), "0: 1.000, 2: 0.500, 1: 0.038"),
        (
            query("e", "[0, 0]", r#""returnStoredSource": true"#),
            "0: 1.000, 2: 0.500, 1: 0.038",
        ),
        (query("e", "[0, 0]", r#""nestedOptions": {}"#), "error 8"),
        (
            query("e", "[0, 0]", r#""explainOptions": {"traceDocumentIds": [1]}"#),
            "error 8",
        ),
    ];
    for (query, expected) in cases {
        assert_eq!(found(&index, &query), expected, "{query}");
    }
}

#[test]
fn explains() {
    let index = filled(SIMILARITIES, &[r#"{"e": [0, 0]}"#]);
    for (options, is_good) in [
        (r#"{"traceDocumentIds": [1]}"#, true),
        (r#"{"traceDocumentIds": [1, null]}"#, false),
        ("{}", false),
    ] {
        let query = query("e", "[0, 0]", &format!(r#""explainOptions": {options}"#));
        let nearest = Nearest::parse(json(&query).as_ref()).expect("a query");
        assert!(index.nearest(&nearest).is_err(), "not explained: {options}");
        let nearest = nearest.explained();
        assert_eq!(index.definition().check_nearest(&nearest).is_ok(), is_good, "{options}");
        assert_eq!(index.nearest(&nearest).is_ok(), is_good, "{options}");
    }
}

#[test]
fn binary_vectors() {
    let binary = |bytes: &[u8]| {
        Value::Binary(Binary {
            subtype: 9,
            bytes: bytes.into(),
        })
    };
    let one = 1f32.to_le_bytes();
    let float = [0x27, 0, one[0], one[1], one[2], one[3], 0, 0, 0, 0];
    let documents = [
        doc! { "c": binary(&[3, 0, 5, 0]), "d": doc! { "v": binary(&[3, 0, 127, 0]) }, "e": binary(&[3, 0, 1, 1]), "b": binary(&[0x10, 0, 0xff]) },
        doc! { "c": binary(&float), "b": binary(&[0x10, 0, 0x0f]) },
        doc! { "c": binary(&[3, 0, 0, 0]), "b": binary(&[0x10, 3, 0xf8]), "bc": binary(&[0x10, 0, 0xff]), "f": 1 },
    ];
    let mut change = index(SIMILARITIES).change();
    for (key, document) in (0u8..).zip(documents) {
        change
            .record(&[key], Some(document.to_raw().as_raw()))
            .expect("a change");
    }
    let index = change.finish().expect("a change");
    let cases = [
        ("c", binary(&[3, 0, 1, 0]), "0: 1.000"),
        ("c", binary(&[3, 0, 0, 0]), "error 8"),
        ("c", binary(&float), "1: 1.000"),
        ("d.v", binary(&[3, 0, 127, 0]), "0: 0.746"),
        ("e", binary(&[3, 0, 0, 1]), "0: 0.500"),
        ("e", binary(&float), ""),
        ("b", binary(&[0x10, 0, 0xff]), "0: 1.000, 1: 0.500"),
        ("b", binary(&[0x10, 1, 0xfe]), "error 8"),
        ("b", binary(&[0x10, 0, 0xff, 0xff]), "error 8"),
        ("bc", binary(&[0x10, 0, 0xff]), "error 8"),
    ];
    for (path, vector, expected) in cases {
        let mut query = json(&query(path, "[]", ""));
        query.set("queryVector", vector.clone());
        let nearest = Nearest::parse(query.as_ref()).expect("a query");
        let found = match index.nearest(&nearest) {
            Err(error) => format!("error {}", error.code().number()),
            Ok(found) => {
                let hits = found
                    .hits
                    .all()
                    .into_iter()
                    .map(|hit| format!("{}: {:.3}", hit.key[0], hit.score));
                hits.collect::<Vec<_>>().join(", ")
            }
        };
        assert_eq!(found, expected, "{path} {vector:?}");
    }
}

#[test]
fn filters() {
    const DEFINITION: &str = r#"{"fields": [
        {"type": "vector", "path": "v", "numDimensions": 1, "similarity": "euclidean"},
        {"type": "filter", "path": "n"}, {"type": "filter", "path": "s.t"}, {"type": "filter", "path": "o"}
    ]}"#;
    let index = filled(
        DEFINITION,
        &[
            r#"{"v": [0], "n": 1, "s": {"t": "a"}, "o": null}"#,
            r#"{"v": [1], "n": 2.5, "s": [{"t": "b"}, {"t": ["c", "d"]}], "o": true}"#,
            r#"{"v": [2], "n": {"$numberLong": "3"}, "s": {"t": []}, "o": {"$date": "2020-01-01T00:00:00Z"}}"#,
            r#"{"v": [3], "n": [4, {"x": 1}, "four"], "o": {"$uuid": "00112233-4455-6677-8899-aabbccddeeff"}}"#,
        ],
    );
    let cases = [
        (r#"{}"#, "0 1 2 3"),
        (r#"{"n": 1.0}"#, "0"),
        (r#"{"n": {"$gt": 1, "$lt": 3}}"#, "1"),
        (r#"{"n": {"$gte": 3}}"#, "2 3"),
        (r#"{"n": {"$lte": "z"}}"#, "3"),
        (r#"{"n": {"$ne": 1}}"#, "1 2 3"),
        (r#"{"n": {"$in": [1, 4.0]}}"#, "0 3"),
        (r#"{"n": {"$nin": [1, 4.0]}}"#, "1 2"),
        (r#"{"n": {"$not": {"$gt": 2}}}"#, "0"),
        (r#"{"s.t": "d"}"#, "1"),
        (r#"{"s.t": {"$exists": true}}"#, "0 1 2"),
        (r#"{"s.t": {"$exists": false}}"#, "3"),
        (r#"{"o": null}"#, "0"),
        (r#"{"o": {"$ne": null}}"#, "1 2 3"),
        (r#"{"s.t": null}"#, ""),
        (r#"{"o": {"$gt": {"$date": "2019-01-01T00:00:00Z"}}}"#, "2"),
        (r#"{"o": {"$uuid": "00112233-4455-6677-8899-aabbccddeeff"}}"#, "3"),
        (r#"{"$or": [{"n": 1}, {"o": true}]}"#, "0 1"),
        (r#"{"$and": [{"n": {"$gt": 1}}, {"$nor": [{"o": true}]}]}"#, "2 3"),
        (r#"{"n": 1, "o": true}"#, ""),
        (r#"{"x": 1}"#, "error 8"),
        (r#"{"s": {"t": 1}}"#, "error 8"),
        (r#"{"n": {"x": 1}}"#, "error 8"),
        (r#"{"n": {}}"#, "error 8"),
        (r#"{"n": [1]}"#, "error 8"),
        (r#"{"n": {"$numberDecimal": "1"}}"#, "error 8"),
        (r#"{"n": {"$gt": {"$minKey": 1}}}"#, "error 8"),
        (r#"{"n": {"$gt": null}}"#, "error 8"),
        (r#"{"n": {"$in": []}}"#, "error 8"),
        (r#"{"n": {"$in": [1, "x"]}}"#, "error 8"),
        (r#"{"n": {"$in": [null]}}"#, "error 8"),
        (r#"{"n": {"$exists": 1}}"#, "error 8"),
        (r#"{"n": {"$type": "int"}}"#, "error 8"),
        (r#"{"n": {"$not": {"$size": 1}}}"#, "error 8"),
        (r#"{"n": {"$regex": "x"}}"#, "error 8"),
        (r#"{"$expr": true}"#, "error 8"),
        (r#"{"$jsonSchema": {}}"#, "error 8"),
        (r#"{"$comment": "x"}"#, "error 8"),
    ];
    let places = |found: String| match found.starts_with("error") {
        true => found,
        false => {
            let places = found.split(", ").map(|hit| hit.split(':').next().unwrap_or_default());
            places.collect::<Vec<_>>().join(" ")
        }
    };
    for (filter, expected) in cases {
        for option in ["filter", "parentFilter"] {
            let query = query("v", "[0]", &format!(r#""{option}": {filter}"#));
            assert_eq!(places(found(&index, &query)), expected, "{query}");
        }
    }
    for filter in [
        r#"{"$or": []}"#,
        r#"{"$n": 1}"#,
        r#"{"n": {"$near": [0, 0]}}"#,
        r#"{"n": {"$odd": 1}}"#,
    ] {
        let query = query("v", "[0]", &format!(r#""parentFilter": {filter}"#));
        assert_eq!(found(&index, &query), "error 8", "{query}");
    }
}

#[test]
fn nested_vectors() {
    const DEFINITION: &str = r#"{"nestedRoot": "r.s", "fields": [
        {"type": "vector", "path": "r.s.v", "numDimensions": 1, "similarity": "euclidean"},
        {"type": "vector", "path": "w", "numDimensions": 1, "similarity": "euclidean"},
        {"type": "filter", "path": "r.s.n"}, {"type": "filter", "path": "m"}
    ]}"#;
    let index = filled(
        DEFINITION,
        &[
            r#"{"m": 1, "w": [5], "r": {"s": [{"v": [0], "n": 1}, {"v": [1], "n": 2}, 7, {"n": 3}]}}"#,
            r#"{"m": 1, "r": {"s": {"v": [2], "n": 1}}}"#,
            r#"{"m": 2, "r": [{"s": [{"v": [3], "n": 2}]}, {"s": [{"v": [1]}]}]}"#,
            r#"{"m": 2, "w": [6], "r": {"s": []}}"#,
        ],
    );
    let cases = [
        ("r.s.v", "", "0: 1.000, 2: 0.500, 1: 0.200"),
        (
            "r.s.v",
            r#""nestedOptions": {"scoreMode": "avg"}"#,
            "0: 0.750, 2: 0.300, 1: 0.200",
        ),
        ("r.s.v", r#""filter": {"r.s.n": 2}"#, "0: 0.500, 2: 0.100"),
        (
            "r.s.v",
            r#""filter": {"r.s.n": {"$ne": 1}}, "nestedOptions": {"scoreMode": "avg"}"#,
            "0: 0.500, 2: 0.300",
        ),
        ("r.s.v", r#""parentFilter": {"m": 2}"#, "2: 0.500"),
        (
            "r.s.v",
            r#""parentFilter": {"m": 1}, "filter": {"r.s.n": 1}"#,
            "0: 1.000, 1: 0.200",
        ),
        ("r.s.v", r#""parentFilter": {"r.s.n": 1}"#, ""),
        ("r.s.v", r#""filter": {"m": 1}"#, ""),
        ("w", "", "0: 0.038, 3: 0.027"),
        ("w", r#""filter": {"m": 2}"#, "3: 0.027"),
        ("w", r#""nestedOptions": {}"#, "error 8"),
    ];
    for (path, options, expected) in cases {
        assert_eq!(
            found(&index, &query(path, "[0]", options)),
            expected,
            "{path} {options}"
        );
    }
}

/// Many small changes give what is found by comparing all vectors of what is there.
#[test]
fn changes() {
    const DEFINITION: &str = r#"{"nestedRoot": "e", "fields": [
        {"type": "vector", "path": "v", "numDimensions": 3, "similarity": "euclidean"},
        {"type": "vector", "path": "e.v", "numDimensions": 3, "similarity": "euclidean"},
        {"type": "filter", "path": "n"}
    ]}"#;
    let random = Random::new(7);
    let below = |count: u64| (random.next() % count) as i32;
    let mut there = BTreeMap::new();
    let mut index = index(DEFINITION);
    let mut sizes = 0;
    for round in 0..300 {
        let mut change = index.change();
        let mut keys: Vec<u8> = (0..1 + below(6)).map(|_| below(100) as u8).collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            if below(3) == 0 {
                change.record(&[key], None).expect("a change");
                there.remove(&key);
                continue;
            }
            let vector = [below(1000), below(1000), below(1000)];
            let value = Value::Array(vector.into_iter().map(Value::from).collect());
            let document = doc! { "v": value.clone(), "e": vec![Value::Null, Value::Document(doc! { "v": value })], "n": i32::from(key) % 3 };
            change
                .record(&[key], Some(document.to_raw().as_raw()))
                .expect("a change");
            there.insert(key, vector);
        }
        index = change.finish().expect("a change");
        assert_eq!(index.documents(), there.len() as u64);
        sizes = sizes.max(index.bytes());
        if round % 20 == 0 {
            let mut expected: Vec<_> = there
                .iter()
                .filter(|(key, _)| **key % 3 != 1)
                .map(|(key, v)| (v.iter().map(|x| i64::from(x - 500).pow(2)).sum::<i64>(), *key))
                .collect();
            expected.sort_unstable();
            expected.truncate(9);
            let expected: Vec<_> = expected.into_iter().map(|(_, key)| key).collect();
            for path in ["v", "e.v"] {
                let query = query(path, "[500, 500, 500]", r#""parentFilter": {"n": {"$ne": 1}}"#);
                let nearest = Nearest::parse(json(&query).as_ref()).expect("a query");
                let hits = index.nearest(&nearest).expect("found").hits.all();
                let keys: Vec<_> = hits.iter().map(|hit| hit.key[0]).collect();
                assert_eq!(keys, expected, "round {round}, {path}");
            }
        }
    }
    assert!(sizes < 100_000, "no more than some segments: {sizes}");
}

#[test]
fn states_stay_as_they_are() {
    let first = filled(SIMILARITIES, &[r#"{"e": [0, 0]}"#, r#"{"e": [1, 0]}"#]);
    let mut change = first.change();
    change.record(&[0], None).expect("a change");
    change
        .record(&[1], Some(json(r#"{"e": "none"}"#).to_raw().as_raw()))
        .expect("a change");
    let second = change.finish().expect("a change");
    let query = query("e", "[0, 0]", "");
    assert_eq!(found(&first, &query), "0: 1.000, 1: 0.500");
    assert_eq!(found(&second, &query), "");
    assert_eq!(second.documents(), 0);
}
