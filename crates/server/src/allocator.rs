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

/// Has mimalloc waste no address space if that is limited. It would reserve a GiB at a time, give none of it back, and when no gap is
/// wide enough for a large piece reserve another one: with 4 GiB in all, that ends the process while half of what is reserved is
/// free. So it reserves little at a time, and maps large pieces one by one, whose addresses return to the system.
#[cfg(target_os = "linux")]
extern "C" fn spare_address_space() {
    if rustix::process::getrlimit(rustix::process::Resource::As)
        .current
        .is_some()
    {
        mi_option_set(ARENA_RESERVE, RESERVED_AT_ONCE_KIB);
        mi_option_set(ARENA_MAX_OBJECT_SIZE, LARGE_KIB);
        mi_option_set(PURGE_DELAY, 0);
    }
}

/// Called by the system before anything is allocated, because the first allocation reserves the first GiB.
// SAFETY: the loader calls what this section holds once, with the C calling convention, and what is called neither allocates nor needs
// anything of the standard library.
#[cfg(target_os = "linux")]
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = spare_address_space;

// Options of mimalloc 3.3, which has sizes in KiB and times in ms.
/// `mi_option_purge_delay`: how long free pages stay with the process.
const PURGE_DELAY: c_int = 15;
/// `mi_option_arena_reserve`: how much address space is reserved at a time.
const ARENA_RESERVE: c_int = 23;
/// What it is set to: little beside a limit that a server can live with.
const RESERVED_AT_ONCE_KIB: c_long = 64 << 10;
/// `mi_option_arena_max_object_size`: the largest piece that lies in what was reserved.
const ARENA_MAX_OBJECT_SIZE: c_int = 45;
/// What it is set to. Larger pieces are as much work for whoever fills them as for the system.
const LARGE_KIB: c_long = 4 << 10;
/// `mi_option_minimal_purge_size` of mimalloc 3.3: the smallest piece that is returned, in KiB.
const MINIMAL_PURGE_SIZE: c_int = 44;
/// What mimalloc manages memory by.
const SLICE_KIB: c_long = 64;

/// Returns what is free to the system.
pub fn return_memory() {
    mi_option_set(MINIMAL_PURGE_SIZE, SLICE_KIB);
    mi_collect(true);
}
