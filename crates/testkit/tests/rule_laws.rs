//! Each rule of the planner alone: random pipelines over random documents answer the same with the rule as without any, and
//! as with all of them. The laws are in the files of the rules (`crates/planner/src/rules`).

use nestor_command::{Connection, Request, Service};
use nestor_database::DatabaseOptions;
use nestor_exec::pipeline::{NoServerState, PipelineSource, plan_stages};
use nestor_exec::row_batch::{Filled, RowBatch, Wanted};
use nestor_exec::{Batch, Interrupt, Step};
use nestor_model::{Array, ArrayRef, Namespace, RawDoc, Timestamp, Value, ValueRef, doc};
use nestor_planner::Hint;
use nestor_planner::plan::StageNode;
use nestor_planner::rules::{RULES, Rule, rewrite};
use nestor_query::masking::Masking;
use nestor_query::stage::{ParseContext, Pipeline, Place, Stage};
use nestor_query::{OpContext, Scope};
use nestor_storage::{Engine, EngineOptions, Snapshot};
use nestor_testkit::random::Random;
use nestor_testkit::shell;
use std::sync::{Arc, Weak};

/// Stages of which pipelines are made, so that most rules meet what they are about. None of them raises errors.
const STAGES: &[&str] = &[
    "{$match: {a: 1}}",
    "{$match: {k: {$gte: 1}, a: {$ne: 2}}}",
    r#"{$match: {$or: [{k: 2}, {"b.c": null}]}}"#,
    r#"{$match: {"b.c": {$exists: true}}}"#,
    r#"{$match: {"b.c": null, k: {$lt: 4}}}"#,
    r#"{$match: {"a.0": {$gt: 0}}}"#,
    "{$match: {x: {$ne: null}, k: {$in: [0, 1, 3]}}}",
    "{$match: {x: null}}",
    r#"{$match: {"x.k": {$gt: 0}}}"#,
    r#"{$match: {"x.k": 1, "x.b": {$ne: 1}, k: {$lt: 4}}}"#,
    r#"{$match: {"x.c": {$exists: false}}}"#,
    "{$match: {i: {$gt: 0}}}",
    r#"{$match: {$expr: {$gt: ["$k", 1]}}}"#,
    r#"{$match: {$expr: {$eq: ["$b.c", "$x"]}}}"#,
    r#"{$match: {$expr: {$gt: [{$size: {$objectToArray: "$$ROOT"}}, 3]}}}"#,
    "{$match: {$nor: [{a: 1}, {k: 3}]}}",
    "{$match: {}}",
    "{$sort: {k: 1, _id: -1}}",
    "{$sort: {a: -1, _id: 1}}",
    "{$sort: {x: 1, _id: 1}}",
    "{$limit: 20}",
    "{$limit: 7}",
    "{$limit: 3}",
    "{$skip: 1}",
    "{$skip: 4}",
    r#"{$project: {a: 1, k: 1, "b.c": 1}}"#,
    r#"{$project: {a: "$k", k: "$a", x: "$b"}}"#,
    "{$project: {a: 0}}",
    r#"{$project: {x: "$b.c", b: 1, k: {$ifNull: ["$k", 7]}}}"#,
    r#"{$addFields: {x: "$a"}}"#,
    r#"{$addFields: {"b.c": "$k", i: {$type: "$a"}}}"#,
    r#"{$unset: ["b.c", "x"]}"#,
    r#"{$set: {a: {$cond: [{$isArray: "$a"}, "$a", ["$a"]]}}}"#,
    r#"{$replaceWith: {$mergeObjects: ["$$ROOT", {_id: "$_id", x: "$k"}]}}"#,
    r#"{$unwind: "$a"}"#,
    r#"{$unwind: {path: "$a", includeArrayIndex: "i", preserveNullAndEmptyArrays: true}}"#,
    r#"{$unwind: "$x"}"#,
    r#"{$unwind: {path: "$x", includeArrayIndex: "b.i"}}"#,
    r#"{$unwind: {path: "$x", preserveNullAndEmptyArrays: true}}"#,
    r#"{$lookup: {from: "d", localField: "k", foreignField: "k", as: "x"}}"#,
    r#"{$lookup: {from: "d", localField: "a", foreignField: "b", as: "x", pipeline: [{$match: {k: {$gt: 0}}}, {$limit: 3}]}}"#,
    r#"{$lookup: {from: "d", let: {k: "$k"}, as: "x", pipeline: [{$match: {$expr: {$lt: ["$_id", "$$k"]}}}]}}"#,
    r#"{$graphLookup: {from: "d", startWith: "$k", connectFromField: "k", connectToField: "_id", as: "x", maxDepth: 1}}"#,
    r#"{$group: {_id: "$k", a: {$push: "$a"}, x: {$first: "$x"}}}"#,
];

