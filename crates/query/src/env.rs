//! The surroundings of an expression when it is parsed ([`Scope`]) and when it is evaluated ([`OpContext`], [`Env`]).
//!
//! Variables are slots, not names: parsing turns every `$$name` into a number. Variables given from
//! outside (`let` of a command, `let` of `$lookup`) are *globals*, values in [`OpContext::vars`];
//! variables bound inside an expression (`$let`, `$map`, ...) are *locals*, numbered by nesting depth and
//! kept in [`Env`]. Reading a field or a variable gives a [`Val`], which borrows from the document
//! whenever it can.

use crate::collation::{self, Collator};
use crate::masking::Sight;
use nestor_model::random::Random;
use nestor_model::statement::{Scope as MemoryScope, note};
use nestor_model::{ArrayRef, DocRef, Document, Error, ErrorCode, ObjectId, Result, Str, Timestamp, Value, ValueRef};
use nestor_script::Globals;
use std::cmp::Ordering;
use std::fmt::Debug;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, LazyLock, OnceLock};

/// Largest string or buffer an expression may build, in bytes.
pub const RESULT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The user for whom an operation runs, as far as expressions see that user.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The user's name.
    pub user: Str,
    /// The database that the user belongs to.
    pub db: Str,
    /// `$$USER_ROLES`: an array of documents.
    pub roles: Value,
    /// The masked fields that the user may see plain.
    pub sight: Sight,
}

static NO_ROLES: LazyLock<Value> = LazyLock::new(|| Value::Array(Default::default()));

/// Fixed for one operation: its time, the variables given from outside, its source of randomness.
#[derive(Debug)]
pub struct OpContext {
    /// `$$NOW`, milliseconds since the Unix epoch.
    pub now_ms: i64,
    /// When the statement began, milliseconds since the Unix epoch: `now_ms` of a transaction of SQL is when that began.
    pub statement_ms: i64,
    /// `$$CLUSTER_TIME`.
    pub cluster_time: Timestamp,
    /// Values of the [`Scope`]'s variables, by slot.
    pub vars: Vec<Value>,
    /// The user for whom it runs; `None` without access control.
    pub caller: Option<Arc<Caller>>,
    /// Compares the operation's strings; the one its expressions were parsed with ([`Scope::collator`]).
    pub collator: Option<Collator>,
    /// The operation's database, and what finds the functions that it stores for scripts.
    pub library: Option<(Str, Arc<dyn ScriptLibrary>)>,
    random: Random,
    /// How many times it has given to empty timestamps.
    times_given: AtomicU32,
    /// `$$SEARCH_META`.
    search: OnceLock<Arc<Value>>,
}

/// Finds the functions that databases store for scripts.
pub trait ScriptLibrary: Debug + Send + Sync {
    /// The names and values that a database stores.
    ///
    /// Errors: those of reading, and of the statement's limits.
    fn values(&self, db: &str) -> Result<Document>;
}

impl OpContext {
    /// A context without variables. `seed` starts `$rand`, `$sampleRate` and generated ids.
    pub fn new(now_ms: i64, cluster_time: Timestamp, seed: u64) -> Self {
        Self {
            now_ms,
            statement_ms: now_ms,
            cluster_time,
            vars: Vec::new(),
            caller: None,
            collator: None,
            library: None,
            random: Random::new(seed),
            times_given: AtomicU32::new(0),
            search: OnceLock::new(),
        }
    }

    /// Notes what the search of this operation found out about all documents: `$$SEARCH_META`. Of several the first one counts.
    pub fn note_search(&self, meta: &Arc<Value>) {
        let _ = self.search.set(meta.clone());
    }

    /// What [`OpContext::note_search`] noted.
    pub(crate) fn search(&self) -> Option<&Value> {
        self.search.get().map(|meta| &**meta)
    }

    /// The same operation with other values for the variables (`let` of `$lookup`, per outer document).
    pub fn with_vars(&self, vars: Vec<Value>) -> Self {
        Self {
            now_ms: self.now_ms,
            statement_ms: self.statement_ms,
            cluster_time: self.cluster_time,
            vars,
            caller: self.caller.clone(),
            collator: self.collator.clone(),
            library: self.library.clone(),
            random: Random::new(self.random_u64()),
            times_given: AtomicU32::new(self.times_given.load(Relaxed)),
            search: self.search.clone(),
        }
    }

