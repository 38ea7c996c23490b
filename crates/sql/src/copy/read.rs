//! Rows of a file that comes in pieces.

use super::{Format, Options, SIGNATURE};
use crate::error::{Field as Told, error, fail, with};
use crate::types::style::{Style, encoding};
use crate::types::{Type, input};
use nestor_model::{Error, Result, Value};

/// Longest row, in bytes: that of a document, and some more for its escapes.
const ROW_BYTES_MAX: usize = 64 << 20;

/// Makes rows of the pieces.
#[derive(Debug)]
pub struct Reader {
    options: Options,
    table: String,
    columns: Vec<(String, Type)>,
    /// What has come and was not read, from `at` on.
    bytes: Vec<u8>,
    at: usize,
    /// How far the row at the front was looked through, and whether that is within quotes.
    seen: usize,
    in_quotes: bool,
    /// Lines of text, or rows of a binary file, that were read.
    line: u64,
    begun: bool,
    /// The file's own end has come.
    ended: bool,
}

fn damaged(reason: &str) -> Error {
    error("22P04", reason)
}

impl Reader {
    /// Reads rows of these columns.
    pub fn new(options: Options, table: String, columns: Vec<(String, Type)>) -> Self {
        Self {
            options,
            table,
            columns,
            bytes: Vec::new(),
            at: 0,
            seen: 0,
            in_quotes: false,
            line: 0,
            begun: false,
            ended: false,
        }
    }

    /// Another piece.
    ///
    /// Errors: 54000 for a row that is too long; those of the client's encoding.
    pub fn push(&mut self, piece: &[u8]) -> Result<()> {
        if self.ended {
            return Ok(());
        }
        self.bytes.drain(..self.at);
        self.seen -= self.at;
        self.at = 0;
        if self.bytes.len() + piece.len() > ROW_BYTES_MAX {
            return fail("54000", "a row of COPY is too long");
        }
        let _encoding = Style::with_encoding(self.options.encoding);
        match self.options.format {
            // Its texts are read as those of messages.
            Format::Binary => self.bytes.extend_from_slice(piece),
            _ if encoding().is_plain() => self.bytes.extend_from_slice(piece),
            _ => self.bytes.extend_from_slice(encoding().decode(piece)?.as_bytes()),
        }
        Ok(())
    }

    /// The next row; `None` until more has come, and at the end (`is_whole`).
    ///
    /// Errors: 22P04 for a file that is not as it should be, those of the values.
    pub fn next(&mut self, is_whole: bool) -> Result<Option<Vec<Value>>> {
        if self.ended {
            return Ok(None);
        }
        if self.options.format == Format::Binary {
            let _encoding = Style::with_encoding(self.options.encoding);
            return self.binary(is_whole);
        }
        loop {
            let Some(end) = self.line_end(is_whole)? else {
                return Ok(None);
            };
            let mut line = &self.bytes[self.at..end];
            self.line += 1;
            if line.last() == Some(&b'\n') {
                line = &line[..line.len() - 1];
            }
            if line.last() == Some(&b'\r') {
                line = &line[..line.len() - 1];
            }
            let line = line.to_vec();
            self.at = end;
            self.seen = end;
            if line == b"\\." {
                self.ended = true;
                return Ok(None);
            }
            if !std::mem::replace(&mut self.begun, true) && self.options.header {
                if self.options.matches {
                    let names = match self.options.format {
                        Format::Csv => self.csv(&line)?,
                        _ => self.text(&line)?,
                    };
                    self.check_names(&names)?;
                }
                continue;
            }
            let fields = match self.options.format {
                Format::Csv => self.csv(&line)?,
                _ => self.text(&line)?,
            };
            return self.row(fields).map(Some);
        }
    }

