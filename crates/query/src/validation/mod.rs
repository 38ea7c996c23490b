//! The validator of a collection: which documents may be stored.
//!
//! | level | an insert | an update of a matching document | an update of one that does not match |
//! |---|---|---|---|
//! | `strict` | checked | checked | checked |
//! | `moderate` | checked | checked | free |
//! | `off` | free | free | free |
//!
//! Source: manual, "Schema Validation".

pub mod failure;
#[cfg(test)]
mod tests;

pub use failure::validation_error;

use crate::collation::Collator;
use crate::env::{OpContext, Scope};
use crate::matcher::{Context, MatchExpr};
use nestor_model::collection_options::{ValidationAction, ValidationLevel};
use nestor_model::{CollectionOptions, DocRef, Error, Result};

/// `validator`, `validationLevel`, `validationAction` and `collation` of a collection, compiled.
#[derive(Clone, Debug)]
pub struct Validator {
    expr: MatchExpr,
    collator: Option<Collator>,
    moderate: bool,
    action: ValidationAction,
}

/// The verdict of a validator on a document.
#[derive(Debug)]
pub enum Verdict {
    /// The document may be stored.
    Pass,
    /// The document may be stored, but the error is to be logged.
    Warn(Error),
    /// The document may not be stored.
    Refuse {
        /// 121 (DocumentValidationFailure).
        error: Error,
        /// The error is to be logged too.
        log: bool,
    },
}

impl Validator {
    /// Compiles the validator among a collection's options; `None` when nothing is checked.
    ///
    /// Errors: those of [`Validator::parse`] and of [`Collator::parse`].
    pub fn from_options(options: &CollectionOptions) -> Result<Option<Self>> {
        let Some(filter) = options.validator.as_ref().filter(|filter| !filter.is_empty()) else {
            return Ok(None);
        };
        if options.validation_level == ValidationLevel::Off {
            return Ok(None);
        }
        let collator = match &options.collation {
            Some(collation) => Collator::parse(collation.as_ref())?,
            None => None,
        };
        let mut scope = Scope::new().with_collator(collator.clone());
        Ok(Some(Self {
            expr: MatchExpr::parse_in(filter.as_ref(), &mut scope, Context::Validator)?,
            collator,
            moderate: options.validation_level == ValidationLevel::Moderate,
            action: options.validation_action,
        }))
    }

    /// Parses a validator.
    ///
    /// Errors: 2 (BadValue) for `$where` and `$text`; 5626500 for `$near` and its like; those of match
    /// expressions.
    pub fn parse(filter: DocRef<'_>) -> Result<MatchExpr> {
        MatchExpr::parse_in(filter, &mut Scope::new(), Context::Validator)
    }

    /// Judges `new`, which is inserted or takes the place of `old`. Errors: those of evaluation, other
    /// than of `new` itself.
    pub fn check(&self, new: DocRef<'_>, old: Option<DocRef<'_>>, op: &OpContext) -> Result<Verdict> {
        // The collection's own collation counts here, whatever the writing operation's is.
        let own_op;
        let op = if op.collator == self.collator {
            op
        } else {
            own_op = op.with_vars(Vec::new()).with_collator(self.collator.clone());
            &own_op
        };
        if self.expr.matches(new, op)? {
            return Ok(Verdict::Pass);
        }
        if let Some(old) = old {
            if self.moderate && !self.expr.matches(old, op)? {
                return Ok(Verdict::Pass);
            }
        }
        let error = validation_error(&self.expr, new, op);
        Ok(match self.action {
            ValidationAction::Error => Verdict::Refuse { error, log: false },
            ValidationAction::ErrorAndLog => Verdict::Refuse { error, log: true },
            ValidationAction::Warn => Verdict::Warn(error),
        })
    }
}
