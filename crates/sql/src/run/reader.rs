//! Documents as rows.

use crate::catalog::{Column, Elements, Table};
use crate::error::fail;
use crate::functions::{leaves, typed_into};
use crate::types::{Type, stored};
use nestor_exec::relation::Reader;
use nestor_model::raw::FieldName;
use nestor_model::value::DocIter;
use nestor_model::vector::Builder;
use nestor_model::{Binary, DocRef, Result, Value, ValueRef};
use std::sync::Arc;

/// Columns that are read for all rows, with those that conditions look at, rather than afterwards for those that are wanted.
const IN_PASSING_MAX: usize = 4;

/// Makes rows of the documents of a table.
pub struct Documents {
    table: Arc<Table>,
    picked: Picked,
    /// What is read of documents that have passed by what was read first.
    rest: Option<Picked>,
    /// What is read of elements, and afterwards of those that have passed, where these are the rows.
    fields: Option<(Elements, Picked, Option<Picked>)>,
}

/// Which columns a row has. Only what is needed of a document is looked at, by going through its fields once.
struct Picked {
    /// Columns of a row.
    width: usize,
    /// The columns of the table that are needed, in their order.
    columns: Vec<usize>,
    /// They are fields of elements, which their names say.
    of_elements: bool,
    /// The array of elements is one of them that somebody looks at.
    has_array: bool,
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
    name: FieldName,
    column: Option<usize>,
}

/// Fields whose places are kept.
const PLACES_MAX: usize = 256;

/// The row that a document is, with all columns; as [`row_of`], without a record.
///
/// Errors: those of [`row_of`].
pub fn whole_row(table: &Table, doc: DocRef<'_>) -> Result<Vec<Value>> {
    row_of(table, &vec![true; table.columns.len() + 2], doc, None)
}

/// The row that a document is: the columns that are `needed`, and behind them the document and the key of its record. Other columns are null.
///
/// Errors: 22P02 and 22003 when a value is not of its column's type.
pub fn row_of(table: &Table, needed: &[bool], doc: DocRef<'_>, record: Option<&[u8]>) -> Result<Vec<Value>> {
    Picked::new(table, needed).row(table, doc, record)
}

impl Documents {
    /// Rows as [`row_of`] makes them; of a table of elements those of each document.
    pub fn new(table: &Arc<Table>, needed: &[bool]) -> Self {
        let fields = table
            .elements
            .map(|elements| (elements, Picked::of_elements(table, elements, needed), None));
        Self {
            table: table.clone(),
            picked: Picked::new(table, needed),
            rest: None,
            fields,
        }
    }
}

impl Reader for Documents {
    fn read(&mut self, row: &nestor_exec::Row) -> Result<Vec<Value>> {
        match &self.fields {
            Some(_) => fail("XX000", "the elements of a document were read as one row"),
            None => self.picked.row(&self.table, row.as_doc(), row.record.as_deref()),
        }
    }

    fn reads_documents_only(&self) -> bool {
        !self.picked.record
    }

    fn tells_apart(&self, column: usize) -> bool {
        let first = self.table.elements.map(|elements| elements.first);
        first.is_some_and(|first| (first..self.table.columns.len()).contains(&column))
    }

    fn split(&mut self, first: &[bool]) {
        let width = self.picked.width;
        let mut needed = vec![false; width];
        self.picked.columns.iter().for_each(|at| needed[*at] = true);
        if let Some((_, fields, _)) = &self.fields {
            fields.columns.iter().for_each(|at| needed[*at] = true);
        }
        if self.picked.whole {
            needed[self.table.columns.len()] = true;
        }
        let later: Vec<bool> = needed.iter().zip(first).map(|(all, first)| *all && !first).collect();
        self.picked = Picked::new(&self.table, first);
        self.rest = Some(Picked::new(&self.table, &later));
        if let Some((elements, fields, rest)) = &mut self.fields {
            *fields = Picked::of_elements(&self.table, *elements, first);
            *rest = Some(Picked::of_elements(&self.table, *elements, &later));
        }
    }

