//! Lines of the terminal, with history and completion.

use super::Shell;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{Config, Context, Helper};
use std::path::PathBuf;

/// Lines that are kept.
const HISTORY_LINES: usize = 10_000;
/// Names that are offered.
const NAMES_MAX: usize = 20_000;

/// Words of the language that are worth completing.
const WORDS: &[&str] = &[
    "all",
    "alter",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "begin",
    "between",
    "by",
    "case",
    "cast",
    "check",
    "commit",
    "conflict",
    "constraint",
    "copy",
    "count",
    "create",
    "cross",
    "current_date",
    "current_timestamp",
    "default",
    "delete",
    "desc",
    "distinct",
    "do",
    "drop",
    "else",
    "end",
    "except",
    "exists",
    "explain",
    "extract",
    "false",
    "fetch",
    "filter",
    "first",
    "foreign",
    "from",
    "full",
    "group",
    "grouping",
    "having",
    "index",
    "inner",
    "insert",
    "intersect",
    "interval",
    "into",
    "is",
    "join",
    "key",
    "last",
    "lateral",
    "left",
    "like",
    "limit",
    "merge",
    "natural",
    "not",
    "nothing",
    "null",
    "nulls",
    "offset",
    "on",
    "or",
    "order",
    "outer",
    "over",
    "partition",
    "primary",
    "recursive",
    "references",
    "returning",
    "right",
    "rollback",
    "rollup",
    "rows",
    "savepoint",
    "select",
    "set",
    "sets",
    "show",
    "table",
    "then",
    "transaction",
    "true",
    "truncate",
    "union",
    "unique",
    "unnest",
    "update",
    "using",
    "values",
    "view",
    "when",
    "where",
    "window",
    "with",
];

/// Tables and columns of the database.
const NAMES: &str = "select table_name from information_schema.tables where table_schema not in ('pg_catalog', 'information_schema') \
     union select column_name from information_schema.columns where table_schema not in ('pg_catalog', 'information_schema')";

/// Reads lines.
pub struct Editor {
    editor: rustyline::Editor<Words, FileHistory>,
    history: Option<PathBuf>,
    /// The database whose names are known.
    database: Option<String>,
}

/// What may be completed.
struct Words {
    names: Vec<String>,
}

impl Editor {
    /// Prepares the terminal, and reads the history.
    pub fn new() -> Result<Self, String> {
        let config = Config::builder();
        let config = config
            .max_history_size(HISTORY_LINES)
            .map_err(|error| error.to_string())?;
        let config = config.history_ignore_space(true).auto_add_history(false).build();
        let mut editor = rustyline::Editor::with_config(config).map_err(|error| error.to_string())?;
        editor.set_helper(Some(Words { names: Vec::new() }));
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let history = home.map(|home| home.join(".nestor_sql_history"));
        if let Some(path) = &history {
            // At first there is none.
            let _ = editor.load_history(path);
        }
        Ok(Self {
            editor,
            history,
            database: None,
        })
    }

    /// A line; `None` at the end of input, and for one that Ctrl-C gave up.
    pub fn line(&mut self, prompt: &str, shell: &mut Shell) -> Result<Option<String>, String> {
        self.learn(shell);
        match self.editor.readline(prompt) {
            Ok(line) => {
                self.remember(&line);
                Ok(Some(line))
            }
            Err(ReadlineError::Eof | ReadlineError::Interrupted) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// A line with a password stays out of the history.
    fn remember(&mut self, line: &str) {
        if line.to_ascii_lowercase().contains("password") || !self.editor.add_history_entry(line).unwrap_or(false) {
            return;
        }
        if let Some(path) = &self.history {
            // A history that cannot be kept is no reason to stop.
            let _ = self.editor.append_history(path);
        }
    }

    /// Asks the server for the names of another database than before.
    fn learn(&mut self, shell: &mut Shell) {
        let is_known = self.database.as_deref() == Some(&shell.target.database);
        if is_known || shell.status != b'I' {
            return;
        }
        let names = shell.ask(&format!("{NAMES} limit {NAMES_MAX}"));
        if let Some(words) = self.editor.helper_mut() {
            words.names = names;
        }
        self.database = Some(shell.target.database.clone());
    }
}

impl Helper for Words {}
impl Hinter for Words {
    type Hint = String;
}
impl Highlighter for Words {}
impl Validator for Words {}

impl Completer for Words {
    type Candidate = Pair;

    fn complete(&self, line: &str, position: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, found) = complete(&line[..position], &self.names);
        let pair = |word: String| Pair {
            display: word.clone(),
            replacement: word,
        };
        Ok((start, found.into_iter().map(pair).collect()))
    }
}

/// Words that begin as the end of `line` does, and where that begins. Names stand before words of the language, which are written in the
/// case that was begun with.
fn complete(line: &str, names: &[String]) -> (usize, Vec<String>) {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let start = line
        .rfind(|c| !is_part(c))
        .map_or(0, |at| at + line[at..].chars().next().map_or(1, char::len_utf8));
    let begun = &line[start..];
    if begun.is_empty() {
        return (start, Vec::new());
    }
    let lower = begun.to_lowercase();
    let mut found: Vec<String> = names
        .iter()
        .filter(|name| name.to_lowercase().starts_with(&lower))
        .map(|name| quoted(name))
        .collect();
    let is_upper = begun.chars().all(|c| !c.is_lowercase());
    let words = WORDS.iter().filter(|word| word.starts_with(&lower));
    found.extend(words.map(|word| {
        if is_upper {
            word.to_uppercase()
        } else {
            (*word).to_owned()
        }
    }));
    (start, found)
}

/// A name as it has to be written.
fn quoted(name: &str) -> String {
    let is_plain = name
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    match is_plain {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_words() {
        let names = ["orders".to_owned(), "orderLines".to_owned()];
        for (line, start, expected) in [
            ("select * from ord", 14, vec!["orders", "\"orderLines\"", "order"]),
            ("SEL", 0, vec!["SELECT"]),
            ("select ", 7, vec![]),
            ("select ä.ORDERS", 10, vec!["orders"]),
        ] {
            let (at, found) = complete(line, &names);
            assert_eq!(
                (at, found),
                (start, expected.into_iter().map(str::to_owned).collect()),
                "{line}"
            );
        }
    }
}
