//! What limits the statement that runs on this thread: when to stop, and how much memory values may take.
//!
//! Whoever runs a statement says so once, with [`under`]. From there on everything that the thread does for the statement counts
//! its work ([`work`], [`note`]) and the memory of the values that it builds ([`charge`], [`Mark`]). After every
//! [`UNITS`] units of work the thread looks whether it is time to stop.
//!
//! The limits belong to the thread and are not handed from function to function, because the code that has to count lies
//! deepest: comparing two large arrays, hashing one, folding a constant at parse, writing a document as bytes. What would
//! have to be passed everywhere would be forgotten somewhere. A thread runs one statement at a time from start to end; a statement
//! that uses other threads calls [`under`] there too.
//!
//! One unit of work takes well below a microsecond: an operator evaluated, an array element visited, some
//! [`BYTES_PER_UNIT`] bytes copied. So less than 10 ms pass between two looks.
//!
//! Memory is counted by the size that a value has when it is written out, and as a stack: what an operator built takes the
//! place of what it was built from ([`Mark::settle`]), and a loop gives back what each round built.

use crate::Result;
use crate::interrupt::{Interrupt, client_has_gone};
use crate::memory::{Account, exceeded};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// Units of work between two looks.
pub const UNITS: usize = 4096;

/// Bytes that cost as much as one unit of work to copy or compare.
pub const BYTES_PER_UNIT: usize = 128;

/// Units of work of a row that is read and passed on by an operator of a plan.
pub const ROW: usize = 32;

/// Bytes that the values may take which a statement is building (not what operators of plans hold, which have limits
/// of their own).
pub const VALUE_BYTES_MAX: usize = 256 * 1024 * 1024;

struct State {
    /// Units of work until the next look.
    left: Cell<usize>,
    /// Bytes of the values being built.
    held: Cell<usize>,
    /// Looks that this thread has taken.
    looks: Cell<u64>,
}

thread_local! {
    static STATE: State = const {
        State {
            left: Cell::new(UNITS),
            held: Cell::new(0),
            looks: Cell::new(0),
        }
    };
    static RUNNING: RefCell<Option<Running>> = const { RefCell::new(None) };
    static AT_END: Cell<Option<fn()>> = const { Cell::new(None) };
    static MANNERS: Cell<Manners> = const { Cell::new(Manners::FREE) };
}

/// What whoever asked for a statement wants of how it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manners {
    /// Bytes that an operator of a plan may hold.
    pub operator_bytes_max: usize,
    /// It may have a second thread.
    pub has_helpers: bool,
}

impl Manners {
    /// Nothing is wanted.
    pub const FREE: Self = Self {
        operator_bytes_max: usize::MAX,
        has_helpers: true,
    };
}

/// What is wanted of the statement that runs on this thread.
pub fn manners() -> Manners {
    MANNERS.get()
}

/// Runs `run`, of which this is wanted.
pub fn mannered<R>(manners: Manners, run: impl FnOnce() -> R) -> R {
    /// Puts back what was wanted before, also when the statement panics.
    struct Restore(Manners);
    impl Drop for Restore {
        fn drop(&mut self) {
            MANNERS.set(self.0);
        }
    }
    let _restore = Restore(MANNERS.replace(manners));
    run()
}

#[derive(Clone)]
struct Running {
    interrupt: Interrupt,
    account: Option<Arc<Account>>,
}

/// Runs `run` as a statement, or a part of one, that stops when `interrupt` says so, its memory counted in `account`.
pub fn under<R>(interrupt: &Interrupt, account: Option<&Arc<Account>>, run: impl FnOnce() -> R) -> R {
    /// Puts back what was there before, also when the statement panics.
    struct Restore(Option<Running>, usize);
    impl Drop for Restore {
        fn drop(&mut self) {
            STATE.with(|state| state.held.set(self.1));
            publish();
            let is_over = self.0.is_none();
            RUNNING.set(self.0.take());
            if is_over && let Some(end) = AT_END.take() {
                end();
            }
        }
    }
    let running = Running {
        interrupt: interrupt.clone(),
        account: account.cloned(),
    };
    let held = STATE.with(|state| state.held.replace(0));
    let _restore = Restore(RUNNING.replace(Some(running)), held);
    run()
}

