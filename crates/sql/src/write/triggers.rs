//! Triggers of a statement that writes.
//!
//! Those of statements are called before its rows are computed and once all is written, those BEFORE a row right before it is written, those
//! AFTER a row when all rows are written and keys of tables are settled. Each is lent the write set, so it sees and may write what PostgreSQL
//! lets it. A row that the function of a trigger BEFORE it has changed is no row to write any more (27000).

use super::foreign::Changed;
use crate::bind::entry::{self, Object};
use crate::bind::merge::Merging;
use crate::bind::write::{Action, Write};
use crate::catalog::{Catalog as _, Column, Kind, Table, Timing};
use crate::error::{Field, error, unsupported, with};
use crate::parse::trigger::{Event, Trigger};
use crate::run::deferred::{Question, Waiting};
use crate::run::gathered::Gathered;
use crate::run::procedures::{Fate, Fired, check_transaction};
use crate::run::reader::whole_row;
use crate::run::tables::{Reading, SessionFacts};
use crate::types::stored;
use nestor_database::statement::Statement;
use nestor_database::write::rows::RowWriter;
use nestor_model::statement::work;
use nestor_model::{DocRef, Document, Error, Namespace, RawDocBuf, Result, Value};
use nestor_planner::relation::Tuple;
use nestor_storage::{View, WriteSet};
use std::sync::Arc;

/// Whether rows of a table that are written have triggers that are called when all are written.
pub(super) fn has_after(table: &Table) -> bool {
    let is_after = |own: &&Trigger| !own.is_off && !own.is_before && (own.is_row || own.has_tables());
    table.triggers.iter().any(|own| is_after(&own))
}

/// What happened to a row that was there before, or is there now.
fn event_of(was: bool, is: bool) -> Event {
    match (was, is) {
        (false, _) => Event::Insert,
        (_, false) => Event::Delete,
        _ => Event::Update,
    }
}

/// A row before and after, as far as there is one.
pub(super) type BeforeAndAfter = (Option<Vec<Value>>, Option<Vec<Value>>);

impl Changed {
    fn event(&self) -> Event {
        event_of(self.before.is_some(), self.after.is_some())
    }

    /// The row before and after, as triggers see it.
    fn rows(&self) -> Result<BeforeAndAfter> {
        let of = |doc: &Option<RawDocBuf>| {
            let doc = doc.as_ref().map(|doc| row(&self.table, doc.as_raw().as_doc()));
            doc.transpose()
        };
        Ok((of(&self.before)?, of(&self.after)?))
    }

    /// A trigger that is to be called for it later.
    fn waiting(&self, trigger: &str) -> Waiting {
        let kept = |doc: &Option<RawDocBuf>| {
            doc.as_ref()
                .map_or(Value::Null, |doc| doc.as_raw().as_doc().to_document().into())
        };
        Waiting {
            table: self.ns.clone(),
            constraint: trigger.to_owned(),
            written: self.ns.clone(),
            key: vec![kept(&self.before), kept(&self.after)],
            question: Question::Called,
        }
    }
}

/// The tables of a statement's rows that triggers read, each made once.
#[derive(Default)]
struct Transitions(Vec<(String, Event, bool, Arc<Vec<Tuple>>)>);

impl Transitions {
    /// Those that a trigger of a table reads.
    fn of(
        &mut self,
        (table, event): (&Table, Event),
        trigger: &Trigger,
        rows: &[Changed],
        gathered: &mut Gathered,
    ) -> Result<Arc<[Arc<Table>]>> {
        let mut out = Vec::new();
        for (is_old, name) in [(true, &trigger.tables.0), (false, &trigger.tables.1)] {
            let Some(name) = name else { continue };
            let rows = self.rows((table, event), is_old, rows, gathered)?;
            let columns = table.columns.iter().map(|column| Column {
                modifier: column.modifier,
                ..Column::new(&column.name, column.ty.clone())
            });
            out.push(Arc::new(Table::new(name, columns.collect(), Kind::Rows(rows))));
        }
        Ok(out.into())
    }

    fn rows(
        &mut self,
        (table, event): (&Table, Event),
        is_old: bool,
        rows: &[Changed],
        gathered: &mut Gathered,
    ) -> Result<Arc<Vec<Tuple>>> {
        let is_it =
            |own: &&(String, Event, bool, Arc<Vec<Tuple>>)| own.0 == table.name && own.1 == event && own.2 == is_old;
        if let Some((.., known)) = self.0.iter().find(is_it) {
            return Ok(known.clone());
        }
        let mut out = Vec::new();
        for changed in rows {
            if changed.event() != event || changed.table.name != table.name || changed.table.schema != table.schema {
                continue;
            }
            let (old, new) = changed.rows()?;
            let Some(own) = (if is_old { old } else { new }) else {
                continue;
            };
            gathered.grow(size_of::<Tuple>() + own.iter().map(Value::weight).sum::<usize>())?;
            out.push(own);
        }
        let out = Arc::new(out);
        self.0.push((table.name.clone(), event, is_old, out.clone()));
        Ok(out)
    }
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
    pub(super) fn call(
        &self,
        of: (&Table, u32),
        trigger: &Trigger,
        event: Event,
        rows: BeforeAndAfter,
    ) -> Result<Fate> {
        self.call_with(of, trigger, event, rows, Arc::default())
    }

