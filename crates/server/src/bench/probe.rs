//! A connection that asks one small thing at a time while others load, and remembers the longest answer.

use super::Bench;
use super::messages::{Case, Ids, Template};
use crate::client::Uri;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The probe's inserts begin here, far from those of every case.
const FIRST_ID: u64 = 1 << 61;
/// Between two questions.
const PACE: Duration = Duration::from_millis(1);

/// The longest answers.
#[derive(Clone, Copy, Default)]
pub struct Pauses {
    /// To a find by `_id`.
    pub find: Duration,
    /// To an insert of one document.
    pub insert: Duration,
}

/// A running probe.
pub struct Probe {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Result<Pauses, String>>,
}

impl Probe {
    /// Connects and begins.
    pub fn start(uri: &Uri) -> Result<Self, String> {
        let mut bench = Bench::connect(uri)?;
        let over = Arc::new(AtomicBool::new(false));
        let flag = over.clone();
        let thread = std::thread::spawn(move || {
            let mut pauses = Pauses::default();
            let mut find = Template::new(Case::Find);
            let mut insert = Template::new(Case::Insert);
            let mut finds = Ids::new(Case::Find, 1_000);
            let mut inserts = Ids::insert_from(FIRST_ID);
            while !flag.load(Relaxed) {
                find.fill(&mut finds);
                insert.fill(&mut inserts);
                pauses.find = pauses.find.max(timed(&mut bench, &find)?);
                pauses.insert = pauses.insert.max(timed(&mut bench, &insert)?);
                std::thread::sleep(PACE);
            }
            bench.delete_from(FIRST_ID)?;
            Ok(pauses)
        });
        Ok(Self { over, thread })
    }

    /// Ends the probe, takes its documents away again and tells what it felt.
    pub fn stop(self) -> Result<Pauses, String> {
        self.over.store(true, Relaxed);
        self.thread.join().map_err(|_| "the probe panicked".to_owned())?
    }
}

fn timed(bench: &mut Bench, message: &Template) -> Result<Duration, String> {
    let begun = Instant::now();
    bench.ask(message)?;
    Ok(begun.elapsed())
}
