//! `nestor bench --transactions`: what transactions cost, as ratios that do not depend on the machine.
//!
//! Each client is a thread with a connection of its own that waits for one answer after the other, as applications do. A transfer moves
//! one from an account to another: two updates and a commit with write concern majority, that is three messages. What it is
//! compared with is measured beside it: appending [`APPENDED_BYTES`] to a file and syncing it, by one thread in the same directory.
//! A transfer that met another one is tried again and counts once. In the end the total of all accounts has to be what it was.

use super::{COLLECTION, addressed};
use crate::client::{Client, ClientError, Session, Uri};
use nestor_model::{Document, RawDocBuf, Value, ValueRef, doc};
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

const DATABASE: &str = "nestor_bench_transactions";
/// About the size of a transfer's frame in the journal.
const APPENDED_BYTES: usize = 1024;
/// Accounts of those who do not meet, and of those who do.
const ACCOUNTS: u64 = 100_000;
const CONTENDED_ACCOUNTS: u64 = 100;
/// What each account has at first.
const BALANCE: i64 = 1000;
/// Documents of one insert.
const BATCH: u64 = 10_000;
const WRITE_CONFLICT: i32 = 112;

/// What clients did in a time.
#[derive(Clone, Copy, Default)]
struct Done {
    transfers: u64,
    conflicts: u64,
    per_second: f64,
}

/// Measures each figure for `time` and prints them. `dir` is where the server under test has its data.
pub fn run(uri: &Uri, dir: &Path, time: Duration) -> Result<(), String> {
    let mut client = Teller::connect(uri)?;
    client.ask(doc! { "dropDatabase": 1 })?;
    client.load()?;
    let single = mean(time, || client.find(None))?;
    let empty = mean(time, || client.empty_transaction())?;
    println!(
        "a find by _id {:.1} µs, a transaction of one find and its commit {:.1} µs: {:.2} times as long",
        micros(single),
        micros(empty),
        empty.as_secs_f64() / single.as_secs_f64()
    );
    // Before and after, for disks change their minds.
    let before = appends_per_second(dir, time / 2)?;
    let one = transfers(uri, 1, ACCOUNTS, time)?;
    let after = appends_per_second(dir, time / 2)?;
    let disk = (before + after) / 2.0;
    println!("append and fdatasync of {APPENDED_BYTES} bytes: {disk:.0}/s");
    let compared = |clients: u32, done: Done| {
        println!(
            "transfers with majority, {clients} clients: {:.0}/s, {:.2} times the disk's rate, {} conflicts",
            done.per_second,
            done.per_second / disk,
            done.conflicts
        );
    };
    compared(1, one);
    compared(16, transfers(uri, 16, ACCOUNTS, time)?);
    let apart = transfers(uri, 8, ACCOUNTS, time)?;
    let contended = transfers(uri, 8, CONTENDED_ACCOUNTS, time)?;
    compared(8, apart);
    println!(
        "8 clients over {CONTENDED_ACCOUNTS} accounts: {:.0}/s, {:.2} times the rate of 8 that seldom meet, {:.2} conflicts each",
        contended.per_second,
        contended.per_second / apart.per_second.max(1e-9),
        contended.conflicts as f64 / contended.transfers.max(1) as f64
    );
    let total = client.total()?;
    let expected = i64::try_from(ACCOUNTS).unwrap_or(i64::MAX).saturating_mul(BALANCE);
    client.ask(doc! { "dropDatabase": 1 })?;
    match total == expected {
        true => Ok(()),
        false => Err(format!("the accounts have {total} in all, not {expected}")),
    }
}

