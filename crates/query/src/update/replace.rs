//! Replacement documents: `{a: 1}` in place of the whole document, `_id` kept.

use super::validate;
use nestor_model::{DocRef, Error, ErrorCode, RawDoc, RawDocBuf, RawWriter, Result, Timestamp, ValueRef, values_equal};

/// A replacement, as given.
#[derive(Debug)]
pub(crate) struct Replacement {
    doc: RawDocBuf,
}

impl Replacement {
    /// Errors: 9 (FailedToParse) for operators among the fields.
    pub fn parse(doc: DocRef<'_>) -> Result<Self> {
        Ok(Self { doc: doc.to_raw() })
    }

    /// As it was given.
    pub fn given(&self) -> RawDoc<'_> {
        self.doc.as_raw()
    }

    /// The new document: `_id` of the old one first, when it has one, then the replacement's fields.
    ///
    /// Errors: 66 (ImmutableField) when the replacement has another `_id`; 52 for `$` names unless
    /// `insert`; 53 for a bad `_id`; 17419 when it gets too large.
    pub fn apply(&self, old: RawDoc<'_>, now: Timestamp, insert: bool) -> Result<RawDocBuf> {
        replace(old, self.given(), Some(now), insert)
    }
}

/// Puts `new` in the place of `old`; see [`Replacement::apply`]. With `now`, empty timestamps at the top
/// level take that time, as in an insert.
pub(crate) fn replace(old: RawDoc<'_>, new: RawDoc<'_>, now: Option<Timestamp>, insert: bool) -> Result<RawDocBuf> {
    validate::check_names(new, insert)?;
    let old_id = old.get("_id");
    let new_id = new.get("_id");
    if let (Some(a), Some(b)) = (old_id, new_id) {
        if !values_equal(a, b) {
            return Err(Error::new(
                ErrorCode::ImmutableField,
                format!(
                    "After applying the update, the (immutable) field '_id' was found to have been altered to _id: {b:?}"
                ),
            ));
        }
    }
    // An equal `_id` of another type stays as it was.
    let id = old_id.or(new_id);
    let mut writer = RawWriter::with_capacity(new.len() + 32);
    if let Some(id) = id {
        validate::check_id(id)?;
        writer.append("_id", id);
    }
    for element in new.elements().filter(|e| e.name() != "_id") {
        match (element.value(), now) {
            (ValueRef::Timestamp(t), Some(now)) if t == Timestamp::default() => writer.append(element.name(), now),
            _ => writer.append_element_bytes(element.as_bytes()),
        }
    }
    if writer.len() >= nestor_model::raw::DOCUMENT_BYTES_MAX {
        return Err(super::patch::too_large());
    }
    let doc = writer.into_doc();
    if doc.as_raw().is_deeper_than(nestor_model::raw::STORED_DEPTH_MAX) {
        return Err(super::too_deep());
    }
    Ok(doc)
}