    /// `$$USER_ROLES`: without a caller an empty array.
    pub fn user_roles(&self) -> ValueRef<'_> {
        self.caller.as_ref().map_or(&*NO_ROLES, |caller| &caller.roles).as_ref()
    }

    /// The same operation under another collation.
    #[must_use]
    pub fn with_collator(mut self, collator: Option<Collator>) -> Self {
        self.collator = collator;
        self
    }

    /// The time that an empty timestamp takes, each another one: the cluster's or later, or the clock's where there is none.
    pub fn timestamp(&self) -> Timestamp {
        let mut time = match self.cluster_time == Timestamp::default() {
            true => Timestamp {
                secs: (self.now_ms / 1000) as u32,
                inc: 1,
            },
            false => self.cluster_time,
        };
        time.inc = time.inc.wrapping_add(self.times_given.fetch_add(1, Relaxed));
        time
    }

    /// The same operation `ticks` later on the cluster's clock.
    #[must_use]
    pub fn later(&self, ticks: u32) -> Self {
        let mut later = self.with_vars(self.vars.clone());
        later.cluster_time.inc = later.cluster_time.inc.wrapping_add(ticks);
        later
    }

    /// The next number of a splitmix64 sequence; not for secrets.
    pub fn random_u64(&self) -> u64 {
        self.random.next()
    }

    /// Uniform in [0, 1).
    pub fn random_f64(&self) -> f64 {
        (self.random_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A fresh object id of this operation's time.
    pub fn object_id(&self) -> ObjectId {
        ObjectId::generate(self.now_ms)
    }
}

impl Default for OpContext {
    /// Time zero, no variables: for folding constants and for tests.
    fn default() -> Self {
        Self::new(0, Timestamp::default(), 0)
    }
}

/// Metadata that stages attach to a document and `$meta` reads.
#[derive(Clone, Debug, Default)]
pub struct DocMeta {
    /// `textScore`.
    pub text_score: Option<f64>,
    /// `searchScore`.
    pub search_score: Option<f64>,
    /// `vectorSearchScore`.
    pub vector_search_score: Option<f64>,
    /// `score` of a `$rankFusion`.
    pub fused_score: Option<f64>,
    /// `geoNearDistance`.
    pub geo_distance: Option<f64>,
    /// `geoNearPoint`.
    pub geo_point: Option<Value>,
    /// `randVal` of `$sample`.
    pub rand_val: Option<f64>,
    /// `recordId`.
    pub record_id: Option<u64>,
    /// `indexKey` of `returnKey`.
    pub index_key: Option<Document>,
    /// `sortKey`.
    pub sort_key: Option<Value>,
    /// `searchHighlights`.
    pub highlights: Option<Value>,
    /// `searchScoreDetails`.
    pub search_score_details: Option<Value>,
    /// `scoreDetails` of a `$rankFusion`.
    pub fused_score_details: Option<Value>,
    /// `searchSequenceToken`.
    pub sequence_token: Option<Value>,
}

impl DocMeta {
    /// `score`: whatever score there is.
    pub fn score(&self) -> Option<f64> {
        let scores = [
            self.fused_score,
            self.search_score,
            self.vector_search_score,
            self.text_score,
        ];
        scores.into_iter().flatten().next()
    }

    /// `scoreDetails`: how the score came about, if somebody wanted to know.
    pub fn score_details(&self) -> Option<&Value> {
        self.fused_score_details.as_ref().or(self.search_score_details.as_ref())
    }
}

/// Which variable a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Var {
    /// The document.
    Root,
    /// `OpContext::vars[n]`.
    Global(usize),
    /// Bound inside the expression, at that depth.
    Local(usize),
    /// `$$NOW`.
    Now,
    /// `$$CLUSTER_TIME`.
    ClusterTime,
    /// `$$USER_ROLES`.
    UserRoles,
    /// `$$SEARCH_META`: missing without a search.
    SearchMeta,
    /// `$$REMOVE`: always missing.
    Missing,
}

/// Names in scope while parsing.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    globals: Vec<Str>,
    locals: Vec<Str>,
    /// The variable a plain `$path` reads when `CURRENT` was bound anew.
    current: Option<Var>,
    no_clock: bool,
    control: bool,
    depth: usize,
    collator: Option<Collator>,
    late_failures: bool,
    script_globals: Option<Arc<Globals>>,
    is_map_reduce: bool,
    no_scripts: bool,
    strict_api: bool,
}

/// Deepest nesting of expressions that is parsed. BSON nests 200 deep at most, but sub-pipelines may
/// be parsed inside one another.
const DEPTH_MAX: usize = 250;

impl Scope {
    /// No variables but the system's.
    pub fn new() -> Self {
        Self::default()
    }

