//! What a statement knows of its session.

use super::deferred::Deferred;
use super::numbers::Got;
use super::procedures::{Procedures, Shared};
use crate::catalog::system::OfSession;
use crate::catalog::{Table, schemas};
use crate::plan::switches::Switches;
use nestor_database::Database;
use nestor_database::rights::Action;
use nestor_database::statement::Statement;
use nestor_database::users::{Account, RoleName};
use nestor_model::namespace::ADMIN;
use nestor_model::{Namespace, Result, bail};
use nestor_storage::{Lsn, View};
use sqlparser::ast::OnCommit;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What a statement knows of its session.
#[derive(Clone, Debug, Default)]
pub struct SessionFacts {
    /// The user, or the role that the session acts as.
    pub user: String,
    /// The user of the session, whatever role it acts as.
    pub session_user: String,
    /// The database.
    pub database: String,
    /// Number of the connection.
    pub pid: i32,
    /// Its account; `None` where nobody has to log in.
    pub account: Option<Arc<Account>>,
    /// Settings that clients read.
    pub settings: BTreeMap<String, String>,
    /// When the first message of the statement came, if that was before it runs.
    pub since: Option<Instant>,
    /// Those that the session began with in another way than all sessions do: they are what RESET gives back.
    pub begun: Arc<BTreeMap<String, String>>,
    /// What they say of plans.
    pub switches: Switches,
    /// The numbers that it got from sequences.
    pub got: Arc<Mutex<Got>>,
    /// Its temporary tables.
    pub temporary: Arc<Temporary>,
    /// The foreign keys of its transaction that wait.
    pub deferred: Arc<Deferred>,
    /// Runs its routines.
    pub procedures: Option<&'static dyn Procedures>,
    /// What these share.
    pub routines: Arc<Shared>,
    /// Its prepared statements and cursors, of statements that look at them.
    pub named: Arc<OfSession>,
    /// Tables of the rows of a statement, which the function of a trigger finds before all others.
    pub transition: Arc<[Arc<Table>]>,
    /// Its commits, where whoever sends its answers waits for them; else its statements do.
    pub commits: Option<Arc<Commits>>,
}

/// Commits of a session whose answers are sent once they are on disk.
#[derive(Debug, Default)]
pub struct Commits(AtomicU64);

impl Commits {
    fn note(&self, lsn: Lsn) {
        self.0.fetch_max(lsn.0, Ordering::Relaxed);
    }

    /// Waits for all of them on this thread.
    ///
    /// Errors: that it is unknown whether they will survive.
    pub fn wait(&self, database: &Database) -> Result<()> {
        self.last().map_or(Ok(()), |lsn| database.wait_durable(lsn))
    }

    /// The last of them.
    pub fn last(&self) -> Option<Lsn> {
        Some(self.0.load(Ordering::Relaxed)).filter(|last| *last > 0).map(Lsn)
    }
}

/// The setting that says whether commits wait until they are on disk.
pub const SYNCHRONOUS: &str = "synchronous_commit";

impl SessionFacts {
    /// Has a commit be on disk before anybody is told of it, unless the session does not want that: then a failure may lose the last moments,
    /// whole commits of them. Waits for it, if [`commits`](Self::commits) does not.
    ///
    /// Errors: 91 and others when it cannot be written.
    pub fn wait(&self, statement: &Statement<'_>, last: Option<Lsn>) -> Result<()> {
        let Some(lsn) = last.filter(|_| self.settings.get(SYNCHRONOUS).is_none_or(|on| on != "off")) else {
            return Ok(());
        };
        // In a set of members a commit may be refused, which is the statement's error.
        match self.commits.as_ref().filter(|_| !statement.database.engine.is_member()) {
            Some(commits) => commits.note(lsn),
            None => statement.database.wait_durable(lsn)?,
        }
        Ok(())
    }

    /// Waits for commits that answers would wait for.
    ///
    /// Errors: as of [`wait`](Self::wait).
    pub fn settle(&self, database: &Database) -> Result<()> {
        self.commits.as_ref().map_or(Ok(()), |commits| commits.wait(database))
    }

