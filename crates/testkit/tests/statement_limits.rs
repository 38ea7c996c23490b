//! Whatever a statement computes, it looks at its interrupt after a bounded amount of work, and its values stay within
//! their limit of memory.
//!
//! What is bounded is work, not time: debug builds count each expression evaluated and each array element visited
//! (`statement::effort`), where the code that has to count its work for the interrupt cannot forget it.

use nestor_command::{Connection, Request, Service};
use nestor_database::DatabaseOptions;
use nestor_model::interrupt::Interrupt;
use nestor_model::statement::{self, UNITS, effort};
use nestor_model::{Array, Document, Error, RawDoc, Result, Value, ValueRef, doc};
use nestor_query::projection::Policy;
use nestor_query::{Env, Expr, MatchExpr, OpContext, Projection, Scope};
use nestor_storage::{Engine, EngineOptions};
use nestor_testkit::random::Random;
use nestor_testkit::shell;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most that may be visited between two looks: each visit is a unit of work, and conversions and copies visit the elements of
/// one value twice or thrice without another unit.
const EFFORT_MAX: u64 = 4 * UNITS as u64;

/// Long enough for some hundred looks.
const EACH: Duration = Duration::from_millis(15);

fn limited<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    let interrupt = Interrupt::new(Arc::default(), Some(Instant::now() + EACH));
    effort::take_most();
    statement::under(&interrupt, None, run)
}

/// A document with large arrays of several kinds.
fn large() -> Document {
    let numbers: Array = (0..3_000).map(|n| Value::Int32(n * 7 % 1_000)).collect();
    let documents: Array = (0..1_500)
        .map(|n| {
            Value::from(
                doc! { "k": (n % 100).to_string(), "v": n, "w": Value::from(vec![Value::Int32(n), Value::Null]) },
            )
        })
        .collect();
    let object: Document = (0..1_000).map(|n| (format!("f{n}").into(), Value::Int32(n))).collect();
    doc! { "n": numbers, "d": documents, "o": object, "s": "ab ".repeat(20_000), "x": 5 }
}

/// Expressions that are expensive: loops in loops over large arrays.
struct Costly(Random);

impl Costly {
    fn array(&mut self, depth: usize) -> Value {
        if depth == 0 {
            return self.0.pick(&["$n", "$d", "$d.w", "$n", "$$ROOT.d"]).to_owned().into();
        }
        let input = self.array(depth - 1);
        let other = self.array(depth - 1);
        let body = self.scalar(depth - 1);
        match self.0.below(16) {
            0 => doc! { "$range": vec![0.into(), 40_000.into()] }.into(),
            1 => doc! { "$map": doc! { "input": input, "in": body } }.into(),
            2 => doc! { "$filter": doc! { "input": input, "cond": body } }.into(),
            3 => doc! { "$reduce": doc! {
                "input": input, "initialValue": Vec::new(),
                "in": doc! { "$concatArrays": vec!["$$value".into(), vec![body].into()] } } }
            .into(),
            4 => doc! { "$concatArrays": vec![input.clone(), other, input] }.into(),
            5 => doc! { "$setUnion": vec![input, other] }.into(),
            6 => doc! { "$setIntersection": vec![input, other] }.into(),
            7 => doc! { "$setDifference": vec![input, other] }.into(),
            8 => doc! { "$sortArray": doc! { "input": input, "sortBy": 1 } }.into(),
            9 => doc! { "$zip": doc! { "inputs": vec![input, other] } }.into(),
            10 => doc! { "$objectToArray": "$o" }.into(),
            11 => doc! { "$reverseArray": input }.into(),
            12 => doc! { "$slice": vec![input, 5_000.into()] }.into(),
            13 => doc! { "$maxN": doc! { "n": 100, "input": input } }.into(),
            14 => doc! { "$split": vec!["$s".into(), " ".into()] }.into(),
            _ => doc! { "$let": doc! { "vars": doc! { "a": input }, "in": doc! { "$concatArrays": vec!["$$a".into(), "$$a".into()] } } }
                .into(),
        }
    }

