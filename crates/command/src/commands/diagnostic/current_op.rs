//! `currentOp`: the operations that run now.

use crate::context::Context;
use crate::facts::{Facts, Flags, Table};
use crate::generic_names::is_generic;
use crate::needs::{self, Needs};
use crate::privileges;
use crate::spec::CommandSpec;
use nestor_database::connections::{Slot, Waits};
use nestor_database::cursors::{CursorSummary, Cursors};
use nestor_database::observe::log::time_text;
use nestor_database::observe::op_kind::OpKind;
use nestor_database::observe::transaction_counts::TransactionFacts;
use nestor_database::session_id::{Lsid, Owner};
use nestor_database::statement::record::shortened;
use nestor_exec::summary::plan_summary;
use nestor_model::{Document, RawDoc, RawWriter, Value, ValueRef, doc};
use nestor_query::env::{OpContext, Scope};
use nestor_query::matcher::MatchExpr;
use std::time::{Duration, Instant};

/// The command. Fields besides its options are a match expression over what it would answer.
pub const SPEC: CommandSpec = Facts::no_collection("currentOp", "Lists the operations that run now.")
    .flags(Flags::ADMIN.and(Flags::QUIET))
    .needs(Needs::Arguments(needs::current_op))
    .runs(|context, reply| {
        let shown = Shown {
            idle: context.body.get("$all").is_some_and(|v| v.truthy()),
            truncated: context.body.get("$truncateOps").is_none_or(|v| v.truthy()),
        };
        let only_own = is_own(context.body);
        let user = privileges::user(context);
        // All is all: what is asked for besides counts no more.
        let filter = match shown.idle {
            true => Document::new(),
            false => filter(context.body),
        };
        let mut scope = Scope::new();
        let filter = MatchExpr::parse(filter.as_ref(), &mut scope)?.without_text()?;
        let op = OpContext::new(nestor_database::clock::now_ms(), context.service.last_time(), 0);
        let mut found = Vec::new();
        let service = context.service;
        for slot in service.connections.all() {
            if only_own && !slot.is_of(user) {
                continue;
            }
            let Some(doc) = describe(service.commands, context.conn.host, &slot, &service.cursors, shown) else {
                continue;
            };
            if filter.matches(doc.as_ref(), &op)? {
                found.push(doc);
            }
        }
        let owner = user.filter(|_| only_own).map(Owner::of);
        for (lsid, facts) in service.sessions.idle_transactions() {
            let doc = describe_transaction(context.conn.host, lsid, &facts);
            if owner.is_none_or(|owner| lsid.owner == owner) && filter.matches(doc.as_ref(), &op)? {
                found.push(doc);
            }
        }
        write(context, reply, &found);
        Ok(())
    });

/// Which operations are shown besides those that run, and in how much detail.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// Connections that run nothing, too.
    pub idle: bool,
    /// Long commands are cut.
    pub truncated: bool,
}

/// Commands up to this size are shown as they are.
///
/// Source: manual, "currentOp", "command".
const COMMAND_BYTES_MAX: usize = 1024;

impl Shown {
    fn command(self, command: RawDoc<'_>) -> Value {
        let short = if self.truncated {
            shortened(command, COMMAND_BYTES_MAX)
        } else {
            None
        };
        short.map_or_else(|| Value::from(command), Value::from)
    }
}

/// Whether only the caller's own operations are asked for, which needs no right.
pub fn is_own(body: RawDoc<'_>) -> bool {
    body.get("$ownOps").is_some_and(ValueRef::truthy)
}

/// The command without its name, options and generic arguments.
fn filter(body: RawDoc<'_>) -> Document {
    let mut filter = Document::new();
    for (i, (name, value)) in body.iter().enumerate() {
        if i > 0 && !is_generic(name) && !matches!(name, "$all" | "$ownOps" | "$truncateOps") {
            filter.push(name, value.to_value());
        }
    }
    filter
}

fn write(context: &Context<'_>, reply: &mut RawWriter, found: &[Document]) {
    reply.begin_array("inprog");
    for (i, doc) in found.iter().enumerate() {
        reply.append_index(i, doc);
    }
    reply.end();
    if context.service.node.gates.fsync_locks() > 0 {
        reply.append("fsyncLock", true);
        reply.append(
            "info",
            "use db.fsyncUnlock() to terminate the fsync write/snapshot lock",
        );
    }
}

