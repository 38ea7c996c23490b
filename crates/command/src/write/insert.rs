//! Inserting many documents with few commits.

use super::{Progress, WriteError, prepare, writable};
use crate::Context;
use crate::validate::Validator;
use nestor_exec::write::Writer;
use nestor_model::{Error, ErrorCode, Namespace, RawDoc, RawDocBuf, Result};
use nestor_query::env::OpContext;
use nestor_storage::WriteSet;

/// Documents per commit at most.
const GROUP_MAX: usize = 1_000;
/// Bytes per commit at most, about.
const GROUP_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A document to insert.
pub struct Statement<'a> {
    /// Position in the command.
    pub index: usize,
    /// As the client sent it.
    pub doc: RawDoc<'a>,
    /// Its id, for the oplog of a retryable write.
    pub stmt_id: Option<i32>,
}

/// Inserts the statements in order; `done` is told of each success. Stops at the first failure when `ordered`.
pub fn insert_all(
    context: &Context<'_>,
    ns: &Namespace,
    op: &OpContext,
    statements: &[Statement<'_>],
    options: InsertOptions,
    progress: &mut Progress,
    mut done: impl FnMut(&Statement<'_>, &RawDocBuf),
) -> Result<()> {
    let mut rest = statements;
    // Statements of a group stand and fall together until one fails; from then on each has a commit of its own
    // until as many went well.
    let mut single = 0usize;
    while !rest.is_empty() {
        context.interrupt.check()?;
        let group = if single > 0 { &rest[..1] } else { group_of(rest) };
        match insert_group(context, ns, op, group, options, progress) {
            Ok(docs) => {
                for (statement, doc) in group.iter().zip(&docs) {
                    done(statement, doc);
                }
                single = single.saturating_sub(1);
                rest = &rest[group.len()..];
            }
            Err(error) if is_fatal(&error) => return Err(error),
            Err(error) if group.len() == 1 => {
                progress.errors.push(WriteError {
                    index: group[0].index,
                    error,
                });
                if options.ordered {
                    return Ok(());
                }
                rest = &rest[1..];
            }
            Err(_) => single = group.len(),
        }
    }
    Ok(())
}

/// How to insert.
#[derive(Clone, Copy, Debug)]
pub struct InsertOptions {
    /// Leave timestamps of zero as they are (`bypassEmptyTsReplacement`).
    pub keep_empty_times: bool,
    /// Stop at the first failure.
    pub ordered: bool,
    /// Do not apply the collection's validator.
    pub bypass_validation: bool,
}

/// Errors that end the command, not one statement.
pub fn is_fatal(error: &Error) -> bool {
    matches!(
        error.code(),
        ErrorCode::Interrupted
            | ErrorCode::MaxTimeMSExpired
            | ErrorCode::CursorKilled
            | ErrorCode::ClientDisconnect
            | ErrorCode::InterruptedAtShutdown
            | ErrorCode::ShutdownInProgress
    )
}

fn group_of<'s, 'a>(rest: &'s [Statement<'a>]) -> &'s [Statement<'a>] {
    let mut bytes = 0usize;
    let fits = rest
        .iter()
        .take(GROUP_MAX)
        .take_while(|statement| {
            let first = bytes == 0;
            bytes += statement.doc.len();
            first || bytes <= GROUP_BYTES_MAX
        })
        .count();
    &rest[..fits.max(1)]
}

fn insert_group(
    context: &Context<'_>,
    ns: &Namespace,
    op: &OpContext,
    group: &[Statement<'_>],
    options: InsertOptions,
    progress: &mut Progress,
) -> Result<Vec<RawDocBuf>> {
    let docs = group
        .iter()
        .map(|statement| prepare::for_insert(statement.doc, op, !options.keep_empty_times))
        .collect::<Result<Vec<_>>>()?;
    let mut uuid = None;
    context.atomically(progress, |ws: &mut WriteSet| {
        let collection = writable(ws, ns, context, &mut uuid)?;
        let validator = Validator::of(context, &collection, options.bypass_validation)?;
        let origin = context.origin(&ns.db);
        let mut writer = Writer::new(ws, collection, op, origin)?;
        for (statement, doc) in group.iter().zip(&docs) {
            if let Some(validator) = &validator {
                validator.check(doc.as_raw(), op)?;
            }
            writer.insert(doc.clone(), statement.stmt_id)?;
        }
        context.observe_keys(&writer);
        Ok(())
    })?;
    Ok(docs)
}
