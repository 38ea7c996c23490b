//! Filters and plain projections against the reference evaluator: random documents with arrays in odd
//! places, random filters. Same answer from owned and raw documents, parsed and normalized filters,
//! and from the filter that a filter prints as.

use nestor_model::{Array, Document, Value};
use nestor_query::matcher::Filter;
use nestor_query::projection::Policy;
use nestor_query::{MatchExpr, OpContext, Projection, Scope};
use nestor_testkit::random::Random;
use nestor_testkit::reference;

fn path(random: &mut Random) -> String {
    let mut path = (*random.pick(&["a", "b", "c", "0"])).to_owned();
    for _ in 0..random.below(3) {
        path.push('.');
        path.push_str(random.pick::<&str>(&["a", "b", "0", "1"]));
    }
    path
}

/// A value that may be compared to.
fn operand(random: &mut Random, depth: usize) -> Value {
    loop {
        let value = random.value(depth);
        if !matches!(value, Value::Undefined) {
            return value;
        }
    }
}

fn list(random: &mut Random) -> Value {
    let length = random.below(4);
    (0..length).map(|_| operand(random, 1)).collect::<Array>().into()
}

fn operators(random: &mut Random, depth: usize) -> Document {
    let mut doc = Document::new();
    for _ in 0..1 + random.below(2) {
        let operator = *random.pick(&[
            "$eq",
            "$ne",
            "$lt",
            "$lte",
            "$gt",
            "$gte",
            "$in",
            "$nin",
            "$exists",
            "$type",
            "$size",
            "$all",
            "$not",
            "$elemMatch",
        ]);
        let value = match operator {
            "$in" | "$nin" | "$all" => list(random),
            "$exists" => Value::Bool(random.one_in(2)),
            "$type" => (*random.pick(&["int", "number", "array", "object", "null", "string", "undefined"])).into(),
            "$size" => Value::Int32(random.below(4) as i32),
            "$not" | "$elemMatch" if depth == 0 => continue,
            "$not" => operators(random, depth - 1).into(),
            "$elemMatch" if random.one_in(2) => operators(random, depth - 1).into(),
            "$elemMatch" => filter(random, depth - 1, false).into(),
            _ => operand(random, 2),
        };
        doc.set(operator, value);
    }
    if doc.is_empty() {
        doc.push("$exists", true);
    }
    doc
}

fn filter(random: &mut Random, depth: usize, logical: bool) -> Document {
    let mut doc = Document::new();
    for _ in 0..1 + random.below(2) {
        if logical && depth > 0 && random.one_in(3) {
            let count = 1 + random.below(3);
            let children = (0..count).map(|_| Value::Document(filter(random, depth - 1, true)));
            let children: Array = children.collect();
            doc.set(random.pick::<&str>(&["$and", "$or", "$nor"]), children);
            continue;
        }
        let path = path(random);
        let condition = if random.one_in(4) {
            operand(random, 2)
        } else {
            operators(random, depth).into()
        };
        doc.set(&path, condition);
    }
    doc
}

/// Whether the random filter matched the random document.
fn check_filter(seed: u64) -> bool {
    let mut random = Random::new(seed);
    let doc = random.document(3);
    let filter = filter(&mut random, 2, true);
    let expected = reference::matching::matches(&filter, &doc);
    let op = OpContext::default();
    let case = |form: &str| format!("seed {seed}, {form}\n{doc:?}\n{filter:?}");
    let parse = |filter: &Document| {
        MatchExpr::parse(filter.as_ref(), &mut Scope::new()).unwrap_or_else(|e| panic!("{e}: {}", case("parse")))
    };
    let raw = Document::from(doc.to_raw());
    let parsed = parse(&filter);
    let normalized = parsed.clone().normalize();
    let printed = parse(&normalized.serialize());
    for (form, expr) in [("parsed", parsed), ("normalized", normalized), ("printed", printed)] {
        for doc in [&doc, &raw] {
            let got = expr.matches(doc.as_ref(), &op).expect("nothing here can fail");
            assert_eq!(got, expected, "{}", case(form));
            let details = expr
                .matches_with_position(doc.as_ref(), &op)
                .expect("nothing here can fail");
            assert_eq!(details.is_some(), expected, "{}", case(form));
            let filter = Filter::new(expr.clone());
            let got = filter
                .matches_with_position(doc.as_ref(), &op)
                .expect("nothing here can fail");
            assert_eq!(got, details, "{}", case("in one pass"));
        }
    }
    expected
}

#[test]
fn same_answer() {
    const CASES: u64 = 60_000;
    let matched = (0..CASES).filter(|seed| check_filter(*seed)).count() as u64;
    assert!(
        matched > CASES / 10 && matched < CASES * 9 / 10,
        "the generator makes filters that tell documents apart: {matched}"
    );
}

#[test]
fn same_projection() {
    for seed in 0..20_000 {
        let mut random = Random::new(seed);
        let doc = random.document(3);
        let include = random.one_in(2);
        let mut paths: Vec<String> = Vec::new();
        for _ in 0..1 + random.below(3) {
            let new = path(&mut random);
            let collides =
                |p: &String| *p == new || p.starts_with(&format!("{new}.")) || new.starts_with(&format!("{p}."));
            if !paths.iter().any(collides) {
                paths.push(new);
            }
        }
        let mut spec = Document::new();
        for path in &paths {
            spec.push(path.as_str(), include);
        }
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let expected = format!("{:?}", reference::projecting::project(&doc, &paths, include));
        let projection = Projection::parse(spec.as_ref(), &mut Scope::new(), Policy::Find).expect("well-formed");
        let raw = doc.to_raw();
        assert_eq!(
            format!("{:?}", projection.apply_raw_to_buf(raw.as_raw())),
            expected,
            "seed {seed} {spec:?}"
        );
        let op = OpContext::default();
        let mut env = nestor_query::Env::new(doc.as_ref(), &op);
        let owned = projection.apply(&mut env, None).expect("nothing is computed");
        assert_eq!(format!("{owned:?}"), expected, "seed {seed} {spec:?}");
    }
}