    /// The same, with tables of the statement's rows.
    fn call_with(
        &self,
        (table, oid): (&Table, u32),
        trigger: &Trigger,
        event: Event,
        (old, new): BeforeAndAfter,
        tables: Arc<[Arc<Table>]>,
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
            tables,
        };
        procedures.fire(self.statement, self.session, &fired)
    }

    /// The number of a table.
    pub(super) fn oid(&self, view: &dyn View, table: &Table) -> Result<u32> {
        let (op, _) = self.statement.operation(None)?;
        Ok(Reading::new(self.statement, view, &op, self.session).number_of(table))
    }

    /// Calls the triggers of a statement on a table.
    fn of_statement(
        &self,
        ws: &mut WriteSet,
        done: &Done,
        is_before: bool,
        (mut tables, gathered): (
            impl FnMut(&Trigger, &mut Gathered) -> Result<Arc<[Arc<Table>]>>,
            &mut Gathered,
        ),
    ) -> Result<()> {
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
            let tables = tables(trigger, gathered)?;
            self.statement.lend(ws, || {
                self.call_with((&done.table, oid), trigger, done.event, (None, None), tables)
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
        let none = |_: &Trigger, _: &mut Gathered| Ok(Arc::default());
        for own in &done {
            self.of_statement(ws, own, true, (none, &mut Gathered::new()))?;
        }
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
            let none = |_: &Trigger, _: &mut Gathered| Ok(Arc::default());
            self.of_statement(ws, &done, is_before, (none, &mut Gathered::new()))?;
        }
        Ok(())
    }

    /// Calls those after rows, then those behind statements; what is to be called later is given back.
    ///
    /// Errors: those of the triggers.
    pub(super) fn after(
        &self,
        ws: &mut WriteSet,
        rows: &[Changed],
        done: &[Done],
        gathered: &mut Gathered,
    ) -> Result<Vec<Waiting>> {
        let mut waiting = Vec::new();
        let mut transitions = Transitions::default();
        for changed in rows {
            work(1)?;
            let table = &changed.table;
            let event = changed.event();
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
            for trigger in own {
                if self.waits(&changed.ns, trigger) {
                    waiting.push(changed.waiting(&trigger.name));
                    continue;
                }
                let (old, new) = changed.rows()?;
                let tables = transitions.of((table, event), trigger, rows, gathered)?;
                self.statement.lend(ws, || {
                    self.call_with((table, oid), trigger, event, (old, new), tables)
                        .map(drop)
                })?;
            }
        }
        // The last of several first.
        for own in done.iter().rev() {
            let tables = |trigger: &Trigger, gathered: &mut Gathered| {
                transitions.of((&own.table, own.event), trigger, rows, gathered)
            };
            self.of_statement(ws, own, false, (tables, gathered))?;
        }
        Ok(waiting)
    }

    /// Whether a trigger waits for the end of the transaction.
    fn waits(&self, ns: &Namespace, trigger: &Trigger) -> bool {
        let timing = match trigger.constraint {
            None | Some((false, _)) => Timing::AtOnce,
            Some((true, false)) => Timing::Deferrable,
            Some((true, true)) => Timing::Deferred,
        };
        self.session.deferred.waits(ns, (&trigger.name, timing))
    }

    /// Calls a trigger that has waited, if it is there still.
    ///
    /// Errors: those of the trigger.
    pub(super) fn called_late(&self, ws: &mut WriteSet, table: &Arc<Table>, waiting: &Waiting) -> Result<()> {
        let Some(trigger) = table
            .triggers
            .iter()
            .find(|own| own.name == waiting.constraint && !own.is_off)
        else {
            return Ok(());
        };
        let doc = |at: usize| match waiting.key.get(at) {
            Some(Value::Document(doc)) => row(table, doc.as_ref()).map(Some),
            _ => Ok(None),
        };
        let (old, new) = (doc(0)?, doc(1)?);
        let event = event_of(old.is_some(), new.is_some());
        let oid = self.oid(&*ws, table)?;
        self.statement
            .lend(ws, || self.call((table, oid), trigger, event, (old, new)).map(drop))
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
    let mut row = whole_row(table, doc)?;
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
