//! Documents as rows.

use crate::catalog::{Column, Table};
use crate::types::stored;
use nestor_exec::relation::Reader;
use nestor_model::vector::Builder;
use nestor_model::{Binary, DocRef, Result, Value, ValueRef};
use std::sync::Arc;

/// Makes rows of the documents of a table.
pub struct Documents {
    table: Arc<Table>,
    picked: Picked,
}

/// Which columns a row has. Only what is needed of a document is looked at, by going through its fields once.
struct Picked {
    /// Columns of a row.
    width: usize,
    /// The columns of the table that are needed, in their order.
    columns: Vec<usize>,
    /// Which of them the document has had.
    seen: Vec<bool>,
    /// The fields of the document before, in their order.
    places: Vec<Place>,
    /// The document itself is a column behind them, and the key of its record one behind that.
    whole: bool,
    record: bool,
}

/// A field of a document, and which of the needed columns it is.
struct Place {
    name: String,
    column: Option<usize>,
}

/// Fields whose places are kept.
const PLACES_MAX: usize = 256;

/// The row that a document is: the columns that are `needed`, and behind them the document and the key of its record. Other columns are null.
///
/// Errors: 22P02 and 22003 when a value is not of its column's type.
pub fn row_of(table: &Table, needed: &[bool], doc: DocRef<'_>, record: Option<&[u8]>) -> Result<Vec<Value>> {
    Picked::new(table, needed).row(table, doc, record)
}

impl Documents {
    /// Rows as [`row_of`] makes them.
    pub fn new(table: &Arc<Table>, needed: &[bool]) -> Self {
        Self {
            table: table.clone(),
            picked: Picked::new(table, needed),
        }
    }
}

impl Reader for Documents {
    fn read(&mut self, row: &nestor_exec::Row) -> Result<Vec<Value>> {
        self.picked.row(&self.table, row.as_doc(), row.record.as_deref())
    }

    fn reads_documents_only(&self) -> bool {
        !self.picked.record
    }

    fn read_into(&mut self, doc: DocRef<'_>, columns: &mut [Builder]) -> Result<()> {
        let behind = self.table.columns.len();
        if self.picked.whole {
            columns[behind].push(Value::Document(doc.to_document()));
        }
        self.picked.add(&self.table.columns, doc, columns)
    }
}

impl Picked {
    fn new(table: &Table, needed: &[bool]) -> Self {
        let is_needed = |at: &usize| needed.get(*at) == Some(&true);
        let behind = table.columns.len();
        let columns: Vec<usize> = (0..behind).filter(is_needed).collect();
        Self {
            width: needed.len(),
            seen: vec![false; columns.len()],
            places: Vec::new(),
            columns,
            whole: is_needed(&behind),
            record: is_needed(&(behind + 1)),
        }
    }

    fn row(&mut self, table: &Table, doc: DocRef<'_>, record: Option<&[u8]>) -> Result<Vec<Value>> {
        let mut out = vec![Value::Null; self.width];
        match self.columns.as_slice() {
            [] => {}
            [at] => {
                let column = &table.columns[*at];
                let value = doc.get(&column.path).unwrap_or(ValueRef::Missing);
                out[*at] = stored::read(&column.ty, value, &column.path)?;
            }
            _ => self.go_through(&table.columns, doc, &mut out)?,
        }
        let behind = table.columns.len();
        if self.whole {
            out[behind] = Value::Document(doc.to_document());
        }
        if let (true, Some(record)) = (self.record, record) {
            out[behind + 1] = Value::Binary(Binary {
                subtype: 0,
                bytes: record.into(),
            });
        }
        Ok(out)
    }

