use super::*;
use crate::env::{Env, OpContext, Scope};
use crate::matcher::MatchExpr;
use nestor_model::random::Random;
use nestor_model::statement::{VALUE_BYTES_MAX, charge, mark};
use nestor_model::{Array, Document, ErrorCode, Str, Value, doc};

fn list(items: impl IntoIterator<Item = Value>) -> Value {
    items.into_iter().collect::<Array>().into()
}

fn parse(spec: &Document, policy: Policy) -> Projection {
    Projection::parse(spec.as_ref(), &mut Scope::new(), policy).unwrap_or_else(|e| panic!("{spec:?}: {e}"))
}

/// Applies to the owned and the raw form, and by bytes where that works; all must agree.
fn apply(spec: Document, policy: Policy, doc: &Document) -> String {
    let projection = parse(&spec, policy);
    let op = OpContext::default();
    let raw = Document::from(doc.to_raw());
    let [owned, from_raw] = [doc, &raw].map(|d| {
        let out = projection.apply(&mut Env::new(d.as_ref(), &op), None).expect("applies");
        format!("{out:?}")
    });
    assert_eq!(owned, from_raw, "{spec:?}");
    if projection.is_simple() {
        let bytes = projection.apply_raw_to_buf(doc.to_raw().as_raw());
        assert_eq!(owned, format!("{bytes:?}"), "{spec:?}");
    }
    owned
}

