//! Small documents as those of a segment have them, of the only paths that somebody looks at.

use nestor_columns::column::State;
use nestor_columns::{Column, Found, Segment};
use nestor_model::{RawDocBuf, RawWriter, Str};

/// Room for a document of few fields.
const DOCUMENT_BYTES: usize = 128;

/// The paths, by their first names.
#[derive(Debug)]
pub(crate) struct Shape {
    fields: Vec<Named>,
    /// It counts, too, in which order documents have them, and what is a document without them.
    shaped: bool,
}

#[derive(Debug)]
struct Named {
    name: Str,
    /// From the document on.
    path: Str,
    /// All that is here is looked at; otherwise what is below.
    is_whole: bool,
    below: Vec<Named>,
}

/// Makes the documents of a segment.
pub(crate) struct Maker<'s> {
    fields: Vec<Part<'s>>,
}

struct Part<'s> {
    name: &'s str,
    what: What<'s>,
}

enum What<'s> {
    /// The values of a column.
    Values(&'s Column),
    /// A document of these, where the column has one.
    Shaped(&'s Column, Vec<Part<'s>>),
    /// A document of those that there are, if there are any.
    Below(Vec<Part<'s>>),
}

impl Shape {
    pub(crate) fn new(paths: &[Str], shaped: bool) -> Self {
        let mut fields = Vec::new();
        for path in paths {
            add(&mut fields, path, 0);
        }
        Self { fields, shaped }
    }

    /// All that the rows of a segment have that was computed.
    pub(crate) fn of_computed(segment: &Segment) -> Self {
        let paths: Vec<Str> = segment.parts().into_iter().map(|(path, _)| path).collect();
        Self::new(&paths, false)
    }

    /// What makes documents of the rows of a segment; `None` when it has not all of what that needs.
    pub(crate) fn maker<'s>(&'s self, segment: &'s Segment) -> Option<Maker<'s>> {
        let fields = self.parts(segment, "", &self.fields)?;
        Some(Maker { fields })
    }

    fn parts<'s>(&self, segment: &'s Segment, parent: &str, fields: &'s [Named]) -> Option<Vec<Part<'s>>> {
        let mut parts = Vec::with_capacity(fields.len());
        for field in fields {
            let path = || field.path.split('.');
            let found = match (field.is_whole, self.shaped) {
                (true, _) => segment.find(path()),
                (false, true) => segment.find_shape(path()),
                (false, false) => Found::Nothing,
            };
            let below = |fields| self.parts(segment, &field.path, fields);
            let what = match found {
                Found::Column(column) if field.is_whole => What::Values(column),
                Found::Column(column) => What::Shaped(column, below(&field.below)?),
                Found::Nothing if field.is_whole || self.shaped => continue,
                Found::Nothing => What::Below(below(&field.below)?),
                Found::Unknown => return None,
            };
            parts.push(Part {
                name: &field.name,
                what,
            });
        }
        if self.shaped && parts.len() > 1 {
            let parent = || parent.split('.').filter(|name| !name.is_empty());
            let places: Option<Vec<usize>> = parts.iter().map(|part| segment.order(parent(), part.name)).collect();
            let mut placed: Vec<_> = places?.into_iter().zip(parts).collect();
            placed.sort_by_key(|(place, _)| *place);
            parts = placed.into_iter().map(|(_, part)| part).collect();
        }
        Some(parts)
    }
}

fn add(fields: &mut Vec<Named>, path: &Str, from: usize) {
    let rest = &path[from..];
    let name = rest.split('.').next().unwrap_or(rest);
    let to = from + name.len();
    let at = fields.iter().position(|field| field.name == name).unwrap_or_else(|| {
        fields.push(Named {
            name: name.into(),
            path: path[..to].into(),
            is_whole: false,
            below: Vec::new(),
        });
        fields.len() - 1
    });
    match to == path.len() {
        true => fields[at].is_whole = true,
        false => add(&mut fields[at].below, path, to + 1),
    }
}

impl Maker<'_> {
    /// Writes the fields of a row's document.
    pub(crate) fn write(&self, row: usize, out: &mut RawWriter) {
        write(&self.fields, row, out);
    }

    /// A row's document.
    pub(crate) fn document(&self, row: usize) -> RawDocBuf {
        let mut out = RawWriter::with_capacity(DOCUMENT_BYTES);
        self.write(row, &mut out);
        out.into_doc()
    }
}

fn write(parts: &[Part<'_>], row: usize, out: &mut RawWriter) {
    for part in parts {
        let below = match &part.what {
            What::Values(column) => {
                out.append(part.name, column.value(row));
                continue;
            }
            What::Shaped(column, below) if column.state(row) == State::Document => below,
            What::Below(below) if below.iter().any(|below| below.has_any(row)) => below,
            _ => continue,
        };
        out.begin_document(part.name);
        write(below, row, out);
        out.end();
    }
}

impl Part<'_> {
    fn has_any(&self, row: usize) -> bool {
        match &self.what {
            What::Values(column) => !column.value(row).is_missing(),
            What::Shaped(_, below) | What::Below(below) => below.iter().any(|below| below.has_any(row)),
        }
    }
}
