//! The statements of a write command, as they were written.
//!
//! `insert`, `update`, `delete` and `bulkWrite` read their arguments into a list of [`WriteOp`]s. How a reply shows the results is
//! up to the command's [`Report`].

use super::check_count;
use crate::sessions::StatementResult;
use crate::shape::{Shape, Words};
use crate::statement::Statement;
use crate::statement::record as profiler;
use crate::uuid::Uuid;
use nestor_model::{ArrayRef, Document, Error, Namespace, RawDoc, Result, ValueRef, bail};
use std::collections::BTreeSet;
use std::ops::Deref;

/// The action of one statement.
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
    /// The collation that strings compare by.
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
    /// The collation that strings compare by.
    pub collation: Option<RawDoc<'a>>,
    /// Which of the matching documents is the first one.
    pub sort: Option<RawDoc<'a>>,
}

impl WriteOp<'_> {
    /// Whether it is about all documents that match.
    pub fn is_multi(&self) -> bool {
        match self {
            Self::Insert(_) => false,
            Self::Update(update) => update.multi,
            Self::Delete(delete) => delete.multi,
        }
    }

    /// The name of the operation.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Insert(_) => "insert",
            Self::Update(_) => "update",
            Self::Delete(_) => "delete",
        }
    }

    /// The name that the profiler gives it.
    pub fn profiled(&self) -> profiler::Op {
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
    /// The action.
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
    pub fn of(&self, index: usize) -> i32 {
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
    /// What their UUIDs have to be, where that was said: `uuids[i]` belongs to `namespaces[i]`, and none are told when it is
    /// empty.
    pub uuids: Vec<Option<Uuid>>,
    /// The change.
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
    /// How the profiler records the statements.
    pub recorded: Recorded,
    /// Each statement is a tick of the cluster's clock later than the one before: `$$CLUSTER_TIME` differs between them.
    pub ticks: bool,
}

impl<'a> Writes<'a> {
    /// The collection that a statement is about.
    pub fn ns(&self, write: &WriteStatement<'_>) -> &Namespace {
        &self.namespaces[write.ns]
    }

    /// Checks that the collection which a statement is about is the one that was meant.
    ///
    /// Error: 361.
    pub fn check_uuid(&self, statement: &Statement<'_>, write: &WriteStatement<'_>) -> Result<()> {
        match self.uuids.get(write.ns) {
            Some(uuid @ Some(_)) => super::check_uuid(statement, self.ns(write), *uuid),
            _ => Ok(()),
        }
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

    /// The hashes of the shapes of all updates and deletes. Inserts have no query, so no shape.
    pub fn shape_hashes(&self) -> BTreeSet<String> {
        let queries = |write: &&WriteStatement<'_>| !matches!(write.op, WriteOp::Insert(_));
        self.statements
            .iter()
            .filter(queries)
            .map(|write| self.shape(write).hash())
            .collect()
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