/// Documents may have a field twice: the second is not the last field that was listed.
#[test]
fn names_that_come_twice() {
    let mut doc = doc! { "a": 1 };
    doc.push("a", 2);
    doc.push("b", 3);
    let raw = doc.to_raw();
    for (spec, expected) in [
        (doc! { "a": 1, "b": 1 }, r#"{"a": 1, "a": 2, "b": 3}"#),
        (doc! { "a": 0 }, r#"{"b": 3}"#),
    ] {
        let projected = parse(&spec, Policy::Find).apply_raw_to_buf(raw.as_raw());
        assert_eq!(format!("{projected:?}"), expected, "{spec:?}");
    }
    let many: Document = (0..70).map(|n| (format!("f{n}").into(), Value::Int32(n))).collect();
    let spec: Document = (0..70).map(|n| (format!("f{n}").into(), Value::Int32(1))).collect();
    let projected = parse(&spec, Policy::Find).apply_raw_to_buf(many.to_raw().as_raw());
    assert_eq!(format!("{projected:?}"), format!("{many:?}"));
}

#[test]
fn inclusion_and_exclusion() {
    let doc = doc! {
        "_id": 1,
        "a": doc! { "b": 1, "c": 2 },
        "l": list([doc! { "x": 1, "y": 2 }.into(), 5.into(), list([doc! { "x": 3 }.into(), 6.into()])]),
        "z": "z",
    };
    let cases = [
        (
            doc! {},
            r#"{"_id": 1, "a": {"b": 1, "c": 2}, "l": [{"x": 1, "y": 2}, 5, [{"x": 3}, 6]], "z": "z"}"#,
        ),
        (
            doc! { "z": 1, "a": 1 },
            r#"{"_id": 1, "a": {"b": 1, "c": 2}, "z": "z"}"#,
        ),
        (doc! { "z": 1, "_id": 0 }, r#"{"z": "z"}"#),
        (doc! { "_id": 1 }, r#"{"_id": 1}"#),
        (doc! { "a.b": 1 }, r#"{"_id": 1, "a": {"b": 1}}"#),
        (doc! { "a": doc! { "b": true } }, r#"{"_id": 1, "a": {"b": 1}}"#),
        (doc! { "l.x": 1 }, r#"{"_id": 1, "l": [{"x": 1}, [{"x": 3}]]}"#),
        (doc! { "z.q": 1 }, r#"{"_id": 1}"#),
        (doc! { "a": 0, "l": 0 }, r#"{"_id": 1, "z": "z"}"#),
        (
            doc! { "_id": 0, "a": 0, "l.x": 0 },
            r#"{"l": [{"y": 2}, 5, [{}, 6]], "z": "z"}"#,
        ),
        (doc! { "_id": 1, "a": 0, "l": 0 }, r#"{"_id": 1, "z": "z"}"#),
        (doc! { "a.b": 0, "l": 0 }, r#"{"_id": 1, "a": {"c": 2}, "z": "z"}"#),
    ];
    for (spec, expected) in cases {
        assert_eq!(apply(spec.clone(), Policy::Find, &doc), expected, "{spec:?}");
    }
}

#[test]
fn computed_fields() {
    let doc = doc! { "_id": 1, "a": 2, "s": doc! { "t": 3 }, "l": list([doc! { "x": 1 }.into(), 7.into()]) };
    let cases = [
        (
            Policy::Find,
            doc! { "b": "$a", "a": 1 },
            r#"{"_id": 1, "a": 2, "b": 2}"#,
        ),
        (Policy::Find, doc! { "a": "text" }, r#"{"_id": 1, "a": "text"}"#),
        (Policy::Project, doc! { "_id": 0, "s.u": "$a" }, r#"{"s": {"u": 2}}"#),
        (
            Policy::Project,
            doc! { "s": doc! { "t": 1, "u": "$a" } },
            r#"{"_id": 1, "s": {"t": 3, "u": 2}}"#,
        ),
        (Policy::Project, doc! { "n.m": "$gone" }, r#"{"_id": 1, "n": {}}"#),
        (Policy::Project, doc! { "_id": 0, "a.b": "$a" }, r#"{"a": {"b": 2}}"#),
        (
            Policy::AddFields,
            doc! { "a": "$s.t", "n": 1 },
            r#"{"_id": 1, "a": 3, "s": {"t": 3}, "l": [{"x": 1}, 7], "n": 1}"#,
        ),
        (
            Policy::AddFields,
            doc! { "l.y": 9, "s": "$$REMOVE" },
            r#"{"_id": 1, "a": 2, "l": [{"x": 1, "y": 9}, {"y": 9}]}"#,
        ),
        (
            Policy::AddFields,
            doc! { "s": doc! {}, "l": 0 },
            r#"{"_id": 1, "a": 2, "s": {}, "l": 0}"#,
        ),
        (
            Policy::AddFields,
            doc! { "a.b": 1 },
            r#"{"_id": 1, "a": {"b": 1}, "s": {"t": 3}, "l": [{"x": 1}, 7]}"#,
        ),
    ];
    for (policy, spec, expected) in cases {
        assert_eq!(apply(spec.clone(), policy, &doc), expected, "{spec:?}");
    }
}

#[test]
fn slices_and_elem_match() {
    let doc = doc! { "_id": 1, "a": list([1.into(), 2.into(), 3.into()]), "b": 4 };
    let slice = |v: Value| doc! { "$slice": v };
    let cases = [
        (doc! { "a": slice(1.into()) }, r#"{"_id": 1, "a": [1], "b": 4}"#),
        (doc! { "a": slice((-1).into()), "_id": 1 }, r#"{"_id": 1, "a": [3]}"#),
        (
            doc! { "a": slice(list([1.into(), 1.into()])), "b": 0 },
            r#"{"_id": 1, "a": [2]}"#,
        ),
        (doc! { "b": slice(1.into()) }, r#"{"_id": 1, "a": [1, 2, 3], "b": 4}"#),
        (
            doc! { "a": doc! { "$elemMatch": doc! { "$gte": 2 } } },
            r#"{"_id": 1, "a": [2]}"#,
        ),
        (
            doc! { "a": doc! { "$elemMatch": doc! { "$gte": 2 } }, "b": 1 },
            r#"{"_id": 1, "b": 4, "a": [2]}"#,
        ),
        (doc! { "a": doc! { "$elemMatch": doc! { "$gte": 9 } } }, r#"{"_id": 1}"#),
    ];
    for (spec, expected) in cases {
        assert_eq!(apply(spec.clone(), Policy::Find, &doc), expected, "{spec:?}");
    }
}

#[test]
fn positional() {
    let run = |filter: Document, path: &str, doc: &Document| {
        let mut spec = Document::new();
        spec.push(path, 1);
        let projection = parse(&spec, Policy::Find);
        let op = OpContext::default();
        let filter = MatchExpr::parse(filter.as_ref(), &mut Scope::new()).expect("parses");
        let details = filter
            .matches_with_position(doc.as_ref(), &op)
            .expect("evaluates")
            .expect("matches");
        let out = projection.apply(&mut Env::new(doc.as_ref(), &op), Some(&details));
        out.map(|d| format!("{d:?}")).map_err(|e| e.code().number())
    };
    let doc = doc! { "a": list([1.into(), 5.into()]), "s": doc! { "l": list([doc! { "x": 1 }.into(), doc! { "x": 2 }.into()]) } };
    assert_eq!(run(doc! { "a": 5 }, "a.$", &doc), Ok(r#"{"a": [5]}"#.into()));
    assert_eq!(
        run(doc! { "s.l.x": 2 }, "s.l.$", &doc),
        Ok(r#"{"s": {"l": [{"x": 2}]}}"#.into())
    );
    assert_eq!(
        run(doc! { "s.l.x": 2 }, "a.$", &doc),
        Ok(r#"{"a": [5]}"#.into()),
        "whatever array it is applied to"
    );
    assert_eq!(run(doc! {}, "a.$", &doc), Err(51246));
}

#[test]
fn errors() {
    use Policy::*;
    let elem = || doc! { "$elemMatch": doc! { "x": 1 } };
    let cases = [
        (Find, doc! { "a": 1, "b": 0 }, 31254),
        (Find, doc! { "a": 0, "b": 1 }, 31253),
        (Find, doc! { "a": 1, "a.b": 1 }, 31249),
        (Find, doc! { "a.b": 1, "a": 1 }, 31250),
        (Find, doc! { "a": 1, "a": 1 }, 31250),
        (Find, doc! { "a": doc! {} }, 51270),
        (Find, doc! { "a": 0, "b": "x" }, 31310),
        (
            Find,
            doc! { "a": 0, "b": doc! { "$eq": list([1.into(), "$a".into()]) } },
            31252,
        ),
        (Find, doc! { "a": doc! { "$nope": 1 } }, 31325),
        (Find, doc! { "a": doc! { "$elemMatch": 1 } }, 31274),
        (Find, doc! { "a.b": elem() }, 31275),
        (Find, doc! { "a.$": 1, "b": elem() }, 31255),
        (Find, doc! { "b": elem(), "a.$": 1 }, 31256),
        (Find, doc! { "a.$": 1, "b.$": 1 }, 31276),
        (Find, doc! { "a.$.b": 1 }, 31394),
        (Find, doc! { "a.$": 0 }, 31395),
        (Find, doc! { "a.$": "x" }, 31308),
        (Find, doc! { "a.$": doc! { "b": 1 } }, 31271),
        (Find, doc! { "a.": 1 }, 40353),
        (Find, doc! { "$a": 1 }, 16410),
        (Project, doc! {}, 51272),
        (Project, doc! { "a.$": 1 }, 31324),
        (AddFields, doc! { "a": 1, "a.b": 1 }, 40176),
        (AddFields, doc! { "a": doc! { "x.y": 1 } }, 40183),
        (AddFields, doc! { "a": doc! { "$bogus": 1 } }, 168),
    ];
    for (policy, spec, code) in cases {
        let error = Projection::parse(spec.as_ref(), &mut Scope::new(), policy).expect_err("must not parse");
        assert_eq!(error.code().number(), code, "{spec:?}: {error}");
    }
    for (operand, code) in [
        (Value::from(1), 31002),
        (list([]), 31119),
        (list([1.into()]), 31120),
        ("a\0".into(), 9527900),
        (list(["a".into(), "a".into()]), 31250),
        (vec!["a"; 201].join(".").into(), 15),
    ] {
        let error = Projection::parse_unset(operand.as_ref()).expect_err("must not parse");
        assert_eq!(error.code().number(), code, "{operand:?}");
    }
}

#[test]
fn included_paths_are_all_that_is_kept() {
    for (spec, expected) in [
        (doc! { "a": 1 }, vec!["_id", "a"]),
        (doc! { "_id": 1 }, vec!["_id"]),
        (doc! { "a.b": 1, "_id": 0 }, vec!["a.b"]),
    ] {
        let paths = parse(&spec, Policy::Find).included_paths().expect("a simple inclusion");
        assert_eq!(paths, expected, "{spec:?}");
    }
    assert_eq!(parse(&doc! { "a": 0 }, Policy::Find).included_paths(), None);
}

/// A random document of few names, so that names of a specification meet fields of each kind.
fn document(random: &Random, levels: usize) -> Document {
    let fields = (0..random.next() % 4).map(|_| (name(random), value(random, levels)));
    let mut out = Document::new();
    for (name, value) in fields {
        out.set(&name, value);
    }
    out
}

fn name(random: &Random) -> Str {
    ["a", "b", "c", "d"][(random.next() % 4) as usize].into()
}

fn value(random: &Random, levels: usize) -> Value {
    match random.next() % if levels > 0 { 5 } else { 3 } {
        0 => Value::Int32((random.next() % 9) as i32),
        1 => Value::Null,
        2 => "text".into(),
        3 => document(random, levels - 1).into(),
        _ => list((0..random.next() % 3).map(|_| value(random, levels - 1))),
    }
}

/// A random specification: paths of up to three names, kept, left out or computed.
fn specification(random: &Random, policy: Policy) -> Document {
    let mut spec = Document::new();
    for _ in 0..=random.next() % 3 {
        let path: Vec<Str> = (0..=random.next() % 3).map(|_| name(random)).collect();
        let computed: Value = match random.next() % 4 {
            0 => "$a".into(),
            1 => "$b.c".into(),
            2 => "$$REMOVE".into(),
            _ => doc! { "$literal": doc! { "x": 1 } }.into(),
        };
        let is_kept = policy == Policy::Project && random.next().is_multiple_of(2);
        let value = if is_kept { Value::Int32(1) } else { computed };
        spec.set(&path.join("."), value);
    }
    spec
}

#[test]
fn bytes_and_values_give_the_same() {
    let random = Random::new(7);
    let mut compared = 0;
    for round in 0..20_000 {
        let policy = [Policy::Project, Policy::AddFields][round % 2];
        let spec = specification(&random, policy);
        // Paths that collide are refused.
        if Projection::parse(spec.as_ref(), &mut Scope::new(), policy).is_ok() {
            apply(spec, policy, &document(&random, 3));
            compared += 1;
        }
    }
    assert!(compared > 10_000, "{compared}");
}

#[test]
fn of_names_that_come_twice_the_first_is_computed() {
    let mut doc = doc! { "a": 1, "b": 2 };
    doc.push("a", 3);
    let spec = doc! { "a": doc! { "$add": list(["$a".into(), 10.into()]) }, "c": "$b" };
    let expected = r#"{"a": 11, "b": 2, "a": 3, "c": 2}"#;
    assert_eq!(apply(spec, Policy::AddFields, &doc), expected);
}

#[test]
fn many_fields_are_computed_once_each() {
    let doc: Document = (0..150)
        .map(|n| (format!("f{}", n * 2).into(), Value::Int32(n)))
        .collect();
    let spec: Document = (0..200).map(|n| (format!("f{n}").into(), "$f0".into())).collect();
    let computed = apply(spec, Policy::AddFields, &doc);
    assert_eq!(computed.matches("\": 0").count(), 200);
    assert!(computed.starts_with(r#"{"f0": 0, "f2": 0, "#), "{computed}");
    assert!(computed.ends_with(r#""f197": 0, "f199": 0}"#), "{computed}");
}

/// What an expression gives once more for each field is counted, whether it is copied or not.
#[test]
fn copies_count_as_memory() {
    let doc = doc! { "a": "x".repeat(1 << 20) };
    let spec: Document = (0..9).map(|n| (format!("f{n}").into(), "$a".into())).collect();
    let projection = parse(&spec, Policy::AddFields);
    let op = OpContext::default();
    let others = mark();
    charge(VALUE_BYTES_MAX - (8 << 20)).expect("as much as may be");
    for doc in [doc.clone(), doc.to_raw().into()] {
        let computed = projection.apply(&mut Env::new(doc.as_ref(), &op), None);
        let error = computed.map(|_| ()).expect_err("too much");
        assert_eq!(error.code(), ErrorCode::ExceededMemoryLimit);
    }
    others.release();
}
