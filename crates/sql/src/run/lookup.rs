//! Rows by the keys of many rows of another table at a time, as joins look them up.

use super::{element_index, find, probe};
use crate::catalog::Table;
use crate::expr::Expr;
use nestor_exec::BoxOperator;
use nestor_exec::catalog::indexes;
use nestor_exec::ops::{IndexKeys, KeyLookup};
use nestor_exec::text;
use nestor_model::statement::{ROW, work};
use nestor_model::vector::Vector;
use nestor_model::{Result, Value};
use nestor_planner::catalog::IndexInfo;
use nestor_planner::relation::{Scan, Tuple};
use nestor_storage::keys::EntryFormat;
use nestor_storage::{Collection, Cursor, Index, IndexId, View, keys};
use std::sync::Arc;

/// Why keys are not looked up.
enum Stop {
    /// A value is null, and equal to nothing.
    Null,
    /// Documents may hold equal values in another form.
    Form,
}

/// What has the rows for keys.
pub enum Found {
    /// The documents that this finds.
    Documents(BoxOperator),
    /// These: the index, of which this is the text, has all that is looked at.
    Rows(Vec<Tuple>, String),
}

/// The rows of a scan that have one of these keys in these columns, and maybe others; `None` where there is no index for it. Rows with a null in
/// their key have none.
///
/// Errors: those of the index and of storage.
pub fn look_up(
    scan: &Scan<Expr>,
    (table, collection): (&Table, &Arc<Collection>),
    columns: &[usize],
    values: &[Arc<Vector>],
    view: &dyn View,
) -> Result<Option<Found>> {
    if collection.is_clustered() {
        return Ok(None);
    }
    let Some((index, parts)) = best(table, indexes(collection)?, columns) else {
        return Ok(None);
    };
    let Some(index) = collection.all_indexes().find(|own| own.id == IndexId(index.id)) else {
        return Ok(None);
    };
    // Of elements values of other BSON types may be read as equal ones.
    let of_elements = index.is_multikey();
    if of_elements && !element_index::is_of_one_kind(index, &table.columns[columns[parts[0]]].ty, view)? {
        return Ok(None);
    }
    let (mut wanted, mut rows) = (IndexKeys::default(), Vec::new());
    for row in 0..values.first().map_or(0, |values| values.len()) {
        let added = wanted.add(|bytes| {
            for (part, at) in parts.iter().enumerate() {
                let value = values[*at].value(row);
                if matches!(value, Value::Null) {
                    return Err(Stop::Null);
                }
                let ty = &table.columns[columns[*at]].ty;
                let value = match of_elements {
                    true => element_index::key(ty, value),
                    false => find::stored(ty, value),
                };
                let value = value.ok_or(Stop::Form)?;
                keys::encode_into(value.as_ref(), index.descending[part], bytes);
            }
            Ok(())
        });
        match added {
            Ok(()) => rows.push(row),
            Err(Stop::Null) => {}
            Err(Stop::Form) => return Ok(None),
        }
    }
    collection.state.note_index_use(index.id);
    // Whether the index has all that is looked at: what is equal to a key is the key.
    let is_key = |at: usize| parts.iter().any(|part| columns[*part] == at);
    let is_plain = |part: &usize| scan.distinct || find::is_one_form(&table.columns[columns[*part]].ty);
    let is_covered = table.elements.is_none()
        && parts.iter().all(is_plain)
        && (0..scan.needed.len()).all(|at| !scan.needed[at] || is_key(at));
    let path = || format!("IXSCAN {}", text::shell(index.key_pattern.as_ref()));
    if let Some(told) = told(scan, (table, collection), index).filter(|_| !is_covered) {
        return told.look_up(&wanted, view).map(|rows| Some(Found::Rows(rows, path())));
    }
    if !is_covered {
        let lookup = KeyLookup::new(collection, index.clone(), wanted, parts.len());
        return Ok(Some(Found::Documents(Box::new(lookup))));
    }
    // One of each is enough for who asks whether there is any.
    let found = entries(&wanted, index, (view, scan.distinct), |at, _| {
        let mut tuple = vec![Value::Null; scan.needed.len()];
        for part in &parts {
            tuple[columns[*part]] = values[*part].value(rows[at]);
        }
        Ok(tuple)
    })?;
    Ok(Some(Found::Rows(found, path())))
}

