//! Triggers of a statement that writes.
//!
//! Those of statements are called before its rows are computed and once all is written, those BEFORE a row right before it is written, those
//! AFTER a row when all rows are written and keys of tables are settled. Each is lent the write set, so it sees and may write what PostgreSQL
//! lets it. A row that the function of a trigger BEFORE it has changed is no row to write any more (27000).

use super::foreign::Changed;
use crate::bind::entry::{self, Object};
use crate::bind::merge::Merging;
use crate::bind::write::{Action, Write};
use crate::catalog::{Catalog as _, Table};
use crate::error::{Field, error, unsupported, with};
use crate::parse::trigger::{Event, Trigger};
use crate::run::procedures::{Fate, Fired, check_transaction};
use crate::run::reader::row_of;
use crate::run::tables::{Reading, SessionFacts};
use crate::types::stored;
use nestor_database::statement::Statement;
use nestor_database::write::rows::RowWriter;
use nestor_model::statement::work;
use nestor_model::{DocRef, Document, Error, Namespace, Result, Value};
use nestor_storage::{View, WriteSet};
use std::sync::Arc;

/// Whether rows of a table that are written have triggers that are called when all are written.
pub(super) fn has_after(table: &Table) -> bool {
    let is_after = |own: &&Trigger| !own.is_off && own.is_row && !own.is_before;
    table.triggers.iter().any(|own| is_after(&own))
}

/// What a statement does to a table, with the columns that it assigns.
#[derive(Clone, Debug)]
pub(super) struct Done {
    table: Arc<Table>,
    event: Event,
    columns: Arc<[String]>,
}

/// What a statement does.
fn events(write: &Write) -> Vec<(Event, Vec<String>)> {
    let named = |targets: &[crate::bind::write::Target]| targets.iter().map(|own| own.column.clone()).collect();
    match &write.action {
        Action::Insert { conflict, .. } => {
            let mut out = vec![(Event::Insert, Vec::new())];
            if let Some(update) = conflict.as_ref().and_then(|conflict| conflict.update.as_ref()) {
                out.push((Event::Update, named(&update.targets)));
            }
            out
        }
        Action::Update { targets } => vec![(Event::Update, named(targets))],
        Action::Delete => vec![(Event::Delete, Vec::new())],
        Action::Merge { clauses } => {
            let mut out: Vec<(Event, Vec<String>)> = Vec::new();
            for clause in clauses {
                let (event, columns) = match clause {
                    Merging::Insert { .. } => (Event::Insert, Vec::new()),
                    Merging::Update { targets, .. } => (Event::Update, named(targets)),
                    Merging::Delete => (Event::Delete, Vec::new()),
                    Merging::Nothing => continue,
                };
                match out.iter_mut().find(|(own, _)| *own == event) {
                    Some((_, all)) => all.extend(columns),
                    None => out.push((event, columns)),
                }
            }
            let place = |event: Event| [Event::Insert, Event::Update].iter().position(|own| *own == event);
            out.sort_by_key(|(event, _)| place(*event).unwrap_or(2));
            out
        }
    }
}

/// Whether a table has triggers that one of the events calls.
fn is_any(table: &Table, events: &[(Event, Vec<String>)]) -> bool {
    events.iter().any(|(event, columns)| {
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        table.triggers.iter().any(|own| own.takes(*event, &columns))
    })
}

/// Who calls triggers.
#[derive(Clone, Copy)]
pub(super) struct Calling<'a, 'r> {
    pub(super) statement: &'a Statement<'r>,
    pub(super) session: &'a SessionFacts,
}

