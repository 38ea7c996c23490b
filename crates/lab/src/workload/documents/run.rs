//! Loads the documents, runs a test with its clients, audits what it wrote.

use super::data::{self, ACCOUNTS, ACCOUNTS_MAX, BATCH, LARGE, LARGE_DOCUMENTS, NAME, NEW};
use super::tests::{Asker, NAMES, Shared, Watcher, statements};
use crate::drive::{Load, Pace, Times, drive};
use crate::random::{Random, Zipf};
use crate::results::Measurement;
use crate::rows::{Arguments, Rows};
use crate::statement::{Role, Statement, aggregate};
use crate::target::{Target, command};
use crate::wire::{Protocol, mongo_command};
use crate::workload::load::{Loader, run_alone};
use crate::workload::{Settings, Workload, checkpoint, drop_table};
use nestor_model::{Value, ValueRef, doc};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes of each large document, about.
const LARGE_BYTES: usize = 100_000;
/// Fewest documents: a search for a word finds enough, and a range of teams is whole.
const DOCUMENTS_MIN: u64 = 2_000;

/// The documents on a server.
pub struct Documents {
    target: Target,
    settings: Settings,
    documents: u64,
    /// What the tests so far have added to all `visits`.
    visits: i64,
    /// And to all `n` of items.
    items: i64,
    next: u64,
}

impl Documents {
    /// Makes the collections anew.
    pub fn load(target: &Target, settings: Settings) -> Result<(Self, Measurement), String> {
        if target.protocol != Protocol::Mongo {
            return Err("documents are measured on servers of MongoDB's protocol".into());
        }
        if settings.rows < DOCUMENTS_MIN {
            return Err(format!("at least {DOCUMENTS_MIN} documents are wanted"));
        }
        for name in [NAME, LARGE, NEW, ACCOUNTS] {
            drop_table(target, name)?;
        }
        let documents = settings.rows / BATCH as u64 * BATCH as u64;
        let insert = data::insert(NAME, BATCH);
        let loader = Loader::new(target, (&insert, BATCH), 0..documents, data::push)?;
        let outcome = run_alone(target, &settings, loader);
        if outcome.failure.is_none() {
            let account = |id: u64| Value::from(doc! { "_id": id as i64, "visits": 0i64 });
            let accounts: Vec<Value> = (0..ACCOUNTS_MAX).map(account).collect();
            // A change stream wants a collection that is there.
            let new = command(doc! { "create": NEW }, "");
            target.run(&[
                command(data::indexes(), ""),
                command(doc! { "insert": ACCOUNTS, "documents": accounts }, ""),
                new,
            ])?;
            for id in 0..LARGE_DOCUMENTS {
                let inner = doc! { "field": "", "text": "x".repeat(LARGE_BYTES).as_str() };
                let large = vec![Value::from(doc! { "_id": id as i64, "inner": inner })];
                target.run(&[command(doc! { "insert": LARGE, "documents": large }, "")])?;
            }
            checkpoint(target)?;
        }
        let measurement = Measurement::of("documents", "load", &outcome, 0);
        let loaded = Self {
            target: target.clone(),
            settings,
            documents,
            visits: 0,
            items: 0,
            next: 1 << 40,
        };
        Ok((loaded, measurement))
    }

    /// A connection with a change stream on what is inserted.
    fn watch(&self) -> Result<Watcher, String> {
        let mut stream = (self.target.dial)()?;
        let database = self.target.database.clone();
        let stages = vec![Value::from(doc! { "$changeStream": doc! {} })];
        let watch = doc! { "aggregate": NEW, "pipeline": stages, "cursor": doc! {}, "$db": database.as_str() };
        let reply = mongo_command(&mut *stream, &watch)?;
        let cursor = reply.get("cursor").and_then(ValueRef::as_document);
        match cursor.and_then(|cursor| cursor.get("id")) {
            Some(ValueRef::Int64(cursor)) => Ok(Watcher {
                stream,
                cursor,
                database,
            }),
            other => Err(format!("a change stream has no cursor: {other:?}")),
        }
    }

