//! The shell's own commands, which begin with a backslash.

use super::{Format, Outcome, Shell};
use crate::client::postgres::Postgres;
use std::path::Path;

const HELP: &str = r"\d [TABLE]      tables, or the columns of one
\dt             tables
\dv             views
\di             indexes
\l              databases
\c DATABASE     connect to another database
\copy TABLE FROM FILE [WITH (…)]     a file of this machine into a table
\copy TABLE TO FILE [WITH (…)]       a table, or a query in parentheses, into a file
\i FILE         run a file of statements
\timing         tell how long statements take, or stop telling
\x              a line for each value, or a table again
\format NAME    table, expanded, csv, tsv or json
\?              this list
\q              end
";

const TABLES: &str = "select table_schema as schema, table_name as name, case table_type when 'BASE TABLE' then 'table' else lower(table_type) end as type \
     from information_schema.tables where table_schema not in ('pg_catalog', 'information_schema')";

impl Shell {
    /// Carries out a command.
    pub(super) fn backslash(&mut self, line: &str) -> Result<Outcome, String> {
        let line = line.trim_end_matches(';');
        let (command, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let words: Vec<&str> = rest.split_whitespace().collect();
        match (command, words.as_slice()) {
            ("\\q" | "\\quit", []) => return Ok(Outcome::Quit),
            ("\\?" | "\\h" | "\\help", []) => print!("{HELP}"),
            ("\\timing", []) => {
                self.timing = !self.timing;
                println!("timing is {}", if self.timing { "on" } else { "off" });
            }
            ("\\x", []) => {
                self.format = match self.format {
                    Format::Expanded => Format::Table,
                    _ => Format::Expanded,
                };
            }
            ("\\format", [name]) => match <Format as clap::ValueEnum>::from_str(name, true) {
                Ok(format) => self.format = format,
                Err(_) => return Ok(failed("\\format: table, expanded, csv, tsv or json is wanted")),
            },
            ("\\i", [_, ..]) => {
                return self
                    .file(Path::new(unquoted(rest)))
                    .or_else(|error| match self.is_interactive {
                        true => Ok(failed(&error)),
                        false => Err(error),
                    });
            }
            ("\\copy", [_, ..]) => return self.copy(rest),
            ("\\c" | "\\connect", [database]) => {
                let mut target = self.target.clone();
                target.database = (*database).to_owned();
                match Postgres::connect(&target) {
                    Ok(server) => (self.server, self.target, self.status) = (server, target, b'I'),
                    Err(error) => return Ok(failed(&error.to_string())),
                }
            }
            ("\\d" | "\\dt" | "\\dv", []) => {
                let types = match command {
                    "\\dt" => " and table_type = 'BASE TABLE'",
                    "\\dv" => " and table_type <> 'BASE TABLE'",
                    _ => "",
                };
                return self.statement(&format!("{TABLES}{types} order by 1, 2"), None);
            }
            ("\\d", [_, ..]) => {
                let (schema, table) = match rest.split_once('.') {
                    Some((schema, table)) => (literal(unquoted(schema)), unquoted(table)),
                    None => ("current_schema()".to_owned(), unquoted(rest)),
                };
                let text = format!(
                    "select column_name as column, data_type as type, is_nullable as nullable, column_default as default \
                     from information_schema.columns where table_schema = {schema} and table_name = {} order by ordinal_position",
                    literal(table)
                );
                return self.statement(&text, None);
            }
            ("\\di", []) => {
                let text = "select tablename as table, indexname as index, indexdef as definition from pg_catalog.pg_indexes \
                     where schemaname <> 'pg_catalog' order by 1, 2";
                return self.statement(text, None);
            }
            ("\\l", []) => {
                return self.statement(
                    "select datname as database from pg_catalog.pg_database order by 1",
                    None,
                );
            }
            _ => {
                return Ok(failed(&format!(
                    "{line}: there is no such command, or it wants something else: \\? lists them"
                )));
            }
        }
        Ok(Outcome::Done)
    }

    /// `\copy WHAT FROM|TO FILE …`: COPY whose file is one of this machine.
    fn copy(&mut self, rest: &str) -> Result<Outcome, String> {
        let Some((statement, file)) = copy_of(rest) else {
            return Ok(failed("\\copy: TABLE or (QUERY), FROM or TO, and a file are wanted"));
        };
        self.statement(&statement, Some(Path::new(&file)))
    }
}

/// The statement that a `\copy` stands for, and its file.
fn copy_of(rest: &str) -> Option<(String, String)> {
    let (what, after) = match rest.strip_prefix('(') {
        Some(_) => rest.split_at(closing(rest)? + 1),
        None => {
            // A table may have its columns in parentheses behind it.
            let end = rest.find(|c: char| c.is_whitespace() || c == '(')?;
            let (table, after) = rest.split_at(end);
            match after.trim_start().strip_prefix('(') {
                Some(_) => {
                    let open = rest.len() - after.trim_start().len();
                    rest.split_at(open + closing(&rest[open..])? + 1)
                }
                None => (table, after),
            }
        }
    };
    let (direction, after) = after.trim_start().split_once(char::is_whitespace)?;
    let direction = match direction.to_ascii_lowercase().as_str() {
        "from" => "FROM STDIN",
        "to" => "TO STDOUT",
        _ => return None,
    };
    let after = after.trim_start();
    let (file, options) = match after.strip_prefix('\'') {
        Some(quoted) => quoted.split_once('\'')?,
        None => after.split_once(char::is_whitespace).unwrap_or((after, "")),
    };
    (!file.is_empty()).then(|| {
        (
            format!("COPY {what} {direction} {options}").trim_end().to_owned(),
            file.to_owned(),
        )
    })
}

/// Where the parenthesis at the front closes.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    text.char_indices().find_map(|(at, c)| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

fn failed(reason: &str) -> Outcome {
    eprintln!("{reason}");
    Outcome::Failed
}

/// A name or file without the quotes around it.
fn unquoted(text: &str) -> &str {
    let inside = |quote| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
    inside('\'').or_else(|| inside('"')).unwrap_or(text)
}

/// A string of SQL.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies() {
        for (text, expected) in [
            ("t from f.csv", Some(("COPY t FROM STDIN", "f.csv"))),
            (
                "t (a, b) FROM 'a b.csv' WITH (format csv)",
                Some(("COPY t (a, b) FROM STDIN  WITH (format csv)", "a b.csv")),
            ),
            (
                "(select (1) from t) to out csv",
                Some(("COPY (select (1) from t) TO STDOUT csv", "out")),
            ),
            ("t into f", None),
            ("t from", None),
            ("(select", None),
        ] {
            let got = copy_of(text);
            assert_eq!(got.as_ref().map(|(s, f)| (s.as_str(), f.as_str())), expected, "{text}");
        }
    }
}
