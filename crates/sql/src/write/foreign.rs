//! Keys of other tables, looked after by each statement once all its rows are written, or by the transaction at its end
//! ([`deferred`](super::deferred)).
//!
//! A row with a key needs the row that has it. That key is held until the commit, in common with others who refer to it
//! ([`rows::hold_reference`]): a transaction that deletes the row, or changes its key, holds the key alone and so conflicts with this one, whichever
//! of both sees the other's state. So no two transactions can leave a row without its key, and what else becomes of the row matters to nobody. Who deletes a key looks for rows that have it, in the state that it writes to, and refuses, deletes or changes them.
//!
//! Whether a key is there is asked of the documents as they are stored, whatever of them is masked for the user. Where the answer would
//! tell of a masked field, the statement is refused.
//!
//! Commands of MQL know nothing of all this.

use super::WRITTEN_FACTOR;
use super::triggers::{self, Calling};
use crate::bind::entry::{self, Object};
use crate::catalog::{Foreign, Kind, Later, Referential, Table, Timing};
use crate::error::{self, Field};
use crate::parse::trigger::Event;
use crate::run::deferred::{Question, Waiting};
use crate::run::excluded::Excluded;
use crate::run::gathered::Gathered;
use crate::run::partitions::declared;
use crate::run::references::{Reference, hold_keys, key_of, references};
use crate::run::tables::{Find, Reading, SessionFacts};
use nestor_database::masking;
use nestor_database::read;
use nestor_database::statement::Statement;
use nestor_database::write::rows::{self, RowWriter};
use nestor_exec::Step;
use nestor_exec::catalog::masked;
use nestor_model::statement::work;
use nestor_model::{DocRef, Document, Error, Namespace, RawDoc, RawDocBuf, Result, Value, ValueRef, bail};
use nestor_query::env::{OpContext, Scope};
use nestor_query::update::{Applied, Update, UpdateOptions};
use nestor_storage::{Bytes, Collection, View, WriteSet};
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// A row that was written.
pub(crate) struct Changed {
    pub(super) table: Arc<Table>,
    pub(super) ns: Namespace,
    /// As it was; `None` of one that is new.
    pub(super) before: Option<RawDocBuf>,
    /// As it is; `None` of one that is gone.
    pub(super) after: Option<RawDocBuf>,
    /// The columns that an UPDATE assigned.
    pub(super) assigned: Arc<[String]>,
}

/// What a statement has written that other tables, or keys of them, or triggers depend on.
#[derive(Default)]
pub(crate) struct Changes(VecDeque<Changed>);

/// What is left to do when keys have been settled: keys that wait, and rows after which triggers are called.
pub(super) type Settled = (Vec<Waiting>, Vec<Changed>);

/// The tables that have keys of this one, itself left out, with the names of the constraints.
pub fn referring(view: &dyn View, ns: &Namespace) -> Vec<(Namespace, String)> {
    let all = references(view, ns).into_iter();
    let others = all.filter(|reference| reference.ns != *ns);
    others.map(|reference| (reference.ns, reference.foreign.name)).collect()
}

/// The values at paths, nulls too.
fn values_of(doc: DocRef<'_>, paths: &[String]) -> Vec<Value> {
    let value = |path: &String| match doc.get(path) {
        Some(value) if !value.is_nullish() => value.to_value(),
        _ => Value::Null,
    };
    paths.iter().map(value).collect()
}

/// A document after an update.
fn updated(update: &Update, before: RawDoc<'_>, op: &OpContext) -> Result<Document> {
    Ok(match update.apply(before, None, op)? {
        Applied::NoChange => before.as_doc().to_document(),
        Applied::Changed(changed) => changed.doc.as_raw().as_doc().to_document(),
    })
}

/// The name of a key and when it is looked at.
fn timed(foreign: &Foreign) -> (&str, Timing) {
    (&foreign.name, foreign.timing)
}

