//! Replies of `insert`, `update` and `delete`: counts, what was upserted, and errors of statements.

use crate::context::Context;
use nestor_database::concern::write::{Acknowledgement, WriteConcern};
use nestor_database::concern::write::{implicit_concern, unsatisfiable};
use nestor_database::sessions::StatementResult;
use nestor_database::statement::Wait;
use nestor_database::write::Progress;
use nestor_database::write::statements::{Report, WriteOp};
use nestor_model::{Document, Error, ErrorCode, RawWriter, Result, Timestamp, Value, bail, doc};
use nestor_storage::Lsn;
use nestor_storage::topology::election_id;

/// Bytes that all errors of a reply carry beside their codes: clients refuse replies that are much larger than a document may be.
const ERRORS_BYTES_MAX: usize = 8 << 20;

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
        // The `_id` of an insert that was read back from the oplog is not reported.
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
        let concern = context.terms.write_concern.as_ref();
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
        let mut left = ERRORS_BYTES_MAX;
        for (i, (index, error)) in self.errors.iter().enumerate() {
            reply.begin_document_at(i);
            reply.append("index", *index as i32);
            append_error(error, &mut left, reply);
            reply.end();
        }
        reply.end();
    }
}

/// Appends `code`, the extra fields and `errmsg` of an error within a reply. Of those that do not fit into the bytes `left` extra fields are
/// left out, and the message is empty.
fn append_error(error: &Error, left: &mut usize, reply: &mut RawWriter) {
    let mut fits = |bytes: usize| {
        let rest = left.checked_sub(bytes);
        *left = rest.unwrap_or(*left);
        rest.is_some()
    };
    let message = match fits(error.message().len()) {
        true => error.message(),
        false => "",
    };
    reply.append("code", error.code().number());
    for (name, value) in error.extra().iter().flat_map(|extra| extra.iter()) {
        if fits(name.len() + value.to_value().weight()) {
            reply.append(name, value);
        }
    }
    reply.append("errmsg", message);
}

/// Appends a count: an int, or a long when it does not fit.
pub fn append_count(reply: &mut RawWriter, name: &str, count: i64) {
    match i32::try_from(count) {
        Ok(small) => reply.append(name, small),
        Err(_) => reply.append(name, count),
    }
}

impl Context<'_> {
    /// Finishes a write command's reply: write concern, times.
    pub fn finish_write(&mut self, progress: Progress, reply: &mut RawWriter) -> Result<()> {
        if self.terms.in_transaction && progress.failures > 0 {
            self.effects.abort = true;
        }
        if !progress.retried.is_empty() {
            reply.begin_array("retriedStmtIds");
            for (i, id) in progress.retried.iter().enumerate() {
                reply.append_index(i, *id);
            }
            reply.end();
        }
        self.finish_concern(progress.last, reply, true)?;
        if progress.failures > 0 {
            // They may have met states that are newer than the commits of the command before them.
            self.await_what_is_seen();
        }
        Ok(())
    }

    /// Applies the write concern to what was committed last, or seen if nothing was: sets the wait, or appends a
    /// `writeConcernError`.
    pub fn finish_concern(
        &mut self,
        last: Option<(Lsn, Timestamp)>,
        reply: &mut RawWriter,
        with_optime: bool,
    ) -> Result<()> {
        if let Some((_, optime)) = last {
            self.effects.operation_time = Some(optime);
        }
        let replica_set = self.service.options.replica_set.is_some();
        let concern = self.terms.write_concern.clone();
        let concern = concern.unwrap_or_else(|| implicit_concern(replica_set));
        if let Some((lsn, optime)) = last {
            if replica_set && with_optime {
                let term = self.service.engine.term();
                reply.append("electionId", election_id(term));
                reply.begin_document("opTime");
                reply.append("ts", optime);
                reply.append("t", term);
                reply.end();
            }
            if let Some(guarantee) = self.guarantee(&concern) {
                self.effects.wait = Some(Wait {
                    lsn,
                    guarantee,
                    timeout: concern.timeout,
                    is_read: false,
                });
            }
        } else {
            self.await_what_is_seen();
        }
        self.note_concern_error();
        Ok(())
    }

    /// Has the reply say so when the write concern can never be satisfied, be the reply an error or not.
    pub fn note_concern_error(&mut self) {
        let Some(concern) = &self.terms.write_concern else {
            return;
        };
        if self.service.options.replica_set.is_none() || self.after.write_concern_error.is_some() {
            return;
        }
        if let Some((code, message)) = unsatisfiable(concern, || self.service.engine.topology()) {
            let provenance = match self.terms.is_default_concern {
                true => "customDefault",
                false => "clientSupplied",
            };
            self.after.write_concern_error = Some(concern_error(code, &message, concern, provenance));
        }
    }
}

fn concern_error(code: ErrorCode, message: &str, concern: &WriteConcern, provenance: &str) -> Document {
    let w = match &concern.w {
        Acknowledgement::Nodes(n) => Value::Int32(*n as i32),
        Acknowledgement::Majority => "majority".into(),
        Acknowledgement::Mode(mode) => mode.clone().into(),
        Acknowledgement::Tags(tags) => {
            let count = |count: u32| Value::Int32(i32::try_from(count).unwrap_or(i32::MAX));
            Value::Document(
                tags.iter()
                    .map(|(name, wanted)| (name.as_str().into(), count(*wanted)))
                    .collect(),
            )
        }
    };
    let wtimeout = concern.timeout.map_or(0, |t| t.as_millis() as i32);
    doc! {
        "code": code.number(),
        "codeName": code.name(),
        "errmsg": message,
        "errInfo": doc! {
            "writeConcern": doc! { "w": w, "wtimeout": wtimeout, "provenance": provenance },
        },
    }
}

/// Refuses client-side encryption's own argument: what it changes about a write is not done here.
pub fn refuse_encryption(encryption: Option<nestor_model::RawDoc<'_>>) -> Result<()> {
    match encryption {
        Some(_) => bail!(NotImplemented, "encryptionInformation is not supported"),
        None => Ok(()),
    }
}
