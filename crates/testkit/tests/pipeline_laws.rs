//! Laws of the algebra of nested relations, checked on collections of random documents: they hold whatever is in
//! them. The documents of an answer are compared as printed, so that types and the order of fields count.

#[path = "shared/database.rs"]
mod database;

use database::Database;
use nestor_model::statement::looks;
use nestor_model::{Array, Value, ValueRef, doc};
use nestor_testkit::random::Random;
use nestor_testkit::shell;

impl Database {
    fn insert(&mut self, collection: &str, docs: Vec<Value>) {
        self.must(doc! { "insert": collection, "documents": Array::new(docs) });
    }

    /// The documents of a pipeline, printed.
    fn rows(&mut self, collection: &str, stages: &[&str]) -> Vec<String> {
        let pipeline: Vec<Value> = stages
            .iter()
            .map(|stage| Value::Document(shell::document(stage).unwrap_or_else(|e| panic!("{stage}: {e}"))))
            .collect();
        let command =
            doc! { "aggregate": collection, "pipeline": Array::new(pipeline), "cursor": doc! { "batchSize": 100_000 } };
        let reply = self.must(command);
        let cursor = reply.get("cursor").and_then(ValueRef::as_document).expect("a cursor");
        let batch = cursor.get("firstBatch").and_then(ValueRef::as_array).expect("a batch");
        batch.iter().map(|d| shell::print(&d.to_value())).collect()
    }

    /// The error of a pipeline that may not use the disk.
    fn refusal(&mut self, collection: &str, stages: &[&str]) -> Option<i32> {
        let stages = stages
            .iter()
            .map(|stage| Value::Document(shell::document(stage).expect("a stage")));
        let reply = self.run(doc! {
            "aggregate": collection, "pipeline": Array::new(stages.collect()), "cursor": doc! {}, "allowDiskUse": false,
        });
        match reply.get("code") {
            Some(ValueRef::Int32(code)) => Some(code),
            _ => None,
        }
    }

    /// As [`Self::rows`], in an order of its own: what a law says of sets of documents.
    fn set(&mut self, collection: &str, stages: &[&str]) -> Vec<String> {
        let mut docs = self.rows(collection, stages);
        docs.sort();
        docs
    }
}

/// `{_id, k, v, a, b}` with few different keys, and arrays, scalars, nulls or nothing in `a` and `b`.
fn documents(random: &mut Random, count: usize) -> Vec<Value> {
    (0..count)
        .map(|id| {
            let mut out = doc! { "_id": id as i32, "k": random.below(5) as i32, "v": random.scalar() };
            for name in ["a", "b"] {
                match random.below(6) {
                    0 => {}
                    1 => out.push(name, random.scalar()),
                    _ => {
                        let items: Vec<Value> = (0..random.below(4)).map(|_| random.scalar()).collect();
                        out.push(name, Array::new(items));
                    }
                }
            }
            Value::Document(out)
        })
        .collect()
}

fn each_database(law: impl Fn(&mut Database, &mut Random)) {
    for seed in 1..=12 {
        let mut random = Random::new(seed);
        let mut database = Database::new();
        let docs = documents(&mut random, 40);
        database.insert("c", docs);
        println!("seed {seed}");
        law(&mut database, &mut random);
    }
}

