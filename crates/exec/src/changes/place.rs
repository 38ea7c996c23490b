//! Where a stream is: what was given, and from where it reads on.

use nestor_model::Timestamp;
use nestor_query::stage::change_stream::{EventId, Token};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The next operation that a stream looks at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct Place {
    /// The time of its commit.
    pub(super) time: Timestamp,
    /// Which operation of the commit.
    pub(super) operation: u32,
    /// Its own event was given, the `invalidate` behind it was not.
    pub(super) is_invalidate: bool,
}

impl Place {
    /// The first operation from `time` on.
    pub(super) fn at(time: Timestamp) -> Self {
        Self {
            time,
            ..Self::default()
        }
    }

    /// The operation that a token is of, or the first at its time.
    pub(super) fn of(token: &Token) -> Self {
        let EventId {
            operation,
            is_invalidate,
            ..
        } = match token.event {
            Some(event) => event,
            None => return Self::at(token.time),
        };
        Self {
            time: token.time,
            operation,
            is_invalidate,
        }
    }

    /// The first operation behind all those of `time`.
    pub(super) fn behind(time: Timestamp) -> Self {
        Self::at(Timestamp::from_u64(time.to_u64().saturating_add(1)))
    }

    /// The time behind which the log is read: all that is before this place was read.
    pub(super) fn read_behind(self) -> Timestamp {
        Timestamp::from_u64(self.time.to_u64().saturating_sub(1))
    }
}

/// What operators of one stream tell each other.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<State>>);

/// What the one who holds the lock sees of [`Shared`].
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    /// Token of the row that is on its way up.
    pub(super) token: Token,
    /// Where the stream is when it gives no row.
    pub(super) mark: Token,
    /// The source has ended.
    pub(super) is_over: bool,
    /// The source stopped without being at the end.
    pub(super) is_behind: bool,
    /// Rows of an event that was split are still to come.
    pub(super) in_fragments: bool,
}

impl Shared {
    pub(super) fn new(start: Token) -> Self {
        Self(Arc::new(Mutex::new(State {
            token: start,
            mark: start,
            is_over: false,
            is_behind: false,
            in_fragments: false,
        })))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