pub(super) fn filter_of(paths: &[String], key: &[Value]) -> Document {
    let mut filter = Document::new();
    for (path, value) in paths.iter().zip(key) {
        let mut equal = Document::new();
        equal.push("$eq", value.clone());
        filter.push(path.as_str(), equal);
    }
    filter
}

fn same(a: &[Value], b: &[Value]) -> bool {
    a.len() == b.len()
        && a.iter()
            .zip(b)
            .all(|(a, b)| nestor_model::values_equal(a.as_ref(), b.as_ref()))
}

fn detail(names: &[String], key: &[Value], end: &str) -> String {
    let shown: Vec<String> = key
        .iter()
        .map(|value| match value {
            Value::String(text) => text.to_string(),
            value => crate::types::json::text(value.as_ref()),
        })
        .collect();
    format!("Key ({})=({}) {end}", names.join(", "), shown.join(", "))
}

/// 23503: rows of a table have a key that is none of the other table.
pub(super) fn missing(table: &Table, foreign: &Foreign, key: &[Value]) -> Error {
    let end = format!("is not present in table \"{}\".", foreign.table);
    refused(table, foreign, &detail(&foreign.columns, key, &end))
}

/// 23503: some columns of a key that is null as a whole or not at all are null.
fn mixed(table: &Table, foreign: &Foreign) -> Error {
    let detail = "MATCH FULL does not allow mixing of null and nonnull key values.";
    refused(table, foreign, detail)
}

/// 23503: a row of a table has a key that it may not have.
fn refused(table: &Table, foreign: &Foreign, detail: &str) -> Error {
    let message = format!(
        "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
        table.name, foreign.name
    );
    error::with(
        error::error("23503", message),
        &[
            (Field::Detail, detail),
            (Field::Schema, &table.schema),
            (Field::Table, &table.name),
            (Field::Constraint, &foreign.name),
        ],
    )
}

/// 23503: rows of `child` have a key of `parent`, of the columns `names`, that is gone.
pub(super) fn still_used(
    (parent, names): (&Table, &[String]),
    (child, foreign): (&Table, &Foreign),
    key: &[Value],
) -> Error {
    let (table, constraint) = (&parent.name, &foreign.name);
    let message = format!(
        "update or delete on table \"{table}\" violates foreign key constraint \"{constraint}\" on table \"{}\"",
        child.name
    );
    let end = format!("is still referenced from table \"{}\".", child.name);
    error::with(
        error::error("23503", message),
        &[
            (Field::Detail, &detail(names, key, &end)),
            (Field::Schema, &child.schema),
            (Field::Table, &child.name),
            (Field::Constraint, constraint),
        ],
    )
}

impl Changes {
    /// Whether a table's rows have to be noted.
    pub(super) fn are_wanted(view: &dyn View, table: &Table, ns: &Namespace) -> bool {
        let has_keys = !table.foreign.is_empty() || !table.later.is_empty() || !table.exclusions.is_empty();
        let is_wanted = has_keys || triggers::has_after(table);
        table.declared && (is_wanted || !references(view, ns).is_empty())
    }

