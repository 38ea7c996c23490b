//! The `nestor` binary.

mod allocator;
mod cli;

use std::process::ExitCode;

/// Most of what a small command costs beside the socket is memory taken and given back.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    allocator::one_arena_of_libc();
    cli::run()
}
