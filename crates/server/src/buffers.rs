//! Buffers that live only while a message is under way.
//!
//! An idle connection owns none: it takes one from its thread when bytes arrive and gives it back once
//! they are answered. So thousands of idle connections cost little, and a busy one allocates nothing.

use std::cell::RefCell;

/// Size of a fresh buffer: most requests and replies fit.
const BUFFER_BYTES: usize = 16 * 1024;
/// A buffer that grew beyond this is freed instead of kept.
const KEPT_BYTES_MAX: usize = 256 * 1024;
/// Buffers kept by each thread.
const KEPT_MAX: usize = 16;

thread_local! {
    static KEPT: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// An empty buffer with some room.
pub fn take() -> Vec<u8> {
    KEPT.with_borrow_mut(Vec::pop)
        .unwrap_or_else(|| Vec::with_capacity(BUFFER_BYTES))
}

/// Gives a buffer back; what it holds is forgotten.
pub fn give_back(mut buffer: Vec<u8>) {
    if (BUFFER_BYTES..=KEPT_BYTES_MAX).contains(&buffer.capacity()) {
        buffer.clear();
        KEPT.with_borrow_mut(|kept| {
            if kept.len() < KEPT_MAX {
                kept.push(buffer);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_empty_and_large_ones_do_not() {
        let mut buffer = take();
        buffer.extend_from_slice(b"abc");
        let at = buffer.as_ptr();
        give_back(buffer);
        let again = take();
        assert!(again.is_empty() && again.as_ptr() == at);
        let mut large = take();
        large.reserve_exact(KEPT_BYTES_MAX + 1);
        give_back(large);
        assert_eq!(take().capacity(), BUFFER_BYTES);
    }
}
