//! The sections of `serverStatus` about operations: how many, how long, which run now.

use crate::context::Context;
use crate::facts::Flags;
use nestor_database::connections::Waits;
use nestor_database::observe::latency::{CLASSES, Class};
use nestor_database::turns::Turns;
use nestor_database::turns::probe::Changes;
use nestor_model::RawWriter;

/// `globalLock`: operations under way. There is no such lock; but for `fsync` with `lock`, which all writes wait for,
/// operations do not queue.
pub(super) fn global_lock(context: &Context<'_>, reply: &mut RawWriter) {
    let (mut active, mut readers, mut writers, mut queued) = (0, 0, 0, 0);
    for slot in context.service.connections.all() {
        let operation = crate::lock(&slot.operation);
        if operation.opid == 0 {
            continue;
        }
        match operation.waits {
            Some(Waits::ForLock) => queued += 1,
            Some(Waits::ForNews) => continue,
            None => match context.service.commands.lookup(operation.command) {
                Some(facts) if facts.flags.has(Flags::WRITE) => writers += 1,
                Some(facts) if facts.op.class() == Class::Reads => readers += 1,
                _ => {}
            },
        }
        active += 1;
    }
    reply.append("totalTime", context.service.started.elapsed().as_micros() as i64);
    for (name, total, readers, writers) in [
        ("currentQueue", queued, 0, queued),
        ("activeClients", active, readers, writers),
    ] {
        reply.begin_document(name);
        reply.append("total", total);
        reply.append("readers", readers);
        reply.append("writers", writers);
        reply.end();
    }
}

/// `queues`: the turns that long operations take, those of reads and those of writes; short operations take none.
pub(super) fn queues(_: &Context<'_>, reply: &mut RawWriter) {
    reply.begin_document("execution");
    for (name, turns) in [("write", Turns::of_writes()), ("read", Turns::of_reads())] {
        reply.begin_document(name);
        tickets(turns, reply);
        reply.end();
    }
    let changes = [Turns::of_reads(), Turns::of_writes()].map(|turns| turns.changes().unwrap_or_default());
    let sum = |of: fn(&Changes) -> u64| i64::try_from(changes.iter().map(of).sum::<u64>()).unwrap_or(i64::MAX);
    reply.begin_document("monitor");
    reply.append("timesDecreased", sum(|changes| changes.lowered));
    reply.append("timesIncreased", sum(|changes| changes.raised));
    reply.append("totalAmountDecreased", sum(|changes| changes.lowered_by));
    reply.append("totalAmountIncreased", sum(|changes| changes.raised_by));
    reply.end();
    reply.end();
}

fn tickets(turns: &Turns, reply: &mut RawWriter) {
    let counts = turns.counts();
    let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    reply.append("out", counts.running as i32);
    reply.append("available", turns.limit().saturating_sub(counts.running) as i32);
    reply.append("totalTickets", turns.limit() as i32);
    reply.begin_document("normalPriority");
    for (name, n) in [
        ("addedToQueue", counts.queued),
        ("removedFromQueue", counts.queued.saturating_sub(counts.waiting as u64)),
        ("queueLength", counts.waiting as u64),
        ("startedProcessing", counts.admitted),
        ("processing", counts.running as u64),
        (
            "finishedProcessing",
            counts.admitted.saturating_sub(counts.running as u64),
        ),
        ("canceled", counts.left),
        ("totalTimeQueuedMicros", counts.queued_micros),
    ] {
        reply.append(name, count(n));
    }
    reply.end();
}

/// `opLatencies`, with histograms if `{opLatencies: {histograms: true}}` asks for them.
pub(super) fn latencies(context: &Context<'_>, reply: &mut RawWriter) {
    let with_histograms = context
        .body
        .get("opLatencies")
        .and_then(|options| options.as_document())
        .and_then(|options| options.get("histograms").map(|wanted| wanted.truthy()))
        .unwrap_or(false);
    for (class, name) in CLASSES {
        let latency = context.service.node.counters.metrics.latency(class);
        reply.append(name, &latency.document(with_histograms));
    }
}

/// `opcounters`.
pub(super) fn counters(context: &Context<'_>, reply: &mut RawWriter) {
    let operations = &context.service.node.counters.operations;
    for (name, counter) in [
        ("insert", &operations.insert),
        ("query", &operations.query),
        ("update", &operations.update),
        ("delete", &operations.delete),
        ("getmore", &operations.getmore),
        ("command", &operations.command),
    ] {
        reply.append(name, counter.get());
    }
}

/// `opcountersRepl`: a set of one replicates nothing from others.
pub(super) fn replicated(_: &Context<'_>, reply: &mut RawWriter) {
    for name in ["insert", "query", "update", "delete", "getmore", "command"] {
        reply.append(name, 0i64);
    }
}

/// `transactions`. None is ever prepared: that is for those of several shards.
pub(super) fn transactions(context: &Context<'_>, reply: &mut RawWriter) {
    let counts = &context.service.node.transactions;
    let (open, active) = counts.open();
    reply.append("currentActive", active);
    reply.append("currentInactive", (open - active).max(0));
    reply.append("currentOpen", open);
    reply.append("totalAborted", counts.aborted.get());
    reply.append("totalCommitted", counts.committed.get());
    reply.append("totalStarted", counts.started.get());
    for name in [
        "totalPrepared",
        "totalPreparedThenCommitted",
        "totalPreparedThenAborted",
        "currentPrepared",
    ] {
        reply.append(name, 0i64);
    }
    if let Some(last) = counts.last_committed() {
        reply.begin_document("lastCommittedTransaction");
        reply.append("operationCount", last.operations as i64);
        reply.append("oplogOperationBytes", last.bytes as i64);
        reply.end();
    }
}
