//! One input read by several threads.
//!
//! What is left of a scan by columns is a list of pieces, of which each thread takes the next one. An operator that can run so gives a [`Twin`]: on another
//! thread that becomes an operator of its own over a share of the rows, so that filters, projections and expressions are computed there as they are on
//! the statement's thread. Each row comes from one of them, and together they give all, in no order.
//!
//! Whoever reads all of an input in any order has that done [`together`]. Expressions see on the thread of a helper what they see on the statement's
//! ([`Abroad`]); those that ask for more of the session, or do something, stay there ([`Scalar::is_portable`]).

use super::{BoxRows, Opened, Run, Shared, Sources};
use crate::Batch;
use crate::helper::Permit;
use crate::summary::Totals;
use nestor_columns::nice::come_last;
use nestor_model::interrupt::Interrupt;
use nestor_model::statement::{self, Manners, mannered, manners};
use nestor_model::vector::Vector;
use nestor_model::{Error, ErrorCode, Result, Value};
use nestor_planner::relation::explain::Ran;
use nestor_planner::relation::{Env, Frame, Scalar, Scan};
use nestor_query::env::OpContext;
use nestor_storage::View;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::thread;

/// Makes, on another thread, an operator over a share of the rows of one.
pub type Twin<S> = Box<dyn FnOnce() -> BoxRows<S> + Send>;

/// Runs what it is given so that expressions see on this thread what they see on the one where it was made.
pub type Abroad = Arc<dyn Fn(&mut dyn FnMut()) + Send + Sync>;

/// What threads that read one input know of one that helps, and of whether they go on.
#[derive(Clone, Debug, Default)]
pub struct Share {
    /// Of all threads.
    ending: Arc<AtomicU8>,
    position: Arc<AtomicUsize>,
}

const OVER: u8 = 1;
const BROKEN: u8 = 2;

impl Share {
    /// That of another helper.
    fn another(&self) -> Self {
        Self {
            ending: self.ending.clone(),
            position: Arc::default(),
        }
    }

    /// Whether the helper is to begin the piece at a place. Its own thread asks, before anybody else can begin another one.
    pub fn begins(&self, position: usize) -> bool {
        let begins = !self.is_over();
        if begins {
            self.position.store(position, Ordering::Release);
        }
        begins
    }

    /// Of what the helper has not given yet nothing is of an earlier piece than the one at this place.
    pub(super) fn position(&self) -> usize {
        self.position.load(Ordering::Acquire)
    }

    /// Helpers begin no other piece.
    pub(super) fn end(&self) {
        self.ending.fetch_max(OVER, Ordering::Relaxed);
    }

    /// Nobody reads on, because of an error.
    fn break_off(&self) {
        self.ending.fetch_max(BROKEN, Ordering::Relaxed);
    }

    /// Whether helpers are to begin no other piece.
    pub(super) fn is_over(&self) -> bool {
        self.ending.load(Ordering::Relaxed) >= OVER
    }

    /// Whether nobody reads on.
    pub(super) fn is_broken(&self) -> bool {
        self.ending.load(Ordering::Relaxed) == BROKEN
    }
}

/// Breaks off when it is dropped before all was done, by an error or a panic.
struct Unless<'s>(&'s Share, bool);

impl Drop for Unless<'_> {
    fn drop(&mut self) {
        if !self.1 {
            self.0.break_off();
        }
    }
}

/// What of a statement's surroundings goes to the threads of helpers.
struct Surroundings<'r> {
    view: &'r dyn View,
    op: &'r OpContext,
    params: &'r [Value],
    outer: Option<&'r Frame<'r>>,
    interrupt: Interrupt,
    manners: Manners,
    abroad: Abroad,
    /// Whether nodes count, and with times.
    counting: Option<bool>,
}

/// What a helper did besides its work.
struct Did {
    looks: u64,
    read: Totals,
    nodes: Vec<Ran>,
}

/// A thread that reads what it was given opens nothing.
struct Nothing;

impl<S> Sources<S> for Nothing {
    fn open(&self, scan: &Scan<S>, _: usize, _: &Batch<'_>, _: &Env<'_>) -> Result<Opened> {
        Err(Error::new(
            ErrorCode::InternalError,
            format!("a helper has no table {}", scan.name),
        ))
    }

    fn look_up(&self, _: &Scan<S>, _: &[usize], _: &[Arc<Vector>], _: &Batch<'_>) -> Result<Option<Opened>> {
        Ok(None)
    }

    fn count(&self, _: &Scan<S>, _: &Batch<'_>, _: &Env<'_>) -> Result<Option<u64>> {
        Ok(None)
    }

