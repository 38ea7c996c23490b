//! What `pg_prepared_statements` and `pg_cursors` tell of a session.

use super::Session;
use crate::catalog::system::{Named, OfSession};
use nestor_database::clock;
use std::sync::Arc;

/// How a prepared statement was made.
pub(super) struct Made {
    text: String,
    at_ms: i64,
    by_sql: bool,
}

/// Statements that are remembered beyond those that there are.
const GONE_MAX: usize = 100;

/// Whether a name stands in the text of a statement.
pub(super) fn names(text: &str, name: &str) -> bool {
    let mut parts = text.as_bytes().windows(name.len());
    parts.any(|part| part.eq_ignore_ascii_case(name.as_bytes()))
}

/// Whether the text of a statement names what lists them.
pub(super) fn is_asked_for(text: &str) -> bool {
    names(text, "pg_prepared_statements") || names(text, "pg_cursors")
}

impl Session {
    /// Remembers how a prepared statement was made.
    pub(super) fn note_prepared(&mut self, name: &str, text: &str, by_sql: bool) {
        if self.made.len() >= self.prepared.len() + GONE_MAX {
            let prepared = &self.prepared;
            self.made.retain(|name, _| prepared.contains_key(name));
        }
        let made = Made {
            text: text.to_owned(),
            at_ms: clock::now_ms(),
            by_sql,
        };
        self.made.insert(name.to_owned(), made);
    }

    /// Lets a statement that looks at them know the prepared statements and the cursors.
    pub(super) fn list_named(&mut self) {
        let prepared = self.prepared.iter().filter(|(name, _)| !name.is_empty());
        let prepared = prepared.filter_map(|(name, own)| {
            let made = self.made.get(name)?;
            Some(Named {
                name: name.clone(),
                text: made.text.clone(),
                made_ms: made.at_ms,
                types: own.types.clone(),
                by_sql: made.by_sql,
                holds: false,
                is_binary: false,
                scrolls: false,
            })
        });
        let cursors = self.portals.iter().filter_map(|(name, portal)| {
            let cursor = portal.cursor.as_ref()?;
            Some(Named {
                name: name.clone(),
                text: portal.statement.text.to_string(),
                made_ms: cursor.made_ms,
                types: Vec::new(),
                by_sql: true,
                holds: cursor.holds,
                is_binary: !portal.formats.is_empty(),
                scrolls: cursor.scrolls,
            })
        });
        let mut all = OfSession {
            prepared: prepared.collect(),
            cursors: cursors.collect(),
        };
        all.prepared.sort_by_key(|one| one.made_ms);
        all.cursors.sort_by_key(|one| one.made_ms);
        self.facts.named = Arc::new(all);
    }
}
