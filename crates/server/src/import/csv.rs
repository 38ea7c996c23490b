//! Comma- and tab-separated values. Types are inferred field by field: whole numbers become int32 or int64, other
//! decimal numbers doubles, the rest strings. A dot in a field's name nests.

use super::ImportArgs;
use super::records::{BadRecord, Place, Record, Records};
use nestor_model::RawWriter;
use std::io::{BufReader, Read};

/// Rows of a file, as documents.
pub struct Rows<R> {
    reader: csv::Reader<R>,
    row: csv::StringRecord,
    columns: Columns,
    named: bool,
    ignore_blanks: bool,
}

impl<R: Read> Rows<R> {
    /// Reads from the beginning of `input`; the names are `--fields` or the first row.
    pub fn new(input: R, args: &ImportArgs, delimiter: char) -> Result<Rows<BufReader<R>>, String> {
        let delimiter = u8::try_from(delimiter)
            .ok()
            .filter(u8::is_ascii)
            .ok_or("--delimiter is one ASCII character")?;
        let reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .quoting(delimiter != b'\t')
            .has_headers(false)
            .flexible(true)
            .from_reader(BufReader::with_capacity(1 << 18, input));
        let columns = if args.fields.is_empty() {
            Columns::default()
        } else {
            Columns::new(&args.fields).map_err(|e| format!("--fields: {e}"))?
        };
        Ok(Rows {
            reader,
            row: csv::StringRecord::new(),
            columns,
            named: !args.fields.is_empty(),
            ignore_blanks: args.ignore_blanks,
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
            if !self.named {
                let names: Vec<String> = self
                    .row
                    .iter()
                    .map(without_byte_order_mark)
                    .map(str::to_owned)
                    .collect();
                self.columns = Columns::new(&names).map_err(|e| BadRecord::at_line(line, e))?;
                self.named = true;
                continue;
            }
            if self.row.len() != self.columns.count {
                let reason = format!("{} fields where {} are named", self.row.len(), self.columns.count);
                return Err(BadRecord::at_line(line, reason));
            }
            let bson = self.columns.encode(&self.row, self.ignore_blanks);
            return Ok(Some(Record {
                place: Place::Line(line),
                bson,
            }));
        }
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
#[derive(Default)]
struct Columns {
    count: usize,
    fields: Vec<(String, Field)>,
}

enum Field {
    Column(usize),
    Document(Vec<(String, Field)>),
}

impl Columns {
    fn new(names: &[String]) -> Result<Self, String> {
        let mut fields = Vec::new();
        for (column, name) in names.iter().enumerate() {
            if name.is_empty() || name.split('.').any(str::is_empty) || name.contains('\0') {
                return Err(format!("field {} has the name {name:?}", column + 1));
            }
            let parts: Vec<&str> = name.split('.').collect();
            if !insert(&mut fields, &parts, column) {
                return Err(format!("the name {name:?} collides with another one"));
            }
        }
        Ok(Self {
            count: names.len(),
            fields,
        })
    }

    fn encode(&self, row: &csv::StringRecord, ignore_blanks: bool) -> Vec<u8> {
        let mut writer = RawWriter::with_capacity(row.as_slice().len() * 2 + 64);
        append(&mut writer, &self.fields, row, ignore_blanks);
        writer.finish()
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

fn append(writer: &mut RawWriter, fields: &[(String, Field)], row: &csv::StringRecord, ignore_blanks: bool) {
    for (name, field) in fields {
        match field {
            Field::Column(column) => {
                let text = row.get(*column).unwrap_or_default();
                if !(ignore_blanks && text.is_empty()) {
                    append_inferred(writer, name, text);
                }
            }
            Field::Document(nested) => {
                writer.begin_document(name);
                append(writer, nested, row, ignore_blanks);
                writer.end();
            }
        }
    }
}

fn append_inferred(writer: &mut RawWriter, name: &str, text: &str) {
    // Only what begins like a number is one: "nan" and "infinity" are words.
    let numeric = text
        .bytes()
        .next()
        .is_some_and(|b| b.is_ascii_digit() || b"+-.".contains(&b))
        && text.bytes().any(|b| b.is_ascii_digit());
    if numeric {
        if let Ok(whole) = text.parse::<i64>() {
            match i32::try_from(whole) {
                Ok(small) => writer.append(name, small),
                Err(_) => writer.append(name, whole),
            }
            return;
        }
        if let Ok(number) = text.parse::<f64>() {
            writer.append(name, number);
            return;
        }
    }
    writer.append(name, text);
}

#[cfg(test)]
mod tests {
    use super::super::records::tests::listed;
    use super::super::{Format, Mode};
    use super::*;
    use nestor_model::{RawDoc, ValueRef};

    fn args(fields: &[&str], ignore_blanks: bool) -> ImportArgs {
        ImportArgs {
            file: "file".into(),
            into: "a.b".into(),
            uri: String::new(),
            format: Some(Format::Csv),
            gzip: false,
            drop: false,
            if_missing: false,
            mode: Mode::Insert,
            fields: fields.iter().map(|f| (*f).to_owned()).collect(),
            delimiter: ',',
            ignore_blanks,
        }
    }

    fn rows(text: &str, fields: &[&str]) -> Vec<String> {
        listed(Rows::new(text.as_bytes(), &args(fields, false), ',').unwrap())
    }

    #[test]
    fn types_are_inferred() {
        let mut writer = RawWriter::new();
        for text in [
            "5",
            "-7",
            "3000000000",
            "2.5",
            "1e3",
            "+1",
            ".5",
            "007",
            "",
            "abc",
            "nan",
            "inf",
            "-",
            "1.2.3",
            "0x10",
            " 5",
        ] {
            append_inferred(&mut writer, text, text);
        }
        let doc = writer.into_doc();
        let kind = |name: &str| match doc.as_raw().get(name) {
            Some(ValueRef::Int32(_)) => "int",
            Some(ValueRef::Int64(_)) => "long",
            Some(ValueRef::Double(_)) => "double",
            Some(ValueRef::String(_)) => "string",
            _ => "other",
        };
        for (text, expected) in [
            ("5", "int"),
            ("-7", "int"),
            ("3000000000", "long"),
            ("2.5", "double"),
            ("1e3", "double"),
            ("+1", "int"),
            (".5", "double"),
            ("007", "int"),
            ("", "string"),
            ("abc", "string"),
            ("nan", "string"),
            ("inf", "string"),
            ("-", "string"),
            ("1.2.3", "string"),
            ("0x10", "string"),
            (" 5", "string"),
        ] {
            assert_eq!(kind(text), expected, "{text:?}");
        }
    }

    #[test]
    fn dotted_names_nest() {
        let mut reader = Rows::new("a.b,c,a.d.e\n1,2,3\n".as_bytes(), &args(&[], false), ',').unwrap();
        let record = reader.next_record().unwrap().unwrap();
        let doc = RawDoc::validate(&record.bson).unwrap();
        let a = doc.get("a").and_then(ValueRef::as_document).unwrap();
        assert!(matches!(a.get("b"), Some(ValueRef::Int32(1))));
        let d = a.get("d").and_then(ValueRef::as_document).unwrap();
        assert!(matches!(d.get("e"), Some(ValueRef::Int32(3))));
    }

    #[test]
    fn lines_count_with_quoted_newlines() {
        let found = rows("a,b\n1,\"x\ny\"\n2,z\n3\n", &[]);
        assert!(
            found[0].starts_with("line 2: ") && found[1].starts_with("line 4: "),
            "{found:?}"
        );
        assert_eq!(found[2], "file: line 5: 1 fields where 2 are named");
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
        let mut reader = Rows::new("1,\n".as_bytes(), &args(&["_id", "a"], true), ',').unwrap();
        let record = reader.next_record().unwrap().unwrap();
        assert!(RawDoc::validate(&record.bson).unwrap().get("a").is_none());
    }

    #[test]
    fn bytes_that_are_not_utf8_are_named() {
        let found = listed(Rows::new(&b"a\n1\n\xff\n"[..], &args(&[], false), ',').unwrap());
        assert_eq!(
            found.last().map(String::as_str),
            Some("file: line 3: the text is not UTF-8")
        );
    }
}
