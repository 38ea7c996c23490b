//! Files read as tables (`docs/decisions/0015-files.md`): who may, what columns they have ([`csv`], [`json`], [`arrow`]), and their rows chunk by chunk.

#[cfg(feature = "parquet")]
mod arrow;
#[cfg(not(feature = "parquet"))]
#[path = "without_arrow.rs"]
mod arrow;
mod csv;
mod json;

use super::bounds::Bound;
use super::tables::{Reading, SessionFacts};
use crate::catalog::files::{CsvWords, Form, JsonForm, Named, Reads, Source};
use crate::catalog::{Column, Kind, Table};
use crate::error::{Field, error, fail, fields, state, with};
use crate::expr::Expr;
use crate::types::Type;
use nestor_database::DatabaseOptions;
use nestor_exec::relation::ColumnSource;
use nestor_files::Format;
use nestor_files::folder::Folder;
use nestor_files::format::{is_gzip, unpacked};
use nestor_model::memory::Held;
use nestor_model::statement::look;
use nestor_model::vector::Vector;
use nestor_model::{Error, Result, Value};
use nestor_planner::relation::explain::{Access, ColumnFigures};
use nestor_planner::relation::{Env, Scan};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

/// Bytes of a file that become a chunk, about.
const CHUNK_BYTES: usize = 1 << 20;
/// Bytes of a row, or of the text of a document, at most.
const ROW_BYTES_MAX: usize = 32 << 20;

/// The column that names files.
const FILENAME: &str = "filename";

/// The rows of one file.
trait Part {
    /// Goes to the next rows; how many, 0 at the end.
    ///
    /// Errors: those of the system; the file is damaged, at which line.
    fn advance(&mut self) -> Result<usize>;

    /// A column of the rows that it is at, or of those at `places` among them.
    ///
    /// Errors: a value is not of its column's type, at which line.
    fn column(&mut self, at: usize, places: Option<&[u32]>) -> Result<Vector>;

    /// Bytes that it keeps.
    fn weight(&self) -> usize;
}

/// An error of a file, with the line if that is known.
fn told(error: Error, file: &Path, line: Option<u64>) -> Error {
    let place = match line {
        Some(line) => format!("{}, line {line}", file.display()),
        None => file.display().to_string(),
    };
    let out = crate::error::error(&state(&error), format!("{place}: {}", error.message()));
    with(out, &fields(&error))
}

/// An error of the system about a file.
pub(crate) fn io_error(failed: &io::Error, file: &Path) -> Error {
    let state = match failed.kind() {
        io::ErrorKind::NotFound => "58P01",
        io::ErrorKind::PermissionDenied => "42501",
        _ => "58030",
    };
    error(state, format!("{}: {failed}", file.display()))
}

/// Opens a file; gzip is unpacked where the name says so.
fn open(source: &Source, file: &Path) -> Result<Box<dyn Read>> {
    let input = source.folder.read(file).map_err(|failed| io_error(&failed, file))?;
    Ok(match is_gzip(file) {
        true => Box::new(unpacked(input)),
        false => Box::new(input),
    })
}

/// The directory of the files that a session may read and write.
///
/// Errors: 42501 for who may not.
pub(crate) fn folder(options: &DatabaseOptions, session: &SessionFacts) -> Result<Folder> {
    if !session.is_superuser() {
        let hint = "Only users with the role root of the database admin may read and write files of the server.";
        return Err(with(
            error("42501", "permission denied for files of the server"),
            &[(Field::Hint, hint)],
        ));
    }
    let Some(path) = &options.sql_files else {
        let hint =
            "Start it with --sql-files DIR to have files of a directory read; clients send theirs by COPY FROM STDIN.";
        return Err(with(
            error("42501", "this server reads no files"),
            &[(Field::Hint, hint)],
        ));
    };
    Folder::open(path).map_err(|failed| io_error(&failed, path))
}

impl Reading<'_, '_> {
    /// The table that files are.
    ///
    /// Errors: 42501 for who may not read them, 58P01 when there are none, those of reading the first of them.
    pub(super) fn files_named(&self, named: &Named) -> Result<Table> {
        let folder = folder(&self.statement.database.options, self.session)?;
        let mut files = Vec::new();
        for pattern in &named.patterns {
            let found = folder
                .matching(pattern)
                .map_err(|failed| io_error(&failed, Path::new(pattern)))?;
            if found.is_empty() {
                return fail("58P01", format!("no file matches \"{pattern}\""));
            }
            files.extend(found);
        }
        let mut bytes = 0;
        for file in &files {
            let opened = folder.read(file).map_err(|failed| io_error(&failed, file))?;
            bytes += opened.metadata().map_err(|failed| io_error(&failed, file))?.len();
        }
        let reads = match &named.reads {
            Reads::ByName => by_names(&files)?,
            reads => reads.clone(),
        };
        let mut source = Source {
            folder,
            files,
            bytes,
            form: Form::Json(JsonForm::Values),
            filename: named.filename,
        };
        let mut columns = match &reads {
            Reads::Csv(words) => {
                let (dialect, columns) = csv::found(&source, words, named.sample)?;
                source.form = Form::Csv(Arc::new(dialect));
                columns
            }
            Reads::Json(form) => {
                source.form = Form::Json(*form);
                json::columns(&source, *form, named.sample)?
            }
            Reads::Parquet | Reads::Arrow => {
                source.form = if reads == Reads::Parquet {
                    Form::Parquet
                } else {
                    Form::Arrow
                };
                arrow::columns(&source)?
            }
            Reads::ByName => Vec::new(),
        };
        if source.filename {
            columns.retain(|column| column.name != FILENAME);
            columns.push(Column::new(FILENAME, Type::Text));
        }
        Ok(Table::new(&named.name, columns, Kind::Files(Arc::new(source))))
    }
}