impl Calling<'_, '_> {
    /// What a trigger does with a row.
    fn call(
        &self,
        (table, oid): (&Table, u32),
        trigger: &Trigger,
        event: Event,
        (old, new): (Option<Vec<Value>>, Option<Vec<Value>>),
    ) -> Result<Fate> {
        let Some(procedures) = self.session.procedures else {
            return unsupported("a trigger in this place");
        };
        let condition = trigger.condition.as_ref().map(ToString::to_string);
        let fired = Fired {
            name: &trigger.name,
            schema: trigger.schema.as_deref(),
            function: &trigger.function,
            condition: condition.as_deref(),
            args: &trigger.args,
            table,
            oid,
            event,
            when: trigger.when(),
            is_row: trigger.is_row,
            old,
            new,
        };
        procedures.fire(self.statement, self.session, &fired)
    }

    /// The number of a table.
    fn oid(&self, view: &dyn View, table: &Table) -> Result<u32> {
        let (op, _) = self.statement.operation(None)?;
        Ok(Reading::new(self.statement, view, &op, self.session).number_of(table))
    }

    /// Calls the triggers of a statement on a table.
    fn of_statement(&self, ws: &mut WriteSet, done: &Done, is_before: bool) -> Result<()> {
        let columns: Vec<&str> = done.columns.iter().map(String::as_str).collect();
        let all = done.table.triggers.iter();
        let own = all.filter(|own| !own.is_row && own.is_before == is_before && own.takes(done.event, &columns));
        let own: Vec<&Trigger> = own.collect();
        if own.is_empty() {
            return Ok(());
        }
        let oid = self.oid(&*ws, &done.table)?;
        for trigger in own {
            work(1)?;
            self.statement.lend(ws, || {
                self.call((&done.table, oid), trigger, done.event, (None, None))
                    .map(drop)
            })?;
        }
        Ok(())
    }

    /// Calls those before a statement; what is to be told to those behind it.
    ///
    /// Errors: those of the triggers; that the statement has to run within a transaction.
    pub(super) fn before(&self, ws: &mut WriteSet, write: &Write) -> Result<Vec<Done>> {
        if write.table.triggers.is_empty() {
            return Ok(Vec::new());
        }
        let events = events(write);
        if !is_any(&write.table, &events) {
            return Ok(Vec::new());
        }
        check_transaction(self.statement)?;
        if write.element.is_some() {
            return unsupported("to write elements of a table that has triggers");
        }
        let done: Vec<Done> = events
            .into_iter()
            .map(|(event, columns)| Done {
                table: write.table.clone(),
                event,
                columns: columns.into(),
            })
            .collect();
        done.iter().try_for_each(|own| self.of_statement(ws, own, true))?;
        Ok(done)
    }

    /// Calls those of TRUNCATE.
    ///
    /// Errors: those of the triggers.
    pub(super) fn of_truncate(&self, ws: &mut WriteSet, tables: &[Namespace], is_before: bool) -> Result<()> {
        for ns in tables {
            let table = ws.catalog().get(ns).and_then(|collection| match entry::of(collection) {
                Some(Object::Table(_, table)) => Some(table.clone()),
                _ => None,
            });
            let Some(table) = table.filter(|table| table.triggers.iter().any(|own| own.takes(Event::Truncate, &[])))
            else {
                continue;
            };
            check_transaction(self.statement)?;
            let done = Done {
                table,
                event: Event::Truncate,
                columns: Arc::default(),
            };
            self.of_statement(ws, &done, is_before)?;
        }
        Ok(())
    }

    /// Calls those after rows, then those behind statements.
    ///
    /// Errors: those of the triggers.
    pub(super) fn after(&self, ws: &mut WriteSet, rows: Vec<Changed>, done: &[Done]) -> Result<()> {
        for changed in rows {
            work(1)?;
            let table = &changed.table;
            let event = match (&changed.before, &changed.after) {
                (None, _) => Event::Insert,
                (_, None) => Event::Delete,
                _ => Event::Update,
            };
            let columns: Vec<&str> = changed.assigned.iter().map(String::as_str).collect();
            let own = table
                .triggers
                .iter()
                .filter(|own| own.is_row && !own.is_before && own.takes(event, &columns));
            let own: Vec<&Trigger> = own.collect();
            if own.is_empty() {
                continue;
            }
            check_transaction(self.statement)?;
            let oid = self.oid(&*ws, table)?;
            let row = |doc: &Option<nestor_model::RawDocBuf>| {
                let doc = doc.as_ref().map(|doc| row(table, doc.as_raw().as_doc()));
                doc.transpose()
            };
            let (old, new) = (row(&changed.before)?, row(&changed.after)?);
            for trigger in own {
                self.statement.lend(ws, || {
                    let rows = (old.clone(), new.clone());
                    self.call((table, oid), trigger, event, rows).map(drop)
                })?;
            }
        }
        // The last of several first.
        done.iter().rev().try_for_each(|own| self.of_statement(ws, own, false))
    }

