//! What operators keep is counted where all statements together are limited: it grows while rows are kept, and is gone when the
//! cursor is, however that ended.

use nestor_command::{Connection, Request, Service};
use nestor_database::DatabaseOptions;
use nestor_model::{Array, Document, RawDoc, Value, ValueRef, doc};
use nestor_storage::{Engine, EngineOptions};
use nestor_testkit::shell;
use std::sync::atomic::{AtomicBool, Ordering};

const ROWS: i32 = 800;

fn service() -> Service {
    let engine = Engine::ephemeral(EngineOptions::at_time(1_700_000_000));
    let service = Service::new(DatabaseOptions::default(), engine);
    let mut connection = Connection::new(&service, "filler");
    let pad = "p".repeat(600);
    let docs = (0..ROWS).map(|id| {
        let next = vec![Value::Int32(id + 1), Value::Int32(id + 2)];
        Value::Document(doc! { "_id": id, "a": vec![Value::Int32(id % 9), Value::Int32(id % 7)], "k": id % 50, "v": id * 7919 % 1_000, "pad": pad.as_str(), "next": next })
    });
    ok(run(
        &service,
        &mut connection,
        doc! { "insert": "c", "documents": Array::new(docs.collect()) },
    ));
    let few = (0..5).map(|id| Value::Document(doc! { "_id": id }));
    ok(run(
        &service,
        &mut connection,
        doc! { "insert": "few", "documents": Array::new(few.collect()) },
    ));
    let keys = ["a", "v", "k"].map(|path| {
        let mut key = Document::new();
        key.push(path, 1);
        Value::Document(doc! { "key": key, "name": path })
    });
    ok(run(
        &service,
        &mut connection,
        doc! { "createIndexes": "c", "indexes": Array::new(keys.to_vec()) },
    ));
    service
}

fn run(service: &Service, connection: &mut Connection, mut command: Document) -> Document {
    if command.get("$db").is_none() {
        command.push("$db", "test");
    }
    let raw = command.to_raw();
    let outcome = service.run(connection, Request::new(raw.as_raw()));
    RawDoc::validate(&outcome.reply)
        .expect("a reply is BSON")
        .to_buf()
        .into()
}

fn ok(reply: Document) -> Document {
    assert!(
        reply.get("ok").is_some_and(ValueRef::truthy) && reply.get("writeErrors").is_none(),
        "{reply:?}"
    );
    reply
}

fn code(reply: &Document) -> Option<i32> {
    match reply.get("code") {
        Some(ValueRef::Int32(code)) => Some(code),
        _ => None,
    }
}

fn aggregate(collection: &str, stages: &str, batch_size: i32) -> Document {
    let stages = shell::document(&format!("{{p: [{stages}]}}")).unwrap_or_else(|e| panic!("{stages}: {e}"));
    let stages = stages.get("p").map(ValueRef::to_value);
    doc! { "aggregate": collection, "pipeline": stages, "cursor": doc! { "batchSize": batch_size } }
}

fn cursor_of(reply: &Document) -> i64 {
    match reply
        .get("cursor")
        .and_then(ValueRef::as_document)
        .and_then(|cursor| cursor.get("id"))
    {
        Some(ValueRef::Int64(id)) => id,
        other => panic!("{other:?} is no cursor"),
    }
}

