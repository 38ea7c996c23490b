//! `serverStatus`: counters since the start, section by section. A section is left out with
//! `{serverStatus: 1, name: 0}`.
//!
//! Fields of MongoDB's that nothing here corresponds to, such as those of locks, are left out; those that it would answer
//! with 0 on such a node are there.
//! Source: manual, "serverStatus".

mod metrics;
mod operations;
mod traffic;

use super::build_info;
use crate::commands::replication::hello::append_members;
use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::connections::Waits;
use nestor_database::machine::{host_name, system_mib, system_value};
use nestor_database::rights::Action;
use nestor_database::transport::TlsVersion;
use nestor_model::{RawWriter, ValueRef};
use nestor_storage::View;
use std::sync::atomic::Ordering::Relaxed;

/// The command. What it does not know it passes over, as MongoDB does: names of sections differ by version.
pub const SPEC: CommandSpec = Facts::no_collection("serverStatus", "Answers counters since the start.")
    .flags(Flags::QUIET)
    .needs(Needs::server(Action::ServerStatus))
    .runs(|context, reply| {
        write_process(context, reply);
        for (name, section) in SECTIONS {
            if context.body.get(name).is_none_or(|wanted| wanted.truthy()) {
                reply.begin_document(name);
                section(context, reply);
                reply.end();
            }
        }
        Ok(())
    });

