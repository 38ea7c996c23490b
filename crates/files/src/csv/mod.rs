//! Comma- and tab-separated values. A column's type is what its name says (`--columnsHaveTypes`, [`types`]) or what each
//! field looks like ([`infer`]). A dot in a field's name nests.
//!
//! A row with fewer fields than columns leaves the last ones out; what it has beyond them is named `field2`, `field3`,
//! ... after its place from 0. That is how mongoimport has it.

mod dates;
pub mod infer;
mod types;

use crate::records::{BadRecord, Place, Record, Records, Skipped};
use nestor_model::RawWriter;
use std::io::{BufReader, Read};
pub use types::Grace;
use types::{ColumnType, Mismatch};

/// How a table is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// What stands between fields: an ASCII character.
    pub delimiter: char,
    /// Names of the fields; none for those of the first row.
    pub fields: Vec<String>,
    /// Names are followed by types.
    pub have_types: bool,
    /// What becomes of a field that is not of its type.
    pub grace: Grace,
    /// Empty fields are left out.
    pub ignore_blanks: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            delimiter: ',',
            fields: Vec::new(),
            have_types: false,
            grace: Grace::Stop,
            ignore_blanks: false,
        }
    }
}

/// Rows of a file, as documents.
pub struct Rows<R> {
    reader: csv::Reader<R>,
    row: csv::StringRecord,
    columns: Option<Columns>,
    have_types: bool,
    grace: Grace,
    ignore_blanks: bool,
    skipped: Skipped,
}

impl<R: Read> Rows<R> {
    /// Reads from the beginning of `input`; the names are those of the options or the first row.
    pub fn new(input: R, options: &Options) -> Result<Rows<BufReader<R>>, String> {
        let delimiter = u8::try_from(options.delimiter)
            .ok()
            .filter(u8::is_ascii)
            .ok_or("the delimiter is one ASCII character")?;
        let reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .quoting(delimiter != b'\t')
            .has_headers(false)
            .flexible(true)
            .from_reader(BufReader::with_capacity(1 << 18, input));
        let columns = if options.fields.is_empty() {
            None
        } else {
            Some(Columns::new(&options.fields, options.have_types).map_err(|e| format!("names of fields: {e}"))?)
        };
        Ok(Rows {
            reader,
            row: csv::StringRecord::new(),
            columns,
            have_types: options.have_types,
            grace: options.grace,
            ignore_blanks: options.ignore_blanks,
            skipped: Skipped::default(),
        })
    }
}

impl<R: Read> Records for Rows<R> {
    fn next_record(&mut self) -> Result<Option<Record>, BadRecord> {
        loop {
            let line_before = self.reader.position().line();
            match self.reader.read_record(&mut self.row) {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(error) => return Err(fault(error, line_before)),
            }
            // Blank lines before a row count as part of it.
            let line = self.row.position().map_or(line_before, csv::Position::line);
            let Some(columns) = &self.columns else {
                let names = self.row.iter().map(without_byte_order_mark);
                let names: Vec<String> = names.map(str::to_owned).collect();
                let columns = Columns::new(&names, self.have_types).map_err(|e| BadRecord::at_line(line, e))?;
                self.columns = Some(columns);
                continue;
            };
            match columns.encode(&self.row, self.grace, self.ignore_blanks) {
                Ok(bson) => {
                    return Ok(Some(Record {
                        place: Place::Line(line),
                        bson,
                    }));
                }
                Err(reason) if self.grace == Grace::SkipRow => {
                    self.skipped.add(BadRecord::at_line(line, reason));
                }
                Err(reason) => return Err(BadRecord::at_line(line, reason)),
            }
        }
    }

    fn skipped(&mut self) -> Skipped {
        std::mem::take(&mut self.skipped)
    }
}

fn fault(error: csv::Error, line: u64) -> BadRecord {
    let line = error.position().map_or(line, csv::Position::line);
    match error.kind() {
        csv::ErrorKind::Utf8 { .. } => BadRecord::at_line(line, "the text is not UTF-8"),
        csv::ErrorKind::Io(_) => BadRecord {
            place: None,
            reason: error.to_string(),
        },
        _ => BadRecord::at_line(line, error.to_string()),
    }
}

fn without_byte_order_mark(name: &str) -> &str {
    name.strip_prefix('\u{feff}').unwrap_or(name).trim()
}

/// The columns as a tree of fields: leaves are columns, a dotted name makes a nested document.
struct Columns {
    /// `types[i]` and `names[i]` are column `i`'s.
    types: Vec<ColumnType>,
    names: Vec<String>,
    fields: Vec<(String, Field)>,
}

enum Field {
    Column(usize),
    Document(Vec<(String, Field)>),
}

