//! Asking a conversation to end, from another one.

use crate::lock;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

/// Whether a conversation is to end. Only one that listens can be asked.
#[derive(Debug, Default)]
pub struct Ending(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    listens: bool,
    is_asked: bool,
    waker: Option<Waker>,
}

impl Ending {
    /// From now on the conversation looks whether it is to end.
    pub fn listen(&self) {
        lock(&self.0).listens = true;
    }

    /// Asks for the end; whether the conversation listens.
    pub fn ask(&self) -> bool {
        let mut state = lock(&self.0);
        state.is_asked |= state.listens;
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
        state.listens
    }

    /// Whether it has been asked.
    pub fn is_asked(&self) -> bool {
        lock(&self.0).is_asked
    }

    /// Ready once it has been asked.
    pub fn poll_asked(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = lock(&self.0);
        if state.is_asked {
            return Poll::Ready(());
        }
        if !state.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            state.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_listens_is_asked_and_wakes() {
        let ending = Ending::default();
        assert!(!ending.ask() && !ending.is_asked());
        ending.listen();
        let mut cx = Context::from_waker(Waker::noop());
        assert!(ending.poll_asked(&mut cx).is_pending());
        assert!(ending.ask() && ending.is_asked());
        assert!(ending.poll_asked(&mut cx).is_ready());
    }
}
