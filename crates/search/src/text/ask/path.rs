//! Paths of fields.

use crate::operand::{Operand, refuse};
use nestor_model::{Result, ValueRef};

/// Fields that are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::text) enum AskedPath {
    Field(String),
    /// Fields whose paths match a pattern with `*`.
    Wildcard(String),
    /// A field as one of its `multi` analyzers has it.
    Multi {
        path: String,
        multi: String,
    },
}

impl AskedPath {
    /// One or several paths of any form.
    pub(in crate::text) fn read(spec: &Operand<'_>, field: &str) -> Result<Vec<Self>> {
        let name = spec.name_of(field);
        match spec.required(field)? {
            ValueRef::Array(items) if items.is_empty() => refuse!("\"{name}\" cannot be empty"),
            ValueRef::Array(items) => items.iter().map(|item| Self::one(&name, item)).collect(),
            value => Ok(vec![Self::one(&name, value)?]),
        }
    }

    fn one(name: &str, value: ValueRef<'_>) -> Result<Self> {
        let doc = match value {
            ValueRef::String(path) => return Ok(Self::Field(path.to_owned())),
            ValueRef::Document(doc) => doc,
            _ => refuse!("\"{name}\" must be a string, a document or an array of them"),
        };
        let spec = Operand::new(name, doc);
        spec.only(&["value", "multi", "wildcard"])?;
        let multi = spec.string("multi")?.map(str::to_owned);
        match (spec.string("value")?, spec.string("wildcard")?, multi) {
            (Some(path), None, None) => Ok(Self::Field(path.to_owned())),
            (Some(path), None, Some(multi)) => Ok(Self::Multi {
                path: path.to_owned(),
                multi,
            }),
            (None, Some(pattern), None) if pattern.contains("**") => {
                refuse!("\"{}\" cannot have adjacent wildcards", spec.name_of("wildcard"))
            }
            (None, Some(pattern), None) => Ok(Self::Wildcard(pattern.to_owned())),
            _ => refuse!("\"{name}\" must have value, with or without multi, or else wildcard"),
        }
    }

    /// Whether the path of a field matches a pattern in which `*` stands for any characters.
    pub(in crate::text) fn matches(pattern: &str, path: &str) -> bool {
        let mut pieces = pattern.split('*');
        let Some(mut rest) = path.strip_prefix(pieces.next().unwrap_or_default()) else {
            return false;
        };
        let mut pieces = pieces.peekable();
        if pieces.peek().is_none() {
            return rest.is_empty();
        }
        while let Some(piece) = pieces.next() {
            if pieces.peek().is_none() {
                return rest.ends_with(piece);
            }
            match rest.find(piece) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
        false
    }
}