    /// Where the row at the front ends, its line end included.
    fn line_end(&mut self, is_whole: bool) -> Result<Option<usize>> {
        let is_csv = self.options.format == Format::Csv;
        let mut at = self.seen;
        while let Some(&byte) = self.bytes.get(at) {
            let is_escape = if is_csv {
                self.in_quotes && byte == self.options.escape && self.options.escape != self.options.quote
            } else {
                byte == b'\\'
            };
            if is_escape {
                // What is escaped is looked at with its escape.
                if at + 1 == self.bytes.len() && !is_whole {
                    break;
                }
                at += 2;
                continue;
            }
            if is_csv && byte == self.options.quote {
                self.in_quotes = !self.in_quotes;
            }
            at += 1;
            if byte == b'\n' && !self.in_quotes {
                return Ok(Some(at));
            }
        }
        self.seen = at.min(self.bytes.len());
        if !is_whole || self.at == self.bytes.len() {
            return Ok(None);
        }
        match self.in_quotes {
            true => Err(self.told(damaged("unterminated CSV quoted field"), None)),
            false => Ok(Some(self.bytes.len())),
        }
    }

    /// The fields of a line; `None` is null.
    fn text(&self, line: &[u8]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut fields = Vec::with_capacity(self.columns.len());
        let (mut raw, mut field) = (0, Vec::new());
        let mut at = 0;
        loop {
            let byte = line.get(at).copied();
            if byte.is_none() || byte == Some(self.options.delimiter) {
                let is_null = &line[raw..at] == self.options.null.as_bytes();
                fields.push((!is_null).then(|| std::mem::take(&mut field)));
                field.clear();
                at += 1;
                raw = at;
                if byte.is_none() {
                    return Ok(fields);
                }
                continue;
            }
            let (Some(b'\\'), Some(&escaped)) = (byte, line.get(at + 1)) else {
                field.extend(byte);
                at += 1;
                continue;
            };
            at += 2;
            let digits = |from: usize, most: usize, base: u32| {
                let all = line.get(from..).unwrap_or_default().iter().take(most);
                all.map_while(|byte| char::from(*byte).to_digit(base))
                    .collect::<Vec<_>>()
            };
            field.push(match escaped {
                b'b' => 8,
                b'f' => 12,
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'v' => 11,
                b'0'..=b'7' => {
                    let digits = digits(at - 1, 3, 8);
                    at += digits.len() - 1;
                    digits.iter().fold(0, |number, digit| number << 3 | digit) as u8
                }
                b'x' => match digits(at, 2, 16).as_slice() {
                    [] => b'x',
                    digits => {
                        at += digits.len();
                        digits.iter().fold(0, |number, digit| number << 4 | digit) as u8
                    }
                },
                other => other,
            });
        }
    }

    fn csv(&self, line: &[u8]) -> Result<Vec<Option<Vec<u8>>>> {
        let Options {
            quote,
            escape,
            delimiter,
            ..
        } = self.options;
        let mut fields = Vec::with_capacity(self.columns.len());
        let (mut field, mut was_quoted, mut in_quotes) = (Vec::new(), false, false);
        let mut at = 0;
        loop {
            let byte = line.get(at).copied();
            at += 1;
            match byte {
                Some(byte) if in_quotes => {
                    let next = line.get(at).copied();
                    if byte == escape && next.is_some_and(|next| next == quote || next == escape) {
                        field.extend(next);
                        at += 1;
                    } else if byte == quote {
                        in_quotes = false;
                    } else {
                        field.push(byte);
                    }
                }
                Some(byte) if byte == quote => (in_quotes, was_quoted) = (true, true),
                Some(byte) if byte != delimiter => field.push(byte),
                _ => {
                    let name = self.columns.get(fields.len()).map_or("", |(name, _)| name.as_str());
                    let stands_for_null = field == self.options.null.as_bytes();
                    let is_null = match was_quoted {
                        true => stands_for_null && self.options.force_null.has(name),
                        false => stands_for_null && !self.options.force_not_null.has(name),
                    };
                    fields.push((!is_null).then(|| std::mem::take(&mut field)));
                    field.clear();
                    was_quoted = false;
                    if byte.is_none() {
                        return Ok(fields);
                    }
                }
            }
        }
    }

