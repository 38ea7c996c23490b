//! Cursor replies: the first batch, and the ones after it.

use crate::context::Context;
use crate::privileges;
use nestor_database::cursors::ClientCursor;
use nestor_exec::{Batch, BoxOperator, Operator, Row, RowDoc, Step, docs_examined};
use nestor_model::{Namespace, RawWriter, Result, bail, raw};
use nestor_planner::NodeKind;
use nestor_query::env::OpContext;
use nestor_storage::{CollectionId, Snapshot, View};
use std::sync::Arc;
use std::time::Instant;

/// Documents in a first batch when the client does not say.
pub const FIRST_BATCH: u64 = 101;
/// Bytes of documents in one batch: as many as one document may have.
pub const BATCH_BYTES_MAX: usize = raw::DOCUMENT_BYTES_MAX;

/// Bytes of one document of a result: a stored document and what stages may add to it.
const RESULT_BYTES_MAX: usize = raw::DOCUMENT_BYTES_MAX + 16 * 1024;

/// How filling a batch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The batch is full; there may be more.
    Full,
    /// The plan has no more rows now.
    Eof,
}

/// Pulls rows into the open array of `reply` until `count_max` documents or 16 MiB are there.
/// A row too many is left in `pending`.
pub fn fill(
    root: &mut BoxOperator,
    pending: &mut Option<Row>,
    batch: &mut Batch<'_>,
    reply: &mut RawWriter,
    count_max: u64,
) -> Result<(u64, End)> {
    let start = reply.len();
    let mut count = 0u64;
    root.expect(
        usize::try_from(count_max)
            .unwrap_or(usize::MAX)
            .saturating_sub(usize::from(pending.is_some())),
    );
    while count < count_max {
        let row = match pending.take() {
            Some(row) => row,
            None => match root.next(batch)? {
                Step::Row(row) => row,
                Step::Eof => return Ok((count, End::Eof)),
                // Nobody limits the budget of a client's batch.
                Step::Pause => continue,
            },
        };
        let before = reply.len();
        let mut row = row;
        if count > 0 {
            let room = BATCH_BYTES_MAX.saturating_sub(before - start);
            let mut len = row.doc.byte_len();
            // The length of what is no bytes yet is not known: near the limit it becomes bytes.
            if len.is_none() && 2 * row.doc.size() > room {
                row.doc = RowDoc::Raw(row.doc.to_raw());
                len = row.doc.byte_len();
            }
            if len.is_some_and(|len| len > room) {
                *pending = Some(row);
                return Ok((count, End::Full));
            }
        }
        row.doc.append_to(reply, count as usize);
        if reply.len() - before > RESULT_BYTES_MAX {
            check_size(reply.len() - before, count)?;
        }
        count += 1;
        if reply.len() - start >= BATCH_BYTES_MAX {
            break;
        }
    }
    // Nothing is looked for behind a full batch: a cursor that has just reached its limit stays open, as on MongoDB since 5.0.
    // A command's own list is there whole, and says that it has ended.
    let is_list = root.report().kind == NodeKind::QueuedData;
    let end = match is_list && pending.is_none() && root.is_done() {
        true => End::Eof,
        false => End::Full,
    };
    Ok((count, end))
}

/// Refuses element `index` of a batch if its document is too large. `bytes` are those of the element: type byte, index and zero byte
/// stand before the document.
#[cold]
fn check_size(bytes: usize, index: u64) -> Result<()> {
    let head = 2 + index.checked_ilog10().map_or(1, |digits| digits as usize + 1);
    let size = bytes - head;
    if size > RESULT_BYTES_MAX {
        bail!(
            BSONObjectTooLarge,
            "BSONObj size: {size} is invalid. Size must be between 0 and {RESULT_BYTES_MAX}"
        );
    }
    Ok(())
}

/// The facts about a new cursor that its command knows.
pub struct Opening {
    /// Namespace of the reply and of later `getMore`s.
    pub ns: Namespace,
    /// The collection read, if any.
    pub collection: Option<(CollectionId, Namespace)>,
    /// The plan.
    pub root: BoxOperator,
    /// Time, variables, randomness.
    pub op: OpContext,
    /// Documents in the first batch; `None` for the default.
    pub batch_size: Option<u64>,
    /// Close after the first batch whatever is left.
    pub single_batch: bool,
    /// Stays open at the end of data.
    pub tailable: bool,
    /// Waits at the end of data.
    pub await_data: bool,
    /// Never times out while idle.
    pub no_timeout: bool,
    /// Blocking operators may spill.
    pub disk_use: bool,
    /// Read this very state in later batches too.
    pub pinned: Option<Snapshot>,
}

