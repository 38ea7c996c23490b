//! `serverStatus`: counters since the start, section by section. A section is left out with
//! `{serverStatus: 1, name: 0}`.

use super::{build_info, host_info, system_mib};
use crate::context::Context;
use crate::dispatch::{CommandSpec, Flags};
use nestor_model::{RawWriter, ValueRef};
use std::sync::atomic::Ordering::Relaxed;

/// The command. What it does not know it passes over, as MongoDB does: names of sections differ by version.
pub const SPEC: CommandSpec = CommandSpec {
    name: "serverStatus",
    aliases: &[],
    flags: Flags::QUIET,
    help: "Answers counters since the start.",
    run: |context, reply| {
        write_process(context, reply);
        for (name, section) in SECTIONS {
            let is_wanted = match context.body.get(name) {
                Some(value) => value.truthy(),
                None => true,
            };
            if is_wanted {
                reply.begin_document(name);
                section(context, reply);
                reply.end();
            }
        }
        Ok(())
    },
};

type Section = fn(&Context<'_>, &mut RawWriter);

const SECTIONS: [(&str, Section); 14] = [
    ("asserts", asserts),
    ("connections", connections),
    ("extra_info", extra_info),
    ("globalLock", global_lock),
    ("indexBuilds", index_builds),
    ("indexBulkBuilder", index_bulk_builder),
    ("mem", mem),
    ("metrics", metrics),
    ("network", network),
    ("opcounters", opcounters),
    ("repl", repl),
    ("storageEngine", storage_engine),
    ("logicalSessionRecordCache", session_cache),
    ("nestor", store),
];

fn write_process(context: &Context<'_>, reply: &mut RawWriter) {
    let uptime = context.service.started.elapsed();
    reply.append("host", host_info::host_name().as_str());
    reply.append("version", build_info::VERSION);
    reply.append("process", "nestor");
    reply.append("pid", i64::from(std::process::id()));
    reply.append("uptime", uptime.as_secs() as f64);
    reply.append("uptimeMillis", uptime.as_millis() as i64);
    reply.append("uptimeEstimate", uptime.as_secs() as i64);
    reply.append("localTime", ValueRef::DateTime(crate::clock::now_ms()));
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
}

fn extra_info(_: &Context<'_>, reply: &mut RawWriter) {
    reply.append("note", "fields vary by platform");
    reply.append(
        "threads",
        super::system_value("/proc/self/status", "Threads", ':')
            .parse::<i32>()
            .unwrap_or(0),
    );
}

fn global_lock(context: &Context<'_>, reply: &mut RawWriter) {
    reply.append("totalTime", context.service.started.elapsed().as_micros() as i64);
    for field in ["currentQueue", "activeClients"] {
        let running = if field == "activeClients" {
            context.service.node.counters.connections.active.load(Relaxed)
        } else {
            0
        };
        reply.begin_document(field);
        reply.append("total", i32::try_from(running).unwrap_or(i32::MAX));
        reply.end();
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

/// Of MongoDB's metrics those of the choice between plans.
fn metrics(context: &Context<'_>, reply: &mut RawWriter) {
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
    reply.append("replanned", as_long(totals.replans));
    reply.end();
    reply.end();
    reply.append("planCacheTotalQueryShapes", totals.entries as i64);
    reply.append("planCacheTotalSizeEstimateBytes", totals.bytes as i64);
    reply.end();
}

fn network(context: &Context<'_>, reply: &mut RawWriter) {
    let network = &context.service.node.counters.network;
    reply.append("bytesIn", network.bytes_in.get());
    reply.append("bytesOut", network.bytes_out.get());
    reply.append("physicalBytesIn", network.bytes_in.get());
    reply.append("physicalBytesOut", network.bytes_out.get());
    reply.append("numRequests", network.requests.get());
}

fn opcounters(context: &Context<'_>, reply: &mut RawWriter) {
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

fn repl(context: &Context<'_>, reply: &mut RawWriter) {
    let Some(name) = &context.service.options.replica_set else {
        return;
    };
    let me = context.conn.host.as_str();
    reply.begin_array("hosts");
    reply.append_index(0, me);
    reply.end();
    reply.append("setName", name.as_str());
    reply.append("setVersion", 1);
    reply.append("isWritablePrimary", true);
    reply.append("secondary", false);
    reply.append("primary", me);
    reply.append("me", me);
    reply.append("electionId", context.service.node.election_id);
}

fn store(context: &Context<'_>, reply: &mut RawWriter) {
    let stats = context.service.engine.stats();
    let as_long = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    reply.append("memtableBytes", as_long(stats.memtable_bytes));
    reply.append("journalBytes", as_long(stats.journal_bytes));
    reply.append("baseBytes", as_long(stats.base_bytes));
}

fn session_cache(context: &Context<'_>, reply: &mut RawWriter) {
    reply.append("activeSessionsCount", context.service.sessions.len() as i32);
}

fn storage_engine(_: &Context<'_>, reply: &mut RawWriter) {
    reply.append("name", "nestor");
    reply.append("supportsCommittedReads", true);
    reply.append("supportsSnapshotReadConcern", true);
    reply.append("readOnly", false);
}
