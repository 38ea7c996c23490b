//! `nestor bench --changes`: what change streams cost and how fast they are.
//!
//! - *Delivery.* Writers commit single documents with write concern majority at a fixed rate while one stream waits for them. How long
//!   after its acknowledgement, and how long after it was sent, a commit's event has arrived.
//! - *Catching up.* One stream reads what was written before, in batches as large as the server makes them.
//! - *Idle.* Many streams wait, each on a connection of its own, and nothing happens to them: with the time that drivers let a
//!   getMore wait by default, a second, and with a minute; and while others write elsewhere.

use super::{Bench, COLLECTION, DATABASE, addressed, cpu, report};
use crate::client::{Uri, body_of, command_message};
use hdrhistogram::Histogram;
use nestor_model::value::DocRef;
use nestor_model::{Document, RawDoc, Timestamp, Value, ValueRef, doc};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Connections that write; each has one commit under way, so they have to be more than commits take milliseconds.
const WRITERS: u64 = 32;
/// Documents of one insert before catching up.
const BATCH: u64 = 1_000;
/// The collection of those who write while streams on another one are idle.
const ELSEWHERE: &str = "elsewhere";
/// Commits a second of those.
const ELSEWHERE_RATE: u64 = 1_000;

/// How much is measured.
pub(super) struct Scale {
    rate: u64,
    time: Duration,
    events: u64,
    streams: usize,
}

impl Scale {
    /// 5,000 commits a second, half a million events, 1,000 streams; or little of everything.
    pub(super) fn new(quick: bool) -> Self {
        let secs = Duration::from_secs;
        match quick {
            true => Self {
                rate: 200,
                time: secs(1),
                events: 5_000,
                streams: 20,
            },
            false => Self {
                rate: 5_000,
                time: secs(10),
                events: 500_000,
                streams: 1_000,
            },
        }
    }
}

/// Measures and prints.
pub(super) fn measure(scale: &Scale, uri: &Uri, pid: Option<u32>) -> Result<(), String> {
    let mut bench = Bench::connect(uri)?;
    bench.command(doc! { "dropDatabase": 1 })?;
    bench.command(doc! { "create": COLLECTION })?;
    delivery(scale, uri)?;
    catching_up(scale, uri, pid)?;
    idle(scale, uri, pid)?;
    bench.command(doc! { "dropDatabase": 1 })
}

/// An open stream and the connection that it is on.
struct Stream {
    bench: Bench,
    get_more: Vec<u8>,
    reply: Vec<u8>,
}

impl Stream {
    fn open(uri: &Uri, options: Document, wait_ms: Option<i64>) -> Result<Self, String> {
        let mut bench = Bench::connect(uri)?;
        let stage: Value = doc! { "$changeStream": options }.into();
        let aggregate = doc! { "aggregate": COLLECTION, "pipeline": vec![stage], "cursor": doc! { "batchSize": 0 } };
        let reply = bench.client.command(addressed(aggregate, DATABASE).as_raw());
        let reply = reply.map_err(|e| e.to_string())?;
        let cursor = field(reply.as_raw(), "cursor")?;
        let Some(ValueRef::Int64(id)) = cursor.get("id") else {
            return Err("a change stream without a cursor".into());
        };
        let mut get_more = doc! { "getMore": id, "collection": COLLECTION };
        if let Some(ms) = wait_ms {
            get_more.push("maxTimeMS", ms);
        }
        let get_more = command_message(addressed(get_more, DATABASE).as_raw(), None);
        Ok(Self {
            bench,
            get_more,
            reply: Vec::new(),
        })
    }

    fn ask(&mut self) -> Result<(), String> {
        let sent = self.bench.client.connection().send_bytes(&self.get_more);
        sent.map_err(|e| e.to_string())
    }

    fn answer(&mut self) -> Result<(), String> {
        let read = self.bench.client.connection().read_message(&mut self.reply);
        read.map_err(|e| e.to_string())
    }

    /// Calls `each` with the events of the next batch, and returns how many there were.
    fn next(&mut self, mut each: impl FnMut(DocRef<'_>)) -> Result<u64, String> {
        self.ask()?;
        self.answer()?;
        let cursor = field(body_of(&self.reply)?, "cursor")?;
        let events = cursor.get("nextBatch").and_then(ValueRef::as_array);
        let mut count = 0;
        for event in events.iter().flat_map(|events| events.iter()) {
            count += 1;
            event.as_document().into_iter().for_each(&mut each);
        }
        Ok(count)
    }
}

fn field<'r>(reply: RawDoc<'r>, name: &str) -> Result<DocRef<'r>, String> {
    let found = reply.get(name).and_then(ValueRef::as_document);
    found.ok_or_else(|| format!("no {name} in {:?}", ValueRef::Document(reply.as_doc())))
}