/// The entry of a connection; `None` when it runs nothing and idle connections are not wanted.
///
/// Nothing here takes locks that others could wait for, but for the one that `fsync` holds against all writes.
pub fn describe(commands: &Table, host: &str, slot: &Slot, cursors: &Cursors, shown: Shown) -> Option<Document> {
    let operation = crate::lock(&slot.operation);
    let is_active = operation.opid != 0;
    if !is_active && !shown.idle {
        return None;
    }
    let mut doc = doc! {
        "type": "op",
        "host": host,
        "desc": format!("conn{}", slot.id),
        "connectionId": i32::try_from(slot.id).unwrap_or(i32::MAX),
        "client": slot.peer.clone(),
    };
    if let Some(client) = crate::lock(&slot.client).as_ref() {
        if let Some(name) = nestor_database::connections::app_name(client.as_ref()) {
            doc.push("appName", name);
        }
        doc.push("clientMetadata", client.clone());
    }
    if let Some(user) = crate::lock(&slot.user).as_ref() {
        doc.push("effectiveUsers", vec![Value::from(user.to_document())]);
    }
    doc.push("active", is_active);
    doc.push("currentOpTime", time_text(nestor_database::clock::now_ms()));
    if !is_active {
        return Some(doc);
    }
    let running = operation.started.map_or(Duration::ZERO, |started| started.elapsed());
    doc.push("opid", operation.opid as i32);
    let command = RawDoc::validate(&operation.body).ok();
    if let Some(lsid) = operation.lsid {
        doc.push("lsid", lsid.to_document());
    }
    if let Some(transaction) = &operation.transaction {
        doc.push("transaction", transaction.document(running));
    }
    doc.push("secs_running", running.as_secs() as i64);
    doc.push(
        "microsecs_running",
        i64::try_from(running.as_micros()).unwrap_or(i64::MAX),
    );
    let facts = commands.lookup(operation.command);
    let kind = facts.map(|facts| facts.op).unwrap_or_default();
    doc.push("op", kind.name());
    let db = command
        .and_then(|command| command.get("$db"))
        .and_then(ValueRef::as_str);
    let ns = facts
        .zip(command)
        .map(|(facts, command)| facts.profiled_namespace(db.unwrap_or_default(), command));
    doc.push("ns", ns.unwrap_or_default());
    doc.push(
        "command",
        command.map_or_else(|| Document::new().into(), |command| shown.command(command)),
    );
    let plan = (!operation.plan.is_empty()).then(|| plan_summary(&operation.plan));
    if let Some(plan) = &plan {
        doc.push("queryFramework", "classic");
        doc.push("planSummary", plan.as_str());
    }
    if kind == OpKind::GetMore {
        if let Some(cursor) = cursors.used_by(&slot.kill) {
            let mut facts = cursor_facts(&cursor, shown);
            facts.push("planSummary", plan);
            facts.push("operationUsingCursorId", i64::from(operation.opid));
            doc.push("cursor", facts);
        }
    }
    doc.push("numYields", 0);
    if let Some(build) = &operation.build {
        build.describe(&mut doc);
    }
    doc.push("killPending", slot.kill.killed().is_some());
    doc.push("locks", Document::new());
    doc.push("waitingForLock", operation.waits == Some(Waits::ForLock));
    doc.push("lockStats", Document::new());
    doc.push("waitingForFlowControl", false);
    doc.push("flowControlStats", Document::new());
    Some(doc)
}

/// The entry of an open transaction that runs no operation at the moment.
pub fn describe_transaction(host: &str, lsid: Lsid, facts: &TransactionFacts) -> Document {
    doc! {
        "type": "idleSession",
        "host": host,
        "desc": "inactive transaction",
        "active": false,
        "lsid": lsid.to_document(),
        "transaction": facts.document(Duration::ZERO),
        "locks": Document::new(),
        "waitingForLock": false,
        "lockStats": Document::new(),
    }
}

/// The entry of a cursor that no operation uses at the moment.
pub fn describe_cursor(host: &str, cursor: &CursorSummary, shown: Shown) -> Document {
    let mut doc = doc! { "type": "idleCursor", "host": host, "ns": cursor.ns.to_string() };
    if let Some(lsid) = cursor.lsid {
        doc.push("lsid", lsid.to_document());
    }
    doc.push("cursor", cursor_facts(cursor, shown));
    doc
}

fn cursor_facts(cursor: &CursorSummary, shown: Shown) -> Document {
    let at = |time: Instant| {
        let ago = i64::try_from(time.elapsed().as_millis()).unwrap_or(0);
        Value::DateTime(nestor_database::clock::now_ms().saturating_sub(ago))
    };
    doc! {
        "cursorId": cursor.id,
        "createdDate": at(cursor.created),
        "lastAccessDate": at(cursor.last_used),
        "nDocsReturned": cursor.returned as i64,
        "nBatchesReturned": cursor.batches as i64,
        "noCursorTimeout": cursor.no_timeout,
        "tailable": cursor.tailable,
        "awaitData": cursor.await_data,
        "originatingCommand": shown.command(cursor.originating.as_raw()),
    }
}