    fn scalar(&mut self, depth: usize) -> Value {
        if depth == 0 {
            return self.0.pick(&["$x", "$$this", "$$this.v", "$$this"]).to_owned().into();
        }
        let array = self.array(depth - 1);
        let other = self.array(depth - 1);
        let item = self.scalar(depth - 1);
        match self.0.below(12) {
            0 => doc! { "$size": array }.into(),
            1 => doc! { "$in": vec![item, array] }.into(),
            2 => doc! { "$indexOfArray": vec![array, item] }.into(),
            3 => doc! { "$sum": array }.into(),
            4 => doc! { "$eq": vec![array, other] }.into(),
            5 => doc! { "$max": array }.into(),
            6 => doc! { "$setIsSubset": vec![array, other] }.into(),
            7 => doc! { "$anyElementTrue": vec![array] }.into(),
            8 => doc! { "$mergeObjects": vec![Value::from("$o"), "$o".into()] }.into(),
            9 => doc! { "$stdDevPop": array }.into(),
            10 => doc! { "$median": doc! { "input": array, "method": "approximate" } }.into(),
            _ => doc! { "$concat": vec![Value::from("$s"), "$s".into()] }.into(),
        }
    }
}

#[test]
fn expressions_look_at_the_interrupt_after_bounded_work() {
    let mut costly = Costly(Random::new(5));
    let (doc, op) = (large(), OpContext::default());
    let raw = Document::from(doc.to_raw());
    let (mut ended, mut values) = (0, 0);
    for i in 0..150 {
        let text = costly.array(1 + i % 4);
        let result = limited(|| {
            let expr = Expr::parse(text.as_ref(), &mut Scope::with_vars(["this"]))?;
            // Outside of a loop the element is missing.
            let op = op.with_vars(vec![Value::Missing]);
            let root = if i % 2 == 0 { &doc } else { &raw };
            expr.eval(&mut Env::new(root.as_ref(), &op))
        });
        match result {
            Err(error) if error.code().number() == 50 => ended += 1,
            Err(_) => {}
            Ok(_) => values += 1,
        }
        let most = effort::take_most();
        assert!(most <= EFFORT_MAX, "{most} between two looks: {text:?}");
    }
    assert!(ended >= 20 && values >= 20, "{ended} ended, {values} values");
}

#[test]
fn filters_and_projections_look_at_the_interrupt_after_bounded_work() {
    let (doc, op) = (large().to_raw(), OpContext::default());
    let run = |filter: &str| -> Result<bool> {
        let filter = shell::document(filter).expect("a filter");
        limited(|| {
            let filter = MatchExpr::parse(filter.as_ref(), &mut Scope::new())?;
            for _ in 0..20 {
                filter.matches(doc.as_raw().as_doc(), &op)?;
            }
            Ok(true)
        })
    };
    for filter in [
        r#"{n: 5000}"#,
        r#"{"d.w": {$in: [-1, -2]}}"#,
        r#"{d: {$elemMatch: {w: {$elemMatch: {$gt: 5, $lt: 3}}}}}"#,
        r#"{$or: [{"d.v": -1}, {"d.k": "x"}, {n: {$mod: [7, 9]}}, {n: {$bitsAllSet: [30]}}]}"#,
        r#"{$jsonSchema: {properties: {n: {items: {type: "int"}}, d: {uniqueItems: true, items: {required: ["k"]}}}}}"#,
        r#"{$expr: {$in: ["x", "$d.k"]}}"#,
    ] {
        let _ = run(filter);
        let most = effort::take_most();
        assert!(most <= EFFORT_MAX, "{most} between two looks: {filter}");
    }
    let spec = doc! { "d": doc! { "z": doc! { "$size": "$n" } } };
    let projected = limited(|| {
        let projection = Projection::parse(spec.as_ref(), &mut Scope::new(), Policy::AddFields)?;
        projection.apply(&mut Env::new(doc.as_raw().as_doc(), &op), None)
    });
    let most = effort::take_most();
    assert!(most <= EFFORT_MAX, "{most} between two looks");
    assert!(projected.map_or_else(|e| e.code().number() == 50, |d| d.get("d").is_some()));
}

struct Server {
    service: Service,
    connection: Connection,
}

impl Server {
    fn new() -> Self {
        let service = Service::new(
            DatabaseOptions::default(),
            Engine::ephemeral(EngineOptions::at_time(1_700_000_000)),
        );
        let connection = Connection::new(&service, "limits");
        Self { service, connection }
    }

    /// The error code of a command, 0 when it succeeds.
    fn code(&mut self, command: &str) -> i32 {
        let mut command = shell::document(command).unwrap_or_else(|e| panic!("{command}: {e}"));
        command.push("$db", "test");
        let raw = command.to_raw();
        let outcome = self.service.run(&mut self.connection, Request::new(raw.as_raw()));
        let reply = RawDoc::validate(&outcome.reply).expect("a reply is BSON");
        match reply.get("code") {
            Some(ValueRef::Int32(code)) => code,
            _ => 0,
        }
    }
}