type Section = fn(&Context<'_>, &mut RawWriter);

const SECTIONS: [(&str, Section); 23] = [
    ("asserts", asserts),
    ("catalogStats", catalog_stats),
    ("connections", connections),
    ("extra_info", extra_info),
    ("globalLock", operations::global_lock),
    ("indexBuilds", index_builds),
    ("indexBulkBuilder", index_bulk_builder),
    ("logicalSessionRecordCache", session_cache),
    ("mem", mem),
    ("metrics", metrics::write),
    ("network", network),
    ("opLatencies", operations::latencies),
    ("opcounters", operations::counters),
    ("opcountersRepl", operations::replicated),
    ("oplogTruncation", oplog_truncation),
    ("queues", operations::queues),
    ("repl", repl),
    ("security", security),
    ("storageEngine", storage_engine),
    ("trafficControl", traffic::write),
    ("transactions", operations::transactions),
    ("transportSecurity", transport_security),
    ("nestor", store),
];

fn write_process(context: &Context<'_>, reply: &mut RawWriter) {
    let uptime = context.service.started.elapsed();
    reply.append("host", host_name().as_str());
    reply.append("version", build_info::VERSION);
    reply.append("process", "nestor");
    reply.append("pid", i64::from(std::process::id()));
    reply.append("uptime", uptime.as_secs() as f64);
    reply.append("uptimeMillis", uptime.as_millis() as i64);
    reply.append("uptimeEstimate", uptime.as_secs() as i64);
    reply.append("localTime", ValueRef::DateTime(nestor_database::clock::now_ms()));
}

fn asserts(context: &Context<'_>, reply: &mut RawWriter) {
    let asserts = &context.service.node.counters.asserts;
    reply.append("regular", 0);
    reply.append("warning", 0);
    reply.append("msg", asserts.msg.get());
    reply.append("user", asserts.user.get());
    reply.append("tripwire", 0);
    reply.append("rollovers", 0);
}

fn connections(context: &Context<'_>, reply: &mut RawWriter) {
    let counts = &context.service.node.counters.connections;
    let current = counts.current.load(Relaxed);
    let max = i64::from(context.service.node.options.connections_max);
    let as_int = |n: i64| i32::try_from(n).unwrap_or(i32::MAX);
    reply.append("current", as_int(current));
    reply.append("available", as_int((max - current).max(0)));
    reply.append("totalCreated", as_int(context.service.connections.total_created()));
    reply.append("rejected", as_int(counts.rejected.get()));
    reply.append("active", as_int(counts.active.load(Relaxed)));
    let slots = context.service.connections.all();
    let awaiting = slots.iter().filter(|slot| {
        let operation = crate::lock(&slot.operation);
        let facts = context.service.commands.lookup(operation.command);
        let is_hello = facts.is_some_and(|facts| facts.flags.has(Flags::HELLO));
        is_hello && operation.opid != 0 && operation.waits == Some(Waits::ForNews)
    });
    reply.append("awaitingTopologyChanges", as_int(awaiting.count() as i64));
}

/// User collections and views, and those of the server's own databases and names.
fn catalog_stats(context: &Context<'_>, reply: &mut RawWriter) {
    let snapshot = context.service.engine.snapshot();
    let (mut collections, mut capped, mut views) = (0, 0, 0);
    let (mut internal_collections, mut internal_views) = (0, 0);
    for collection in snapshot
        .catalog()
        .databases()
        .flat_map(|database| database.collections())
    {
        let ns = &collection.ns;
        let is_internal = ns.is_internal() || ns.coll.as_str().starts_with("system.");
        match (is_internal, collection.is_view()) {
            (true, true) => internal_views += 1,
            (true, false) => internal_collections += 1,
            (false, true) => views += 1,
            (false, false) => {
                collections += 1;
                capped += i32::from(collection.is_capped());
            }
        }
    }
    reply.append("collections", collections);
    reply.append("capped", capped);
    reply.append("views", views);
    reply.append("timeseries", 0);
    reply.append("internalCollections", internal_collections);
    reply.append("internalViews", internal_views);
}

/// Figures that the operating system keeps of the process. Processor time is counted in ticks of a hundredth of a second.
fn extra_info(_: &Context<'_>, reply: &mut RawWriter) {
    const MICROS_PER_TICK: i64 = 10_000;
    reply.append("note", "fields vary by platform");
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the process, in parentheses, is the second field and may contain spaces.
    let fields: Vec<i64> = stat
        .rsplit_once(')')
        .map_or("", |(_, rest)| rest)
        .split_whitespace()
        .map(|field| field.parse().unwrap_or(0))
        .collect();
    // Numbered as in proc(5), where the state is the third.
    for (name, field, unit) in [
        ("user_time_us", 14, MICROS_PER_TICK),
        ("system_time_us", 15, MICROS_PER_TICK),
        ("page_reclaims", 10, 1),
        ("page_faults", 12, 1),
    ] {
        if let Some(value) = fields.get(field - 3) {
            reply.append(name, value.saturating_mul(unit));
        }
    }
    let in_status = |name| system_value("/proc/self/status", name, ':');
    if let Some(peak_kb) = in_status("VmHWM")
        .split(' ')
        .next()
        .and_then(|kb| kb.parse::<i64>().ok())
    {
        reply.append("maximum_resident_set_kb", peak_kb);
    }
    if let Ok(threads) = in_status("Threads").parse::<i32>() {
        reply.append("threads", threads);
    }
}

fn index_builds(context: &Context<'_>, reply: &mut RawWriter) {
    let counts = &context.service.index_builds.counts;
    reply.append("total", counts.total.get());
    reply.append("killedDueToInsufficientDiskSpace", counts.out_of_space.get());
    reply.append("failedDueToDataCorruption", counts.corruption.get());
}

fn index_bulk_builder(context: &Context<'_>, reply: &mut RawWriter) {
    let counts = &context.service.index_builds.counts;
    reply.append("count", counts.indexes.get());
    // A build that was interrupted begins anew.
    reply.append("resumed", 0i64);
    reply.append("filesOpenedForExternalSort", counts.files.get());
    reply.append("filesClosedForExternalSort", counts.files.get());
    reply.append("spilledRanges", counts.files.get());
    reply.append("bytesSpilled", counts.spilled_bytes.get());
    reply.append("numSorted", counts.keys.get());
}

fn mem(_: &Context<'_>, reply: &mut RawWriter) {
    reply.append("bits", usize::BITS as i32);
    reply.append("resident", system_mib("/proc/self/status", "VmRSS") as i32);
    reply.append("virtual", system_mib("/proc/self/status", "VmSize") as i32);
    reply.append("supported", cfg!(target_os = "linux"));
}

fn network(context: &Context<'_>, reply: &mut RawWriter) {
    let network = &context.service.node.counters.network;
    reply.append("bytesIn", network.bytes_in.get());
    reply.append("bytesOut", network.bytes_out.get());
    reply.append("physicalBytesIn", network.bytes_in.get());
    reply.append("physicalBytesOut", network.bytes_out.get());
    reply.append("numRequests", network.requests.get());
}

/// The server's certificate, if connections can be encrypted.
fn security(context: &Context<'_>, reply: &mut RawWriter) {
    if let Some(encryption) = context.service.node.transport.encryption() {
        let certificate = encryption.certificate();
        reply.append("SSLServerSubjectName", certificate.subject.as_str());
        reply.append("SSLServerHasCertificateAuthority", certificate.has_authority);
        let end = ValueRef::DateTime(certificate.not_after_ms);
        reply.append("SSLServerCertificateExpirationDate", end);
    }
}

/// Connections by their version of TLS. Versions before 1.2 are not spoken.
fn transport_security(context: &Context<'_>, reply: &mut RawWriter) {
    let connections = |version| context.service.node.transport.connections(version).get();
    reply.append("1.0", 0i64);
    reply.append("1.1", 0i64);
    reply.append("1.2", connections(TlsVersion::V1_2));
    reply.append("1.3", connections(TlsVersion::V1_3));
    reply.append("unknown", connections(TlsVersion::Unknown));
}

fn repl(context: &Context<'_>, reply: &mut RawWriter) {
    let Some(name) = &context.service.options.replica_set else {
        return;
    };
    let me = context.conn.host.as_str();
    append_members(
        &context.service.engine.topology(),
        name,
        (me, "isWritablePrimary"),
        reply,
    );
    // The older name, by which mongostat knows a primary.
    reply.append("ismaster", context.service.engine.is_writable());
}

/// `oplogTruncation`: the log needs no processing at the start to know where it may be cut off.
fn oplog_truncation(context: &Context<'_>, reply: &mut RawWriter) {
    if context.service.options.replica_set.is_none() {
        return;
    }
    let engine = &context.service.engine;
    let (truncation, age_min) = (engine.log_truncation(), engine.log_retention().age_min);
    let as_long = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    reply.append("totalTimeProcessingMicros", 0i64);
    if !age_min.is_zero() {
        reply.append("oplogMinRetentionHours", age_min.as_secs_f64() / 3600.0);
    }
    reply.append("totalTimeTruncatingMicros", as_long(truncation.micros));
    reply.append("truncateCount", as_long(truncation.removed));
}

/// `nestor`: what the store takes, how much of the log it keeps, and what snapshots that are held keep from being freed.
fn store(context: &Context<'_>, reply: &mut RawWriter) {
    let stats = context.service.engine.stats();
    let as_long = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    reply.append("memtableBytes", as_long(stats.memtable_bytes));
    reply.append("journalBytes", as_long(stats.journal_bytes));
    reply.append("baseBytes", as_long(stats.base_bytes));
    let pins = context.service.engine.pins();
    reply.begin_document("held");
    reply.append("states", as_long(pins.states));
    reply.append("oldest", ValueRef::Timestamp(pins.oldest_optime));
    reply.append("memoryBytes", as_long(pins.memory_bytes));
    reply.append("baseBytes", as_long(pins.base_bytes));
    reply.end();
    reply.append("transactionBytes", context.service.engine.transaction_bytes() as i64);
    let snapshots = &context.service.snapshots;
    reply.begin_document("history");
    if let Some(history) = context.service.engine.history() {
        reply.append("windowSeconds", as_long(history.window.as_secs()));
        reply.append("oldest", ValueRef::Timestamp(history.oldest));
        reply.append("bases", as_long(history.bases));
        reply.append("baseBytes", as_long(history.bytes));
    }
    reply.append("states", snapshots.len() as i64);
    reply.append("statesPutTogether", snapshots.put_together.get());
    reply.append("snapshotTooOld", snapshots.too_old.get());
    reply.end();
    let columns = context.service.columns.figures();
    reply.begin_document("columns");
    for (name, value) in [
        ("bytes", columns.bytes),
        ("bytesMax", columns.bytes_max),
        ("diskBytes", columns.disk_bytes),
        ("segmentsMade", columns.built),
        ("segmentsMerged", columns.merged),
        ("segmentsNotSaved", columns.not_saved),
        ("filesDamaged", columns.damaged),
        ("columnsRead", columns.columns_read),
        ("bytesRead", columns.bytes_read),
        ("readings", columns.readings),
        ("readingsPassedOver", columns.passed_over),
    ] {
        reply.append(name, as_long(value));
    }
    reply.end();
    let searches = context.service.searches.figures();
    reply.begin_document("searchIndexes");
    for (name, value) in [
        ("held", searches.held),
        ("bytes", searches.bytes),
        ("bytesMax", searches.bytes_max),
        ("asked", searches.asked),
        ("made", searches.made),
    ] {
        reply.append(name, as_long(value));
    }
    reply.end();
    let engine = &context.service.engine;
    reply.begin_document("log");
    reply.append("bytes", as_long(engine.log_bytes()));
    reply.append("bytesMax", as_long(engine.log_retention().bytes_max));
    // All entries after this time are there.
    reply.append("begins", engine.log_begins());
    reply.append("followers", engine.log_followers() as i64);
    reply.end();
}

fn session_cache(context: &Context<'_>, reply: &mut RawWriter) {
    let sessions = &context.service.sessions;
    reply.append("activeSessionsCount", sessions.len() as i32);
    reply.append("sessionCatalogSize", sessions.with_numbers() as i32);
}

fn storage_engine(_: &Context<'_>, reply: &mut RawWriter) {
    reply.append("name", "nestor");
    reply.append("supportsCommittedReads", true);
    reply.append("supportsSnapshotReadConcern", true);
    reply.append("readOnly", false);
}
