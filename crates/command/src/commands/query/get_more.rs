//! `getMore`: the next batch of a cursor, or with exhaust one after the other.

use crate::args::{Long, NonNegative};
use crate::batch::{self, End, Stream};
use crate::context::Context;
use crate::facts::{Facts, Flags, Preparation};
use crate::needs::Needs;
use crate::privileges;
use crate::query_stats;
use crate::request::{Park, Sequence, Wake};
use crate::service::Service;
use crate::spec::CommandSpec;
use nestor_database::cursors::ClientCursor;
use nestor_database::names;
use nestor_database::observe::figures;
use nestor_database::observe::op_kind::OpKind;
use nestor_database::statement::transaction::ReadView;
use nestor_exec::summary::lost_index;
use nestor_exec::{Batch, Interrupt};
use nestor_model::statement;
use nestor_model::{Namespace, RawDoc, RawWriter, Result, ValueRef, bail};
use nestor_storage::log::LogSignal;
use std::time::{Duration, Instant};

/// The command.
pub const SPEC: CommandSpec = Facts::collection_in("getMore", "collection", "The next batch of a cursor.")
    .flags(
        Flags::API_V1
            .and(Flags::TXN)
            .and(Flags::LONG)
            .and(Flags::OWN_TIME)
            // Sessions send theirs with every command; the cursor goes on with what it was opened with.
            .and(Flags::READ_CONCERN)
            .and(Flags::FOR_REPLY)
            .and(Flags::USUALLY_SHORT),
    )
    .op(OpKind::GetMore)
    .prepared_as(Preparation::GetMore)
    .needs(Needs::Login)
    .runs(run);

/// How long an awaitData cursor waits when the client does not say.
const AWAIT_DEFAULT: Duration = Duration::from_secs(1);

crate::args! {
    /// Arguments of `getMore`.
    pub struct GetMoreArgs<'a>: "getMore" command {
        "getMore" => id: Long,
        "collection" => coll: &'a str,
        "batchSize" => batch_size: Option<NonNegative>,
        "term" => term: Option<Long>,
        "lastKnownCommittedOpTime" => last_known: Option<RawDoc<'a>>,
        "includeQueryStatsMetrics" => include_query_stats_metrics: bool,
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let (args, ns) = prepare(context, context.body, context.sequences)?;
    let kill = context.conn.slot.kill.clone();
    let user = privileges::user(context).cloned();
    let txn_number = context.terms.txn_number.filter(|_| context.terms.in_transaction);
    let mut cursor =
        context
            .service
            .cursors
            .take(args.id.0, &ns, (context.terms.lsid, txn_number), user.as_ref(), &kill)?;
    if !privileges::still_allowed(context, &cursor.privileges) {
        context.service.cursors.give_back(cursor)?;
        bail!(Unauthorized, "not authorized for getMore with cursor id {}", args.id.0);
    }
    if let Err(refused) = context.admit_batch(&cursor.limits) {
        context.service.cursors.give_back(cursor)?;
        return Err(refused);
    }
    context.figures.borrow_mut().originating = Some(cursor.originating.clone());
    if context.generic.max_time_ms.is_some() && !cursor.await_data {
        context.service.cursors.give_back(cursor)?;
        bail!(
            BadValue,
            "cannot set maxTimeMS on getMore command for a non-awaitData cursor"
        );
    }
    let begun = Instant::now();
    let returned_before = cursor.returned;
    let result = next_batch(context, &args, &mut cursor, reply);
    if let Some(recording) = &mut cursor.recording {
        recording.add(query_stats::cost(&context.figures.borrow(), begun.elapsed()));
    }
    let is_empty = cursor.returned == returned_before;
    let cursors = &context.service.cursors;
    match result {
        Ok(true) => {
            cursor.root.save();
            cursors.give_back(cursor)?;
            // Empty batches that nothing was waited for would follow each other without end.
            let paced = !is_empty || context.conn.parked.is_some();
            if context.exhaust_allowed && context.after.park.is_none() && paced {
                context.after.exhaust = Some(context.body.to_buf());
            }
            Ok(())
        }
        Ok(false) => {
            cursors.close(&cursor);
            Ok(())
        }
        Err(error) => {
            cursors.close(&cursor);
            Err(error)
        }
    }
}

/// Reads the arguments, with the namespace of the cursor.
pub(crate) fn prepare<'a>(
    context: &Context<'_>,
    body: RawDoc<'a>,
    sequences: &'a [Sequence<'a>],
) -> Result<(GetMoreArgs<'a>, Namespace)> {
    let args = GetMoreArgs::parse(body, sequences)?;
    let ns = names::cursor_namespace(context.db(), args.coll)?;
    Ok((args, ns))
}

