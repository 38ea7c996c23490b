//! Cursors: DECLARE, FETCH and CLOSE, on the rows of a query that has run.

use super::extended::unprepared;
use super::positioned::Standing;
use super::{NAMES_MAX, Portal, Prepared, Session, Sink, WAITING_BYTES_MAX};
use crate::bind::ident;
use crate::error::{error, fail, unsupported};
use crate::run::planned::PlanCell;
use crate::run::query::{self, Field};
use nestor_database::Database;
use nestor_database::observe::op_kind::OpKind;
use nestor_model::{Result, Value};
use sqlparser::ast::{CloseCursor, Declare, FetchDirection, Ident, Value as Literal};
use std::sync::Arc;

/// The rows of a cursor, and where it stands.
pub(super) struct Cursor {
    rows: Vec<Vec<Value>>,
    /// The table whose rows they are, if they are ones of a table: its records stand behind the columns then.
    standing: Option<Standing>,
    /// 0 before the first row, `n` on row `n`, one more behind the last.
    at: usize,
    /// It may go back.
    pub(super) scrolls: bool,
    /// When it was declared.
    pub(super) made_ms: i64,
    /// It outlives its transaction.
    pub(super) holds: bool,
    /// Its transaction has not been committed.
    pub(super) is_new: bool,
}

impl Cursor {
    /// Moves to a row, before the first or behind the last; what it stands on then.
    fn go(&mut self, to: i64) -> Option<&Vec<Value>> {
        let last = self.rows.len();
        self.at = usize::try_from(to.max(0)).unwrap_or(0).min(last + 1);
        self.rows.get(self.at.checked_sub(1)?)
    }

    fn step(&mut self, by: i64) -> Option<&Vec<Value>> {
        let at = i64::try_from(self.at).unwrap_or(i64::MAX);
        self.go(at.saturating_add(by))
    }

    /// Gives so many rows, those before when the count is negative; all with `None`.
    fn take(&mut self, count: Option<i64>, give: &mut dyn FnMut(&[Value]) -> Result<()>) -> Result<u64> {
        let by = if count.is_none_or(|count| count >= 0) { 1 } else { -1 };
        if count == Some(0) {
            return match self.step(0) {
                Some(row) => give(row).map(|()| 1),
                None => Ok(0),
            };
        }
        let mut given = 0;
        while count.is_none_or(|count| given < count.unsigned_abs()) {
            let Some(row) = self.step(by) else { break };
            give(row)?;
            given += 1;
        }
        Ok(given)
    }
}

pub(super) fn number(value: &Literal) -> Result<i64> {
    let text = value.to_string();
    text.parse()
        .map_err(|_| error("42601", format!("syntax error at or near \"{text}\"")))
}

impl Session {
    /// DECLARE. The query runs at once, so that what the cursor gives does not change.
    pub(super) fn declare(
        &mut self,
        database: &Database,
        prepared: &Prepared,
        params: &[Value],
        declared: &[Declare],
    ) -> Result<()> {
        let text = &*prepared.text;
        let [declare] = declared else {
            return unsupported("DECLARE of this form");
        };
        let ([name], Some(query)) = (declare.names.as_slice(), declare.for_query.as_deref()) else {
            return unsupported("DECLARE of this form");
        };
        let holds = declare.hold == Some(true);
        if !holds && self.block.as_ref().is_none_or(|block| block.implicit) {
            return fail("25P01", "DECLARE CURSOR can only be used in transaction blocks");
        }
        let name = ident(name);
        if self.portals.contains_key(&name) {
            return fail("42P03", format!("cursor \"{name}\" already exists"));
        }
        if self.portals.len() >= NAMES_MAX {
            return fail("53000", "too many portals");
        }
        let standing = self.standing(database, text, query)?;
        let (query, standing) = match &standing {
            Some((with_record, standing)) => (with_record, Some(standing.clone())),
            None => (query, None),
        };
        let mut fields = Vec::new();
        let rows = self.statement(database, text, OpKind::Read, |statement, facts| {
            let (mut rows, mut bytes) = (Vec::new(), 0usize);
            let mut begin = |of: &[Field]| {
                fields = of.to_vec();
                Ok(())
            };
            let mut give = |row: Vec<Value>| {
                bytes += row.iter().map(Value::weight).sum::<usize>();
                if bytes > WAITING_BYTES_MAX {
                    return fail("53200", "the rows of a cursor take too much memory");
                }
                rows.push(row);
                Ok(())
            };
            let query = (query, &PlanCell::default());
            let mut to = query::Takers {
                begin: &mut begin,
                give: &mut give,
            };
            query::run(statement, facts, query, (&prepared.types, params), &mut to)?;
            Ok(rows)
        })?;
        fields.truncate(fields.len() - standing.as_ref().map_or(0, Standing::width));
        let formats = if declare.binary == Some(true) {
            vec![1]
        } else {
            Vec::new()
        };
        let portal = Portal {
            statement: Arc::new(Prepared {
                fields: Some(fields),
                ..Prepared::new(text, None, Vec::new())
            }),
            params: Vec::new(),
            formats,
            waiting: None,
            cursor: Some(Cursor {
                rows,
                standing,
                at: 0,
                scrolls: declare.scroll != Some(false),
                made_ms: nestor_database::clock::now_ms(),
                holds,
                is_new: self.block.is_some(),
            }),
        };
        self.portals.insert(name, portal);
        Ok(())
    }

