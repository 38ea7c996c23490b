//! Memory that is read soon, asked for ahead of time.
//!
//! A look-up in a large tree waits for memory at each step, for longer than it computes. Several look-ups that go step by step side by side
//! wait together, if each has asked for the memory of its next step before it is that one's turn.

#![allow(unsafe_code)]

/// Bytes that the processor reads at once.
pub(crate) const LINE_BYTES: usize = 64;

/// Asks for the line of memory at an address, which need not be one; nothing is read.
#[inline(always)]
pub(crate) fn ask<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing and never faults, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Asks for bytes, but for no more than a few lines of them.
#[inline]
pub(crate) fn ask_bytes(bytes: &[u8]) {
    const LINES_MAX: usize = 8;
    bytes
        .chunks(LINE_BYTES)
        .take(LINES_MAX)
        .for_each(|line| ask(line.as_ptr()));
}
