//! `nestor bench`'s commands, and what those do that only read results.

pub use crate::arguments::{LabCommand, Resolve};

use crate::arguments::ReportArgs;
use crate::delay::write_shim;
use crate::history;
use crate::report::{page::page, table::Board, text};
use crate::results::read;
use crate::run::measure;
use crate::workload::Suite;
use std::io::{IsTerminal, Write};

/// Does what the command says; `resolve` makes the target of a label and a URI, whose commits
/// wait for this, and whose syncs are delayed so long if it is started for the run. An error is a message for the user.
pub fn run(command: &LabCommand, resolve: Resolve<'_>) -> Result<(), String> {
    match command {
        LabCommand::Run(args) => measure(args, resolve),
        LabCommand::Report(args) => report(args),
        LabCommand::History(args) => {
            if let (Some(file), Some(release)) = (&args.add, &args.release) {
                history::add(&args.file, release, file, args.server.as_deref())?;
            }
            let shown = history::show(&args.file, std::io::stdout().is_terminal())?;
            // Who closes the pipe has seen enough.
            let _ = std::io::stdout().write_all(shown.as_bytes());
            Ok(())
        }
        LabCommand::Shim(args) => write_shim(&args.file),
        LabCommand::List => {
            for suite in Suite::ALL {
                for test in suite.tests() {
                    println!("{} {test}", suite.name());
                }
            }
            Ok(())
        }
    }
}

fn report(args: &ReportArgs) -> Result<(), String> {
    let mut all = Vec::new();
    for file in &args.files {
        let (found, left_out) = read(file)?;
        left_out.iter().for_each(|remark| eprintln!("{remark}"));
        all.extend(found);
    }
    let board = Board::new(all);
    let tables = text::print(&board, std::io::stdout().is_terminal());
    // Who closes the pipe has seen enough.
    let _ = std::io::stdout().write_all(tables.as_bytes());
    if let Some(html) = &args.html {
        std::fs::write(html, page(&board, &args.title)).map_err(|error| format!("{}: {error}", html.display()))?;
        println!("{}", html.display());
    }
    Ok(())
}
