//! The options of a stream, and the errors of those that are refused.

use super::*;
use crate::Scope;
use crate::stage::{Pipeline, Place};
use nestor_model::extjson;

fn parse_on(namespace: &str, pipeline: &str) -> Result<Pipeline> {
    let value = extjson::parse(pipeline).expect("valid JSON");
    let mut scope = Scope::new();
    let mut context = ParseContext::new(&mut scope, Namespace::parse(namespace), Place::Top);
    Pipeline::parse(value.as_array().expect("an array").as_ref(), &mut context)
}

fn stream(namespace: &str, spec: &str) -> Result<ChangeStream> {
    let pipeline = parse_on(namespace, &format!(r#"[{{"$changeStream":{spec}}}]"#))?;
    match pipeline.stages.first() {
        Some(Stage::ChangeStream(stream)) => Ok((**stream).clone()),
        other => panic!("{other:?} is no stream"),
    }
}

/// Source: functional suite, "$changeStream spec validation errors" and "mutual exclusivity of resume options".
#[test]
fn refused_options() {
    let event = |is_invalidate| {
        let id = EventId {
            operation: 0,
            is_invalidate,
            fragment: 0,
            uuid: [0xAB; 16],
        };
        let time = Timestamp { secs: 7, inc: 1 };
        Token { time, event: Some(id) }.data()
    };
    let (event, invalidate) = (event(false), event(true));
    let token = format!(r#"{{"_data":"{event}"}}"#);
    let time = r#"{"$timestamp":{"t":1,"i":1}}"#;
    for (spec, code) in [
        ("1".to_owned(), 6_188_500),
        ("null".to_owned(), 6_188_500),
        ("[]".to_owned(), 6_188_500),
        (r#"{"bogus":1}"#.to_owned(), 40415),
        (r#"{"FullDocument":"default"}"#.to_owned(), 40415),
        (r#"{"showExpandedEvents":1}"#.to_owned(), 14),
        (r#"{"showExpandedEvents":null}"#.to_owned(), 14),
        (r#"{"allChangesForCluster":"true"}"#.to_owned(), 14),
        (r#"{"fullDocument":["default"]}"#.to_owned(), 14),
        (r#"{"fullDocument":"off"}"#.to_owned(), 2),
        (r#"{"fullDocumentBeforeChange":"default"}"#.to_owned(), 2),
        (r#"{"resumeAfter":"x"}"#.to_owned(), 14),
        (r#"{"startAfter":[]}"#.to_owned(), 14),
        (r#"{"startAfter":{}}"#.to_owned(), 40647),
        (r#"{"startAtOperationTime":1}"#.to_owned(), 14),
        (format!(r#"{{"resumeAfter":{token},"startAfter":{token}}}"#), 50865),
        (
            format!(r#"{{"resumeAfter":{token},"startAtOperationTime":{time}}}"#),
            40674,
        ),
        (
            format!(r#"{{"startAfter":{token},"startAtOperationTime":{time}}}"#),
            40674,
        ),
        (format!(r#"{{"resumeAfter":{{"_data":"{invalidate}"}}}}"#), 260),
    ] {
        let error = stream("db.c", &spec).expect_err("it is refused");
        assert_eq!(error.code().number(), code, "{spec}: {error}");
    }
    assert!(stream("db.c", &format!(r#"{{"startAfter":{{"_data":"{invalidate}"}}}}"#)).is_ok());
}

#[test]
fn what_is_watched() {
    let ns = Namespace::parse;
    let watched = |namespace, spec| stream(namespace, spec).map(|stream| stream.watched);
    assert_eq!(
        watched("db.c", "{}").expect("a stream"),
        Watched::Collection(ns("db.c"))
    );
    assert_eq!(watched("db", "{}").expect("a stream"), Watched::Database(ns("db")));
    let all = r#"{"allChangesForCluster":true}"#;
    assert_eq!(watched("admin", all).expect("a stream"), Watched::Cluster);
    for (namespace, spec, code) in [
        ("db", all, 72),
        ("admin.c", all, 72),
        ("admin", "{}", 73),
        ("local.c", "{}", 73),
        ("config", "{}", 73),
        ("db.system.views", "{}", 73),
    ] {
        let error = watched(namespace, spec).expect_err("no stream");
        assert_eq!(error.code().number(), code, "{namespace} {spec}: {error}");
    }
    assert!(watched("db.system.views", r#"{"allowToRunOnSystemNS":true}"#).is_ok());
    assert!(watched("config", r#"{"allowToRunOnConfigDB":true}"#).is_ok());
}

#[test]
fn options_are_read() {
    let read = stream(
        "db.c",
        r#"{"fullDocument":"required","fullDocumentBeforeChange":"whenAvailable","showExpandedEvents":true,
            "startAtOperationTime":{"$timestamp":{"t":7,"i":8}},"resumeAfter":null}"#,
    )
    .expect("a stream");
    assert_eq!(read.full_document, FullDocument::Required);
    assert_eq!(read.before_change, BeforeChange::WhenAvailable);
    assert_eq!(read.start, Start::At(Timestamp { secs: 7, inc: 8 }));
    assert!(read.expanded);
    assert_eq!(
        stream("db.c", r#"{"fullDocument":null}"#).expect("a stream").start,
        Start::Now
    );
}

/// Source: manual, "Modify Change Stream Output"; functional suite, positions of `$changeStream`.
#[test]
fn what_may_follow() {
    for followers in [
        r#"{"$match":{"operationType":"insert"}}"#,
        r#"{"$project":{"_id":1}},{"$addFields":{"x":1}},{"$set":{"x":1}},{"$unset":"x"}"#,
        r#"{"$replaceRoot":{"newRoot":{"a":1}}},{"$replaceWith":{"a":1}},{"$redact":"$$DESCEND"}"#,
        r#"{"$fill":{"output":{"x":{"value":0}}}}"#,
        r#"{"$match":{}},{"$changeStreamSplitLargeEvent":{}}"#,
    ] {
        let parsed = parse_on("db.c", &format!(r#"[{{"$changeStream":{{}}}},{followers}]"#));
        assert!(parsed.is_ok(), "{followers}: {parsed:?}");
    }
    for (pipeline, code) in [
        (r#"[{"$changeStream":{}},{"$group":{"_id":1}}]"#, 20),
        (r#"[{"$changeStream":{}},{"$sort":{"_id":1}}]"#, 20),
        (r#"[{"$changeStream":{}},{"$count":"n"}]"#, 20),
        (r#"[{"$changeStream":{}},{"$limit":1}]"#, 20),
        (
            r#"[{"$changeStream":{}},{"$lookup":{"from":"x","pipeline":[],"as":"y"}}]"#,
            20,
        ),
        (
            r#"[{"$changeStream":{}},{"$fill":{"sortBy":{"x":1},"output":{"y":{"method":"linear"}}}}]"#,
            20,
        ),
        (r#"[{"$changeStream":{}},{"$out":"x"}]"#, 20),
        (r#"[{"$match":{}},{"$changeStream":{}}]"#, 40602),
        (r#"[{"$changeStream":{}},{"$changeStream":{}}]"#, 40602),
        (r#"[{"$changeStreamSplitLargeEvent":{}}]"#, 20),
        (
            r#"[{"$changeStream":{}},{"$changeStreamSplitLargeEvent":{}},{"$match":{}}]"#,
            7_182_802,
        ),
        (
            r#"[{"$changeStream":{}},{"$changeStreamSplitLargeEvent":{}},{"$changeStreamSplitLargeEvent":{}}]"#,
            7_182_802,
        ),
        (
            r#"[{"$changeStream":{}},{"$changeStreamSplitLargeEvent":{"a":1}}]"#,
            7_182_800,
        ),
        (r#"[{"$facet":{"a":[{"$changeStream":{}}]}}]"#, 40600),
        (
            r#"[{"$lookup":{"from":"x","pipeline":[{"$changeStream":{}}],"as":"y"}}]"#,
            51047,
        ),
        (
            r#"[{"$unionWith":{"coll":"x","pipeline":[{"$changeStream":{}}]}}]"#,
            31441,
        ),
    ] {
        let error = parse_on("db.c", pipeline).expect_err("it is refused");
        assert_eq!(error.code().number(), code, "{pipeline}: {error}");
    }
}
