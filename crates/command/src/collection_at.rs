//! The place where a command names its collection.

use nestor_model::{RawDoc, ValueRef};

/// The text of a value that names a collection: a string, or a symbol, which MongoDB takes for one here and nowhere else.
pub fn collection_text(value: ValueRef<'_>) -> Option<&str> {
    match value {
        ValueRef::String(name) | ValueRef::Symbol(name) => Some(name),
        _ => None,
    }
}

/// Where a command names the collection it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectionAt {
    /// Nowhere: it is about no collection, or about several.
    Nowhere,
    /// In its first field, within its database.
    First,
    /// In its first field as a whole namespace.
    Whole,
    /// In another field, within its database.
    Field(&'static str),
}

impl CollectionAt {
    /// The database and the collection that a command names, if it names a collection. `db` is the command's own.
    pub fn named<'b>(self, db: &'b str, body: RawDoc<'b>) -> Option<(&'b str, &'b str)> {
        let value = match self {
            Self::Nowhere => return None,
            Self::First | Self::Whole => body.iter().next()?.1,
            Self::Field(name) => body.get(name)?,
        };
        let name = collection_text(value).filter(|name| !name.is_empty())?;
        match self {
            Self::Whole => name.split_once('.').filter(|(_, coll)| !coll.is_empty()),
            _ => Some((db, name)),
        }
    }
}