    /// The sum of an expression over a collection.
    fn sum(&self, collection: &str, of: Value) -> Result<i64, String> {
        let group = doc! { "$group": doc! { "_id": Value::Null, "n": doc! { "$sum": of } } };
        let stages = vec![group, doc! { "$project": doc! { "_id": 0, "n": 1 } }];
        let statement = Statement::new(
            "the audit",
            Role::Reads,
            vec![],
            aggregate(collection, stages),
            String::new(),
        );
        self.target.once(&statement)?.int(0, 0)
    }

    fn audit(&self) -> Result<(), String> {
        let items = doc! { "$sum": "$items.n" };
        for (what, found, expected) in [
            ("visits", self.sum(NAME, "$visits".into())?, self.visits),
            ("items", self.sum(NAME, items.into())?, self.items),
            ("accounts", self.sum(ACCOUNTS, "$visits".into())?, 0),
        ] {
            if found != expected {
                return Err(format!(
                    "a wrong answer: the sum of {what} is {found} in place of {expected}"
                ));
            }
        }
        Ok(())
    }

    fn asker<'s>(&self, test: &'static str, client: u64, shared: &'s Shared) -> Result<Asker<'s>, String> {
        let clients = self.settings.clients as u64;
        let mut caller = self.target.connect()?;
        let mut numbers = Vec::new();
        for statement in statements(test)? {
            numbers.push(caller.prepare(&statement)?);
        }
        Ok(Asker {
            caller,
            test,
            numbers,
            shared,
            own: client * self.documents / clients..(client + 1) * self.documents / clients,
            random: Random::of_part(self.settings.seed, client),
            zipf: Zipf::new(ACCOUNTS_MAX, 0.99),
            watcher: if test == "change-stream" {
                Some(self.watch()?)
            } else {
                None
            },
            arguments: Arguments::default(),
            rows: Rows::default(),
        })
    }
}

impl Workload for Documents {
    fn run(&mut self, test: &str, times: Times) -> Result<Measurement, String> {
        let name = NAMES.into_iter().find(|name| *name == test);
        let name = name.ok_or_else(|| format!("there is no test {test}"))?;
        // Making an index that is there does nothing.
        if let Some(index) = data::index_of(name) {
            self.target.run(&[command(index, "")])?;
            checkpoint(&self.target)?;
        }
        let shared = Shared {
            documents: self.documents,
            next: AtomicU64::new(self.next),
            committed: AtomicU64::new(0),
            wasted: AtomicU64::new(0),
        };
        let clients = self.settings.clients as u64;
        let mut loads = Vec::new();
        for client in 0..clients {
            loads.push(Load {
                worker: Box::new(self.asker(name, client, &shared)?),
                pace: self
                    .settings
                    .rate
                    .map_or(Pace::Closed, |rate| Pace::Rate(rate / clients as f64)),
                group: 0,
            });
        }
        let outcome = drive(loads, times, self.target.processes().as_ref());
        let mut measurement = Measurement::of("documents", name, &outcome, 0);
        self.next = shared.next.load(Relaxed);
        let committed = shared.committed.load(Relaxed);
        match name {
            "inc" => self.visits += committed as i64,
            "array-filters" => self.items += committed as i64,
            "transfer-zipf" => {
                let wasted = shared.wasted.load(Relaxed) as f64 / (committed as f64).max(1.0);
                measurement
                    .figures
                    .push(("transactions done again, for each committed".into(), wasted));
            }
            _ => {}
        }
        if measurement.failure.is_none() {
            measurement.failure = self.audit().err();
        }
        Ok(measurement)
    }

    fn set_clients(&mut self, clients: usize) {
        self.settings.clients = clients;
    }
}
