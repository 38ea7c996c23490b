//! What every format yields: one encoded document after the other, each with its place in the file.

use std::fmt;
use std::path::Path;

/// Where a record begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Line of a text file, from 1.
    Line(u64),
    /// Byte of a binary file, from 0.
    Offset(u64),
    /// Row of a file that has columns, from 1.
    Row(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(n) => write!(f, "line {n}"),
            Self::Offset(n) => write!(f, "offset {n}"),
            Self::Row(n) => write!(f, "row {n}"),
        }
    }
}

/// One document.
#[derive(Debug)]
pub struct Record {
    /// Where it begins.
    pub place: Place,
    /// The document as BSON.
    pub bson: Vec<u8>,
}

/// Why a record cannot be read, and where.
#[derive(Debug)]
pub struct BadRecord {
    /// Where the fault lies, or the record begins when that is not known better. `None`: reading itself failed.
    pub place: Option<Place>,
    /// Why.
    pub reason: String,
}

impl BadRecord {
    /// A fault at a line.
    pub fn at_line(line: u64, reason: impl Into<String>) -> Self {
        Self {
            place: Some(Place::Line(line)),
            reason: reason.into(),
        }
    }

    /// A fault at a byte.
    pub fn at_offset(offset: u64, reason: impl Into<String>) -> Self {
        Self {
            place: Some(Place::Offset(offset)),
            reason: reason.into(),
        }
    }

    /// The message for the user: file, place, reason.
    pub fn named(&self, file: &Path) -> String {
        match self.place {
            Some(place) => format!("{}: {place}: {}", file.display(), self.reason),
            None => format!("{}: {}", file.display(), self.reason),
        }
    }
}

impl From<std::io::Error> for BadRecord {
    fn from(error: std::io::Error) -> Self {
        Self {
            place: None,
            reason: error.to_string(),
        }
    }
}

/// Records that were left out because the user asked for that.
#[derive(Debug, Default)]
pub struct Skipped {
    /// How many.
    pub count: u64,
    /// The first of them.
    pub shown: Vec<BadRecord>,
}

impl Skipped {
    /// Of more than this many only the number is told.
    const SHOWN_MAX: usize = 10;

    /// Counts one.
    pub fn add(&mut self, record: BadRecord) {
        self.count += 1;
        if self.shown.len() < Self::SHOWN_MAX {
            self.shown.push(record);
        }
    }
}

/// A file of records. After `Ok(None)` or an error it is not asked again.
pub trait Records {
    /// The next record; `None` at the end of the file.
    fn next_record(&mut self) -> Result<Option<Record>, BadRecord>;

    /// What was left out so far.
    fn skipped(&mut self) -> Skipped {
        Skipped::default()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use nestor_model::RawDoc;

    /// Every record as `place: document`, and the fault at the end if there is one.
    pub fn listed(mut records: impl Records) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            match records.next_record() {
                Ok(Some(record)) => {
                    let doc = RawDoc::validate(&record.bson).expect("records are valid BSON");
                    lines.push(format!("{}: {doc:?}", record.place));
                }
                Ok(None) => return lines,
                Err(bad) => {
                    lines.push(bad.named(Path::new("file")));
                    return lines;
                }
            }
        }
    }
}
