//! Writes to the elements of arrays, which are the rows of a child table.
//!
//! What a statement does with the elements of one document becomes one change of that document. Elements are told apart by what they hold: no two
//! of one array may have the same atomic values (partitioned normal form). Where they have, nobody knows which one a row is, and the
//! statement is refused; one that would make them so violates uniqueness.

use super::apply::{Applying, record_of};
use super::{WRITTEN_FACTOR, conflict};
use crate::bind::write::{Element, Target};
use crate::catalog::Table;
use crate::error::{self, Field, error, fail};
use crate::functions::element;
use crate::run::reader::whole_row;
use crate::types::{json, stored};
use nestor_model::statement::work;
use nestor_model::{Array, DocRef, Document, Error, Result, Value, ValueRef};
use nestor_planner::relation::{Scalar as _, Tuple};
use nestor_storage::Bytes;
use std::collections::{BTreeMap, HashSet};

/// What is done with an element.
enum Edit {
    /// Values are written to it.
    Update(usize, Vec<(Target, Value)>, Vec<Value>),
    /// It goes.
    Delete(usize, Vec<Value>),
    /// There is a new one.
    Insert(Vec<(Target, Value)>),
}

/// What a statement does, by the record of the document.
#[derive(Default)]
pub(super) struct Edits(BTreeMap<Vec<u8>, Vec<Edit>>);

impl Edits {
    fn add(&mut self, record: &Bytes, edit: Edit) {
        self.0.entry(record.to_vec()).or_default().push(edit);
    }

    /// Values are written to the element at an address.
    ///
    /// Errors: XX000.
    pub(super) fn update(&mut self, address: &Bytes, targets: &[Target], values: Tuple, others: Tuple) -> Result<()> {
        let (record, at) = element::read(address)?;
        let values = targets.iter().cloned().zip(values).collect();
        self.add(&record, Edit::Update(at, values, others));
        Ok(())
    }

    /// The element at an address goes.
    ///
    /// Errors: XX000.
    pub(super) fn delete(&mut self, address: &Bytes, others: Tuple) -> Result<()> {
        let (record, at) = element::read(address)?;
        self.add(&record, Edit::Delete(at, others));
        Ok(())
    }
}

/// What tells an element from others: its atomic values.
fn key_of(element: &Element, value: ValueRef<'_>) -> String {
    let is_atomic = |value: ValueRef<'_>| !matches!(value, ValueRef::Document(_) | ValueRef::Array(_));
    let ValueRef::Document(doc) = value else {
        return json::text(value);
    };
    let mut key = Document::new();
    let named: Vec<&str> = element.fields.iter().filter_map(|field| field.as_deref()).collect();
    match named.is_empty() {
        true => doc
            .iter()
            .filter(|(_, value)| is_atomic(*value))
            .for_each(|(name, value)| key.set(name, value.to_value())),
        false => {
            for name in named {
                if let Some(value) = doc.get(name).filter(|value| is_atomic(*value) && !value.is_nullish()) {
                    key.set(name, value.to_value());
                }
            }
        }
    }
    let mut fields: Vec<String> = key
        .iter()
        .map(|(name, value)| format!("{name}: {}", json::text(value)))
        .collect();
    fields.sort();
    fields.join(", ")
}

/// Two elements that are not told apart, by what they have in common.
fn twice(element: &Element, items: &[Value]) -> Option<String> {
    let mut met = HashSet::new();
    items
        .iter()
        .map(|item| key_of(element, item.as_ref()))
        .find(|key| !met.insert(key.clone()))
}

fn not_normal(element: &Element, key: &str) -> Error {
    let told = format!("cannot write to the elements of \"{}\"", element.path);
    let detail =
        format!("Two of them have the same values ({key}): the nested relation is not in partitioned normal form.");
    error::with(error("55000", told), &[(Field::Detail, &detail)])
}

fn doubled(element: &Element, table: &Table, key: &str) -> Error {
    let told = format!(
        "duplicate key value violates the partitioned normal form of \"{}\"",
        element.path
    );
    let detail = format!("An element ({key}) already exists.");
    error::with(
        error("23505", told),
        &[
            (Field::Detail, &detail),
            (Field::Schema, &table.schema),
            (Field::Table, &table.name),
        ],
    )
}

