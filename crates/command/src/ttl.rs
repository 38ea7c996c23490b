//! Expiry: documents whose date in a TTL index, or whose `_id` in a clustered collection that expires, lies too far
//! back are deleted.
//!
//! The deletes are ordinary `delete` commands on a connection of the monitor's own, so that they are logged in the
//! oplog, counted and stopped by what stops other writes. [`Service::tick`](crate::Service::tick) counts the seconds
//! until `ttlMonitorSleepSecs` have passed; `expire` itself is given its time.
//! Source: manual, "TTL Indexes", "Clustered Collections".

use crate::Connection;
use crate::request::Request;
use crate::service::Service;
use nestor_database::parameters::Param;
use nestor_model::namespace::LOCAL;
use nestor_model::{Document, Namespace, RawDocBuf, TimeSeries, Value, ValueRef, doc};
use nestor_storage::{Collection, View};

impl Service {
    /// Deletes what has expired if the monitor is on and its time has come. To be called once a second.
    pub(crate) fn ttl_tick(&self) {
        let parameters = &self.node.parameters;
        if parameters.is_on(Param::TtlMonitorEnabled) && self.ttl.second(parameters.number(Param::TtlMonitorSleepSecs))
        {
            self.expire(nestor_database::clock::now_ms());
        }
    }

    /// Deletes what has expired at `now_ms`; returns how many documents those were. A collection that cannot be
    /// written to now is passed over: the next pass finds its documents again.
    pub fn expire(&self, now_ms: i64) -> i64 {
        let snapshot = self.engine.snapshot();
        let work: Vec<(Namespace, Document)> = snapshot
            .catalog()
            .databases()
            .flat_map(|database| database.collections())
            .filter(|collection| collection.ns.db != LOCAL && !collection.is_view())
            .flat_map(|collection| {
                let filters = expired(collection, now_ms);
                filters.into_iter().map(|filter| (collection.ns.clone(), filter))
            })
            .collect();
        // Documents to delete are looked up anew: a snapshot that stays open would keep old versions in memory.
        drop(snapshot);
        let mut deleted = 0;
        if !work.is_empty() {
            let mut conn = Connection::new(self, "");
            for (ns, filter) in work {
                deleted += self.delete_expired(&mut conn, &ns, filter);
            }
        }
        self.ttl.passes.add(1);
        self.ttl.deleted.add(u64::try_from(deleted).unwrap_or(0));
        deleted
    }

    fn delete_expired(&self, conn: &mut Connection, ns: &Namespace, filter: Document) -> i64 {
        let statement = doc! { "q": filter, "limit": 0 };
        // A document that an open transaction has written is waited for, and it is the same thread that ends transactions
        // which are open for too long.
        let sleep_secs = self.node.parameters.number(Param::TtlMonitorSleepSecs);
        let command = doc! {
            "delete": ns.coll.clone(),
            "deletes": vec![Value::from(statement)],
            "maxTimeMS": sleep_secs.saturating_mul(1000).clamp(1, i64::from(i32::MAX)),
            "$db": ns.db.clone(),
        };
        let outcome = self.run(conn, Request::new(command.to_raw().as_raw()));
        let reply = outcome.reply.get(outcome.reply_at..).unwrap_or_default();
        match RawDocBuf::validate(reply) {
            Ok(reply) => reply
                .as_raw()
                .get("n")
                .and_then(nestor_model::number::safe_i64)
                .unwrap_or(0),
            Err(_) => 0,
        }
    }
}

/// The filters of what has expired in a collection, one per TTL index and one for a clustered key.
fn expired(collection: &Collection, now_ms: i64) -> Vec<Document> {
    let before = |secs: i64| {
        let limit = now_ms.saturating_sub(secs.saturating_mul(1000));
        doc! { "$gte": Value::DateTime(i64::MIN), "$lte": Value::DateTime(limit) }
    };
    let mut out = Vec::new();
    if let Some(series) = collection.buckets() {
        return expired_buckets(collection, series, now_ms);
    }
    for index in &collection.indexes {
        let field = index.key_pattern.iter().next().map(|(field, _)| field);
        let (Some(secs), Some(field), 1) = (index.expire_after_secs, field, index.key_pattern.len()) else {
            continue;
        };
        // An element of an array is enough, and each bound may not be met by another one.
        let mut date = Document::new();
        date.push(field, before(secs));
        if index.multikey.first().is_some_and(|arrays| *arrays != 0) {
            date = Document::new();
            date.push(
                field,
                before(secs).get("$lte").map(|limit| doc! { "$lte": limit.to_value() }),
            );
        }
        out.push(match &index.partial_filter {
            Some(partial) => doc! { "$and": vec![Value::from(date), Value::from(partial.clone())] },
            None => date,
        });
    }
    if let Some(secs) = collection
        .options
        .expire_after_secs
        .filter(|_| collection.is_clustered())
    {
        out.push(doc! { "_id": ValueRef::Document(before(secs).as_ref()).to_value() });
    }
    out
}

