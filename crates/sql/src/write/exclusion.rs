//! EXCLUDE constraints, looked at by each statement once all its rows are written, or by the transaction at its end.
//!
//! Who writes a row looks for one that it excludes among those whose elements with the operator `=` are equal, and holds the values of
//! these alone until the commit; where no element is compared by `=`, the constraint as a whole. So of two transactions that write such rows
//! one waits for the other, or conflicts with it, and then sees its rows.
//!
//! Commands of MQL know nothing of all this.

use super::foreign::{Changed, Settling, filter_of};
use crate::catalog::Table;
use crate::catalog::exclusion::Exclusion;
use crate::error::{Field, error, with};
use crate::run::deferred::Question;
use crate::run::excluded::Excluded;
use crate::run::gathered::Gathered;
use crate::run::tables::{Find, Reading};
use nestor_database::read;
use nestor_database::write::rows;
use nestor_exec::catalog::is_guarded;
use nestor_exec::{RowDoc, Step, point};
use nestor_model::statement::work;
use nestor_model::{DocRef, Error, Namespace, Result, Value, ValueRef, values_equal};
use nestor_storage::{Bytes, View as _, WriteSet};
use std::sync::Arc;

/// A constraint of a table.
pub(super) type Of<'t> = (&'t Namespace, &'t Arc<Table>, &'t Exclusion);

/// The record of a row, and what it is compared by.
type Met = (Bytes, Vec<Value>);

/// 23P01; of rows that may be hidden no key is shown.
fn conflicting(
    (_, table, own): Of<'_>,
    excluded: &Excluded,
    (key, other): (&[Value], &[Value]),
    (is_made, shows): (bool, bool),
) -> Error {
    let shown = |key: &[Value]| excluded.shown((table, own), key);
    let (message, existing) = match is_made {
        true => (format!("could not create exclusion constraint \"{}\"", own.name), ""),
        false => (
            format!("conflicting key value violates exclusion constraint \"{}\"", own.name),
            "existing ",
        ),
    };
    let detail = format!("Key {} conflicts with {existing}key {}.", shown(key), shown(other));
    let told = match shows {
        true => with(error("23P01", message), &[(Field::Detail, &detail)]),
        false => error("23P01", message),
    };
    with(
        told,
        &[
            (Field::Schema, &table.schema),
            (Field::Table, &table.name),
            (Field::Constraint, &own.name),
        ],
    )
}

impl Settling<'_, '_> {
    /// A constraint bound to its table.
    fn excluded(&mut self, (ns, table, own): Of<'_>) -> Result<Arc<Excluded>> {
        let name = (ns.clone(), own.name.clone());
        if let Some(known) = self.excluded.get(&name) {
            return Ok(known.clone());
        }
        let bound = Arc::new(Excluded::of(table, own)?);
        self.excluded.insert(name, bound.clone());
        Ok(bound)
    }

    /// Nothing excludes a row that was written, as far as that is looked at now.
    pub(super) fn keys_apart(&mut self, ws: &mut WriteSet, changed: &Changed, gathered: &mut Gathered) -> Result<()> {
        let Some(after) = &changed.after else { return Ok(()) };
        for own in &changed.table.exclusions {
            let of = (&changed.ns, &changed.table, own);
            let excluded = self.excluded(of)?;
            let after = after.as_raw().as_doc();
            let Some(key) = excluded.key(&changed.table, after)? else {
                continue;
            };
            if let Some(before) = &changed.before {
                let old = excluded.key(&changed.table, before.as_raw().as_doc())?;
                let is_same =
                    |old: &Vec<Value>| old.iter().zip(&key).all(|(a, b)| values_equal(a.as_ref(), b.as_ref()));
                if old.as_ref().is_some_and(is_same) {
                    continue;
                }
            }
            let id = after.get("_id").map_or(Value::Null, |id| id.to_value());
            let asked = (std::slice::from_ref(&id), Question::Apart);
            if self.waits((&changed.ns, (&own.name, own.timing)), &changed.ns, asked, gathered)? {
                continue;
            }
            self.check_apart(ws, of, id.as_ref(), &key)?;
        }
        Ok(())
    }

