//! Streams over a log that the test writes: what they give, where they are, and behind what they resume.

use super::{Resumable, Source, Split};
use crate::batch::Batch;
use crate::operator::{BoxOperator, Step, Whereabouts};
use crate::ops::Filter;
use nestor_model::interrupt::Interrupt;
use nestor_model::{Document, Namespace, Result, Timestamp, Value, ValueRef, doc, extjson};
use nestor_query::Scope;
use nestor_query::env::OpContext;
use nestor_query::matcher::MatchExpr;
use nestor_query::stage::change_stream::{BeforeChange, ChangeStream, FullDocument, Start, Token, Watched};
use nestor_storage::{Engine, EngineOptions};
use std::sync::Arc;

/// A log.
struct Log {
    engine: Engine,
}

impl Log {
    fn new() -> Self {
        Self {
            engine: Engine::ephemeral(EngineOptions::at_time(1_700_000_000)),
        }
    }

    /// Commits an entry given as JSON, and returns its time.
    fn add(&self, entry: &str) -> Timestamp {
        self.add_with(extjson::parse_document(entry).expect("valid JSON"), None)
    }

    /// Commits an entry, with the document before its change.
    fn add_with(&self, mut entry: Document, before: Option<Document>) -> Timestamp {
        entry.push("ts", Timestamp::default());
        entry.push("t", 0i64);
        let mut ws = self.engine.begin();
        let images = before.into_iter().map(|before| (0, before.to_raw())).collect();
        ws.oplog_with(entry.to_raw(), images).expect("an entry");
        self.engine.commit(ws).expect("a commit").optime
    }

    fn pull(&self, root: &mut BoxOperator) -> Result<Option<Document>> {
        let snapshot = self.engine.snapshot();
        let (op, interrupt) = (OpContext::default(), Interrupt::new(Arc::default(), None));
        let open = |after, interest| self.engine.read_log(after, interest);
        let mut batch = Batch::new(&snapshot, &op, &interrupt).with_log(&open, 1000);
        match root.next(&mut batch)? {
            Step::Row(row) => Ok(Some(row.doc.into_document())),
            Step::Eof => Ok(None),
            Step::Pause => panic!("nothing limits the work"),
        }
    }

    fn all(&self, root: &mut BoxOperator) -> Vec<Document> {
        let mut events = Vec::new();
        while let Some(event) = self.pull(root).expect("an event") {
            events.push(event);
        }
        events
    }
}

fn stream(start: Start) -> ChangeStream {
    ChangeStream {
        watched: Watched::Collection(Namespace::parse("db.c")),
        start,
        full_document: FullDocument::Default,
        before_change: BeforeChange::Off,
        expanded: false,
        system: false,
        raw_updates: false,
        lookup_by_uuid: false,
    }
}

fn open(stream: ChangeStream) -> BoxOperator {
    let (source, shared) = Source::new(Arc::new(stream), None).expect("a source");
    Box::new(Resumable::new(Box::new(source), shared))
}

fn whereabouts(root: &BoxOperator) -> Whereabouts<'_> {
    root.report().stream.expect("it is a stream")
}

fn token(event: &Document) -> Token {
    let id = event.get("_id").and_then(ValueRef::as_document);
    Token::parse(id.expect("a token")).expect("a token")
}

/// Kind and key of each event.
fn brief(events: &[Document]) -> Vec<String> {
    let text = |event: &Document| {
        let kind = event.get("operationType").and_then(ValueRef::as_str);
        let key = event.get("documentKey").and_then(ValueRef::as_document);
        let key = key.and_then(|key| key.get("_id")).map(|id| format!(" {id:?}"));
        format!("{}{}", kind.unwrap_or("?"), key.unwrap_or_default())
    };
    events.iter().map(text).collect()
}