/// Pipelines that keep more than 100 kB while their cursor is open.
const KEEPING: [&str; 14] = [
    r#"{$sort: {v: 1, pad: 1}}"#,
    r#"{$sort: {v: 1, pad: 1}}, {$limit: 600}"#,
    r#"{$group: {_id: "$_id", all: {$push: "$pad"}}}"#,
    r#"{$setWindowFields: {sortBy: {v: 1}, output: {n: {$sum: "$k"}, all: {$first: "$pad"}}}}"#,
    r#"{$bucketAuto: {groupBy: "$v", buckets: 400, output: {n: {$sum: 1}}}}"#,
    r#"{$limit: 150}, {$lookup: {from: "c", localField: "_id", foreignField: "next", as: "r"}}"#,
    r#"{$limit: 150}, {$lookup: {from: "c", localField: "_id", foreignField: "next", as: "r"}}, {$unwind: "$r"}"#,
    r#"{$limit: 150}, {$lookup: {from: "c", localField: "_id", foreignField: "next", as: "r", pipeline: [{$sort: {k: 1}}]}}, {$unwind: "$r"}"#,
    r#"{$limit: 150}, {$lookup: {from: "c", pipeline: [{$match: {k: {$lt: 25}}}], as: "r"}}"#,
    r#"{$densify: {field: "v", range: {step: 100, bounds: "full"}, partitionByFields: ["_id", "pad"]}}"#,
    r#"{$match: {k: 77}}, {$unionWith: {coll: "c", pipeline: [{$sort: {pad: 1, k: 1}}]}}"#,
    r#"{$match: {$or: [{v: {$gte: 0}, pad: {$gt: ""}}, {k: {$gte: 0}, pad: {$gt: ""}}]}}, {$sort: {k: -1, v: 1}}"#,
    r#"{$facet: {all: [{$limit: 700}]}}, {$unwind: "$all"}, {$sort: {"all.v": 1}}"#,
    r#"{$match: {v: {$gte: 0}}}, {$sort: {a: 1, pad: 1}}"#,
];

#[test]
fn what_a_cursor_keeps_is_counted_until_it_is_closed() {
    let service = service();
    let pool = &service.connections.memory;
    let mut connection = Connection::new(&service, "client");
    for stages in KEEPING {
        assert_eq!(pool.held(), 0, "before {stages}");
        let reply = ok(run(&service, &mut connection, aggregate("c", stages, 1)));
        assert!(pool.held() > 100_000, "{} bytes: {stages}", pool.held());
        // Nothing runs: it belongs to the cursor, which any connection may go on with.
        assert_eq!(pool.at_rest(), pool.held(), "{stages}");
        let more = doc! { "getMore": cursor_of(&reply), "collection": "c", "batchSize": 140 };
        let id = cursor_of(&ok(run(&service, &mut connection, more)));
        assert_eq!(pool.at_rest(), pool.held(), "{stages}");
        match id {
            0 => assert_eq!(pool.held(), 0, "exhausted: {stages}"),
            id => {
                ok(run(
                    &service,
                    &mut connection,
                    doc! { "killCursors": "c", "cursors": vec![Value::Int64(id)] },
                ));
                assert_eq!(pool.held(), 0, "killed: {stages}");
            }
        }
        // Whatever ends it.
        for limit in [20_000, 200_000] {
            let set = doc! { "setParameter": 1, "internalQueryMaxBlockingSortMemoryUsageBytes": limit, "$db": "admin" };
            ok(run(&service, &mut connection, set));
            for disk_use in [false, true] {
                let mut command = aggregate("c", stages, 100_000);
                command.push("allowDiskUse", disk_use);
                run(&service, &mut connection, command);
                assert_eq!(pool.held(), 0, "with {limit} bytes, on disk: {disk_use}: {stages}");
            }
        }
        let set = doc! { "setParameter": 1, "internalQueryMaxBlockingSortMemoryUsageBytes": 100 << 20, "$db": "admin" };
        ok(run(&service, &mut connection, set));
    }
}

/// Rows that were given out are kept no longer.
#[test]
fn what_was_given_out_is_counted_no_more() {
    let service = service();
    let pool = &service.connections.memory;
    let mut connection = Connection::new(&service, "client");
    for stages in [
        r#"{$sort: {v: 1, pad: 1}}"#,
        r#"{$group: {_id: "$_id", all: {$push: "$pad"}}}"#,
    ] {
        let reply = ok(run(&service, &mut connection, aggregate("c", stages, 1)));
        let (id, first) = (cursor_of(&reply), pool.held());
        let more = || doc! { "getMore": id, "collection": "c", "batchSize": 350 };
        ok(run(&service, &mut connection, more()));
        let second = pool.held();
        ok(run(&service, &mut connection, more()));
        let third = pool.held();
        assert!(
            first * 3 > second * 5 && second > third * 4,
            "{first}, {second}, {third}: {stages}"
        );
        assert_eq!(cursor_of(&ok(run(&service, &mut connection, more()))), 0);
        assert_eq!(pool.held(), 0);
    }
}

