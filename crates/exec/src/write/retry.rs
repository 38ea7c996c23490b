//! Trying again after a write conflict.

use crate::interrupt::Interrupt;
use nestor_model::{ErrorCode, Result};
use std::time::Duration;

/// Runs `attempt` until it does not end in a write conflict. Single statements are retried inside the server,
/// as MongoDB does; only transactions hand conflicts to the client. Each attempt takes a fresh snapshot.
pub fn with_retry<T>(interrupt: &Interrupt, mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    let mut tries = 0u32;
    loop {
        match attempt() {
            Err(error) if error.code() == ErrorCode::WriteConflict => {
                interrupt.check()?;
                tries += 1;
                // The winner has committed already, so going on at once mostly succeeds. If not, many compete for one
                // document, or a transaction has reserved it and will for a while.
                match tries {
                    0..=4 => {}
                    5..=16 => std::thread::yield_now(),
                    _ => std::thread::sleep(Duration::from_millis(u64::from(tries - 16).min(10))),
                }
            }
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::Error;

    #[test]
    fn conflicts_are_tried_again_and_other_errors_are_not() {
        let mut left = 7;
        let result = with_retry(&Interrupt::default(), || {
            left -= 1;
            if left > 0 {
                Err(Error::new(ErrorCode::WriteConflict, "conflict"))
            } else {
                Ok(left)
            }
        });
        assert_eq!(result.expect("the seventh attempt succeeds"), 0);
        let mut calls = 0;
        let result: Result<()> = with_retry(&Interrupt::default(), || {
            calls += 1;
            Err(Error::bad_value("no"))
        });
        assert!(result.is_err() && calls == 1);
    }
}
