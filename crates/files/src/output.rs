//! Documents written to a file of any format that documents are written in.

use crate::Format;
use nestor_model::extjson::{self, Form};
use nestor_model::{RawDoc, ValueRef};
use std::fmt;
use std::io::{self, Write};

/// The words of the formats that are written.
pub const WORDS: [&str; 5] = ["json", "ndjson", "bson", "parquet", "arrow"];

/// Why documents cannot be written.
#[derive(Debug)]
pub enum Failed {
    /// A value that its column cannot hold.
    Misfit {
        /// The path of its field.
        path: String,
        /// What it is.
        found: String,
    },
    /// The format has columns that somebody has to name: CSV.
    NeedsColumns,
    /// This build does not have the format.
    NotBuilt,
    /// What the writer of the format says.
    Format(String),
    /// The file cannot be written.
    Io(io::Error),
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misfit { path, found } => write!(
                f,
                "field {path} cannot hold {found}: the first documents decide what the columns are"
            ),
            Self::NeedsColumns => write!(f, "CSV has columns, which SQL knows: COPY ... TO with the format csv"),
            Self::NotBuilt => write!(
                f,
                "this build has no Parquet and Arrow: it was made without the feature \"parquet\""
            ),
            Self::Format(reason) => write!(f, "{reason}"),
            Self::Io(failed) => write!(f, "{failed}"),
        }
    }
}

impl From<io::Error> for Failed {
    fn from(failed: io::Error) -> Self {
        Self::Io(failed)
    }
}

/// A file that is being written.
pub enum Output<W: Write + Send> {
    /// Extended JSON: documents in an array, of which there is nothing yet if that is `Some(true)`, or one in each line.
    Json(W, Option<bool>),
    /// One behind the other.
    Bson(W),
    /// Parquet or Arrow.
    #[cfg(feature = "parquet")]
    Columns(Box<crate::arrow::file::Documents<W>>),
}

impl<W: Write + Send> Output<W> {
    /// Begins a file.
    ///
    /// Errors: the format is not written.
    pub fn new(format: Format, output: W) -> Result<Self, Failed> {
        Ok(match format {
            Format::Json => Self::Json(output, Some(true)),
            Format::Ndjson => Self::Json(output, None),
            Format::Bson => Self::Bson(output),
            #[cfg(feature = "parquet")]
            Format::Parquet | Format::Arrow => {
                use crate::arrow::file::{Documents, Kind};
                let kind = match format {
                    Format::Parquet => Kind::Parquet,
                    _ => Kind::Stream,
                };
                Self::Columns(Box::new(Documents::new(kind, output)))
            }
            #[cfg(not(feature = "parquet"))]
            Format::Parquet | Format::Arrow => return Err(Failed::NotBuilt),
            Format::Csv | Format::Tsv => return Err(Failed::NeedsColumns),
        })
    }

    /// Adds a document.
    ///
    /// Errors: those of writing; its values do not fit.
    pub fn add(&mut self, doc: RawDoc<'_>) -> Result<(), Failed> {
        match self {
            Self::Json(output, array) => {
                let text = extjson::to_string(ValueRef::Document(doc.as_doc()), Form::Canonical);
                let (before, behind) = match array {
                    Some(is_empty) => (if std::mem::take(is_empty) { "[\n" } else { ",\n" }, ""),
                    None => ("", "\n"),
                };
                write!(output, "{before}{text}{behind}")?;
            }
            Self::Bson(output) => output.write_all(doc.as_bytes())?,
            #[cfg(feature = "parquet")]
            Self::Columns(documents) => documents.add(doc)?,
        }
        Ok(())
    }

    /// Bytes that wait in memory to be written, about.
    pub fn waiting(&self) -> usize {
        match self {
            Self::Json(..) | Self::Bson(_) => 0,
            #[cfg(feature = "parquet")]
            Self::Columns(documents) => documents.waiting(),
        }
    }

    /// Ends the file.
    ///
    /// Errors: those of [`Output::add`].
    pub fn finish(self) -> Result<W, Failed> {
        match self {
            Self::Json(mut output, array) => {
                let end = match array {
                    Some(true) => "[]\n",
                    Some(false) => "\n]\n",
                    None => "",
                };
                output.write_all(end.as_bytes())?;
                Ok(output)
            }
            Self::Bson(output) => Ok(output),
            #[cfg(feature = "parquet")]
            Self::Columns(documents) => Ok(documents.finish()?),
        }
    }
}

#[cfg(feature = "parquet")]
impl From<crate::arrow::file::Failed> for Failed {
    fn from(failed: crate::arrow::file::Failed) -> Self {
        use crate::arrow::file::Failed as Columns;
        match failed {
            Columns::Misfit(misfit) => Self::Misfit {
                path: misfit.path,
                found: misfit.found,
            },
            Columns::File(crate::arrow::ArrowError::IoError(_, failed)) => Self::Io(failed),
            Columns::File(failed) => Self::Format(failed.to_string()),
        }
    }
}
