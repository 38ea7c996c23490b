//! Rows of columns that are numbered, by the statement's thread and by a helper as long as a processor is idle.
//!
//! The statement's thread puts what it has read into a short queue, numbers the next itself where that is full, and what is left in the queue in the end. Each
//! thread has groups of its own, which become one in the end. With the first that has many of them rows are divided by the values at a path of the key ([`divided`](super::divided)).

use super::divided::{Divided, Given, MANY};
use super::numbered::Numbered;
use crate::helper::Permit;
use nestor_columns::Segment;
use nestor_columns::nice::come_last;
use nestor_model::{DocRef, Result, statement};
use nestor_query::env::OpContext;
use nestor_query::stage::Group;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;

/// Rows of segments that wait for a helper.
const WAITING_MAX: usize = 4;

/// Rows for each thread, at least: a thread costs as much as some thousand of them. Tests have few rows.
const ALONE: usize = if cfg!(debug_assertions) { 512 } else { 32 * 1024 };

/// Rows that are numbered.
pub(super) struct Numbering {
    own: Worker,
    /// How many rows came.
    rows: usize,
    helper: Option<Helper>,
    /// How many helpers there were.
    pub(super) helpers: u64,
}

/// All groups.
pub(super) struct Ended {
    /// No group is in two of them.
    pub(super) parts: Vec<Numbered>,
    /// Groups of others that could not be told apart from these.
    pub(super) apart: Vec<Apart>,
    /// Rows that could not be told apart.
    pub(super) left: Vec<Given>,
}

/// Groups, and which of them are meant.
pub(super) type Apart = (Numbered, Vec<u32>);

/// What a thread has.
struct Worker {
    groups: Numbered,
    /// Whether it was tried to divide rows.
    has_tried: bool,
    apart: Vec<Apart>,
    /// Of each part of what is divided, rows that wait.
    waiting: Vec<Vec<Given>>,
    left: Vec<Given>,
}

struct Helper {
    shared: Arc<Shared>,
    /// Until somebody waits for it.
    thread: Option<JoinHandle<Result<(Worker, u64)>>>,
}

/// What both threads know.
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    divided: OnceLock<Divided>,
    /// Bytes of what the helper has for itself.
    bytes: AtomicUsize,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Given>,
    /// Nothing more will come.
    is_over: bool,
    /// The helper takes nothing more.
    has_ended: bool,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the helper rows, if it has time for them.
    fn takes(&self, given: &Given) -> bool {
        let mut queue = self.queue();
        let takes = queue.waiting.len() < WAITING_MAX && !queue.has_ended;
        if takes {
            queue.waiting.push_back(given.clone());
            drop(queue);
            self.changed.notify_one();
        }
        takes
    }

    /// The next rows for the helper, for which it waits; `None` when nothing more will come.
    fn next(&self) -> Option<Given> {
        let mut queue = self.queue();
        loop {
            let next = queue.waiting.pop_front();
            if next.is_some() || queue.is_over {
                return next;
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn end(&self) {
        self.queue().is_over = true;
        self.changed.notify_one();
    }
}

/// The helper has ended, if only by an error or a panic.
struct Ends(Arc<Shared>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.queue().has_ended = true;
    }
}

impl Worker {
    fn new(groups: Numbered) -> Self {
        Self {
            groups,
            has_tried: false,
            apart: Vec::new(),
            waiting: Vec::new(),
            left: Vec::new(),
        }
    }

    /// Bytes of its groups and of rows that wait.
    fn bytes(&self) -> usize {
        let waiting = self.waiting.iter().flatten().chain(&self.left);
        self.groups.bytes() + waiting.map(|(_, rows)| rows.bytes()).sum::<usize>()
    }

    /// Numbers rows, where nothing is divided or might be; the rest, when not all could be told apart.
    fn number(&mut self, (number, rows): &Given, op: &OpContext) -> Result<Option<Given>> {
        let refused = self.groups.add(rows, *number, op)?;
        Ok(refused.map(|chunks| (*number, rows.without(chunks))))
    }

    /// Numbers rows, which may be divided. What cannot be told apart is left.
    fn number_with(&mut self, shared: &OnceLock<Divided>, given: &Given, op: &OpContext) -> Result<()> {
        if let Some(divided) = shared.get() {
            divided.divide(given, &mut self.waiting);
            return divided.add(&mut self.waiting, &mut self.left, false, op);
        }
        let refused = self.number(given, op)?;
        self.left.extend(refused);
        if self.groups.len() >= MANY && !self.has_tried {
            self.has_tried = true;
            // The other thread may have been first.
            Divided::of(&self.groups).map(|divided| shared.set(divided).ok());
        }
        Ok(())
    }

    /// Nothing more comes: what it has goes to what is divided, if that is so.
    fn end(&mut self, shared: &OnceLock<Divided>, op: &OpContext) -> Result<()> {
        let Some(divided) = shared.get() else { return Ok(()) };
        divided.add(&mut self.waiting, &mut self.left, true, op)?;
        self.give(divided)
    }

    /// Gives its groups to those that are divided.
    fn give(&mut self, divided: &Divided) -> Result<()> {
        let Some(groups) = self.groups.take().filter(|groups| groups.len() > 0) else {
            return Ok(());
        };
        let apart = divided.merge(&groups)?;
        if !apart.is_empty() {
            self.apart.push((groups, apart));
        }
        Ok(())
    }
}

impl Helper {
    /// One that begins with no groups; `None` without a thread.
    fn start(permit: Permit, groups: Numbered, op: &OpContext) -> Option<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            changed: Condvar::new(),
            divided: OnceLock::new(),
            bytes: AtomicUsize::new(0),
        });
        let (own, interrupt, op) = (shared.clone(), statement::interrupt(), op.with_vars(op.vars.clone()));
        let help = move || -> Result<(Worker, u64)> {
            let _permit = permit;
            let _ends = Ends(own.clone());
            come_last();
            let mut worker = Worker::new(groups);
            while let Some(given) = own.next() {
                let _values = statement::Scope::begin();
                worker.number_with(&own.divided, &given, &op)?;
                own.bytes.store(worker.bytes(), Relaxed);
            }
            // What it has left is the statement's thread to add, which would have to wait for a thread that comes behind others.
            Ok((worker, statement::looks()))
        };
        let named = std::thread::Builder::new().name("nestor-helper".to_owned());
        let thread = named.spawn(move || statement::under(&interrupt, None, help)).ok()?;
        let thread = Some(thread);
        Some(Self { shared, thread })
    }

    /// Bytes of its groups, of those that are divided, and of rows that wait for it.
    fn bytes(&self) -> usize {
        let waiting: usize = self.shared.queue().waiting.iter().map(|(_, rows)| rows.bytes()).sum();
        self.shared.bytes.load(Relaxed) + self.shared.divided.get().map_or(0, Divided::bytes) + waiting
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.shared.queue().waiting.clear();
        self.shared.end();
    }
}

