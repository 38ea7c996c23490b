//! What the parts of a segment are found by.

use crate::text::definition::ScopeId;
use nestor_model::Str;

/// The number of a row of a segment.
pub(in crate::text) type RowId = u32;

/// In which way a field is indexed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(in crate::text) enum Kind {
    Text,
    /// A `multi` of a string.
    Multi(Str),
    Autocomplete,
    Token,
    Number,
    Date,
    Boolean,
    ObjectId,
    Uuid,
    Null,
    Geo,
    StringFacet,
    NumberFacet,
    DateFacet,
    /// That there is something.
    Exists,
}

/// What a text field or a column is of.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(in crate::text) struct FieldKey {
    pub(in crate::text) scope: ScopeId,
    pub(in crate::text) kind: Kind,
    pub(in crate::text) path: Str,
}

impl FieldKey {
    pub(in crate::text) fn new(scope: ScopeId, kind: Kind, path: &str) -> Self {
        let path = path.into();
        Self { scope, kind, path }
    }
}
