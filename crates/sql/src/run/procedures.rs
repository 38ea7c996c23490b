//! Routines that are no queries: blocks, and bodies of several statements. They run statements of their own while a statement runs.
//!
//! Whoever computes rows that may call such a routine reads a copy of the state ([`nestor_storage::WriteSet::state`]), so that the transaction is free for the
//! routine's statements, and says so by [`Reading::calls`]; where nobody does a call is refused. A statement that writes lends its write set
//! ([`Statement::lend`]) and is done again as a whole when one of the routine's statements meets a conflict. All of this
//! takes a transaction: outside of one a statement asks for it ([`crate::asked::want_transaction`]) before it does anything.

use super::planned::Field;
use super::tables::{Reading, SessionFacts};
use crate::bind::entry;
use crate::catalog::routines::Routine;
use crate::catalog::{Column, Table, schemas};
use crate::error::{error, fail, unsupported};
use crate::parse::trigger::Event;
use nestor_database::statement::Statement;
use nestor_model::{Result, Value};
use nestor_planner::relation::Tuple;
use std::any::Any;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Routines that run within each other.
const NESTED_MAX: usize = 256;
/// Bytes of the thread's stack that a statement may take before it calls another routine. What the routine's statements take is not more than what
/// any statement may, which has to be left.
const STACK_BYTES_MAX: usize = 12 << 20;
/// Statements that a session keeps for its routines.
const KEPT_MAX: usize = 1000;

/// What a routine gives.
#[derive(Debug)]
pub enum Returned {
    /// A value.
    Value(Value),
    /// Rows.
    Rows(Vec<Tuple>),
}

/// A row for which a trigger fires, or a statement.
pub struct Fired<'f> {
    /// The trigger's name.
    pub name: &'f str,
    /// The schema of the function that is called, if it is known.
    pub schema: Option<&'f str>,
    /// The function.
    pub function: &'f str,
    /// What has to hold.
    pub condition: Option<&'f str>,
    /// Its arguments.
    pub args: &'f [String],
    /// The table.
    pub table: &'f Table,
    /// The number of the table.
    pub oid: u32,
    /// What happens.
    pub event: Event,
    /// `BEFORE`, `AFTER` or `INSTEAD OF`.
    pub when: &'static str,
    /// It is called for a row.
    pub is_row: bool,
    /// What the row was.
    pub old: Option<Vec<Value>>,
    /// What it becomes.
    pub new: Option<Vec<Value>>,
    /// Tables of all rows of the statement, which the function reads by their names.
    pub tables: Arc<[Arc<Table>]>,
}

impl Fired<'_> {
    /// The columns that rows of the table have for triggers.
    pub fn columns(&self) -> &[Column] {
        &self.table.columns
    }
}

/// A cursor that a routine has left open.
pub struct Handed {
    /// Its name.
    pub name: String,
    /// The columns of its rows.
    pub fields: Vec<Field>,
    /// The rows.
    pub rows: Vec<Tuple>,
    /// The row that it stands on, from 1; 0 before them.
    pub at: usize,
}

/// What becomes of a row by a trigger.
#[derive(Debug)]
pub enum Fate {
    /// It stays what it is.
    Same,
    /// It becomes this one.
    Row(Vec<Value>),
    /// Nothing is done with it.
    Gone,
}

/// Runs routines. The session knows how; who computes rows knows it by this.
pub trait Procedures: std::fmt::Debug + Sync {
    /// Calls a routine.
    ///
    /// Errors: those of its statements; 54001 when routines run within each other too deep.
    fn call(
        &self,
        statement: &Statement<'_>,
        session: &SessionFacts,
        routine: &Arc<Routine>,
        args: Vec<Value>,
    ) -> Result<Returned>;

    /// Calls the function of a trigger if its condition holds.
    ///
    /// Errors: those of [`Procedures::call`]; 42804 for what is no row of the table.
    fn fire(&self, statement: &Statement<'_>, session: &SessionFacts, fired: &Fired<'_>) -> Result<Fate>;
}

/// A statement that a session keeps, by its text.
type Kept = HashMap<String, Vec<Arc<dyn Any + Send + Sync>>>;

thread_local! {
    /// Where on the stack the statement began.
    static BEGIN: Cell<usize> = const { Cell::new(0) };
}

/// About where the stack is.
#[inline(never)]
fn place() -> usize {
    let here = 0u8;
    std::ptr::from_ref(std::hint::black_box(&here)).addr()
}

/// A statement begins here.
pub fn begin() {
    BEGIN.set(place());
}

/// Bytes of the stack that the statement has taken so far.
fn stack_taken() -> usize {
    BEGIN.get().saturating_sub(place())
}

/// What the routines of a session share.
#[derive(Default)]
pub struct Shared {
    depth: AtomicUsize,
    kept: Mutex<Kept>,
    variables: Mutex<Vec<Option<String>>>,
    prefers_columns: AtomicUsize,
    portals: AtomicUsize,
    handed: Mutex<Vec<Handed>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}

