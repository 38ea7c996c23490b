//! The search indexes of a collection as its catalog entry keeps them.
//!
//! ```text
//! searchIndexes: {default: {id: ObjectId, type: "search", version: 0, definition: {mappings: {dynamic: true}}}}
//! ```
//!
//! What a definition means is read by who makes and asks the index; here it is a document.

use crate::value::{DocRef, Document, ValueRef};
use crate::{ObjectId, Result, Str, bail, doc};

/// A search index of a collection.
#[derive(Clone, Debug)]
pub struct SearchIndex {
    /// Its name, of which a collection has each once.
    pub name: Str,
    /// What tells it from one of the same name that was there before.
    pub id: ObjectId,
    /// `search` or `vectorSearch`.
    pub kind: Str,
    /// How often its definition was changed.
    pub version: i64,
    /// The definition as a client wrote it.
    pub definition: Document,
}

impl SearchIndex {
    /// Reads those of a catalog entry.
    ///
    /// Error: 72 for what is no index of this form.
    pub(crate) fn parse_all(listed: DocRef<'_>) -> Result<Vec<Self>> {
        listed.iter().map(|(name, value)| Self::parse(name, value)).collect()
    }

    /// Whether it has this id and this name, of those that are given.
    pub fn is(&self, id: Option<&str>, name: Option<&str>) -> bool {
        id.is_none_or(|id| self.id.to_string() == id) && name.is_none_or(|name| self.name == name)
    }

    fn parse(name: &str, value: ValueRef<'_>) -> Result<Self> {
        let field = |field: &str| value.as_document().and_then(|index| index.get(field));
        let (
            Some(ValueRef::ObjectId(id)),
            Some(ValueRef::String(kind)),
            Some(ValueRef::Int64(version)),
            Some(ValueRef::Document(definition)),
        ) = (field("id"), field("type"), field("version"), field("definition"))
        else {
            bail!(
                InvalidOptions,
                "the search index '{name}' of a collection is not known to this version"
            );
        };
        Ok(Self {
            name: name.into(),
            id,
            kind: kind.into(),
            version,
            definition: definition.to_document(),
        })
    }

    /// All of them as a catalog entry keeps them.
    pub fn listed(all: &[Self]) -> Document {
        let mut listed = Document::new();
        for index in all {
            listed.push(
                index.name.clone(),
                doc! {
                    "id": index.id,
                    "type": index.kind.clone(),
                    "version": index.version,
                    "definition": index.definition.clone(),
                },
            );
        }
        listed
    }
}
