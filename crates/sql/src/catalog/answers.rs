//! What a catalog was asked, so that what was made of the answers is used as long as they are given: plans of prepared statements, the columns of
//! views.
//!
//! The same questions have to get the same answers, of a table the very same version. So asking checks the user's rights each time as well. What
//! was made of facts that are not asked again (numbers of relations, the list of settings) is not kept.

use super::files::Named;
use super::partition::Tree;
use super::routines::Routine;
use super::{Catalog, Kind, Policy, Table};
use crate::types::Type;
use nestor_database::connections::Slot;
use nestor_database::users::Account;
use nestor_model::{Document, Result};
use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A catalog as a statement sees it.
pub trait Current: Catalog {
    /// The state of the catalog, which is another one after each change.
    fn state(&self) -> &Arc<nestor_storage::Catalog>;

    /// Who asks; whose rights change has another account.
    fn account(&self) -> Option<&Arc<Account>>;

    /// A setting of the session by its own name.
    fn own_setting(&self, name: &str) -> Option<&String>;
}

/// What was answered.
#[derive(Debug, Default)]
pub struct Answers {
    tables: Vec<(Option<String>, String, Option<Arc<Table>>)>,
    /// The policies of tables.
    policies: Vec<(Table, Option<Arc<[Policy]>>)>,
    /// What partitions made of tables.
    trees: Vec<(Table, Option<Arc<Tree>>)>,
    settings: Vec<(String, Option<String>)>,
    /// Under what the tables were last found to be the same.
    found: Mutex<Option<Found>>,
}

/// What tables depend on that were all declared: they are the same where it is.
#[derive(Debug)]
struct Found {
    catalog: Weak<nestor_storage::Catalog>,
    account: Option<Weak<Account>>,
    path: Option<String>,
}

impl Found {
    fn now(current: &dyn Current) -> Self {
        Self {
            catalog: Arc::downgrade(current.state()),
            account: current.account().map(Arc::downgrade),
            path: current.own_setting(SEARCH_PATH).cloned(),
        }
    }

    fn holds(&self, current: &dyn Current) -> bool {
        let is_same = match (&self.account, current.account()) {
            (Some(before), Some(now)) => before.as_ptr() == Arc::as_ptr(now),
            (None, None) => true,
            _ => false,
        };
        is_same
            && self.catalog.as_ptr() == Arc::as_ptr(current.state())
            && self.path.as_ref() == current.own_setting(SEARCH_PATH)
    }
}

/// The setting that says in which schemas names are looked for.
const SEARCH_PATH: &str = "search_path";

/// The setting that says whether who is subject to policies is told so instead of seeing fewer rows.
pub const ROW_SECURITY: &str = "row_security";

/// A catalog that writes down what it is asked.
pub struct Asked<'c> {
    catalog: &'c dyn Catalog,
    answers: RefCell<Answers>,
    /// Something was asked that is not asked again.
    once: Cell<bool>,
}

impl<'c> Asked<'c> {
    /// Asks a catalog.
    pub fn new(catalog: &'c dyn Catalog) -> Self {
        Self {
            catalog,
            answers: RefCell::default(),
            once: Cell::new(false),
        }
    }

    /// The answers, and whether they can be the same again.
    pub fn answers(self) -> (Answers, bool) {
        // Literals of a plan were read in the session's zone, and shown in its style.
        self.setting("timezone");
        self.setting("datestyle");
        self.setting("intervalstyle");
        self.setting("bytea_output");
        self.setting("default_text_search_config");
        let answers = self.answers.into_inner();
        let may_hold = !self.once.get() && answers.may_hold();
        (answers, may_hold)
    }
}

