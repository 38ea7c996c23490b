//! The `nestor` binary.

mod allocator;
mod cli;

use std::process::ExitCode;

/// Most of what a small command costs beside the socket is memory taken and given back.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    allocator::one_arena_of_libc();
    if let Err(error) = nestor::limits::forbid_core_files() {
        eprintln!("warning: core files of this process cannot be switched off: {error}");
    }
    nestor_sql::run::indexed::install();
    cli::run()
}
