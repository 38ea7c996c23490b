//! Errors with the SQLSTATE that PostgreSQL gives them.

use nestor_model::{Document, Error, ErrorCode, Result, Value};
use sqlparser::ast::Ident;
use sqlparser::tokenizer::Location;

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

/// An error about a name of the statement, whose place is found once the text is at hand ([`placed`]).
pub fn about(error: Error, name: &Ident) -> Error {
    match name.span.start.line {
        0 => error,
        _ => about_word(error, name.span.start, &name.value, false),
    }
}

/// An error about a word of the statement that begins at a place, or that stands `before` what begins there. What is known of an error's
/// place stays; line 0 says that it has none.
pub fn about_word(error: Error, start: Location, word: &str, before: bool) -> Error {
    let is_known = error
        .extra()
        .is_none_or(|extra| extra.get("line").is_some() || extra.get("position").is_some());
    if is_known {
        return error;
    }
    let mut extra = error.extra().cloned().unwrap_or_default();
    extra.set("line", i64::try_from(start.line).unwrap_or(0));
    extra.set("column_of_line", i64::try_from(start.column).unwrap_or(0));
    extra.set("word", word);
    extra.set("before", before);
    error.with_extra(extra)
}

/// 42883 for an operator of one or two operands.
pub fn no_operator(shown: impl std::fmt::Display, operands: usize) -> Error {
    let hint = match operands {
        1 => "No operator matches the given name and argument type. You might need to add an explicit type cast.",
        _ => "No operator matches the given name and argument types. You might need to add explicit type casts.",
    };
    let error = error("42883", format!("operator does not exist: {shown}"));
    with(error, &[(Field::Hint, hint)])
}

/// 42883 for a function, with the types of its arguments.
pub fn no_function(shown: impl std::fmt::Display) -> Error {
    let hint = "No function matches the given name and argument types. You might need to add explicit type casts.";
    with(
        error("42883", format!("function {shown} does not exist")),
        &[(Field::Hint, hint)],
    )
}

/// An error with the place of the name that it is about, if the text has that name there: what a view or a default of a column names stands
/// in another text.
pub fn placed(error: Error, text: &str) -> Error {
    let number = |name: &str| match error.extra()?.get(name)?.to_value() {
        Value::Int64(n) => usize::try_from(n).ok(),
        _ => None,
    };
    let (Some(line), Some(column)) = (number("line"), number("column_of_line")) else {
        return error;
    };
    let word = error
        .extra()
        .and_then(|extra| extra.get("word")?.as_str().map(str::to_owned))
        .unwrap_or_default();
    let is_before = error
        .extra()
        .and_then(|extra| extra.get("before"))
        .is_some_and(|before| matches!(before.to_value(), Value::Bool(true)));
    let mut extra = error.extra().cloned().unwrap_or_default();
    for name in ["line", "column_of_line", "word", "before"] {
        extra.remove(name);
    }
    let place = position_of(text, line, column).and_then(|place| match is_before {
        true => before(text, place, &word),
        false => begins(text, place, &word).then_some(place),
    });
    match place {
        Some(place) => at(error.with_extra(extra), place),
        None => error.with_extra(extra),
    }
}

/// Whether a word, or its first 63 characters, begin at a place of a text, in quotes or not.
fn begins(text: &str, place: usize, word: &str) -> bool {
    let rest: String = text.chars().skip(place - 1).take(64 + 1).collect();
    let rest = rest.trim_start_matches('"').to_lowercase();
    rest.starts_with(&word.to_lowercase().chars().take(63).collect::<String>())
}

/// The place of a word that stands before a place of a text, with nothing but spaces and parentheses between them.
fn before(text: &str, place: usize, word: &str) -> Option<usize> {
    let head: String = text.chars().take(place - 1).collect();
    let head = head.trim_end_matches(|c: char| c.is_whitespace() || c == '(');
    Some(head.strip_suffix(word)?.chars().count() + 1)
}

/// The place of a line and column, all from 1, in characters.
pub fn position_of(text: &str, line: usize, column: usize) -> Option<usize> {
    let before: usize = text
        .split('\n')
        .take(line.checked_sub(1)?)
        .map(|line| line.chars().count() + 1)
        .sum();
    Some(before + column)
}

/// What an error says besides its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// More of what happened.
    Detail,
    /// What to do about it.
    Hint,
    /// The table.
    Table,
    /// The column.
    Column,
    /// The constraint.
    Constraint,
    /// The schema.
    Schema,
    /// The type.
    DataType,
    /// Where in a file it happened.
    Context,
    /// The name by which clients know what happened where the state is not enough.
    Routine,
}

impl Field {
    const ALL: [Self; 9] = [
        Self::Detail,
        Self::Hint,
        Self::Table,
        Self::Column,
        Self::Constraint,
        Self::Schema,
        Self::DataType,
        Self::Context,
        Self::Routine,
    ];

    /// Its letter in ErrorResponse.
    pub fn letter(self) -> u8 {
        match self {
            Self::Detail => b'D',
            Self::Hint => b'H',
            Self::Table => b't',
            Self::Column => b'c',
            Self::Constraint => b'n',
            Self::Schema => b's',
            Self::DataType => b'd',
            Self::Context => b'W',
            Self::Routine => b'R',
        }
    }

    /// The name of the field of an error's details that has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Detail => "detail",
            Self::Hint => "hint",
            Self::Table => "table",
            Self::Column => "column",
            Self::Constraint => "constraint",
            Self::Schema => "schema",
            Self::DataType => "datatype",
            Self::Context => "context",
            Self::Routine => "routine",
        }
    }
}

/// An error that says more.
pub fn with(error: Error, fields: &[(Field, &str)]) -> Error {
    let mut extra = error.extra().cloned().unwrap_or_default();
    for (field, text) in fields {
        extra.set(field.name(), *text);
    }
    error.with_extra(extra)
}

/// What an error of this crate says besides its message.
pub fn fields(error: &Error) -> Vec<(Field, &str)> {
    let Some(extra) = error.extra().filter(|extra| extra.get(STATE).is_some()) else {
        return Vec::new();
    };
    let all = Field::ALL.into_iter();
    all.filter_map(|field| Some((field, extra.get(field.name())?.as_str()?)))
        .collect()
}

/// The SQLSTATE of an error, be it of this crate or of those below.
pub fn state(error: &Error) -> String {
    let own = error.extra().and_then(|extra| match extra.get(STATE) {
        Some(value) => value.as_str().map(str::to_owned),
        None => None,
    });
    own.unwrap_or_else(|| of_code(error.code()).to_owned())
}

/// The message of an error as clients are told it: PostgreSQL's for what ends statements.
pub fn shown(error: &Error) -> &str {
    match error.code().number() {
        11601 => "canceling statement due to user request",
        50 => "canceling statement due to statement timeout",
        _ => error.message(),
    }
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
        // As a hot standby says it.
        10107 => "25006",
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
        // A statement of a transaction that is open for too long.
        290 => "25P04",
        107 => "40P01",
        24 => "55P03",
        292 => "53200",
        462 => "53400",
        // A regular expression that takes too long.
        51156 => "2201B",
        11600 | 91 => "57P01",
        _ => "XX000",
    }
}