impl Numbering {
    /// No rows; `None` when the key or some field of a group is not of this kind.
    pub(super) fn of(group: &Arc<Group>) -> Option<Self> {
        Some(Self {
            own: Worker::new(Numbered::of(group)?),
            rows: 0,
            helper: None,
            helpers: 0,
        })
    }

    /// Whether some rows have been numbered.
    pub(super) fn has_begun(&self) -> bool {
        self.own.groups.len() > 0 || self.helper.is_some()
    }

    /// As [`Numbered::fits`].
    pub(super) fn fits(&mut self, segment: &Segment) -> bool {
        self.own.groups.fits(segment)
    }

    /// As [`Numbered::stands_beside`].
    ///
    /// Errors: those of expressions.
    pub(super) fn stands_beside(&self, document: DocRef<'_>, op: &OpContext) -> Result<bool> {
        self.own.groups.stands_beside(document, op)
    }

    /// Bytes that all of it takes, about.
    pub(super) fn bytes(&self) -> usize {
        self.own.bytes() + self.helper.as_ref().map_or(0, Helper::bytes)
    }

    /// Numbers rows that fit, here or by a helper; about so many may come after them. What of them could not be told apart.
    ///
    /// Errors: those of expressions, also of a helper, and those of the interrupt.
    pub(super) fn add(&mut self, given: Given, ahead: usize, op: &OpContext) -> Result<Option<Given>> {
        self.rows += given.1.len();
        if self.helpers == 0 && (self.rows >= ALONE && ahead >= ALONE || self.rows >= 2 * ALONE) {
            let permit = Permit::take().zip(self.own.groups.empty());
            self.helper = permit.and_then(|(permit, empty)| Helper::start(permit, empty, op));
            self.helpers += u64::from(self.helper.is_some());
        }
        let Some(helper) = &self.helper else {
            return self.own.number(&given, op);
        };
        let has_time = helper.shared.takes(&given);
        if has_time {
            return Ok(None);
        }
        if helper.shared.queue().has_ended {
            // By an error, which this gives.
            self.join(op)?;
            return self.own.number(&given, op);
        }
        self.own.number_with(&helper.shared.divided, &given, op)?;
        Ok(None)
    }

    /// Waits for the helper, which takes no more rows; its groups become ours, or are among those that are divided, which are given back.
    fn join(&mut self, op: &OpContext) -> Result<Vec<Numbered>> {
        let Some(mut helper) = self.helper.take() else {
            return Ok(Vec::new());
        };
        let (shared, own) = (helper.shared.clone(), &mut self.own);
        loop {
            let next = shared.queue().waiting.pop_front();
            let Some(given) = next else { break };
            own.number_with(&shared.divided, &given, op)?;
        }
        shared.end();
        own.end(&shared.divided, op)?;
        let Some(thread) = helper.thread.take() else {
            return Ok(Vec::new());
        };
        let (mut helped, looks) = match thread.join() {
            Ok(helped) => helped?,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        statement::add_looks(looks);
        let parts = match shared.divided.get() {
            Some(divided) => {
                helped.end(&shared.divided, op)?;
                divided.take()
            }
            None => {
                let places: Vec<u32> = (0..helped.groups.len() as u32).collect();
                if !own.groups.merge(&helped.groups, &helped.groups.keys(), &places)? {
                    own.apart.push((helped.groups, places));
                }
                Vec::new()
            }
        };
        own.left.append(&mut helped.left);
        own.apart.append(&mut helped.apart);
        Ok(parts)
    }

    /// All groups, none of which are here any more; rows to come go on being numbered.
    ///
    /// Errors: those of expressions and of the interrupt.
    pub(super) fn end(&mut self, op: &OpContext) -> Result<Ended> {
        let mut parts = self.join(op)?;
        let mut apart = std::mem::take(&mut self.own.apart);
        let others = parts.iter_mut().chain(apart.iter_mut().map(|(groups, _)| groups));
        others.for_each(|groups| groups.learn(&self.own.groups));
        parts.extend(self.own.groups.take());
        parts.retain(|part| part.len() > 0);
        Ok(Ended {
            parts,
            apart,
            left: std::mem::take(&mut self.own.left),
        })
    }
}
