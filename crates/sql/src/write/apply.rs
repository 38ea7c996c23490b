//! Rows become documents, and changes of documents.

use super::conflict::Arbiter;
use super::foreign::{Changes, Settling};
use super::leaves::{self, Entered};
use super::triggers::{self, Calling};
use super::{Before, WRITTEN_FACTOR};
use crate::bind::policies::{Guard, Guards};
use crate::bind::write::{Conflict, NEXT_NUMBER, Replacing, Target, Write};
use crate::catalog::{Column, Kind, schemas};
use crate::error::fail;
use crate::functions::uuid_v7;
use crate::parse::trigger::Event;
use crate::run::gathered::Gathered;
use crate::run::numbers::{Got, exhausted};
use crate::run::reader::{row_of, whole_row};
use crate::types::cast::whole;
use crate::types::{Type, stored};
use nestor_database::write::rows::RowWriter;
use nestor_database::write::sequence;
use nestor_model::statement::work;
use nestor_model::{Binary, DocRef, Document, RawDoc, Result, Value, ValueRef};
use nestor_planner::relation::{Env, Scalar as _, Tuple};
use nestor_query::env::{OpContext, Scope};
use nestor_query::update::{Update, UpdateOptions};
use nestor_storage::{Bytes, Collection, View as _, WriteSet};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A statement's rows while they are written.
pub(super) struct Applying<'a, 'w, 's> {
    /// What the statement writes.
    pub(super) root: Arc<Write>,
    /// The same of the partition that is written to, if there are such.
    pub(super) write: Arc<Write>,
    /// Which one that is.
    pub(super) leaf: Option<usize>,
    /// Those that were written to.
    pub(super) entered: HashMap<usize, Arc<Entered>>,
    /// The collection whose columns count.
    pub(super) counting: Arc<Collection>,
    pub(super) writer: &'a mut RowWriter<'w, 's>,
    pub(super) scope: &'a mut Scope,
    pub(super) env: Env<'a>,
    pub(super) op: &'a OpContext,
    pub(super) gathered: &'a mut Gathered,
    /// The rows that RETURNING sees.
    pub(super) returned: Vec<Tuple>,
    /// How many rows were written.
    pub(super) written: u64,
    /// Numbers that were taken for columns that count: the next one, and how many are left.
    pub(super) numbers: HashMap<String, (i64, i64)>,
    /// Rows that are still to be written.
    pub(super) left: usize,
    /// The rows, where keys of tables depend on them.
    pub(super) changes: Option<Changes>,
    /// The state before the statement, where subqueries of ON CONFLICT read it.
    pub(super) before: Option<&'a dyn Before>,
    /// The numbers that the session got.
    pub(super) got: &'a std::sync::Mutex<Got>,
    /// Who calls triggers.
    pub(super) calling: Calling<'a, 's>,
    /// The state that the rows were computed in, where a function may have changed them since.
    pub(super) seen: Option<&'a WriteSet>,
    /// The columns that the row which is written assigns, where triggers ask for them.
    pub(super) assigned: Arc<[String]>,
}

/// A document that was deleted to be inserted anew, because its `_id` changed or because it belongs to another partition.
pub(super) struct Moved {
    doc: Document,
    /// Other columns of its row.
    others: Vec<Value>,
    /// As it was.
    before: Bytes,
    /// The partition that it was in.
    leaf: Option<usize>,
}

/// Puts a value at a place in a document; what is on the way and no document is replaced by one.
pub(super) fn place(doc: &mut Document, path: &[String], value: Value) {
    match path {
        [] => {}
        [name] => doc.set(name, value),
        [name, rest @ ..] => {
            let mut inner = match doc.remove(name) {
                Some(Value::Document(inner)) => inner,
                _ => Document::new(),
            };
            place(&mut inner, rest, value);
            doc.set(name, inner);
        }
    }
}

