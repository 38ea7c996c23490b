//! Commands through the service that golden cases cannot tell: several connections, cursors, sessions, transactions.

mod index_builds;
mod logins;
mod rights;
mod writes_explained;

use crate::connection::Connection;
use crate::request::{Outcome, Request, Sequence};
use crate::service::Service;
use nestor_database::DatabaseOptions;
use nestor_model::{Binary, Document, RawDoc, Timestamp, Value, ValueRef, doc};
use nestor_storage::{Engine, EngineOptions};

pub(crate) struct Client<'s> {
    service: &'s Service,
    pub(crate) conn: Connection,
}

fn service() -> Service {
    Service::new(
        DatabaseOptions::default(),
        Engine::ephemeral(EngineOptions::at_time(1_700_000_000)),
    )
}

impl<'s> Client<'s> {
    pub(crate) fn new(service: &'s Service) -> Self {
        Self {
            conn: Connection::new(service, "test"),
            service,
        }
    }

    fn outcome(&mut self, mut command: Document) -> Outcome {
        if command.get("$db").is_none() {
            command.push("$db", "test");
        }
        let body = command.to_raw();
        self.service.run(&mut self.conn, Request::new(body.as_raw()))
    }

    pub(crate) fn run(&mut self, command: Document) -> Document {
        let reply = self.outcome(command).reply;
        RawDoc::validate(&reply).expect("replies are documents").to_buf().into()
    }

    /// The reply's code, 0 when it is no error.
    pub(crate) fn code(&mut self, command: Document) -> i64 {
        self.run(command)
            .get("code")
            .and_then(nestor_model::number::safe_i64)
            .unwrap_or(0)
    }
}

fn ids(range: std::ops::Range<i32>) -> Vec<Value> {
    range.map(|i| doc! { "_id": i }.into()).collect()
}

/// Number of documents and cursor id of a cursor reply.
fn batch(reply: &Document) -> (usize, i64) {
    let Some(ValueRef::Document(cursor)) = reply.get("cursor") else {
        panic!("no cursor: {reply:?}");
    };
    let batch = cursor.get("firstBatch").or(cursor.get("nextBatch"));
    let id = cursor
        .get("id")
        .and_then(nestor_model::number::safe_i64)
        .expect("an id");
    (batch.and_then(ValueRef::as_array).expect("a batch").len(), id)
}

fn session(n: u8) -> Document {
    doc! { "id": Binary { subtype: 4, bytes: [n; 16].as_slice().into() } }
}

#[test]
fn cursors_live_over_batches_and_belong_to_their_session() {
    let service = service();
    let mut a = Client::new(&service);
    a.run(doc! { "insert": "c", "documents": ids(0..250) });
    let (n, id) = batch(&a.run(doc! { "find": "c", "lsid": session(1) }));
    assert_eq!(n, 101);
    let mut b = Client::new(&service);
    assert_eq!(
        b.code(doc! { "getMore": id, "collection": "c", "lsid": session(2) }),
        50738
    );
    assert_eq!(
        b.code(doc! { "getMore": id, "collection": "d", "lsid": session(1) }),
        13
    );
    let more = || doc! { "getMore": id, "collection": "c", "batchSize": 100, "lsid": session(1) };
    assert_eq!(batch(&b.run(more())), (100, id));
    assert_eq!(batch(&b.run(more())), (49, 0));
    assert_eq!(b.code(more()), 43);
}

#[test]
fn a_cursor_dies_with_its_collection_and_when_killed() {
    let service = service();
    let mut a = Client::new(&service);
    a.run(doc! { "insert": "c", "documents": ids(0..10) });
    let open = || doc! { "find": "c", "batchSize": 2 };
    let (_, id) = batch(&a.run(open()));
    a.run(doc! { "killCursors": "c", "cursors": vec![Value::Int64(id)] });
    assert_eq!(a.code(doc! { "getMore": id, "collection": "c" }), 43);
    let (_, id) = batch(&a.run(open()));
    a.run(doc! { "drop": "c" });
    assert_eq!(a.code(doc! { "getMore": id, "collection": "c" }), 175);
}

