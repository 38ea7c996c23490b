//! Document validation: a collection's validator applied to what is written.

use crate::database::Database;
use crate::statement::Statement;
use nestor_exec::catalog;
use nestor_model::{RawDoc, Result, Value, doc};
use nestor_query::env::OpContext;
use nestor_query::validation::{self, Verdict};
use nestor_storage::Collection;
use std::sync::Arc;

/// Log id of a document that does not match.
const LOG_ID: u32 = 20294;

/// A collection's validator, ready to judge what one statement writes.
pub struct Validator<'c> {
    rules: Arc<validation::Validator>,
    namespace: String,
    database: &'c Database,
    connection: i64,
}

impl<'c> Validator<'c> {
    /// The validator to apply to writes into `collection`, if there is one and it is not bypassed.
    pub fn of(statement: &Statement<'c>, collection: &Collection, bypass: bool) -> Result<Option<Self>> {
        if bypass {
            return Ok(None);
        }
        let rules = catalog::validator(collection)?;
        Ok(rules.map(|rules| Self {
            rules,
            namespace: collection.ns.to_string(),
            database: statement.database,
            connection: statement.slot.id,
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
        self.database.node.log().warn(
            "STORAGE",
            LOG_ID,
            &format!("conn{}", self.connection),
            "Document would fail validation",
            doc! {
                "namespace": self.namespace.as_str(),
                "document": Value::from(doc),
                "errInfo": info.map(|info| info.to_value()),
            },
        );
    }
}