/// The filters of buckets whose last measurement has expired.
fn expired_buckets(buckets: &Collection, series: &TimeSeries, now_ms: i64) -> Vec<Document> {
    let last = |secs: i64| {
        let mut last = Document::new();
        let limit = now_ms.saturating_sub(secs.saturating_mul(1000));
        last.push(
            format!("control.max.{}", series.time_field),
            doc! { "$lte": Value::DateTime(limit) },
        );
        last
    };
    let of_indexes = buckets.indexes.iter().filter_map(|index| {
        let last = last(index.expire_after_secs?);
        Some(match &index.partial_filter {
            Some(partial) => doc! { "$and": vec![Value::from(last), Value::from(partial.clone())] },
            None => last,
        })
    });
    let whole = buckets.options.expire_after_secs.map(last);
    of_indexes.chain(whole).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_database::DatabaseOptions;
    use nestor_database::node::ProcessOptions;
    use nestor_database::ttl::TtlMonitor;
    use nestor_storage::{Engine, EngineOptions};

    fn service() -> Service {
        let options = DatabaseOptions {
            replica_set: Some("rs0".into()),
            host: "localhost:0".into(),
            process: ProcessOptions::default(),
            ..DatabaseOptions::default()
        };
        Service::new(options, Engine::ephemeral(EngineOptions::at_time(1_700_000_000)))
    }

    fn run(service: &Service, command: Document) -> Document {
        let mut conn = Connection::new(service, "");
        let outcome = service.run(&mut conn, Request::new(command.to_raw().as_raw()));
        let reply: Document = RawDocBuf::validate(&outcome.reply[outcome.reply_at..]).unwrap().into();
        assert!(reply.get("ok").is_some_and(ValueRef::truthy), "{reply:?}");
        reply
    }

    fn count(service: &Service) -> i64 {
        let reply = run(service, doc! { "count": "c", "query": doc! {}, "$db": "d" });
        reply.get("n").and_then(nestor_model::number::safe_i64).unwrap()
    }

    #[test]
    fn old_dates_expire_through_hidden_and_partial_indexes_too() {
        let service = service();
        let index = |spec: Document| doc! { "createIndexes": "c", "indexes": vec![Value::from(spec)], "$db": "d" };
        run(
            &service,
            index(doc! { "key": doc! { "at": 1 }, "name": "at", "expireAfterSeconds": 10, "hidden": true }),
        );
        run(
            &service,
            index(doc! {
                "key": doc! { "p": 1 }, "name": "p", "expireAfterSeconds": 10.9,
                "partialFilterExpression": doc! { "old": true },
            }),
        );
        let date = |secs: i64| Value::DateTime(secs * 1000);
        let documents = vec![
            Value::from(doc! { "_id": 1, "at": date(100) }),
            doc! { "_id": 2, "at": date(200) }.into(),
            doc! { "_id": 3, "at": 100 }.into(),
            doc! { "_id": 4 }.into(),
            doc! { "_id": 5, "at": vec![date(900), date(100)] }.into(),
            doc! { "_id": 6, "p": date(100), "old": true }.into(),
            doc! { "_id": 7, "p": date(100) }.into(),
        ];
        run(&service, doc! { "insert": "c", "documents": documents, "$db": "d" });
        assert_eq!(service.expire(109_999), 0, "ten seconds have not passed");
        assert_eq!(service.expire(110_000), 3);
        assert_eq!(count(&service), 4);
        assert_eq!(service.expire(210_000), 1);
        assert_eq!(service.expire(i64::MAX), 0, "what is no date never expires");
    }

    #[test]
    fn a_pass_is_due_after_the_seconds_of_the_parameter() {
        let monitor = TtlMonitor::default();
        let due: Vec<bool> = (0..6).map(|_| monitor.second(3)).collect();
        assert_eq!(due, [false, false, true, false, false, true]);
        assert!(monitor.second(1));
    }
}