pub(super) fn record_of(row: &[Value]) -> Result<Bytes> {
    match row.first() {
        Some(Value::Binary(Binary { bytes, .. })) => Ok(Bytes::copy_from(bytes)),
        _ => fail("0A000", "the rows of this table cannot be changed"),
    }
}

impl Applying<'_, '_, '_> {
    /// The next number of a column that counts.
    fn number(&mut self, column: &Column) -> Result<Value> {
        let Some(counting) = column.identity.map(|identity| identity.counting) else {
            return Ok(Value::Null);
        };
        let (next, left) = match self.numbers.get(&column.name) {
            Some((next, left)) if *left > 0 => (*next, *left),
            _ => {
                let count = i64::try_from(self.left.max(1)).unwrap_or(1);
                let collection = self.counting.clone();
                let key = sequence::Key {
                    collection: collection.uuid,
                    column: &column.name,
                };
                match sequence::take(self.writer.statement(), &collection.ns.db, key, &counting, count)? {
                    Some(taken) => taken,
                    None => return Err(exhausted(&column.sequence_of(&self.root.table.name), &counting)),
                }
            }
        };
        let following = next.saturating_add(counting.increment);
        self.numbers.insert(column.name.clone(), (following, left - 1));
        let table = &self.root.table;
        let name = schemas::collection(&table.schema, &column.sequence_of(&table.name));
        self.got
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .note(&name, next);
        whole(next, &column.ty)
    }

    /// A value that is written to a target; the next number where one is wanted.
    fn settled(&mut self, target: &Target, value: Value) -> Result<Value> {
        if !value.identical(&NEXT_NUMBER) {
            return Ok(value);
        }
        let root = self.root.clone();
        match root.table.column(&target.column) {
            Some(column) => self.number(column),
            None => Ok(Value::Null),
        }
    }

    /// The row of a document for RETURNING, beside `others`.
    fn give(&mut self, doc: RawDoc<'_>, others: &[Value]) -> Result<()> {
        self.written += 1;
        if self.root.returning.is_none() {
            return Ok(());
        }
        let table = &self.write.table;
        let mut row = whole_row(table, doc.as_doc())?;
        row.extend_from_slice(others);
        self.gathered.grow(row.iter().map(Value::weight).sum::<usize>())?;
        self.returned.push(row);
        Ok(())
    }

    /// The document of an insert; `None` when a trigger leaves it out.
    fn document(&mut self, targets: &[Target], row: Tuple) -> Result<Option<Document>> {
        self.leave();
        let mut doc = Document::new();
        for (target, value) in targets.iter().zip(row) {
            let value = self.settled(target, value)?;
            match (target.path.as_slice(), value) {
                (_, Value::Null) => {}
                ([], Value::Document(whole)) => {
                    for (name, value) in whole.iter() {
                        doc.set(name, value.to_value());
                    }
                }
                ([], _) => return fail("22023", "a document is wanted"),
                (path, value) => place(&mut doc, path, stored::write(&target.ty, value)),
            }
        }
        let table = self.write.table.clone();
        for column in table.columns.iter().filter(|column| column.identity.is_some()) {
            if targets.iter().all(|target| target.column != column.name) {
                let number = self.number(column)?;
                doc.set(&column.path, number);
            }
        }
        let id = table.columns.iter().find(|column| column.path == "_id");
        if doc.get("_id").is_none() {
            match id.map(|column| &column.ty) {
                // Where documents have such, or nobody knows yet.
                None | Some(Type::ObjectId | Type::Jsonb) if !table.declared || id.is_none() => {
                    doc.set("_id", self.op.object_id());
                }
                Some(Type::Uuid) if !table.declared => doc.set("_id", uuid_v7(self.op)?),
                _ => {}
            }
        }
        self.route(&mut doc)?;
        Ok(self.before_insert(&mut doc, |guards| &guards.inserted)?.then_some(doc))
    }

    /// What happens to a new document before it is written, and what has to be true of it; false when a trigger leaves it out.
    fn before_insert(&mut self, doc: &mut Document, guards: Of) -> Result<bool> {
        let table = self.write.table.clone();
        if triggers::has_before(&table, Event::Insert) {
            let of = (&*table, Event::Insert, [].as_slice());
            if !self.calling.before_row(self.writer, of, (None, Some(&mut *doc)))? {
                return Ok(false);
            }
        }
        self.generate(doc)?;
        guard(&self.write, (&self.env, self.before), guards, (doc.as_ref(), None))?;
        check(&self.write, &self.env, doc.as_ref())?;
        Ok(true)
    }

    /// Gives generated columns their values.
    fn generate(&self, doc: &mut Document) -> Result<()> {
        if self.write.generated.is_empty() {
            return Ok(());
        }
        let table = &self.write.table;
        let row = row_of(table, &vec![true; table.columns.len() + 2], doc.as_ref(), None)?;
        for (at, value) in &self.write.generated {
            let column = &table.columns[*at];
            match value.value(&row, &self.env)? {
                Value::Null => drop(doc.remove(&column.path)),
                value => doc.set(&column.path, stored::write(&column.ty, value)),
            }
        }
        Ok(())
    }

    /// Notes a row on which keys of tables depend.
    fn note(&mut self, before: Option<RawDoc<'_>>, after: Option<RawDoc<'_>>) {
        if self.entered().is_some_and(|own| !own.is_noted) {
            return;
        }
        if let (Some(changes), Kind::Collection(ns)) = (&mut self.changes, &self.write.table.kind) {
            let kept = |doc: RawDoc<'_>| doc.to_buf();
            let table = (&self.write.table, ns);
            changes.note_of(table, self.assigned.clone(), before.map(kept), after.map(kept));
        }
    }

    pub(super) fn insert(&mut self, targets: &[Target], conflict: Option<&Conflict>, rows: Vec<Tuple>) -> Result<()> {
        // One for each partition that is written to.
        let mut arbiters: HashMap<Option<usize>, (Conflict, Arbiter)> = HashMap::new();
        let mut met: HashSet<(Option<usize>, Bytes)> = HashSet::new();
        if let Some(conflict) = conflict.filter(|_| !self.is_divided()) {
            let arbiter = Arbiter::of(conflict, &self.write.table, self.writer.collection(), &self.env)?;
            arbiters.insert(None, (conflict.clone(), arbiter));
        }
        self.left = rows.len();
        for row in rows {
            work(1)?;
            let Some(conflict) = conflict else {
                self.insert_one(targets, row)?;
                continue;
            };
            self.assigned = Arc::default();
            let doc = self.document(targets, row)?;
            self.left -= 1;
            let Some(doc) = doc else { continue };
            let raw = doc.to_raw();
            self.gathered.grow(raw.as_bytes().len() * WRITTEN_FACTOR)?;
            let leaf = self.leaf;
            let (conflict, arbiter) = match arbiters.entry(leaf) {
                Entry::Occupied(own) => own.into_mut(),
                Entry::Vacant(place) => {
                    let own = self.conflict_there(conflict)?;
                    let arbiter = Arbiter::of(&own, &self.write.table, self.writer.collection(), &self.env)?;
                    place.insert((own, arbiter))
                }
            };
            if let Some(found) = arbiter.find(self.writer, doc.as_ref(), self.op)? {
                if let Some(update) = &conflict.update {
                    if !met.insert((leaf, found.0.clone())) {
                        return fail("21000", "ON CONFLICT DO UPDATE command cannot affect row a second time");
                    }
                    self.replace(update, &found, doc.as_ref())?;
                }
                continue;
            }
            if self.is_excluded(arbiter, doc.as_ref())? {
                continue;
            }
            match arbiter.is_any() {
                false => {
                    let (record, doc) = self.writer.insert(raw.as_raw())?;
                    met.insert((leaf, record));
                    self.note(None, Some(doc.as_raw()));
                    self.give(doc.as_raw(), &[])?;
                }
                true => {
                    if let Ok((_, doc)) = self.writer.try_insert(raw.as_raw())? {
                        self.note(None, Some(doc.as_raw()));
                        self.give(doc.as_raw(), &[])?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether a document is excluded by one that is there.
    ///
    /// Errors: those of reading, and of [`RowWriter::check_stays`].
    fn is_excluded(&mut self, arbiter: &Arbiter, doc: DocRef<'_>) -> Result<bool> {
        let table = self.write.table.clone();
        let mut settling = Settling::new(self.writer.statement(), self.calling.session, self.op);
        for own in table.exclusions.iter().filter(|own| arbiter.asks(own)) {
            let of = (&self.writer.collection().ns, &table, own);
            if let Some(record) = settling.excluding(self.writer.view(), of, doc)? {
                self.writer.check_stays(record)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// `DO UPDATE` of the document that is there.
    fn replace(&mut self, update: &Replacing, (record, before): &(Bytes, Bytes), new: DocRef<'_>) -> Result<()> {
        let table = self.write.table.clone();
        let table = &table;
        let there = (before.document().as_doc(), Some(record));
        guard(&self.write, (&self.env, self.before), |guards| &guards.met, there)?;
        let needed = vec![true; table.columns.len() + 2];
        let mut row = row_of(table, &needed, before.document().as_doc(), Some(record))?;
        row.extend(row_of(table, &needed, new, None)?);
        let computed = match (&update.query, self.before) {
            (Some((id, plan)), Some(before)) => {
                let mut values = before.row(*id, plan, row.clone())?;
                if update.condition.is_some() && !matches!(values.pop(), Some(Value::Bool(true))) {
                    return Ok(());
                }
                Some(values)
            }
            _ => None,
        };
        if let (Some(condition), None) = (&update.condition, &computed)
            && !condition.holds(&row, &self.env)?
        {
            return Ok(());
        }
        let values: Vec<Value> = match computed {
            Some(values) => values,
            None => {
                let values = update.values.iter().map(|value| value.value(&row, &self.env));
                values.collect::<Result<_>>()?
            }
        };
        if let Some(mut doc) = self.change(&update.targets, values, record, before)? {
            let leaf = self.leaf;
            self.route(&mut doc)?;
            if self.leaf != leaf {
                return self.left_by_conflict();
            }
            let (_, doc) = self.writer.insert(doc.to_raw().as_raw())?;
            self.note(Some(before.document()), Some(doc.as_raw()));
            return self.give(doc.as_raw(), &[]);
        }
        Ok(())
    }

    pub(super) fn update(&mut self, targets: &[Target], rows: Vec<Tuple>) -> Result<()> {
        let mut met: HashSet<Bytes> = HashSet::new();
        // Documents whose `_id` changes are deleted first, and inserted when all of them are gone.
        let mut moved = Vec::new();
        for mut row in rows {
            work(1)?;
            let record = record_of(&row)?;
            // Of several rows of FROM the first one counts.
            if !met.insert(record.clone()) {
                continue;
            }
            let others = row.split_off(1 + targets.len());
            row.remove(0);
            self.update_one(targets, (&record, row), others, &mut moved)?;
        }
        self.insert_moved(moved)
    }

    /// Refuses to write a row that a function of the statement, or a trigger of another row, has changed since it was computed.
    ///
    /// Errors: 27000.
    fn check_seen(&self, record: &Bytes, now: Option<&Bytes>, event: Event) -> Result<()> {
        let Some(seen) = self.seen else { return Ok(()) };
        let before = seen.get(self.writer.collection().records, record)?;
        let is_same = match (&before, now) {
            (Some(before), Some(now)) => before[..] == now[..],
            (before, now) => before.is_none() && now.is_none(),
        };
        match is_same {
            true => Ok(()),
            false => Err(triggers::modified(event)),
        }
    }

    /// Changes the document of a record, if it is still there.
    pub(super) fn update_one(
        &mut self,
        targets: &[Target],
        (record, values): (&Bytes, Vec<Value>),
        others: Vec<Value>,
        moved: &mut Vec<Moved>,
    ) -> Result<()> {
        let record = &self.found(record)?;
        let targets = &*self.placed(targets);
        let before = self.writer.get(record)?;
        self.check_seen(record, before.as_ref(), Event::Update)?;
        let Some(before) = before else {
            return Ok(());
        };
        self.gathered.grow(before.len() * WRITTEN_FACTOR)?;
        let returned = self.returned.len();
        match self.change(targets, values, record, &before)? {
            Some(doc) => moved.push(Moved {
                doc,
                others,
                before,
                leaf: self.leaf,
            }),
            None => {
                if let Some(row) = self.returned.get_mut(returned) {
                    row.extend(others);
                }
            }
        }
        Ok(())
    }

    pub(super) fn insert_moved(&mut self, moved: Vec<Moved>) -> Result<()> {
        for own in moved {
            let Moved {
                mut doc,
                others,
                before,
                leaf,
            } = own;
            self.route(&mut doc)?;
            let is_elsewhere = self.leaf != leaf;
            if is_elsewhere && !self.before_insert(&mut doc, |guards| &guards.updated)? {
                continue;
            }
            let (_, doc) = self.writer.insert(doc.to_raw().as_raw())?;
            let before = (!is_elsewhere).then(|| before.document());
            self.note(before, Some(doc.as_raw()));
            self.give(doc.as_raw(), &others)?;
        }
        Ok(())
    }

    /// Writes values into the document of a record. One whose `_id` changes is deleted and handed back, to be inserted.
    pub(super) fn change(
        &mut self,
        targets: &[Target],
        values: Vec<Value>,
        record: &Bytes,
        before: &Bytes,
    ) -> Result<Option<Document>> {
        let old = before.document();
        let (mut set, mut unset) = (Document::new(), Document::new());
        let table = self.write.table.clone();
        let sees_before = triggers::has_before(&table, Event::Update);
        if !table.triggers.is_empty() {
            self.assigned = targets.iter().map(|target| target.column.clone()).collect();
        }
        let may_leave = self.may_leave(targets);
        let generates = !self.write.generated.is_empty() || sees_before || may_leave;
        let mut whole: Option<Document> = generates.then(|| old.as_doc().to_document());
        for (target, value) in targets.iter().zip(values) {
            if target.path.is_empty() {
                let Value::Document(mut doc) = value else {
                    return fail("22023", "a document is wanted");
                };
                if doc.get("_id").is_none() {
                    doc.fields_mut().insert(
                        0,
                        ("_id".into(), old.get("_id").map_or(Value::Null, |id| id.to_value())),
                    );
                }
                whole = Some(doc);
                continue;
            }
            let value = self.settled(target, value)?;
            let has_own_names = target.path.iter().all(|name| is_plain(name));
            if !has_own_names || (target.path.len() == 1 && target.path[0] == "_id") {
                // What has no form as an update of fields is one of the whole document.
                let mut doc = whole.take().unwrap_or_else(|| old.as_doc().to_document());
                match value {
                    Value::Null => remove(&mut doc, &target.path),
                    value => place(&mut doc, &target.path, stored::write(&target.ty, value)),
                }
                whole = Some(doc);
                continue;
            }
            let path = target.path.join(".");
            match value {
                Value::Null => unset.push(path, ""),
                value => set.push(path, stored::write(&target.ty, value)),
            }
        }
        if let Some(mut doc) = whole {
            for (path, value) in set.iter() {
                let parts: Vec<String> = path.split('.').map(str::to_owned).collect();
                place(&mut doc, &parts, value.to_value());
            }
            for (path, _) in unset.iter() {
                let parts: Vec<String> = path.split('.').map(str::to_owned).collect();
                remove(&mut doc, &parts);
            }
            if sees_before {
                let assigned = self.assigned.clone();
                let columns: Vec<&str> = assigned.iter().map(String::as_str).collect();
                let rows = (Some((&record[..], old.as_doc())), Some(&mut doc));
                if !self
                    .calling
                    .before_row(self.writer, (&table, Event::Update, &columns), rows)?
                {
                    return Ok(None);
                }
            }
            self.generate(&mut doc)?;
            if may_leave && self.has_left(&mut doc)? {
                return self.taken_out(doc, record, before);
            }
            let new = (doc.as_ref(), None);
            guard(&self.write, (&self.env, self.before), |guards| &guards.updated, new)?;
            check(&self.write, &self.env, doc.as_ref())?;
            let same = match (doc.get("_id"), old.get("_id")) {
                (Some(a), Some(b)) => nestor_model::values_equal(a, b),
                _ => false,
            };
            if !same {
                self.writer.delete(record, before)?;
                self.turn_back(&mut doc);
                return Ok(Some(doc));
            }
            let update = Update::parse(ValueRef::Document(doc.as_ref()), UpdateOptions::default(), self.scope)?;
            return self.changed(&update, record, before);
        }
        let mut update = Document::new();
        if !set.is_empty() {
            update.push("$set", set);
        }
        if !unset.is_empty() {
            update.push("$unset", unset);
        }
        let update = Update::parse(
            ValueRef::Document(update.as_ref()),
            UpdateOptions::default(),
            self.scope,
        )?;
        self.changed(&update, record, before)
    }

    /// Deletes the document of a record that is to stand in another partition.
    fn taken_out(&mut self, doc: Document, record: &Bytes, before: &Bytes) -> Result<Option<Document>> {
        let table = self.write.table.clone();
        if triggers::has_before(&table, Event::Delete) {
            let rows = (Some((&record[..], before.document().as_doc())), None);
            let of = (&*table, Event::Delete, [].as_slice());
            if !self.calling.before_row(self.writer, of, rows)? {
                return Ok(None);
            }
        }
        self.writer.delete(record, before)?;
        self.note(Some(before.document()), None);
        Ok(Some(doc))
    }

    fn changed(&mut self, update: &Update, record: &Bytes, before: &Bytes) -> Result<Option<Document>> {
        let (write, env, state) = (self.write.clone(), &self.env, self.before);
        let new = self.writer.update(record, before, update, &mut |doc| {
            guard(&write, (env, state), |guards| &guards.updated, (doc.as_doc(), None))?;
            check(&write, env, doc.as_doc())
        })?;
        self.note(Some(before.document()), Some(new.as_raw()));
        self.give(new.as_raw(), &[])?;
        Ok(None)
    }

    pub(super) fn delete(&mut self, rows: Vec<Tuple>) -> Result<()> {
        let mut met: HashSet<Bytes> = HashSet::new();
        for mut row in rows {
            work(1)?;
            let record = record_of(&row)?;
            if !met.insert(record.clone()) {
                continue;
            }
            self.delete_one(&record, &row.split_off(1))?;
        }
        Ok(())
    }

    /// Deletes a record, if it is still there.
    pub(super) fn delete_one(&mut self, record: &Bytes, others: &[Value]) -> Result<()> {
        let record = &self.found(record)?;
        let before = self.writer.get(record)?;
        self.check_seen(record, before.as_ref(), Event::Delete)?;
        let Some(before) = before else {
            return Ok(());
        };
        self.gathered.grow(before.len() * WRITTEN_FACTOR)?;
        let table = self.write.table.clone();
        if triggers::has_before(&table, Event::Delete) {
            let rows = (Some((&record[..], before.document().as_doc())), None);
            if !self
                .calling
                .before_row(self.writer, (&table, Event::Delete, &[]), rows)?
            {
                return Ok(());
            }
        }
        self.assigned = Arc::default();
        self.writer.delete(record, &before)?;
        self.note(Some(before.document()), None);
        self.give(before.document(), others)
    }

    /// Policies let MERGE do something to the row that it has found.
    ///
    /// Errors: 42501, those of the conditions.
    pub(super) fn check_target(&mut self, record: &Bytes, of: Of) -> Result<()> {
        if self.root.guards.is_none() {
            return Ok(());
        }
        let record = &self.found(record)?;
        match self.writer.get(record)? {
            Some(there) => {
                let there = (there.document().as_doc(), Some(record));
                guard(&self.write, (&self.env, self.before), of, there)
            }
            None => Ok(()),
        }
    }

    /// Inserts the row that these values make.
    pub(super) fn insert_one(&mut self, targets: &[Target], row: Tuple) -> Result<()> {
        self.assigned = Arc::default();
        let doc = self.document(targets, row)?;
        self.left = self.left.saturating_sub(1);
        let Some(doc) = doc else { return Ok(()) };
        let doc = doc.to_raw();
        self.gathered.grow(doc.as_bytes().len() * WRITTEN_FACTOR)?;
        let (_, doc) = self.writer.insert(doc.as_raw())?;
        self.note(None, Some(doc.as_raw()));
        self.give(doc.as_raw(), &[])
    }
}

/// Some of what policies say.
pub(super) type Of = fn(&Guards) -> &Vec<Guard>;

/// Policies let a document be written, or changed if it is the one of a record.
///
/// Errors: 42501, those of the conditions.
fn guard(
    write: &Write,
    (env, before): (&Env<'_>, Option<&dyn Before>),
    of: Of,
    (doc, record): (DocRef<'_>, Option<&Bytes>),
) -> Result<()> {
    let Some(guards) = &write.guards else { return Ok(()) };
    let all = of(guards);
    if all.is_empty() {
        return Ok(());
    }
    let table = &write.table;
    let row = row_of(
        table,
        &vec![true; table.columns.len() + 2],
        doc,
        record.map(|own| &**own),
    )?;
    for own in all {
        let holds = match (&own.query, before) {
            (None, _) => own.holds.holds(&row, env)?,
            (Some((id, plan)), Some(before)) => {
                let values = before.row(*id, plan, row.clone())?;
                matches!(values.first(), Some(Value::Bool(true)))
            }
            (Some(_), None) => return fail("XX000", "the state before the statement is not kept"),
        };
        if !holds {
            return Err(own.violated(&guards.table));
        }
    }
    Ok(())
}

/// A document that is to be written has no null where none may be, and no check is false of it.
///
/// Errors: 23502, 23514, 44000, those of the conditions.
fn check(write: &Write, env: &Env<'_>, doc: DocRef<'_>) -> Result<()> {
    let table = &write.table;
    // Who may not see all rows is not told what a trigger, say, has made of one.
    let shown = write.guards.is_none().then_some(doc);
    for column in table.columns.iter().filter(|column| column.not_null) {
        if column.is_null(doc.get(&column.path)) {
            return Err(super::refused::null(&column.name, table, shown));
        }
    }
    // Those of elements are looked at beside each of them.
    let options = if write.element.is_some() {
        &[][..]
    } else {
        &write.options
    };
    if write.checks.is_empty() && options.is_empty() {
        return leaves::check(write, env, doc);
    }
    let row = row_of(table, &vec![true; table.columns.len() + 2], doc, None)?;
    for (name, condition) in &write.checks {
        if matches!(condition.value(&row, env)?, Value::Bool(false)) {
            return Err(super::refused::check(name, table, shown));
        }
    }
    for (view, condition) in options {
        if !condition.holds(&row, env)? {
            return fail("44000", format!("new row violates check option for view \"{view}\""));
        }
    }
    leaves::check(write, env, doc)
}

/// Names that mean themselves in the paths of an update.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('$') && !name.contains('.')
}

pub(super) fn remove(doc: &mut Document, path: &[String]) {
    match path {
        [] => {}
        [name] => drop(doc.remove(name)),
        [name, rest @ ..] => {
            if let Some(Value::Document(mut inner)) = doc.remove(name) {
                remove(&mut inner, rest);
                doc.set(name, inner);
            }
        }
    }
}
