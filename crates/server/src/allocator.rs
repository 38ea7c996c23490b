//! Has the allocator return memory to the system.
//!
//! mimalloc keeps pages that became free, in case that they are needed again, and returns them when somebody allocates later, huge
//! pages (2 MiB) only as a whole. A server that is idle after it dropped a lot would keep most of it for ever.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_long};

unsafe extern "C" {
    /// Of mimalloc, which is the program's allocator: returns all free pages of the process. The crate `mimalloc` does not pass it
    /// on.
    safe fn mi_collect(force: bool);
    /// Changes an option of mimalloc; one that it does not have does nothing.
    safe fn mi_option_set(option: c_int, value: c_long);
}

/// `mi_option_minimal_purge_size` of mimalloc 3.3: the smallest piece that is returned, in KiB.
const MINIMAL_PURGE_SIZE: c_int = 44;
/// What mimalloc manages memory by.
const SLICE_KIB: c_long = 64;

/// Returns what is free to the system.
pub fn return_memory() {
    mi_option_set(MINIMAL_PURGE_SIZE, SLICE_KIB);
    mi_collect(true);
}
