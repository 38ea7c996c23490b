//! Pipelines of any stages with arguments that are likely enough to get past parsing.

use crate::expressions::Generator;
use nestor_model::{Array, Document, Value, doc};

const PATHS: [&str; 8] = ["a", "b", "c", "a.b", "d.a", "0", "_id", "x"];
const ACCUMULATORS: [&str; 13] = [
    "$sum",
    "$avg",
    "$min",
    "$max",
    "$first",
    "$last",
    "$push",
    "$addToSet",
    "$stdDevPop",
    "$stdDevSamp",
    "$mergeObjects",
    "$concatArrays",
    "$setUnion",
];
const RANKS: [&str; 3] = ["$rank", "$denseRank", "$documentNumber"];

/// A pipeline of up to four stages; `depth` bounds pipelines within pipelines and expressions.
pub fn pipeline(generator: &mut Generator, depth: usize) -> Array {
    let count = 1 + generator.random.below(4);
    (0..count).map(|_| Value::from(stage(generator, depth))).collect()
}

/// The names of the stages that [`pipeline`] makes have nothing to do with other collections and servers' state.
fn stage(generator: &mut Generator, depth: usize) -> Document {
    let inner = |generator: &mut Generator| pipeline(generator, depth.saturating_sub(1));
    match generator.random.below(if depth > 0 { 24 } else { 20 }) {
        0 => doc! { "$match": filter(generator, depth) },
        1 => doc! { "$match": doc! { "$expr": generator.expression(depth) } },
        2 => doc! { "$project": fields(generator, depth) },
        3 => doc! { "$set": fields(generator, depth) },
        4 => doc! { "$unset": path(generator) },
        5 => doc! { "$replaceWith": doc! { "a": generator.expression(depth), "b": generator.leaf() } },
        6 => doc! { "$sort": sort(generator) },
        7 => doc! { "$limit": 1 + generator.random.below(5) as i32 },
        8 => doc! { "$skip": generator.random.below(3) as i32 },
        9 => doc! { "$unwind": doc! {
        "path": format!("${}", path(generator)), "preserveNullAndEmptyArrays": generator.random.one_in(2),
        "includeArrayIndex": "x" } },
        10 | 11 => group(generator, depth),
        12 => doc! { "$bucket": doc! {
        "groupBy": generator.leaf(), "boundaries": vec![0.into(), 2.into(), Value::Int64(i64::MAX)], "default": "other" } },
        13 => {
            doc! { "$bucketAuto": doc! { "groupBy": generator.expression(depth), "buckets": 1 + generator.random.below(4) as i32 } }
        }
        14 => doc! { "$sortByCount": generator.expression(depth.max(1)) },
        15 => window(generator, depth),
        16 => {
            let method = doc! { "method": *generator.random.pick(&["linear", "locf"]) };
            doc! { "$fill": doc! { "sortBy": doc! { "_id": 1 }, "output": one(path(generator), method) } }
        }
        17 => densify(generator),
        18 => doc! { "$redact": doc! { "$cond": vec![
        generator.expression(depth), (*generator.random.pick(&["$$DESCEND", "$$KEEP"])).into(), "$$PRUNE".into()] } },
        19 => doc! { "$sample": doc! { "size": 1 + generator.random.below(4) as i32 } },
        20 => doc! { "$facet": doc! { "p": inner(generator), "q": inner(generator) } },
        21 => doc! { "$lookup": doc! {
        "from": "c", "localField": path(generator), "foreignField": path(generator), "as": path(generator),
        "let": doc! { "v": generator.leaf() }, "pipeline": inner(generator) } },
        22 => doc! { "$unionWith": doc! { "coll": "c", "pipeline": inner(generator) } },
        _ => doc! { "$graphLookup": doc! {
        "from": "c", "startWith": generator.leaf(), "connectFromField": path(generator),
        "connectToField": path(generator), "as": "g", "maxDepth": generator.random.below(3) as i32 } },
    }
}

fn one(name: &str, value: impl Into<Value>) -> Document {
    let mut doc = Document::new();
    doc.push(name, value);
    doc
}

fn path(generator: &mut Generator) -> &'static str {
    let path: &&str = generator.random.pick(&PATHS);
    path
}

