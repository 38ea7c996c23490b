//! Document validation: a collection's `validator` applied to what is written.

use nestor_model::{RawDoc, Result, ValueRef};
use nestor_query::env::OpContext;
use nestor_query::schema::{self, Verdict};
use nestor_storage::Collection;

/// A collection's validator, parsed.
pub struct Validator(schema::Validator);

impl Validator {
    /// The validator to apply to writes into `collection`, if there is one and it is not bypassed.
    pub fn of(collection: &Collection, bypass: bool) -> Result<Option<Self>> {
        let has_one = matches!(collection.options.get("validator"), Some(ValueRef::Document(_)));
        if bypass || !has_one {
            return Ok(None);
        }
        Ok(schema::Validator::from_options(collection.options.as_ref())?.map(Self))
    }

    /// Checks a new document. Error 121 with `errInfo`.
    pub fn check(&self, doc: RawDoc<'_>, op: &OpContext) -> Result<()> {
        refuse(self.0.check(doc.as_doc(), None, op)?)
    }

    /// Checks a new version of a document. With level moderate, a document that was not valid before may stay so.
    pub fn check_update(&self, before: RawDoc<'_>, after: RawDoc<'_>, op: &OpContext) -> Result<()> {
        refuse(self.0.check(after.as_doc(), Some(before.as_doc()), op)?)
    }
}

fn refuse(verdict: Verdict) -> Result<()> {
    match verdict {
        Verdict::Refuse { error, .. } => Err(error),
        _ => Ok(()),
    }
}