/// Six `$lookup`s, each within the other, none of which finds anything in the end.
fn nested_lookups() -> String {
    (0..6).fold("[{$match: {none: 1}}]".to_owned(), |inner, _| {
        format!(
            r#"[{{$lookup: {{from: "c", pipeline: {inner}, let: {{v: "$_id"}}, as: "m"}}}}, {{$match: {{none: 1}}}}]"#
        )
        .replace("{$match: {none: 1}}]", "{$match: {$expr: {$ne: [\"$m\", 5]}}}]")
    })
}

#[test]
fn statements_end_in_time() {
    let mut server = Server::new();
    let docs: Vec<String> = (0..20).map(|n| format!("{{_id: {n}, a: 1}}")).collect();
    assert_eq!(
        server.code(&format!("{{insert: \"c\", documents: [{}]}}", docs.join(", "))),
        0
    );
    assert_eq!(server.code(r#"{insert: "one", documents: [{_id: 1}]}"#), 0);
    let range = |n: u32| format!("{{$range: [0, {n}]}}");
    let pipelines = [
        format!(
            "[{{$project: {{x: {{$reduce: {{input: {}, initialValue: 0, in: {{$size: {{$filter: {{input: {}, cond: {{$gt: [\"$$this\", \"$$value\"]}}}}}}}}}}}}}}}}]",
            range(50_000),
            range(100_000)
        ),
        format!(
            "[{{$set: {{a: {}}}}}, {{$project: {{x: {{$filter: {{input: \"$a\", as: \"x\", cond: {{$in: [-1, {{$filter: {{input: \"$a\", cond: {{$gt: [\"$$this\", \"$$x\"]}}}}}}]}}}}}}}}}}]",
            range(30_000)
        ),
        format!(
            "[{{$set: {{a: {}}}}}, {{$match: {{$expr: {{$eq: [{{$size: {{$filter: {{input: \"$a\", cond: {{$not: {{$in: [\"$$this\", \"$a\"]}}}}}}}}}}, 1]}}}}}}]",
            range(60_000)
        ),
        nested_lookups(),
        format!(
            "[{{$set: {{a: {}}}}}, {{$unwind: \"$a\"}}, {{$setWindowFields: {{sortBy: {{a: 1}}, output: {{p: {{$push: \"$a\", window: {{documents: [-20000, 20000]}}}}}}}}}}]",
            range(60_000)
        ),
    ];
    for pipeline in pipelines {
        for collection in ["one", "c"] {
            effort::take_most();
            let started = Instant::now();
            let code = server.code(&format!(
                "{{aggregate: \"{collection}\", pipeline: {pipeline}, cursor: {{}}, maxTimeMS: 150}}"
            ));
            assert!(matches!(code, 50 | 146), "{code}: {pipeline}");
            // Ended by its time limit, not by its own end: each would run for many minutes. How soon it looks at the limit is
            // asked below, by work.
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "{:?}: {pipeline}",
                started.elapsed()
            );
            let most = effort::take_most();
            assert!(most <= 2 * EFFORT_MAX, "{most} between two looks: {pipeline}");
        }
    }
}

/// What stages and writes do with one row: many elements of an array, many rows with one key, many entries that do not match.
#[test]
fn stages_and_writes_look_at_the_interrupt_after_bounded_work() {
    const MANY: i32 = 20_000;
    let mut server = Server::new();
    let number = |at: i32| Value::Int32(at);
    let all = || Array::new((0..MANY).map(number).collect());
    let rows = (0..MANY).map(|at| Value::Document(doc! { "_id": at, "k": 1, "v": at, "w": at % 7 }));
    let joined = (0..MANY).map(|at| Value::Document(doc! { "_id": at, "f": at }));
    let one = || Value::Document(doc! { "_id": 1, "a": all() });
    let mut run = |mut command: Document| {
        command.push("$db", "test");
        let raw = command.to_raw();
        effort::take_most();
        let outcome = server.service.run(&mut server.connection, Request::new(raw.as_raw()));
        let most = effort::take_most();
        let shown: String = shell::print(&Value::Document(command)).chars().take(300).collect();
        let reply = RawDoc::validate(&outcome.reply).expect("a reply is BSON");
        assert!(
            reply.get("ok").is_some_and(ValueRef::truthy) && reply.get("writeErrors").is_none(),
            "{shown}: {reply:?}"
        );
        assert!(most <= EFFORT_MAX, "{most} between two looks: {shown}");
    };
    let index = |collection: &str, key: Document| {
        let name = format!("i{}", key.len());
        let index = Value::Document(doc! { "key": key, "name": name.as_str() });
        doc! { "createIndexes": collection, "indexes": vec![index] }
    };
    run(doc! { "insert": "rows", "documents": Array::new(rows.collect()) });
    run(doc! { "insert": "joined", "documents": Array::new(joined.collect()) });
    run(doc! { "insert": "built", "documents": vec![one()] });
    // Keys of a large array: written, changed and removed, and those of a collection that is there already.
    run(index("written", doc! { "a": 1 }));
    run(doc! { "insert": "written", "documents": vec![one()] });
    let update = doc! { "q": doc! { "_id": 1 }, "u": doc! { "$set": doc! { "a": vec![number(-1)] } } };
    run(doc! { "update": "written", "updates": vec![Value::Document(update)] });
    let update = doc! { "q": doc! { "_id": 1 }, "u": doc! { "$set": doc! { "a": all() } } };
    run(doc! { "update": "written", "updates": vec![Value::Document(update)] });
    let delete = doc! { "q": doc! { "_id": 1 }, "limit": 1 };
    run(doc! { "delete": "written", "deletes": vec![Value::Document(delete)] });
    run(index("built", doc! { "a": 1 }));
    // Entries between which the scan jumps, none of which matches.
    run(index("rows", doc! { "v": 1, "w": 1 }));
    run(doc! { "find": "rows", "filter": doc! { "v": doc! { "$gte": 0 }, "w": 9 }, "hint": doc! { "v": 1, "w": 1 } });
    let aggregate = |collection: &str, stages: &str| {
        let stages = shell::document(&format!("{{p: [{stages}]}}")).unwrap_or_else(|e| panic!("{stages}: {e}"));
        let stages = stages.get("p").map(ValueRef::to_value);
        doc! { "aggregate": collection, "pipeline": stages, "cursor": doc! { "batchSize": 5 } }
    };
    for stages in [
        r#"{$bucketAuto: {groupBy: "$k", buckets: 5, output: {n: {$sum: 1}}}}"#,
        r#"{$group: {_id: "$_id"}}, {$match: {_id: -1}}"#,
        r#"{$sort: {k: -1, v: -1}}, {$match: {none: 1}}"#,
        r#"{$densify: {field: "v", range: {step: 1, bounds: "full"}}}, {$match: {none: 1}}"#,
        r#"{$setWindowFields: {sortBy: {v: 1}, output: {n: {$first: "$v"}}}}, {$match: {none: 1}}"#,
        r#"{$setWindowFields: {sortBy: {v: 1}, output: {n: {$sum: "$w", window: {range: ["unbounded", 15000]}}}}}, {$limit: 1}"#,
        r#"{$facet: {a: [{$group: {_id: "$v"}}, {$match: {_id: -1}}], b: [{$sort: {w: 1}}, {$skip: 19999}]}}"#,
    ] {
        run(aggregate("rows", stages));
    }
    // The frames of the last rows hold all others; those of the others are empty.
    let far = (MANY..MANY + 3).map(|at| Value::Document(doc! { "_id": at, "v": 1_000_000 + at, "w": 1 }));
    run(doc! { "aggregate": "rows", "pipeline": vec![Value::Document(doc! { "$out": "far" })], "cursor": doc! {} });
    run(doc! { "insert": "far", "documents": Array::new(far.collect()) });
    for of_frames in [
        "$integral: {input: \"$w\"}",
        "$minMaxScaler: {input: \"$w\"}",
        "$sum: \"$w\"",
    ] {
        let window = r#"window: {range: ["unbounded", -500000]}"#;
        let stages = format!(
            "{{$setWindowFields: {{sortBy: {{v: 1}}, output: {{n: {{{of_frames}, {window}}}}}}}}}, {{$limit: 1}}"
        );
        run(aggregate("far", &stages));
    }
    let equality = r#"{$lookup: {from: "joined", localField: "a", foreignField: "f", as: "r"}}, {$unwind: "$r"}, {$match: {none: 1}}"#;
    for stages in [
        equality,
        r#"{$lookup: {from: "joined", localField: "a", foreignField: "_id", as: "r"}}, {$project: {n: {$size: "$r"}}}"#,
        r#"{$lookup: {from: "built", localField: "_id", foreignField: "_id", as: "r"}}, {$project: {n: {$size: "$r"}}}"#,
        r#"{$graphLookup: {from: "built", startWith: "$a", connectFromField: "a", connectToField: "_id", as: "r", maxDepth: 1}}, {$project: {n: {$size: "$r"}}}"#,
        r#"{$lookup: {pipeline: [{$documents: {$map: {input: {$range: [0, 20000]}, in: {f: "$$this"}}}}], as: "r"}}, {$project: {n: {$size: "$r"}}}"#,
    ] {
        run(aggregate("built", stages));
    }
    run(index("joined", doc! { "f": 1 }));
    run(aggregate("built", equality));
}

#[test]
fn bombs_end_with_an_error() {
    let mut server = Server::new();
    assert_eq!(server.code(r#"{insert: "one", documents: [{_id: 1}]}"#), 0);
    let doubling = |rounds: u32, body: &str, first: &str| {
        format!(
            "{{$project: {{x: {{$reduce: {{input: {{$range: [0, {rounds}]}}, initialValue: {first}, in: {body}}}}}}}}}"
        )
    };
    // A thousand stages, each of which doubles what the one before gave.
    let stages = vec!["{$set: {a: [\"$a\", \"$a\"]}}"; 100].join(", ");
    let wide = vec!["{$set: {a: {$concatArrays: [\"$a\", \"$a\"]}}}"; 40].join(", ");
    for (pipeline, codes) in [
        (
            doubling(30, r#"{$concatArrays: ["$$value", "$$value"]}"#, "[1]"),
            [146, 146],
        ),
        (doubling(190, r#"["$$value", "$$value"]"#, "[1]"), [146, 15]),
        (doubling(190, r#"{a: "$$value", b: "$$value"}"#, "{a: 1}"), [146, 15]),
        (
            doubling(30, r#"{$concat: ["$$value", "$$value"]}"#, r#""abcdefgh""#),
            [16493, 16493],
        ),
        (
            doubling(
                30,
                r#"{$replaceAll: {input: "$$value", find: "abcdefgh", replacement: "abcdefghabcdefgh"}}"#,
                r#""abcdefgh""#,
            ),
            [16493, 16493],
        ),
        (
            doubling(30, r#"{$map: {input: {$range: [0, 1000]}, in: "$$value"}}"#, "[1]"),
            [146, 15],
        ),
        (
            doubling(
                9,
                r#"{$zip: {inputs: ["$$value", "$$value"]}}"#,
                r#"{$range: [0, 200000]}"#,
            ),
            [146, 15],
        ),
        (format!("{{$set: {{a: [1]}}}}, {stages}"), [146, 15]),
        (format!("{{$set: {{a: [1]}}}}, {wide}"), [146, 15]),
        (
            doubling(19, r#"{$concatArrays: ["$$value", "$$value"]}"#, "[1, 2, 3, 4]"),
            [10334, 10334],
        ),
    ] {
        let code = server.code(&format!("{{aggregate: \"one\", pipeline: [{pipeline}], cursor: {{}}}}"));
        assert!(codes.contains(&code), "{code}: {pipeline}");
    }
}

#[test]
fn a_statement_that_is_ended_says_why() {
    let mut server = Server::new();
    let pool = server.service.connections.memory.clone();
    assert_eq!(server.code(r#"{insert: "one", documents: [{_id: 1}]}"#), 0);
    pool.set_limit(50_000_000);
    let big = r#"{aggregate: "one", pipeline: [{$project: {x: {$size: {$concatArrays: [{$range: [0, 3000000]}, {$range: [0, "$_id"]}]}}}}], cursor: {}}"#;
    assert_eq!(server.code(big), 146);
    assert_eq!(pool.held(), 0, "it gave everything back");
    pool.set_limit(usize::MAX);
    assert_eq!(server.code(big), 0);
}

#[test]
fn an_error_is_an_error_whatever_was_counted() {
    // The limits of a statement end with it: the next one begins anew.
    let spent: Result<()> = statement::under(&Interrupt::new(Arc::default(), Some(Instant::now())), None, || {
        statement::work(UNITS)
    });
    assert_eq!(spent.as_ref().map_err(Error::code).expect_err("late").number(), 50);
    statement::under(&Interrupt::default(), None, || statement::work(UNITS)).expect("another one");
}