impl Catalog for Asked<'_> {
    fn table(&self, schema: Option<&str>, name: &str) -> Result<Option<Arc<Table>>> {
        let table = self.catalog.table(schema, name)?;
        let answer = (schema.map(str::to_owned), name.to_owned(), table.clone());
        self.answers.borrow_mut().tables.push(answer);
        Ok(table)
    }

    fn policies(&self, table: &Table) -> Result<Option<Arc<[Policy]>>> {
        let policies = self.catalog.policies(table)?;
        if table.row_security.is_on {
            self.setting(ROW_SECURITY);
            let answer = (table.clone(), policies.clone());
            self.answers.borrow_mut().policies.push(answer);
        }
        Ok(policies)
    }

    fn tree(&self, table: &Table) -> Result<Option<Arc<Tree>>> {
        let tree = self.catalog.tree(table)?;
        if tree.is_some() {
            self.answers.borrow_mut().trees.push((table.clone(), tree.clone()));
        }
        Ok(tree)
    }

    fn files(&self, named: &Named) -> Result<Arc<Table>> {
        self.once.set(true);
        self.catalog.files(named)
    }

    fn setting(&self, name: &str) -> Option<String> {
        let setting = self.catalog.setting(name);
        let answer = (name.to_owned(), setting.clone());
        self.answers.borrow_mut().settings.push(answer);
        setting
    }

    fn routines(&self, schema: Option<&str>, name: &str) -> Vec<Arc<Routine>> {
        self.once.set(true);
        self.catalog.routines(schema, name)
    }

    fn variable(&self, parameter: usize) -> Option<(String, bool)> {
        self.catalog.variable(parameter)
    }

    fn made_type(&self, schema: Option<&str>, name: &str) -> Option<Type> {
        self.once.set(true);
        self.catalog.made_type(schema, name)
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.once.set(true);
        self.catalog.settings()
    }

    fn connections(&self) -> Vec<(Arc<Slot>, bool)> {
        self.once.set(true);
        self.catalog.connections()
    }

    fn number_of(&self, table: &Table) -> u32 {
        self.catalog.number_of(table)
    }

    fn oid_of(&self, schema: Option<&str>, name: &str) -> u32 {
        self.once.set(true);
        self.catalog.oid_of(schema, name)
    }

    fn texts(&self, function: &str) -> Result<Option<Vec<(i64, String)>>> {
        let texts = self.catalog.texts(function)?;
        // Most functions ask for nothing of the catalog.
        self.once.set(self.once.get() || texts.is_some());
        Ok(texts)
    }

    fn sizes(&self, function: &str, of: Option<&str>) -> Result<Vec<(String, i64)>> {
        self.once.set(true);
        self.catalog.sizes(function, of)
    }

    fn descriptions(&self) -> Result<Vec<(String, String)>> {
        self.once.set(true);
        self.catalog.descriptions()
    }

    fn serial_sequences(&self) -> Result<Document> {
        self.once.set(true);
        self.catalog.serial_sequences()
    }

    fn name_of(&self, oid: u32) -> Option<String> {
        self.once.set(true);
        self.catalog.name_of(oid)
    }
}

impl Answers {
    /// Whether they are given still.
    ///
    /// Errors: those of [`Catalog::table`], that the user may not read a table any more among them.
    pub fn hold(&self, current: &dyn Current) -> Result<bool> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if !found.as_ref().is_some_and(|found| found.holds(current)) {
            *found = None;
            for (schema, name, before) in &self.tables {
                let same = match (before, current.table(schema.as_deref(), name)?) {
                    (Some(before), Some(now)) => Arc::ptr_eq(before, &now),
                    (None, None) => true,
                    _ => false,
                };
                if !same {
                    return Ok(false);
                }
            }
            for (table, before) in &self.policies {
                if current.policies(table)? != *before {
                    return Ok(false);
                }
            }
            for (table, before) in &self.trees {
                let same = match (before, current.tree(table)?) {
                    (Some(before), Some(now)) => Arc::ptr_eq(before, &now),
                    (before, now) => before.is_none() && now.is_none(),
                };
                if !same {
                    return Ok(false);
                }
            }
            // What others are is seen in their documents.
            let mut tables = self.tables.iter().filter_map(|(_, _, table)| table.as_ref());
            if tables.all(|table| table.declared) {
                *found = Some(Found::now(current));
            }
        }
        drop(found);
        // What is no setting by its own name is asked for.
        let is_same = |(name, before): &(String, Option<String>)| match current.own_setting(name) {
            Some(now) => before.as_ref() == Some(now),
            None => current.setting(name) == *before,
        };
        Ok(self.settings.iter().all(is_same))
    }

    /// Whether policies of a table count for who asks.
    pub fn have_policies(&self) -> bool {
        self.policies.iter().any(|(_, policies)| policies.is_some())
    }

    /// Whether they can be the same again: rows in memory and the columns of views of MQL are made anew each time.
    fn may_hold(&self) -> bool {
        let mut tables = self.tables.iter().filter_map(|(_, _, table)| table.as_ref());
        tables.all(|table| matches!(table.kind, Kind::Collection(_) | Kind::Query(_)))
    }
}

/// Where what was made of answers is kept: by a prepared statement, by a view. Clones share it.
#[derive(Debug)]
pub struct Kept<T>(Arc<Mutex<Option<Arc<T>>>>);

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Clone for Kept<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Kept<T> {
    /// What is kept.
    pub fn get(&self) -> Option<Arc<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps something, or nothing.
    pub fn set(&self, kept: Option<Arc<T>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = kept;
    }
}