    /// Those of two parts of a statement.
    pub(super) fn both(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(mut one), Some(other)) => {
                one.0.extend(other.0);
                Some(one)
            }
            (one, other) => one.or(other),
        }
    }

    /// Notes a row.
    pub(crate) fn note(
        &mut self,
        (table, ns): (&Arc<Table>, &Namespace),
        before: Option<RawDocBuf>,
        after: Option<RawDocBuf>,
    ) {
        self.note_of((table, ns), Arc::default(), before, after);
    }

    /// Notes a row of which these columns were assigned.
    pub(super) fn note_of(
        &mut self,
        (table, ns): (&Arc<Table>, &Namespace),
        assigned: Arc<[String]>,
        before: Option<RawDocBuf>,
        after: Option<RawDocBuf>,
    ) {
        self.0.push_back(Changed {
            table: table.clone(),
            ns: ns.clone(),
            before,
            after,
            assigned,
        });
    }

    /// Holds the keys of rows that are gone, of whom nobody is to refer to any more. Nothing else is done with rows that do.
    pub(super) fn hold_gone(&self, ws: &mut WriteSet) {
        let mut known = HashMap::new();
        for changed in &self.0 {
            let Some(before) = &changed.before else { continue };
            let Some(collection) = ws.catalog().get(&changed.ns).cloned() else {
                continue;
            };
            let all = known
                .entry(collection.id)
                .or_insert_with(|| references(&*ws, &changed.ns));
            hold_keys(ws, &collection, (&changed.table, all), before.as_raw().as_doc());
        }
    }

    /// Sees that keys are whole again, and does with rows what their keys want. What is deferred is given back: it is to wait once the
    /// statement is over.
    ///
    /// Errors: 23503, and those of writing.
    pub(super) fn settle(
        self,
        statement: &Statement<'_>,
        session: &SessionFacts,
        ws: &mut WriteSet,
        op: &OpContext,
        gathered: &mut Gathered,
    ) -> Result<Settled> {
        let mut settling = Settling::new(statement, session, op);
        // A statement of its own is a transaction of its own.
        settling.defers = statement.in_transaction();
        self.settle_by(settling, ws, gathered)
    }

    /// The same for all keys, deferred or not, of rows that were there before their keys.
    ///
    /// Errors: those of [`Changes::settle`].
    pub(crate) fn settle_all(
        self,
        statement: &Statement<'_>,
        session: &SessionFacts,
        ws: &mut WriteSet,
        op: &OpContext,
        gathered: &mut Gathered,
    ) -> Result<()> {
        let mut settling = Settling::new(statement, session, op);
        settling.makes = true;
        self.settle_by(settling, ws, gathered).map(drop)
    }

    fn settle_by(
        mut self,
        mut settling: Settling<'_, '_>,
        ws: &mut WriteSet,
        gathered: &mut Gathered,
    ) -> Result<Settled> {
        let mut rows = Vec::new();
        while let Some(changed) = self.0.pop_front() {
            work(1)?;
            if changed.before.is_some() {
                settling.keys_gone(ws, &changed, &mut self, gathered)?;
            }
            settling.keys_wanted(ws, &changed, gathered)?;
            settling.keys_single(ws, &changed, gathered)?;
            settling.keys_apart(ws, &changed, gathered)?;
            if triggers::has_after(&changed.table) {
                rows.push(changed);
            }
        }
        Ok((settling.waiting, rows))
    }
}

/// No row has a key of those of a partition, which is about to be a table of its own.
///
/// Errors: 23503.
pub(crate) fn check_removed(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &WriteSet,
    (ns, table): (&Namespace, &Table),
) -> Result<()> {
    let mut all = references(ws, ns);
    all.retain(|reference| *reference.foreign.table != *ns.coll);
    if all.is_empty() {
        return Ok(());
    }
    let (op, _) = statement.operation(None)?;
    let settling = Settling::new(statement, session, &op);
    for record in settling.find(ws, ns, &Document::new(), None)? {
        work(1)?;
        let Some(collection) = ws.catalog().get(ns) else { break };
        let Some(row) = ws.get(collection.records, &record)? else {
            continue;
        };
        for reference in &all {
            let names = table.referred(&reference.foreign);
            let Some(key) = key_of(row.document().as_doc(), &table.paths(&names)) else {
                continue;
            };
            let own = reference.table.paths(&reference.foreign.columns);
            if settling.is_any(ws, &reference.ns, &own, &key)? {
                let (name, constraint) = (&table.name, &reference.foreign.name);
                let message = format!("removing partition \"{name}\" violates foreign key constraint \"{constraint}\"");
                let end = format!("is still referenced from table \"{}\".", reference.table.name);
                let fields = [
                    (Field::Detail, &*detail(&names, &key, &end)),
                    (Field::Schema, &reference.table.schema),
                    (Field::Table, &reference.table.name),
                    (Field::Constraint, constraint),
                ];
                return Err(error::with(error::error("23503", message), &fields));
            }
        }
    }
    Ok(())
}

