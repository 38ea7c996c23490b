//! Replies of `insert`, `update` and `delete`: counts, what was upserted, and errors of statements.

use super::Progress;
use super::statements::{Report, WriteOp};
use crate::Context;
use crate::sessions::StatementResult;
use crate::write_concern::WriteConcern;
use nestor_model::{Error, RawWriter, Result, Value};

/// The results of a command's statements, added up.
#[derive(Debug, Default)]
pub struct Totals {
    /// Documents inserted, matched or deleted.
    pub n: i64,
    /// Documents changed.
    pub modified: i64,
    /// Positions of statements that inserted a document, with its `_id`.
    upserted: Vec<(usize, Value)>,
    /// Positions of statements that failed, and why.
    errors: Vec<(usize, Error)>,
}

impl Report for Totals {
    fn done(&mut self, index: usize, op: &WriteOp<'_>, done: &StatementResult) {
        self.n += done.n;
        self.modified += done.n_modified;
        // What an insert that was read back from the oplog says of its `_id` is of no use here.
        if let (Some(id), WriteOp::Update(_)) = (&done.upserted, op) {
            self.upserted.push((index, id.clone()));
        }
    }

    fn failed(&mut self, index: usize, _: &WriteOp<'_>, error: Error) {
        self.errors.push((index, error));
    }
}

impl Totals {
    /// Writes the reply of a command that has run; `with_modified` says that its statements are updates.
    pub fn finish(
        &self,
        context: &mut Context<'_>,
        progress: Progress,
        with_modified: bool,
        reply: &mut RawWriter,
    ) -> Result<()> {
        append_count(reply, "n", self.n);
        self.append_upserted(reply);
        if with_modified {
            append_count(reply, "nModified", self.modified);
        }
        // Without acknowledgement nobody is told of failures.
        let concern = context.generic.write_concern.as_ref();
        if !concern.is_some_and(WriteConcern::is_unacknowledged) {
            self.append_errors(reply);
        }
        context.finish_write(progress, reply)
    }

    fn append_upserted(&self, reply: &mut RawWriter) {
        if self.upserted.is_empty() {
            return;
        }
        reply.begin_array("upserted");
        for (i, (index, id)) in self.upserted.iter().enumerate() {
            reply.begin_document_at(i);
            reply.append("index", *index as i32);
            reply.append("_id", id);
            reply.end();
        }
        reply.end();
    }

    fn append_errors(&self, reply: &mut RawWriter) {
        if self.errors.is_empty() {
            return;
        }
        reply.begin_array("writeErrors");
        for (i, (index, error)) in self.errors.iter().enumerate() {
            reply.begin_document_at(i);
            reply.append("index", *index as i32);
            append_error(error, reply);
            reply.end();
        }
        reply.end();
    }
}

/// Appends `code`, the extra fields and `errmsg` of an error within a reply.
fn append_error(error: &Error, reply: &mut RawWriter) {
    reply.append("code", error.code().number());
    if let Some(extra) = error.extra() {
        for (name, value) in extra.iter() {
            reply.append(name, value);
        }
    }
    reply.append("errmsg", error.message());
}

/// Appends a count: an int, or a long when it does not fit.
pub fn append_count(reply: &mut RawWriter, name: &str, count: i64) {
    match i32::try_from(count) {
        Ok(small) => reply.append(name, small),
        Err(_) => reply.append(name, count),
    }
}
