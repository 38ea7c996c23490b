//! Documents whose fields are mostly of one type and seldom of another, and conditions on them.

use nestor_model::{Array, Document, ObjectId, Value, doc};
use nestor_testkit::random::Random;

/// A value, often of the type that the field mostly has.
pub fn value(random: &mut Random, field: &str) -> Option<Value> {
    let odd = random.one_in(40);
    Some(match (field, odd) {
        ("a", false) => Value::Int32(random.below(9) as i32 - 4),
        ("b", false) => Value::Int64(random.below(1 << 20) as i64 * 5_000_000_000),
        ("c", false) => Value::Double(random.below(4000) as f64 / 8.0),
        ("d", false) => format!("text {}", random.below(30)).into(),
        ("e", false) => Value::DateTime(1_700_000_000_000 + random.below(5000) as i64 * 60_000),
        ("f", false) => Value::Bool(random.one_in(2)),
        // Of one type, where there is something.
        ("g", _) => match random.below(20) {
            0 => Value::Null,
            1 => return None,
            _ => Value::Int32(random.below(700) as i32 - 300),
        },
        ("h", _) => Value::DateTime(1_700_000_000_000 + random.below(90_000) as i64 * 1000),
        ("k", _) => format!("key {}", random.below(400)).into(),
        ("i", _) => Value::Int64(random.below(1 << 40) as i64),
        _ => match random.below(9) {
            0 => Value::Null,
            1 => return None,
            2 => Value::Double(f64::NAN),
            3 => Value::Double(-0.0),
            4 => ObjectId([random.below(3) as u8; 12]).into(),
            5 => Value::Int64(2),
            6 => "odd".into(),
            7 => Value::Double(2.0),
            _ => Value::Bool(false),
        },
    })
}

/// A document of fields of all types, arrays among them.
pub fn document(random: &mut Random, id: i64) -> Document {
    let mut out = doc! { "_id": id };
    for name in ["a", "b", "c", "d", "e", "f", "g", "h", "k", "i"] {
        if let Some(value) = value(random, name) {
            out.push(name, value);
        }
    }
    let mut below = Document::new();
    for name in ["a", "d"] {
        if let Some(value) = value(random, name) {
            below.push(name, value);
        }
    }
    // Some of those that come later have their fields in another order.
    if id > 5000 && random.one_in(90) {
        if let Some(first) = out.remove("a") {
            out.push("a", first);
        }
    }
    match random.below(40) {
        0 => out.push("s", Document::new()),
        1 => out.push("s", Value::Null),
        2 => out.push("s", doc! { "u": 1, "v": doc! {} }),
        3 => {}
        _ => out.push(
            "s",
            doc! { "v": doc! { "w": value(random, "a") }, "u": value(random, "d") },
        ),
    }
    if !random.one_in(30) {
        out.push("l", elements(random));
    }
    match random.below(300) {
        0 => out.push("t", "no array"),
        1..10 => out.push("t", Value::Null),
        _ => {
            let tags = (0..random.below(4)).filter_map(|_| value(random, "d"));
            out.push("t", Value::Array(Array::new(tags.collect())));
        }
    }
    match random.below(400) {
        // Arrays make a part of the documents one that columns do not have.
        0 => out.push("n", Value::Array(Array::new(vec![below.into()]))),
        1..=9 => {}
        _ => out.push("n", below),
    }
    out
}

/// Elements of an array, seldom one that is no document.
fn elements(random: &mut Random) -> Value {
    let element = |random: &mut Random| {
        let mut out = Document::new();
        for name in ["a", "d", "g", "h"] {
            if let Some(value) = value(random, name) {
                out.push(name, value);
            }
        }
        if random.one_in(3) {
            out.push("n", doc! { "a": value(random, "a").unwrap_or(Value::Null) });
        }
        if random.one_in(3000) {
            Value::Null
        } else {
            Value::from(out)
        }
    };
    Value::Array(Array::new((0..random.below(4)).map(|_| element(random)).collect()))
}