#[test]
fn unwinding_different_paths_commutes() {
    each_database(|database, _| {
        for (a, b) in [
            (r#"{$unwind: "$a"}"#, r#"{$unwind: "$b"}"#),
            (
                r#"{$unwind: {path: "$a", preserveNullAndEmptyArrays: true}}"#,
                r#"{$unwind: {path: "$b", preserveNullAndEmptyArrays: true}}"#,
            ),
        ] {
            assert_eq!(database.set("c", &[a, b]), database.set("c", &[b, a]));
        }
    });
}

/// Nesting undoes unnesting when the grouping key is a key. Here `_id` is one, and `k` is none.
#[test]
fn nest_undoes_unnest_when_the_grouping_key_is_a_key() {
    each_database(|database, _| {
        let arrays = r#"{$match: {a: {$type: "array", $ne: []}}}"#;
        let nest = |key: &str| format!(r#"{{$group: {{_id: "${key}", a: {{$push: "$a"}}}}}}"#);
        let plain = |key: &str| format!(r#"{{$replaceWith: {{_id: "${key}", a: "$a"}}}}"#);
        let nested = database.set("c", &[arrays, r#"{$unwind: "$a"}"#, &nest("_id")]);
        assert_eq!(nested, database.set("c", &[arrays, &plain("_id")]));
        let by_k = database.set("c", &[arrays, r#"{$unwind: "$a"}"#, &nest("k")]);
        assert!(by_k.len() <= 5, "one document for each k, not for each document");
        assert_ne!(by_k, database.set("c", &[arrays, &plain("k")]));
    });
}

/// The rest of a document is shared by the documents of its elements: else this takes gigabytes.
#[test]
fn long_arrays_unwind_without_copies_of_the_whole() {
    let mut database = Database::new();
    let items: Vec<Value> = (0..200_000).map(Value::Int32).collect();
    let document = doc! { "_id": 1, "pad": "x".repeat(1_000_000), "a": Array::new(items) };
    database.insert("c", vec![Value::Document(document)]);
    let sum = r#"{$group: {_id: null, n: {$sum: 1}, s: {$sum: {$strLenBytes: {$substrBytes: ["$pad", 0, 3]}}}}}"#;
    let answer = database.rows("c", &[r#"{$unwind: "$a"}"#, sum]);
    assert_eq!(answer, ["{_id: null, n: 200000, s: 600000}"]);
}

/// What a group takes in batches is what a client gets row by row, and what is counted.
#[test]
fn rows_of_elements_are_the_same_together_and_one_by_one() {
    each_database(|database, random| {
        let unwind = *random.pick(&[
            r#"{$unwind: "$a"}"#,
            r#"{$unwind: {path: "$a", preserveNullAndEmptyArrays: true}}"#,
            r#"{$unwind: {path: "$a", includeArrayIndex: "i"}}"#,
        ]);
        let all = [
            r#"{$group: {_id: null, all: {$push: "$$ROOT"}}}"#,
            r#"{$unwind: "$all"}"#,
            r#"{$replaceWith: "$all"}"#,
        ];
        let before = *random.pick(&STAGES);
        let large = r#"{$set: {pad: {$reduce: {input: {$range: [0, 9]}, initialValue: "0123456789abcdef", in: {$concat: ["$$value", "$$value"]}}}}}"#;
        for first in [vec![], vec![before], vec![before, large], vec![r#"{$unwind: "$b"}"#]] {
            let one_by_one: Vec<&str> = first.iter().copied().chain([unwind]).collect();
            let expected = database.rows("c", &one_by_one);
            let together: Vec<&str> = one_by_one.iter().copied().chain(all).collect();
            assert_eq!(database.rows("c", &together), expected, "{first:?}, {unwind}");
            for limit in [1, 7, 200] {
                let stage = format!("{{$limit: {limit}}}");
                let counted: Vec<&str> = one_by_one
                    .iter()
                    .copied()
                    .chain([stage.as_str(), r#"{$count: "n"}"#])
                    .collect();
                let found = expected.len().min(limit);
                let answer = if found > 0 {
                    vec![format!("{{n: {found}}}")]
                } else {
                    vec![]
                };
                assert_eq!(database.rows("c", &counted), answer, "{first:?}, {unwind}, {limit}");
            }
        }
    });
}

/// Stages whose answer depends only on the documents and their order, so that a pipeline of them may be cut anywhere.
const STAGES: [&str; 13] = [
    r#"{$match: {k: {$gt: 0}}}"#,
    r#"{$match: {a: 1}}"#,
    r#"{$set: {n: {$size: {$cond: [{$isArray: "$a"}, "$a", []]}}}}"#,
    r#"{$project: {a: 1, b: 1, k: 1, v: 1}}"#,
    r#"{$unset: "b"}"#,
    r#"{$sort: {k: 1, _id: 1}}"#,
    r#"{$sort: {v: -1, _id: 1}}"#,
    r#"{$limit: 25}"#,
    r#"{$skip: 3}"#,
    r#"{$lookup: {from: "c", localField: "k", foreignField: "_id", as: "other"}}"#,
    r#"{$set: {a: {$ifNull: ["$a", "none"]}}}"#,
    r#"{$setWindowFields: {partitionBy: "$k", sortBy: {_id: 1}, output: {r: {$rank: {}}}}}"#,
    r#"{$redact: {$cond: [{$eq: ["$k", 2]}, "$$PRUNE", "$$KEEP"]}}"#,
];

#[test]
fn a_pipeline_may_be_cut_anywhere_by_out() {
    each_database(|database, random| {
        let stages: Vec<&str> = (0..6).map(|_| *random.pick(&STAGES)).collect();
        let whole = database.rows("c", &stages);
        for at in 0..=stages.len() {
            let (first, second) = stages.split_at(at);
            let first: Vec<&str> = first.iter().copied().chain([r#"{$out: "cut"}"#]).collect();
            assert!(database.rows("c", &first).is_empty());
            assert_eq!(database.rows("cut", second), whole, "{stages:?} cut at {at}");
        }
    });
}

#[test]
fn a_limit_is_a_prefix_of_the_whole_sort() {
    each_database(|database, random| {
        for sort in [r#"{$sort: {v: 1, _id: 1}}"#, r#"{$sort: {a: -1, k: 1, _id: -1}}"#] {
            let all = database.rows("c", &[sort]);
            assert_eq!(all.len(), 40);
            let limit = 1 + random.below(40);
            let some = database.rows("c", &[sort, &format!("{{$limit: {limit}}}")]);
            assert_eq!(some, all[..limit]);
        }
    });
}

#[test]
fn a_facet_gives_what_its_pipelines_give() {
    each_database(|database, random| {
        let (x, y) = (*random.pick(&STAGES), *random.pick(&STAGES));
        let facet = format!("{{$facet: {{p: [{x}, {y}]}}}}");
        let unwound = database.rows("c", &[&facet, r#"{$unwind: "$p"}"#, r#"{$replaceWith: "$p"}"#]);
        assert_eq!(unwound, database.rows("c", &[x, y]));
    });
}

/// Union is concatenation, and a join with an index finds what a join without one finds.
#[test]
fn unions_and_joins() {
    each_database(|database, _| {
        let union = database.rows("c", &[r#"{$unionWith: {coll: "c", pipeline: [{$match: {k: 1}}]}}"#]);
        let mut both = database.rows("c", &[]);
        both.extend(database.rows("c", &[r#"{$match: {k: 1}}"#]));
        assert_eq!(union, both);

        let join = r#"{$lookup: {from: "c", localField: "a", foreignField: "v", as: "r"}}"#;
        let with_order = r#"{$set: {r: {$sortArray: {input: "$r", sortBy: {_id: 1}}}}}"#;
        let without_index = database.rows("c", &[join, with_order]);
        let index = Value::Document(doc! { "key": doc! { "v": 1 }, "name": "v" });
        database.must(doc! { "createIndexes": "c", "indexes": Array::new(vec![index]) });
        assert_eq!(database.rows("c", &[join, with_order]), without_index);
    });
}

/// With next to no memory sorts, groups and windows go to disk, and answer the same.
#[test]
fn spilling_changes_nothing() {
    each_database(|database, _| {
        let pipelines: [&[&str]; 6] = [
            &[r#"{$sort: {v: 1, _id: 1}}"#],
            &[
                r#"{$group: {_id: "$k", all: {$push: "$v"}, n: {$sum: 1}}}"#,
                r#"{$sort: {_id: 1}}"#,
            ],
            &[
                r#"{$setWindowFields: {partitionBy: "$k", sortBy: {_id: 1}, output: {all: {$push: "$v", window: {documents: [-1, 1]}}}}}"#,
            ],
            &[
                r#"{$unwind: "$a"}"#,
                r#"{$group: {_id: "$a", s: {$addToSet: "$k"}}}"#,
                r#"{$project: {n: {$size: "$s"}}}"#,
                r#"{$sort: {_id: 1}}"#,
            ],
            &[r#"{$bucketAuto: {groupBy: "$v", buckets: 3, output: {n: {$sum: 1}, ids: {$push: "$_id"}}}}"#],
            &[
                r#"{$setWindowFields: {sortBy: {_id: 1}, output: {d: {$stdDevPop: "$k", window: {documents: [-35, 0]}}}}}"#,
            ],
        ];
        let roomy: Vec<_> = pipelines.iter().map(|p| database.rows("c", p)).collect();
        database
            .must(doc! { "setParameter": 1, "internalQueryMaxBlockingSortMemoryUsageBytes": 2_000, "$db": "admin" });
        for (pipeline, roomy) in pipelines.iter().zip(roomy) {
            assert_eq!(database.rows("c", pipeline), roomy, "{pipeline:?}");
            // Without leave to use the disk they are refused: QueryExceededMemoryLimitNoDiskUseAllowed.
            assert_eq!(database.refusal("c", pipeline), Some(292), "{pipeline:?}");
        }
    });
}

/// Groups that outgrow memory leave it and come back a bounded number of times, whatever they collect.
#[test]
fn spilled_groups_cost_a_bounded_amount_of_work() {
    const ROWS: i64 = 3_000;
    let mut database = Database::new();
    let text = "t".repeat(100);
    let docs = (0..ROWS).map(|id| doc! { "_id": id, "wide": id * 7919 % 2_000, "few": id % 40, "t": text.as_str() });
    database.insert("c", docs.map(Value::Document).collect());
    let sorted = r#"{$sort: {_id: 1}}"#;
    // Many small groups, and few that collect more than memory holds: what those have in memory has to leave it, too.
    let groups = [
        r#"{$group: {_id: "$wide", n: {$sum: 1}, first: {$first: "$_id"}, ids: {$push: "$_id"}}}"#,
        r#"{$group: {_id: "$few", all: {$push: "$t"}, top: {$topN: {n: 2, sortBy: {_id: -1}, output: "$_id"}}}}"#,
        r#"{$group: {_id: "$few", set: {$addToSet: "$_id"}, avg: {$avg: "$wide"}, dev: {$stdDevPop: 1}}}"#,
    ];
    let roomy: Vec<_> = groups
        .iter()
        .map(|group| database.rows("c", &[group, sorted]))
        .collect();
    database.must(doc! { "setParameter": 1, "internalQueryMaxBlockingSortMemoryUsageBytes": 60_000, "$db": "admin" });
    for (group, roomy) in groups.iter().zip(roomy) {
        assert_eq!(database.rows("c", &[group, sorted]), roomy, "{group}");
        let explain = format!(
            r#"{{explain: {{aggregate: "c", pipeline: [{group}], cursor: {{}}}}, verbosity: "executionStats"}}"#
        );
        let reply = database.must(shell::document(&explain).expect("a command"));
        let stages = reply.get("stages").and_then(ValueRef::as_array).expect("stages");
        let stage = stages.get(1).and_then(ValueRef::as_document).expect("the group");
        let figure = |name: &str| match stage.get(name) {
            Some(ValueRef::Int64(figure)) => figure,
            other => panic!("{name}: {other:?} of {stage:?}"),
        };
        let (spills, records, bytes) = (figure("spills"), figure("spilledRecords"), figure("spilledBytes"));
        assert!(spills > 1, "{group}: {spills} spills");
        // A row leaves at most one partial group behind, which is divided at most once more.
        assert!(records <= 2 * ROWS, "{group}: {records} records");
        assert!(bytes <= 2 * ROWS * 200, "{group}: {bytes} bytes");
    }
}

/// Work that a pipeline does over `rows` rows, in looks at the interrupt, when its operators may hold so many bytes.
fn work_of(pipeline: &[&str], rows: i64, memory_bytes: i64) -> u64 {
    let mut database = Database::new();
    let text = "t".repeat(100);
    let docs = (0..rows).map(|id| doc! { "_id": id, "k": id * 7919 % rows, "few": id % 20, "t": text.as_str() });
    database.insert("c", docs.map(Value::Document).collect());
    let parameter = "internalQueryMaxBlockingSortMemoryUsageBytes";
    database.must(doc! { "setParameter": 1, parameter: memory_bytes, "$db": "admin" });
    let before = looks();
    database.rows("c", pipeline);
    looks() - before
}

/// Operators that outgrow memory do twice the work for twice the rows, and a few times the work that they do in memory.
#[test]
fn operators_that_spill_do_linear_work() {
    const ROWS: i64 = 2_000;
    const ROOMY: i64 = 100_000_000;
    let last = r#"{$group: {_id: null, n: {$sum: 1}}}"#;
    let pipelines: [(&str, &[&str]); 7] = [
        ("sort", &[r#"{$sort: {k: 1, t: 1}}"#, last]),
        ("group", &[r#"{$group: {_id: "$k", all: {$push: "$t"}}}"#, last]),
        (
            "window over one partition",
            &[
                r#"{$setWindowFields: {sortBy: {k: 1}, output: {s: {$sum: "$few", window: {documents: [-9, 9]}}, r: {$documentNumber: {}}}}}"#,
                last,
            ],
        ),
        (
            "window over many partitions",
            &[
                r#"{$setWindowFields: {partitionBy: "$few", sortBy: {k: 1}, output: {s: {$max: "$k", window: {documents: ["unbounded", 0]}}}}}"#,
                last,
            ],
        ),
        (
            "bucketAuto",
            &[
                r#"{$bucketAuto: {groupBy: "$k", buckets: 50, output: {n: {$sum: 1}, top: {$max: "$t"}}}}"#,
                last,
            ],
        ),
        (
            "lookup by a hash table",
            &[
                r#"{$lookup: {from: "c", localField: "k", foreignField: "k", as: "r"}}"#,
                last,
            ],
        ),
        (
            "graphLookup",
            &[
                r#"{$graphLookup: {from: "c", startWith: "$k", connectFromField: "none", connectToField: "k", as: "r"}}"#,
                last,
            ],
        ),
    ];
    for (name, pipeline) in pipelines {
        let in_memory = work_of(pipeline, 2 * ROWS, ROOMY);
        let half = work_of(pipeline, ROWS, 130_000);
        let spilled = work_of(pipeline, 2 * ROWS, 130_000);
        let figures =
            format!("{name}: {in_memory} in memory, {half} for half of the rows and {spilled} for all by files");
        assert!(spilled <= 3 * half && spilled <= 3 * in_memory, "{figures}");
    }
    // $facet keeps its rows in memory, but its pipelines need not.
    let facet = [
        r#"{$facet: {a: [{$sort: {k: 1}}, {$group: {_id: null, n: {$sum: 1}}}], b: [{$group: {_id: "$k"}}, {$count: "n"}]}}"#,
    ];
    let [half, all] = [ROWS, 2 * ROWS].map(|rows| work_of(&facet, rows, ROOMY));
    assert!(all <= 3 * half, "facet: {half} for half of the rows and {all} for all");
}

/// A sort that goes to disk hundreds of times merges some of its runs on the way, and keeps rows with equal keys in order.
#[test]
fn a_sort_of_many_runs_is_a_sort() {
    let mut database = Database::new();
    let docs = (0..3_000i32).map(|id| Value::Document(doc! { "_id": id, "k": id * 7919 % 50 }));
    database.insert("c", docs.collect());
    let sort = [r#"{$sort: {k: -1}}"#];
    let roomy = database.rows("c", &sort);
    database.must(doc! { "setParameter": 1, "internalQueryMaxBlockingSortMemoryUsageBytes": 4_000, "$db": "admin" });
    assert_eq!(database.rows("c", &sort), roomy);
}

/// A join whose other side does not fit in memory still reads it once, and finds the same; so does one for which not even the
/// hashes of its values fit.
#[test]
fn a_join_table_goes_to_disk() {
    let mut database = Database::new();
    let docs = (0..600i32).map(|id| {
        let mut out = doc! { "_id": id, "pad": "p".repeat(200) };
        match id % 5 {
            0 => {}
            1 => out.push("l", Value::Null),
            _ => out.push("l", id % 37),
        }
        match id % 7 {
            0 => {}
            1 => out.push(
                "f",
                vec![Value::Int32(id % 41), Value::Null, Value::Double(f64::from(id % 3))],
            ),
            _ => out.push("f", i64::from(id * 7 % 41)),
        }
        Value::Document(out)
    });
    database.insert("c", docs.collect());
    let join = r#"{$lookup: {from: "c", localField: "l", foreignField: "f", as: "r"}}, {$project: {r: "$r._id"}}"#;
    let unwound = r#"{$lookup: {from: "c", localField: "l", foreignField: "f", as: "r"}}, {$unwind: "$r"}, {$project: {r: "$r._id"}}"#;
    let stages = |text: &str| -> Vec<String> {
        let stages = shell::document(&format!("{{p: [{text}]}}")).expect("stages");
        let stages = stages.get("p").and_then(ValueRef::as_array).expect("an array");
        stages.iter().map(|stage| shell::print(&stage.to_value())).collect()
    };
    let run = |database: &mut Database, text: &str| {
        let stages = stages(text);
        let stages: Vec<&str> = stages.iter().map(String::as_str).collect();
        database.rows("c", &stages)
    };
    let roomy = [join, unwound].map(|text| run(&mut database, text));
    // The matches of one document take some 16 kB and have to be in memory; those that go out one by one need not.
    for (limit, text, roomy, spills) in [
        (60_000, join, &roomy[0], 1),
        (60_000, unwound, &roomy[1], 1),
        (4_000, unwound, &roomy[1], 2),
    ] {
        database
            .must(doc! { "setParameter": 1, "internalQueryMaxBlockingSortMemoryUsageBytes": limit, "$db": "admin" });
        assert_eq!(run(&mut database, text), *roomy, "{limit}: {text}");
        let explain = format!(
            r#"{{explain: {{aggregate: "c", pipeline: [{text}], cursor: {{}}}}, verbosity: "executionStats"}}"#
        );
        let reply = database.must(shell::document(&explain).expect("a command"));
        let stages = reply.get("stages").and_then(ValueRef::as_array).expect("stages");
        let stage = stages.get(1).and_then(ValueRef::as_document).expect("the join");
        let shown = |name: &str| shell::print(&stage.get(name).map_or(Value::Missing, ValueRef::to_value));
        assert_eq!(shown("strategy"), r#""HashJoin""#, "{limit}: {text}");
        assert_eq!(shown("totalDocsExamined"), "Long(600)", "the other side is read once");
        assert_eq!(shown("spills"), format!("Long({spills})"), "{limit}: {text}");
    }
}

/// Work that would take hours ends when its time is over, wherever it is spent: a test that comes to its end has shown that.
#[test]
fn max_time_stops_every_pipeline() {
    let mut database = Database::new();
    let docs = (0..1_500).map(|id| Value::Document(doc! { "_id": id, "one": 1, "k": id % 7 }));
    database.insert("c", docs.collect());
    let lookup =
        |inner: &str| format!(r#"{{$lookup: {{from: "c", let: {{x: "$_id"}}, pipeline: [{inner}], as: "r"}}}}"#);
    let leaf = r#"{$match: {$expr: {$gt: ["$_id", "$$x"]}}}"#;
    let by_one = r#"{$lookup: {from: "c", localField: "one", foreignField: "one", as: "r"}}"#;
    let graph =
        r#"{$graphLookup: {from: "c", startWith: "$k", connectFromField: "_id", connectToField: "k", as: "r"}}"#;
    let long = [
        lookup(&lookup(leaf)),
        format!(r#"{by_one}, {{$unwind: "$r"}}, {}"#, by_one.replace("\"r\"", "\"s\"")),
        format!(r#"{{$facet: {{a: [{}]}}}}"#, lookup(&lookup(leaf))),
        format!(
            r#"{{$unionWith: {{coll: "c", pipeline: [{}]}}}}"#,
            lookup(&lookup(leaf))
        ),
        format!(r#"{graph}, {{$unwind: "$r"}}, {{$set: {{k: "$r.k"}}}}, {graph}"#),
    ];
    for stages in long {
        let text = format!(
            r#"{{aggregate: "c", pipeline: [{stages}, {{$group: {{_id: null, n: {{$sum: {{$cond: [{{$gt: ["$r", null]}}, 1, 0]}}}}}}}}], cursor: {{}}, maxTimeMS: 30, $db: "test"}}"#
        );
        let command = shell::document(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
        let reply = database.run(command);
        assert!(
            matches!(reply.get("code"), Some(ValueRef::Int32(50))),
            "{text}: {reply:?}"
        );
    }
}

/// A join whose array is unwound right away gives its matches one by one. A stage that does nothing keeps the two
/// apart, and the condition behind them too. Matches come in no order: the condition may be found by another index.
#[test]
fn unwinding_a_join_at_once_changes_nothing() {
    let joins = [
        r#"from: "c", localField: "k", foreignField: "_id", as: "x""#,
        r#"from: "c", localField: "a", foreignField: "b", as: "x""#,
        r#"from: "c", localField: "v", foreignField: "a", as: "x.y""#,
        r#"from: "c", localField: "k", foreignField: "k", as: "b", pipeline: [{$match: {v: 1}}, {$limit: 3}]"#,
        r#"from: "c", as: "a", pipeline: [{$sort: {_id: -1}}, {$limit: 4}]"#,
        r#"from: "c", as: "x", let: {k: "$k"}, pipeline: [{$match: {$expr: {$lt: ["$_id", "$$k"]}}}]"#,
        r#"from: "none", localField: "k", foreignField: "k", as: "x""#,
    ];
    each_database(|database, random| {
        if random.below(2) == 0 {
            let index = doc! { "key": doc! { "b": 1 }, "name": "b" };
            database.must(doc! { "createIndexes": "c", "indexes": vec![Value::Document(index)] });
        }
        for join in joins {
            let lookup = format!("{{$lookup: {{{join}}}}}");
            let at = join
                .split("as: \"")
                .nth(1)
                .and_then(|rest| rest.split('"').next())
                .expect("a path");
            for options in [
                "",
                ", preserveNullAndEmptyArrays: true",
                r#", includeArrayIndex: "i""#,
                r#", includeArrayIndex: "x.i", preserveNullAndEmptyArrays: true"#,
            ] {
                let unwind = format!(r#"{{$unwind: {{path: "${at}"{options}}}}}"#);
                for condition in [
                    "{}".to_owned(),
                    format!(r#"{{"{at}.k": {{$gt: 1}}}}"#),
                    format!(r#"{{"{at}.a": {{$ne: 1}}, k: {{$lt: 4}}}}"#),
                    format!(r#"{{$or: [{{"{at}.v": null}}, {{"{at}.b": {{$exists: false}}}}]}}"#),
                    format!(r#"{{"{at}": {{$type: "object"}}, "{at}._id": {{$in: [1, 2, 3, 9]}}}}"#),
                ] {
                    // Each is tried in some of the databases.
                    if random.below(4) > 0 {
                        continue;
                    }
                    let matching = format!("{{$match: {condition}}}");
                    let nothing = "{$match: {}}";
                    assert_eq!(
                        database.set("c", &[&lookup, &unwind, &matching]),
                        database.set("c", &[&lookup, nothing, &unwind, nothing, &matching]),
                        "{lookup} {unwind} {matching}"
                    );
                }
            }
        }
    });
}

/// A window that slides gives what computing each window anew gives: here by joining each document with the others of
/// its window.
#[test]
fn windows_agree_with_joins() {
    for seed in 1..=2 {
        let (mut database, mut random) = (Database::new(), Random::new(seed));
        let numbers: Vec<Value> = (0..150)
            .map(|id| {
                let y = random.below(1000) as f64 / 7.0;
                // Filters and windows tell undefined from null, $ifNull does not.
                let z = match random.scalar() {
                    Value::Undefined => Value::Null,
                    z => z,
                };
                doc! { "_id": id, "x": random.below(50) as i32, "y": y, "z": z }.into()
            })
            .collect();
        database.insert("numbers", numbers);
        for (before, after) in [(3, 0), (60, 0), (40, 40), (-5, 50)] {
            let window = format!("window: {{documents: [{}, {after}]}}", -before);
            let sliding = format!(
                r#"{{$setWindowFields: {{sortBy: {{_id: 1}}, output: {{
                dev: {{$stdDevPop: "$y", {window}}}, samp: {{$stdDevSamp: "$x", {window}}},
                least: {{$min: "$z", {window}}}, most: {{$max: "$z", {window}}}, first: {{$first: "$z", {window}}}, last: {{$last: "$z", {window}}},
                co: {{$covariancePop: ["$x", "$y"], {window}}}}}}}}}"#
            );
            let join = format!(
                r#"{{$lookup: {{from: "numbers", let: {{id: "$_id"}}, as: "w", pipeline: [
                {{$match: {{$expr: {{$and: [{{$gte: ["$_id", {{$subtract: ["$$id", {before}]}}]}}, {{$lte: ["$_id", {{$add: ["$$id", {after}]}}]}}]}}}}}},
                {{$sort: {{_id: 1}}}}, {{$group: {{_id: null, dev: {{$stdDevPop: "$y"}}, samp: {{$stdDevSamp: "$x"}},
                least: {{$min: "$z"}}, most: {{$max: "$z"}}, first: {{$first: "$z"}}, last: {{$last: "$z"}},
                mx: {{$avg: "$x"}}, my: {{$avg: "$y"}}, mxy: {{$avg: {{$multiply: ["$x", "$y"]}}}}}}}}]}}}}"#
            );
            let round = |of: &str| format!(r#"{{$round: ["{of}", 6]}}"#);
            let slid = format!(
                r#"{{$project: {{dev: {}, samp: {}, co: {}, least: 1, most: 1, first: 1, last: 1}}}}"#,
                round("$dev"),
                round("$samp"),
                round("$co")
            );
            let joined = r#"{$replaceWith: {$mergeObjects: [{_id: "$_id"}, {$first: "$w"}, {_id: "$_id"}]}}"#;
            let plain = format!(
                r#"{{$project: {{dev: {}, samp: {}, co: {{$round: [{{$subtract: ["$mxy", {{$multiply: ["$mx", "$my"]}}]}}, 6]}},
                least: {{$ifNull: ["$least", null]}}, most: {{$ifNull: ["$most", null]}}, first: {{$ifNull: ["$first", null]}}, last: {{$ifNull: ["$last", null]}}}}}}"#,
                round("$dev"),
                round("$samp")
            );
            // Zero and its negative are the same deviation.
            let unsigned = |docs: Vec<String>| docs.into_iter().map(|d| d.replace("-0.0", "0.0")).collect::<Vec<_>>();
            let fields = r#"{$project: {_id: 1, dev: 1, samp: 1, co: 1, least: 1, most: 1, first: 1, last: 1}}"#;
            let a = database.rows("numbers", &[&sliding, &slid, fields]);
            let b = database.rows("numbers", &[&join, joined, &plain, fields]);
            // The deviation of one number in a window that slides is a whole zero.
            let a: Vec<String> = sorted_fields(unsigned(a))
                .iter()
                .map(|doc| doc.replace("dev: 0, ", "dev: 0.0, "))
                .collect();
            let b = sorted_fields(unsigned(b));
            assert_eq!(a.len(), b.len());
            for (a, b) in a.iter().zip(&b) {
                assert_eq!(a, b, "{before} {after}");
            }
        }
    }
}

/// The same documents with their fields in the order of their names.
fn sorted_fields(docs: Vec<String>) -> Vec<String> {
    let mut out: Vec<String> = docs
        .iter()
        .map(|doc| {
            let doc = shell::document(doc).unwrap_or_else(|e| panic!("{doc}: {e}"));
            let mut fields: Vec<String> = doc
                .iter()
                .map(|(n, v)| format!("{n}: {}", shell::print(&v.to_value())))
                .collect();
            fields.sort();
            fields.join(", ")
        })
        .collect();
    out.sort();
    out
}
