//! The rows of a table that is declared anew.
//!
//! All of them are looked at in the state of the write set, and what they become is kept until the catalog has the new declaration; only
//! then they are written. Where no row would be another one and nothing new is to hold of them, none is looked at.

use crate::bind::Binder;
use crate::bind::alter::{Source, Turning};
use crate::catalog::{Column, Table};
use crate::error::{self, Field};
use crate::run::gathered::Gathered;
use crate::run::numbers::exhausted;
use crate::run::reader::row_of;
use crate::run::tables::{Reading, SessionFacts};
use crate::types::cast::whole;
use crate::types::stored;
use crate::write::{self, WRITTEN_FACTOR};
use nestor_database::statement::Statement;
use nestor_database::write::rows::RowWriter;
use nestor_database::write::sequence;
use nestor_model::statement::work;
use nestor_model::{Document, Namespace, Result, Value, ValueRef, values_equal};
use nestor_planner::relation::{Env, Scalar as _};
use nestor_query::env::{OpContext, Scope};
use nestor_query::update::{Update, UpdateOptions};
use nestor_storage::{Bytes, Collection, View as _, WriteSet};
use std::sync::Arc;

/// A table as it was and as it is to be.
pub(super) struct Change<'c, 'r> {
    pub(super) statement: &'c Statement<'r>,
    pub(super) session: &'c SessionFacts,
    pub(super) op: &'c OpContext,
    pub(super) old: &'c Arc<Table>,
    pub(super) new: &'c Arc<Table>,
    pub(super) sources: &'c [Source],
    pub(super) collection: &'c Arc<Collection>,
}

/// A row that is to be another one.
struct Row {
    record: Bytes,
    before: Bytes,
    doc: Document,
}

/// The rows that change.
#[derive(Default)]
pub(super) struct Rows {
    changed: Vec<Row>,
}

/// How the rows change.
struct Plan {
    turning: Turning,
    /// Columns of fields that go, but `_id`, which every document has.
    dropped: Vec<String>,
    /// Fields that become others: the path before, the column.
    moved: Vec<(String, usize)>,
    /// Columns that count from now on.
    counting: Vec<usize>,
    /// Columns in which nulls are looked for.
    not_null: Vec<usize>,
    /// The rows are written.
    writes: bool,
}

impl Change<'_, '_> {
    /// The column that column `at` was.
    fn before(&self, at: usize) -> Option<&Column> {
        let before = self.sources.get(at).and_then(Source::before)?;
        self.old.columns.get(before)
    }

    fn plan(&self, ws: &WriteSet) -> Result<Plan> {
        let reading = Reading::new(self.statement, ws, self.op, self.session);
        let mut turning = Binder::new(&reading, Vec::new()).turning(self.old, self.new, self.sources)?;
        let new = || self.new.columns.iter().enumerate();
        let turns = self.sources.iter().any(|source| matches!(source, Source::Turned(..)));
        let is_valid = |name: &String| {
            self.new
                .checks
                .iter()
                .any(|check| check.name == *name && check.is_valid)
        };
        turning.checks.retain(|(name, _)| is_valid(name));
        if !turns {
            // What held before holds of rows that are the same in it.
            let known = |name: &String| {
                let mut before = self.old.checks.iter();
                before.any(|check| check.name == *name && check.is_valid)
            };
            turning.checks.retain(|(name, _)| !known(name));
        }
        let kept: Vec<usize> = self.sources.iter().filter_map(Source::before).collect();
        let gone = self.old.columns.iter().enumerate();
        let gone = gone.filter(|(at, column)| !kept.contains(at) && column.path != "_id");
        let moved = new().filter_map(|(at, column)| {
            let before = self.before(at)?;
            (before.path != column.path).then(|| (before.path.clone(), at))
        });
        let is_new = |at: usize| self.before(at).is_none();
        let counting = new().filter(|(at, column)| column.identity.is_some() && is_new(*at));
        let computed = new().any(|(at, column)| column.generated.is_some() && is_new(at));
        let not_null = new().filter(|(at, column)| {
            let was = matches!(self.sources.get(*at), Some(Source::Kept(_)));
            column.not_null && !(was && self.before(*at).is_some_and(|before| before.not_null))
        });
        let mut plan = Plan {
            dropped: gone.map(|(_, column)| column.path.clone()).collect(),
            moved: moved.collect(),
            counting: counting.map(|(at, _)| at).collect(),
            not_null: not_null.map(|(at, _)| at).collect(),
            writes: computed,
            turning,
        };
        let fields = plan.dropped.len() + plan.moved.len() + plan.counting.len() + plan.turning.values.len();
        plan.writes |= fields > 0;
        Ok(plan)
    }

