//! A thread that looks which rows of segments match, beside the one that scans them.
//!
//! Both take segments from one list. The scan asks for one after the other, in order: what the helper has looked at is known, what it is at is waited for, and
//! meanwhile the scan looks at others that come later.

use crate::columns::filter::ColumnFilter;
use crate::helper::Permit;
use nestor_columns::nice::come_last;
use nestor_columns::{Piece, Segment};
use nestor_model::{Result, statement};
use nestor_query::env::OpContext;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Rows that are looked at before it is thought of a helper, and that have to be left for each thread. Tests have few rows.
pub(super) const ALONE: usize = if cfg!(debug_assertions) { 512 } else { 32 * 1024 };

/// Segments that are known before the scan asks for them, at most.
const AHEAD_MAX: usize = 64;

/// How long the scan waits before it looks whether it has to stop.
const WAIT: Duration = Duration::from_millis(5);

/// The rows that match, as [`ColumnFilter::pick`] has them.
type Found = Result<Option<Vec<u32>>>;

/// Such a thread. It ends when there is nothing left, or this is dropped.
pub(super) struct Picker(Arc<Shared>);

struct Shared {
    filter: Arc<ColumnFilter>,
    state: Mutex<State>,
    changed: Condvar,
}

/// What the scan has not asked for yet, in its order.
#[derive(Default)]
struct State {
    slots: VecDeque<Slot>,
    /// The number of the first.
    first: usize,
    /// The scan asks for nothing more.
    is_over: bool,
    /// Looks of the helper that nobody has counted.
    looks: u64,
}

/// Rows of a segment.
struct Slot {
    segment: Arc<Segment>,
    rows: Range<usize>,
    work: Work,
}

enum Work {
    /// Nobody has begun.
    Left,
    /// The helper is at it.
    Begun,
    Done(Found),
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the first rows that nobody has begun with; `false` where there are none.
    fn look_ahead(&self, op: &OpContext) -> bool {
        let mut state = self.state();
        let Some(at) = state.next() else { return false };
        let (number, slot) = (state.first + at, &mut state.slots[at]);
        slot.work = Work::Begun;
        let (segment, rows) = (slot.segment.clone(), slot.rows.clone());
        drop(state);
        let found = self.filter.pick(&segment, &rows, op);
        let mut state = self.state();
        // The scan may have passed it over.
        if let Some(at) = number.checked_sub(state.first)
            && let Some(slot) = state.slots.get_mut(at)
        {
            slot.work = Work::Done(found);
        }
        drop(state);
        self.changed.notify_all();
        true
    }
}

impl State {
    fn next(&self) -> Option<usize> {
        let mut slots = self.slots.iter().take(AHEAD_MAX);
        slots.position(|slot| matches!(slot.work, Work::Left))
    }

    fn pop(&mut self) -> Option<Slot> {
        self.first += 1;
        self.slots.pop_front()
    }
}

/// The helper has ended, if only by a panic: what it had begun is left to the scan.
struct Ends(Arc<Shared>);

impl Drop for Ends {
    fn drop(&mut self) {
        let mut state = self.0.state();
        let begun = state.slots.iter_mut().filter(|slot| matches!(slot.work, Work::Begun));
        begun.for_each(|slot| slot.work = Work::Left);
        drop(state);
        self.0.changed.notify_all();
    }
}

/// Looks at rows until none are left.
fn help(shared: &Arc<Shared>, op: &OpContext) {
    come_last();
    let _ends = Ends(shared.clone());
    let mut told = statement::looks();
    loop {
        while shared.look_ahead(op) {
            shared.state().looks += statement::looks() - told;
            told = statement::looks();
        }
        let state = shared.state();
        let has_more = state.slots.iter().any(|slot| matches!(slot.work, Work::Left));
        if state.is_over || !has_more {
            return;
        }
        // The scan is behind.
        drop(shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner));
    }
}

impl Picker {
    /// One for the rows of these pieces that may match; `None` where they are few, and without a thread.
    pub(super) fn start<'p>(
        filter: &Arc<ColumnFilter>,
        pieces: impl Iterator<Item = &'p Piece>,
        op: &OpContext,
    ) -> Option<Self> {
        if !Permit::may_be() {
            return None;
        }
        let slots: VecDeque<Slot> = pieces
            .filter_map(|piece| match piece {
                Piece::Columns(segment, rows, _) if filter.may_match(segment) => Some(Slot {
                    segment: segment.clone(),
                    rows: rows.clone(),
                    work: Work::Left,
                }),
                Piece::Columns(..) | Piece::Records(_) => None,
            })
            .collect();
        let rows: usize = slots.iter().map(|slot| slot.rows.len()).sum();
        if rows < 2 * ALONE {
            return None;
        }
        let permit = Permit::take()?;
        let shared = Arc::new(Shared {
            filter: filter.clone(),
            state: Mutex::new(State {
                slots,
                ..State::default()
            }),
            changed: Condvar::new(),
        });
        let (own, interrupt, op) = (shared.clone(), statement::interrupt(), op.with_vars(op.vars.clone()));
        let work = move || {
            let _permit = permit;
            statement::under(&interrupt, None, || help(&own, &op));
        };
        let named = std::thread::Builder::new().name("nestor-helper".to_owned());
        named.spawn(work).ok()?;
        Some(Self(shared))
    }

    /// The rows of a segment that match, counted from the first. The scan asks for all that may match, in order, but for those that it does without.
    ///
    /// Errors: those of the tests, and of the interrupt.
    pub(super) fn pick(&self, segment: &Arc<Segment>, rows: &Range<usize>, op: &OpContext) -> Found {
        let mut state = self.0.state();
        statement::add_looks(std::mem::take(&mut state.looks));
        let is_it = |slot: &Slot| Arc::ptr_eq(&slot.segment, segment) && slot.rows == *rows;
        while state.slots.front().is_some_and(|slot| !is_it(slot)) {
            state.pop();
        }
        loop {
            match state.slots.front().map(|slot| &slot.work) {
                Some(Work::Begun) => {
                    drop(state);
                    if !self.0.look_ahead(op) {
                        statement::look()?;
                        let state = self.0.state();
                        if matches!(state.slots.front(), Some(slot) if matches!(slot.work, Work::Begun)) {
                            let waited = self.0.changed.wait_timeout(state, WAIT);
                            drop(waited.unwrap_or_else(PoisonError::into_inner));
                        }
                    }
                    state = self.0.state();
                }
                _ => {
                    let known = state.pop();
                    drop(state);
                    self.0.changed.notify_all();
                    return match known.map(|slot| slot.work) {
                        Some(Work::Done(found)) => found,
                        _ => self.0.filter.pick(segment, rows, op),
                    };
                }
            }
        }
    }
}

impl Drop for Picker {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.is_over = true;
        state.slots.clear();
        drop(state);
        self.0.changed.notify_all();
    }
}
