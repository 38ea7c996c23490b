//! Groups of an input that several threads read: each groups its share, and in the end all parts become one.
//!
//! A helper whose share has groups of a row or two each, which cost as much again when parts become one, gives what it read to the statement's thread as long as that has
//! time for it.

use super::ALONE;
use super::part::{Part, Prepared, Shape};
use crate::kept::Kept;
use crate::relation::twin::{Share, together};
use crate::relation::{BoxRows, Run};
use nestor_model::statement::Scope;
use nestor_model::{Result, statement};
use nestor_planner::relation::Scalar;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

/// Chunks that wait for the statement's thread.
const WAITING_MAX: usize = 4;

/// What the threads know of one another.
struct Shares<'s, S> {
    shape: &'s Shape<S>,
    /// Bytes that the groups of all threads may take.
    room: Option<usize>,
    /// Bytes that they take.
    bytes: AtomicUsize,
}

impl<S: Scalar> Shares<'_, S> {
    /// A part has grown; when all together take too much, no helper begins anything new.
    fn grow(&self, kept: &mut Kept, bytes: usize, share: &Share) -> Result<()> {
        kept.grow_within(self.room, bytes)?;
        let all = self.bytes.fetch_add(bytes, Relaxed) + bytes;
        if self.room.is_some_and(|room| all > room) {
            share.end();
        }
        Ok(())
    }

    /// Groups a helper's share.
    fn help(
        &self,
        input: &mut BoxRows<S>,
        run: &Run<'_, '_, S>,
        share: &Share,
        (give, mut kept): (SyncSender<Prepared>, Kept),
    ) -> Result<(Part<S>, Kept)> {
        let mut part = Part::new(self.shape);
        let mut rows = 0;
        while let Some(chunk) = input.next_chunk(run)? {
            let _values = Scope::begin();
            let mut prepared = self.shape.prepared(&chunk, &run.env)?;
            if rows >= ALONE && part.groups.len() * 2 > rows {
                prepared = match give.try_send(prepared) {
                    Ok(()) => continue,
                    Err(TrySendError::Full(own) | TrySendError::Disconnected(own)) => own,
                };
            }
            rows += prepared.rows();
            let grown = part.add(self.shape, &prepared)?;
            self.grow(&mut kept, grown, share)?;
        }
        Ok((part, kept))
    }
}

/// Groups what is left of an input, which is all of it unless the groups take more than `room`; `false`, and nothing was read, where there is no helper or its share
/// would be too small.
///
/// Errors: those of the input, of the functions and of the interrupt.
pub(super) fn read<S: Scalar>(
    shape: &Shape<S>,
    own: &mut Part<S>,
    (input, run): (&mut BoxRows<S>, &Run<'_, '_, S>),
    (kept, room): (&mut Kept, Option<usize>),
) -> Result<bool> {
    let shares = Shares {
        shape,
        room,
        bytes: kept.bytes().into(),
    };
    let (give, take) = sync_channel(WAITING_MAX);
    let account = statement::account();
    let begin = |_: &Share| (give.clone(), Kept::by(account.clone()));
    let help =
        |input: &mut BoxRows<S>, run: &Run<'_, '_, S>, share: &Share, given| shares.help(input, run, share, given);
    let mut add = |own: &mut Part<S>, prepared: &Prepared, share: &Share| -> Result<()> {
        let grown = own.add(shape, prepared)?;
        shares.grow(kept, grown, share)
    };
    let read = |input: &mut BoxRows<S>, share: &Share| {
        while !share.is_over() {
            for given in take.try_iter() {
                add(own, &given, share)?;
            }
            let Some(chunk) = input.next_chunk(run)? else { break };
            let _values = Scope::begin();
            add(own, &shape.prepared(&chunk, &run.env)?, share)?;
        }
        Ok(())
    };
    let Some(parts) = together(input, run, begin, help, read)? else {
        return Ok(false);
    };
    let over = Share::default();
    for given in take.try_iter() {
        add(own, &given, &over)?;
    }
    for (part, of_part) in parts {
        let grown = own.merge(shape, part)?;
        shares.grow(kept, grown, &over)?;
        drop(of_part);
    }
    Ok(true)
}
