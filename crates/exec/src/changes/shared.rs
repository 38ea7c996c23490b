//! State that the operators of one stream share.

use nestor_query::stage::change_stream::Token;
use nestor_storage::log::LogSignal;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// State that the operators of one stream share.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<State>>);

/// The view of [`Shared`] for the holder of the lock.
#[derive(Clone, Debug)]
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
    /// Says when there is more, once the source was at the end.
    pub(super) signal: Option<LogSignal>,
}

impl Shared {
    pub(super) fn new(start: Token) -> Self {
        Self(Arc::new(Mutex::new(State {
            token: start,
            mark: start,
            is_over: false,
            is_behind: false,
            in_fragments: false,
            signal: None,
        })))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
