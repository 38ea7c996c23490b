//! In which order rows are welcome to who wants only the first ones, and which come too late.

use crate::keys::SortKeys;
use nestor_columns::{Found, Segment, Zone};
use nestor_model::{Str, Value, ValueRef};
use nestor_query::sort::{SortBy, SortSpec};

/// The order by the values at a path, told to whoever gives rows ([`RowBatch::order`](crate::row_batch::RowBatch::order)): it may begin with those
/// that come first, and leave out what comes behind the last one. It says of which record rows are then, as they may come in another order than these.
#[derive(Debug)]
pub struct RowOrder {
    path: Str,
    ascending: bool,
    has_collator: bool,
    keys: SortKeys,
    /// The sort key of the last row that is wanted; empty as long as any may be.
    last: Vec<u8>,
}

impl RowOrder {
    /// That of a sort; `None` when its first part is no path.
    pub(crate) fn of(spec: &SortSpec) -> Option<Self> {
        let part = spec.parts().first()?;
        let SortBy::Path(path) = &part.by else { return None };
        Some(Self {
            path: path.as_str().into(),
            ascending: part.ascending,
            has_collator: spec.collator().is_some(),
            keys: SortKeys::new(spec),
            last: Vec::new(),
        })
    }

    /// Rows with larger sort keys than this are not wanted.
    pub(crate) fn set_last(&mut self, key: &[u8]) {
        self.last.clear();
        self.last.extend_from_slice(key);
    }

    /// The beginning of the sort keys of rows of a segment: none of them has a smaller one. `None` when that is not known.
    pub(crate) fn first(&self, segment: &Segment) -> Option<Vec<u8>> {
        let path = || self.path.split('.');
        let has_gaps = || match segment.find(path()) {
            Found::Column(column) => Some(column.has_gaps()),
            Found::Nothing => Some(true),
            Found::Unknown => None,
        };
        let value = match segment.zone(path()) {
            // Nulls come before all other values.
            _ if self.ascending && has_gaps()? => ValueRef::Null,
            Zone::Nothing => ValueRef::Null,
            Zone::Unknown => return None,
            // Which text comes first under a collation is not known.
            Zone::Between((Value::String(_), _)) if self.has_collator => return None,
            Zone::Between((least, most)) => if self.ascending { least } else { most }.as_ref(),
        };
        let mut key = Vec::new();
        self.keys.encode(&[value], &mut key);
        Some(key)
    }

    /// Whether no row of a segment is wanted.
    pub(crate) fn is_too_late(&self, segment: &Segment) -> bool {
        !self.last.is_empty() && self.first(segment).is_some_and(|first| first > self.last)
    }
}
