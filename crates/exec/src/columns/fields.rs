//! Small documents of the paths that an expression reads.

use nestor_columns::{Column, Found, Segment};
use nestor_model::{DocRef, RawWriter, Str, ValueRef};
use nestor_query::expr::Deps;
use nestor_storage::record;

/// Paths, put together by their first names.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    below: Vec<(Str, Fields)>,
    /// Which path ends here.
    path: Option<usize>,
    /// The paths.
    paths: Vec<Str>,
}

/// The paths that something reads; `None` when it looks at more than values at paths.
pub(crate) fn paths_of(deps: &Deps) -> Option<Vec<Str>> {
    let plain = !deps.whole_document && deps.metadata.is_empty() && !deps.volatile;
    plain.then(|| deps.paths.iter().map(|path| path.as_str().into()).collect())
}

/// The column of a path in a segment that has all of it; `None` when no document has anything there.
pub(crate) fn column<'s>(segment: &'s Segment, path: &str) -> Option<&'s Column> {
    match segment.find(path.split('.')) {
        Found::Column(column) => Some(column),
        Found::Nothing | Found::Unknown => None,
    }
}

impl Fields {
    /// These.
    pub(crate) fn new(paths: Vec<Str>) -> Self {
        let mut fields = Self::default();
        for (at, path) in paths.iter().enumerate() {
            let mut here = &mut fields;
            for name in path.split('.') {
                let found = here.below.iter().position(|(own, _)| own == name);
                let next = found.unwrap_or_else(|| {
                    here.below.push((name.into(), Self::default()));
                    here.below.len() - 1
                });
                here = &mut here.below[next].1;
            }
            here.path = Some(at);
        }
        fields.paths = paths;
        fields
    }

    /// The paths.
    pub(crate) fn paths(&self) -> &[Str] {
        &self.paths
    }

    /// The columns of the paths.
    pub(crate) fn columns<'s>(&self, segment: &'s Segment) -> Vec<Option<&'s Column>> {
        self.paths.iter().map(|path| column(segment, path)).collect()
    }

    /// Calls `with` with a document that has at the paths what a row has; it is written into `buffer`.
    pub(crate) fn with_document<R>(
        &self,
        columns: &[Option<&Column>],
        row: usize,
        buffer: &mut Vec<u8>,
        with: impl FnOnce(DocRef<'_>) -> R,
    ) -> R {
        buffer.clear();
        let mut writer = RawWriter::onto(std::mem::take(buffer));
        self.write(columns, row, &mut writer);
        *buffer = writer.finish();
        with(record::document(buffer).as_doc())
    }

    fn write(&self, columns: &[Option<&Column>], row: usize, out: &mut RawWriter) {
        for (name, field) in &self.below {
            match field.own(columns, row) {
                ValueRef::Missing if field.has_below(columns, row) => {
                    out.begin_document(name);
                    field.write(columns, row, out);
                    out.end();
                }
                own => out.append(name, own),
            }
        }
    }

    /// What a row has at the path that ends here.
    fn own<'c>(&self, columns: &[Option<&'c Column>], row: usize) -> ValueRef<'c> {
        let column = self.path.and_then(|at| columns[at]);
        column.map_or(ValueRef::Missing, |column| column.value(row))
    }

    /// Whether a row has something below this.
    fn has_below(&self, columns: &[Option<&Column>], row: usize) -> bool {
        let has = |field: &Self| !field.own(columns, row).is_missing() || field.has_below(columns, row);
        self.below.iter().any(|(_, field)| has(field))
    }
}