/// The statement that runs on this thread stops when `interrupt` says so, from now on: for limits that it learns only while
/// it runs.
pub fn stop_by(interrupt: &Interrupt) {
    RUNNING.with_borrow_mut(|running| {
        if let Some(running) = running {
            running.interrupt = interrupt.clone();
        }
    });
}

/// Calls `end` when the statement that runs on this thread has ended, for what a thread keeps as long as a statement runs. There is
/// one who keeps such things.
pub fn at_end(end: fn()) {
    if RUNNING.with_borrow(Option::is_some) {
        AT_END.set(Some(end));
    }
}

/// What stops the statement that runs on this thread; nothing without one.
pub fn interrupt() -> Interrupt {
    RUNNING.with_borrow(|running| {
        running
            .as_ref()
            .map_or_else(Interrupt::default, |running| running.interrupt.clone())
    })
}

/// The account of the statement that runs on this thread.
pub fn account() -> Option<Arc<Account>> {
    RUNNING.with_borrow(|running| running.as_ref()?.account.clone())
}

/// Counts work. An error when it is time to stop.
#[inline]
pub fn work(units: usize) -> Result<()> {
    let looks = STATE.with(|state| take(state, units));
    if looks { look() } else { Ok(()) }
}

/// Counts work where no error can be returned. When it is time to stop, the next [`work`] says so.
#[inline]
pub fn note(units: usize) {
    if STATE.with(|state| take(state, units)) {
        // An error stays: the next look finds it again.
        let _ = look();
    }
}

/// Takes units; true when none are left.
#[inline]
fn take(state: &State, units: usize) -> bool {
    let left = state.left.get();
    if units < left {
        state.left.set(left - units);
    }
    units >= left
}

/// Looks whether it is time to stop, whatever work was counted.
#[cold]
pub fn look() -> Result<()> {
    STATE.with(|state| {
        state.left.set(UNITS);
        state.looks.set(state.looks.get() + 1);
    });
    effort::looked();
    publish();
    // Not under the borrow: what is called when patience ends may run anything.
    let running = RUNNING.with_borrow(|running| running.as_ref().map(|running| running.interrupt.clone()));
    let result = match running {
        Some(interrupt) => interrupt.check(),
        None => {
            client_has_gone(&|| false);
            Ok(())
        }
    };
    if result.is_err() {
        STATE.with(|state| state.left.set(0));
    }
    result
}

/// How often this thread has looked whether it is time to stop, each time after some [`UNITS`] units of work: how much work it has
/// done, whatever it waited for.
pub fn looks() -> u64 {
    STATE.with(|state| state.looks.get())
}

/// Counts looks that another thread has taken for the statement of this one.
pub fn add_looks(looks: u64) {
    STATE.with(|state| state.looks.set(state.looks.get() + looks));
}

/// Lets others see how much memory the values take.
fn publish() {
    RUNNING.with_borrow(|running| {
        if let Some(account) = running.as_ref().and_then(|running| running.account.as_ref()) {
            account.set_values(STATE.with(|state| state.held.get()));
        }
    });
}

/// Counts memory for a value that grows.
///
/// Errors: 146 (ExceededMemoryLimit).
#[inline]
pub fn charge(bytes: usize) -> Result<()> {
    STATE.with(|state| hold(state, state.held.get().saturating_add(bytes)))
}

#[inline]
fn hold(state: &State, bytes: usize) -> Result<()> {
    state.held.set(bytes);
    if bytes > VALUE_BYTES_MAX {
        return Err(exceeded(bytes, VALUE_BYTES_MAX));
    }
    Ok(())
}

/// How much memory was counted at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Mark(usize);

/// The memory counted up to now.
#[inline]
pub fn mark() -> Mark {
    Mark(STATE.with(|state| state.held.get()))
}

/// Counts one unit of work; the memory counted up to now.
#[inline]
pub fn step() -> Result<Mark> {
    let (looks, held) = STATE.with(|state| (take(state, 1), state.held.get()));
    if looks {
        look()?;
    }
    Ok(Mark(held))
}

