//! Files that statements read as tables: what a statement says of them, and what was found out.

use nestor_files::folder::Folder;
use std::path::PathBuf;
use std::sync::Arc;

/// Rows of a file that are looked at for the types of its columns, unless a statement says how many.
pub const SAMPLE_ROWS: u64 = 20_480;

/// Files as a statement names them.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// The name of the table that they are.
    pub name: String,
    /// Paths and patterns.
    pub patterns: Vec<String>,
    /// How they are read.
    pub reads: Reads,
    /// With a column `filename`.
    pub filename: bool,
    /// Rows that are looked at for the types of columns.
    pub sample: u64,
}

/// How files are read.
#[derive(Clone, Debug, PartialEq)]
pub enum Reads {
    /// As their names tell.
    ByName,
    /// As comma-separated values.
    Csv(CsvWords),
    /// As JSON.
    Json(JsonForm),
    /// As Parquet.
    Parquet,
    /// As Arrow's IPC.
    Arrow,
}

/// What is said of comma-separated values; what is not said is found out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CsvWords {
    /// What stands between fields.
    pub delimiter: Option<u8>,
    /// What stands around fields; a zero for nothing.
    pub quote: Option<u8>,
    /// What stands before a quote within quotes, if that is not another quote.
    pub escape: Option<u8>,
    /// The first row has the names.
    pub header: Option<bool>,
    /// What stands for null, beside nothing.
    pub null: Option<String>,
    /// Lines that are left out first.
    pub skip: u64,
    /// All columns are text.
    pub all_text: bool,
    /// Rows may have fewer fields than there are columns.
    pub pads: bool,
    /// The names of columns.
    pub names: Vec<String>,
}

/// How documents stand in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonForm {
    /// One after the other, or all in one array.
    Values,
    /// One in each line.
    Lines,
}

/// Files that are read as one table.
#[derive(Debug)]
pub struct Source {
    /// Where they are.
    pub folder: Folder,
    /// Their paths, one at least.
    pub files: Vec<PathBuf>,
    /// Bytes of all of them.
    pub bytes: u64,
    /// How they are read.
    pub form: Form,
    /// The last column is the name of the file.
    pub filename: bool,
}

/// How a file is read, of which all is known.
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// As comma-separated values.
    Csv(Arc<Dialect>),
    /// As JSON.
    Json(JsonForm),
    /// As Parquet.
    Parquet,
    /// As Arrow's IPC.
    Arrow,
}

/// How comma-separated values are written.
#[derive(Clone, Debug, PartialEq)]
pub struct Dialect {
    /// What stands between fields.
    pub delimiter: u8,
    /// What stands around fields, if anything.
    pub quote: Option<u8>,
    /// What stands before a quote within quotes; nothing when that is another quote.
    pub escape: Option<u8>,
    /// The first row has the names.
    pub header: bool,
    /// What stands for null, beside nothing.
    pub null: Option<String>,
    /// Lines that are left out first.
    pub skip: u64,
    /// Rows may have fewer fields than there are columns.
    pub pads: bool,
    /// Fields of a row.
    pub width: usize,
}
