//! Running writes: each update or delete becomes an [`Operation`], and one loop runs the statements of a command.
//!
//! Everything that is the same for `insert`, `update`, `delete` and `bulkWrite` stands here once: which statements were executed by an
//! earlier attempt of a retryable write, neighbouring inserts that share a commit, what an error ends, and what the profiler is
//! told.
//!
//! A statement becomes an operation when its turn comes and not when the command is parsed: the statement before it may have made the
//! collection, whose collation and indexes decide what its words mean, and a list of 100,000 statements is not kept in memory as
//! trees.

use super::masked::without_document;
use super::{Operation, Work};
use crate::failures::{self, Consequence};
use crate::observe::op_kind::OpKind;
use crate::read;
use crate::sessions::StatementResult;
use crate::shape::Shape;
use crate::statement::Statement;
use crate::write::insert::{self, InsertOptions};
use crate::write::prepared::{Action, Prepared};
use crate::write::statements::{Recorded, Report, WriteOp, WriteStatement, Writes};
use crate::write::{Progress, Retryable, Written, check_writable, delete, timeseries, update};
use nestor_exec::write::oplog::{Image, Retryable as Logged};
use nestor_model::{Error, RawDoc, Result, TimeSeries, bail};
use nestor_query::env::{OpContext, Scope};
use nestor_storage::View;
use std::time::Duration;

impl<'a> Operation<'a> {
    /// The operation that an update or delete of `writes` is on what there is at its namespace in `view`. `op` and `scope` are those of the
    /// command; `shape` is that of the statement.
    ///
    /// Errors: those of the statement's filter, sort, hint, collation and update.
    pub fn of_statement(
        writes: &Writes<'a>,
        write: &WriteStatement<'a>,
        shape: Shape<'a>,
        view: &dyn View,
        (op, scope): (&OpContext, &Scope),
    ) -> Result<Self> {
        let collection = view.catalog().get(writes.ns(write)).cloned();
        let bottom = timeseries::bottom_of(view, collection.as_ref());
        let (op, mut scope) = read::statement(op, scope, shape.words.collation, collection.as_deref())?;
        let mut prepared = Prepared::new(
            &write.op,
            shape.words,
            (collection.as_deref(), bottom.as_deref()),
            &mut scope,
        )?;
        prepared.bypass_validation = writes.bypass_validation;
        Self::of_write(shape, collection, op, prepared)
    }

    /// The operation that the only statement of a write command is.
    ///
    /// Errors: 16 when there are several, 166 on a view, and those of the statement.
    pub fn of_only(statement: &Statement<'_>, view: &dyn View, writes: &Writes<'a>) -> Result<Self> {
        let [only] = writes.statements.as_slice() else {
            bail!(InvalidLength, "explained write batches must be of size 1");
        };
        if let Some(collection) = view.catalog().get(writes.ns(only)) {
            check_writable(collection)?;
        }
        let (op, scope) = statement.operation(writes.variables)?;
        Self::of_statement(writes, only, writes.shape(only), view, (&op, &scope))
    }

    /// Runs a write. It finds its documents in the newest state, and again in a newer one after each conflict.
    pub fn write(&self, statement: &Statement<'_>, progress: &mut Progress) -> Result<Written> {
        let Work::Write(write) = &self.work else {
            bail!(InternalError, "an operation that reads cannot be run as a write");
        };
        let (ns, op) = (self.ns(), &self.op);
        let told = |error| match write.hides_errors {
            true => without_document(error),
            false => error,
        };
        let has_buckets = self
            .collection
            .as_ref()
            .is_some_and(|found| found.timeseries().is_some());
        let written = match &write.action {
            Action::Update { update, upsert } => {
                let update = update::Running {
                    prepared: write,
                    update,
                    upsert: *upsert,
                };
                match write.multi {
                    _ if has_buckets => timeseries::update::run(statement, ns, &update, op, progress),
                    true => update.many(statement, ns, op, progress),
                    false => update.one(statement, ns, op, progress),
                }
            }
            Action::Delete if has_buckets => timeseries::delete::run(statement, ns, write, op, progress),
            Action::Delete if write.multi => delete::many(statement, ns, write, op, progress),
            Action::Delete => delete::one(statement, ns, write, op, progress),
        };
        written.map_err(told)
    }
}

/// The result of an insert, as it is remembered.
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
    // Before the first of them: who is refused has written nothing.
    statement.admit_shapes(|| writes.shape_hashes())?;
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
        let (count, outcome) = match (writes.check_uuid(statement, write), &write.op) {
            (Err(error), _) => (1, Err(error)),
            (Ok(()), WriteOp::Insert(_)) => run.insert(next)?,
            (Ok(()), _) => (1, run.one(next, id)),
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
        // Only long commands ask, as the others have one group anyway.
        let is_long = self.writes.statements.len() - first > insert::GROUP_MAX;
        let series = is_long.then(|| self.series(first)).flatten();
        let count_max = match series {
            _ if self.single > 0 || apart => 1,
            Some(_) => insert::MEASUREMENTS_MAX,
            None => insert::GROUP_MAX,
        };
        let fails = |doc| {
            series
                .as_ref()
                .is_some_and(|series| !timeseries::insert::is_measurement(doc, series))
        };
        let numbered = (first..).zip(&writes.statements[first..]);
        let docs = numbered.map_while(|(index, write)| match write.op {
            WriteOp::Insert(doc) if write.ns == ns => {
                let id = writes.ids.of(index);
                let goes_along = index == first || (self.retryable.executed(id).is_none() && !fails(doc));
                goes_along.then(|| (doc, self.retryable.logged(id, Image::None)))
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

    /// The options of the time-series collection that the insert at `index` is into.
    fn series(&self, index: usize) -> Option<TimeSeries> {
        let ns = self.writes.ns(&self.writes.statements[index]);
        let read = self.statement.current_view();
        read.view().catalog().get(ns)?.timeseries().cloned()
    }

    /// Runs the update or delete at `index`.
    fn one(&mut self, index: usize, id: i32) -> Result<StatementResult> {
        let result = self.write(index, id).map(Written::into_result);
        self.observe(index, result.as_ref());
        result
    }

    fn write(&mut self, index: usize, id: i32) -> Result<Written> {
        let (statement, write) = (self.statement, &self.writes.statements[index]);
        let shape = self.writes.shape(write);
        statement.describe(shape.clone());
        let later = (self.writes.ticks && index > 0).then(|| self.op.later(u32::try_from(index).unwrap_or(u32::MAX)));
        let under = (later.as_ref().unwrap_or(&self.op), &self.scope);
        let read = statement.current_view();
        let mut operation = Operation::of_statement(self.writes, write, shape, read.view(), under)?;
        drop(read);
        operation.log_as(self.retryable.logged(id, Image::None));
        operation.write(statement, &mut self.progress)
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
