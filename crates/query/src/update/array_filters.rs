//! `arrayFilters`: conditions that `$[identifier]` refers to by the first component of their paths.

use super::Predicate;
use crate::env::Scope;
use nestor_model::{Result, Str, ValueRef, bail};

/// The array filters of one update, in the order given.
#[derive(Debug, Default)]
pub(crate) struct ArrayFilters {
    filters: Vec<(Str, Predicate)>,
}

impl ArrayFilters {
    /// Errors: 9 (FailedToParse) for filters without or with more than one identifier and for two
    /// filters of one identifier; 2 (BadValue) for malformed identifiers; those of match expressions;
    /// 14 (TypeMismatch) for elements that are no documents.
    pub fn parse<'a>(filters: impl IntoIterator<Item = ValueRef<'a>>, scope: &mut Scope) -> Result<Self> {
        let mut parsed = Self::default();
        for filter in filters {
            let ValueRef::Document(doc) = filter else {
                bail!(
                    TypeMismatch,
                    "array filter must be an object, found {}",
                    filter.bson_type().alias()
                );
            };
            let (name, predicate) = Predicate::for_array_filter(doc, scope)?;
            if parsed.filters.iter().any(|(n, _)| *n == name) {
                bail!(
                    FailedToParse,
                    "Found multiple array filters with the same top-level field name {name}"
                );
            }
            parsed.filters.push((name, predicate));
        }
        Ok(parsed)
    }

    pub fn len(&self) -> usize {
        self.filters.len()
    }

    pub fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }

    pub fn name(&self, number: usize) -> &str {
        &self.filters[number].0
    }

    /// Which filter an identifier means. Errors: 2 (BadValue).
    pub fn number(&self, id: &str) -> Result<usize> {
        match self.filters.iter().position(|(name, _)| name == id) {
            Some(found) => Ok(found),
            None => bail!(BadValue, "No array filter found for identifier '{id}'"),
        }
    }

    pub fn into_predicates(self) -> Vec<Predicate> {
        self.filters.into_iter().map(|(_, predicate)| predicate).collect()
    }
}

/// An identifier is a lower-case letter followed by letters and digits.
pub(crate) fn check_identifier(name: &str) -> Result<()> {
    let mut bytes = name.bytes();
    let first = bytes.next().is_some_and(|b| b.is_ascii_lowercase());
    if first && bytes.all(|b| b.is_ascii_alphanumeric()) {
        return Ok(());
    }
    bail!(
        BadValue,
        "Error parsing array filter :: caused by :: The top-level field name must be an alphanumeric string beginning with a lowercase letter, found '{name}'"
    );
}
