//! Which collections statements of a transaction name. A statement that comes again names the same ones, as long as the catalog is the same.

use crate::bind::entry;
use crate::types::names::folded;
use nestor_storage::catalog::Catalog;
use nestor_storage::{CollectionId, View};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Statements of which this is kept.
const KEPT_MAX: usize = 64;

/// Bytes of such a statement, at most.
const TEXT_MAX: usize = 2000;

/// What the statements of a session name.
#[derive(Default)]
pub(super) struct Names {
    kept: HashMap<Box<str>, Arc<Named>>,
}

/// What one statement names.
pub(super) struct Named {
    words: HashSet<String>,
    /// The collections, in the catalog in which they were looked for last.
    last: Mutex<Option<(Weak<Catalog>, Vec<CollectionId>)>>,
}

impl Names {
    /// What a statement names.
    pub(super) fn of(&mut self, text: &str) -> Arc<Named> {
        if let Some(known) = self.kept.get(text) {
            return known.clone();
        }
        let named = Arc::new(Named {
            words: words(text),
            last: Mutex::default(),
        });
        if text.len() <= TEXT_MAX {
            if self.kept.len() >= KEPT_MAX {
                self.kept.clear();
            }
            self.kept.insert(text.into(), named.clone());
        }
        named
    }
}

impl Named {
    /// The collections that the statement may use: those it names, and all of the database if one of them is a view. To name more than are
    /// used keeps others from changing their catalog entries a while longer, and nothing else.
    pub(super) fn collections(&self, view: &dyn View, db: &str) -> Vec<CollectionId> {
        let catalog = view.catalog();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((known, ids)) if std::ptr::eq(known.as_ptr(), Arc::as_ptr(catalog)) => ids.clone(),
            _ => {
                let ids = used(catalog, db, &self.words);
                *last = Some((Arc::downgrade(catalog), ids.clone()));
                ids
            }
        }
    }
}

/// The names that stand in a statement.
fn words(text: &str) -> HashSet<String> {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text)
        .tokenize()
        .unwrap_or_default();
    let words = tokens.into_iter().filter_map(|token| match token {
        Token::Word(word) => Some(folded(&word.value, word.quote_style)),
        _ => None,
    });
    words.collect()
}

fn used(catalog: &Catalog, db: &str, words: &HashSet<String>) -> Vec<CollectionId> {
    let named: Vec<_> = catalog
        .databases()
        .filter(|database| &**database.name() == db || words.contains(&**database.name()))
        .flat_map(|database| database.collections())
        .filter(|collection| {
            let name = &*collection.ns.coll;
            // Behind the name of a schema.
            words.contains(name) || name.split_once('.').is_some_and(|(_, name)| words.contains(name))
        })
        .collect();
    let has_view = named
        .iter()
        .any(|collection| collection.is_view() || entry::materialized_of(collection).is_some());
    let mut ids: Vec<CollectionId> = match has_view {
        false => named.iter().map(|collection| collection.id).collect(),
        true => catalog
            .databases()
            .filter(|database| &**database.name() == db || words.contains(&**database.name()))
            .flat_map(|database| database.collections())
            .map(|collection| collection.id)
            .collect(),
    };
    ids.sort_unstable();
    ids.dedup();
    ids
}
