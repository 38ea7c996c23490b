//! Triggers of tables.

use super::own;
use sqlparser::ast::Expr;
use sqlparser::tokenizer::Token;

/// Whether a word is the row before or after what happens.
fn is_row(word: &str) -> bool {
    word.eq_ignore_ascii_case("new") || word.eq_ignore_ascii_case("old")
}

/// What happens to rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// They are inserted.
    Insert,
    /// They are deleted.
    Delete,
    /// They are changed.
    Update,
    /// All of them go.
    Truncate,
}

impl Event {
    /// As statements name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Insert => "INSERT",
            Self::Delete => "DELETE",
            Self::Update => "UPDATE",
            Self::Truncate => "TRUNCATE",
        }
    }

    /// Its bit in `pg_trigger`.
    fn bit(self) -> i16 {
        match self {
            Self::Insert => 4,
            Self::Delete => 8,
            Self::Update => 16,
            Self::Truncate => 32,
        }
    }
}

/// A trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// Its name.
    pub name: String,
    /// It is called before the rows are written.
    pub is_before: bool,
    /// It is called in the place of what happens, to rows of a view.
    pub is_instead: bool,
    /// What it is called for, and the columns that an UPDATE has to name.
    pub events: Vec<Event>,
    /// The columns of which an UPDATE has to name one; none for any.
    pub columns: Vec<String>,
    /// It is called for each row, otherwise once for a statement.
    pub is_row: bool,
    /// What has to hold.
    pub condition: Option<Box<Expr>>,
    /// The schema of the function, if it was said.
    pub schema: Option<String>,
    /// The function that is called.
    pub function: String,
    /// What it is called with.
    pub args: Vec<String>,
    /// It is not called.
    pub is_off: bool,
    /// It is a constraint: whether it may wait for the end of the transaction, and whether it does where nobody says otherwise.
    pub constraint: Option<(bool, bool)>,
    /// The names of the tables of all rows before, and after.
    pub tables: (Option<String>, Option<String>),
}

impl Trigger {
    /// Whether it is called for an event; of UPDATE the columns that are assigned.
    pub fn takes(&self, event: Event, columns: &[&str]) -> bool {
        let names_one = || self.columns.is_empty() || self.columns.iter().any(|own| columns.contains(&own.as_str()));
        !self.is_off && self.events.contains(&event) && (event != Event::Update || names_one())
    }

    /// Whether its function reads all rows of the statement as tables.
    pub fn has_tables(&self) -> bool {
        self.tables.0.is_some() || self.tables.1.is_some()
    }

    /// `BEFORE`, `AFTER` or `INSTEAD OF`.
    pub fn when(&self) -> &'static str {
        match (self.is_before, self.is_instead) {
            (true, _) => "BEFORE",
            (_, true) => "INSTEAD OF",
            _ => "AFTER",
        }
    }

    /// What it is, as `pg_trigger` has it.
    pub fn bits(&self) -> i16 {
        let events = self.events.iter().map(|event| event.bit());
        i16::from(self.is_row) + 2 * i16::from(self.is_before) + 64 * i16::from(self.is_instead) + events.sum::<i16>()
    }

    /// The statement that makes it as the catalog shows it, for the table that is shown so and with functions that `path` finds without their schema.
    pub fn shown(&self, table: &str, pretty: bool, path: &[String]) -> String {
        let condition = self.shown_condition().map(|condition| match pretty {
            true => condition,
            false => format!("({condition})"),
        });
        let path: Vec<String> = path.iter().cloned().chain(["pg_catalog".to_owned()]).collect();
        self.written(table, condition, &self.call(&path))
    }

    /// What has to hold, as the catalog shows it.
    pub fn shown_condition(&self) -> Option<String> {
        let text = self.condition.as_ref()?.to_string();
        let tokens = own::tokens(&text);
        let shown = tokens.iter().map(|token| match token {
            Token::Word(word) if word.quote_style.is_none() && is_row(&word.value) => word.value.to_lowercase(),
            token => own::shown(token),
        });
        Some(shown.collect())
    }

    /// `EXECUTE FUNCTION` and what it calls; a function that `path` finds has no schema.
    pub fn call(&self, path: &[String]) -> String {
        let schema = self.schema.as_ref().filter(|schema| !path.contains(schema));
        let schema = schema.map(|schema| format!("{}.", quoted(schema)));
        let args: Vec<String> = self
            .args
            .iter()
            .map(|arg| format!("'{}'", arg.replace('\'', "''")))
            .collect();
        format!(
            "EXECUTE FUNCTION {}{}({})",
            schema.unwrap_or_default(),
            quoted(&self.function),
            args.join(", ")
        )
    }

    /// The statement that makes it, for the table that is shown so.
    pub fn definition(&self, table: &str) -> String {
        let condition = self.condition.as_ref().map(ToString::to_string);
        self.written(table, condition, &self.call(&[]))
    }

    fn written(&self, table: &str, condition: Option<String>, call: &str) -> String {
        let events = self.events.iter().map(|event| match event {
            Event::Update if !self.columns.is_empty() => {
                let columns: Vec<String> = self.columns.iter().map(|column| quoted(column)).collect();
                format!("UPDATE OF {}", columns.join(", "))
            }
            event => event.name().to_owned(),
        });
        let condition = condition.map(|condition| format!("WHEN ({condition}) "));
        let (constraint, timing) = match self.constraint {
            None => ("", ""),
            Some((false, _)) => ("CONSTRAINT ", "NOT DEFERRABLE INITIALLY IMMEDIATE "),
            Some((true, false)) => ("CONSTRAINT ", "DEFERRABLE INITIALLY IMMEDIATE "),
            Some((true, true)) => ("CONSTRAINT ", "DEFERRABLE INITIALLY DEFERRED "),
        };
        let mut tables = String::new();
        for (which, name) in [("OLD", &self.tables.0), ("NEW", &self.tables.1)] {
            if let Some(name) = name {
                let between = if tables.is_empty() { "REFERENCING " } else { "" };
                tables.push_str(&format!("{between}{which} TABLE AS {} ", quoted(name)));
            }
        }
        format!(
            "CREATE {constraint}TRIGGER {} {} {} ON {table} {timing}{tables}FOR EACH {} {}{call}",
            quoted(&self.name),
            self.when(),
            events.collect::<Vec<_>>().join(" OR "),
            if self.is_row { "ROW" } else { "STATEMENT" },
            condition.unwrap_or_default(),
        )
    }

    /// As a table's declaration keeps it.
    pub fn kept(&self) -> String {
        let off = if self.is_off { " DISABLED" } else { "" };
        format!("{}{off}", self.definition("\"of the table\""))
    }
}

/// A name as statements have it.
pub fn quoted(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    match is_plain {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}