/// The rows that `row` makes of the entries that begin with some keys, of which it is told the number; of the first for each key if `only_first`.
///
/// Errors: those of `row` and of storage.
fn entries(
    wanted: &IndexKeys,
    index: &Index,
    (view, only_first): (&dyn View, bool),
    mut row: impl FnMut(usize, &Cursor) -> Result<Tuple>,
) -> Result<Vec<Tuple>> {
    let mut found = Vec::new();
    let mut cursor = view.cursor(index.tree);
    for at in wanted.different() {
        work(ROW)?;
        let prefix = wanted.get(at);
        let mut more = cursor.seek(prefix)?;
        while more && cursor.key().starts_with(prefix) {
            work(ROW / 2)?;
            found.push(row(at, &cursor)?);
            more = !only_first && cursor.next()?;
        }
    }
    Ok(found)
}

/// The columns that an index has of all that are looked at, with the parts of its key that they are.
struct Told<'t> {
    table: &'t Table,
    index: &'t Index,
    format: EntryFormat,
    width: usize,
    columns: Vec<(usize, usize)>,
}

/// What an index has of a scan's columns, if these are all that it looks at.
fn told<'t>(scan: &Scan<Expr>, (table, collection): (&'t Table, &Collection), index: &'t Index) -> Option<Told<'t>> {
    if table.elements.is_some() || index.is_multikey() {
        return None;
    }
    let mut columns = Vec::new();
    for at in (0..scan.needed.len()).filter(|at| scan.needed[*at]) {
        let column = table.columns.get(at)?;
        // Entries do not tell a null from the absence of the field.
        let is_plain = !column.has_json_nulls() && find::usable(&column.path);
        let part = index.key_pattern.iter().position(|(path, _)| path == column.path);
        columns.push((at, part.filter(|_| is_plain)?));
    }
    Some(Told {
        table,
        index,
        format: index.entry_format(collection),
        width: scan.needed.len(),
        columns,
    })
}

impl Told<'_> {
    /// The rows of the entries that begin with these keys.
    ///
    /// Errors: those of storage; a value is not of its column's type.
    fn look_up(&self, wanted: &IndexKeys, view: &dyn View) -> Result<Vec<Tuple>> {
        let format = &self.format;
        let mut values = Vec::new();
        entries(wanted, self.index, (view, false), |_, cursor| {
            let entry = format.split(cursor.key(), cursor.value()?)?;
            values.clear();
            keys::decode_onto(&mut values, entry.key, entry.type_bits, &format.descending)?;
            let mut tuple = vec![Value::Null; self.width];
            for (column, part) in &self.columns {
                tuple[*column] = self.table.columns[*column].read(values[*part].as_ref())?;
            }
            Ok(tuple)
        })
    }
}

/// The index whose first parts are most of these columns, and for each of these parts which of them it is.
fn best<'i>(table: &Table, all: &'i [Arc<IndexInfo>], columns: &[usize]) -> Option<(&'i Arc<IndexInfo>, Vec<usize>)> {
    let mut best: Option<(&Arc<IndexInfo>, Vec<usize>)> = None;
    for index in all {
        if !probe::is_plain(index) {
            continue;
        }
        if index.is_multikey() {
            // The fields of an element are in one entry, and the first of them is told by it.
            let first = index.parts.first();
            let own = first.and_then(|part| element_index::column(table, part.path.as_str()));
            let at = own.and_then(|own| columns.iter().position(|column| *column == own));
            if let (Some(at), None) = (at, &best) {
                best = Some((index, vec![at]));
            }
            continue;
        }
        let place = |path: &str| {
            columns
                .iter()
                .position(|at| table.columns.get(*at).is_some_and(|own| own.path == path))
        };
        let parts: Vec<usize> = index.parts.iter().map_while(|part| place(part.path.as_str())).collect();
        let is_whole = |index: &IndexInfo, parts: &[usize]| index.unique && parts.len() == index.parts.len();
        let is_better = |(other, of_other): &(&Arc<IndexInfo>, Vec<usize>)| {
            (parts.len(), is_whole(index, &parts)) > (of_other.len(), is_whole(other, of_other))
        };
        if !parts.is_empty() && best.as_ref().is_none_or(is_better) {
            best = Some((index, parts));
        }
    }
    best
}
