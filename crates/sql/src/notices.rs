//! What a statement tells its client beside its result. The thread keeps it until the session sends it.

use crate::error::{error, state};
use nestor_model::{Error, Result};
use std::cell::RefCell;

/// How much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// What helps to find a mistake.
    Debug,
    /// What is for whoever runs the server.
    Log,
    /// What was asked for.
    Info,
    /// Something went another way than the statement says.
    Notice,
    /// The statement did nothing.
    Warning,
}

impl Severity {
    /// As messages show it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Debug => "DEBUG",
            Self::Log => "LOG",
            Self::Info => "INFO",
            Self::Notice => "NOTICE",
            Self::Warning => "WARNING",
        }
    }

    /// Whether `client_min_messages` lets it through.
    pub fn passes(self, least: &str) -> bool {
        match least {
            _ if self == Self::Info => true,
            "error" | "fatal" | "panic" => false,
            "warning" => self == Self::Warning,
            least if self == Self::Debug => least.starts_with("debug"),
            least if self == Self::Log => least == "log" || least.starts_with("debug"),
            _ => true,
        }
    }
}

/// Messages that one statement may raise; those behind them are left out.
const RAISED_MAX: usize = 10_000;

thread_local! {
    static NOTICES: RefCell<Vec<(Severity, Error)>> = const { RefCell::new(Vec::new()) };
}

/// Tells of something. A statement that was begun again says the same once.
fn tell(severity: Severity, said: Error) {
    NOTICES.with_borrow_mut(|notices| {
        if !notices.iter().any(|(_, before)| before.message() == said.message()) {
            notices.push((severity, said));
        }
    });
}

/// Tells what a block raises, as often as it does.
pub fn raise(level: &str, said: Error) {
    let severity = match level {
        "DEBUG" => Severity::Debug,
        "LOG" => Severity::Log,
        "INFO" => Severity::Info,
        "WARNING" => Severity::Warning,
        _ => Severity::Notice,
    };
    NOTICES.with_borrow_mut(|notices| {
        if notices.len() < RAISED_MAX {
            notices.push((severity, said));
        }
    });
}

/// How many messages wait.
pub fn count() -> usize {
    NOTICES.with_borrow(Vec::len)
}

/// Changes the messages that wait behind the first `from`.
pub fn alter(from: usize, change: impl Fn(Error) -> Error) {
    NOTICES.with_borrow_mut(|notices| {
        for (_, said) in notices.iter_mut().skip(from) {
            *said = change(said.clone());
        }
    });
}

/// Tells what the statement wants told.
pub fn inform(message: &str) {
    tell(Severity::Info, error("00000", message));
}

/// Tells what a statement does besides what it says.
pub fn notice(message: &str) {
    tell(Severity::Notice, error("00000", message));
}

/// Tells of something that has a state.
pub fn told(state: &str, message: &str) {
    tell(Severity::Notice, error(state, message));
}

/// Tells of what would be an error elsewhere, with its state and what else it says.
pub fn tell_of(said: Error) {
    tell(Severity::Notice, said);
}

/// Warns of a statement that does nothing.
pub fn warn(state: &str, message: &str) {
    tell(Severity::Warning, error(state, message));
}

/// Passes over what is wrong if the statement says so (IF EXISTS, IF NOT EXISTS), and tells of that.
///
/// Errors: `wrong`.
pub fn pass_over(says_so: bool, wrong: Error) -> Result<()> {
    if !says_so {
        return Err(wrong);
    }
    let state = match wrong.message().ends_with("does not exist") {
        true => "00000".to_owned(),
        false => state(&wrong),
    };
    tell(
        Severity::Notice,
        error(&state, format!("{}, skipping", wrong.message())),
    );
    Ok(())
}

/// What was told, once.
pub fn take() -> Vec<(Severity, Error)> {
    match NOTICES.with_borrow(Vec::is_empty) {
        true => Vec::new(),
        false => NOTICES.take(),
    }
}