    /// Takes the cursors that routines have left open, if there is a transaction that they end with.
    ///
    /// Errors: 42P03 for a name that is taken, 53000.
    pub(super) fn take_cursors(&mut self) -> Result<()> {
        let all = self.facts.routines.handed();
        if self.block.as_ref().is_none_or(|block| block.implicit) {
            return Ok(());
        }
        for own in all {
            if self.portals.contains_key(&own.name) {
                return fail("42P03", format!("cursor \"{}\" already in use", own.name));
            }
            if self.portals.len() >= NAMES_MAX {
                return fail("53000", "too many portals");
            }
            let portal = Portal {
                statement: Arc::new(Prepared {
                    fields: Some(own.fields),
                    ..Prepared::new("", None, Vec::new())
                }),
                params: Vec::new(),
                formats: Vec::new(),
                waiting: None,
                cursor: Some(Cursor {
                    rows: own.rows,
                    standing: None,
                    at: own.at,
                    scrolls: true,
                    made_ms: nestor_database::clock::now_ms(),
                    holds: false,
                    is_new: true,
                }),
            };
            self.portals.insert(own.name, portal);
        }
        Ok(())
    }

    /// The table and the row that a cursor stands on.
    pub(super) fn cursor_row(&self, name: &str) -> Option<(Option<Standing>, Option<Vec<Value>>)> {
        let cursor = self.portals.get(name)?.cursor.as_ref()?;
        let row = cursor.at.checked_sub(1).and_then(|at| cursor.rows.get(at));
        Some((cursor.standing.clone(), row.cloned()))
    }

    /// The columns of a cursor.
    pub(super) fn cursor_fields(&self, name: &Ident) -> Option<Vec<Field>> {
        self.portals.get(&ident(name))?.statement.fields.clone()
    }

    /// FETCH, and MOVE without somewhere for the rows to go; how many there were.
    pub(super) fn fetch(
        &mut self,
        database: &Database,
        name: &Ident,
        direction: &FetchDirection,
        mut sink: Option<&mut Sink<'_, '_>>,
    ) -> Result<u64> {
        let name = ident(name);
        let is_portal = |portal: &Portal| portal.cursor.is_none() && portal.is_query();
        if self.portals.get(&name).is_some_and(is_portal) {
            return self.fetch_portal(database, &name, direction, sink);
        }
        let missing = || error("34000", format!("cursor \"{name}\" does not exist"));
        let portal = self.portals.get_mut(&name).ok_or_else(missing)?;
        let fields = portal.statement.fields.clone().unwrap_or_default();
        let cursor = portal.cursor.as_mut().ok_or_else(missing)?;
        let (last, at) = (cursor.rows.len() as i64, cursor.at as i64);
        // Where a single row is wanted, by its place; otherwise how many.
        let (place, count) = match direction {
            FetchDirection::Count { limit } => (None, Some(number(&limit.value)?)),
            FetchDirection::Next => (None, Some(1)),
            FetchDirection::Prior => (None, Some(-1)),
            FetchDirection::First => (Some(1), None),
            FetchDirection::Last => (Some(last.max(1)), None),
            FetchDirection::Absolute { limit } => match number(&limit.value)? {
                n if n < 0 => (Some((last + 1 + n).max(0)), None),
                n => (Some(n), None),
            },
            FetchDirection::Relative { limit } => (Some(at.saturating_add(number(&limit.value)?)), None),
            FetchDirection::All | FetchDirection::ForwardAll => (None, None),
            FetchDirection::Forward { limit } => {
                let limit = limit.as_ref().map(|limit| number(&limit.value)).transpose()?;
                (None, Some(limit.unwrap_or(1)))
            }
            FetchDirection::Backward { limit } => {
                let limit = limit.as_ref().map(|limit| number(&limit.value)).transpose()?;
                (None, Some(-limit.unwrap_or(1)))
            }
            FetchDirection::BackwardAll => (None, Some(i64::MIN)),
        };
        let goes_back = count.is_some_and(|count| count < 0) || place.is_some_and(|place| place < at);
        if goes_back && !cursor.scrolls {
            return fail("55000", "cursor can only scan forward");
        }
        let formats = portal.formats.clone();
        if let Some(sink) = &mut sink {
            sink.begin_as(&fields, &formats)?;
        }
        let mut give = |row: &[Value]| match &mut sink {
            Some(sink) => sink.row_as(&row[..fields.len().min(row.len())], &formats),
            None => Ok(()),
        };
        match place {
            None => cursor.take(count, &mut give),
            Some(place) => match cursor.go(place) {
                Some(row) => give(row).map(|()| 1),
                None => Ok(0),
            },
        }
    }