/// How files are read whose names tell it.
fn by_names(files: &[std::path::PathBuf]) -> Result<Reads> {
    let mut all = None;
    for file in files {
        let reads = match Format::of_name(file) {
            Some(Format::Csv) => Reads::Csv(CsvWords::default()),
            Some(Format::Tsv) => Reads::Csv(CsvWords {
                delimiter: Some(b'\t'),
                quote: Some(0),
                ..CsvWords::default()
            }),
            Some(Format::Json) => Reads::Json(JsonForm::Values),
            Some(Format::Ndjson) => Reads::Json(JsonForm::Lines),
            Some(Format::Parquet) => Reads::Parquet,
            Some(Format::Arrow) => Reads::Arrow,
            Some(Format::Bson) | None => {
                let told = error(
                    "0A000",
                    format!("{}: the name tells no format that is read as a table", file.display()),
                );
                return Err(with(told, &[(Field::Hint, "Say read_csv('...') or read_json('...').")]));
            }
        };
        match &all {
            None => all = Some(reads),
            Some(first) if *first == reads => {}
            Some(_) => return fail("0A000", "files of several formats are no one table"),
        }
    }
    Ok(all.unwrap_or(Reads::ByName))
}

/// Reads the files of a table, one after the other.
pub(super) struct ByFile {
    table: Arc<Table>,
    source: Arc<Source>,
    /// Which columns are looked at.
    needed: Vec<bool>,
    bounds: Vec<Bound>,
    /// The file that is next.
    next: usize,
    part: Option<Box<dyn Part>>,
    rows: usize,
    held: Held,
    figures: ColumnFigures,
}

impl ByFile {
    /// From the beginning of the first file.
    ///
    /// Errors: those of the values that columns are compared with.
    pub(super) fn new(scan: &Scan<Expr>, table: &Arc<Table>, source: &Arc<Source>, env: &Env<'_>) -> Result<Self> {
        Ok(Self {
            table: table.clone(),
            source: source.clone(),
            needed: scan.needed.clone(),
            bounds: Bound::all(&scan.conditions, env)?,
            next: 0,
            part: None,
            rows: 0,
            held: Held::by_this_statement(),
            figures: ColumnFigures::default(),
        })
    }

    fn open(&mut self, file: &Path) -> Result<Box<dyn Part>> {
        Ok(match &self.source.form {
            Form::Csv(dialect) => Box::new(csv::Rows::open(&self.source, file, dialect, &self.table)?),
            Form::Json(form) => Box::new(json::Documents::open(&self.source, file, *form, &self.table)?),
            Form::Parquet | Form::Arrow => {
                let read = arrow::Wanted {
                    table: &self.table,
                    needed: &self.needed,
                    bounds: &self.bounds,
                };
                Box::new(arrow::Batches::open(&self.source, file, &read, &mut self.figures)?)
            }
        })
    }
}

impl ColumnSource for ByFile {
    fn advance(&mut self) -> Result<Option<usize>> {
        loop {
            if let Some(part) = &mut self.part {
                self.rows = part.advance()?;
                self.held.set(part.weight());
                look()?;
                if self.rows > 0 {
                    self.figures.rows += self.rows as u64;
                    return Ok(Some(self.rows));
                }
            }
            let Some(file) = self.source.files.get(self.next).cloned() else {
                self.part = None;
                return Ok(None);
            };
            self.part = Some(self.open(&file)?);
            self.next += 1;
        }
    }

    fn column(&mut self, at: usize, places: Option<&[u32]>) -> Result<Arc<Vector>> {
        let rows = places.map_or(self.rows, <[u32]>::len);
        if self.source.filename && at + 1 == self.table.columns.len() {
            let file = self.source.files[self.next - 1].display().to_string();
            return Ok(Arc::new(Vector::same(Value::String(file.into()), rows)));
        }
        match &mut self.part {
            Some(part) => part.column(at, places).map(Arc::new),
            None => Ok(Arc::new(Vector::same(Value::Null, rows))),
        }
    }

    fn figures(&self) -> ColumnFigures {
        self.figures
    }

    fn access(&self) -> Access {
        Access {
            path: "FILE_SCAN".to_owned(),
            in_order: false,
            index_only: false,
        }
    }
}

/// The places of the rows that are wanted.
fn each(rows: usize, places: Option<&[u32]>) -> impl Iterator<Item = usize> {
    let all = match places {
        Some(_) => 0..0,
        None => 0..rows,
    };
    places.unwrap_or_default().iter().map(|at| *at as usize).chain(all)
}