impl Opening {
    /// A cursor over a plan without a collection.
    pub fn of_values(ns: Namespace, root: BoxOperator, op: OpContext) -> Self {
        Self {
            ns,
            collection: None,
            root,
            op,
            batch_size: None,
            single_batch: false,
            tailable: false,
            await_data: false,
            no_timeout: false,
            disk_use: true,
            pinned: None,
        }
    }
}

/// Runs the first batch and writes `cursor: {firstBatch, id, ns}`.
pub fn first(context: &Context<'_>, view: &dyn View, mut opening: Opening, reply: &mut RawWriter) -> Result<()> {
    reply.begin_document("cursor");
    reply.begin_array("firstBatch");
    let mut pending = None;
    let count_max = opening.batch_size.unwrap_or(FIRST_BATCH);
    let filled = {
        context.note_plan(&*opening.root);
        let mut batch = nestor_database::read::batch(context, view, &opening.op, opening.disk_use);
        fill(&mut opening.root, &mut pending, &mut batch, reply, count_max)
    };
    context.observe(&*opening.root);
    let (count, end) = filled?;
    reply.end();
    let stream = append_resume_token(&*opening.root, pending.is_some(), reply);
    let keep = match end {
        _ if stream.is_some() => stream != Some(Stream::Over),
        End::Full => !opening.single_batch,
        // A tailable cursor without any position is dead at once, as in MongoDB.
        End::Eof => opening.tailable && !opening.single_batch && docs_examined(&*opening.root) > 0,
    };
    let ns = opening.ns.clone();
    let id = if keep {
        register(context, opening, pending, count)?
    } else {
        0
    };
    context.observe_batch(count, id);
    reply.append("id", id);
    reply.append_namespace("ns", &ns);
    append_time(context, reply);
    reply.end();
    Ok(())
}

/// How a change stream goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// It has ended.
    Over,
    /// It goes on reading, although the batch has no more events.
    Behind,
    /// It waits for more to happen, or has events for the next batch.
    Open,
}

/// Appends `postBatchResumeToken` if `root` is a change stream: where one resumes that has seen the batch. `has_pending`: the last
/// event that was pulled is not in it.
pub fn append_resume_token(root: &dyn Operator, has_pending: bool, reply: &mut RawWriter) -> Option<Stream> {
    let stream = root.report().stream?;
    let token = if has_pending { stream.before } else { stream.at };
    reply.append("postBatchResumeToken", &token.to_document());
    Some(match stream {
        _ if stream.is_over && !has_pending => Stream::Over,
        _ if stream.is_behind => Stream::Behind,
        _ => Stream::Open,
    })
}

fn register(context: &Context<'_>, mut opening: Opening, pending: Option<Row>, returned: u64) -> Result<i64> {
    opening.root.save();
    let now = Instant::now();
    let time_left = context
        .interrupt
        .deadline()
        // The deadline of a command that opens a waiting cursor is for its own batch alone.
        .filter(|_| !opening.await_data)
        .map(|deadline| deadline.saturating_duration_since(now));
    context.service.cursors.open(Box::new(ClientCursor {
        id: 0,
        ns: opening.ns,
        lsid: context.terms.lsid,
        user: privileges::user(context).cloned().map(Arc::new),
        privileges: privileges::asked(context).into(),
        limits: context.limits_of_shape(),
        recording: None,
        txn_number: context.terms.txn_number.filter(|_| context.terms.in_transaction),
        collection: opening.collection,
        root: opening.root,
        pending,
        op: opening.op,
        snapshot: opening.pinned,
        tailable: opening.tailable,
        await_data: opening.await_data,
        no_timeout: opening.no_timeout,
        disk_use: opening.disk_use,
        originating: Arc::new(context.body.to_buf()),
        created: now,
        last_used: now,
        time_left,
        returned,
        batches: 1,
    }))
}

/// Writes an exhausted cursor without documents.
pub fn empty(context: &Context<'_>, ns: &Namespace, reply: &mut RawWriter) {
    context.observe_batch(0, 0);
    reply.begin_document("cursor");
    reply.begin_array("firstBatch");
    reply.end();
    reply.append("id", 0i64);
    reply.append_namespace("ns", ns);
    append_time(context, reply);
    reply.end();
}

/// Appends `atClusterTime`, of a snapshot read.
pub fn append_time(context: &Context<'_>, reply: &mut RawWriter) {
    if let Some(time) = context.at_cluster_time.get() {
        reply.append("atClusterTime", time);
    }
}