impl Columns {
    fn new(columns: &[String], have_types: bool) -> Result<Self, String> {
        let mut made = Self {
            types: Vec::new(),
            names: Vec::new(),
            fields: Vec::new(),
        };
        for (i, column) in columns.iter().enumerate() {
            let (name, kind) = if have_types {
                ColumnType::split(column)?
            } else {
                (column.as_str(), ColumnType::Auto)
            };
            if name.is_empty() || name.split('.').any(str::is_empty) || name.contains('\0') {
                return Err(format!("field {} has the name {name:?}", i + 1));
            }
            let parts: Vec<&str> = name.split('.').collect();
            if !insert(&mut made.fields, &parts, i) {
                return Err(format!("the name {name:?} collides with another one"));
            }
            made.names.push(name.to_owned());
            made.types.push(kind);
        }
        Ok(made)
    }

    /// The row as a document, or why it is none.
    fn encode(&self, row: &csv::StringRecord, grace: Grace, ignore_blanks: bool) -> Result<Vec<u8>, String> {
        let mut encoder = Encoder {
            columns: self,
            row,
            grace,
            ignore_blanks,
            writer: RawWriter::with_capacity(row.as_slice().len() * 2 + 64),
        };
        encoder.append(&self.fields)?;
        for (i, text) in row.iter().enumerate().skip(self.types.len()) {
            if ignore_blanks && text.is_empty() {
                continue;
            }
            let name = format!("field{i}");
            if self.fields.iter().any(|(taken, _)| *taken == name) {
                return Err(format!("field {} would be named {name}, which another one is", i + 1));
            }
            infer::append(&mut encoder.writer, &name, text);
        }
        Ok(encoder.writer.finish())
    }
}

/// False when the place is taken.
fn insert(fields: &mut Vec<(String, Field)>, parts: &[&str], column: usize) -> bool {
    let Some((first, rest)) = parts.split_first() else {
        return false;
    };
    let known = fields.iter_mut().find(|(name, _)| name == first);
    match (known, rest.is_empty()) {
        (None, true) => fields.push(((*first).to_owned(), Field::Column(column))),
        (None, false) => {
            let mut nested = Vec::new();
            insert(&mut nested, rest, column);
            fields.push(((*first).to_owned(), Field::Document(nested)));
        }
        (Some((_, Field::Document(nested))), false) => return insert(nested, rest, column),
        (Some(_), _) => return false,
    }
    true
}

/// Writes one row.
struct Encoder<'r> {
    columns: &'r Columns,
    row: &'r csv::StringRecord,
    grace: Grace,
    ignore_blanks: bool,
    writer: RawWriter,
}