    /// Calls those before a row is written, which may change it; false when it is to be left alone.
    ///
    /// Errors: those of the triggers; 27000 when one of them changed the record that was to be changed.
    pub(super) fn before_row(
        &self,
        writer: &mut RowWriter<'_, '_>,
        (table, event, columns): (&Table, Event, &[&str]),
        (old, mut new): (Option<(&[u8], DocRef<'_>)>, Option<&mut Document>),
    ) -> Result<bool> {
        let own = table
            .triggers
            .iter()
            .filter(|own| own.is_row && own.is_before && own.takes(event, columns));
        let own: Vec<&Trigger> = own.collect();
        if own.is_empty() {
            return Ok(true);
        }
        check_transaction(self.statement)?;
        let oid = self.oid(writer.view(), table)?;
        let before = match &old {
            Some((record, _)) => writer.get(record)?,
            None => None,
        };
        let row_before = old.as_ref().map(|(_, doc)| row(table, *doc)).transpose()?;
        let mut kept = true;
        for trigger in own {
            let row_after = match &new {
                Some(doc) => Some(row(table, doc.as_ref())?),
                None => None,
            };
            let given = (row_before.clone(), row_after.clone());
            let fate = writer.lend(|| self.call((table, oid), trigger, event, given))?;
            match (fate, &mut new) {
                (Fate::Gone, _) => {
                    kept = false;
                    break;
                }
                (Fate::Row(now), Some(doc)) => write_row(table, doc, row_after.as_deref().unwrap_or_default(), now),
                _ => {}
            }
        }
        if let Some((record, _)) = &old {
            let now = writer.get(record)?;
            let is_same = match (&before, &now) {
                (Some(before), Some(now)) => before[..] == now[..],
                (None, None) => true,
                _ => false,
            };
            if !is_same && kept {
                return Err(modified(event));
            }
        }
        Ok(kept)
    }
}

/// 27000: a row is not as it was when the statement computed what becomes of it.
pub(super) fn modified(event: Event) -> Error {
    let what = match event {
        Event::Delete => "deleted",
        _ => "updated",
    };
    let message = format!("tuple to be {what} was already modified by an operation triggered by the current command");
    let hint = "Consider using an AFTER trigger instead of a BEFORE trigger to propagate changes to other rows.";
    with(error("27000", message), &[(Field::Hint, hint)])
}

/// The row of a document as triggers see it.
fn row(table: &Table, doc: DocRef<'_>) -> Result<Vec<Value>> {
    let mut row = row_of(table, &vec![true; table.columns.len() + 2], doc, None)?;
    row.truncate(table.columns.len());
    Ok(row)
}

/// Writes the columns that are others than before.
fn write_row(table: &Table, doc: &mut Document, before: &[Value], now: Vec<Value>) {
    for ((column, before), now) in table.columns.iter().zip(before).zip(now) {
        if before.identical(&now) {
            continue;
        }
        match now {
            Value::Null => drop(doc.remove(&column.path)),
            value => doc.set(&column.path, stored::write(&column.ty, value)),
        }
    }
}

/// Whether a table's rows are written beside triggers that see them before.
pub(super) fn has_before(table: &Table, event: Event) -> bool {
    let is_it = |own: &&Trigger| !own.is_off && own.is_row && own.is_before && own.events.contains(&event);
    table.triggers.iter().any(|own| is_it(&own))
}