/// Stages that follow each other often in pipelines, by their positions in [`STAGES`].
const RUNS: &[&[&str]] = &[
    &[
        r#"{$lookup: {from: "d", localField: "k", foreignField: "k", as: "x"}}"#,
        r#"{$unwind: "$x"}"#,
    ],
    &["{$sort: {k: 1, _id: -1}}", "{$skip: 4}", "{$limit: 7}"],
    &[
        r#"{$project: {x: "$b.c", b: 1, k: {$ifNull: ["$k", 7]}}}"#,
        r#"{$group: {_id: "$k", a: {$push: "$a"}, x: {$first: "$x"}}}"#,
    ],
    &[
        r#"{$addFields: {x: "$a"}}"#,
        r#"{$group: {_id: "$k", a: {$push: "$a"}, x: {$first: "$x"}}}"#,
    ],
];

struct Database {
    service: Service,
    connection: Connection,
}

impl Database {
    fn new(random: &mut Random) -> Self {
        let engine = Engine::ephemeral(EngineOptions::at_time(1_700_000_000));
        let service = Service::new(DatabaseOptions::default(), engine);
        let connection = Connection::new(&service, "rules");
        let mut database = Self { service, connection };
        for (collection, count) in [("c", 25), ("d", 8)] {
            let docs: Vec<Value> = (0..count).map(|id| document(random, id)).collect();
            let command = doc! { "insert": collection, "documents": Array::new(docs), "$db": "test" };
            let outcome = database
                .service
                .run(&mut database.connection, Request::new(command.to_raw().as_raw()));
            let reply = RawDoc::validate(&outcome.reply).expect("a reply is BSON");
            assert!(reply.get("writeErrors").is_none() && reply.get("ok").is_some_and(ValueRef::truthy));
        }
        database
    }
}

/// `{_id, k, a, b: {c}}`, with anything or nothing in `a` and `b`.
fn document(random: &mut Random, id: i32) -> Value {
    let mut out = doc! { "_id": id, "k": random.below(5) as i32 };
    if !random.one_in(5) {
        out.push("a", random.value(2));
    }
    match random.below(4) {
        0 => {}
        1 => out.push("b", random.value(2)),
        _ => out.push("b", doc! { "c": random.scalar(), "d": 1 }),
    }
    Value::Document(out)
}

fn parse(stages: &[&str]) -> Pipeline {
    let stages: Vec<Value> = stages
        .iter()
        .map(|stage| Value::Document(shell::document(stage).unwrap_or_else(|e| panic!("{stage}: {e}"))))
        .collect();
    let mut scope = Scope::new();
    let mut context = ParseContext::new(&mut scope, Namespace::new("test", "c"), Place::Top);
    context.keep_written = true;
    Pipeline::parse(ArrayRef::Items(&stages), &mut context).expect("a pipeline")
}

/// The documents of a pipeline that is rewritten by `rules`, printed; or the number of its error.
fn run(snapshot: &Snapshot, pipeline: &Pipeline, rules: &'static [Rule]) -> Result<Vec<String>, i32> {
    let namespace = Namespace::new("test", "c");
    let source = PipelineSource {
        columns: None,
        searches: None,
        namespace: namespace.clone(),
        server: Arc::new(NoServerState),
        collator: None,
        rules,
        plans: None,
        caller: None,
        planned_with: Weak::new(),
    };
    let all = |_: &Namespace, _: &mut _| false;
    let (op, interrupt) = (OpContext::new(0, Timestamp::default(), 0), Interrupt::default());
    let mut batch = Batch::new(snapshot, &op, &interrupt);
    let number = |error: nestor_model::Error| error.code().number();
    let mut root =
        plan_stages(&namespace, &pipeline.stages, &Hint::default(), &all, snapshot, &source).map_err(number)?;
    let mut out = Vec::new();
    loop {
        match root.next(&mut batch).map_err(number)? {
            Step::Row(row) => out.push(shell::print(&Value::Document(row.doc.into_document()))),
            Step::Pause => panic!("there is no limit to the work"),
            Step::Eof => return Ok(out),
        }
    }
}