    /// CLOSE.
    pub(super) fn close(&mut self, cursor: &CloseCursor) -> Result<()> {
        match cursor {
            CloseCursor::All => self.portals.retain(|_, portal| portal.cursor.is_none()),
            CloseCursor::Specific { name } => {
                let name = ident(name);
                if self.portals.get(&name).is_none_or(|portal| portal.cursor.is_none()) {
                    return fail("34000", format!("cursor \"{name}\" does not exist"));
                }
                self.portals.remove(&name);
            }
        }
        Ok(())
    }

    /// Portals end with their transaction, but for cursors that hold and whose own was committed.
    pub(super) fn end_portals(&mut self, committed: bool) {
        self.portals.retain(|_, portal| match &mut portal.cursor {
            Some(cursor) if cursor.holds => {
                let stays = committed || !cursor.is_new;
                cursor.is_new = false;
                stays
            }
            _ => false,
        });
    }

    /// PREPARE.
    pub(super) fn prepare(
        &mut self,
        database: &Database,
        name: &Ident,
        types: &[sqlparser::ast::DataType],
        statement: &sqlparser::ast::Statement,
    ) -> Result<()> {
        let types = match types {
            [] => Vec::new(),
            types => self.statement(database, &statement.to_string(), OpKind::Read, |statement, facts| {
                let each = types
                    .iter()
                    .map(|ty| query::type_of(statement, facts, ty).map(|(ty, _)| ty));
                each.collect::<Result<Vec<_>>>()
            })?,
        };
        self.remember(
            database,
            &ident(name),
            &statement.to_string(),
            Some(Arc::new(statement.clone())),
            types,
        )
    }

    /// What EXECUTE runs, and its parameters.
    pub(super) fn executed(
        &mut self,
        database: &Database,
        name: &str,
        given: &[sqlparser::ast::Expr],
    ) -> Result<(Arc<Prepared>, Vec<Value>)> {
        let Some(prepared) = self.prepared.get(name).cloned() else {
            return Err(unprepared(name));
        };
        if given.len() != prepared.types.len() {
            return fail(
                "42601",
                format!("wrong number of parameters for prepared statement \"{name}\""),
            );
        }
        if given.is_empty() {
            return Ok((prepared, Vec::new()));
        }
        let casts: Vec<String> = given
            .iter()
            .zip(&prepared.types)
            .map(|(arg, ty)| format!("CAST({arg} AS {ty})"))
            .collect();
        let text = format!("SELECT {}", casts.join(", "));
        let asts = crate::parse::parse(&text)?;
        let Some(sqlparser::ast::Statement::Query(query)) = asts.first() else {
            return unsupported("EXECUTE of this form");
        };
        let mut params = Vec::new();
        self.statement(database, &text, OpKind::Read, |statement, facts| {
            let mut give = |row: Vec<Value>| {
                params = row;
                Ok(())
            };
            let query = (&**query, &PlanCell::default());
            let mut to = query::Takers {
                begin: &mut |_: &[Field]| Ok(()),
                give: &mut give,
            };
            query::run(statement, facts, query, (&[], &[]), &mut to)
        })?;
        Ok((prepared, params))
    }
}
