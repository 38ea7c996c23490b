//! `fsync` and `fsyncUnlock`: writes everything to disk, and may lock writes out meanwhile and afterwards,
//! for copies of the data directory.

use crate::args::{Arg, At, wrong_type};
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::service::Service;
use crate::spec::CommandSpec;
use nestor_database::rights::Action;
use nestor_model::{Result, ValueRef, bail};
use std::time::{Duration, Instant};

/// How long it waits for the writes that run (`fsyncLockAcquisitionTimeoutMillis`).
const TIMEOUT: Duration = Duration::from_secs(90);

/// `fsync`.
pub const LOCK: CommandSpec = Facts::no_collection("fsync", "Writes everything to disk, and may lock writes out.")
    .flags(Flags::ADMIN.and(Flags::LONG))
    .needs(Needs::server(Action::Fsync))
    .runs(|context, reply| {
        let args = Fsync::parse(context.body, context.sequences)?;
        if !args.lock {
            flush(context.service)?;
            reply.append("numFiles", 1);
            return Ok(());
        }
        let timeout = args
            .timeout
            .map_or(TIMEOUT, |Int(ms)| Duration::from_millis(u64::try_from(ms).unwrap_or(0)));
        let service = context.service;
        let deadline = Instant::now() + timeout;
        let locks = service
            .node
            .gates
            .fsync_lock(&service.engine, deadline, &context.interrupt)?;
        reply.append("info", "now locked against writes, use db.fsyncUnlock() to unlock");
        reply.append("lockCount", locks);
        reply.append("seeAlso", "http://dochub.mongodb.org/core/fsynccommand");
        Ok(())
    });

/// `fsyncUnlock`.
pub const UNLOCK: CommandSpec = Facts::no_collection("fsyncUnlock", "Takes one lock of fsync away.")
    // It waits for an `fsync` that is just locking.
    .flags(Flags::ADMIN.and(Flags::LONG))
    .needs(Needs::server(Action::Unlock))
    .runs(|context, reply| {
        FsyncUnlock::parse(context.body, context.sequences)?;
        let Some(left) = context.service.node.gates.fsync_unlock(&context.interrupt)? else {
            bail!(IllegalOperation, "fsyncUnlock called when not locked");
        };
        reply.append("info", "fsyncUnlock completed");
        reply.append("lockCount", left);
        Ok(())
    });

/// Brings everything committed so far to disk.
fn flush(service: &Service) -> Result<()> {
    Ok(service.engine.wait_durable(service.engine.last_lsn())?)
}

crate::args! {
    struct Fsync: "fsync" command {
        "lock" => lock: bool,
        "fsyncLockAcquisitionTimeoutMillis" => timeout: Option<Int>,
    }
}

crate::args! {
    struct FsyncUnlock: "fsyncUnlock" lenient {}
}

/// An int32 and nothing else.
#[derive(Debug)]
struct Int(i32);

impl<'a> Arg<'a> for Int {
    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        match value {
            ValueRef::Int32(n) => Ok(Some(Self(n))),
            ValueRef::Null | ValueRef::Undefined => Ok(None),
            other => Err(wrong_type(at, other.bson_type(), "int")),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::service::Service;
    use crate::tests::Client;
    use nestor_database::DatabaseOptions;
    use nestor_model::{Document, Value, doc};
    use nestor_storage::{Engine, EngineOptions};
    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicBool, Ordering};

    fn open(dir: &Path) -> Service {
        let engine = Engine::open(dir, EngineOptions::at_time(1_700_000_000)).expect("the store opens");
        Service::new(DatabaseOptions::default(), engine)
    }

    fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut out = BTreeMap::new();
        for entry in std::fs::read_dir(dir).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_file() {
                out.insert(path.clone(), std::fs::read(&path).expect("a file"));
            } else if !path.ends_with("tmp") {
                out.extend(files(&path));
            }
        }
        out
    }

    fn admin(name: &str) -> Document {
        let mut command = Document::new();
        command.push(name, 1);
        command.push("$db", "admin");
        command
    }

    fn documents(range: std::ops::Range<i32>) -> Vec<Value> {
        let pad = "x".repeat(200);
        range
            .map(|i| doc! { "_id": i, "n": i, "pad": pad.clone() }.into())
            .collect()
    }

    /// Ends the threads of a test also when it fails, and lets those go on that wait for the lock.
    struct Stop<'a>(&'a AtomicBool, &'a Service);

    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
            Client::new(self.1).run(admin("fsyncUnlock"));
        }
    }

    /// Updates of many documents, index builds and transactions are under way when the lock comes; no file changes under it,
    /// and a copy of them is a sound store.
    #[test]
    fn no_file_changes_while_it_is_locked() {
        let dir = tempfile::tempdir().expect("a directory");
        let service = &open(dir.path());
        let mut client = Client::new(service);
        for at in 0..4 {
            client.run(doc! { "insert": "c", "documents": documents(at * 1000..(at + 1) * 1000) });
        }
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let stop = &stop;
            let run = move |commands: fn() -> Vec<Document>| {
                move || {
                    let mut client = Client::new(service);
                    while !stop.load(Ordering::SeqCst) {
                        commands().into_iter().for_each(|command| drop(client.run(command)));
                    }
                }
            };
            scope.spawn(run(|| {
                let update = doc! { "q": doc! {}, "u": doc! { "$inc": doc! { "n": 1 } }, "multi": true };
                let w = doc! { "w": 1 };
                vec![doc! { "update": "c", "updates": vec![update.into()], "writeConcern": w }]
            }));
            scope.spawn(run(|| {
                let index = doc! { "key": doc! { "n": 1 }, "name": "n" };
                vec![
                    doc! { "createIndexes": "c", "indexes": vec![index.into()] },
                    doc! { "dropIndexes": "c", "index": "n" },
                ]
            }));
            scope.spawn(run(|| {
                let out = doc! { "$out": "d" };
                vec![doc! { "aggregate": "c", "pipeline": vec![out.into()], "cursor": doc! {} }]
            }));
            let _stop = Stop(stop, service);
            for _ in 0..10 {
                let mut lock = admin("fsync");
                lock.push("lock", true);
                assert_eq!(client.code(lock), 0);
                let (seen, lsn) = (files(dir.path()), service.engine.last_lsn());
                for _ in 0..10 {
                    client.run(doc! { "find": "c", "filter": doc! { "n": -1 } });
                }
                assert_eq!(service.engine.last_lsn(), lsn, "somebody committed");
                for (path, bytes) in files(dir.path()) {
                    assert!(seen.get(&path) == Some(&bytes), "{} has changed", path.display());
                }
                let copy = tempfile::tempdir().expect("a directory");
                for (path, bytes) in seen {
                    let path = copy.path().join(path.strip_prefix(dir.path()).expect("it is below"));
                    std::fs::create_dir_all(path.parent().expect("it has one")).expect("a directory");
                    std::fs::write(path, bytes).expect("a file");
                }
                let copied = open(copy.path());
                let reply = Client::new(&copied).run(doc! { "validate": "c" });
                let counted = (reply.get("valid"), reply.get("nrecords"));
                assert_eq!(format!("{counted:?}"), "(Some(true), Some(4000))");
                assert_eq!(client.code(admin("fsyncUnlock")), 0);
            }
        });
    }
}