    /// The names of the first line are those of the columns.
    ///
    /// Errors: 22P04.
    fn check_names(&self, names: &[Option<Vec<u8>>]) -> Result<()> {
        let wrong = |what: String| Err(self.told(damaged(&what), None));
        if names.len() != self.columns.len() {
            return wrong(format!(
                "wrong number of fields in header line: got {}, expected {}",
                names.len(),
                self.columns.len()
            ));
        }
        for (at, (name, (column, _))) in names.iter().zip(&self.columns).enumerate() {
            let got = match name {
                Some(name) if name == column.as_bytes() => continue,
                Some(name) => format!("\"{}\"", String::from_utf8_lossy(name)),
                None => format!("null value (\"{}\")", self.options.null),
            };
            let field = at + 1;
            return wrong(format!(
                "column name mismatch in header line field {field}: got {got}, expected \"{column}\""
            ));
        }
        Ok(())
    }

    fn row(&self, fields: Vec<Option<Vec<u8>>>) -> Result<Vec<Value>> {
        if fields.len() > self.columns.len() {
            return Err(self.told(damaged("extra data after last expected column"), None));
        }
        if let Some((name, _)) = self.columns.get(fields.len()) {
            return Err(self.told(damaged(&format!("missing data for column \"{name}\"")), None));
        }
        let values = fields.into_iter().zip(&self.columns).map(|(field, (name, ty))| {
            let Some(field) = field else { return Ok(Value::Null) };
            let text = String::from_utf8(field).map_err(|_| {
                self.told(
                    error("22021", "invalid byte sequence for encoding \"UTF8\""),
                    Some((name, "")),
                )
            })?;
            input::text(ty, &text).map_err(|error| self.told(error, Some((name, &text))))
        });
        values.collect()
    }

    fn binary(&mut self, is_whole: bool) -> Result<Option<Vec<Value>>> {
        let mut rest = Rest {
            bytes: &self.bytes[self.at..],
        };
        let before = rest.bytes.len();
        let read = (|| {
            if !self.begun {
                let (Some(signature), Some(flags), Some(extension)) =
                    (rest.take(SIGNATURE.len()), rest.int(), rest.int())
                else {
                    return Ok(None);
                };
                if signature != SIGNATURE {
                    return Err(damaged("COPY file signature not recognized"));
                }
                if flags as u32 & 0xFFFF_0000 != 0 {
                    return Err(damaged("unrecognized critical flags in COPY file header"));
                }
                let Ok(extension) = usize::try_from(extension) else {
                    return Err(damaged("invalid COPY file header (wrong length)"));
                };
                if rest.take(extension).is_none() {
                    return Ok(None);
                }
            }
            // A file may end behind a row without saying so.
            if is_whole && self.begun && rest.bytes.is_empty() {
                return Ok(Some(None));
            }
            let Some(count) = rest.take(2) else { return Ok(None) };
            let count = i16::from_be_bytes([count[0], count[1]]);
            if count == -1 {
                return Ok(Some(None));
            }
            if usize::try_from(count) != Ok(self.columns.len()) {
                let wanted = self.columns.len();
                return Err(damaged(&format!("row field count is {count}, expected {wanted}")));
            }
            let mut values = Vec::with_capacity(self.columns.len());
            for (name, ty) in &self.columns {
                let Some(length) = rest.int() else { return Ok(None) };
                let value = match usize::try_from(length) {
                    Ok(length) => match rest.take(length) {
                        Some(bytes) => input::binary(ty, bytes).map_err(|error| self.told(error, Some((name, ""))))?,
                        None => return Ok(None),
                    },
                    Err(_) if length == -1 => Value::Null,
                    Err(_) => return Err(damaged("invalid field size")),
                };
                values.push(value);
            }
            Ok(Some(Some(values)))
        })();
        let taken = before - rest.bytes.len();
        match read {
            Err(error) => Err(error),
            Ok(None) if is_whole => Err(damaged("unexpected EOF in COPY data")),
            Ok(None) => Ok(None),
            Ok(Some(row)) => {
                self.at += taken;
                self.seen = self.at;
                self.begun = true;
                self.line += 1;
                self.ended = row.is_none();
                Ok(row)
            }
        }
    }

    /// An error with its place in the file.
    fn told(&self, error: Error, field: Option<(&str, &str)>) -> Error {
        let mut place = format!("COPY {}, line {}", self.table, self.line);
        if let Some((name, text)) = field {
            place.push_str(&format!(", column {name}"));
            if !text.is_empty() {
                let shown: String = text.chars().take(100).collect();
                place.push_str(&format!(": \"{shown}\""));
            }
        }
        with(error, &[(Told::Context, &place)])
    }
}