    fn reads_in_passing(&self, columns: &[bool]) -> bool {
        let is_small = |ty: &Type| {
            matches!(
                ty,
                Type::Bool
                    | Type::Int2
                    | Type::Int4
                    | Type::Int8
                    | Type::Float4
                    | Type::Float8
                    | Type::Numeric
                    | Type::Date
                    | Type::Timestamp
                    | Type::Timestamptz
            )
        };
        let mut own = (0..columns.len()).filter(|at| columns[*at]);
        let is_plain = self.table.declared && self.fields.is_none();
        let are_few = own.clone().count() <= IN_PASSING_MAX;
        is_plain && are_few && own.all(|at| self.table.columns.get(at).is_some_and(|column| is_small(&column.ty)))
    }

    fn read_into(&mut self, doc: DocRef<'_>, columns: &mut [Builder]) -> Result<usize> {
        match &mut self.fields {
            None => self.picked.read(&self.table, doc, columns).map(|()| 1),
            Some((elements, fields, _)) => {
                elements_into(&self.table, *elements, (&mut self.picked, fields), (doc, None), columns)
            }
        }
    }

    fn read_rest(&mut self, doc: DocRef<'_>, rows: &[u32], columns: &mut [Builder]) -> Result<()> {
        match (&mut self.rest, &mut self.fields) {
            (Some(rest), None) => rest.read(&self.table, doc, columns),
            (Some(rest), Some((elements, _, Some(fields)))) => {
                elements_into(&self.table, *elements, (rest, fields), (doc, Some(rows)), columns).map(drop)
            }
            _ => Ok(()),
        }
    }
}