    /// Variables from outside, in the order of their values in [`OpContext::vars`].
    pub fn with_vars<N: Into<Str>>(names: impl IntoIterator<Item = N>) -> Self {
        Self {
            globals: names.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Refuses `$$NOW` and `$$CLUSTER_TIME` (code 51144), as `count` and `distinct` do.
    #[must_use]
    pub fn without_clock(mut self) -> Self {
        self.no_clock = true;
        self
    }

    /// Allows `$$DESCEND`, `$$PRUNE` and `$$KEEP`, as `$redact` does.
    #[must_use]
    pub fn with_redact_variables(mut self) -> Self {
        self.control = true;
        self
    }

    /// Strings in what is parsed here compare by `collator`.
    #[must_use]
    pub fn with_collator(mut self, collator: Option<Collator>) -> Self {
        self.collator = collator;
        self
    }

    /// Compares the strings of what is parsed; none for the order by bytes.
    pub fn collator(&self) -> Option<&Collator> {
        self.collator.as_ref()
    }

    /// What is parsed here is the pipeline of a mapReduce: `$_internalJsEmit` and `$_internalJsReduce` are there, and scripts see
    /// these variables.
    #[must_use]
    pub fn of_map_reduce(mut self, globals: Arc<Globals>) -> Self {
        self.script_globals = Some(globals);
        self.is_map_reduce = true;
        self
    }

    /// As said by [`Scope::of_map_reduce`].
    pub(crate) fn is_map_reduce(&self) -> bool {
        self.is_map_reduce
    }

    /// Expressions must not run scripts, as in a collection's validator.
    pub(crate) fn refuse_scripts(&mut self, refuse: bool) {
        self.no_scripts = refuse;
    }

    /// Refuses what is not in version 1 of the API, which scripts are not.
    #[must_use]
    pub fn with_strict_api(mut self, strict: bool) -> Self {
        self.strict_api = strict;
        self
    }

    /// Errors: 2 where scripts are refused; 323 (APIStrictError) for who keeps to version 1 of the API.
    pub(crate) fn check_scripts(&self, name: &str) -> Result<()> {
        if self.strict_api {
            return Err(Error::new(
                ErrorCode::APIStrictError,
                format!("{name} is not allowed with 'apiStrict: true' in API Version 1"),
            ));
        }
        match self.no_scripts {
            true => Err(Error::bad_value(format!("{name} is not allowed in this context"))),
            false => Ok(()),
        }
    }

    /// Variables that scripts see.
    pub fn script_globals(&self) -> Option<Arc<Globals>> {
        self.script_globals.clone()
    }

    /// Names of the variables from outside, by slot.
    pub fn names(&self) -> &[Str] {
        &self.globals
    }

    /// Adds a variable from outside and returns its slot. A later one hides an earlier one of its name.
    pub fn add(&mut self, name: &str) -> usize {
        self.globals.push(name.into());
        self.globals.len() - 1
    }

    /// Binds a local variable; returns its slot. Undone by [`Scope::unbind`].
    pub(crate) fn bind(&mut self, name: &str) -> usize {
        self.locals.push(name.into());
        let slot = self.locals.len() - 1;
        if name == "CURRENT" {
            self.current = Some(Var::Local(slot));
        }
        slot
    }

    /// Takes `count` slots that no name refers to; returns the first free slot before that.
    pub(crate) fn reserve(&mut self, count: usize) -> usize {
        let first = self.locals.len();
        self.locals.extend(std::iter::repeat_n(Str::default(), count));
        first
    }

    /// Removes the locals from `slot` on.
    pub(crate) fn unbind(&mut self, slot: usize) {
        self.locals.truncate(slot);
        self.current = self.locals.iter().rposition(|n| n == "CURRENT").map(Var::Local);
    }

    /// Runs `parse` one level deeper; an error when that is too deep.
    pub(crate) fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= DEPTH_MAX {
            return Err(Error::new(ErrorCode::Overflow, "expression is nested too deep"));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// Constant expressions that fail do so when they are evaluated, not when they are parsed.
    pub(crate) fn let_failures_be_late(&mut self) {
        self.late_failures = true;
    }

    /// As said by [`Scope::let_failures_be_late`].
    pub(crate) fn has_late_failures(&self) -> bool {
        self.late_failures
    }

    /// True when nothing is being parsed around.
    pub(crate) fn is_outermost(&self) -> bool {
        self.depth == 0
    }

    /// The document that a plain `$path` reads.
    pub(crate) fn current(&self) -> Var {
        self.current.unwrap_or(Var::Root)
    }

    /// The `$redact` decisions are constants of this name.
    pub(crate) fn is_redact_variable(&self, name: &str) -> bool {
        self.control && matches!(name, "DESCEND" | "PRUNE" | "KEEP")
    }

    /// Resolves `$$name`. 17276 when there is no such variable, 51144 when it is not available here.
    pub(crate) fn resolve(&self, name: &str) -> Result<Var> {
        if let Some(slot) = self.locals.iter().rposition(|n| n == name) {
            return Ok(Var::Local(slot));
        }
        // Capital names of what loops bind by default.
        let alias = match name {
            "THIS" => Some("this"),
            "VALUE" => Some("value"),
            _ => None,
        };
        if let Some(slot) = alias.and_then(|alias| self.locals.iter().rposition(|n| n == alias)) {
            return Ok(Var::Local(slot));
        }
        Ok(match name {
            "ROOT" => Var::Root,
            "CURRENT" => self.current(),
            "REMOVE" => Var::Missing,
            "SEARCH_META" => Var::SearchMeta,
            "NOW" | "CLUSTER_TIME" if self.no_clock => {
                return Err(Error::location(
                    51144,
                    format!("builtin variable '$${name}' is not available"),
                ));
            }
            "NOW" => Var::Now,
            "CLUSTER_TIME" => Var::ClusterTime,
            "USER_ROLES" => Var::UserRoles,
            _ => match self.globals.iter().rposition(|n| n == name) {
                Some(slot) => Var::Global(slot),
                None => return Err(Error::location(17276, format!("use of undefined variable: {name}"))),
            },
        })
    }
}

/// Checks a name that a user gives to a variable: a lower-case ASCII letter or any non-ASCII character,
/// then letters, digits, underscores and non-ASCII characters; `CURRENT` may be bound anew.
/// Errors: 9 (FailedToParse).
pub fn check_user_variable(name: &str) -> Result<()> {
    let mut bytes = name.bytes();
    let Some(first) = bytes.next() else {
        return Err(Error::failed_to_parse("empty variable names are not allowed"));
    };
    if name == "CURRENT" {
        return Ok(());
    }
    if !(first.is_ascii_lowercase() || first >= 0x80) {
        return Err(Error::failed_to_parse(format!(
            "'{name}' starts with an invalid character for a user variable name"
        )));
    }
    check_rest(name, bytes)
}

/// Checks a name as read after `$$`: as [`check_user_variable`], but upper case may come first.
pub(crate) fn check_variable_reference(name: &str) -> Result<()> {
    let mut bytes = name.bytes();
    let Some(first) = bytes.next() else {
        return Err(Error::failed_to_parse("empty variable names are not allowed"));
    };
    if !(first.is_ascii_alphabetic() || first >= 0x80) {
        return Err(Error::failed_to_parse(format!(
            "'{name}' starts with an invalid character for a variable name"
        )));
    }
    check_rest(name, bytes)
}

fn check_rest(name: &str, mut bytes: std::str::Bytes<'_>) -> Result<()> {
    match bytes.find(|b| !(b.is_ascii_alphanumeric() || *b == b'_' || *b >= 0x80)) {
        None => Ok(()),
        Some(bad) => Err(Error::failed_to_parse(format!(
            "'{name}' contains an invalid character for a variable name: '{}'",
            char::from(bad)
        ))),
    }
}

/// A value that is either borrowed (from the document, the expression, the context) or computed.
#[derive(Clone)]
#[allow(missing_docs)]
pub enum Val<'a> {
    Ref(ValueRef<'a>),
    Owned(Value),
}

impl<'a> Val<'a> {
    /// No value.
    pub const MISSING: Val<'static> = Val::Ref(ValueRef::Missing);
    /// Null.
    pub const NULL: Val<'static> = Val::Ref(ValueRef::Null);

    /// The view.
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Val::Ref(v) => *v,
            Val::Owned(v) => v.as_ref(),
        }
    }

    /// The value; copies what was borrowed.
    pub fn into_value(self) -> Value {
        match self {
            Val::Ref(v) => v.to_value(),
            Val::Owned(v) => v,
        }
    }

    /// Missing, null or undefined.
    pub fn is_nullish(&self) -> bool {
        self.as_ref().is_nullish()
    }

    /// No value.
    pub fn is_missing(&self) -> bool {
        self.as_ref().is_missing()
    }

    /// Truth as expressions see it.
    pub fn truthy(&self) -> bool {
        self.as_ref().truthy()
    }

    /// Bytes that it takes beside what it borrows.
    #[inline]
    pub(crate) fn weight(&self) -> usize {
        match self {
            Val::Ref(_) => 0,
            Val::Owned(value) => value.weight(),
        }
    }

    /// The items when this is an array, each borrowed if this is.
    pub fn items(&self) -> Option<Items<'a, '_>> {
        match self {
            Val::Ref(ValueRef::Array(items)) => Some(Items::Ref(items.iter())),
            Val::Owned(Value::Array(items)) => match items.as_ref() {
                ArrayRef::Items(items) => Some(Items::Owned(items.iter())),
                raw @ ArrayRef::Raw(_) => Some(Items::Copied(raw.iter())),
            },
            _ => None,
        }
    }
}

/// Iterator over the items of an array [`Val`].
#[allow(missing_docs)]
pub enum Items<'a, 's> {
    Ref(nestor_model::value::ArrayIter<'a>),
    Owned(std::slice::Iter<'s, Value>),
    Copied(nestor_model::value::ArrayIter<'s>),
}

impl<'a> Iterator for Items<'a, '_> {
    type Item = Val<'a>;
    fn next(&mut self) -> Option<Val<'a>> {
        match self {
            Items::Ref(iter) => iter.next().map(Val::Ref),
            Items::Owned(iter) => {
                note(1);
                iter.next().map(|v| Val::Owned(v.clone()))
            }
            Items::Copied(iter) => iter.next().map(|v| Val::Owned(v.to_value())),
        }
    }
}

impl<T: Into<Value>> From<T> for Val<'_> {
    fn from(v: T) -> Self {
        Val::Owned(v.into())
    }
}

impl std::fmt::Debug for Val<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&self.as_ref(), f)
    }
}

