//! The chunks of an input that several threads read, in the order that one thread would give them in.
//!
//! Each thread takes the next piece of what is left ([`super::twin`]), so what it gives is in order by itself, and the statement's thread puts together what all give. As long
//! as a helper is at an earlier piece than the statement's thread, that reads on and keeps what it read.

use super::twin::{Share, together};
use super::{BoxRows, Run};
use crate::kept::Kept;
use nestor_model::Result;
use nestor_model::statement::look;
use nestor_planner::relation::{Chunk, Scalar};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

/// Chunks of a helper that wait for the statement's thread, at most: about those of a few pieces.
const WAITING_MAX: usize = 16;

/// The same where a helper ends rather than wait: only what it has begun is given still.
const WAITING_LAST_MAX: usize = 256;

/// Bytes that the statement's thread has read ahead, at most.
const AHEAD_BYTES_MAX: usize = 8 << 20;

/// How long it waits before it looks where a helper is that gives nothing.
const WAIT: Duration = Duration::from_micros(200);

/// A chunk with the place of its piece.
type Placed = (usize, Chunk);

/// What a helper gives.
struct Lane {
    take: Receiver<Placed>,
    waiting: Arc<AtomicUsize>,
    share: Share,
    first: Option<Placed>,
    /// What comes after that is of this piece or a later one.
    from: usize,
}

impl Lane {
    /// Learns of what there is, without waiting.
    fn fill(&mut self) {
        if self.first.is_none() && self.from < usize::MAX {
            // What was given before the helper began this piece is there.
            self.from = self.share.position();
            match self.take.try_recv() {
                Ok(first) => self.took(first),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => self.from = usize::MAX,
            }
        }
    }

    /// Waits a little for what comes.
    fn wait(&mut self) {
        match self.take.recv_timeout(WAIT) {
            Ok(first) => self.took(first),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => self.from = usize::MAX,
        }
    }

    fn took(&mut self, first: Placed) {
        self.waiting.fetch_sub(1, Relaxed);
        self.first = Some(first);
    }

    /// Its first chunk that has not been given is of this piece, or of a later one.
    fn least(&self) -> usize {
        self.first.as_ref().map_or(self.from, |(position, _)| *position)
    }
}

/// What all threads give, put together.
struct Merge {
    lanes: Vec<Lane>,
    /// What this thread has read ahead.
    own: VecDeque<Placed>,
    own_is_over: bool,
    kept: Kept,
}

impl Merge {
    /// The next chunk.
    fn next<S>(&mut self, input: &mut BoxRows<S>, run: &Run<'_, '_, S>, share: &Share) -> Result<Option<Chunk>> {
        loop {
            // Whoever failed says why.
            if share.is_broken() {
                return Ok(None);
            }
            self.lanes.iter_mut().for_each(Lane::fill);
            let own = match self.own.front() {
                Some((position, _)) => *position,
                None if self.own_is_over => usize::MAX,
                None => input.position(),
            };
            let lane = self.lanes.iter_mut().min_by_key(|lane| lane.least());
            match lane {
                Some(lane) if lane.least() < own => {
                    if let Some((_, chunk)) = lane.first.take() {
                        return Ok(Some(chunk));
                    }
                }
                // Nobody else is at the piece of a chunk.
                _ => match self.own.pop_front() {
                    Some((_, chunk)) => {
                        self.kept.shrink(chunk.weight());
                        return Ok(Some(chunk));
                    }
                    None if self.own_is_over => return Ok(None),
                    None => {}
                },
            }
            if !self.own_is_over && self.kept.bytes() < AHEAD_BYTES_MAX {
                match input.next_chunk(run)? {
                    Some(chunk) => {
                        self.kept.grow_spilling(chunk.weight())?;
                        self.own.push_back((input.position(), chunk));
                    }
                    None => self.own_is_over = true,
                }
                continue;
            }
            look()?;
            if let Some(lane) = self.lanes.iter_mut().min_by_key(|lane| lane.least()) {
                lane.wait();
            }
        }
    }
}

/// Whether whoever takes what helpers give does so at once, or a client may let it wait: then helpers that are too far ahead end, so that others have them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    AtOnce,
    ByClient,
}

/// Has `each` take all chunks of an input, which helpers read too where there are any.
///
/// Errors: those of the input and of `each`.
pub(super) fn drain<S: Scalar>(
    input: &mut BoxRows<S>,
    run: &Run<'_, '_, S>,
    each: &mut dyn FnMut(Chunk) -> Result<()>,
) -> Result<()> {
    if !shared(input, run, Taken::AtOnce, each)? {
        while let Some(chunk) = input.next_chunk(run)? {
            each(chunk)?;
        }
    }
    Ok(())
}

/// Has `each`, which gives them to a client, take all chunks of an input that helpers read too; `false`, and nothing was read, where there is none or the input is not to be shared.
///
/// Errors: those of the input and of `each`.
pub fn drain_shared<S: Scalar>(
    input: &mut BoxRows<S>,
    run: &Run<'_, '_, S>,
    each: &mut dyn FnMut(Chunk) -> Result<()>,
) -> Result<bool> {
    shared(input, run, Taken::ByClient, each)
}

fn shared<S: Scalar>(
    input: &mut BoxRows<S>,
    run: &Run<'_, '_, S>,
    taken: Taken,
    each: &mut dyn FnMut(Chunk) -> Result<()>,
) -> Result<bool> {
    let lanes = RefCell::new(Vec::new());
    let begin = |share: &Share| {
        let (give, take) = sync_channel(match taken {
            Taken::AtOnce => WAITING_MAX,
            Taken::ByClient => WAITING_LAST_MAX,
        });
        let waiting = Arc::<AtomicUsize>::default();
        lanes.borrow_mut().push(Lane {
            take,
            waiting: waiting.clone(),
            share: share.clone(),
            first: None,
            from: 0,
        });
        (give, waiting)
    };
    let own = |input: &mut BoxRows<S>, share: &Share| {
        let mut merge = Merge {
            lanes: lanes.take(),
            own: VecDeque::new(),
            own_is_over: false,
            kept: Kept::default(),
        };
        while let Some(chunk) = merge.next(input, run, share)? {
            each(chunk)?;
        }
        Ok(())
    };
    type Given = (SyncSender<Placed>, Arc<AtomicUsize>);
    let help = |input: &mut BoxRows<S>, run: &Run<'_, '_, S>, share: &Share, (give, waiting): Given| {
        while let Some(chunk) = input.next_chunk(run)? {
            let ahead = waiting.fetch_add(1, Relaxed);
            // Nobody takes anything after an error.
            if give.send((input.position(), chunk)).is_err() {
                break;
            }
            if taken == Taken::ByClient && ahead > WAITING_MAX {
                share.end();
            }
        }
        Ok(())
    };
    Ok(together(input, run, begin, help, own)?.is_some())
}