impl Mark {
    /// Of what was counted since then only `bytes` are still there.
    ///
    /// Errors: 146 (ExceededMemoryLimit).
    #[inline]
    pub fn settle(self, bytes: usize) -> Result<()> {
        STATE.with(|state| hold(state, self.0.saturating_add(bytes)))
    }

    /// Nothing is there any more of what was counted since then.
    #[inline]
    pub fn release(self) {
        STATE.with(|state| state.held.set(self.0));
    }
}

/// Gives back what was counted since it was made.
#[derive(Debug)]
pub struct Scope(Mark);

impl Scope {
    /// Begins here.
    #[inline]
    pub fn begin() -> Self {
        Self(mark())
    }
}

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        self.0.release();
    }
}

/// What was really done between two looks, counted in debug builds where values are visited and expressions evaluated, so
/// that tests find loops that forget to count their work.
pub mod effort {
    #[cfg(debug_assertions)]
    thread_local! {
        static EFFORT: std::cell::Cell<(u64, u64)> = const { std::cell::Cell::new((0, 0)) };
    }

    /// Something was visited.
    #[inline]
    pub fn made() {
        #[cfg(debug_assertions)]
        EFFORT.with(|effort| {
            let (now, most) = effort.get();
            effort.set((now + 1, most));
        });
    }

    #[inline]
    pub(super) fn looked() {
        #[cfg(debug_assertions)]
        EFFORT.with(|effort| {
            let (now, most) = effort.get();
            effort.set((0, most.max(now)));
        });
    }

    /// The most that was visited between two looks since this was asked last; 0 in release builds.
    pub fn take_most() -> u64 {
        #[cfg(debug_assertions)]
        {
            looked();
            EFFORT.with(|effort| effort.replace((0, 0)).1)
        }
        #[cfg(not(debug_assertions))]
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;
    use crate::interrupt::KillSwitch;
    use crate::memory::Pool;

    #[test]
    fn work_looks_at_the_interrupt_after_so_many_units() {
        let kill = Arc::new(KillSwitch::default());
        let interrupt = Interrupt::new(kill.clone(), None);
        under(&interrupt, None, || {
            look().expect("nobody killed it");
            kill.kill(ErrorCode::Interrupted);
            let units = (1..).find(|_| work(1).is_err());
            assert_eq!(units, Some(UNITS));
            assert!(work(1).is_err(), "it stays killed");
            kill.reset();
            note(3 * UNITS);
            kill.kill(ErrorCode::Interrupted);
            note(UNITS);
            assert!(work(0).is_err(), "what a note found is not forgotten");
            kill.reset();
            assert!(look().is_ok());
            stop_by(&Interrupt::new(kill.clone(), Some(std::time::Instant::now())));
            assert_eq!(look().expect_err("late").code(), ErrorCode::MaxTimeMSExpired);
        });
        assert!(work(UNITS).is_ok(), "afterwards nothing is limited");
    }

    #[test]
    fn values_are_counted_as_a_stack() {
        let outer = mark();
        charge(1000).expect("little");
        {
            let _scope = Scope::begin();
            charge(500).expect("little");
            assert_eq!(mark().0, outer.0 + 1500);
        }
        let inner = mark();
        charge(300).expect("little");
        inner.settle(100).expect("little");
        assert_eq!(mark().0, outer.0 + 1100);
        let error = charge(VALUE_BYTES_MAX).expect_err("too much");
        assert_eq!(error.code(), ErrorCode::ExceededMemoryLimit);
        outer.release();
        assert_eq!(mark().0, outer.0);
    }

    #[test]
    fn looks_publish_memory() {
        let pool = Arc::new(Pool::default());
        let account = pool.open(Arc::default());
        under(&Interrupt::default(), Some(&account), || {
            charge(5000).expect("little");
            look().expect("nobody interrupts it");
            assert_eq!(account.held(), 5000);
        });
        assert_eq!(account.held(), 0, "its values are gone with the statement");
    }
}