fn filter(generator: &mut Generator, depth: usize) -> Document {
    let operator = *generator.random.pick(&[
        "$eq",
        "$gt",
        "$lte",
        "$ne",
        "$exists",
        "$type",
        "$size",
        "$in",
        "$elemMatch",
    ]);
    let operand = match operator {
        "$in" => vec![generator.random.value(1), generator.random.value(1)].into(),
        "$elemMatch" if depth > 0 => filter(generator, depth - 1).into(),
        _ => generator.random.value(1),
    };
    one(path(generator), doc! { operator: operand })
}

fn fields(generator: &mut Generator, depth: usize) -> Document {
    let mut fields = Document::new();
    for _ in 0..1 + generator.random.below(3) {
        let value = match generator.random.below(4) {
            0 => 1.into(),
            1 => generator.leaf(),
            _ => generator.expression(depth),
        };
        fields.push(path(generator), value);
    }
    fields
}

fn sort(generator: &mut Generator) -> Document {
    let mut sort = Document::new();
    for _ in 0..1 + generator.random.below(2) {
        sort.push(path(generator), if generator.random.one_in(2) { 1 } else { -1 });
    }
    sort
}

fn accumulator(generator: &mut Generator, depth: usize) -> Document {
    match generator.random.below(5) {
        0 => {
            let name = *generator.random.pick(&["$firstN", "$lastN", "$minN", "$maxN"]);
            let n = 1 + generator.random.below(3) as i32;
            doc! { name: doc! { "n": n, "input": generator.expression(depth) } }
        }
        1 => {
            let name = *generator.random.pick(&["$top", "$bottom"]);
            doc! { name: doc! { "sortBy": sort(generator), "output": generator.expression(depth) } }
        }
        2 => doc! { "$percentile": doc! {
        "input": generator.expression(depth), "p": vec![0.5.into(), 1.into()], "method": "approximate" } },
        _ => {
            let name = *generator.random.pick(&ACCUMULATORS);
            doc! { name: generator.expression(depth) }
        }
    }
}

fn group(generator: &mut Generator, depth: usize) -> Document {
    let id = generator.expression(depth);
    doc! { "$group": doc! {
    "_id": id, "p": accumulator(generator, depth), "q": accumulator(generator, depth) } }
}

fn window(generator: &mut Generator, depth: usize) -> Document {
    let bounds = generator
        .random
        .pick(&[
            doc! { "documents": vec![(-1).into(), 1.into()] },
            doc! { "documents": vec!["unbounded".into(), "current".into()] },
            doc! { "range": vec![(-1).into(), 2.5.into()] },
            doc! { "range": vec![(-1).into(), 1.into()], "unit": "day" },
        ])
        .clone();
    let mut function = match generator.random.below(6) {
        0 => {
            let rank = *generator.random.pick(&RANKS);
            let output = doc! { "w": one(rank, Document::new()) };
            return doc! { "$setWindowFields": doc! { "sortBy": one(path(generator), 1), "output": output } };
        }
        1 => {
            let name = *generator.random.pick(&["$derivative", "$integral"]);
            doc! { name: doc! { "input": generator.expression(depth) } }
        }
        2 => {
            let name = *generator.random.pick(&["$covariancePop", "$covarianceSamp"]);
            doc! { name: vec![generator.leaf(), generator.expression(depth)] }
        }
        3 => doc! { "$minMaxScaler": doc! { "input": generator.leaf() } },
        _ => accumulator(generator, depth),
    };
    function.push("window", bounds);
    let partition = if generator.random.one_in(2) {
        generator.leaf()
    } else {
        Value::Null
    };
    let (sort, output) = (one(path(generator), 1), one(path(generator), function));
    doc! { "$setWindowFields": doc! { "partitionBy": partition, "sortBy": sort, "output": output } }
}

fn densify(generator: &mut Generator) -> Document {
    let step = generator
        .random
        .pick(&[
            Value::Int32(1),
            Value::Double(0.5),
            Value::Int64(i64::MAX),
            Value::Double(1e-9),
        ])
        .clone();
    let bounds = generator
        .random
        .pick(&[
            Value::from("full"),
            Value::from("partition"),
            Value::from(vec![Value::Int32(0), Value::Int32(5)]),
            Value::from(vec![Value::Double(-1e300), Value::Int64(i64::MAX)]),
        ])
        .clone();
    doc! { "$densify": doc! { "field": path(generator), "range": doc! { "step": step, "bounds": bounds } } }
}
