//! Cursors of blocks: the rows of a query, and a place among them.

use super::{Flow, Rows, Running};
use crate::error::{error, fail};
use crate::parse::procedural::{Destination, Direction, Given, Kind, Opened, Step};
use crate::run::procedures::Handed;
use crate::run::query::Field;
use crate::types::Type;
use nestor_model::{Result, Value};

/// A cursor that is open.
pub(super) struct Cursor {
    fields: Vec<Field>,
    rows: Vec<Vec<Value>>,
    /// How many rows are before it; it stands on the last of them.
    at: i64,
}

impl Running<'_, '_> {
    /// The name under which a cursor is open, of a variable that is one.
    fn cursor_name(&self, variable: &str) -> Result<(usize, String)> {
        let Some(at) = self.place(variable) else {
            return fail("42601", format!("\"{variable}\" is not a known variable"));
        };
        match &self.variables[at].value {
            Value::String(name) if self.variables[at].record.is_none() => Ok((at, name.to_string())),
            Value::Null => Ok((at, String::new())),
            _ => fail(
                "42804",
                format!("variable \"{variable}\" must be of type cursor or refcursor"),
            ),
        }
    }

    pub(super) fn open(&mut self, variable: &str, query: &Opened) -> Result<()> {
        let (at, mut name) = self.cursor_name(variable)?;
        if name.is_empty() {
            name = format!("<unnamed portal {}>", self.facts.routines.next_portal());
        }
        if self.cursors.contains_key(&name) {
            return fail("42P03", format!("cursor \"{name}\" already in use"));
        }
        let rows = match query {
            Opened::Declared(given) => self.declared_rows(at, given)?,
            Opened::Query(text) => self.rows(text, &[])?,
            Opened::Computed(text, using) => {
                let text = self.text(text)?;
                let given = self.values(using)?;
                self.computed(&text, &given)?
            }
        };
        self.variables[at].value = Value::String(name.as_str().into());
        let cursor = Cursor {
            fields: rows.fields,
            rows: rows.rows,
            at: 0,
        };
        self.cursors.insert(name, cursor);
        Ok(())
    }

    /// Leaves cursors that are open to the session: they end with its transaction.
    pub(super) fn hand_cursors(&mut self) {
        for (name, cursor) in self.cursors.drain() {
            self.facts.routines.hand(Handed {
                name,
                fields: cursor.fields,
                rows: cursor.rows,
                at: usize::try_from(cursor.at).unwrap_or(0),
            });
        }
    }

    /// The rows of the query that a cursor is declared with.
    fn declared_rows(&mut self, at: usize, given: &Given) -> Result<Rows> {
        let own = &self.variables[at];
        let (label, kind) = (own.name.clone(), own.cursor.clone());
        let Some(Kind::Cursor { args, query }) = kind.as_deref() else {
            return fail("42601", format!("cursor variable \"{label}\" is not bound to a query"));
        };
        if args.len() != given.len() {
            let what = if given.len() < args.len() {
                "not enough"
            } else {
                "too many"
            };
            return fail("42601", format!("{what} arguments for cursor \"{label}\""));
        }
        let outside = self.variables.len();
        let mut made = Vec::new();
        for (place, (name, ty)) in args.iter().enumerate() {
            let said = given.iter().find(|(own, _)| own.as_ref() == Some(name));
            let value = match said.or(given.get(place).filter(|(own, _)| own.is_none())) {
                Some((_, value)) => value,
                None => {
                    return fail(
                        "42601",
                        format!("value for parameter \"{name}\" of cursor \"{label}\" is missing"),
                    );
                }
            };
            let (ty, value) = self.value(value, ty)?;
            let mut own = super::Variable::new(name, ty, value);
            own.label = Some(label.clone());
            made.push(own);
        }
        self.variables.extend(made);
        let rows = self.rows(query, &[]);
        self.variables.truncate(outside);
        rows
    }

    pub(super) fn fetch(&mut self, variable: &str, direction: &Direction, into: Option<&Destination>) -> Result<()> {
        let (_, name) = self.cursor_name(variable)?;
        let (by, is_place) = match direction {
            Direction::By(by) => (
                self.number(by, "relative or absolute cursor position is null; it")?,
                false,
            ),
            Direction::To(to) => (
                self.number(to, "relative or absolute cursor position is null; it")?,
                true,
            ),
            Direction::All(true) => (i64::MIN / 2, false),
            Direction::All(false) => (i64::MAX / 2, false),
        };
        let Some(cursor) = self.cursors.get_mut(&name) else {
            return Err(none(&name));
        };
        let last = cursor.rows.len() as i64;
        let before = cursor.at;
        let wanted = match is_place {
            true if by < 0 => last + 1 + by,
            true => by,
            false => before.saturating_add(by),
        };
        cursor.at = wanted.clamp(0, last + 1);
        let row = usize::try_from(cursor.at - 1)
            .ok()
            .and_then(|at| cursor.rows.get(at))
            .cloned();
        let fields = cursor.fields.clone();
        let passed = match into {
            Some(_) => u64::from(row.is_some()),
            None if is_place => u64::from(row.is_some()),
            None => {
                let on = |at: i64| at.clamp(0, last);
                let whole = (on(cursor.at) - on(before)).unsigned_abs();
                // Backwards the row that it stands on is not one of them.
                match by < 0 && before <= last && cursor.at == 0 {
                    true => whole.saturating_sub(1),
                    false => whole,
                }
            }
        };
        self.count = passed;
        self.found(passed > 0);
        match into {
            Some(into) => self.set_row(&into.names, fields, row),
            None => Ok(()),
        }
    }

    pub(super) fn close(&mut self, variable: &str) -> Result<()> {
        let (_, name) = self.cursor_name(variable)?;
        match self.cursors.remove(&name) {
            Some(_) => Ok(()),
            None => Err(none(&name)),
        }
    }

    pub(super) fn over_cursor(
        &mut self,
        (label, name, steps): (Option<&str>, &str, &[Step]),
        (cursor, args): (&str, &Given),
    ) -> Result<Flow> {
        let (at, open) = self.cursor_name(cursor)?;
        if self.cursors.contains_key(&open) {
            return fail("42P03", format!("cursor \"{open}\" already in use"));
        }
        if self.variables[at].cursor.is_none() {
            return fail("42601", "cursor FOR loop must use a bound cursor variable");
        }
        let rows = self.declared_rows(at, args)?;
        // The record is the loop's own.
        let mut own = super::Variable::of(name, Type::Record, Value::Null);
        own.label = label.map(str::to_owned);
        self.variables.push(own);
        let flow = self.each_row((label, &[name.to_owned()], steps), rows);
        self.variables.pop();
        flow
    }
}

fn none(name: &str) -> nestor_model::Error {
    match name {
        "" => error("22004", "cursor variable is null"),
        name => error("34000", format!("cursor \"{name}\" does not exist")),
    }
}