/// The surroundings of the evaluation of one document. Making one costs nothing.
#[derive(Debug)]
pub struct Env<'a> {
    /// `$$ROOT`.
    pub root: DocRef<'a>,
    /// The operation.
    pub op: &'a OpContext,
    /// The metadata that `$meta` reads.
    pub meta: Option<&'a DocMeta>,
    locals: Vec<Val<'a>>,
    /// When the evaluation is over, its values are no longer counted as its memory.
    _memory: MemoryScope,
}

impl<'a> Env<'a> {
    /// For one document.
    pub fn new(root: DocRef<'a>, op: &'a OpContext) -> Self {
        Self {
            root,
            op,
            meta: None,
            locals: Vec::new(),
            _memory: MemoryScope::begin(),
        }
    }

    /// With metadata.
    #[must_use]
    pub fn with_meta(mut self, meta: Option<&'a DocMeta>) -> Self {
        self.meta = meta;
        self
    }

    /// Binds a local.
    pub(crate) fn set(&mut self, slot: usize, value: Val<'a>) {
        if slot >= self.locals.len() {
            self.locals.resize(slot + 1, Val::MISSING);
        }
        self.locals[slot] = value;
    }

    /// The value of a local.
    pub(crate) fn local(&self, slot: usize) -> &Val<'a> {
        static MISSING: Val<'static> = Val::MISSING;
        self.locals.get(slot).unwrap_or(&MISSING)
    }

    /// The order that comparison expressions use.
    pub fn compare(&self, a: ValueRef<'_>, b: ValueRef<'_>) -> Ordering {
        collation::compare(a, b, self.collator())
    }

    /// Compares the operation's strings; none for the order by bytes.
    pub fn collator(&self) -> Option<&'a Collator> {
        self.op.collator.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_variable_names() {
        for good in ["a", "a1_B", "élan", "CURRENT"] {
            assert!(check_user_variable(good).is_ok(), "{good}");
        }
        for bad in ["", "A", "ROOT", "1a", "_a", "a-b", "a.b", "$a"] {
            assert!(check_user_variable(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn inner_names_hide_outer_ones() {
        let mut scope = Scope::with_vars(["x"]);
        assert_eq!(scope.resolve("x").unwrap(), Var::Global(0));
        let slot = scope.bind("x");
        assert_eq!(scope.resolve("x").unwrap(), Var::Local(slot));
        scope.unbind(slot);
        assert_eq!(scope.resolve("x").unwrap(), Var::Global(0));
        assert_eq!(scope.resolve("y").unwrap_err().code().number(), 17276);
    }

    #[test]
    fn random_numbers_are_uniform_enough() {
        let op = OpContext::default();
        let mean = (0..1000).map(|_| op.random_f64()).sum::<f64>() / 1000.0;
        assert!((0.45..0.55).contains(&mean), "{mean}");
    }
}
