//! `metrics` of `serverStatus`.

use crate::context::Context;
use nestor_database::observe::metrics::Work;
use nestor_model::RawWriter;

/// The section.
pub(super) fn write(context: &Context<'_>, reply: &mut RawWriter) {
    let service = context.service;
    let work = |kind| service.node.counters.metrics.work(kind);
    let group = |reply: &mut RawWriter, name: &str, numbers: &[(&str, i64)]| {
        reply.begin_document(name);
        for (name, number) in numbers {
            reply.append(name, *number);
        }
        reply.end();
    };
    let expiry_passes = service.node.transactions.expiry_passes.get();
    group(reply, "abortExpiredTransactions", &[("passes", expiry_passes)]);
    api_versions(context, reply);
    commands(context, reply);
    cursor(context, reply);
    group(
        reply,
        "document",
        &[
            ("deleted", work(Work::Deleted)),
            ("inserted", work(Work::Inserted)),
            ("returned", work(Work::Returned)),
            ("updated", work(Work::Updated)),
        ],
    );
    group(
        reply,
        "operation",
        &[
            (
                "killedDueToMaxTimeMSExpired",
                service.node.counters.metrics.timed_out.get(),
            ),
            ("scanAndOrder", work(Work::ScanAndOrder)),
            ("writeConflicts", work(Work::WriteConflicts)),
        ],
    );
    query(context, reply);
    let stats = &service.query_stats;
    let (entries, bytes) = stats.size();
    group(
        reply,
        "queryStats",
        &[
            ("numEntries", entries as i64),
            ("numEvicted", stats.evicted.get()),
            ("numRateLimitedRequests", stats.rate_limited.get()),
            ("queryStatsStoreSizeEstimateBytes", bytes as i64),
        ],
    );
    reply.begin_document("queryExecutor");
    reply.append("scanned", work(Work::Scanned));
    reply.append("scannedObjects", work(Work::ScannedObjects));
    let (scans, tailable) = (work(Work::CollectionScans), work(Work::TailableScans));
    group(
        reply,
        "collectionScans",
        &[("nonTailable", (scans - tailable).max(0)), ("total", scans)],
    );
    reply.end();
    group(
        reply,
        "ttl",
        &[
            ("deletedDocuments", service.ttl.deleted.get()),
            ("passes", service.ttl.passes.get()),
        ],
    );
}

fn api_versions(context: &Context<'_>, reply: &mut RawWriter) {
    let connections = &context.service.connections;
    let open = connections.all();
    let secs = context.service.started.elapsed().as_secs();
    reply.begin_document("apiVersions");
    for (name, versions) in connections.past_api_use.with_open(
        open.iter()
            .filter_map(|slot| Some((slot.application()?, &slot.api_use))),
        secs,
    ) {
        reply.begin_array(&name);
        for (i, version) in versions.into_iter().enumerate() {
            reply.append_index(i, version);
        }
        reply.end();
    }
    reply.end();
}

fn commands(context: &Context<'_>, reply: &mut RawWriter) {
    let metrics = &context.service.node.counters.metrics;
    reply.begin_document("commands");
    reply.append("<UNKNOWN>", metrics.unknown_commands.get());
    for (number, spec) in context.service.commands.all().iter().enumerate() {
        let (total, failed) = metrics.command(number);
        reply.begin_document(spec.name);
        reply.append("failed", failed);
        reply.append("total", total);
        reply.end();
    }
    reply.end();
}

fn cursor(context: &Context<'_>, reply: &mut RawWriter) {
    let cursors = &context.service.cursors;
    let counts = &cursors.counts;
    let (open, no_timeout, pinned) = cursors.numbers();
    reply.begin_document("cursor");
    reply.append("moreThanOneBatch", counts.more_than_one_batch.get());
    reply.append("timedOut", counts.timed_out.get());
    reply.append("totalOpened", counts.opened.get());
    reply.begin_document("lifespan");
    for (name, count) in counts.lifespans() {
        reply.append(name, count);
    }
    reply.end();
    reply.begin_document("open");
    reply.append("noTimeout", no_timeout as i64);
    reply.append("pinned", pinned as i64);
    reply.append("total", open as i64);
    reply.end();
    reply.end();
}

/// The choice between plans.
fn query(context: &Context<'_>, reply: &mut RawWriter) {
    let totals = context.service.plan_cache.totals();
    let as_long = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    reply.begin_document("query");
    reply.begin_document("multiPlanner");
    reply.append("classicCount", as_long(totals.trials));
    reply.append("classicMicros", as_long(totals.trial_micros));
    reply.append("classicWorks", as_long(totals.trial_works));
    reply.end();
    reply.begin_document("planCache");
    reply.begin_document("classic");
    reply.append("hits", as_long(totals.hits));
    reply.append("misses", as_long(totals.misses));
    reply.append("skipped", as_long(totals.skipped));
    reply.append("replanned", as_long(totals.replans));
    reply.end();
    reply.end();
    reply.append("planCacheTotalQueryShapes", totals.entries as i64);
    reply.append("planCacheTotalSizeEstimateBytes", totals.bytes as i64);
    reply.end();
}
