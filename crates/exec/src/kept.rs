//! Memory of operators: all that count what they keep do it by a [`Kept`].
//!
//! An operator says how much it keeps whenever that changes, which costs an addition. Only after every [`STEP`] bytes does the account of
//! its statement learn of it (see [`nestor_model::memory`]), and the statement looks whether it is the one that has to
//! end because all together hold too much. What is kept is given back when the operator is dropped, whatever ended it.

use nestor_model::memory::{Account, Held};
use nestor_model::{Result, bail, statement};
use std::sync::Arc;

/// Bytes by which the account may be behind.
const STEP: usize = 16 << 10;

/// Bytes that an operator keeps in memory.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    bytes: usize,
    /// The bytes that the account knows of.
    shown: usize,
    /// Made when there is something to know.
    held: Option<Box<Held>>,
}

impl Kept {
    /// Nothing yet, for another thread that works for the statement with this account.
    pub(crate) fn by(account: Option<Arc<Account>>) -> Self {
        Self {
            held: Some(Box::new(Held::by(account))),
            ..Self::default()
        }
    }

    /// Bytes kept.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// So many more are kept.
    ///
    /// Errors: 146 (ExceededMemoryLimit) beyond what is wanted of the statement ([`statement::manners`]); those of the statement's interrupt, 146 (ExceededMemoryLimit) among them when it is ended for its memory.
    #[inline]
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<()> {
        self.set(self.bytes.saturating_add(bytes))
    }

    /// So many are kept now. Errors as those of [`Kept::grow`].
    #[inline]
    pub(crate) fn set(&mut self, bytes: usize) -> Result<()> {
        if !self.set_above(bytes)? {
            return Ok(());
        }
        let most = statement::manners().operator_bytes_max;
        if bytes > most {
            bail!(
                ExceededMemoryLimit,
                "an operator of the plan holds more than {most} bytes"
            );
        }
        Ok(())
    }

    /// So many more are kept, by an operator that spills what it can when it holds more than is wanted of it.
    ///
    /// Errors: those of [`Kept::grow`] but the first.
    #[inline]
    pub(crate) fn grow_spilling(&mut self, bytes: usize) -> Result<()> {
        self.set_spilling(self.bytes.saturating_add(bytes))
    }

    /// So many more are kept, by an operator that puts elsewhere what it holds above `room`, or has no such place where there is none.
    ///
    /// Errors: those of [`Kept::grow_spilling`] with room, those of [`Kept::grow`] without.
    #[inline]
    pub(crate) fn grow_within(&mut self, room: Option<usize>, bytes: usize) -> Result<()> {
        match room {
            Some(_) => self.grow_spilling(bytes),
            None => self.grow(bytes),
        }
    }

    /// So many are kept now, by an operator that spills. Errors as those of [`Kept::grow_spilling`].
    #[inline]
    pub(crate) fn set_spilling(&mut self, bytes: usize) -> Result<()> {
        self.set_above(bytes).map(drop)
    }

    /// So many are kept now, which may be more than is wanted; whether the account has learnt of more.
    #[inline]
    fn set_above(&mut self, bytes: usize) -> Result<bool> {
        self.bytes = bytes;
        if bytes.abs_diff(self.shown) < STEP {
            return Ok(false);
        }
        let grew = bytes > self.shown;
        self.show();
        if grew {
            statement::look()?;
        }
        Ok(grew)
    }

    /// So many less are kept.
    #[inline]
    pub(crate) fn shrink(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.bytes, "only what was kept is given back");
        self.bytes = self.bytes.saturating_sub(bytes);
        if self.shown.saturating_sub(self.bytes) >= STEP {
            self.show();
        }
    }

    /// One of `items` that are kept is given away: each counts the same.
    #[inline]
    pub(crate) fn shrink_by_one_of(&mut self, items: usize) {
        self.shrink(self.bytes / items.max(1));
    }

    /// Nothing is kept any more.
    pub(crate) fn clear(&mut self) {
        self.shrink(self.bytes);
    }

    /// The operator is saved: the statement may be over, and what is kept waits for another one.
    pub(crate) fn rest(&mut self) {
        if self.held.is_some() {
            self.show();
        }
        if let Some(held) = &mut self.held {
            held.rest();
        }
    }

    #[cold]
    fn show(&mut self) {
        self.shown = self.bytes;
        let held = self.held.get_or_insert_with(|| Box::new(Held::by_this_statement()));
        held.wake();
        held.set(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::interrupt::{Interrupt, KillSwitch};
    use nestor_model::memory::Pool;

    #[test]
    fn the_account_follows_by_steps() {
        let pool = Arc::new(Pool::default());
        let account = pool.open(Arc::default());
        let mut kept = Kept::default();
        statement::under(&Interrupt::default(), Some(&account), || {
            kept.grow(STEP - 1).expect("room");
            assert_eq!(account.held(), 0);
            kept.grow(1).expect("room");
            assert_eq!(account.held(), STEP);
            kept.grow(STEP / 2).expect("room");
            assert_eq!((account.held(), kept.bytes()), (STEP, STEP * 3 / 2));
            kept.shrink(STEP);
            assert_eq!(account.held(), STEP);
            kept.grow(3 * STEP).expect("room");
            for left in (1..=7).rev() {
                kept.shrink_by_one_of(left);
            }
            assert_eq!((kept.bytes(), account.held() < STEP), (0, true));
            kept.grow(2 * STEP).expect("room");
        });
        kept.rest();
        assert_eq!((account.held(), pool.at_rest()), (0, 2 * STEP));
        let other = pool.open(Arc::default());
        statement::under(&Interrupt::default(), Some(&other), || kept.grow(STEP)).expect("room");
        assert_eq!((other.held(), pool.at_rest(), pool.held()), (3 * STEP, 0, 3 * STEP));
        drop(kept);
        assert_eq!(pool.held(), 0);
    }

    #[test]
    fn whoever_grows_beyond_the_pool_learns_of_it_at_once() {
        let pool = Arc::new(Pool::default());
        pool.set_limit(10 * STEP);
        let kill = Arc::<KillSwitch>::default();
        let account = pool.open(kill.clone());
        statement::under(&Interrupt::new(kill, None), Some(&account), || {
            let mut kept = Kept::default();
            let mut grown = 0;
            let error = loop {
                grown += 1000;
                if let Err(error) = kept.grow(1000) {
                    break error;
                }
            };
            assert_eq!(error.code(), nestor_model::ErrorCode::ExceededMemoryLimit);
            assert!(grown < 12 * STEP, "{grown}");
        });
        assert_eq!(pool.held(), 0);
    }
}
