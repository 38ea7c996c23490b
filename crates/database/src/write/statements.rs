//! The statements of a write command, and the one loop that runs them.
//!
//! `insert`, `update`, `delete` and `bulkWrite` read their arguments into a list of [`WriteOp`]s; [`execute`] runs
//! the list. Everything that is the same for all of them stands here once: which statements were executed by an
//! earlier attempt of a retryable write, neighbouring inserts that share a commit, what an error ends, and what
//! the profiler is told. How a reply shows the results is up to the command's [`Report`].

use super::insert::{self, InsertOptions};
use super::prepared::Prepared;
use super::{Progress, Retryable, Written, check_count};
use crate::failures::{self, Consequence};
use crate::observe::op_kind::OpKind;
use crate::read;
use crate::sessions::StatementResult;
use crate::shape::{Shape, Words};
use crate::statement::Statement;
use crate::statement::record as profiler;
use nestor_exec::write::oplog::{Image, Retryable as Logged};
use nestor_model::{ArrayRef, Document, Error, Namespace, RawDoc, Result, ValueRef, bail};
use nestor_query::env::{OpContext, Scope};
use nestor_storage::Collection;
use std::ops::Deref;
use std::time::Duration;

/// What one statement does.
#[derive(Clone, Debug)]
pub enum WriteOp<'a> {
    /// Adds this document.
    Insert(RawDoc<'a>),
    /// Changes documents.
    Update(UpdateOp<'a>),
    /// Removes documents.
    Delete(DeleteOp<'a>),
}

/// An update, as its client wrote it.
#[derive(Clone, Debug)]
pub struct UpdateOp<'a> {
    /// Which documents.
    pub filter: RawDoc<'a>,
    /// The update document, the replacement or the pipeline.
    pub update: ValueRef<'a>,
    /// Variables of a pipeline (`c`).
    pub constants: Option<RawDoc<'a>>,
    /// All documents that match, not the first one.
    pub multi: bool,
    /// Insert a document when none matches.
    pub upsert: bool,
    /// `arrayFilters`.
    pub array_filters: Option<ArrayRef<'a>>,
    /// The index to use.
    pub hint: Option<ValueRef<'a>>,
    /// What strings compare by.
    pub collation: Option<RawDoc<'a>>,
    /// Which of the matching documents is the first one.
    pub sort: Option<RawDoc<'a>>,
}

/// A delete, as its client wrote it.
#[derive(Clone, Debug)]
pub struct DeleteOp<'a> {
    /// Which documents.
    pub filter: RawDoc<'a>,
    /// All documents that match, not the first one.
    pub multi: bool,
    /// The index to use.
    pub hint: Option<ValueRef<'a>>,
    /// What strings compare by.
    pub collation: Option<RawDoc<'a>>,
    /// Which of the matching documents is the first one.
    pub sort: Option<RawDoc<'a>>,
}

impl WriteOp<'_> {
    fn is_multi(&self) -> bool {
        match self {
            Self::Insert(_) => false,
            Self::Update(update) => update.multi,
            Self::Delete(delete) => delete.multi,
        }
    }

    /// What it is called.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Insert(_) => "insert",
            Self::Update(_) => "update",
            Self::Delete(_) => "delete",
        }
    }

    /// What the profiler calls it.
    fn profiled(&self) -> profiler::Op {
        match self {
            Self::Insert(_) => profiler::Op::INSERT,
            Self::Update(_) => profiler::Op::UPDATE,
            Self::Delete(_) => profiler::Op::REMOVE,
        }
    }

    /// Tells the profiler what it did.
    pub fn observe(&self, statement: &Statement<'_>, done: &StatementResult) {
        let mut figures = statement.figures.borrow_mut();
        match self {
            Self::Insert(_) => figures.inserted = Some(figures.inserted.unwrap_or(0) + done.n),
            Self::Update(_) => {
                figures.upsert = done.upserted.is_some();
                figures.matched = Some(done.n - i64::from(figures.upsert));
                figures.modified = Some(done.n_modified);
            }
            Self::Delete(_) => figures.deleted = Some(done.n),
        }
    }
}

/// A statement of a command.
#[derive(Clone, Debug)]
pub struct WriteStatement<'a> {
    /// Its collection's place in [`Writes::namespaces`].
    pub ns: usize,
    /// What it does.
    pub op: WriteOp<'a>,
    /// The document that it was sent as.
    pub sent: RawDoc<'a>,
}

/// Statement ids of a retryable write: one for each statement, or the first, from which they count up.
#[derive(Clone, Debug, Default)]
pub struct StatementIds {
    /// `stmtId`; 0 when not given.
    pub first: Option<i32>,
    /// `stmtIds`.
    pub each: Option<Vec<i32>>,
}

impl StatementIds {
    /// Refuses ids that do not go with the number of statements.
    fn check(&self, count: usize) -> Result<()> {
        match &self.each {
            Some(_) if self.first.is_some() => bail!(InvalidOptions, "Cannot specify both stmtId and stmtIds"),
            Some(ids) if ids.len() != count => bail!(
                InvalidLength,
                "Number of statement ids must match the number of batch entries. Got {} statement ids but {count} operations.",
                ids.len()
            ),
            _ => Ok(()),
        }
    }

