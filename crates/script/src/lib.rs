//! Functions that users write in JavaScript, run on documents: `$where`, `$function`, `$accumulator`, `mapReduce`.
//!
//! ```text
//! Function (source, parsed with the query) ──call──► the thread's interpreter ──► Value
//! ```
//!
//! An interpreter belongs to one statement on one thread: it keeps compiled functions and what they leave in global variables. When the
//! statement has ended, all of the interpreter's memory is written back to what it was before (`heap`), which takes some
//! microseconds, and the thread has it ready for its next statement: none sees what another one did. It has the language and BSON's types, no
//! files, no network, no modules, and three limits: it stops when the statement has to ([`nestor_model::statement::look`]; `pace` says how often it
//! looks), its heap takes [`HEAP_BYTES_MAX`] bytes and counts as memory of the statement, its stack takes [`STACK_BYTES_MAX`].

mod heap;
mod interpreter;
mod lazy;
mod pace;
mod values;

pub use heap::HEAP_BYTES_MAX;
pub use interpreter::STACK_BYTES_MAX;

use nestor_model::{Document, Error, ErrorCode, Result, Str, Value, ValueRef};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static ENABLED: AtomicBool = AtomicBool::new(true);

/// Whether scripts are run at all: `security.javascriptEnabled`, for the whole process.
pub fn enable(enabled: bool) {
    ENABLED.store(enabled, Ordering::Relaxed);
}

/// Whether scripts are run, as said by [`enable`].
pub fn is_enabled() -> bool {
    ENABLED.load(Ordering::Relaxed)
}

/// What functions see beside their arguments, and each other's global variables if they have the same.
#[derive(Debug)]
pub struct Globals {
    id: u64,
    stored: Document,
    given: Document,
}

impl Globals {
    /// Names and values; code is a function. Of the `stored` ones, those of `system.js`, a function that cannot be compiled is not
    /// there, because who calls another one did not write it; the `given` ones, `scope` of mapReduce, hide them.
    pub fn new(stored: Document, given: Document) -> Arc<Self> {
        let id = next_id();
        Arc::new(Self { id, stored, given })
    }
}

fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// How the source of a function is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A function, or the statements of one.
    Function,
    /// As `$where` has it: also an expression, and `obj` is the document as `this` is.
    Where,
}

/// A function that a user wrote. Compiled when it is called first, by each interpreter that calls it.
#[derive(Clone, Debug)]
pub struct Function {
    id: u64,
    source: Str,
    form: Form,
}

impl Function {
    /// A function of that source.
    ///
    /// Errors: 238 when scripts are not run.
    pub fn new(source: &str, form: Form) -> Result<Self> {
        if !is_enabled() {
            return Err(Error::new(
                ErrorCode::NotImplemented,
                "server-side JavaScript execution is disabled",
            ));
        }
        Ok(Self {
            id: next_id(),
            source: source.into(),
            form,
        })
    }

    /// The source, as given.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What the function returns for these arguments, `this` being what is given or nothing.
    ///
    /// Errors: 139 (JSInterpreterFailure) with what the script threw, or a syntax error; those of the statement's limits.
    pub fn call(&self, globals: Option<&Arc<Globals>>, this: ValueRef<'_>, args: &[ValueRef<'_>]) -> Result<Value> {
        interpreter::with(globals, |interpreter| interpreter.call(self, this, args))
    }

    /// Whether what the function returns for a document as `this` is true, as `$where` asks.
    ///
    /// Errors: as [`Self::call`].
    pub fn holds(&self, globals: Option<&Arc<Globals>>, document: ValueRef<'_>) -> Result<bool> {
        interpreter::with(globals, |interpreter| interpreter.holds(self, document))
    }

    /// The pairs of key and value that the function emits for a document as `this`, as map functions do.
    ///
    /// Errors: as [`Self::call`].
    pub fn emitted(&self, globals: Option<&Arc<Globals>>, document: ValueRef<'_>) -> Result<Vec<(Value, Value)>> {
        interpreter::with(globals, |interpreter| interpreter.emitted(self, document))
    }
}

#[cfg(test)]
mod tests;