/// Keys while they are looked at.
pub(super) struct Settling<'a, 'r> {
    pub(super) statement: &'a Statement<'r>,
    pub(super) session: &'a SessionFacts,
    pub(super) op: &'a OpContext,
    /// EXCLUDE constraints that are bound, by their tables and names.
    pub(super) excluded: HashMap<(Namespace, String), Arc<Excluded>>,
    /// The constraints are made, of rows that were there before.
    pub(super) makes: bool,
    /// Rows that are held already.
    held: BTreeSet<(u32, Vec<u8>, Vec<String>)>,
    /// What is deferred waits.
    defers: bool,
    waiting: Vec<Waiting>,
}

impl<'a, 'r> Settling<'a, 'r> {
    /// Looks at each key at once.
    pub(super) fn new(statement: &'a Statement<'r>, session: &'a SessionFacts, op: &'a OpContext) -> Self {
        Self {
            statement,
            session,
            op,
            excluded: HashMap::new(),
            makes: false,
            held: BTreeSet::new(),
            defers: false,
            waiting: Vec::new(),
        }
    }

    /// Whether a constraint of `table` waits; if so its key is noted.
    pub(super) fn waits(
        &mut self,
        (table, (name, timing)): (&Namespace, (&str, Timing)),
        written: &Namespace,
        (key, question): (&[Value], Question),
        gathered: &mut Gathered,
    ) -> Result<bool> {
        if !self.defers || timing == Timing::AtOnce || !self.session.deferred.waits(table, (name, timing)) {
            return Ok(false);
        }
        let waiting = Waiting {
            table: table.clone(),
            constraint: name.to_owned(),
            written: written.clone(),
            key: key.to_vec(),
            question,
        };
        gathered.grow(waiting.bytes())?;
        self.waiting.push(waiting);
        Ok(true)
    }

    /// The records that have a key.
    fn find(&self, ws: &WriteSet, ns: &Namespace, filter: &Document, limit: Option<u64>) -> Result<Vec<Bytes>> {
        let reading = Reading::new(self.statement, ws, self.op, self.session);
        let mut root = reading.find(
            ns,
            Find {
                limit,
                stored: true,
                ..Find::all(filter)
            },
        )?;
        let mut batch = read::batch(self.statement, ws, self.op, true);
        let mut out = Vec::new();
        loop {
            match root.next(&mut batch)? {
                Step::Row(row) => {
                    if let Some(record) = row.record.as_deref() {
                        out.push(Bytes::copy_from(record));
                    }
                }
                Step::Pause => {}
                Step::Eof => return Ok(out),
            }
        }
    }

    /// Refuses to tell by a key whether a masked field has a value.
    ///
    /// Errors: 13.
    pub(super) fn check_told(&self, collection: &Collection, paths: &[String], key: &str) -> Result<()> {
        match masked(collection, self.op.caller.as_deref())? {
            Some(masked) if paths.iter().any(|path| masked.masking.touches(path)) => bail!(
                Unauthorized,
                "{} is masked for you: the constraint '{key}' would tell of a masked field",
                collection.ns
            ),
            _ => Ok(()),
        }
    }

    /// The keys that a row has are there, and are held.
    fn keys_wanted(&mut self, ws: &mut WriteSet, changed: &Changed, gathered: &mut Gathered) -> Result<()> {
        let Some(after) = changed.after.as_ref().filter(|_| !changed.table.keys_are_off) else {
            return Ok(());
        };
        for foreign in &changed.table.foreign {
            let paths = changed.table.paths(&foreign.columns);
            let Some(key) = key_of(after.as_raw().as_doc(), &paths) else {
                let values = values_of(after.as_raw().as_doc(), &paths);
                if foreign.is_full && values.iter().any(|value| !matches!(value, Value::Null)) {
                    return Err(mixed(&changed.table, foreign));
                }
                continue;
            };
            let before = changed.before.as_ref();
            let old = before.and_then(|before| key_of(before.as_raw().as_doc(), &paths));
            if old.is_some_and(|old| same(&old, &key)) {
                continue;
            }
            let asked = (key.as_slice(), Question::There);
            if self.waits((&changed.ns, timed(foreign)), &changed.ns, asked, gathered)? {
                continue;
            }
            if !self.hold_key(ws, &changed.ns, foreign, &key)? {
                return Err(missing(&changed.table, foreign, &key));
            }
        }
        Ok(())
    }

