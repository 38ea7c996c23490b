//! The validator of a collection: which documents may be stored.
//!
//! | level | an insert | an update of a matching document | an update of one that does not match |
//! |---|---|---|---|
//! | `strict` | checked | checked | checked |
//! | `moderate` | checked | checked | free |
//! | `off` | free | free | free |
//!
//! Source: manual, "Schema Validation".

use super::validation_error;
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

/// What a validator says of a document.
#[derive(Debug)]
pub enum Verdict {
    /// It may be stored.
    Pass,
    /// It may be stored, but this is to be logged.
    Warn(Error),
    /// It may not be stored.
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

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::{Document, doc};

    fn verdict(options: Document, new: Document, old: Option<Document>) -> &'static str {
        let op = OpContext::default();
        let options = CollectionOptions::parse(options).expect("valid options");
        let validator = Validator::from_options(&options).expect("a valid validator");
        let Some(validator) = validator else { return "unchecked" };
        match validator.check(new.as_ref(), old.as_ref().map(Document::as_ref), &op) {
            Ok(Verdict::Pass) => "pass",
            Ok(Verdict::Warn(_)) => "warn",
            Ok(Verdict::Refuse { error, log }) => {
                assert_eq!(error.code().number(), 121);
                if log { "refuse and log" } else { "refuse" }
            }
            Err(e) => panic!("{e}"),
        }
    }

    #[test]
    fn levels_and_actions() {
        let options = |level: &str, action: &str| {
            doc! {"validator": doc! {"a": 1}, "validationLevel": level, "validationAction": action}
        };
        let (good, bad) = (|| doc! {"a": 1}, || doc! {"a": 2});
        assert_eq!(verdict(doc! {}, bad(), None), "unchecked");
        assert_eq!(verdict(doc! {"validator": doc! {}}, bad(), None), "unchecked");
        assert_eq!(verdict(doc! {"validator": doc! {"a": 1}}, bad(), None), "refuse");
        assert_eq!(verdict(options("strict", "error"), good(), None), "pass");
        assert_eq!(verdict(options("strict", "error"), bad(), Some(bad())), "refuse");
        assert_eq!(verdict(options("moderate", "error"), bad(), Some(bad())), "pass");
        assert_eq!(verdict(options("moderate", "error"), bad(), Some(good())), "refuse");
        assert_eq!(verdict(options("moderate", "error"), bad(), None), "refuse");
        assert_eq!(verdict(options("off", "error"), bad(), None), "unchecked");
        assert_eq!(verdict(options("strict", "warn"), bad(), None), "warn");
        assert_eq!(verdict(options("strict", "errorAndLog"), bad(), None), "refuse and log");
    }

    #[test]
    fn refused_validators() {
        let near = || doc! {"$near": nestor_model::Value::Array(Default::default())};
        let cases = [
            (doc! {"$where": "true"}, 2),
            (doc! {"$text": doc! {"$search": "x"}}, 2),
            (doc! {"a": near()}, 5_626_500),
            (doc! {"$nope": 1}, 2),
        ];
        for (filter, code) in cases {
            let error = Validator::parse(filter.as_ref()).expect_err("refused");
            assert_eq!(error.code().number(), code, "{filter:?}");
        }
    }
}