/// Pipelines within others are planned with the outer one, which is before most of their rows are wanted.
#[test]
fn pipelines_within_others_go_on_when_indexes_change_between_batches() {
    let service = service();
    let mut a = Client::new(&service);
    let doc = |id: i32, k: Value| Value::from(doc! { "_id": id, "k": k });
    let both = || Value::from(vec![Value::from(1), Value::from(2)]);
    a.run(doc! { "insert": "c", "documents": vec![doc(0, 0.into()), doc(1, both()), doc(2, 2.into())] });
    a.run(doc! { "insert": "d", "documents": vec![doc(10, 0.into()), doc(11, 1.into()), doc(12, 2.into())] });
    let index = doc! { "key": doc! { "k": 1 }, "name": "k" };
    a.run(doc! { "createIndexes": "d", "indexes": vec![index.into()] });
    let join = |into: &str, pipeline: Vec<Value>| -> Value {
        let join = doc! { "from": "d", "localField": "k", "foreignField": "k", "pipeline": pipeline, "as": into };
        doc! { "$lookup": join }.into()
    };
    let matched = doc! { "$match": doc! { "k": doc! { "$gte": 0 } } };
    let union = doc! { "$unionWith": doc! { "coll": "d", "pipeline": vec![matched.into()] } };
    let again = doc! { "$reduce": doc! {
        "input": doc! { "$ifNull": vec!["$m.again".into(), Value::from(Vec::<Value>::new())] },
        "initialValue": 0,
        "in": doc! { "$add": vec!["$$value".into(), Value::from(doc! { "$size": "$$this" })] },
    } };
    let shown = doc! { "$project": doc! { "m": "$m._id", "again": again } };
    let pipeline = vec![join("m", vec![join("again", Vec::new())]), union.into(), shown.into()];
    let shown = |reply: &Document| {
        let cursor = reply.get("cursor").and_then(ValueRef::as_document).expect("a cursor");
        let batch = cursor.get("firstBatch").or(cursor.get("nextBatch")).expect("a batch");
        nestor_model::extjson::to_string(batch, nestor_model::extjson::Form::Relaxed)
    };
    let reply = a.run(doc! { "aggregate": "c", "pipeline": pipeline, "cursor": doc! { "batchSize": 1 } });
    assert_eq!(shown(&reply), r#"[{"_id":0,"m":[10],"again":1}]"#);
    let (_, id) = batch(&reply);
    // From now on a document has several entries.
    a.run(doc! { "insert": "d", "documents": vec![doc(20, both())] });
    let reply = a.run(doc! { "getMore": id, "collection": "c", "batchSize": 1 });
    assert_eq!(shown(&reply), r#"[{"_id":1,"m":[11,20,12],"again":7}]"#);
    a.run(doc! { "dropIndexes": "d", "index": "k" });
    let reply = a.run(doc! { "getMore": id, "collection": "c" });
    assert_eq!(
        shown(&reply),
        r#"[{"_id":2,"m":[12,20],"again":5},{"_id":10,"again":0},{"_id":11,"again":0},{"_id":12,"again":0},{"_id":20,"again":0}]"#
    );
}

#[test]
fn a_retried_write_gets_its_first_answer_and_writes_once() {
    let service = service();
    let mut a = Client::new(&service);
    a.run(doc! { "insert": "c", "documents": ids(1..2) });
    let add = || {
        let update = doc! { "q": doc! { "_id": 1 }, "u": doc! { "$inc": doc! { "n": 1 } } };
        doc! { "update": "c", "updates": vec![update.into()], "lsid": session(1), "txnNumber": 7i64 }
    };
    for _ in 0..3 {
        let reply = a.run(add());
        assert_eq!(format!("{:?}", reply.get("nModified")), "Some(1)");
    }
    let reply = a.run(doc! { "find": "c" });
    assert!(format!("{reply:?}").contains(r#"{"_id": 1, "n": 1}"#), "{reply:?}");
    let mut older = add();
    older.set("txnNumber", 6i64);
    assert_eq!(a.code(older), 225);
}

/// A command of transaction `number` of session `n`.
fn in_transaction(mut command: Document, n: u8, number: i64, start: bool) -> Document {
    command.push("lsid", session(n));
    command.push("txnNumber", number);
    command.push("autocommit", false);
    if start {
        command.push("startTransaction", true);
    }
    command
}

fn end(name: &str, n: u8, number: i64) -> Document {
    let mut command = Document::new();
    command.push(name, 1);
    command.push("$db", "admin");
    in_transaction(command, n, number, false)
}

#[test]
fn a_transaction_sees_its_writes_and_others_only_after_the_commit() {
    let service = service();
    let (mut a, mut b) = (Client::new(&service), Client::new(&service));
    a.run(doc! { "create": "c" });
    let insert = doc! { "insert": "c", "documents": ids(1..3) };
    assert_eq!(a.code(in_transaction(insert, 1, 1, true)), 0);
    let find = || doc! { "find": "c" };
    assert_eq!(batch(&a.run(in_transaction(find(), 1, 1, false))).0, 2);
    assert_eq!(batch(&b.run(find())).0, 0);
    assert_eq!(a.code(end("commitTransaction", 1, 1)), 0);
    assert_eq!(batch(&b.run(find())).0, 2);
    // Committing again is the same commit; going on is not possible.
    assert_eq!(a.code(end("commitTransaction", 1, 1)), 0);
    assert_eq!(a.code(in_transaction(find(), 1, 1, false)), 256);
}

#[test]
fn an_aborted_transaction_leaves_nothing_and_a_failed_statement_aborts_it() {
    let service = service();
    let mut a = Client::new(&service);
    a.run(doc! { "insert": "c", "documents": ids(1..2) });
    let insert = |from: i32| doc! { "insert": "c", "documents": ids(from..from + 1) };
    a.run(in_transaction(insert(5), 1, 1, true));
    assert_eq!(a.code(end("abortTransaction", 1, 1)), 0);
    assert_eq!(batch(&a.run(doc! { "find": "c" })).0, 1);
    a.run(in_transaction(insert(6), 1, 2, true));
    let failed = a.run(in_transaction(insert(1), 1, 2, false));
    assert!(failed.get("writeErrors").is_some());
    let reply = a.run(end("commitTransaction", 1, 2));
    assert_eq!(format!("{:?}", reply.get("code")), "Some(251)");
    assert!(format!("{reply:?}").contains("TransientTransactionError"));
    assert_eq!(batch(&a.run(doc! { "find": "c" })).0, 1);
}

#[test]
fn two_transactions_on_one_document_conflict() {
    let service = service();
    let (mut a, mut b) = (Client::new(&service), Client::new(&service));
    a.run(doc! { "insert": "c", "documents": ids(1..2) });
    let add = || {
        let update = doc! { "q": doc! { "_id": 1 }, "u": doc! { "$inc": doc! { "n": 1 } } };
        doc! { "update": "c", "updates": vec![update.into()] }
    };
    assert_eq!(a.code(in_transaction(add(), 1, 1, true)), 0);
    let reply = b.run(in_transaction(add(), 2, 1, true));
    assert!(format!("{reply:?}").contains("112"), "{reply:?}");
    assert_eq!(a.code(end("commitTransaction", 1, 1)), 0);
    let reply = a.run(doc! { "find": "c" });
    assert!(format!("{reply:?}").contains(r#"{"_id": 1, "n": 1}"#), "{reply:?}");
}

#[test]
fn tailing_waits_for_more() {
    let service = service();
    let mut a = Client::new(&service);
    a.run(doc! { "create": "c", "capped": true, "size": 4096 });
    a.run(doc! { "insert": "c", "documents": ids(0..2) });
    let (n, id) = batch(&a.run(doc! { "find": "c", "tailable": true, "awaitData": true }));
    assert!(n == 2 && id != 0);
    let more = || doc! { "getMore": id, "collection": "c", "maxTimeMS": 60_000 };
    let parked = a.outcome(more()).park.expect("nothing there yet");
    assert!(matches!(parked.wake, crate::request::Wake::Commit));
    Client::new(&service).run(doc! { "insert": "c", "documents": ids(2..3) });
    let outcome = a.outcome(more());
    assert!(outcome.park.is_none());
    let reply = RawDoc::validate(&outcome.reply).expect("a document").to_buf().into();
    assert_eq!(batch(&reply), (1, id));
}

#[test]
fn an_exhaust_stream_goes_on_after_an_empty_batch_only_if_it_waited() {
    let service = service();
    let mut a = Client::new(&service);
    a.run(doc! { "create": "c", "capped": true, "size": 4096 });
    a.run(doc! { "insert": "c", "documents": ids(0..2) });
    let mut streams = |await_data: bool, millis: i32| {
        let (_, id) = batch(&a.run(doc! { "find": "c", "tailable": true, "awaitData": await_data, "batchSize": 1 }));
        let mut more = doc! { "getMore": id, "collection": "c", "$db": "test" };
        if await_data {
            more.push("maxTimeMS", millis);
        }
        let body = more.to_raw();
        let mut next = || loop {
            let mut request = Request::new(body.as_raw());
            request.exhaust_allowed = true;
            let outcome = service.run(&mut a.conn, request);
            if outcome.park.is_none() {
                return outcome.exhaust.is_some();
            }
        };
        [next(), next()]
    };
    assert_eq!(streams(false, 0), [true, false]);
    assert_eq!(streams(true, 0), [true, false]);
    assert_eq!(streams(true, 5), [true, true]);
}

#[test]
fn views_are_not_nested_too_deep_whichever_way_leads_there() {
    let service = service();
    let mut a = Client::new(&service);
    for i in 1..=19 {
        let made = a
            .code(doc! { "create": format!("v{i}"), "viewOn": format!("v{}", i - 1), "pipeline": Vec::<Value>::new() });
        assert_eq!(made, 0, "v{i}");
    }
    let also_on = |coll: &str| {
        let stage = doc! { "$unionWith": coll };
        vec![Value::from(stage)]
    };
    assert_eq!(
        a.code(doc! { "create": "w1", "viewOn": "v19", "pipeline": also_on("v17") }),
        0
    );
    // v19 is known by the first way when the second leads to it through another view.
    assert_eq!(
        a.code(doc! { "create": "w2", "viewOn": "v19", "pipeline": also_on("w1") }),
        165
    );
}

#[test]
fn a_command_that_was_given_up_leaves_nothing_to_the_next() {
    let service = service();
    let mut a = Client::new(&service);
    a.run(doc! { "create": "c", "capped": true, "size": 4096 });
    a.run(doc! { "insert": "c", "documents": ids(0..1) });
    let (_, id) = batch(&a.run(doc! { "find": "c", "tailable": true, "awaitData": true }));
    let more = doc! { "getMore": id, "collection": "c", "maxTimeMS": 60_000 };
    assert!(a.outcome(more).park.is_some());
    let running = |a: &Client<'_>| crate::lock(&a.conn.slot.operation).opid;
    assert!(a.conn.parked.is_some() && running(&a) != 0);
    a.conn.give_up();
    assert!(a.conn.parked.is_none() && running(&a) == 0);
}

#[test]
fn writes_say_what_their_reply_waits_for() {
    let service = service();
    let mut a = Client::new(&service);
    let insert =
        |id: i32, concern: Document| doc! { "insert": "c", "documents": ids(id..id + 1), "writeConcern": concern };
    assert!(a.outcome(insert(1, doc! { "w": 1 })).wait.is_none());
    assert!(a.outcome(insert(2, doc! { "w": 1, "j": true })).wait.is_some());
    assert!(a.outcome(insert(3, doc! { "w": "majority" })).wait.is_some());
    assert!(a.outcome(insert(4, doc! {})).wait.is_some());
    let reply = a.run(insert(5, doc! { "w": 2 }));
    assert!(
        format!("{:?}", reply.get("writeConcernError")).contains("100"),
        "{reply:?}"
    );
    assert_eq!(batch(&a.run(doc! { "find": "c" })).0, 5);
}

#[test]
fn writes_that_change_nothing_wait_for_what_they_saw() {
    let service = service();
    let (mut a, mut b) = (Client::new(&service), Client::new(&service));
    let with = |mut command: Document, concern: Document| {
        command.push("writeConcern", concern);
        command
    };
    let in_session = |mut command: Document, n: u8, number: i64| {
        command.push("lsid", session(n));
        command.push("txnNumber", number);
        command
    };
    let set = |value: i32| {
        let update = doc! { "q": doc! { "_id": 1 }, "u": doc! { "$set": doc! { "n": value } } };
        doc! { "update": "c", "updates": vec![update.into()] }
    };
    let index = || {
        let spec = doc! { "key": doc! { "n": 1 }, "name": "n_1" };
        doc! { "createIndexes": "c", "indexes": vec![spec.into()] }
    };
    let again = || doc! { "findAndModify": "c", "query": doc! { "_id": 3 }, "update": doc! { "_id": 1, "u": 1 }, "upsert": true };
    // Others write and do not wait.
    b.run(doc! { "insert": "c", "documents": ids(1..3), "writeConcern": doc! { "w": 1 } });
    b.run(with(index(), doc! { "w": 1 }));
    b.run(with(in_session(set(5), 1, 1), doc! { "w": 1 }));
    b.run(with(doc! { "create": "d" }, doc! { "w": 1 }));
    let seen = service.engine.last_lsn();

    let out = |coll: &str| doc! { "$merge": doc! { "into": coll, "whenMatched": "fail" } };
    let merge = doc! { "aggregate": "c", "pipeline": vec![out("c").into()], "cursor": doc! {} };
    let commands = [
        ("no-op update", set(5)),
        (
            "no match",
            doc! { "delete": "c", "deletes": vec![doc! { "q": doc! { "_id": 9 }, "limit": 1 }.into()] },
        ),
        ("retried statement", in_session(set(5), 1, 1)),
        ("duplicate key", doc! { "insert": "c", "documents": ids(1..2) }),
        ("error of findAndModify", again()),
        ("error of $merge", merge),
        ("index is there", index()),
        ("collection is there", doc! { "create": "d" }),
    ];
    for (name, command) in commands {
        let wait = |outcome: Outcome| outcome.wait.map(|wait| wait.lsn);
        assert_eq!(wait(a.outcome(command.clone())), Some(seen), "{name}");
        assert_eq!(
            wait(a.outcome(with(command.clone(), doc! { "w": 1, "j": true }))),
            Some(seen),
            "{name}, j"
        );
        assert_eq!(wait(a.outcome(with(command, doc! { "w": 1 }))), None, "{name}, w: 1");
    }
    assert_eq!(service.engine.last_lsn(), seen, "none of them committed anything");

    // A statement of a transaction does not wait; the commit does, also of one that only read.
    let find = in_transaction(doc! { "find": "c" }, 2, 1, true);
    assert!(a.outcome(find).wait.is_none());
    assert!(a.outcome(in_transaction(set(5), 2, 1, false)).wait.is_none());
    for _ in 0..2 {
        assert_eq!(
            a.outcome(end("commitTransaction", 2, 1)).wait.map(|wait| wait.lsn),
            Some(seen)
        );
    }
    let unknown = end("commitTransaction", 3, 1);
    assert_eq!(a.outcome(unknown).wait.map(|wait| wait.lsn), Some(seen));
}

/// `levels` documents within each other, around a number.
fn nested(levels: usize) -> Value {
    (0..levels).fold(Value::Int32(1), |inner, _| doc! { "a": inner }.into())
}

/// A document of the largest depth that may be stored is, by whatever way it comes, and one a level deeper is refused.
#[test]
fn documents_are_stored_up_to_one_depth() {
    const MOST: usize = 179;
    let service = &service();
    let list = |doc: Document| vec![Value::from(doc)];
    let cursor = Document::new;
    let deep = |levels: usize| {
        // A command has less room for it than a document.
        let inner = doc! { "$literal": nested(levels - 90) };
        let hung = doc! { "$reduce": doc! {
            "input": doc! { "$range": vec![Value::Int32(0), Value::Int32(90)] },
            "initialValue": inner, "in": doc! { "a": "$$value" },
        } };
        doc! { "$replaceWith": doc! { "_id": 1, "b": hung } }
    };
    let at = |levels: usize| {
        let mut out = Document::new();
        out.push(vec!["b"; levels + 1].join("."), 1);
        out
    };
    let update = |q: Document, u: Value, upsert: bool| doc! { "update": "c", "updates": list(doc! { "q": q, "u": u, "upsert": upsert }) };
    let one = || doc! { "_id": 1 };
    type Make<'m> = Box<dyn Fn(usize) -> Document + 'm>;
    let merge = |what: &str| {
        let what = what.to_owned();
        move |levels: usize| {
            let stages = vec![
                deep(levels).into(),
                doc! { "$merge": doc! { "into": "c", "whenMatched": what.clone() } }.into(),
            ];
            doc! { "aggregate": "source", "pipeline": stages, "cursor": cursor() }
        }
    };
    let ways: Vec<(&str, bool, Make<'_>)> = vec![
        (
            "insert",
            false,
            Box::new(|n| doc! { "insert": "c", "documents": list(doc! { "b": nested(n) }) }),
        ),
        (
            "$set",
            true,
            Box::new(|n| update(one(), doc! { "$set": doc! { "b": nested(n) } }.into(), false)),
        ),
        (
            "$set of a path",
            true,
            Box::new(|n| update(one(), doc! { "$set": at(n) }.into(), false)),
        ),
        (
            "$push",
            true,
            Box::new(|n| update(one(), doc! { "$push": doc! { "b": nested(n - 1) } }.into(), false)),
        ),
        (
            "replacement",
            true,
            Box::new(|n| update(one(), doc! { "b": nested(n) }.into(), false)),
        ),
        (
            "upsert",
            false,
            Box::new(|n| update(at(n), doc! { "$set": doc! { "x": 1 } }.into(), true)),
        ),
        (
            "upserted replacement",
            false,
            Box::new(|n| update(one(), doc! { "b": nested(n) }.into(), true)),
        ),
        (
            "update pipeline",
            true,
            Box::new(|n| update(one(), list(deep(n)).into(), false)),
        ),
        (
            "findAndModify",
            true,
            Box::new(|n| doc! { "findAndModify": "c", "query": one(), "update": doc! { "b": nested(n) } }),
        ),
        (
            "$out",
            false,
            Box::new(|n| {
                doc! { "aggregate": "source", "pipeline": vec![deep(n).into(), doc! { "$out": "c" }.into()], "cursor": cursor() }
            }),
        ),
        ("$merge, new", false, Box::new(merge("merge"))),
        ("$merge, replace", true, Box::new(merge("replace"))),
        ("$merge, merge", true, Box::new(merge("merge"))),
    ];
    let mut client = Client::new(service);
    client.run(doc! { "insert": "source", "documents": ids(1..2) });
    for (name, is_there, make) in ways {
        for (levels, code) in [(MOST, 0), (MOST + 1, 15)] {
            client.run(doc! { "drop": "c" });
            if is_there {
                client.run(doc! { "insert": "c", "documents": ids(1..2) });
            }
            let reply = client.run(make(levels));
            let shown = format!("{:?}", reply.get("writeErrors").or(reply.get("code")));
            match code {
                0 => assert_eq!(shown, "None", "{name} of {levels} levels"),
                _ => assert!(shown.contains("15"), "{name} of {levels} levels: {shown}"),
            }
            let valid = client.run(doc! { "validate": "c" });
            assert!(
                code != 0 || valid.get("valid").is_some_and(ValueRef::truthy),
                "{name}: {valid:?}"
            );
        }
    }
    // In a sequence of its own there is room for more than may be stored, and it does not count from the command.
    for (levels, code) in [(MOST, None), (MOST + 1, Some(15))] {
        let document = doc! { "b": nested(levels) }.to_raw();
        let sequences = [Sequence {
            name: "documents",
            documents: vec![document.as_raw()],
        }];
        let body = doc! { "insert": "c", "$db": "test" }.to_raw();
        let request = Request {
            sequences: &sequences,
            ..Request::new(body.as_raw())
        };
        let reply: Document = RawDoc::validate(&service.run(&mut client.conn, request).reply)
            .expect("a reply")
            .to_buf()
            .into();
        let shown = format!("{:?}", reply.get("writeErrors"));
        assert_eq!(shown.contains("15"), code.is_some(), "{shown}");
    }
}

/// Whatever makes values deeper again and again ends with an error before anything runs out of stack.
#[test]
fn computed_values_have_a_depth() {
    let service = &service();
    let mut client = Client::new(service);
    client.run(doc! { "insert": "c", "documents": ids(1..2) });
    let aggregate = |stages: Vec<Value>| doc! { "aggregate": "c", "pipeline": stages, "cursor": Document::new() };
    let reduce = |rounds: i32, round: Document| {
        let range = doc! { "$range": vec![Value::Int32(0), Value::Int32(rounds)] };
        let reduce = doc! { "input": range, "initialValue": 1, "in": round };
        aggregate(vec![
            doc! { "$project": doc! { "x": doc! { "$type": doc! { "$reduce": reduce } } } }.into(),
        ])
    };
    let deeper =
        |levels: usize, inner: &str| (0..levels).fold(Value::from(inner), |inner, _| doc! { "a": inner }.into());
    let repeated = |n: usize, stage: Document| aggregate(vec![stage.into(); n]);
    let lets = (0..60).fold(deeper(60, "$$x"), |inner, _| {
        doc! { "$let": doc! { "vars": doc! { "x": deeper(9, "$$x") }, "in": inner } }.into()
    });
    let lets = doc! { "$let": doc! { "vars": doc! { "x": 1 }, "in": lets } };
    let root = |field: Value| doc! { "$replaceWith": field };
    let at = |levels: usize| {
        let mut out = Document::new();
        out.push(vec!["x"; levels].join("."), "$x");
        out
    };
    let union = (0..19).fold(Vec::new(), |inner: Vec<Value>, _| {
        let mut stages = vec![doc! { "$unionWith": doc! { "coll": "c", "pipeline": inner } }.into()];
        stages.extend((0..3).map(|_| Value::from(root(deeper(9, "$$ROOT")))));
        stages
    });
    let mut command = doc! { "update": "c" };
    let stages: Vec<Value> = vec![root(deeper(20, "$$ROOT")).into(); 100];
    command.push("updates", vec![Value::from(doc! { "q": doc! {}, "u": stages })]);
    let cases = [
        (
            "$reduce",
            reduce(100, doc! { "a": "$$value" }),
            reduce(100_000, doc! { "a": "$$value" }),
        ),
        (
            "arrays",
            reduce(100, doc! { "$objectToArray": doc! { "a": "$$value" } }),
            reduce(100_000, doc! { "$objectToArray": doc! { "a": "$$value" } }),
        ),
        (
            "$let",
            aggregate(vec![]),
            aggregate(vec![doc! { "$project": doc! { "x": lets } }.into()]),
        ),
        (
            "$replaceWith",
            repeated(9, root(deeper(20, "$$ROOT"))),
            repeated(900, root(deeper(20, "$$ROOT"))),
        ),
        (
            "$group",
            repeated(9, doc! { "$group": doc! { "_id": deeper(9, "$_id") } }),
            repeated(900, doc! { "$group": doc! { "_id": deeper(9, "$_id") } }),
        ),
        (
            "paths",
            doc! { "update": "c", "updates": vec![Value::from(doc! { "q": doc! {}, "u": doc! { "$set": doc! { "x": 1 } } })] },
            repeated(900, doc! { "$addFields": at(50) }),
        ),
        (
            "$facet",
            repeated(9, doc! { "$facet": doc! { "x": Vec::<Value>::new() } }),
            repeated(900, doc! { "$facet": doc! { "x": Vec::<Value>::new() } }),
        ),
        ("$unionWith", aggregate(vec![]), aggregate(union)),
        ("an update", doc! { "ping": 1 }, command),
    ];
    for (name, shallow, deep) in cases {
        assert_eq!(client.code(shallow), 0, "{name}");
        let reply = client.run(deep);
        let shown = format!("{:?}", reply.get("writeErrors").or(reply.get("code")));
        assert!(shown.contains("15"), "{name}: {shown}");
    }
}

#[test]
fn top_forgets_what_was_dropped_and_nothing_else() {
    let service = service();
    let mut a = Client::new(&service);
    let counted = || service.node.top.all().into_keys().collect::<Vec<_>>();
    for command in [
        doc! { "insert": "c", "documents": ids(1..2) },
        doc! { "find": "d" },
        doc! { "find": "c", "$db": "admin" },
        doc! { "find": "$x" },
        doc! { "find": "c", "$db": "x$y" },
    ] {
        a.run(command);
    }
    assert_eq!(counted(), ["admin.c", "test.c", "test.d"]);
    for refused in [
        doc! { "dropDatabase": 2 },
        doc! { "dropDatabase": 1, "$db": "admin" },
        doc! { "drop": "c", "nosuch": 1 },
    ] {
        assert_ne!(a.code(refused), 0);
    }
    assert_eq!(counted(), ["admin.c", "test.c", "test.d"]);
    a.run(doc! { "drop": "c" });
    assert_eq!(counted(), ["admin.c", "test.d"]);
    a.run(doc! { "dropDatabase": 1 });
    assert_eq!(counted(), ["admin.c"]);
}

#[test]
fn a_block_of_writes_is_one_of_pipelines_too() {
    let service = service();
    let mut a = Client::new(&service);
    a.run(doc! { "insert": "c", "documents": ids(1..2) });
    let out = |stage: Document| doc! { "aggregate": "c", "pipeline": vec![stage.into()], "cursor": Document::new() };
    let into = || [out(doc! { "$out": "o" }), out(doc! { "$merge": "m" })];
    service.node.gates.set_write_block(Some("a test".to_owned()));
    for command in into() {
        assert_eq!(a.code(command), 371);
    }
    assert_eq!(a.code(out(doc! { "$match": Document::new() })), 0);
    service.node.gates.set_write_block(None);
    for command in into() {
        assert_eq!(a.code(command), 0);
    }
}

#[test]
fn a_write_is_not_repeated_after_a_restart() {
    let dir = tempfile::tempdir().expect("a directory");
    let open = || Engine::open(dir.path(), EngineOptions::at_time(1_700_000_000)).expect("the store opens");
    let update = |upsert: bool| {
        let id = if upsert { 2 } else { 1 };
        doc! { "q": doc! { "_id": id }, "u": doc! { "$inc": doc! { "n": 1 } }, "upsert": upsert }
    };
    let command = || {
        let updates = vec![update(false).into(), update(true).into()];
        doc! { "update": "c", "updates": updates, "lsid": session(1), "txnNumber": 3i64 }
    };
    let first = {
        let engine = open();
        let service = Service::new(DatabaseOptions::default(), engine.clone());
        let mut a = Client::new(&service);
        a.run(doc! { "insert": "c", "documents": ids(1..2) });
        let reply = a.run(command());
        engine.close().expect("the store closes");
        reply
    };
    let service = Service::new(DatabaseOptions::default(), open());
    let mut a = Client::new(&service);
    let again = a.run(command());
    for field in ["n", "nModified", "upserted"] {
        assert_eq!(
            format!("{:?}", first.get(field)),
            format!("{:?}", again.get(field)),
            "{field}"
        );
    }
    let reply = a.run(doc! { "find": "c", "sort": doc! { "_id": 1 } });
    assert!(
        format!("{reply:?}").contains(r#"[{"_id": 1, "n": 1}, {"_id": 2, "n": 1}]"#),
        "{reply:?}"
    );
}

#[test]
fn the_oplog_is_read_from_the_oldest_entry_kept() {
    let mut options = EngineOptions::at_time(1_700_000_000);
    options.ephemeral_oplog_bytes_max = 4_000;
    let service = Service::new(DatabaseOptions::default(), Engine::ephemeral(options));
    let mut a = Client::new(&service);
    let insert = |a: &mut Client<'_>, range| a.run(doc! { "insert": "c", "documents": ids(range) });
    insert(&mut a, 0..100);
    let find = |filter| doc! { "find": "oplog.rs", "$db": "local", "filter": filter, "batchSize": 5 };
    let old = doc! { "ts": doc! { "$gte": Timestamp { secs: 1_700_000_000, inc: 1 } } };
    for filter in [Document::new(), old] {
        let (n, id) = batch(&a.run(find(filter)));
        assert_eq!(n, 5);
        let more = || doc! { "getMore": id, "collection": "oplog.rs", "$db": "local", "batchSize": 5 };
        assert_eq!(batch(&a.run(more())).0, 5);
        // One that has begun misses nothing: it ends when what comes next is gone.
        insert(&mut a, 100..200);
        let codes: Vec<_> = (0..40).map(|_| a.code(more())).collect();
        assert!(codes.contains(&136), "{codes:?}");
        a.run(doc! { "delete": "c", "deletes": vec![doc! { "q": doc! { "_id": doc! { "$gte": 100 } }, "limit": 0 }.into()] });
    }
}

/// An update touches the index entries whose keys change, and no others; explaining it changes nothing.
#[test]
fn explain_tells_the_index_keys_of_a_write() {
    let service = service();
    let mut client = Client::new(&service);
    let docs: Vec<Value> = (0..9).map(|i| doc! { "_id": i, "a": i % 3, "b": i }.into()).collect();
    client.run(doc! { "insert": "c", "documents": docs });
    for field in ["a", "b"] {
        let mut key = Document::new();
        key.push(field, 1);
        let index: Value = doc! { "key": key, "name": field }.into();
        client.run(doc! { "createIndexes": "c", "indexes": vec![index] });
    }
    let mut keys = |update: Document| {
        let statement: Value = doc! { "q": doc! { "a": 1 }, "u": update, "multi": true }.into();
        let update = doc! { "update": "c", "updates": vec![statement] };
        let reply = client.run(doc! { "explain": update, "verbosity": "executionStats" });
        let stats = reply.get("executionStats").and_then(ValueRef::as_document);
        let stage = stats
            .and_then(|s| s.get("executionStages"))
            .and_then(ValueRef::as_document)
            .expect("stages");
        ["nWouldModify", "keysInserted", "keysDeleted"]
            .map(|name| stage.get(name).and_then(nestor_model::number::safe_i64))
    };
    for (update, expected) in [
        (doc! { "$set": doc! { "c": 1 } }, [3, 0, 0]),
        (doc! { "$inc": doc! { "a": 1 } }, [3, 3, 3]),
        (doc! { "$unset": doc! { "b": 1 } }, [3, 3, 3]),
        (doc! { "$set": doc! { "a": 1 } }, [0, 0, 0]),
    ] {
        assert_eq!(keys(update.clone()), expected.map(Some), "{update:?}");
    }
    let count = client.run(doc! { "count": "c", "query": doc! { "a": 1, "b": doc! { "$exists": true } } });
    assert_eq!(count.get("n").and_then(nestor_model::number::safe_i64), Some(3));
}

#[test]
fn the_table_of_commands_says_what_explain_takes() {
    let service = service();
    let mut client = Client::new(&service);
    for spec in crate::dispatch::all() {
        let mut explained = Document::new();
        explained.push(spec.name, "c");
        let refused = client.run(doc! { "explain": explained });
        let refused = refused.get("errmsg").and_then(ValueRef::as_str).unwrap_or_default();
        let is_taken = !refused.starts_with("Explain cannot explain");
        let is_said = spec.flags.has(crate::facts::Flags::EXPLAINABLE);
        assert_eq!(is_taken, is_said, "{}: {refused}", spec.name);
    }
}