/// When all together keep too much, the statement that keeps most ends with a clear error, and others go on.
#[test]
fn the_largest_statement_ends_and_small_ones_go_on() {
    const LIMIT: usize = 400_000;
    let service = service();
    let pool = &service.connections.memory;
    pool.set_limit(LIMIT);
    let bombs = [
        r#"{$sort: {pad: 1, v: 1}}"#,
        r#"{$group: {_id: "$_id", all: {$push: "$pad"}}}"#,
        r#"{$group: {_id: null, all: {$push: "$pad"}}}, {$project: {n: {$size: "$all"}}}"#,
        r#"{$facet: {x: [{$sort: {v: 1}}], y: [{$group: {_id: "$v"}}]}}"#,
        r#"{$setWindowFields: {sortBy: {v: 1}, output: {n: {$sum: "$k"}}}}"#,
        r#"{$bucketAuto: {groupBy: "$v", buckets: 4}}"#,
        r#"{$limit: 3}, {$graphLookup: {from: "c", startWith: "$next", connectFromField: "next", connectToField: "_id", as: "r"}}"#,
        r#"{$limit: 150}, {$lookup: {from: "c", localField: "_id", foreignField: "next", as: "r"}}"#,
        r#"{$lookup: {from: "c", pipeline: [{$match: {k: {$lt: 49}}}], as: "r"}}, {$limit: 1}"#,
        r#"{$densify: {field: "v", range: {step: 100, bounds: "full"}, partitionByFields: ["_id", "pad"]}}"#,
    ];
    /// Says that it is over, also when an assertion failed: the other thread would go on for ever.
    struct Over<'f>(&'f AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let is_over = Over(&over);
        let small = scope.spawn(|| {
            let mut connection = Connection::new(&service, "small");
            let mut done = 0;
            while !over.load(Ordering::Relaxed) {
                let stages = r#"{$match: {_id: {$lt: 60}}}, {$sort: {pad: 1, k: 1}}"#;
                ok(run(&service, &mut connection, aggregate("c", stages, 1_000)));
                done += 1;
            }
            done
        });
        let mut connection = Connection::new(&service, "large");
        for bomb in bombs {
            let reply = run(&service, &mut connection, aggregate("c", bomb, 100_000));
            assert_eq!(code(&reply), Some(146), "{bomb}: {reply:?}");
            let text = shell::print(&Value::Document(reply));
            assert!(
                text.contains("operations together held too much memory"),
                "{bomb}: {text}"
            );
        }
        drop(is_over);
        assert!(small.join().expect("no small statement was ended") > 0);
    });
    assert_eq!(pool.held(), 0);
}

/// A cursor that is idle and keeps more than any statement makes room for them.
#[test]
fn a_large_idle_cursor_makes_room() {
    let service = service();
    let pool = &service.connections.memory;
    pool.set_limit(2_000_000);
    let mut connection = Connection::new(&service, "client");
    let large = ok(run(
        &service,
        &mut connection,
        aggregate("c", r#"{$sort: {pad: 1, v: 1}}"#, 1),
    ));
    let small = ok(run(
        &service,
        &mut connection,
        aggregate("c", r#"{$match: {_id: {$lt: 100}}}, {$sort: {pad: 1, v: 1}}"#, 1),
    ));
    let before = pool.held();
    assert!(before > 500_000, "{before}");
    pool.set_limit(before + 200_000);
    let mut other = Connection::new(&service, "other");
    ok(run(
        &service,
        &mut other,
        aggregate("c", r#"{$match: {_id: {$lt: 500}}}, {$sort: {pad: 1, v: 1}}"#, 5_000),
    ));
    let more = |reply: &Document| doc! { "getMore": cursor_of(reply), "collection": "c" };
    assert_eq!(
        code(&run(&service, &mut connection, more(&large))),
        Some(43),
        "it was closed"
    );
    ok(run(&service, &mut connection, more(&small)));
    assert_eq!(pool.held(), 0);
}
