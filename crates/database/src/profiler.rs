//! The profiler and the slow-query log: which operations are recorded, and where.
//!
//! One number stands between operations and all of this: how long an operation has to take to be of interest to
//! anybody. What is recorded goes to `system.profile` ([`crate::system_profile`]) and to the log.
//!
//! Source: manual, "Database Profiler", "Database Profiler Output", "profile".

use crate::document_filter::DocumentFilter;
use nestor_model::Str;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// The settings that hold until a command changes them.
#[derive(Clone, Copy, Debug)]
pub struct AtStart {
    /// Operations that take longer are slow, in milliseconds.
    pub slow_ms: i32,
    /// The part of slow operations that is recorded, 0 to 1.
    pub sample_rate: f64,
    /// The level of databases that set none.
    pub level: u8,
}

impl Default for AtStart {
    fn default() -> Self {
        Self {
            slow_ms: 100,
            sample_rate: 1.0,
            level: 0,
        }
    }
}

/// The settings of one database.
#[derive(Clone, Debug, Default)]
pub struct DatabaseSettings {
    /// 0 records nothing, 1 what is slow or what the filter names, 2 everything.
    pub level: u8,
    /// Says what is recorded and logged in place of slowness.
    pub filter: Option<Arc<DocumentFilter>>,
}

/// The settings, as an operation in one database sees them.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Operations that take longer are slow, in milliseconds.
    pub slow_ms: i32,
    /// The part of slow operations that is recorded, 0 to 1.
    pub sample_rate: f64,
    /// The settings of the database.
    pub database: DatabaseSettings,
}

#[derive(Debug)]
struct All {
    slow_ms: i32,
    sample_rate: f64,
    /// Of databases for which nothing was set.
    default_level: u8,
    databases: HashMap<Str, DatabaseSettings>,
}

/// The settings of all databases. They last as long as the process, as MongoDB's do.
#[derive(Debug)]
pub struct Profiler {
    /// Operations that took up to this many microseconds are of no interest in any database.
    uninteresting_us: AtomicU64,
    /// Some database is profiled.
    on: AtomicBool,
    all: RwLock<All>,
}

impl Profiler {
    /// The settings at the start.
    pub fn new(start: AtStart) -> Self {
        let profiler = Self {
            uninteresting_us: AtomicU64::new(0),
            on: AtomicBool::new(false),
            all: RwLock::new(All {
                slow_ms: start.slow_ms,
                sample_rate: start.sample_rate,
                default_level: start.level,
                databases: HashMap::new(),
            }),
        };
        profiler.change(|_| ());
        profiler
    }

    /// Whether an operation that took this long may be of interest. Costs one load; for almost every operation the answer
    /// is no.
    #[inline]
    pub fn concerns(&self, took: Duration) -> bool {
        took.as_micros() > u128::from(self.uninteresting_us.load(Ordering::Relaxed))
    }

    /// Whether any database is profiled.
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// The level of a database.
    pub fn level(&self, db: &str) -> u8 {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        all.databases.get(db).map_or(all.default_level, |own| own.level)
    }

    /// The settings of a database.
    pub fn settings(&self, db: &str) -> Settings {
        self.all.read().unwrap_or_else(PoisonError::into_inner).of(db)
    }

    /// Sets the level of a database, and what else is given.
    pub fn set(&self, db: &str, new: Settings) {
        self.change(|all| {
            all.slow_ms = new.slow_ms;
            all.sample_rate = new.sample_rate;
            all.databases.insert(db.into(), new.database);
        });
    }

    /// Forgets what was set for a database that is dropped.
    pub fn forget(&self, db: &str) {
        if self
            .all
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .databases
            .contains_key(db)
        {
            self.change(|all| drop(all.databases.remove(db)));
        }
    }

    fn change(&self, change: impl FnOnce(&mut All)) {
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut all);
        let levels = || all.databases.values().map(|own| own.level).chain([all.default_level]);
        let always = levels().any(|level| level == 2) || all.databases.values().any(|own| own.filter.is_some());
        let slow_us = u64::try_from(all.slow_ms).unwrap_or(0) * 1000;
        self.uninteresting_us
            .store(if always { 0 } else { slow_us }, Ordering::Relaxed);
        self.on.store(levels().any(|level| level > 0), Ordering::Relaxed);
    }
}

impl Default for Profiler {
    fn default() -> Self {
        Self::new(AtStart::default())
    }
}

impl All {
    fn of(&self, db: &str) -> Settings {
        let database = self.databases.get(db).cloned();
        Settings {
            slow_ms: self.slow_ms,
            sample_rate: self.sample_rate,
            database: database.unwrap_or(DatabaseSettings {
                level: self.default_level,
                filter: None,
            }),
        }
    }
}

impl Settings {
    /// True when an operation that took this long is slow.
    pub fn is_slow(&self, took: Duration) -> bool {
        i64::try_from(took.as_micros()).unwrap_or(i64::MAX) > i64::from(self.slow_ms) * 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::{Document, doc};

    fn micros(n: u64) -> Duration {
        Duration::from_micros(n)
    }

    #[test]
    fn only_slow_operations_are_of_interest_until_somebody_wants_more() {
        let profiler = Profiler::default();
        let set = |level, filter: Option<Document>| {
            let mut settings = profiler.settings("a");
            settings.database.level = level;
            settings.database.filter =
                filter.map(|f| Arc::new(DocumentFilter::parse(f.as_ref()).expect("a good filter")));
            profiler.set("a", settings);
        };
        assert!(!profiler.concerns(micros(100_000)) && profiler.concerns(micros(100_001)));
        assert!(!profiler.is_on());
        set(1, None);
        assert!(!profiler.concerns(micros(100_000)) && profiler.is_on());
        assert_eq!((profiler.level("a"), profiler.level("b")), (1, 0));
        set(2, None);
        assert!(profiler.concerns(micros(1)));
        set(0, Some(doc! { "op": "query" }));
        assert!(profiler.concerns(micros(1)) && !profiler.is_on());
        profiler.forget("a");
        assert!(!profiler.concerns(micros(100_000)));
    }

    #[test]
    fn slowms_below_zero_makes_everything_slow() {
        let slower_than = |slow_ms| {
            Profiler::new(AtStart {
                slow_ms,
                ..AtStart::default()
            })
        };
        assert!(slower_than(-1).concerns(micros(1)));
        assert!(slower_than(-1).settings("a").is_slow(micros(0)));
        assert!(!slower_than(0).settings("a").is_slow(micros(0)));
    }

    #[test]
    fn a_default_level_is_that_of_every_database() {
        let profiler = Profiler::new(AtStart {
            level: 1,
            ..AtStart::default()
        });
        assert_eq!(profiler.level("any"), 1);
        let mut settings = profiler.settings("any");
        settings.database.level = 0;
        profiler.set("any", settings);
        assert_eq!((profiler.level("any"), profiler.level("other")), (0, 1));
        assert!(profiler.is_on());
    }
}
