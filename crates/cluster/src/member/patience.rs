//! A store that does not answer is asked again.

use super::{MemberError, Stop};
use crate::LogError;
use std::sync::Arc;
use std::time::Duration;

/// How often it is asked again by those who do not wait for ever, and when.
const TRIES: u32 = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(250);

/// Asks a store again that does not answer, on top of what the store's client does.
pub(super) struct Patience {
    stop: Arc<Stop>,
    tries: u32,
}

impl Patience {
    /// Gives up after five seconds.
    pub(super) fn brief(stop: Arc<Stop>) -> Self {
        Self { stop, tries: TRIES }
    }

    /// Gives up when it is time to end.
    pub(super) fn endless(stop: Arc<Stop>) -> Self {
        let tries = u32::MAX;
        Self { stop, tries }
    }

    /// Errors: those of `ask`; [`MemberError::Over`].
    pub(super) fn ask<T>(&self, mut ask: impl FnMut() -> Result<T, MemberError>) -> Result<T, MemberError> {
        let mut tries = 0;
        loop {
            match ask() {
                Err(MemberError::Log(LogError::Unavailable(why))) if tries < self.tries => {
                    if tries.is_multiple_of(TRIES) {
                        tracing::warn!(why, "the store of the log does not answer");
                    }
                    tries = tries.saturating_add(1);
                    if self.stop.wait(BETWEEN_TRIES) {
                        return Err(MemberError::Over);
                    }
                }
                result => return result,
            }
        }
    }
}
