//! `$text` in filters: which have one, and what it means to the index of a collection.

use super::MatchExpr;
use crate::text::{TextSpec, TextTest};
use nestor_model::{Result, bail};
use std::sync::Arc;

impl MatchExpr {
    /// Its `$text`, wherever that is; there is one at most.
    pub fn text(&self) -> Option<&TextTest> {
        match self {
            Self::Text(text) => Some(text),
            Self::And(children) | Self::Or(children) | Self::Nor(children) => children.iter().find_map(Self::text),
            _ => None,
        }
    }

    /// Refuses a `$text`, for filters that nobody looks up in an index.
    ///
    /// Error: 2.
    pub fn without_text(self) -> Result<Self> {
        if self.text().is_some() {
            bail!(BadValue, "$text is not allowed in this context");
        }
        Ok(self)
    }

    /// The same with its `$text` for an index. Errors: those of the statement's interrupt.
    pub fn with_text_index(&self, spec: &Arc<TextSpec>) -> Result<Self> {
        let each = |children: &[Self]| -> Result<Vec<Self>> {
            children.iter().map(|child| child.with_text_index(spec)).collect()
        };
        Ok(match self {
            Self::Text(text) => Self::Text(text.bound(spec)?),
            Self::And(children) => Self::And(each(children)?),
            Self::Or(children) => Self::Or(each(children)?),
            other => other.clone(),
        })
    }
}