/// Transfers by `clients` at one time over the first `accounts`.
fn transfers(uri: &Uri, clients: u32, accounts: u64, time: Duration) -> Result<Done, String> {
    let tellers = (0..clients).map(|_| Teller::connect(uri));
    let tellers = tellers.collect::<Result<Vec<_>, String>>()?;
    let begun = Instant::now();
    let end = begun + time;
    let workers = (1u64..).zip(tellers).map(|(number, mut teller)| {
        std::thread::spawn(move || {
            let mut random = Random(number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let mut done = Done::default();
            while Instant::now() < end {
                let from = random.below(accounts);
                let to = (from + 1 + random.below(accounts - 1)) % accounts;
                while !teller.transfer(from, to)? {
                    done.conflicts += 1;
                }
                done.transfers += 1;
            }
            Ok(done)
        })
    });
    let workers: Vec<_> = workers.collect();
    let mut all = Done::default();
    for worker in workers {
        let done: Result<Done, String> = worker.join().map_err(|_| "a client panicked".to_owned())?;
        let done = done?;
        all.transfers += done.transfers;
        all.conflicts += done.conflicts;
    }
    all.per_second = all.transfers as f64 / begun.elapsed().as_secs_f64();
    Ok(all)
}

/// How often a second a file in `dir` can be appended to and synced.
fn appends_per_second(dir: &Path, time: Duration) -> Result<f64, String> {
    let path = dir.join("appended");
    let failed = |e: std::io::Error| format!("{}: {e}", path.display());
    let mut file = File::create(&path).map_err(failed)?;
    let bytes = [7; APPENDED_BYTES];
    let begun = Instant::now();
    let mut count = 0u32;
    while begun.elapsed() < time {
        file.write_all(&bytes).and_then(|()| file.sync_data()).map_err(failed)?;
        count += 1;
    }
    let rate = f64::from(count) / begun.elapsed().as_secs_f64();
    std::fs::remove_file(&path).map_err(failed)?;
    Ok(rate)
}

/// How long `work` takes, on the average.
fn mean(time: Duration, mut work: impl FnMut() -> Result<(), String>) -> Result<Duration, String> {
    let begun = Instant::now();
    let mut count = 0;
    while begun.elapsed() < time {
        work()?;
        count += 1;
    }
    Ok(begun.elapsed() / count.max(1))
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// A client with a session.
struct Teller {
    client: Client,
    session: Session,
}

impl Teller {
    fn connect(uri: &Uri) -> Result<Self, String> {
        Ok(Self {
            client: Client::connect(uri).map_err(|e| e.to_string())?,
            session: Session::new(),
        })
    }

    fn send(&mut self, command: Document, database: &str) -> Result<RawDocBuf, ClientError> {
        self.client.command(addressed(command, database).as_raw())
    }

    fn ask(&mut self, command: Document) -> Result<RawDocBuf, String> {
        self.send(command, DATABASE).map_err(|e| e.to_string())
    }

    fn load(&mut self) -> Result<(), String> {
        for from in (0..ACCOUNTS).step_by(BATCH as usize) {
            let account = |id: u64| Value::from(doc! { "_id": id as i64, "n": BALANCE });
            let documents: Vec<Value> = (from..from + BATCH).map(account).collect();
            self.ask(doc! { "insert": COLLECTION, "documents": documents })?;
        }
        Ok(())
    }

    /// Finds a document, as the first statement of a transaction if `begins` says so.
    fn find(&mut self, begins: Option<bool>) -> Result<(), String> {
        let mut find = doc! { "find": COLLECTION, "filter": doc! { "_id": 7i64 }, "limit": 1, "singleBatch": true };
        if let Some(begins) = begins {
            self.session.in_transaction(&mut find, begins);
        }
        self.ask(find).map(|_| ())
    }

    fn empty_transaction(&mut self) -> Result<(), String> {
        self.find(Some(true))?;
        self.commit().map_err(|e| e.to_string())
    }

    fn commit(&mut self) -> Result<(), ClientError> {
        let mut commit = doc! { "commitTransaction": 1, "writeConcern": doc! { "w": "majority" } };
        self.session.in_transaction(&mut commit, false);
        self.send(commit, "admin").map(|_| ())
    }

    /// Moves one; `false` if another transaction was in the way.
    fn transfer(&mut self, from: u64, to: u64) -> Result<bool, String> {
        let steps = [(from, -1i64, true), (to, 1, false)];
        let done = steps
            .into_iter()
            .try_for_each(|(id, by, begins)| {
                let change = doc! { "q": doc! { "_id": id as i64 }, "u": doc! { "$inc": doc! { "n": by } } };
                let mut update = doc! { "update": COLLECTION, "updates": vec![Value::from(change)] };
                self.session.in_transaction(&mut update, begins);
                self.send(update, DATABASE).map(|_| ())
            })
            .and_then(|()| self.commit());
        match done {
            Ok(()) => Ok(true),
            Err(ClientError::Refused { code, .. }) if code == WRITE_CONFLICT => Ok(false),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The balance of all accounts together.
    fn total(&mut self) -> Result<i64, String> {
        let sum = doc! { "$group": doc! { "_id": 0, "n": doc! { "$sum": "$n" } } };
        let reply =
            self.ask(doc! { "aggregate": COLLECTION, "pipeline": vec![Value::from(sum)], "cursor": doc! {} })?;
        let cursor = reply.as_raw().get("cursor").and_then(ValueRef::as_document);
        let batch = cursor.and_then(|cursor| cursor.get("firstBatch"));
        let first = batch.and_then(ValueRef::as_array).and_then(|batch| batch.iter().next());
        let total = first.and_then(ValueRef::as_document).and_then(|first| first.get("n"));
        total
            .and_then(nestor_model::number::safe_i64)
            .ok_or_else(|| "the accounts have no total".into())
    }
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