    /// No other row has the keys of its own that a row got, as far as they are looked at now.
    fn keys_single(&mut self, ws: &mut WriteSet, changed: &Changed, gathered: &mut Gathered) -> Result<()> {
        let Some(after) = &changed.after else { return Ok(()) };
        for own in &changed.table.later {
            let paths = changed.table.paths(&own.columns);
            let key_of = |doc: &RawDocBuf| match own.nulls_equal {
                true => Some(values_of(doc.as_raw().as_doc(), &paths)),
                false => key_of(doc.as_raw().as_doc(), &paths),
            };
            let Some(key) = key_of(after) else { continue };
            let old = changed.before.as_ref().and_then(key_of);
            if old.is_some_and(|old| same(&old, &key)) {
                continue;
            }
            let asked = (key.as_slice(), Question::Single);
            if self.waits((&changed.ns, (&own.name, own.timing)), &changed.ns, asked, gathered)? {
                continue;
            }
            self.check_single(ws, (&changed.ns, &changed.table), own, &key)?;
        }
        Ok(())
    }

    /// No two rows have a key, and until the commit nobody else writes one with it.
    ///
    /// Errors: 23505, 13 for a key that would tell of a masked field.
    pub(super) fn check_single(
        &mut self,
        ws: &mut WriteSet,
        (ns, table): (&Namespace, &Table),
        own: &Later,
        key: &[Value],
    ) -> Result<()> {
        let Some(collection) = ws.catalog().get(ns).cloned() else {
            return Ok(());
        };
        let paths = table.paths(&own.columns);
        self.check_told(&collection, &paths, &own.name)?;
        if let Some(index) = collection.indexes.iter().find(|index| *index.name == *own.name) {
            rows::hold_key(ws, &collection, index, key);
        }
        if self.find(ws, ns, &filter_of(&paths, key), Some(2))?.len() > 1 {
            let (schema, table, constraint) = (&table.schema, &table.name, &own.name);
            let message = format!("duplicate key value violates unique constraint \"{constraint}\"");
            let detail = detail(&own.columns, key, "already exists.");
            return Err(error::with(
                error::error("23505", message),
                &[
                    (Field::Detail, &detail),
                    (Field::Schema, schema),
                    (Field::Table, table),
                    (Field::Constraint, constraint),
                ],
            ));
        }
        Ok(())
    }

