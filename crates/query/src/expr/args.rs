//! Helpers for operators: named arguments, and reading numbers and strings from values.

use super::Expr;
use crate::env::Scope;
use nestor_model::number::whole_number;
use nestor_model::{Error, ErrorCode, Result, ValueRef};

/// The arguments of an operator that takes an object. `fields` are the names with the code that says
/// a required one is missing.
pub(crate) struct Named<'n> {
    pub not_object: i32,
    pub unknown: i32,
    pub fields: &'n [(&'static str, Option<i32>)],
}

impl Named<'_> {
    /// The raw argument values in the order of `fields`; missing where not given.
    pub(crate) fn split<'v>(&self, op: &str, value: ValueRef<'v>) -> Result<Vec<ValueRef<'v>>> {
        let ValueRef::Document(doc) = value else {
            return Err(Error::location(
                self.not_object,
                format!(
                    "{op} only supports an object as its argument, not {}",
                    value.bson_type().alias()
                ),
            ));
        };
        let mut found = vec![ValueRef::Missing; self.fields.len()];
        for (name, value) in doc {
            match self.fields.iter().position(|(n, _)| *n == name) {
                Some(at) => found[at] = value,
                None => {
                    return Err(Error::location(
                        self.unknown,
                        format!("{op} found an unknown argument: {name}"),
                    ));
                }
            }
        }
        for ((name, missing), value) in self.fields.iter().zip(&found) {
            if let (Some(code), ValueRef::Missing) = (missing, value) {
                return Err(Error::location(
                    *code,
                    format!("{op} requires '{name}' to be specified"),
                ));
            }
        }
        Ok(found)
    }

    /// The argument expressions in the order of `fields`; absent where not given.
    pub(crate) fn parse(&self, op: &str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Box<[Expr]>> {
        self.split(op, value)?
            .into_iter()
            .map(|v| parse_optional(v, scope))
            .collect()
    }
}

/// Parses an argument; [`Expr::ABSENT`] for one that was not given.
pub(crate) fn parse_optional(value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    if value.is_missing() {
        return Ok(Expr::ABSENT);
    }
    Expr::parse(value, scope)
}

/// A whole number in the range of `i32`.
pub(crate) fn whole_i32(value: ValueRef<'_>) -> Option<i32> {
    whole_number(value).and_then(|v| i32::try_from(v).ok())
}

/// An error with a code by number.
pub(crate) fn error(code: i32, message: impl Into<String>) -> Error {
    Error::new(ErrorCode::location(code), message)
}