    /// The first numbers of the columns that count from now on, for as many rows as there are. They are their sequences' own, and
    /// later than the commit: whoever tries again gives the same ones.
    fn numbers(&self, ws: &WriteSet, counting: &[usize]) -> Result<Vec<Vec<i64>>> {
        let count = usize::try_from(ws.counts(self.collection).0).unwrap_or(0);
        let each = counting.iter().map(|at| {
            let column = &self.new.columns[*at];
            let Some(identity) = column.identity else {
                return Ok(Vec::new());
            };
            let counting = identity.counting;
            let mut out = Vec::new();
            let mut next = Some(counting.start);
            for _ in 0..count {
                let Some(number) = next else {
                    return Err(exhausted(&column.sequence_of(&self.new.name), &counting));
                };
                work(1)?;
                out.push(number);
                next = counting.after(number);
            }
            let state = match out.last() {
                Some(last) => (*last, true),
                None => (counting.start, false),
            };
            let key = sequence::Key {
                collection: self.collection.uuid,
                column: &column.name,
            };
            sequence::set(self.statement, &self.collection.ns.db, key, state)?;
            Ok(out)
        });
        each.collect()
    }

    /// What the rows become, each of which `look` sees.
    ///
    /// Errors: 23502, 23514, those of expressions and of `look`.
    pub(super) fn gather(
        &self,
        ws: &mut WriteSet,
        gathered: &mut Gathered,
        look: Option<&mut dyn FnMut(&Document)>,
    ) -> Result<Rows> {
        let plan = self.plan(ws)?;
        let is_idle = plan.turning.checks.is_empty() && plan.not_null.is_empty() && look.is_none() && !plan.writes;
        let mut out = Rows::default();
        if is_idle {
            return Ok(out);
        }
        // Nobody writes rows that were not looked at.
        ws.require_unwritten(self.collection.id);
        let numbers = self.numbers(ws, &plan.counting)?;
        let reading = Reading::new(self.statement, &*ws, self.op, self.session);
        let env = Env {
            op: self.op,
            params: &[],
            outer: None,
            effects: Some(&reading),
            compared: None,
        };
        let mut look = look;
        let mut cursor = ws.cursor(self.collection.records);
        let (mut more, mut row) = (cursor.first()?, 0);
        while more {
            work(1)?;
            let before = cursor.value_bytes()?;
            let doc = before.document().as_doc().to_document();
            let numbers = numbers.iter().map(|numbers| numbers.get(row).copied());
            let new = match plan.writes {
                true => self.turned(&plan, doc.clone(), numbers.collect(), &env)?,
                false => doc.clone(),
            };
            self.check(&plan, &new, &env)?;
            if let Some(look) = &mut look {
                gathered.grow(before.len())?;
                look(&new);
            }
            if plan.writes && new.to_raw().as_bytes() != doc.to_raw().as_bytes() {
                gathered.grow(size_of::<Row>() + 2 * before.len() * WRITTEN_FACTOR)?;
                out.changed.push(Row {
                    record: Bytes::copy_from(cursor.key()),
                    before,
                    doc: new,
                });
            }
            row += 1;
            more = cursor.next()?;
        }
        Ok(out)
    }