    /// The id of the statement at `index`.
    fn of(&self, index: usize) -> i32 {
        match &self.each {
            Some(ids) => ids.get(index).copied().unwrap_or(index as i32),
            None => self.first.unwrap_or(0).saturating_add(index as i32),
        }
    }
}

/// How statements of a kind of command are recorded by the profiler.
#[derive(Clone, Copy, Debug)]
pub enum Recorded {
    /// The command is one operation.
    Together,
    /// Each is an operation of its own, and this is how the document that it was sent as is shown.
    Apart(fn(RawDoc<'_>) -> Document),
}

/// The collections that a command writes to.
#[derive(Debug)]
pub enum Namespaces {
    /// All statements are about this one.
    One([Namespace; 1]),
    /// Each statement says which it is about.
    Many(Vec<Namespace>),
}

impl Deref for Namespaces {
    type Target = [Namespace];

    fn deref(&self) -> &[Namespace] {
        match self {
            Self::One(one) => one,
            Self::Many(many) => many,
        }
    }
}

/// A write command, understood.
#[derive(Debug)]
pub struct Writes<'a> {
    /// The collections written to.
    pub namespaces: Namespaces,
    /// What to do.
    pub statements: Vec<WriteStatement<'a>>,
    /// Stop at the first statement that fails.
    pub ordered: bool,
    /// Do not apply the collections' validators.
    pub bypass_validation: bool,
    /// Leave timestamps of zero as they are (`bypassEmptyTsReplacement`).
    pub keep_empty_times: bool,
    /// Variables (`let`).
    pub variables: Option<RawDoc<'a>>,
    /// Ids of the statements.
    pub ids: StatementIds,
    /// What the profiler records.
    pub recorded: Recorded,
}

impl<'a> Writes<'a> {
    /// The collection that a statement is about.
    pub fn ns(&self, write: &WriteStatement<'_>) -> &Namespace {
        &self.namespaces[write.ns]
    }

    /// The shape of an update or delete.
    pub fn shape(&self, write: &WriteStatement<'a>) -> Shape<'a> {
        let (filter, sort, collation) = match &write.op {
            WriteOp::Insert(_) => (None, None, None),
            WriteOp::Update(update) => (Some(update.filter), update.sort, update.collation),
            WriteOp::Delete(delete) => (Some(delete.filter), delete.sort, delete.collation),
        };
        Shape {
            command: write.op.name(),
            ns: self.ns(write).clone(),
            is_settable: false,
            words: Words {
                filter,
                sort,
                collation,
                variables: self.variables,
                ..Words::default()
            },
        }
    }

    /// Prepares an update or delete of documents of `collection` in the command's `scope`, with the operation that it runs
    /// under if that is not the command's own.
    ///
    /// Errors: those of the statement.
    pub fn prepare(
        &self,
        write: &WriteStatement<'a>,
        words: Words<'a>,
        collection: Option<&Collection>,
        (op, scope): (&OpContext, &Scope),
    ) -> Result<(Prepared<'a>, Option<OpContext>)> {
        let (own, mut scope) = read::statement(op, scope, words.collation, collection)?;
        let mut prepared = Prepared::new(&write.op, words, collection, &mut scope)?;
        prepared.bypass_validation = self.bypass_validation;
        Ok((prepared, own))
    }

    /// Refuses an empty or overlong list, and ids that do not go with it; `field` is what the client calls the list.
    pub fn check(command: &str, field: &str, count: usize, ids: &StatementIds) -> Result<()> {
        check_count(command, field, count)?;
        ids.check(count)
    }
}

/// Takes the results of statements, in their order.
pub trait Report {
    /// A statement was executed, now or by an earlier attempt of the same retryable write.
    fn done(&mut self, index: usize, op: &WriteOp<'_>, done: &StatementResult);
    /// A statement failed, and the command did not.
    fn failed(&mut self, index: usize, op: &WriteOp<'_>, error: Error);
}

/// What is remembered of an insert.
const INSERTED: StatementResult = StatementResult {
    n: 1,
    n_modified: 0,
    upserted: None,
    value: None,
    recovered: false,
};

/// Runs the statements of a command and tells `report` what becomes of each. Statements after the first failure are left
/// out when the command is ordered.
///
/// Errors: those that end the command and not one statement.
pub fn execute<'c>(statement: &Statement<'c>, writes: &Writes<'c>, report: &mut dyn Report) -> Result<Progress> {
    statement.check_write_concern()?;
    let session = statement.retry_session()?;
    let retryable = Retryable::begin(statement, session.as_ref())?;
    if retryable.is_on() && writes.statements.iter().any(|write| write.op.is_multi()) {
        let option = match statement.op {
            OpKind::Delete => "limit=0",
            _ => "multi=true",
        };
        bail!(InvalidOptions, "Cannot use retryable writes with {option}");
    }
    let (op, scope) = statement.operation(writes.variables)?;
    let mut run = Run {
        statement,
        writes,
        op,
        scope,
        retryable,
        progress: Progress::default(),
        single: 0,
    };
    let mut next = 0;
    while let Some(write) = writes.statements.get(next) {
        let id = writes.ids.of(next);
        if let Some(done) = run.retryable.executed(id) {
            report.done(next, &write.op, done);
            run.progress.retried.push(id);
            next += 1;
            continue;
        }
        let (count, outcome) = match &write.op {
            WriteOp::Insert(_) => run.insert(next)?,
            _ => (1, run.one(next, id)),
        };
        match outcome {
            Ok(done) => {
                for index in next..next + count {
                    report.done(index, &writes.statements[index].op, &done);
                    run.retryable.remember(writes.ids.of(index), || done.clone());
                }
                next += count;
            }
            Err(error) => match failures::of_statement(&error, statement.in_transaction()) {
                Consequence::Command => return Err(error),
                // Which of several was it? Each gets a commit of its own, until as many went well.
                _ if count > 1 => run.single = count,
                consequence => {
                    run.progress.failures += 1;
                    report.failed(next, &write.op, error);
                    if writes.ordered || consequence == Consequence::Statements {
                        break;
                    }
                    next += 1;
                }
            },
        }
    }
    Ok(run.progress)
}

/// The loop's state.
struct Run<'r, 'c> {
    statement: &'r Statement<'c>,
    writes: &'r Writes<'c>,
    op: OpContext,
    scope: Scope,
    retryable: Retryable<'r>,
    progress: Progress,
    /// Inserts that are still to be committed one by one.
    single: usize,
}

impl<'c> Run<'_, 'c> {
    /// Inserts the document at `first`, and with it as many of its neighbours as share a commit; returns how many these
    /// are.
    fn insert(&mut self, first: usize) -> Result<(usize, Result<StatementResult>)> {
        self.statement.interrupt.check()?;
        let group = self.group(first);
        self.single = self.single.saturating_sub(1);
        let options = InsertOptions {
            keep_empty_times: self.writes.keep_empty_times,
            bypass_validation: self.writes.bypass_validation,
        };
        let ns = self.writes.ns(&self.writes.statements[first]);
        let result =
            insert::group(self.statement, ns, &self.op, &group, options, &mut self.progress).map(|()| INSERTED);
        let of_group = result.as_ref().map(|_| StatementResult {
            n: group.len() as i64,
            ..INSERTED
        });
        if of_group.is_ok() || group.len() == 1 {
            self.observe(first, of_group);
        }
        Ok((group.len(), result))
    }