    /// The schemas of `search_path`.
    pub fn path(&self) -> Vec<String> {
        let setting = self.settings.get("search_path").map_or(schemas::PUBLIC, String::as_str);
        let mut path = schemas::path(setting, &self.user);
        for schema in &mut path {
            if schema == schemas::TEMPORARY {
                *schema = self.temporary_schema();
            }
        }
        path
    }

    /// The schemas in which names of relations are looked for that say none: temporary ones come first unless `search_path` has them.
    pub fn path_of_relations(&self) -> Vec<String> {
        let mut path = self.path();
        if self.temporary.is_used() {
            let own = self.temporary_schema();
            if !path.contains(&own) {
                path.insert(0, own);
            }
        }
        path
    }

    /// The schema of its temporary tables, once there are some.
    pub fn temporary_schema(&self) -> String {
        format!("{}{}", schemas::TEMPORARY_OF, self.pid)
    }

    /// What the name of a relation means. There may be nothing there.
    pub fn candidates(&self, view: &dyn View, (schema, name): (Option<&str>, &str)) -> Vec<Namespace> {
        let db = &self.database;
        if schema == Some(schemas::TEMPORARY) {
            let own = schemas::collection(&self.temporary_schema(), name);
            return vec![Namespace::new(db.as_str(), own)];
        }
        schemas::candidates(view, db, &self.path_of_relations(), (schema, name))
    }

    /// Whether the user may do something with a collection. With its own temporary ones a session may do anything, with those of others
    /// nothing.
    pub fn may(&self, ns: &Namespace, action: Action) -> bool {
        if let Some((schema, _)) = ns.coll.split_once('.')
            && schemas::is_temporary(schema)
        {
            return *ns.db == *self.database && self.temporary.is_used() && *schema == *self.temporary_schema();
        }
        let account = self.account.as_ref();
        account.is_none_or(|account| account.grants.on_collection(ns).has(action))
    }

    /// Whether its transaction, or the next statement that is in none, changes nothing but what is temporary.
    pub fn is_read_only(&self) -> bool {
        self.settings.get("transaction_read_only").is_some_and(|on| on == "on")
    }

    /// Whether the user may do what only superusers of PostgreSQL may.
    pub fn is_superuser(&self) -> bool {
        let account = self.account.as_ref();
        account.is_none_or(|account| account.all_roles.contains(&RoleName::new("root", ADMIN)))
    }

    /// Refuses what the user may not do with a collection.
    ///
    /// Errors: 13.
    pub fn check_right(&self, ns: &Namespace, action: Action) -> Result<()> {
        match self.may(ns, action) {
            true => Ok(()),
            false => bail!(Unauthorized, "permission denied for table {}", ns.coll),
        }
    }
}

/// What a session has of temporary tables.
#[derive(Debug, Default)]
pub struct Temporary {
    /// There are some, or were.
    used: AtomicBool,
    /// What becomes of some of them at each commit: with `true` they go, otherwise their rows do.
    at_commit: Mutex<Vec<(Namespace, bool)>>,
}

impl Temporary {
    /// Whether the session has had any.
    pub fn is_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether something becomes of them at a commit.
    pub fn acts_at_commit(&self) -> bool {
        self.is_used() && !self.at_commit().is_empty()
    }

    /// There are some from now on.
    pub fn use_it(&self) {
        self.used.store(true, Ordering::Relaxed);
    }

    /// What becomes of some of them at each commit: with `true` they go, otherwise their rows do.
    pub fn at_commit(&self) -> MutexGuard<'_, Vec<(Namespace, bool)>> {
        self.at_commit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what becomes of a table at each commit.
    pub fn note(&self, ns: &Namespace, on_commit: Option<&OnCommit>) {
        let mut all = self.at_commit();
        all.retain(|(own, _)| own != ns);
        match on_commit {
            None | Some(OnCommit::PreserveRows) => {}
            Some(OnCommit::DeleteRows) => all.push((ns.clone(), false)),
            Some(OnCommit::Drop) => all.push((ns.clone(), true)),
        }
    }
}
