//! The `nestor` binary.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("nestor: {message}");
            ExitCode::FAILURE
        }
    }
}