struct Rest<'b> {
    bytes: &'b [u8],
}

impl<'b> Rest<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    fn int(&mut self) -> Option<i32> {
        let bytes = self.take(4)?;
        Some(bytes.iter().fold(0, |number, byte| number << 8 | i32::from(*byte)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::output;
    use sqlparser::ast::{CopyOption, Ident};

    fn reader(options: &[CopyOption], columns: &[(&str, Type)]) -> Reader {
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        let options = Options::new(options, &[], &names, Format::Text).expect("good options");
        let columns = columns.iter().map(|(name, ty)| ((*name).to_owned(), ty.clone()));
        Reader::new(options, "t".into(), columns.collect())
    }

    fn all(mut reader: Reader, pieces: &[&[u8]]) -> Result<Vec<String>> {
        let mut out = Vec::new();
        for (i, piece) in pieces.iter().chain([&&b""[..]]).enumerate() {
            reader.push(piece)?;
            while let Some(row) = reader.next(i == pieces.len())? {
                let row = row.iter().zip(&reader.columns).map(|(value, (_, ty))| match value {
                    Value::Null => "null".to_owned(),
                    value => output::text(ty, value),
                });
                out.push(row.collect::<Vec<_>>().join("|"));
            }
        }
        Ok(out)
    }

    const COLUMNS: &[(&str, Type)] = &[("a", Type::Int4), ("b", Type::Text)];

    fn csv() -> Vec<CopyOption> {
        vec![CopyOption::Format(Ident::new("csv"))]
    }

    #[test]
    fn text_and_csv_in_pieces_of_any_length() {
        let text = b"1\ta\\tb\\\\\r\n2\t\\N\n3\t\n-4\t\\x41\\101\\\nB\n5\tz";
        let of_text = ["1|a\tb\\", "2|null", "3|", "-4|AA\nB", "5|z"];
        let file = b"1,\"a\"\"b,\n\"\n2,\n3,\"\"\n4,x\"y\"z\r\n5,q";
        let of_csv = ["1|a\"b,\n", "2|null", "3|", "4|xyz", "5|q"];
        for length in 1..12 {
            let pieces: Vec<&[u8]> = text.chunks(length).collect();
            assert_eq!(
                all(reader(&[], COLUMNS), &pieces).expect("a good file"),
                of_text,
                "{length}"
            );
            let pieces: Vec<&[u8]> = file.chunks(length).collect();
            assert_eq!(
                all(reader(&csv(), COLUMNS), &pieces).expect("a good file"),
                of_csv,
                "{length}"
            );
        }
    }

    #[test]
    fn headers_ends_and_nulls() {
        let mut options = csv();
        options.push(CopyOption::Header(true));
        assert_eq!(
            all(reader(&options, COLUMNS), &[b"a,b\n1,x\n\\.\n2,y\n"]).expect("good"),
            ["1|x"]
        );
        let mut options = csv();
        options.push(CopyOption::Null("-".into()));
        options.push(CopyOption::ForceNull(vec![Ident::new("b")]));
        assert_eq!(
            all(reader(&options, COLUMNS), &[b"1,-\n2,\"-\"\n3,\n"]).expect("good"),
            ["1|null", "2|null", "3|"]
        );
    }

    #[test]
    fn damaged_files_say_where() {
        for (file, state, place) in [
            (&b"1\tx\nq\ty\n"[..], "22P02", "COPY t, line 2, column a: \"q\""),
            (b"1\n", "22P04", "COPY t, line 1"),
            (b"1\tx\ty\n", "22P04", "COPY t, line 1"),
            (b"1\t\xff\n", "22021", "COPY t, line 1, column b"),
        ] {
            let error = all(reader(&[], COLUMNS), &[file]).expect_err("a bad file");
            assert_eq!(crate::error::state(&error), state);
            assert!(
                crate::error::fields(&error).contains(&(Told::Context, place)),
                "{error:?}"
            );
        }
        assert!(all(reader(&csv(), COLUMNS), &[b"1,\"x\n"]).is_err());
    }
}