impl Encoder<'_> {
    fn append(&mut self, fields: &[(String, Field)]) -> Result<(), String> {
        for (name, field) in fields {
            match field {
                Field::Column(column) => self.append_column(name, *column)?,
                Field::Document(nested) => {
                    if !self.has_any(nested) {
                        continue;
                    }
                    self.writer.begin_document(name);
                    self.append(nested)?;
                    self.writer.end();
                }
            }
        }
        Ok(())
    }

    /// Whether the row reaches as far as one of these fields.
    fn has_any(&self, fields: &[(String, Field)]) -> bool {
        fields.iter().any(|(_, field)| match field {
            Field::Column(column) => *column < self.row.len(),
            Field::Document(nested) => self.has_any(nested),
        })
    }

    fn append_column(&mut self, name: &str, column: usize) -> Result<(), String> {
        let (Some(text), Some(kind)) = (self.row.get(column), self.columns.types.get(column)) else {
            return Ok(());
        };
        if self.ignore_blanks && text.is_empty() {
            return Ok(());
        }
        match (kind.append(&mut self.writer, name, text), self.grace) {
            (Ok(()), _) | (Err(Mismatch), Grace::SkipField) => {}
            (Err(Mismatch), Grace::AutoCast) => infer::append(&mut self.writer, name, text),
            (Err(Mismatch), Grace::SkipRow | Grace::Stop) => {
                let name = self.columns.names.get(column).map_or(name, String::as_str);
                return Err(format!("field {name}: {text:?} is not of its type"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::tests::listed;
    use nestor_model::{RawDoc, ValueRef};

    fn options(fields: &[&str], ignore_blanks: bool) -> Options {
        Options {
            fields: fields.iter().map(|f| (*f).to_owned()).collect(),
            ignore_blanks,
            ..Options::default()
        }
    }

    fn rows(text: &str, fields: &[&str]) -> Vec<String> {
        listed(Rows::new(text.as_bytes(), &options(fields, false)).unwrap())
    }

    #[test]
    fn rows_of_other_lengths() {
        let found = rows("a,b.c,b.d\n1\n1,2\n1,2,3,4,05\n", &[]);
        let documents: Vec<&str> = found
            .iter()
            .filter_map(|l| l.split_once(": "))
            .map(|(_, d)| d)
            .collect();
        let expected = rows("a\n1\n", &[]).into_iter().chain(rows("a,b.c\n1,2\n", &[]));
        let expected = expected.chain(rows("a,b.c,b.d,field3,field4\n1,2,3,4,05\n", &[]));
        let expected: Vec<String> = expected.collect();
        let expected: Vec<&str> = expected
            .iter()
            .filter_map(|l| l.split_once(": "))
            .map(|(_, d)| d)
            .collect();
        assert_eq!(documents, expected);
        let found = rows("a,field2\n1,2,3\n", &[]);
        assert!(
            found[0].starts_with("file: line 2: ") && found[0].contains("field2"),
            "{found:?}"
        );
    }

    fn typed(text: &str, grace: Grace) -> (Vec<String>, Skipped) {
        let options = Options {
            have_types: true,
            grace,
            ..Options::default()
        };
        let mut rows = Rows::new(text.as_bytes(), &options).unwrap();
        let mut documents = Vec::new();
        loop {
            match rows.next_record() {
                Ok(Some(record)) => documents.push(format!("{:?}", RawDoc::validate(&record.bson).unwrap())),
                Ok(None) => break,
                Err(bad) => {
                    documents.push(bad.reason);
                    break;
                }
            }
        }
        (documents, rows.skipped())
    }

    #[test]
    fn a_field_of_another_type() {
        const TEXT: &str = "_id.int32(),zip.string()\n1,01234\nx,2\n3,4\n";
        let plain = |text: &str| rows(text, &[])[0].split_once(": ").unwrap().1.to_owned();
        let (first, last) = (
            plain("_id,zip\n1,01234\n"),
            typed("_id.int32(),zip.string()\n3,4\n", Grace::Stop).0,
        );
        let (documents, _) = typed(TEXT, Grace::Stop);
        assert_eq!(documents[0], first);
        assert!(
            documents[1].contains("_id") && documents[1].contains("\"x\""),
            "{documents:?}"
        );
        let (documents, skipped) = typed(TEXT, Grace::SkipRow);
        assert_eq!(documents, [first.clone(), last[0].clone()]);
        assert_eq!((skipped.count, skipped.shown[0].place), (1, Some(Place::Line(3))));
        let (documents, skipped) = typed(TEXT, Grace::SkipField);
        assert_eq!((documents.len(), skipped.count), (3, 0));
        assert!(!documents[1].contains("_id"), "{documents:?}");
        let (documents, _) = typed(TEXT, Grace::AutoCast);
        assert!(
            documents.len() == 3 && documents[1].contains("_id") && documents[1].contains('x'),
            "{documents:?}"
        );
        let (documents, _) = typed("a,b.int32()\n", Grace::Stop);
        assert!(documents[0].contains("form"), "every column has a type: {documents:?}");
    }

    #[test]
    fn dotted_names_nest() {
        let mut reader = Rows::new("a.b,c,a.d.e\n1,2,3\n".as_bytes(), &options(&[], false)).unwrap();
        let record = reader.next_record().unwrap().unwrap();
        let doc = RawDoc::validate(&record.bson).unwrap();
        let a = doc.get("a").and_then(ValueRef::as_document).unwrap();
        assert!(matches!(a.get("b"), Some(ValueRef::Int32(1))));
        let d = a.get("d").and_then(ValueRef::as_document).unwrap();
        assert!(matches!(d.get("e"), Some(ValueRef::Int32(3))));
    }

    #[test]
    fn lines_count_with_quoted_newlines() {
        let found = rows("a,b\n1,\"x\ny\"\n2,z\n3,\n", &[]);
        assert!(
            found[0].starts_with("line 2: ") && found[1].starts_with("line 4: "),
            "{found:?}"
        );
        assert!(found[2].starts_with("line 5: "), "{found:?}");
    }

    #[test]
    fn bad_headers_are_refused() {
        for (header, word) in [
            ("a,a", "collides"),
            ("a,a.b", "collides"),
            ("a.b,a", "collides"),
            ("a,", "field 2"),
            ("a..b", "field 1"),
        ] {
            let found = rows(&format!("{header}\n"), &[]);
            assert!(
                found[0].starts_with("file: line 1: ") && found[0].contains(word),
                "{header}: {found:?}"
            );
        }
    }

    #[test]
    fn named_fields_and_blanks() {
        assert_eq!(rows("1,x\n", &["_id", "a"]).len(), 1);
        let mut reader = Rows::new("1,\n".as_bytes(), &options(&["_id", "a"], true)).unwrap();
        let record = reader.next_record().unwrap().unwrap();
        assert!(RawDoc::validate(&record.bson).unwrap().get("a").is_none());
    }

    #[test]
    fn bytes_that_are_not_utf8_are_named() {
        let found = listed(Rows::new(&b"a\n1\n\xff\n"[..], &options(&[], false)).unwrap());
        assert_eq!(
            found.last().map(String::as_str),
            Some("file: line 3: the text is not UTF-8")
        );
    }
}
