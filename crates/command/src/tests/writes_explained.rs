//! What explain says of a write is what runs: both are the same prepared operation.

use super::{Client, service};
use nestor_model::{Document, Value, ValueRef, doc};

/// Each write of one statement, as a command of its own.
fn writes() -> Vec<Document> {
    let q = || doc! { "a": 1, "b": 1 };
    let collation = || doc! { "locale": "en", "strength": 2 };
    let update = |item: Document| doc! { "update": "c", "updates": vec![Value::from(item)] };
    let delete = |item: Document| doc! { "delete": "c", "deletes": vec![Value::from(item)] };
    let set = || doc! { "$set": doc! { "seen": true } };
    vec![
        update(doc! { "q": q(), "u": set() }),
        update(doc! { "q": q(), "u": set(), "multi": true }),
        update(doc! { "q": doc! { "a": 1, "b": "x" }, "u": set(), "collation": collation() }),
        update(doc! { "q": doc! { "a": 1 }, "u": set(), "sort": doc! { "b": 1 }, "hint": "a" }),
        delete(doc! { "q": doc! { "a": 9, "b": 9 }, "limit": 0 }),
        delete(doc! { "q": doc! { "a": 9, "b": 9 }, "limit": 1, "hint": doc! { "a": 1 } }),
        doc! { "findAndModify": "c", "query": q(), "sort": doc! { "b": -1 }, "update": set() },
        doc! { "findAndModify": "c", "query": doc! { "a": 9 }, "remove": true, "collation": collation() },
    ]
}

fn index_of(mut plan: ValueRef<'_>) -> String {
    loop {
        let stage = plan.as_document().expect("a stage");
        match (stage.get("indexName"), stage.get("inputStage")) {
            (Some(name), _) => return name.as_str().expect("a name").to_owned(),
            (None, Some(input)) => plan = input,
            (None, None) => return String::new(),
        }
    }
}

#[test]
fn a_write_runs_by_the_plan_that_explain_shows() {
    let service = service();
    let mut client = Client::new(&service);
    let docs = (0..20).map(|i| doc! { "_id": i, "a": 1, "b": i % 3 }.into());
    client.run(doc! { "insert": "c", "documents": docs.collect::<Vec<Value>>() });
    let index = |name: &str| Value::from(doc! { "key": doc! { name: 1 }, "name": name });
    client.run(doc! { "createIndexes": "c", "indexes": vec![index("a"), index("b")] });
    // A filter of the shape restricts both.
    let allowed = vec![Value::from(doc! { "b": 1 })];
    client.run(doc! { "planCacheSetFilter": "c", "query": doc! { "a": 1, "b": 1 }, "indexes": allowed });
    client.run(doc! { "profile": 2 });
    for write in writes() {
        let explained = client.run(doc! { "explain": write.clone(), "verbosity": "queryPlanner" });
        let planner = explained.get("queryPlanner").and_then(ValueRef::as_document);
        let planner = planner.unwrap_or_else(|| panic!("{write:?}: {explained:?}"));
        let reply = client.run(write.clone());
        assert_eq!(
            reply.get("ok").and_then(nestor_model::number::safe_i64),
            Some(1),
            "{reply:?}"
        );
        let find = doc! {
            "find": "system.profile", "filter": doc! { "ns": "test.c", "op": doc! { "$ne": "query" } },
            "sort": doc! { "$natural": -1 }, "limit": 1,
        };
        let found = client.run(find);
        let cursor = found.get("cursor").and_then(ValueRef::as_document);
        let records = cursor
            .and_then(|cursor| cursor.get("firstBatch"))
            .and_then(ValueRef::as_array);
        let recorded = records
            .and_then(|records| records.get(0))
            .and_then(ValueRef::as_document);
        let recorded = recorded.expect("a record");
        assert_eq!(
            planner.get("planCacheShapeHash").and_then(ValueRef::as_str),
            recorded.get("planCacheShapeHash").and_then(ValueRef::as_str),
            "{write:?}"
        );
        let index = index_of(planner.get("winningPlan").expect("a plan"));
        let summary = recorded
            .get("planSummary")
            .and_then(ValueRef::as_str)
            .expect("a summary");
        let shown = match index.as_str() {
            "" => "COLLSCAN".to_owned(),
            index => format!("IXSCAN {{ {index}: 1 }}"),
        };
        assert_eq!(summary, shown, "{write:?}");
    }
}