/// Adds the rows that the elements of a document are, or those of these numbers; how many.
fn elements_into(
    table: &Table,
    elements: Elements,
    (own, fields): (&mut Picked, &mut Picked),
    (doc, rows): (DocRef<'_>, Option<&[u32]>),
    into: &mut [Builder],
) -> Result<usize> {
    // The document's own values are known before it is known how often they are wanted.
    let mut values = vec![ValueRef::Missing; own.columns.len()];
    own.visit(&table.columns, doc, &mut |at, value| {
        values[at] = *value;
        Ok(())
    })?;
    let array = own.columns.iter().position(|column| *column == elements.array);
    let array = array.map_or(ValueRef::Missing, |at| values[at]);
    let (mut number, mut count) = (0, 0);
    let mut is_wanted = |count: &mut usize| {
        let wanted = rows.is_none_or(|rows| rows.get(*count) == Some(&number));
        number += 1;
        *count += usize::from(wanted);
        wanted
    };
    match array {
        ValueRef::Array(items) => {
            for item in items.iter() {
                let ValueRef::Document(item) = item else {
                    return fail("22023", "cannot call this function on a scalar");
                };
                if is_wanted(&mut count) {
                    fields.add_fields(&table.columns, item, into)?;
                }
            }
        }
        value if value.is_nullish() => {}
        value => {
            let column = &table.columns[elements.array];
            if column.ty != Type::Jsonb {
                stored::read(&column.ty, value, &column.path)?;
            }
            return fail("22023", "cannot call this function on a non-array");
        }
    }
    if number == 0 && elements.keeps {
        count = 1;
        fields.columns.iter().for_each(|column| into[*column].push_null());
    }
    for (at, value) in own.columns.iter().zip(values) {
        // The array is read for its elements, and is a column itself only where somebody looks at it.
        if *at == elements.array && !own.has_array {
            continue;
        }
        let column = &table.columns[*at];
        for _ in 0..count {
            column.read_into(&value, &mut into[*at])?;
        }
    }
    if own.whole {
        for _ in 0..count {
            into[table.columns.len()].push(Value::Document(doc.to_document()));
        }
    }
    Ok(count)
}

impl Picked {
    fn new(table: &Table, needed: &[bool]) -> Self {
        let is_needed = |at: &usize| needed.get(*at) == Some(&true);
        let behind = table.columns.len();
        // Of elements only the documents' own columns, and the array in any case.
        let own = table.elements.map_or(behind, |elements| elements.first);
        let array = table.elements.map(|elements| elements.array);
        let columns: Vec<usize> = (0..own).filter(|at| is_needed(at) || array == Some(*at)).collect();
        Self {
            width: needed.len(),
            of_elements: false,
            has_array: array.is_some_and(|at| is_needed(&at)),
            seen: vec![false; columns.len()],
            places: Vec::new(),
            columns,
            whole: is_needed(&behind),
            record: is_needed(&(behind + 1)),
        }
    }

    /// The fields of elements.
    fn of_elements(table: &Table, elements: Elements, needed: &[bool]) -> Self {
        let all = elements.first..table.columns.len();
        let columns: Vec<usize> = all.filter(|at| needed.get(*at) == Some(&true)).collect();
        Self {
            width: needed.len(),
            of_elements: true,
            has_array: false,
            seen: vec![false; columns.len()],
            places: Vec::new(),
            columns,
            whole: false,
            record: false,
        }
    }

    fn row(&mut self, table: &Table, doc: DocRef<'_>, record: Option<&[u8]>) -> Result<Vec<Value>> {
        let mut out = vec![Value::Null; self.width];
        match self.columns.as_slice() {
            [] => {}
            [at] => {
                let column = &table.columns[*at];
                let value = doc.get(&column.path).unwrap_or(ValueRef::Missing);
                out[*at] = column.read(value)?;
            }
            _ => self.go_through(&table.columns, doc, &mut out)?,
        }
        let behind = table.columns.len();
        if self.whole {
            out[behind] = Value::Document(doc.to_document());
        }
        let leaf = table.leaf.as_ref().filter(|_| self.record);
        let told = leaf.map(|leaf| leaves::joined(leaf.oid, record.unwrap_or_default()));
        if let (true, Some(record)) = (self.record, told.as_deref().or(record)) {
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
            out[columns[at]] = column.read(value)?;
            left -= 1;
            if left == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Adds the columns of a document, and itself if it is one.
    fn read(&mut self, table: &Table, doc: DocRef<'_>, into: &mut [Builder]) -> Result<()> {
        if self.whole {
            into[table.columns.len()].push(Value::Document(doc.to_document()));
        }
        self.add(&table.columns, doc, into, &Column::read_into)
    }

    /// Adds the fields of an element.
    fn add_fields(&mut self, all: &[Column], doc: DocRef<'_>, into: &mut [Builder]) -> Result<()> {
        self.add(all, doc, into, &|column, value, into| {
            typed_into(value, &column.ty, into)
        })
    }

    /// Adds the columns of a document, each value as `read` has it.
    fn add(
        &mut self,
        all: &[Column],
        doc: DocRef<'_>,
        into: &mut [Builder],
        read: &impl Fn(&Column, &ValueRef<'_>, &mut Builder) -> Result<()>,
    ) -> Result<()> {
        // The columns are taken away meanwhile, so that what takes values may look at them.
        let columns = std::mem::take(&mut self.columns);
        let left = self.visit_columns(&columns, all, doc, &mut |at, value| {
            read(&all[columns[at]], value, &mut into[columns[at]])
        });
        self.columns = columns;
        if left? > 0 {
            for (seen, column) in self.seen.iter().zip(&self.columns) {
                if !seen {
                    into[*column].push_null();
                }
            }
        }
        Ok(())
    }

    /// Has `take` take the values of the needed columns that a document has, each once, by their numbers among these.
    fn visit<'d>(
        &mut self,
        all: &[Column],
        doc: DocRef<'d>,
        take: &mut impl FnMut(usize, &ValueRef<'d>) -> Result<()>,
    ) -> Result<()> {
        let columns = std::mem::take(&mut self.columns);
        let left = self.visit_columns(&columns, all, doc, take);
        self.columns = columns;
        left.map(drop)
    }

    /// As [`Picked::visit`]; how many of the columns the document does not have.
    fn visit_columns<'d>(
        &mut self,
        columns: &[usize],
        all: &[Column],
        doc: DocRef<'d>,
        take: &mut impl FnMut(usize, &ValueRef<'d>) -> Result<()>,
    ) -> Result<usize> {
        if columns.is_empty() {
            return Ok(0);
        }
        self.seen.fill(false);
        let (mut next, mut left) = (0, columns.len());
        // By reference: a copy of a value that has just been read waits for its parts.
        let mut take_first = |seen: &mut [bool], at: usize, value: &ValueRef<'d>| -> Result<bool> {
            // Of a field that a document has twice the first counts.
            if std::mem::replace(&mut seen[at], true) {
                return Ok(false);
            }
            take(at, value)?;
            left -= 1;
            Ok(left == 0)
        };
        let mut is_done = false;
        let mut fields = doc.iter();
        // Documents mostly have their fields where the one before had them: nothing but those that are needed is looked at.
        let mut passed = 0;
        if let DocIter::Raw(raw) = &mut fields {
            for place in &self.places {
                let Some(value) = raw.next_named(&place.name) else {
                    break;
                };
                passed += 1;
                if let Some(at) = place.column {
                    next = at + 1;
                    is_done = take_first(&mut self.seen, at, &value.read())?;
                    if is_done {
                        break;
                    }
                }
            }
        }
        if !is_done {
            self.places.truncate(passed);
            let of_elements = self.of_elements;
            for (name, value) in fields {
                let is_it = |at: &usize| {
                    let column = &all[columns[*at]];
                    match of_elements {
                        true => column.name == name,
                        false => column.path == name,
                    }
                };
                let found = (next..columns.len()).find(is_it);
                let found = found.or_else(|| (0..next).find(is_it));
                if self.places.len() < PLACES_MAX {
                    self.places.push(Place {
                        name: FieldName::new(name),
                        column: found,
                    });
                }
                if let Some(at) = found {
                    next = at + 1;
                    if take_first(&mut self.seen, at, &value)? {
                        break;
                    }
                }
            }
        }
        Ok(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Kind;
    use crate::types::Type;
    use nestor_model::{RawWriter, doc, values_equal};

    fn same(row: &[Value], wanted: &[Value]) -> bool {
        row.len() == wanted.len() && row.iter().zip(wanted).all(|(a, b)| values_equal(a, b))
    }

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
    /// The same rows column by column, all at once and in two goes, of documents whose fields stand in ever other places.
    #[test]
    fn columns_are_read_as_rows_are() {
        let names = ["alpha", "b", "longer_than_eight", "d"];
        let columns = names.map(|name| Column::new(name, Type::Int4));
        let table = Arc::new(Table::new("t", columns.to_vec(), Kind::Rows(Arc::default())));
        let mut state = 7u32;
        let mut next = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % below
        };
        let mut docs = Vec::new();
        for _ in 0..400 {
            let mut writer = RawWriter::with_capacity(64);
            let shift = if next(3) == 0 { next(6) } else { 0 };
            for place in 0..6 + next(2) {
                match ((place + shift) % 6) as usize {
                    at @ 0..4 if next(9) > 0 => writer.append(names[at], ValueRef::Int32(next(100) as i32)),
                    4 => writer.append("other", ValueRef::String("x")),
                    _ => {}
                }
            }
            docs.push(writer.into_doc());
        }
        for (needed, first) in [
            ([true, true, true, true, false], [false; 5]),
            ([true, false, true, true, true], [false, false, true, false, false]),
            ([false, true, false, true, false], [false, true, false, true, false]),
        ] {
            let mut reader = Documents::new(&table, &needed);
            if first.contains(&true) {
                reader.split(&first);
            }
            let mut columns: Vec<Builder> = (0..needed.len()).map(|_| Builder::default()).collect();
            for doc in &docs {
                let doc = doc.as_raw().as_doc();
                reader.read_into(doc, &mut columns).expect("numbers");
                reader.read_rest(doc, &[0], &mut columns).expect("numbers");
            }
            let columns: Vec<_> = columns.into_iter().map(Builder::finish).collect();
            for (at, doc) in docs.iter().enumerate() {
                let row = row_of(&table, &needed, doc.as_raw().as_doc(), None).expect("a row");
                let found = columns.iter().map(|column| match column.is_empty() {
                    true => Value::Null,
                    false => column.value(at),
                });
                assert!(same(&found.collect::<Vec<_>>(), &row), "{at}: {row:?} of {doc:?}");
            }
        }
    }
}