fn write_to(item: &mut Value, values: Vec<(Target, Value)>) -> Result<()> {
    for (target, value) in values {
        if target.path.is_empty() {
            *item = stored::write(&target.ty, value);
            continue;
        }
        let Value::Document(doc) = item else {
            return fail("55000", "an element that is no document has no fields to write to");
        };
        match value {
            Value::Null => super::apply::remove(doc, &target.path),
            value => super::apply::place(doc, &target.path, stored::write(&target.ty, value)),
        }
    }
    Ok(())
}

impl Applying<'_, '_, '_> {
    /// Adds elements for rows whose documents are found by their keys.
    ///
    /// Errors: 23502 without a key, 23503 where there is no document.
    pub(super) fn add_elements(
        &mut self,
        element: &Element,
        targets: &[Target],
        rows: Vec<Tuple>,
        edits: &mut Edits,
    ) -> Result<()> {
        for row in rows {
            work(1)?;
            let (own, parent): (Vec<_>, Vec<_>) = targets
                .iter()
                .cloned()
                .zip(row)
                .partition(|(target, _)| target.is_of_element);
            let mut key = Vec::new();
            for column in &element.key {
                let given = parent.iter().find(|(target, _)| target.column == column.name);
                match given {
                    Some((_, value)) if !matches!(value, Value::Null) => {
                        key.push((column.path.clone(), stored::write(&column.ty, value.clone())));
                    }
                    _ => return Err(super::refused::null(&column.name, &self.write.table, None)),
                }
            }
            let Some((record, _)) = conflict::find_by(self.writer, &key, None, self.op)? else {
                let table = &self.write.table.name;
                let told = format!(
                    "insert into the elements of \"{}\" has no row of table \"{table}\"",
                    element.path
                );
                let shown: Vec<String> = key.iter().map(|(_, value)| json::text(value.as_ref())).collect();
                let names: Vec<&str> = element.key.iter().map(|column| column.name.as_str()).collect();
                let detail = format!(
                    "Key ({})=({}) is not present in table \"{table}\".",
                    names.join(", "),
                    shown.join(", ")
                );
                return Err(error::with(
                    error("23503", told),
                    &[
                        (Field::Detail, &detail),
                        (Field::Schema, &self.write.table.schema),
                        (Field::Table, table),
                    ],
                ));
            };
            edits.add(&record, Edit::Insert(own));
        }
        Ok(())
    }

    /// Does what was noted, one document after the other.
    ///
    /// Errors: 55000 where elements are not told apart, 23505 where they would not be; those of writing.
    pub(super) fn settle_elements(&mut self, element: &Element, edits: Edits) -> Result<()> {
        for (record, edits) in edits.0 {
            work(1)?;
            let record = Bytes::copy_from(&record);
            let Some(before) = self.writer.get(&record)? else {
                continue;
            };
            self.settle_document(element, (&record, &before), edits)?;
        }
        Ok(())
    }

    fn settle_document(
        &mut self,
        element: &Element,
        (record, before): (&Bytes, &Bytes),
        edits: Vec<Edit>,
    ) -> Result<()> {
        let mut items: Vec<Value> = match before.document().get(&element.path) {
            Some(ValueRef::Array(items)) => items.iter().map(|item| item.to_value()).collect(),
            Some(value) if !value.is_nullish() => {
                return fail("55000", format!("\"{}\" is no array in a document", element.path));
            }
            _ => Vec::new(),
        };
        self.gathered.grow(before.len() * WRITTEN_FACTOR)?;
        if let Some(key) = twice(element, &items) {
            return Err(not_normal(element, &key));
        }
        let mut gone: HashSet<usize> = HashSet::new();
        let mut told: Vec<(Value, Vec<Value>)> = Vec::new();
        let mut met: HashSet<usize> = HashSet::new();
        let mut shown: Vec<(usize, Vec<Value>)> = Vec::new();
        for edit in edits {
            work(1)?;
            match edit {
                // Of several rows of FROM the first one counts.
                Edit::Update(at, ..) | Edit::Delete(at, ..) if at >= items.len() || !met.insert(at) => {}
                Edit::Update(at, values, others) => {
                    write_to(&mut items[at], values)?;
                    shown.push((at, others));
                }
                Edit::Delete(at, others) => {
                    gone.insert(at);
                    told.push((items[at].clone(), others));
                }
                Edit::Insert(values) => {
                    let mut item = Value::Document(Document::new());
                    write_to(&mut item, values)?;
                    shown.push((items.len(), Vec::new()));
                    items.push(item);
                }
            }
        }
        told.extend(shown.into_iter().map(|(at, others)| (items[at].clone(), others)));
        let mut at = 0;
        items.retain(|_| {
            at += 1;
            !gone.contains(&(at - 1))
        });
        if let Some(key) = twice(element, &items) {
            return Err(doubled(element, &self.write.table, &key));
        }
        let whole = self.changed_array(element, (record, before), items)?;
        for (item, others) in told {
            self.give_element(element, whole.as_ref(), &item, others)?;
        }
        Ok(())
    }

    /// Writes an array to its document; the document as it is then.
    fn changed_array(
        &mut self,
        element: &Element,
        (record, before): (&Bytes, &Bytes),
        items: Vec<Value>,
    ) -> Result<Document> {
        let (written, returned) = (self.written, self.returned.len());
        let target = Target::of_field(&element.path);
        let array = Value::Array(Array::new(items));
        self.change(std::slice::from_ref(&target), vec![array], record, before)?;
        self.written = written;
        self.returned.truncate(returned);
        let after = self.writer.get(record)?;
        Ok(after
            .as_ref()
            .map_or_else(Document::new, |after| after.document().as_doc().to_document()))
    }

    /// A row that was written, for conditions of views and RETURNING.
    fn give_element(&mut self, element: &Element, doc: DocRef<'_>, item: &Value, others: Vec<Value>) -> Result<()> {
        self.written += 1;
        if self.write.returning.is_none() && self.write.options.is_empty() {
            return Ok(());
        }
        let table = &self.write.table;
        let mut row = whole_row(table, doc)?;
        for (field, ty) in element.fields.iter().zip(&element.types) {
            let value = match (field, item) {
                (None, item) => item.as_ref(),
                (Some(field), Value::Document(own)) => own.get(field).unwrap_or(ValueRef::Missing),
                (Some(_), _) => ValueRef::Missing,
            };
            row.push(stored::read(ty, value, &element.path)?);
        }
        row.push(Value::Null);
        for (view, condition) in &self.write.options {
            if !condition.holds(&row, &self.env)? {
                return fail("44000", format!("new row violates check option for view \"{view}\""));
            }
        }
        if self.write.returning.is_some() {
            row.extend(others);
            self.gathered.grow(row.iter().map(Value::weight).sum::<usize>())?;
            self.returned.push(row);
        }
        Ok(())
    }

    /// The rows of a statement on elements.
    ///
    /// Errors: those of [`Applying::settle_elements`].
    pub(super) fn write_elements(&mut self, element: &Element, rows: Vec<Tuple>) -> Result<()> {
        use crate::bind::write::Action;
        let mut edits = Edits::default();
        let write = self.write.clone();
        match &write.action {
            Action::Insert { targets, .. } => self.add_elements(element, targets, rows, &mut edits)?,
            Action::Update { targets } => {
                for mut row in rows {
                    let address = record_of(&row)?;
                    let others = row.split_off(1 + targets.len());
                    row.remove(0);
                    edits.update(&address, targets, row, others)?;
                }
            }
            Action::Delete => {
                for mut row in rows {
                    let address = record_of(&row)?;
                    edits.delete(&address, row.split_off(1))?;
                }
            }
            Action::Merge { clauses } => self.merge_elements(element, clauses, rows, &mut edits)?,
        }
        self.settle_elements(element, edits)
    }
}
