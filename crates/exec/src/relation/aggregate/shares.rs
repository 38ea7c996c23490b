//! Groups of an input that several threads read: each groups its share, and in the end all parts become one. With the first that has many groups, hardly any of them of several rows, rows are divided
//! by their keys ([`super::divided`]).
//!
//! A helper whose share has groups of two rows or fewer each where nothing is divided, which cost as much again when parts become one, gives what
//! it read to the statement's thread as long as that has time for it.

use super::ALONE;
use super::divided::{Divided, MANY, Parts, Waiting};
use super::part::{Part, Prepared, Shape};
use crate::kept::Kept;
use crate::relation::twin::{Share, together};
use crate::relation::{BoxRows, Run};
use nestor_model::statement::Scope;
use nestor_model::{Result, statement};
use nestor_planner::relation::Scalar;
use std::sync::OnceLock;
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
    divided: OnceLock<Divided<S>>,
}

/// What a thread has.
struct Own<S> {
    part: Part<S>,
    /// Rows of these groups.
    rows: usize,
    waiting: Waiting,
    /// Bytes that waited at most.
    waited: usize,
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

    /// Takes the rows of a chunk; returns by how many bytes all parts grew.
    fn add(&self, own: &mut Own<S>, chunk: &Prepared) -> Result<usize> {
        if let Some(divided) = self.divided.get() {
            divided.divide(chunk, &mut own.waiting);
            let waits = own.waiting.bytes();
            let more = waits.saturating_sub(own.waited);
            own.waited += more;
            return Ok(more + divided.add(self.shape, &mut own.waiting, false)?);
        }
        let grown = own.part.add(self.shape, chunk)?;
        own.rows += chunk.rows();
        if own.part.groups.len() >= MANY && self.may_divide(own) {
            self.divided.get_or_init(|| Divided::of(self.shape, &own.part));
        }
        Ok(grown)
    }

    /// Whether groups that go on to come like those of a thread are divided: to divide a row costs a third of what it does to find its group, and of several rows each
    /// fewer groups become one in the end.
    fn may_divide(&self, own: &Own<S>) -> bool {
        self.shape.divides() && own.part.groups.len() * 4 >= own.rows * 3
    }

    /// Nothing more comes: what a thread has goes to what is divided, if that is so; returns by how many bytes all parts grew.
    fn end(&self, own: &mut Own<S>) -> Result<usize> {
        let Some(divided) = self.divided.get() else {
            return Ok(0);
        };
        let grown = divided.add(self.shape, &mut own.waiting, true)?;
        let part = std::mem::replace(&mut own.part, Part::new(self.shape));
        Ok(grown + divided.merge(self.shape, part)?)
    }

    /// Groups a helper's share.
    fn help(
        &self,
        input: &mut BoxRows<S>,
        run: &Run<'_, '_, S>,
        share: &Share,
        (give, mut kept): (SyncSender<Prepared>, Kept),
    ) -> Result<(Own<S>, Kept)> {
        let mut own = Own::new(Part::new(self.shape));
        let mut waits = 0;
        while let Some(chunk) = input.next_chunk(run)? {
            let _values = Scope::begin();
            let mut prepared = self.shape.prepared(&chunk, &run.env)?;
            let are_many = own.rows >= ALONE && own.part.groups.len() * 2 > own.rows;
            if are_many && self.divided.get().is_none() && !self.may_divide(&own) {
                // So many wait at a time.
                let all = prepared.bytes() * (WAITING_MAX + 1);
                self.grow(&mut kept, all.saturating_sub(waits), share)?;
                waits = waits.max(all);
                prepared = match give.try_send(prepared) {
                    Ok(()) => continue,
                    Err(TrySendError::Full(own) | TrySendError::Disconnected(own)) => own,
                };
            }
            let grown = self.add(&mut own, &prepared)?;
            self.grow(&mut kept, grown, share)?;
        }
        // What it has left is the statement's thread to add, which would have to wait for a thread that comes behind others.
        Ok((own, kept))
    }
}

impl<S> Own<S> {
    fn new(part: Part<S>) -> Self {
        Self {
            part,
            rows: 0,
            waiting: Waiting::default(),
            waited: 0,
        }
    }
}

/// Groups what is left of an input, which is all of it unless the groups take more than `room`; `None`, and nothing was read, where there is no helper or its share
/// would be too small.
///
/// Errors: those of the input, of the functions and of the interrupt.
pub(super) fn read<S: Scalar>(
    shape: &Shape<S>,
    (input, run): (&mut BoxRows<S>, &Run<'_, '_, S>),
    (kept, room): (&mut Kept, Option<usize>),
) -> Result<Option<Parts<S>>> {
    let shares = Shares {
        shape,
        room,
        bytes: kept.bytes().into(),
        divided: OnceLock::new(),
    };
    let mut own = Own::new(Part::new(shape));
    let (give, take) = sync_channel(WAITING_MAX);
    let account = statement::account();
    let begin = |_: &Share| (give.clone(), Kept::by(account.clone()));
    let help =
        |input: &mut BoxRows<S>, run: &Run<'_, '_, S>, share: &Share, given| shares.help(input, run, share, given);
    let mut add = |own: &mut Own<S>, prepared: Option<&Prepared>, share: &Share| -> Result<()> {
        let grown = match prepared {
            Some(prepared) => shares.add(own, prepared)?,
            None => shares.end(own)?,
        };
        shares.grow(kept, grown, share)
    };
    let read = |input: &mut BoxRows<S>, share: &Share| {
        while !share.is_over() {
            for given in take.try_iter() {
                add(&mut own, Some(&given), share)?;
            }
            let Some(chunk) = input.next_chunk(run)? else { break };
            let _values = Scope::begin();
            add(&mut own, Some(&shape.prepared(&chunk, &run.env)?), share)?;
        }
        add(&mut own, None, share)
    };
    let Some(helped) = together(input, run, begin, help, read)? else {
        return Ok(None);
    };
    let over = Share::default();
    for given in take.try_iter() {
        add(&mut own, Some(&given), &over)?;
    }
    for (mut other, of_part) in helped {
        match shares.divided.get() {
            Some(_) => {
                let grown = shares.end(&mut other)?;
                shares.grow(kept, grown, &over)?;
                kept.grow_within(room, of_part.bytes())?;
            }
            None => {
                let grown = own.part.merge(shape, other.part)?;
                shares.grow(kept, grown, &over)?;
            }
        }
        drop(of_part);
    }
    Ok(Some(match shares.divided.into_inner() {
        None => Parts::one(own.part),
        Some(divided) => {
            divided.merge(shape, own.part)?;
            divided.finish()
        }
    }))
}