/// As [`run`], by batches of few rows, with pauses between them; for the number of rows alone nothing but those.
fn run_by_batches(
    snapshot: &Snapshot,
    pipeline: &Pipeline,
    wanted: Wanted,
    random: &mut Random,
) -> Result<(usize, Vec<String>), i32> {
    let namespace = Namespace::new("test", "c");
    let source = PipelineSource {
        columns: None,
        searches: None,
        namespace: namespace.clone(),
        server: Arc::new(NoServerState),
        collator: None,
        rules: RULES,
        plans: None,
        caller: None,
        planned_with: Weak::new(),
    };
    let all = |_: &Namespace, _: &mut _| false;
    let (op, interrupt) = (OpContext::new(0, Timestamp::default(), 0), Interrupt::default());
    let number = |error: nestor_model::Error| error.code().number();
    let mut root =
        plan_stages(&namespace, &pipeline.stages, &Hint::default(), &all, snapshot, &source).map_err(number)?;
    let (mut rows, mut out) = (0, Vec::new());
    let mut filled = RowBatch::new(wanted);
    loop {
        let mut batch = Batch::new(snapshot, &op, &interrupt).with_budget(1 + random.below(40) as u64);
        filled.clear();
        let room = 1 + random.below(9);
        let end = filled
            .with_room(room, |filled| root.next_batch(&mut batch, filled))
            .map_err(number)?;
        assert!(filled.len() <= room, "{} rows and room for {room}", filled.len());
        rows += filled.len();
        out.extend(
            filled
                .iter()
                .map(|row| shell::print(&Value::Document(row.doc.to_document()))),
        );
        if end == Filled::Eof {
            return Ok((rows, out));
        }
    }
}

#[test]
fn batches_have_the_rows_that_come_one_by_one() {
    for seed in 21..=24 {
        let mut random = Random::new(seed);
        let database = Database::new(&mut random);
        let snapshot = database.service.engine.snapshot();
        for _ in 0..60 {
            let mut stages = random_stages(&mut random);
            stages.truncate(1 + random.below(4));
            let pipeline = parse(&stages);
            let plain = run(&snapshot, &pipeline, RULES).expect("no stage raises errors");
            let by_batches = run_by_batches(&snapshot, &pipeline, Wanted::Documents, &mut random);
            let expected = (plain.len(), plain);
            assert_eq!(by_batches.as_ref(), Ok(&expected), "seed {seed}, {stages:?}");
            let number = run_by_batches(&snapshot, &pipeline, Wanted::Number, &mut random);
            assert_eq!(number, Ok((expected.0, Vec::new())), "seed {seed}, {stages:?}");
        }
    }
}

fn random_stages(random: &mut Random) -> Vec<&'static str> {
    let mut stages = Vec::new();
    while stages.len() < 6 {
        match random.below(4) {
            0 => stages.extend_from_slice(RUNS[random.below(RUNS.len())]),
            _ => stages.push(*random.pick(STAGES)),
        }
    }
    stages
}

#[test]
fn plans_with_and_without_each_rule_agree() {
    let mut used = vec![0; RULES.len()];
    let policy = doc! { "a": "hide", "b.c": "hash" };
    let masking = Arc::new(Masking::parse(policy.as_ref()).expect("a policy"));
    for seed in 1..=6 {
        let mut random = Random::new(seed);
        let database = Database::new(&mut random);
        let snapshot = database.service.engine.snapshot();
        for _ in 0..140 {
            let stages = random_stages(&mut random);
            let mut pipeline = parse(&stages);
            if random.one_in(3) {
                // What a user reads who sees some fields of the collection masked.
                pipeline.stages.insert(0, Stage::Mask(masking.clone()));
                pipeline.written.clear();
            }
            let plain = run(&snapshot, &pipeline, &[]);
            assert!(plain.is_ok(), "{stages:?} fails with {plain:?}");
            for (at, rule) in RULES.iter().enumerate() {
                // This one is about what the rule before it makes.
                let from = if rule.name == "lookup_unwind_match" { at - 1 } else { at };
                let mut nodes = StageNode::all(&pipeline.stages, &pipeline.written);
                rewrite(&mut nodes, &RULES[from..at]);
                let before = shown(&nodes);
                rewrite(&mut nodes, &RULES[from..=at]);
                if shown(&nodes) == before {
                    continue;
                }
                used[at] += 1;
                let ruled = run(&snapshot, &pipeline, &RULES[from..=at]);
                assert_eq!(ruled, plain, "seed {seed}, {} changes {stages:?}", rule.name);
            }
            assert_eq!(
                run(&snapshot, &pipeline, RULES),
                plain,
                "seed {seed}, all rules change {stages:?}"
            );
        }
    }
    for (rule, used) in RULES.iter().zip(used) {
        if rule.name == "match_into_changes" {
            // Streams read a log and no collection, so the law of this rule is tested in `exec`, where streams run.
            continue;
        }
        if ["match_into_unpack", "match_before_public_buckets"].contains(&rule.name) {
            // The law of these rules is that of `timeseries.rs`: a time-series collection answers as a plain one.
            continue;
        }
        assert!(used >= 10, "{} was of use {used} times only", rule.name);
    }
}

fn shown(nodes: &[StageNode]) -> Vec<String> {
    nodes
        .iter()
        .map(|node| shell::print(&Value::Document(node.shown())))
        .collect()
}