/// A routine that runs; the one around it goes on when this is dropped.
pub struct Deeper<'s>(&'s Shared);

impl Drop for Deeper<'_> {
    fn drop(&mut self) {
        self.0.depth.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Shared {
    /// One more routine runs.
    ///
    /// Errors: 54001.
    pub fn deeper(&self) -> Result<Deeper<'_>> {
        if self.depth.load(Ordering::Relaxed) >= NESTED_MAX || stack_taken() > STACK_BYTES_MAX {
            return fail("54001", "stack depth limit exceeded");
        }
        self.depth.fetch_add(1, Ordering::Relaxed);
        Ok(Deeper(self))
    }

    /// The number of the next cursor that has no name.
    pub fn next_portal(&self) -> usize {
        self.portals.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Leaves a cursor to the session.
    pub fn hand(&self, cursor: Handed) {
        self.handed.lock().unwrap_or_else(PoisonError::into_inner).push(cursor);
    }

    /// The cursors that routines have left open, once.
    pub fn handed(&self) -> Vec<Handed> {
        std::mem::take(&mut *self.handed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How many run within each other.
    pub fn depth(&self) -> usize {
        self.depth.load(Ordering::Relaxed)
    }

    /// What is kept for a text and is what `is` wants.
    pub fn kept<T: Any + Send + Sync>(&self, text: &str, is: impl Fn(&T) -> bool) -> Option<Arc<T>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = kept.get(text)?.iter();
        all.find_map(|own| own.clone().downcast::<T>().ok().filter(|own| is(own)))
    }

    /// Keeps something for a text.
    pub fn keep<T: Any + Send + Sync>(&self, text: &str, what: Arc<T>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        let all = kept.entry(text.to_owned()).or_default();
        if all.len() >= 8 {
            all.clear();
        }
        all.push(what);
    }

    /// Says which variables the parameters of the next statement are, and whether columns come before them.
    pub fn name_parameters(&self, names: Vec<Option<String>>, prefers_columns: bool) {
        *self.variables.lock().unwrap_or_else(PoisonError::into_inner) = names;
        self.prefers_columns
            .store(usize::from(prefers_columns), Ordering::Relaxed);
    }

    /// The variable that a parameter is, and whether a column of its name comes before it.
    pub fn parameter(&self, number: usize) -> Option<(String, bool)> {
        let names = self.variables.lock().unwrap_or_else(PoisonError::into_inner);
        let name = names.get(number)?.clone()?;
        Some((name, self.prefers_columns.load(Ordering::Relaxed) == 1))
    }
}

impl Reading<'_, '_> {
    /// Calls a routine that is no query.
    ///
    /// Errors: those of the call; 0A000 where none can be called.
    pub(super) fn call_routine(&self, number: u32, args: &[Value]) -> Result<Returned> {
        let Some(routine) = self.routine_of(number) else {
            return fail("42883", format!("could not find function {number}"));
        };
        let Some(procedures) = self.session.procedures.filter(|_| self.calls) else {
            return unsupported(format!("a call of function {} in this place", routine.name));
        };
        procedures.call(self.statement, self.session, &routine, args.to_vec())
    }

    /// The routines of a name, in a schema or along the search path.
    pub(super) fn routines_named(&self, schema: Option<&str>, name: &str) -> Vec<Arc<Routine>> {
        let mut all = entry::functions(self.view, &self.session.database);
        let path = match schema {
            Some(schemas::TEMPORARY) => vec![self.session.temporary_schema()],
            Some(schema) => vec![schema.to_owned()],
            None => self.session.path(),
        };
        // Of several that take the same the one of the first schema is meant.
        let place = |own: &Routine| {
            let schema = own.schema.as_deref().unwrap_or(schemas::PUBLIC);
            path.iter().position(|other| other == schema)
        };
        all.retain(|routine| routine.name == name && place(routine).is_some());
        all.sort_by_key(|routine| place(routine));
        let mut met = std::collections::HashSet::new();
        all.retain(|routine| met.insert(routine.key()));
        all
    }

    fn routine_of(&self, number: u32) -> Option<Arc<Routine>> {
        let all = entry::functions(self.view, &self.session.database);
        let found = all.into_iter().find(|routine| routine.oid == number)?;
        Some(crate::bind::resolved(self, &found).ok().flatten().unwrap_or(found))
    }
}

/// What is said where a statement has to run within a transaction.
///
/// Errors: always, unless it does.
pub fn check_transaction(statement: &Statement<'_>) -> Result<()> {
    if statement.in_transaction() {
        return Ok(());
    }
    crate::asked::want_transaction();
    Err(error(
        "25P01",
        "a statement that calls functions runs within a transaction",
    ))
}