/// Paths of these documents, but for those of arrays.
pub const PATHS: [&str; 15] = [
    "a", "b", "c", "d", "e", "f", "g", "h", "k", "n.a", "n.d", "nothing", "s.u", "s.v.w", "s.v",
];

/// Paths of elements of arrays, and of what stands beside these, once they are unwound.
pub const UNWOUND: [&str; 13] = [
    "a",
    "d",
    "n.a",
    "nothing",
    "s.u",
    "l.a",
    "l.d",
    "l.g",
    "l.h",
    "l.n.a",
    "t",
    "l.nothing",
    "at",
];

/// A condition.
pub fn condition(random: &mut Random, depth: usize) -> Document {
    condition_on(random, depth, &PATHS)
}

/// A condition on arrays, or on their elements.
fn of_arrays(random: &mut Random) -> Document {
    let path = *random.pick(&[
        "l.a",
        "l.d",
        "l.g",
        "l.n.a",
        "t",
        "t",
        "t.0",
        "l.0.a",
        "l.nothing",
        "t.x",
    ]);
    let field = if path.starts_with('t') {
        "d"
    } else {
        path.rsplit('.').next().unwrap_or(path)
    };
    let with = |random: &mut Random| value(random, field).unwrap_or(Value::Null);
    let (one, other) = (with(random), with(random));
    let mut out = Document::new();
    match random.below(9) {
        0 => out.push(path, one),
        1 => out.push(path, doc! { "$in": vec![one, other] }),
        2 => out.push(path, doc! { "$nin": vec![one, other] }),
        3 => out.push("t", doc! { "$regex": "1" }),
        4 => {
            let mut test = condition_on(random, 1, &["a", "d", "g", "n.a"]);
            while format!("{test:?}").contains("$expr") {
                test = condition_on(random, 1, &["a", "d", "g", "n.a"]);
            }
            out.push("l", doc! { "$elemMatch": test });
        }
        5 => out.push("t", doc! { "$elemMatch": doc! { "$gte": one } }),
        6 => out.push("l.g", doc! { "$mod": vec![Value::Int32(3), Value::Int32(1)] }),
        7 => out.push(path, doc! { "$ne": one }),
        _ => {
            let mut test = Document::new();
            test.push(*random.pick(&["$gt", "$gte", "$lt", "$lte"]), one);
            out.push(path, test);
        }
    }
    out
}

pub fn condition_on(random: &mut Random, depth: usize, paths: &[&str]) -> Document {
    if depth > 0 && random.one_in(3) {
        let parts: Vec<Value> = (0..1 + random.below(3))
            .map(|_| condition_on(random, depth - 1, paths).into())
            .collect();
        let mut out = Document::new();
        out.push(*random.pick(&["$and", "$or", "$nor"]), Value::Array(Array::new(parts)));
        return out;
    }
    if paths.len() == PATHS.len() && random.one_in(5) {
        return of_arrays(random);
    }
    let path = *random.pick(paths);
    let field = path.rsplit('.').next().unwrap_or(path);
    let with = value(random, field).unwrap_or(Value::Null);
    let mut test = Document::new();
    match random.below(8) {
        0 => test.push("$exists", random.one_in(2)),
        1 => test.push(
            "$type",
            *random.pick(&["int", "number", "string", "date", "bool", "null"]),
        ),
        2 => test.push(
            "$in",
            Value::Array(Array::new(vec![
                with,
                Value::Null,
                value(random, field).unwrap_or(Value::Null),
            ])),
        ),
        3 => test.push("$not", doc! { "$gt": with }),
        _ => test.push(*random.pick(&["$eq", "$ne", "$lt", "$lte", "$gt", "$gte"]), with),
    }
    if random.one_in(12) {
        return doc! { "$expr": doc! { "$gt": vec![Value::from(format!("${path}")), value(random, field).unwrap_or(Value::Null)] } };
    }
    let mut out = Document::new();
    out.push(path, test);
    out
}
