//! Has the allocators take no more of the address space than they need, and return memory to the system.
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

#[cfg(all(target_os = "linux", target_env = "gnu"))]
unsafe extern "C" {
    /// Of the C library: changes a parameter of its allocator.
    safe fn mallopt(parameter: c_int, value: c_int) -> c_int;
}

/// The C library's allocator serves a few small things of its own, and would reserve 64 MiB of address space for each thread that asks
/// it for one: as much as the rest of the process under a limit of address space. To be called before there are threads.
pub fn one_arena_of_libc() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        /// `M_ARENA_MAX` of `<malloc.h>`.
        const ARENA_MAX: c_int = -8;
        mallopt(ARENA_MAX, 1);
    }
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