    fn abroad(&self) -> Abroad {
        Arc::new(|run| run())
    }
}

impl<'r> Surroundings<'r> {
    fn of<S>(run: &Run<'r, '_, S>) -> Self {
        Self {
            view: run.batch.view,
            op: run.env.op,
            params: run.env.params,
            outer: run.env.outer,
            interrupt: statement::interrupt(),
            manners: manners(),
            abroad: run.sources.abroad(),
            counting: run.shared.counts.nodes.as_ref().map(|nodes| nodes.timed),
        }
    }

    /// Has a twin do some work on this thread, which is a helper's.
    fn help<S, T>(
        &self,
        twin: Twin<S>,
        work: impl FnOnce(&mut BoxRows<S>, &Run<'_, '_, S>) -> Result<T>,
    ) -> Result<(T, Did)> {
        come_last();
        let shared = self.counting.map_or_else(Shared::default, Shared::counting);
        let batch = Batch::new(self.view, self.op, &self.interrupt);
        let run = Run {
            batch: &batch,
            env: Env {
                op: self.op,
                params: self.params,
                outer: self.outer,
                effects: None,
                compared: None,
            },
            sources: &Nothing,
            shared: &shared,
        };
        let (mut once, mut done) = (Some((twin, work)), None);
        (self.abroad)(&mut || {
            if let Some((twin, work)) = once.take() {
                // What it read is told when it is dropped.
                done = Some(work(&mut twin(), &run));
            }
        });
        let none = || Error::new(ErrorCode::InternalError, "a helper did nothing");
        let done = done.ok_or_else(none)??;
        let did = Did {
            looks: statement::looks(),
            read: shared.counts.read.take(),
            nodes: shared
                .counts
                .nodes
                .as_ref()
                .map_or_else(Vec::new, |nodes| nodes.ran.take()),
        };
        Ok((done, did))
    }
}

/// Has an input read by this thread, which does `own` with it, and by helpers, each of which does `help` with its share and what `begin` gave for it. What the helpers
/// give; `None`, and nothing was done, where there is none to be had or the input is not to be shared.
///
/// What `own` reads ends when nothing is left for it; helpers may still be at work then.
///
/// Errors: those of `own`, else the first of `help`.
pub(super) fn together<S: Scalar, G: Send, T: Send>(
    input: &mut BoxRows<S>,
    run: &Run<'_, '_, S>,
    mut begin: impl FnMut(&Share) -> G,
    help: impl Fn(&mut BoxRows<S>, &Run<'_, '_, S>, &Share, G) -> Result<T> + Sync,
    own: impl FnOnce(&mut BoxRows<S>, &Share) -> Result<()>,
) -> Result<Option<Vec<T>>> {
    let all = Share::default();
    let mut twins = Vec::new();
    // What an input does before it can be shared may have helpers of its own, so that one is taken afterwards.
    while Permit::may_be() {
        let share = all.another();
        let Some(twin) = input.twin(run, &share)? else { break };
        let Some(permit) = Permit::take() else { break };
        let given = begin(&share);
        twins.push((permit, share, twin, given));
    }
    if twins.is_empty() {
        return Ok(None);
    }
    let surroundings = Surroundings::of(run);
    let help = &help;
    thread::scope(|scope| {
        let mut whole = Unless(&all, false);
        let mut threads = Vec::with_capacity(twins.len());
        for (permit, share, twin, given) in twins {
            let surroundings = &surroundings;
            let work = move || {
                let _permit = permit;
                let mut whole = Unless(&share, false);
                let done = statement::under(&surroundings.interrupt, None, || {
                    mannered(surroundings.manners, || {
                        surroundings.help(twin, |input, run| help(input, run, &share, given))
                    })
                })?;
                whole.1 = true;
                Ok::<_, Error>(done)
            };
            let named = thread::Builder::new().name("nestor-helper".to_owned());
            // Without a thread its share is left to the others.
            threads.extend(named.spawn_scoped(scope, work));
        }
        if let Some(nodes) = &run.shared.counts.nodes {
            nodes.note(nodes.current.get(), |ran| ran.helpers += threads.len() as u64);
        }
        own(input, &all)?;
        let mut gave = Vec::with_capacity(threads.len());
        for thread in threads {
            let (done, did) = thread.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            statement::add_looks(did.looks);
            run.shared.counts.read.borrow_mut().add(did.read);
            if let Some(nodes) = &run.shared.counts.nodes {
                let each = did.nodes.iter().enumerate();
                each.for_each(|(number, helped)| nodes.note(number, |ran| ran.add_help(helped)));
            }
            gave.push(done);
        }
        whole.1 = true;
        Ok(Some(gave))
    })
}
