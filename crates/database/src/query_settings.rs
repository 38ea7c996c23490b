//! Query settings: what is set for all queries of a shape.
//!
//! Queries look here only while there are any.
//!
//! Source: manual, "setQuerySettings", "removeQuerySettings", "$querySettings".

use crate::lock;
use crate::shape::Shape;
use nestor_model::{Document, Namespace, Result, bail, doc};
use nestor_planner::FindQuery;
use nestor_planner::find::AllowedIndex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Settings by the hashes of their shapes.
pub type Entries = BTreeMap<String, Arc<Entry>>;

/// The indexes that queries on one collection may use.
#[derive(Clone, Debug)]
pub struct IndexHint {
    /// The collection.
    pub ns: Namespace,
    /// The indexes that may be used.
    pub indexes: Vec<AllowedIndex>,
    /// A scan of the collection will do: forwards, or backwards.
    pub natural: Option<bool>,
}

/// The settings of one query shape.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Hash of the shape.
    pub hash: String,
    /// The shape.
    pub shape: Document,
    /// A query of that shape, with its `$db`.
    pub representative: Document,
    /// As it was set.
    pub settings: Document,
    /// The namespace that the queries name.
    pub ns: Namespace,
    /// Such queries are refused.
    pub reject: bool,
    /// The indexes that may be used.
    pub hints: Vec<IndexHint>,
}

impl Entry {
    /// True when nothing is different from what holds for queries without settings. A comment changes nothing.
    pub fn is_default(&self) -> bool {
        self.hints.is_empty() && !self.reject && self.settings.get("queryFramework").is_none()
    }

    /// Error: 411 when such queries are to be refused.
    pub fn check_rejection(&self) -> Result<()> {
        if self.reject {
            bail!(QueryRejectedBySettings, "Query rejected by admin query settings");
        }
        Ok(())
    }

    /// Makes a query on `ns` use what is set for that collection, and not its own hint. False when nothing is.
    pub fn restrict(&self, ns: &Namespace, query: &mut FindQuery) -> bool {
        let Some(hint) = self.hints.iter().find(|hint| hint.ns == *ns) else {
            return false;
        };
        query.hint = None;
        query.natural = hint.natural.filter(|_| hint.indexes.is_empty());
        query.allowed = (!hint.indexes.is_empty()).then(|| hint.indexes.clone());
        query.any_otherwise = true;
        true
    }

    /// As the commands and `$querySettings` show it.
    pub fn to_document(&self) -> Document {
        doc! {
            "queryShapeHash": self.hash.as_str(),
            "settings": self.settings.clone(),
            "representativeQuery": self.representative.clone(),
        }
    }
}

/// All settings.
#[derive(Debug, Default)]
pub struct QuerySettings {
    any: AtomicBool,
    by_hash: RwLock<Entries>,
    /// Held while settings are changed and stored.
    changing: Mutex<()>,
}

impl QuerySettings {
    /// Sets all of them.
    pub fn replace(&self, by_hash: Entries) {
        let mut held = self.by_hash.write().unwrap_or_else(PoisonError::into_inner);
        self.any.store(!by_hash.is_empty(), Ordering::Release);
        *held = by_hash;
    }

    /// All of them, by hash.
    pub fn all(&self) -> Entries {
        self.by_hash.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The settings for queries of that shape, if there are any. Costs one load while there are no settings at all.
    pub fn of(&self, shape: &Shape<'_>) -> Option<Arc<Entry>> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        let by_hash = self.by_hash.read().unwrap_or_else(PoisonError::into_inner);
        if !by_hash.values().any(|entry| entry.ns == shape.ns) {
            return None;
        }
        by_hash.get(&shape.hash()).cloned()
    }

    /// Changes the settings: `store` keeps what `change` makes of them, then queries see it.
    ///
    /// Errors: those of both.
    pub fn change<T>(
        &self,
        change: impl FnOnce(&mut Entries) -> Result<T>,
        store: impl FnOnce(&Entries) -> Result<()>,
    ) -> Result<T> {
        let _changing = lock(&self.changing);
        let mut entries = self.all();
        let out = change(&mut entries)?;
        store(&entries)?;
        self.replace(entries);
        Ok(out)
    }
}