/// Writers at a fixed rate, all together. Document `i` is sent when its time has come, not when the one before it was answered.
struct Load {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<(), String>>>,
}

/// When commits were sent and acknowledged, in nanoseconds since the beginning, by number; 0 if they were not.
struct Times {
    begun: Instant,
    sent: Vec<AtomicU64>,
    acknowledged: Vec<AtomicU64>,
}

impl Times {
    fn new(count: u64) -> Self {
        let zeros = || (0..count).map(|_| AtomicU64::new(0)).collect();
        Self {
            begun: Instant::now(),
            sent: zeros(),
            acknowledged: zeros(),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Load {
    /// Commits one document for each entry of `times`, or without times until it is stopped.
    fn start(uri: &Uri, coll: &'static str, rate: u64, times: Option<Arc<Times>>) -> Result<Self, String> {
        let over = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for writer in 0..WRITERS {
            let (mut bench, over, times) = (Bench::connect(uri)?, over.clone(), times.clone());
            let begun = Instant::now();
            threads.push(std::thread::spawn(move || {
                let count = times.as_ref().map_or(u64::MAX, |times| times.sent.len() as u64);
                let mut number = writer;
                while number < count && !over.load(Relaxed) {
                    let due = begun + Duration::from_nanos(number.saturating_mul(1_000_000_000) / rate);
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    if let Some(times) = &times {
                        times.sent[number as usize].store(times.now(), Relaxed);
                    }
                    bench.command(insert(coll, number, number + 1))?;
                    if let Some(times) = &times {
                        times.acknowledged[number as usize].store(times.now(), Relaxed);
                    }
                    number += WRITERS;
                }
                Ok(())
            }));
        }
        Ok(Self { over, threads })
    }

    fn finish(self) -> Result<(), String> {
        for thread in self.threads {
            thread.join().map_err(|_| "a writer panicked".to_owned())??;
        }
        Ok(())
    }

    fn stop(self) -> Result<(), String> {
        self.over.store(true, Relaxed);
        self.finish()
    }
}

fn insert(coll: &str, from: u64, to: u64) -> Document {
    let document = |id: u64| doc! { "_id": id as i64, "name": "a document of a hundred bytes", "n": (id % 1000) as i64, "on": true };
    let documents: Vec<Value> = (from..to).map(|id| document(id).into()).collect();
    doc! { "insert": coll, "documents": documents, "writeConcern": doc! { "w": "majority" } }
}

fn delivery(scale: &Scale, uri: &Uri) -> Result<(), String> {
    let count = scale.rate * scale.time.as_secs();
    let mut stream = Stream::open(uri, Document::new(), Some(1_000))?;
    let times = Arc::new(Times::new(count));
    let load = Load::start(uri, COLLECTION, scale.rate, Some(times.clone()))?;
    let mut arrived = vec![0u64; count as usize];
    let (mut seen, mut quiet) = (0, 0);
    while seen < count && quiet < 20 {
        let mut at = 0;
        let got = stream.next(|event| {
            // All of a batch arrive with its last byte.
            at = if at == 0 { times.now() } else { at };
            let key = event.get("documentKey").and_then(ValueRef::as_document);
            if let Some(ValueRef::Int64(id)) = key.and_then(|key| key.get("_id")) {
                arrived[id as usize] = at;
            }
        })?;
        seen += got;
        quiet = if got == 0 { quiet + 1 } else { 0 };
    }
    load.finish()?;
    if seen < count {
        return Err(format!("{seen} events of {count} commits"));
    }
    let elapsed = times.acknowledged.iter().map(|at| at.load(Relaxed)).max().unwrap_or(1);
    println!(
        "delivery: {} commits, {:.0} a second; of the events",
        count,
        count as f64 / (elapsed as f64 / 1e9)
    );
    for (what, from) in [
        ("its acknowledgement", &times.acknowledged),
        ("it was sent", &times.sent),
    ] {
        let mut latencies = Histogram::<u64>::new_with_bounds(1, 120_000_000_000, 3).map_err(|e| e.to_string())?;
        for (from, arrived) in from.iter().zip(&arrived) {
            latencies.saturating_record(arrived.saturating_sub(from.load(Relaxed)).max(1));
        }
        let at = |quantile| report::milliseconds(Duration::from_nanos(latencies.value_at_quantile(quantile)));
        println!(
            "    after {what}: median {:.2} ms, p99 {:.2} ms, p99.9 {:.2} ms, longest {:.2} ms",
            at(0.5),
            at(0.99),
            at(0.999),
            at(1.0)
        );
    }
    Ok(())
}

fn catching_up(scale: &Scale, uri: &Uri, pid: Option<u32>) -> Result<(), String> {
    let mut bench = Bench::connect(uri)?;
    let all: Value = doc! { "q": doc! {}, "limit": 0 }.into();
    bench.command(doc! { "delete": COLLECTION, "deletes": vec![all] })?;
    let reply = bench.client.command(addressed(doc! { "ping": 1 }, DATABASE).as_raw());
    let reply = reply.map_err(|e| e.to_string())?;
    let Some(ValueRef::Timestamp(now)) = reply.as_raw().get("operationTime") else {
        return Err("the server is no replica set".into());
    };
    let mut from = 0;
    while from < scale.events {
        let to = (from + BATCH).min(scale.events);
        bench.command(insert(COLLECTION, from, to))?;
        from = to;
    }
    for (what, options) in [
        ("", Document::new()),
        (" with updateLookup", doc! { "fullDocument": "updateLookup" }),
    ] {
        let mut options = options;
        options.push("startAtOperationTime", Timestamp::from_u64(now.to_u64() + 1));
        let mut stream = Stream::open(uri, options, Some(1_000))?;
        let before = pid.map(cpu::process_time);
        let begun = Instant::now();
        let (mut seen, mut bytes, mut quiet) = (0, 0, 0);
        while seen < scale.events && quiet < 20 {
            let got = stream.next(|_| ())?;
            quiet = if got == 0 { quiet + 1 } else { 0 };
            seen += got;
            bytes += stream.reply.len();
        }
        let elapsed = begun.elapsed();
        if seen != scale.events {
            return Err(format!("{seen} events of {} documents", scale.events));
        }
        let cpu = before
            .zip(pid)
            .map(|(before, pid)| cpu::process_time(pid).saturating_sub(before));
        let cost = cpu.map(|cpu| {
            format!(
                ", {:.2} µs of the server's CPU each",
                cpu.as_secs_f64() * 1e6 / seen as f64
            )
        });
        println!(
            "catching up{what}: {seen} events, {:.0} a second, {} bytes each{}",
            seen as f64 / elapsed.as_secs_f64(),
            bytes as u64 / seen.max(1),
            cost.unwrap_or_default()
        );
    }
    Ok(())
}

fn idle(scale: &Scale, uri: &Uri, pid: Option<u32>) -> Result<(), String> {
    let Some(pid) = pid else { return Ok(()) };
    let rss = cpu::rss_bytes(pid);
    for (what, wait_ms, elsewhere) in [
        ("which ask again after a second", None, false),
        ("which ask again after a minute", Some(60_000), false),
        ("the same, with 1,000 commits a second elsewhere", Some(60_000), true),
        ("no streams, with 1,000 commits a second elsewhere", Some(0), true),
    ] {
        let count = if wait_ms == Some(0) { 0 } else { scale.streams };
        let mut streams = Vec::with_capacity(count);
        for _ in 0..count {
            let mut stream = Stream::open(uri, Document::new(), wait_ms)?;
            stream.ask()?;
            streams.push(stream);
        }
        if wait_ms.is_none() {
            println!("idle: {count} streams take {:.1} KiB each", {
                cpu::rss_bytes(pid).saturating_sub(rss) as f64 / 1024.0 / count as f64
            });
        }
        let load = match elsewhere {
            true => Some(Load::start(uri, ELSEWHERE, ELSEWHERE_RATE, None)?),
            false => None,
        };
        // By then the server has done the work that opening the streams left behind.
        std::thread::sleep(scale.time / 4);
        let (begun, before) = (Instant::now(), cpu::process_time(pid));
        match wait_ms {
            // The streams run into their time limits one after the other, in the order in which they asked.
            None => {
                while begun.elapsed() < scale.time {
                    for stream in &mut streams {
                        stream.answer()?;
                        stream.ask()?;
                    }
                }
            }
            Some(_) => std::thread::sleep(scale.time),
        }
        let (elapsed, spent) = (begun.elapsed(), cpu::process_time(pid).saturating_sub(before));
        if let Some(load) = load {
            load.stop()?;
            Bench::connect(uri)?.command(doc! { "drop": ELSEWHERE })?;
        }
        let share = 100.0 * spent.as_secs_f64() / elapsed.as_secs_f64();
        println!("idle: {count} streams, {what}: {share:.2} % of a core");
    }
    Ok(())
}
