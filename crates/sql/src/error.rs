//! Errors with the SQLSTATE that PostgreSQL gives them.

use nestor_model::{Document, Error, ErrorCode, Result, Value};

/// Name of the field of an error's details that has its SQLSTATE.
pub const STATE: &str = "sqlState";

/// An error with a SQLSTATE.
pub fn error(state: &str, message: impl Into<String>) -> Error {
    let mut extra = Document::new();
    extra.push(STATE, state);
    Error::new(ErrorCode::BadValue, message).with_extra(extra)
}

/// As [`error`], as the result of a function.
pub fn fail<T>(state: &str, message: impl Into<String>) -> Result<T> {
    Err(error(state, message))
}

/// 0A000: PostgreSQL knows it and Nestor does not.
pub fn unsupported<T>(what: impl std::fmt::Display) -> Result<T> {
    fail("0A000", format!("{what} is not supported"))
}

/// An error of a place in the statement; `at` counts characters from 1.
pub fn at(error: Error, at: usize) -> Error {
    let mut extra = error.extra().cloned().unwrap_or_default();
    extra.set("position", at as i64);
    error.with_extra(extra)
}

/// The SQLSTATE of an error, be it of this crate or of those below.
pub fn state(error: &Error) -> String {
    let own = error.extra().and_then(|extra| match extra.get(STATE) {
        Some(value) => value.as_str().map(str::to_owned),
        None => None,
    });
    own.unwrap_or_else(|| of_code(error.code()).to_owned())
}

/// The place that an error names, in characters from 1.
pub fn position(error: &Error) -> Option<i64> {
    match error.extra()?.get("position")?.to_value() {
        Value::Int64(at) => Some(at),
        _ => None,
    }
}

fn of_code(code: ErrorCode) -> &'static str {
    match code.number() {
        11000 => "23505",
        112 => "40001",
        121 => "23514",
        13 => "42501",
        18 => "28P01",
        26 => "42P01",
        48 => "42P07",
        50 | 11601 | 237 => "57014",
        146 => "53200",
        14031 => "53100",
        10334 => "54000",
        251 => "40001",
        292 => "53200",
        11600 | 91 => "57P01",
        _ => "XX000",
    }
}