    /// Fields mostly come in the order of the columns, so each is looked for behind the one before it first.
    fn go_through(&mut self, all: &[Column], doc: DocRef<'_>, out: &mut [Value]) -> Result<()> {
        let columns = &self.columns;
        self.seen.fill(false);
        let (mut next, mut left) = (0, columns.len());
        for (name, value) in doc.iter() {
            let is_it = |at: &usize| all[columns[*at]].path == name;
            let found = (next..columns.len()).find(is_it);
            let Some(at) = found.or_else(|| (0..next).find(is_it)) else {
                continue;
            };
            next = at + 1;
            // Of a field that a document has twice the first counts.
            if std::mem::replace(&mut self.seen[at], true) {
                continue;
            }
            let column = &all[columns[at]];
            out[columns[at]] = stored::read(&column.ty, value, &column.path)?;
            left -= 1;
            if left == 0 {
                break;
            }
        }
        Ok(())
    }
}

impl Picked {
    /// Adds the columns of a document.
    fn add(&mut self, all: &[Column], doc: DocRef<'_>, into: &mut [Builder]) -> Result<()> {
        let columns = &self.columns;
        if columns.is_empty() {
            return Ok(());
        }
        self.seen.fill(false);
        let (mut next, mut left) = (0, columns.len());
        for (at, (name, value)) in doc.iter().enumerate() {
            // Documents mostly have their fields where the one before had them.
            let known = self.places.get(at).filter(|place| place.name == name);
            let found = match known {
                Some(place) => place.column,
                None => {
                    let is_it = |at: &usize| all[columns[*at]].path == name;
                    let found = (next..columns.len()).find(is_it);
                    let found = found.or_else(|| (0..next).find(is_it));
                    self.places.truncate(at);
                    if at == self.places.len() && at < PLACES_MAX {
                        self.places.push(Place {
                            name: name.into(),
                            column: found,
                        });
                    }
                    found
                }
            };
            let Some(at) = found else { continue };
            next = at + 1;
            // Of a field that a document has twice the first counts.
            if std::mem::replace(&mut self.seen[at], true) {
                continue;
            }
            let column = &all[columns[at]];
            stored::read_into(&column.ty, value, &column.path, &mut into[columns[at]])?;
            left -= 1;
            if left == 0 {
                break;
            }
        }
        if left > 0 {
            for (seen, column) in self.seen.iter().zip(columns) {
                if !seen {
                    into[*column].push_null();
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Kind;
    use crate::types::Type;
    use nestor_model::{RawWriter, doc, values_equal};

    #[test]
    fn fields_come_in_any_order_and_the_first_of_two_counts() {
        let columns = ["a", "b", "c", "d"].map(|name| Column::new(name, Type::Int4));
        let table = Table::new("t", columns.to_vec(), Kind::Rows(Arc::default()));
        let needed = [true, false, true, true, false, true];
        let doc = doc! { "d": 4, "x": 0, "a": 1, "b": 2, "c": 3 };
        let key = Value::Binary(Binary {
            subtype: 0,
            bytes: b"k".as_slice().into(),
        });
        let same = |row: &[Value], wanted: &[Value]| {
            row.len() == wanted.len() && row.iter().zip(wanted).all(|(a, b)| values_equal(a, b))
        };
        let row = row_of(&table, &needed, doc.as_ref(), Some(b"k")).expect("a row");
        let wanted = [1.into(), Value::Null, 3.into(), 4.into(), Value::Null, key];
        assert!(same(&row, &wanted), "{row:?}");
        let mut writer = RawWriter::with_capacity(64);
        for (name, value) in [("c", 7), ("c", 8), ("a", 9)] {
            writer.append(name, ValueRef::Int32(value));
        }
        let twice = writer.into_doc();
        let row = row_of(&table, &needed, twice.as_raw().as_doc(), None).expect("a row");
        let wanted = [9.into(), Value::Null, 7.into(), Value::Null, Value::Null, Value::Null];
        assert!(same(&row, &wanted), "{row:?}");
        let row = row_of(&table, &[false, false, true], doc.as_ref(), None).expect("a row");
        assert!(same(&row, &[Value::Null, Value::Null, 3.into()]), "{row:?}");
    }
}