    /// Holds the row that has a key which rows of `ns` have; whether there is one.
    ///
    /// Errors: 13 for a key that would tell of a masked field.
    pub(super) fn hold_key(
        &mut self,
        ws: &mut WriteSet,
        ns: &Namespace,
        foreign: &Foreign,
        key: &[Value],
    ) -> Result<bool> {
        let ns = Namespace::new(&*ns.db, foreign.table.as_str());
        let parent = ws.catalog().get(&ns).cloned();
        let declared = parent.as_deref().and_then(entry::of);
        let Some(Object::Table(_, table)) = declared else {
            return error::fail("42P01", format!("relation \"{}\" does not exist", foreign.table));
        };
        let names = table.referred(foreign);
        for (ns, table) in self.holders(ws, (&ns, table))? {
            let Some(collection) = ws.catalog().get(&ns).cloned() else {
                continue;
            };
            let referred = table.paths(&names);
            self.check_told(&collection, &referred, &foreign.name)?;
            let Some(record) = self.find(ws, &ns, &filter_of(&referred, key), Some(1))?.pop() else {
                continue;
            };
            if self.held.insert((collection.id.0, record.to_vec(), referred.clone())) {
                rows::hold_reference(ws, &collection, (&referred, key), false);
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// The tables that have the rows of one: its leaves, if it is partitioned.
    fn holders(&self, ws: &WriteSet, (ns, table): (&Namespace, &Arc<Table>)) -> Result<Vec<(Namespace, Arc<Table>)>> {
        if table.division.is_none() {
            return Ok(vec![(ns.clone(), table.clone())]);
        }
        let reading = Reading::new(self.statement, ws, self.op, self.session);
        let tree = reading.tree_of(table)?;
        let leaves = tree.iter().flat_map(|tree| &tree.leaves);
        Ok(leaves.map(|leaf| (leaf.ns.clone(), leaf.table.clone())).collect())
    }

    /// Whether the table that a key refers to, of which a row was written, has one with these values of some columns.
    pub(super) fn is_there(
        &self,
        ws: &WriteSet,
        foreign: &Foreign,
        (ns, names): (&Namespace, &[String]),
        key: &[Value],
    ) -> Result<bool> {
        let referred = Namespace::new(&*ns.db, foreign.table.as_str());
        let Some(table) = declared(ws, &referred) else {
            return Ok(false);
        };
        for (ns, table) in self.holders(ws, (&referred, &table))? {
            if self.is_any(ws, &ns, &table.paths(names), key)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a table has rows with these values.
    pub(super) fn is_any(&self, ws: &WriteSet, ns: &Namespace, paths: &[String], key: &[Value]) -> Result<bool> {
        Ok(!self.find(ws, ns, &filter_of(paths, key), Some(1))?.is_empty())
    }

    /// What becomes of the rows that had a key of this one.
    fn keys_gone(
        &mut self,
        ws: &mut WriteSet,
        changed: &Changed,
        further: &mut Changes,
        gathered: &mut Gathered,
    ) -> Result<()> {
        let Some(before) = changed.before.as_ref().filter(|_| !changed.table.keys_are_off) else {
            return Ok(());
        };
        for reference in references(ws, &changed.ns) {
            let names = changed.table.referred(&reference.foreign);
            let paths = changed.table.paths(&names);
            let Some(old) = key_of(before.as_raw().as_doc(), &paths) else {
                continue;
            };
            let after = changed.after.as_ref();
            let new = after.and_then(|after| key_of(after.as_raw().as_doc(), &paths));
            if new.as_ref().is_some_and(|new| same(&old, new)) {
                continue;
            }
            if let Some(collection) = ws.catalog().get(&changed.ns).cloned() {
                rows::hold_reference(ws, &collection, (&paths, &old), true);
            }
            let action = match changed.after {
                None => reference.foreign.on_delete,
                Some(_) => reference.foreign.on_update,
            };
            let child = (&reference.ns, timed(&reference.foreign));
            if action == Referential::Refuse && self.waits(child, &changed.ns, (&old, Question::Unused), gathered)? {
                continue;
            }
            // Another row of the statement may have the key now.
            let at = (&changed.ns, names.as_slice());
            if action != Referential::Restrict && self.is_there(ws, &reference.foreign, at, &old)? {
                continue;
            }
            let own = reference.table.paths(&reference.foreign.columns);
            if let Some(collection) = ws.catalog().get(&reference.ns) {
                self.check_told(collection, &own, &reference.foreign.name)?;
            }
            let children = self.find(ws, &reference.ns, &filter_of(&own, &old), None)?;
            if children.is_empty() {
                continue;
            }
            if matches!(action, Referential::Refuse | Referential::Restrict) {
                return Err(still_used(
                    (&changed.table, &names),
                    (&reference.table, &reference.foreign),
                    &old,
                ));
            }
            let key = match (action, &changed.after) {
                (Referential::Cascade, None) => None,
                (Referential::Cascade, Some(_)) => Some(new.clone()),
                _ => Some(None),
            };
            self.follow(ws, &reference, &own, &children, key, further, gathered)?;
        }
        Ok(())
    }

    /// Deletes rows, or gives them another key, or null.
    #[allow(clippy::too_many_arguments)]
    fn follow(
        &self,
        ws: &mut WriteSet,
        reference: &Reference,
        paths: &[String],
        records: &[Bytes],
        key: Option<Option<Vec<Value>>>,
        further: &mut Changes,
        gathered: &mut Gathered,
    ) -> Result<()> {
        let Kind::Collection(ns) = &reference.table.kind else {
            return Ok(());
        };
        if key.is_some() && paths.iter().any(|path| path == "_id") {
            return error::unsupported("a key that is a primary key itself, and is to be changed with another one,");
        }
        let update = match &key {
            None => None,
            Some(key) => {
                let (mut set, mut unset) = (Document::new(), Document::new());
                for (i, path) in paths.iter().enumerate() {
                    match key.as_ref().and_then(|key| key.get(i)) {
                        Some(value) => set.push(path.as_str(), value.clone()),
                        None => unset.push(path.as_str(), ""),
                    }
                }
                let mut update = Document::new();
                if !set.is_empty() {
                    update.push("$set", set);
                }
                if !unset.is_empty() {
                    update.push("$unset", unset);
                }
                let mut scope = Scope::new();
                let options = UpdateOptions::default();
                Some(Update::parse(ValueRef::Document(update.as_ref()), options, &mut scope)?)
            }
        };
        let not_null = paths.iter().find_map(|path| {
            let column = reference.table.columns.iter().find(|column| column.path == *path)?;
            column.not_null.then_some(column.name.as_str())
        });
        if let (Some(None), Some(column)) = (&key, not_null) {
            return Err(super::refused::null(column, &reference.table, None));
        }
        if let (Some(_), Some(collection)) = (&update, ws.catalog().get(ns)) {
            masking::check_insert(collection, self.op)?;
        }
        let calling = Calling {
            statement: self.statement,
            session: self.session,
        };
        let table = &reference.table;
        let event = if update.is_some() { Event::Update } else { Event::Delete };
        let sees_before = triggers::has_before(table, event);
        let assigned: Arc<[String]> = match &update {
            Some(_) => reference.foreign.columns.clone().into(),
            None => Arc::default(),
        };
        let columns: Vec<&str> = assigned.iter().map(String::as_str).collect();
        let mut writer = RowWriter::open(self.statement, ws, ns, self.op)?;
        let mut met: HashSet<Bytes> = HashSet::new();
        for record in records {
            work(1)?;
            let before = match writer.get(record)? {
                Some(before) if met.insert(record.clone()) => before,
                _ => continue,
            };
            gathered.grow(before.len() * WRITTEN_FACTOR)?;
            let mut seen = None;
            if sees_before {
                let old = before.document();
                let mut new = match &update {
                    Some(update) => Some(updated(update, old, self.op)?),
                    None => None,
                };
                let rows = (Some((&record[..], old.as_doc())), new.as_mut());
                if !calling.before_row(&mut writer, (table, event, &columns), rows)? {
                    continue;
                }
                if let Some(new) = new {
                    let (options, mut scope) = (UpdateOptions::default(), Scope::new());
                    seen = Some(Update::parse(ValueRef::Document(new.as_ref()), options, &mut scope)?);
                }
            }
            let after = match seen.as_ref().or(update.as_ref()) {
                None => {
                    writer.delete(record, &before)?;
                    None
                }
                Some(update) => {
                    let result = writer.update(record, &before, update, &mut |_| Ok(()));
                    let told = result
                        .map_err(|error| super::refused::told(error, (&reference.table, false), writer.collection()));
                    Some(told?)
                }
            };
            let before = Some(before.document().to_buf());
            further.note_of((&reference.table, ns), assigned.clone(), before, after);
        }
        writer.finish();
        Ok(())
    }
}