    /// What a row becomes.
    fn turned(&self, plan: &Plan, mut doc: Document, numbers: Vec<Option<i64>>, env: &Env<'_>) -> Result<Document> {
        let mut values: Vec<(usize, Option<Value>)> = Vec::new();
        if !plan.turning.values.is_empty() {
            let needed = vec![true; self.old.columns.len() + 2];
            let row = row_of(self.old, &needed, doc.as_ref(), None)?;
            for (at, expr) in &plan.turning.values {
                let value = expr.value(&row, env)?;
                values.push((*at, self.held(*at, value)));
            }
        }
        for (at, number) in plan.counting.iter().zip(numbers) {
            let column = &self.new.columns[*at];
            let number = number.map_or(Ok(Value::Null), |number| whole(number, &column.ty))?;
            values.push((*at, self.held(*at, number)));
        }
        for (path, at) in &plan.moved {
            let value = match path.as_str() {
                "_id" => doc.get("_id").map(|id| id.to_value()),
                path => doc.remove(path),
            };
            if !values.iter().any(|(own, _)| own == at) {
                values.push((*at, value));
            }
        }
        for path in &plan.dropped {
            drop(doc.remove(path));
        }
        for (at, value) in values {
            self.put(&mut doc, at, value);
        }
        if !plan.turning.generated.is_empty() {
            let needed = vec![true; self.new.columns.len() + 2];
            let row = row_of(self.new, &needed, doc.as_ref(), None)?;
            for (at, expr) in &plan.turning.generated {
                let value = expr.value(&row, env)?;
                self.put(&mut doc, *at, self.held(*at, value));
            }
        }
        Ok(doc)
    }

    /// What documents have of a value of a column; SQL's null is nothing.
    fn held(&self, at: usize, value: Value) -> Option<Value> {
        match value {
            Value::Null => None,
            value => Some(stored::write(&self.new.columns[at].ty, value)),
        }
    }

    fn put(&self, doc: &mut Document, at: usize, value: Option<Value>) {
        let path = &self.new.columns[at].path;
        match value {
            None => drop(doc.remove(path)),
            Some(value) => doc.set(path, value),
        }
    }

    fn check(&self, plan: &Plan, doc: &Document, env: &Env<'_>) -> Result<()> {
        let table = &self.new.name;
        for at in &plan.not_null {
            let column = &self.new.columns[*at];
            if column.is_null(doc.get(&column.path)) {
                let message = format!(
                    "column \"{}\" of relation \"{table}\" contains null values",
                    column.name
                );
                return Err(error::with(
                    error::error("23502", message),
                    &[
                        (Field::Schema, &self.new.schema),
                        (Field::Table, table),
                        (Field::Column, &column.name),
                    ],
                ));
            }
        }
        if plan.turning.checks.is_empty() {
            return Ok(());
        }
        let needed = vec![true; self.new.columns.len() + 2];
        let row = row_of(self.new, &needed, doc.as_ref(), None)?;
        for (name, condition) in &plan.turning.checks {
            if matches!(condition.value(&row, env)?, Value::Bool(false)) {
                let message = format!("check constraint \"{name}\" of relation \"{table}\" is violated by some row");
                return Err(error::with(
                    error::error("23514", message),
                    &[
                        (Field::Schema, &self.new.schema),
                        (Field::Table, table),
                        (Field::Constraint, name),
                    ],
                ));
            }
        }
        Ok(())
    }

    /// Writes the rows that change. Documents whose `_id` becomes another one are deleted first, and inserted when all of them are gone.
    ///
    /// Errors: 23505 for a primary key that is not one, those of writing.
    pub(super) fn write(&self, ws: &mut WriteSet, ns: &Namespace, rows: Rows) -> Result<()> {
        if rows.changed.is_empty() {
            return Ok(());
        }
        let mut writer = RowWriter::open(self.statement, ws, ns, self.op)?;
        let mut scope = Scope::new();
        let mut moved: Vec<Document> = Vec::new();
        for Row { record, before, doc } in rows.changed {
            work(1)?;
            let is_same = match (doc.get("_id"), before.document().get("_id")) {
                (Some(new), Some(old)) => values_equal(new, old),
                _ => false,
            };
            if !is_same {
                writer.delete(&record, &before)?;
                moved.push(doc);
                continue;
            }
            let update = Update::parse(ValueRef::Document(doc.as_ref()), UpdateOptions::default(), &mut scope)?;
            let written = writer.update(&record, &before, &update, &mut |_| Ok(()));
            written.map_err(|error| write::told(error, (self.new, true), writer.collection()))?;
        }
        for doc in moved {
            work(1)?;
            let written = writer.insert(doc.to_raw().as_raw());
            written.map_err(|error| {
                let error = write::duplicated(error, self.new, &self.new.key_name);
                write::told(error, (self.new, true), writer.collection())
            })?;
        }
        writer.finish();
        Ok(())
    }
}