    /// The documents from `first` on that share a commit: they stand and fall together.
    fn group(&self, first: usize) -> Vec<(RawDoc<'c>, Option<Logged>)> {
        let writes = self.writes;
        let ns = writes.statements[first].ns;
        // Each is recorded: then each is an operation.
        let apart = matches!(self.writes.recorded, Recorded::Apart(_))
            && self.statement.database.profiler.concerns(Duration::from_micros(1));
        let count_max = if self.single > 0 || apart { 1 } else { insert::GROUP_MAX };
        let numbered = (first..).zip(&writes.statements[first..]);
        let docs = numbered.map_while(|(index, write)| match write.op {
            WriteOp::Insert(doc) if write.ns == ns => {
                let id = writes.ids.of(index);
                let is_new = index == first || self.retryable.executed(id).is_none();
                is_new.then(|| (doc, self.retryable.logged(id, Image::None)))
            }
            _ => None,
        });
        let mut bytes = 0;
        let fits = |(doc, _): &(RawDoc<'_>, _)| {
            let is_first = bytes == 0;
            bytes += doc.len();
            is_first || bytes <= insert::GROUP_BYTES_MAX
        };
        docs.take(count_max).take_while(fits).collect()
    }

    /// Runs the update or delete at `index`.
    fn one(&mut self, index: usize, id: i32) -> Result<StatementResult> {
        let result = self.write(index, id).map(Written::into_result);
        self.observe(index, result.as_ref());
        result
    }

    fn write(&mut self, index: usize, id: i32) -> Result<Written> {
        let (statement, write) = (self.statement, &self.writes.statements[index]);
        let ns = self.writes.ns(write);
        let collection = statement.current_view().view().catalog().get(ns).cloned();
        let shape = self.writes.shape(write);
        let words = shape.words;
        statement.describe(shape);
        let under = (&self.op, &self.scope);
        let (mut prepared, own) = self.writes.prepare(write, words, collection.as_deref(), under)?;
        prepared.retryable = self.retryable.logged(id, Image::None);
        prepared.run(statement, ns, own.as_ref().unwrap_or(&self.op), &mut self.progress)
    }

    /// Tells the profiler what became of the statement at `index` (and of its group).
    fn observe(&self, index: usize, result: std::result::Result<impl std::borrow::Borrow<StatementResult>, &Error>) {
        let write = &self.writes.statements[index];
        if let Ok(done) = &result {
            write.op.observe(self.statement, done.borrow());
        }
        if let Recorded::Apart(show) = self.writes.recorded {
            let ns = self.writes.ns(write);
            let command = || show(write.sent);
            self.statement
                .finish_statement(write.op.profiled(), ns, command, result.err());
        }
    }
}
