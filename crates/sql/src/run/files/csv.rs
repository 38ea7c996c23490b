//! CSV files: what stands between fields, whether the first row has the names, and the types of columns are found out by the first rows.
//!
//! A column is `boolean`, `bigint`, `double precision`, `date`, `timestamp` or `timestamptz` when all of its fields that are not empty are written
//! as one of these, the first that serves, and text otherwise. Numbers are what `nestor import` takes for numbers: with zeros in front they
//! are text. The first row has names unless a field of it is of its column's type.

use super::{CHUNK_BYTES, Part, ROW_BYTES_MAX, each, io_error, open, told};
use crate::catalog::files::{CsvWords, Dialect, Source};
use crate::catalog::{Column, Table};
use crate::error::error;
use crate::types::{Type, datetime, input};
use nestor_files::csv::infer;
use nestor_model::statement::{ROW, work};
use nestor_model::vector::{Builder, Vector};
use nestor_model::{Error, Result, ValueRef};
use nestor_planner::relation::chunk::ROWS;
use std::cell::Cell;
use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// Bytes at the beginning of a file that tell what stands between fields.
const HEAD_BYTES: u64 = 64 << 10;
/// What may stand between fields, the likeliest first.
const DELIMITERS: [u8; 4] = [b',', b'\t', b';', b'|'];
/// Columns of a file at most.
const COLUMNS_MAX: usize = 16_384;
/// Bytes of a row whose room is not kept for the next one.
const LONG_BYTES: usize = 4 << 10;
/// Bytes that are read at once.
const BUFFER_BYTES: usize = 256 << 10;

/// The rows of a file.
pub(super) struct Rows {
    reader: Reader,
    table: Arc<Table>,
    dialect: Arc<Dialect>,
    /// Those that it is at are the first `count`.
    rows: Vec<csv::ByteRecord>,
    count: usize,
    bytes: usize,
}

/// A file, row by row.
struct Reader {
    csv: csv::Reader<Bounded>,
    left: Rc<Cell<usize>>,
    file: PathBuf,
    /// Lines that were left out before the reader began to count.
    skipped: u64,
}

/// Bytes of a file, of which no row may have too many: a quote that is not closed would have all of it for a field.
struct Bounded {
    input: BufReader<Box<dyn Read>>,
    left: Rc<Cell<usize>>,
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left.get();
        if left == 0 {
            return Err(io::Error::other(format!("a row has more than {ROW_BYTES_MAX} bytes")));
        }
        let most = buffer.len().min(left);
        let read = self.input.read(&mut buffer[..most])?;
        self.left.set(left - read);
        Ok(read)
    }
}

impl Reader {
    fn open(source: &Source, file: &Path, dialect: &Dialect) -> Result<Self> {
        let mut input = BufReader::with_capacity(BUFFER_BYTES, open(source, file)?);
        let skipped = skip_lines(&mut input, dialect.skip).map_err(|failed| io_error(&failed, file))?;
        let left = Rc::new(Cell::new(ROW_BYTES_MAX));
        let bounded = Bounded {
            input,
            left: left.clone(),
        };
        Ok(Self {
            csv: builder(dialect.delimiter, dialect.quote, dialect.escape).from_reader(bounded),
            left,
            file: file.to_owned(),
            skipped,
        })
    }

    /// Reads the next row.
    fn next(&mut self, row: &mut csv::ByteRecord) -> Result<bool> {
        let line = self.csv.position().line() + self.skipped;
        self.left.set(ROW_BYTES_MAX);
        self.csv
            .read_byte_record(row)
            .map_err(|failed| told(error("22P04", failed.to_string()), &self.file, Some(line)))
    }

    /// The line at which a row begins.
    fn line(&self, row: &csv::ByteRecord) -> Option<u64> {
        row.position().map(|position| position.line() + self.skipped)
    }

    /// An error about a row.
    fn told(&self, state: &str, what: String, row: &csv::ByteRecord) -> Error {
        told(error(state, what), &self.file, self.line(row))
    }
}

