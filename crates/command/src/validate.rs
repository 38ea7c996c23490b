//! Document validation: a collection's validator applied to what is written.

use crate::Context;
use nestor_model::{RawDoc, RawDocBuf, Result, Value, doc};
use nestor_query::env::OpContext;
use nestor_query::schema::{self, Verdict};
use nestor_storage::{Collection, CollectionId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Log id of a document that does not match.
const LOG_ID: u32 = 20294;

/// Collections whose compiled validators are kept.
const KEPT_MAX: usize = 1_000;

/// The validators of collections, compiled once for the options they have.
#[derive(Debug, Default)]
pub struct Validators(Mutex<HashMap<CollectionId, Kept>>);

#[derive(Debug)]
struct Kept {
    /// The options it was compiled from.
    options: RawDocBuf,
    rules: Option<Arc<schema::Validator>>,
}

impl Validators {
    fn get(&self, collection: &Collection) -> Result<Option<Arc<schema::Validator>>> {
        if collection.options.get("validator").is_none() {
            return Ok(None);
        }
        let options = collection.options.to_raw();
        let mut all = crate::lock(&self.0);
        if let Some(kept) = all.get(&collection.id).filter(|kept| kept.options == options) {
            return Ok(kept.rules.clone());
        }
        let rules = schema::Validator::from_options(collection.options.as_ref())?.map(Arc::new);
        // Ids are not used again: what is left of dropped collections goes with the rest.
        if all.len() >= KEPT_MAX {
            all.clear();
        }
        let kept = Kept {
            options,
            rules: rules.clone(),
        };
        all.insert(collection.id, kept);
        Ok(rules)
    }
}

/// A collection's validator, ready to judge what one statement writes.
pub struct Validator<'c> {
    rules: Arc<schema::Validator>,
    namespace: String,
    context: &'c Context<'c>,
}

impl<'c> Validator<'c> {
    /// The validator to apply to writes into `collection`, if there is one and it is not bypassed.
    pub fn of(context: &'c Context<'c>, collection: &Collection, bypass: bool) -> Result<Option<Self>> {
        if bypass {
            return Ok(None);
        }
        let rules = context.service.validators.get(collection)?;
        Ok(rules.map(|rules| Self {
            rules,
            namespace: collection.ns.to_string(),
            context,
        }))
    }

    /// Checks a new document. Errors: 121 (DocumentValidationFailure) with `errInfo`.
    pub fn check(&self, doc: RawDoc<'_>, op: &OpContext) -> Result<()> {
        self.judge(doc, None, op)
    }

    /// Checks a new version of a document. With level moderate, a document that was not valid before may stay so.
    pub fn check_update(&self, before: RawDoc<'_>, after: RawDoc<'_>, op: &OpContext) -> Result<()> {
        self.judge(after, Some(before), op)
    }

    fn judge(&self, new: RawDoc<'_>, old: Option<RawDoc<'_>>, op: &OpContext) -> Result<()> {
        match self.rules.check(new.as_doc(), old.map(RawDoc::as_doc), op)? {
            Verdict::Pass => Ok(()),
            Verdict::Warn(error) => {
                self.log(new, &error);
                Ok(())
            }
            Verdict::Refuse { error, log } => {
                if log {
                    self.log(new, &error);
                }
                Err(error)
            }
        }
    }

    fn log(&self, doc: RawDoc<'_>, error: &nestor_model::Error) {
        let info = error.extra().and_then(|extra| extra.get("errInfo"));
        self.context.service.node.log().warn(
            "STORAGE",
            LOG_ID,
            &format!("conn{}", self.context.conn.id),
            "Document would fail validation",
            doc! {
                "namespace": self.namespace.as_str(),
                "document": Value::from(doc),
                "errInfo": info.map(|info| info.to_value()),
            },
        );
    }
}