    /// The same of a row that was written earlier in the transaction, if it is still there.
    ///
    /// Errors: those of [`Settling::check_apart`].
    pub(super) fn check_apart_late(&mut self, ws: &mut WriteSet, of: Of<'_>, id: ValueRef<'_>) -> Result<()> {
        let (ns, table, _) = of;
        let Some(collection) = ws.catalog().get(ns).cloned() else {
            return Ok(());
        };
        let Some((_, doc)) = point::by_id(&*ws, &collection, id)? else {
            return Ok(());
        };
        match self.excluded(of)?.key(table, doc.document().as_doc())? {
            Some(key) => self.check_apart(ws, of, id, &key),
            None => Ok(()),
        }
    }

    /// Nothing excludes the row with this `_id` and key, and until the commit nobody else writes what does.
    ///
    /// Errors: 23P01, 13 for a key that would tell of a masked field.
    fn check_apart(&mut self, ws: &mut WriteSet, of: Of<'_>, id: ValueRef<'_>, key: &[Value]) -> Result<()> {
        let (ns, _, own) = of;
        let excluded = self.excluded(of)?;
        let Some(collection) = ws.catalog().get(ns).cloned() else {
            return Ok(());
        };
        rows::hold_name(ws, &collection, &own.name, &excluded.equal(key).1);
        match self.met(ws, of, Some(id), key)? {
            Some((record, other)) => {
                ws.note_taken(collection.records, record);
                let shows = !is_guarded(&collection, self.op.caller.as_deref());
                Err(conflicting(of, &excluded, (key, &other), (self.makes, shows)))
            }
            None => Ok(()),
        }
    }

    /// The record that excludes a row which is to be written.
    ///
    /// Errors: those of reading, 13 for a key that would tell of a masked field.
    pub(super) fn excluding(&mut self, ws: &WriteSet, of: Of<'_>, doc: DocRef<'_>) -> Result<Option<Bytes>> {
        match self.excluded(of)?.key(of.1, doc)? {
            Some(key) => Ok(self.met(ws, of, None, &key)?.map(|(record, _)| record)),
            None => Ok(None),
        }
    }

    /// The record and the key of a row that excludes those with this one, other than that with an `_id`.
    fn met(&mut self, ws: &WriteSet, of: Of<'_>, id: Option<ValueRef<'_>>, key: &[Value]) -> Result<Option<Met>> {
        let (ns, table, own) = of;
        let excluded = self.excluded(of)?;
        let Some(collection) = ws.catalog().get(ns) else {
            return Ok(None);
        };
        self.check_told(collection, &excluded.paths, &own.name)?;
        let (paths, values) = excluded.equal(key);
        let filter = filter_of(&paths, &values);
        let reading = Reading::new(self.statement, ws, self.op, self.session);
        let find = Find {
            stored: true,
            ..Find::all(&filter)
        };
        let mut root = reading.find(ns, find)?;
        let mut batch = read::batch(self.statement, ws, self.op, true);
        loop {
            let row = match root.next(&mut batch)? {
                Step::Row(row) => row,
                Step::Pause => continue,
                Step::Eof => return Ok(None),
            };
            work(1)?;
            let raw = match row.doc {
                RowDoc::Stored(bytes) => bytes.document().to_buf(),
                other => other.to_raw(),
            };
            let doc = raw.as_raw().as_doc();
            if id.is_some_and(|id| doc.get("_id").is_some_and(|other| values_equal(id, other))) {
                continue;
            }
            if let Some(other) = excluded.key(table, doc)?
                && excluded.excludes(key, &other)?
            {
                return Ok(row.record.map(|record| (record, other)));
            }
        }
    }
}