fn builder(delimiter: u8, quote: Option<u8>, escape: Option<u8>) -> csv::ReaderBuilder {
    let mut builder = csv::ReaderBuilder::new();
    builder
        .delimiter(delimiter)
        .quoting(quote.is_some())
        .quote(quote.unwrap_or(b'"'))
        .escape(escape)
        .double_quote(escape.is_none())
        .has_headers(false)
        .flexible(true)
        .buffer_capacity(BUFFER_BYTES);
    builder
}

/// Leaves out lines; how many there were.
fn skip_lines(input: &mut impl BufRead, lines: u64) -> io::Result<u64> {
    for line in 0..lines {
        loop {
            let buffer = input.fill_buf()?;
            if buffer.is_empty() {
                return Ok(line);
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(buffer.len(), |at| at + 1);
            input.consume(taken);
            if end.is_some() {
                break;
            }
        }
    }
    Ok(lines)
}

/// What stands between the fields of a file: of what gives the same number of fields in most rows, that which gives the most.
fn delimiter(source: &Source, file: &Path, words: &CsvWords) -> Result<u8> {
    let mut input = BufReader::new(open(source, file)?);
    let failed = |failed: io::Error| io_error(&failed, file);
    skip_lines(&mut input, words.skip).map_err(failed)?;
    let mut head = Vec::new();
    input.take(HEAD_BYTES).read_to_end(&mut head).map_err(failed)?;
    let score = |delimiter: u8| {
        let quote = words.quote.unwrap_or(b'"');
        let mut reader = builder(delimiter, Some(quote).filter(|quote| *quote != 0), words.escape).from_reader(&*head);
        let mut widths: Vec<usize> = Vec::new();
        let mut row = csv::ByteRecord::new();
        while let Ok(true) = reader.read_byte_record(&mut row) {
            widths.push(row.len());
        }
        // The last row may be cut off.
        if widths.len() > 1 && head.len() as u64 == HEAD_BYTES {
            widths.pop();
        }
        let width = widths.first().copied().unwrap_or(0);
        let same = widths.iter().filter(|own| **own == width).count();
        match width > 1 {
            true => (same * 100 / widths.len().max(1), width),
            false => (0, 0),
        }
    };
    // The first of equals is the likeliest.
    let best = DELIMITERS.into_iter().rev().max_by_key(|delimiter| score(*delimiter));
    Ok(best.unwrap_or(b','))
}

/// Types that the fields of a column may have.
#[derive(Clone, Copy)]
struct Candidates {
    left: [bool; TYPES.len()],
    seen: bool,
}

const TYPES: [Type; 6] = [
    Type::Bool,
    Type::Int8,
    Type::Float8,
    Type::Date,
    Type::Timestamp,
    Type::Timestamptz,
];

impl Candidates {
    const ALL: Self = Self {
        left: [true; TYPES.len()],
        seen: false,
    };

    fn note(&mut self, field: &str) {
        self.seen = true;
        for (left, ty) in self.left.iter_mut().zip(&TYPES) {
            *left = *left && is_written_as(ty, field);
        }
    }

    fn ty(&self) -> Type {
        let first = TYPES.iter().zip(self.left).find(|(_, left)| *left);
        first.filter(|_| self.seen).map_or(Type::Text, |(ty, _)| ty.clone())
    }
}

fn is_written_as(ty: &Type, field: &str) -> bool {
    match ty {
        Type::Bool => field.eq_ignore_ascii_case("true") || field.eq_ignore_ascii_case("false"),
        Type::Int8 => matches!(infer::number(field), Some(ValueRef::Int32(_) | ValueRef::Int64(_))),
        Type::Float8 => infer::number(field).is_some(),
        Type::Date => is_date(field) && datetime::parse_date(field).is_ok(),
        // A date is also the moment at which it begins.
        Type::Timestamp => match moment(field) {
            Some(has_zone) => !has_zone && datetime::parse_timestamp(field, false).is_ok(),
            None => is_written_as(&Type::Date, field),
        },
        Type::Timestamptz => moment(field) == Some(true) && datetime::parse_timestamp(field, true).is_ok(),
        _ => false,
    }
}

/// Whether a field has the form `2024-01-31`.
fn is_date(field: &str) -> bool {
    let is_it = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    field.len() == 10 && field.bytes().enumerate().all(is_it)
}

/// Of a field of the form `2024-01-31 17:05:09`, whether a zone follows.
fn moment(field: &str) -> Option<bool> {
    let (date, time) = field.split_at_checked(10)?;
    let time = time.strip_prefix(['T', ' '])?;
    let begins = time.len() >= 5 && time.as_bytes()[2] == b':' && time.as_bytes()[0].is_ascii_digit();
    (is_date(date) && begins).then(|| time.contains(['+', '-']) || time.ends_with(['Z', 'z']))
}

/// How files are written, and their columns.
///
/// Errors: those of the system; the first file is damaged, at which line; two columns have one name.
pub(super) fn found(source: &Source, words: &CsvWords, sample: u64) -> Result<(Dialect, Vec<Column>)> {
    let file = source.files.first().map(PathBuf::as_path).unwrap_or(Path::new(""));
    let mut dialect = Dialect {
        delimiter: match words.delimiter {
            Some(delimiter) => delimiter,
            None => delimiter(source, file, words)?,
        },
        quote: match words.quote {
            None => Some(b'"'),
            Some(quote) => Some(quote).filter(|quote| *quote != 0),
        },
        escape: words.escape,
        header: false,
        null: words.null.clone(),
        skip: words.skip,
        pads: words.pads,
        width: 0,
    };
    let mut reader = Reader::open(source, file, &dialect)?;
    let (mut first, mut row) = (csv::ByteRecord::new(), csv::ByteRecord::new());
    reader.next(&mut first)?;
    dialect.width = first.len();
    if first.len() > COLUMNS_MAX {
        return Err(reader.told(
            "54011",
            format!("a file can have at most {COLUMNS_MAX} columns"),
            &first,
        ));
    }
    let mut columns = vec![Candidates::ALL; first.len()];
    let mut rows = 0;
    while rows < sample && !words.all_text && reader.next(&mut row)? {
        work(ROW)?;
        rows += 1;
        note(&mut columns, &row, &dialect);
    }
    let has_typed = || {
        let mut pairs = first.iter().zip(&columns);
        pairs.any(|(field, column)| {
            let ty = column.ty();
            ty != Type::Text && std::str::from_utf8(field).is_ok_and(|field| is_written_as(&ty, field))
        })
    };
    let is_all_typed = || {
        let mut fields = first.iter();
        fields
            .any(|field| std::str::from_utf8(field).is_ok_and(|field| TYPES.iter().any(|ty| is_written_as(ty, field))))
    };
    dialect.header = match words.header {
        Some(header) => header,
        None if words.all_text => true,
        None if rows == 0 => !is_all_typed(),
        None => !has_typed(),
    };
    if !dialect.header {
        note(&mut columns, &first, &dialect);
    }
    let names = names(&reader, &first, words, &dialect)?;
    let columns = names.iter().zip(&columns).map(|(name, column)| {
        let ty = if words.all_text { Type::Text } else { column.ty() };
        Column::new(name, ty)
    });
    Ok((dialect, columns.collect()))
}

fn note(columns: &mut [Candidates], row: &csv::ByteRecord, dialect: &Dialect) {
    for (field, column) in row.iter().zip(columns) {
        if !is_null(field, dialect) {
            column.note(std::str::from_utf8(field).unwrap_or("?"));
        }
    }
}

fn names(reader: &Reader, first: &csv::ByteRecord, words: &CsvWords, dialect: &Dialect) -> Result<Vec<String>> {
    if words.names.len() > dialect.width {
        let told = format!(
            "{} names were given, and there are {} columns",
            words.names.len(),
            dialect.width
        );
        return Err(reader.told("42P10", told, first));
    }
    let mut taken = HashSet::new();
    let mut out = Vec::with_capacity(dialect.width);
    for (at, field) in first.iter().enumerate() {
        let written = match words.names.get(at) {
            Some(name) => name.clone(),
            None if dialect.header => String::from_utf8_lossy(field)
                .trim_start_matches('\u{feff}')
                .trim()
                .to_owned(),
            None => String::new(),
        };
        let name = if written.is_empty() {
            format!("column{at}")
        } else {
            written
        };
        if !taken.insert(name.clone()) {
            return Err(reader.told("42701", format!("column \"{name}\" stands there twice"), first));
        }
        out.push(name);
    }
    Ok(out)
}

fn is_null(field: &[u8], dialect: &Dialect) -> bool {
    field.is_empty() || dialect.null.as_ref().is_some_and(|null| null.as_bytes() == field)
}

impl Rows {
    /// The rows of a file, from the first one on.
    ///
    /// Errors: those of opening it; its columns are others than those of the first file.
    pub(super) fn open(source: &Source, file: &Path, dialect: &Arc<Dialect>, table: &Arc<Table>) -> Result<Self> {
        let mut reader = Reader::open(source, file, dialect)?;
        let mut row = csv::ByteRecord::new();
        if dialect.header && reader.next(&mut row)? && row.len() != dialect.width {
            let told = format!(
                "there are {} columns, and {} in the first file",
                row.len(),
                dialect.width
            );
            return Err(reader.told("22P04", told, &row));
        }
        Ok(Self {
            reader,
            table: table.clone(),
            dialect: dialect.clone(),
            rows: Vec::new(),
            count: 0,
            bytes: 0,
        })
    }

    /// Refuses a row that has more fields than there are columns, or fewer.
    fn check(&self, row: &csv::ByteRecord) -> Result<()> {
        let width = self.dialect.width;
        match row.len() {
            own if own == width || own < width && self.dialect.pads => Ok(()),
            own => {
                let told = format!("the row has {own} fields, and there are {width} columns");
                Err(self.reader.told("22P04", told, row))
            }
        }
    }
}

impl Part for Rows {
    fn advance(&mut self) -> Result<usize> {
        (self.count, self.bytes) = (0, 0);
        while self.count < ROWS && self.bytes < CHUNK_BYTES {
            match self.rows.get_mut(self.count) {
                // The room of long rows is not kept.
                Some(row) if row.as_slice().len() > LONG_BYTES => *row = csv::ByteRecord::new(),
                Some(_) => {}
                None => self.rows.push(csv::ByteRecord::new()),
            }
            if !self.reader.next(&mut self.rows[self.count])? {
                break;
            }
            let row = &self.rows[self.count];
            self.check(row)?;
            self.bytes += row.as_slice().len();
            self.count += 1;
        }
        Ok(self.count)
    }

    fn column(&mut self, at: usize, places: Option<&[u32]>) -> Result<Vector> {
        let mut out = Builder::default();
        let Some(column) = self.table.columns.get(at) else {
            return Ok(Vector::same(
                nestor_model::Value::Null,
                places.map_or(self.count, <[u32]>::len),
            ));
        };
        for place in each(self.count, places) {
            let row = &self.rows[place];
            let field = row.get(at).unwrap_or_default();
            if is_null(field, &self.dialect) {
                out.push_null();
                continue;
            }
            read(&column.ty, field, &mut out).map_err(|failed| {
                let named = told(failed, Path::new(&format!("column {}", column.name)), None);
                told(named, &self.reader.file, self.reader.line(row))
            })?;
        }
        Ok(out.finish())
    }

    fn weight(&self) -> usize {
        self.bytes
    }
}

/// Adds a field to a column.
fn read(ty: &Type, field: &[u8], out: &mut Builder) -> Result<()> {
    let field =
        std::str::from_utf8(field).map_err(|_| error("22021", "invalid byte sequence for encoding \"UTF8\""))?;
    match ty {
        Type::Text => out.push_text(field),
        Type::Int8 => match field.parse() {
            Ok(number) => out.push_int64(number),
            Err(_) => out.push(input::text(ty, field)?),
        },
        Type::Float8 => match field.parse() {
            Ok(number) => out.push_double(number),
            Err(_) => out.push(input::text(ty, field)?),
        },
        ty => out.push(input::text(ty, field)?),
    }
    Ok(())
}