fn insert(id: i32) -> String {
    format!(r#"{{"op":"i","ns":"db.c","o":{{"_id":{id},"a":1}},"o2":{{"_id":{id}}}}}"#)
}

const START: Start = Start::At(Timestamp { secs: 0, inc: 0 });
const UUID: &str = r#"{"$binary":{"base64":"AAECAwQFBgcICQoLDA0ODw==","subType":"04"}}"#;

#[test]
fn events_have_the_fields_of_their_kind() {
    let log = Log::new();
    let wall = r#""wall":{"$date":"2026-01-01T00:00:00Z"}"#;
    let time = log.add(&format!(
        r#"{{"op":"i","ns":"db.c","ui":{UUID},"o":{{"_id":1,"a":1}},"o2":{{"_id":1}},{wall}}}"#
    ));
    let mut plain = open(stream(START));
    let event = log.pull(&mut plain).expect("no error").expect("an event");
    let names: Vec<&str> = event.iter().map(|(name, _)| name).collect();
    let fields = [
        "_id",
        "operationType",
        "clusterTime",
        "wallTime",
        "fullDocument",
        "ns",
        "documentKey",
    ];
    assert_eq!(names, fields);
    assert!(matches!(event.get("clusterTime"), Some(ValueRef::Timestamp(at)) if at == time));
    let mut expanded = open(ChangeStream {
        expanded: true,
        ..stream(START)
    });
    let event = log.pull(&mut expanded).expect("no error").expect("an event");
    assert!(event.get("collectionUUID").is_some());
}

#[test]
fn operations_of_a_transaction_share_their_time_and_name_it() {
    let log = Log::new();
    let operations = format!(
        r#"{{"op":"i","ns":"db.other","o":{{"_id":0}},"o2":{{"_id":0}}}},{},{{"op":"d","ns":"db.c","o":{{"_id":1}}}}"#,
        insert(1)
    );
    let time = log.add(&format!(
        r#"{{"lsid":{{"id":1}},"txnNumber":{{"$numberLong":"7"}},"op":"c","ns":"admin.$cmd","o":{{"applyOps":[{operations}]}}}}"#
    ));
    let mut root = open(stream(START));
    let events = log.all(&mut root);
    assert_eq!(brief(&events), ["insert 1", "delete 1"]);
    for (event, operation) in events.iter().zip([1, 2]) {
        assert!(event.get("lsid").is_some());
        assert_eq!(token(event).time, time);
        assert_eq!(token(event).event.map(|event| event.operation), Some(operation));
    }
    // Between the two, with all that was read given up.
    let mut second = open(stream(Start::After(token(&events[0]))));
    assert_eq!(brief(&log.all(&mut second)), ["delete 1"]);
    let mut root = open(stream(START));
    log.pull(&mut root).expect("no error");
    root.save();
    assert_eq!(brief(&log.all(&mut root)), ["delete 1"]);
}

#[test]
fn a_stream_ends_with_what_it_watches() {
    let log = Log::new();
    log.add(&insert(1));
    log.add(r#"{"op":"c","ns":"db.$cmd","o":{"drop":"c"}}"#);
    log.add(&insert(2));
    let mut root = open(stream(START));
    let events = log.all(&mut root);
    assert_eq!(brief(&events), ["insert 1", "drop", "invalidate"]);
    assert!(whereabouts(&root).is_over);
    assert_eq!(
        events[2].iter().map(|(name, _)| name).collect::<Vec<_>>(),
        ["_id", "operationType", "clusterTime"]
    );
    // Behind the drop comes the invalidate, behind that what follows.
    let after = |event| brief(&log.all(&mut open(stream(Start::After(token(event))))));
    assert_eq!(after(&events[0]), ["drop", "invalidate"]);
    assert_eq!(after(&events[1]), ["invalidate"]);
    assert_eq!(after(&events[2]), ["insert 2"]);
}

#[test]
fn a_stream_is_where_it_has_read_to() {
    let log = Log::new();
    let mut root = open(stream(START));
    assert_eq!(whereabouts(&root).at, Token::mark(Timestamp::default()));
    let first = log.add(&insert(1));
    let event = log.pull(&mut root).expect("no error").expect("an event");
    assert_eq!(whereabouts(&root).at, token(&event));
    assert_eq!(whereabouts(&root).before, Token::mark(Timestamp::default()));
    assert!(log.pull(&mut root).expect("no error").is_none());
    assert_eq!(whereabouts(&root).at, token(&event), "nothing was read since");
    // What it does not tell of it need not read again.
    let other = log.add(r#"{"op":"i","ns":"db.other","o":{"_id":1},"o2":{"_id":1}}"#);
    assert!(log.pull(&mut root).expect("no error").is_none());
    let at = whereabouts(&root).at;
    assert!(first < other && at.time > other && at.event.is_none(), "{at:?}");
    log.add(&insert(2));
    let mut resumed = open(stream(Start::After(at)));
    assert_eq!(brief(&log.all(&mut resumed)), ["insert 2"]);
}

#[test]
fn a_token_of_another_stream_is_found_out() {
    let log = Log::new();
    let time = log.add(r#"{"op":"i","ns":"db.other","o":{"_id":1},"o2":{"_id":1}}"#);
    let foreign = Token {
        time,
        ..token(&{
            log.add(&insert(1));
            log.pull(&mut open(stream(START))).expect("no error").expect("an event")
        })
    };
    let mut root = open(stream(Start::After(foreign)));
    let error = log.pull(&mut root).expect_err("it was not found");
    assert_eq!(error.code().number(), 280);
    // As long as nothing follows, nobody knows.
    let last = Token {
        time: log.add(r#"{"op":"n","ns":"","o":{"msg":"x"}}"#),
        ..foreign
    };
    let mut root = open(stream(Start::After(last)));
    assert!(log.pull(&mut root).expect("no error").is_none());
    assert_eq!(whereabouts(&root).at, last);
}

#[test]
fn conditions_decide_what_is_given_and_nothing_else() {
    let log = Log::new();
    for id in 1..4 {
        log.add(&insert(id));
    }
    log.add(r#"{"op":"c","ns":"db.$cmd","o":{"drop":"c"}}"#);
    let events = log.all(&mut open(stream(START)));
    let filtered = |start| {
        let filter = doc! { "documentKey._id": 3 };
        let filter = MatchExpr::parse(filter.as_ref(), &mut Scope::new()).expect("a filter");
        let (source, shared) = Source::new(Arc::new(stream(start)), Some(Arc::new(filter))).expect("a source");
        let root: BoxOperator = Box::new(Resumable::new(Box::new(source), shared));
        root
    };
    let mut root = filtered(START);
    assert_eq!(brief(&log.all(&mut root)), ["insert 3"]);
    assert!(whereabouts(&root).is_over);
    assert_eq!(whereabouts(&root).at, token(&events[4]));
    // As on top of the stream, which is the law of the rule that moves them in.
    let filter = doc! { "documentKey._id": 3 };
    let filter = MatchExpr::parse(filter.as_ref(), &mut Scope::new()).expect("a filter");
    let (source, shared) = Source::new(Arc::new(stream(START)), None).expect("a source");
    let on_top = Filter::new(Box::new(source), Arc::new(filter));
    let mut on_top: BoxOperator = Box::new(Resumable::new(Box::new(on_top), shared));
    assert_eq!(brief(&log.all(&mut on_top)), ["insert 3"]);
    assert_eq!(whereabouts(&on_top).at, whereabouts(&root).at);
    assert!(whereabouts(&on_top).is_over);
    // It resumes behind an event that it would not have given.
    assert_eq!(
        brief(&log.all(&mut filtered(Start::After(token(&events[0]))))),
        ["insert 3"]
    );
}

#[test]
fn images_are_given_as_they_are_asked_for() {
    let log = Log::new();
    let update = |wall_ms| {
        let update = r#"{"op":"u","ns":"db.c","o":{"$v":2,"diff":{"u":{"a":2}}},"o2":{"_id":1}}"#;
        let mut entry = extjson::parse_document(update).expect("valid JSON");
        entry.push("wall", Value::DateTime(wall_ms));
        entry
    };
    let image = || Some(doc! { "_id": 1, "a": 1 });
    // Without an image, with one that is too old to be shown, and with one.
    let times = [log.add_with(update(5000), None), log.add_with(update(999), image())];
    let shown = log.add_with(update(1000), image());
    let event = |start, full_document, before_change| {
        let mut root = open(ChangeStream {
            full_document,
            before_change,
            ..stream(Start::At(start))
        });
        log.pull(&mut root)
    };
    let fields = |start, full_document, before_change| {
        let event = event(start, full_document, before_change)
            .expect("no error")
            .expect("an event");
        let field = |name| {
            event
                .get(name)
                .map(|value| extjson::to_string(&value.to_value(), extjson::Form::Relaxed))
        };
        (field("fullDocument"), field("fullDocumentBeforeChange"))
    };
    let null = || Some("null".to_owned());
    use {BeforeChange as Before, FullDocument as Full};
    for time in times {
        assert_eq!(fields(time, Full::Default, Before::Off), (None, None));
        assert_eq!(fields(time, Full::UpdateLookup, Before::Off), (null(), None));
        assert_eq!(
            fields(time, Full::WhenAvailable, Before::WhenAvailable),
            (null(), null())
        );
        for (full_document, before_change) in [(Full::Required, Before::Off), (Full::Default, Before::Required)] {
            let error = event(time, full_document, before_change).expect_err("there is none");
            assert_eq!(error.code().number(), 47, "{error}");
        }
    }
    let before = Some(r#"{"_id":1,"a":1}"#.to_owned());
    let after = Some(r#"{"_id":1,"a":2}"#.to_owned());
    assert_eq!(fields(shown, Full::Required, Before::Required), (after.clone(), before));
    assert_eq!(fields(shown, Full::WhenAvailable, Before::Off), (after, None));
}

#[test]
fn large_events_are_split_and_resumed_within() {
    let log = Log::new();
    let large = "x".repeat(9 << 20);
    let entry = doc! {
        "op": "u", "ns": "db.c",
        "o": doc! { "$v": 2, "diff": doc! { "u": doc! { "a": large.as_str() } } },
        "o2": doc! { "_id": 1 },
        "wall": Value::DateTime(5000),
    };
    log.add_with(entry, Some(doc! { "_id": 1, "b": large.as_str() }));
    log.add(&insert(2));
    let open = |start| {
        let stream = ChangeStream {
            before_change: BeforeChange::Required,
            ..stream(start)
        };
        let (source, shared) = Source::new(Arc::new(stream), None).expect("a source");
        let split = Split::new(Box::new(source), shared.clone());
        let root: BoxOperator = Box::new(Resumable::new(Box::new(split), shared));
        root
    };
    let events = log.all(&mut open(START));
    let numbers: Vec<String> = events
        .iter()
        .map(|event| format!("{:?}", event.get("splitEvent")))
        .collect();
    let number = |fragment| {
        format!(
            "{:?}",
            doc! { "split": doc! { "fragment": fragment, "of": 2 } }.get("split")
        )
    };
    assert_eq!(numbers, [number(1), number(2), "None".to_owned()]);
    let mut resumed = open(Start::After(token(&events[0])));
    let rest = log.all(&mut resumed);
    assert_eq!(rest.len(), 2);
    assert_eq!(token(&rest[0]), token(&events[1]));
    assert_eq!(log.all(&mut open(Start::After(token(&events[1])))).len(), 1);
    // Without the stage that splits, the fragment is not there.
    let mut whole = self::open(ChangeStream {
        before_change: BeforeChange::Required,
        ..stream(Start::After(token(&events[0])))
    });
    assert_eq!(log.pull(&mut whole).expect_err("no fragments").code().number(), 280);
}

#[test]
fn what_was_cut_off_is_lost() {
    let mut options = EngineOptions::at_time(1_700_000_000);
    options.ephemeral_oplog_bytes_max = 2_000;
    let log = Log {
        engine: Engine::ephemeral(options),
    };
    log.add(&insert(1));
    let event = log.pull(&mut open(stream(START))).expect("no error").expect("an event");
    for id in 2..100 {
        log.add(&insert(id));
    }
    let error = log
        .pull(&mut open(stream(Start::After(token(&event)))))
        .expect_err("it is lost");
    assert_eq!(error.code().number(), 286);
}