/// Closes the cursor of a `getMore` that was to run again, when its client has gone meanwhile.
pub fn abandon(service: &Service, body: RawDoc<'_>) {
    if let Some(ValueRef::Int64(id)) = body.get(SPEC.name) {
        service.cursors.kill(id, None);
    }
}

/// Writes the batch; `false` when the cursor is exhausted.
fn next_batch(
    context: &mut Context<'_>,
    args: &GetMoreArgs<'_>,
    cursor: &mut ClientCursor,
    reply: &mut RawWriter,
) -> Result<bool> {
    let read = match &cursor.snapshot {
        Some(pinned) => ReadView::Snapshot(pinned.clone()),
        None => context.current_view(),
    };
    let view = read.view();
    if let Some((id, ns)) = &cursor.collection {
        let there = view.catalog().by_id(*id).is_some_and(|now| now.ns == *ns);
        if !there {
            bail!(
                QueryPlanKilled,
                "collection dropped or renamed: {} while its cursor was open",
                cursor.ns
            );
        }
    }
    if let Some(lost) = lost_index(
        &*cursor.root,
        view.catalog(),
        cursor.collection.as_ref().map(|(id, _)| *id),
    ) {
        bail!(
            QueryPlanKilled,
            "query plan killed :: index '{}' was dropped while the cursor on {} was open",
            lost.name,
            cursor.ns
        );
    }
    reply.begin_document("cursor");
    reply.begin_array("nextBatch");
    let started = Instant::now();
    let count_max = args
        .batch_size
        .map_or(u64::MAX, |n| if n.0 == 0 { u64::MAX } else { n.0 as u64 });
    let before = figures::so_far(&cursor.root);
    context.note_plan(&*cursor.root);
    let filled = {
        if cursor.time_left.is_some() && context.service.node.gates.times_out() {
            bail!(MaxTimeMSExpired, "operation exceeded time limit");
        }
        // maxTimeMS of the opening command limits the work of all batches together; that of an awaitData
        // getMore limits the waiting only.
        let deadline = cursor.time_left.map(|left| started + left);
        let interrupt = Interrupt::new(context.conn.slot.kill.clone(), deadline);
        let dir = cursor.disk_use.then_some(&context.service.spill_dir);
        let mut batch = Batch::new(view, &cursor.op, &interrupt)
            .with_spill_dir(dir)
            .with_plan_cache(Some(&context.service.plan_cache))
            .with_oplog(&*context.service.open_oplog)
            .with_log(&*context.service.read_log, context.service.images_since_ms());
        batch.columns = Some(&context.service.columns);
        batch.memory_bytes_max = context.service.blocking_memory_bytes_max();
        statement::under(&interrupt, context.conn.slot.account.as_ref(), || {
            batch::fill(&mut cursor.root, &mut cursor.pending, &mut batch, reply, count_max)
        })
    };
    context.observe_since(&*cursor.root, before);
    let (count, end) = filled?;
    reply.end();
    if let Some(left) = &mut cursor.time_left {
        *left = left.saturating_sub(started.elapsed());
    }
    cursor.returned += count;
    cursor.batches += 1;
    let stream = batch::append_resume_token(&*cursor.root, cursor.pending.is_some(), reply);
    let keep = match stream {
        Some(stream) => stream != Stream::Over,
        None => end == End::Full || cursor.tailable,
    };
    context.observe_batch(count, if keep { cursor.id } else { 0 });
    context.figures.borrow_mut().cursor_id = Some(cursor.id);
    reply.append("id", if keep { cursor.id } else { 0 });
    reply.append_namespace("ns", &cursor.ns);
    reply.end();
    drop(read);
    let waits = keep && stream != Some(Stream::Behind);
    if count == 0 && end == End::Eof && cursor.tailable && cursor.await_data && waits {
        let signal = cursor.root.report().stream.and_then(|stream| stream.signal.cloned());
        park(context, signal);
    }
    Ok(keep)
}

/// Nothing there yet: asks to be run again when there is news, or for want of a signal when something commits, until the time to
/// wait is over.
fn park(context: &mut Context<'_>, signal: Option<LogSignal>) {
    let wait = match context.generic.max_time_ms {
        Some(ms) => Duration::from_millis(ms.into()),
        None => AWAIT_DEFAULT,
    };
    let since = context.conn.parked.unwrap_or_else(Instant::now);
    let until = since + wait;
    if Instant::now() < until {
        let wake = signal.map_or(Wake::Commit, Wake::Log);
        context.after.park = Some(Park { until, wake });
    }
}
