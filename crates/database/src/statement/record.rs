//! An operation as the profiler's document and as the slow-query log's line.

use super::Statement;
use crate::connections::{Slot, app_name};
use crate::database::Database;
use crate::lock;
use crate::observe::figures::{Figures, plan_summary};
use crate::observe::op_kind::OpKind;
use crate::profiler::Settings;
use crate::shape::Described;
use crate::system_profile;
use nestor_model::extjson::{self, Form};
use nestor_model::{Document, Error, Namespace, RawDoc, Value, doc};
use nestor_planner::shape::hash_text;
use nestor_query::env::OpContext;
use std::borrow::Cow;
use std::time::Duration;

/// Bytes of a command that are kept; the text of a longer one is cut.
const COMMAND_BYTES_MAX: usize = 50_000;
/// The same for a line of the log, which is not to be longer than 10 KiB.
const LOGGED_COMMAND_BYTES_MAX: usize = 4_000;

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// `op` of the document.
    pub name: &'static str,
    /// One statement of a command, not the command.
    pub is_statement: bool,
}

impl Op {
    /// A statement of an update command.
    pub const UPDATE: Op = Op::statement("update");
    /// A statement of a delete command.
    pub const REMOVE: Op = Op::statement("remove");
    /// An insert of a bulkWrite.
    pub const INSERT: Op = Op::statement("insert");

    const fn statement(name: &'static str) -> Self {
        Self {
            name,
            is_statement: true,
        }
    }

    /// The kind of a command. One whose statements are recorded is no more than a command beside them.
    pub fn of(kind: OpKind) -> Self {
        let is_envelope = kind.is_recorded_by_statement();
        let kind = if is_envelope { OpKind::Command } else { kind };
        Self {
            name: kind.name(),
            is_statement: false,
        }
    }
}

/// An operation that is over and may be recorded.
#[derive(Debug)]
pub struct Observed {
    op: Op,
    /// Its database, whose settings decide.
    db: String,
    ns: String,
    command: Document,
    figures: Figures,
    plan_summary: Option<String>,
    took: Duration,
    protocol: &'static str,
    shapes: Shapes,
    /// A command of updates or deletes, whose statements were recorded one by one.
    is_envelope: bool,
}

/// The hashes by which operations are grouped.
#[derive(Debug, Default)]
struct Shapes {
    /// Hash of the plan shape.
    plan: Option<u64>,
    /// Hash of the query shape.
    query: Option<String>,
}

impl Shapes {
    /// The shapes of the operation that `statement` was.
    fn of(statement: &Statement<'_>) -> Self {
        let described = statement.described.borrow();
        let Some(Described { shape, query }) = described.as_ref() else {
            return Self::default();
        };
        Self {
            plan: query.as_ref().map(|query| shape.plan_hash(query)),
            query: shape.is_settable.then(|| shape.hash()),
        }
    }
}

/// How it ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ending<'e> {
    /// Bytes of the reply.
    pub response_bytes: Option<usize>,
    /// Why it failed.
    pub error: Option<&'e Error>,
}

impl Observed {
    /// A statement that has run. `ns` is what it is about if it described no operation, `command` what it was asked by.
    pub fn command(statement: &Statement<'_>, ns: String, command: Document, took: Duration) -> Self {
        let is_envelope = statement.op.is_recorded_by_statement();
        let described = statement.described.borrow();
        let named = described.as_ref().map(|described| &described.shape.ns);
        let ns = match named.filter(|ns| !ns.coll.is_empty()) {
            _ if is_envelope => format!("{}.$cmd", statement.db()),
            Some(named) => named.to_string(),
            None => ns,
        };
        drop(described);
        Self {
            is_envelope,
            shapes: Shapes::of(statement),
            ..Self::new(statement, Op::of(statement.op), ns, command, took)
        }
    }

    /// A statement of another language than commands. `command` is what it was asked by.
    pub fn of_language(statement: &Statement<'_>, ns: String, command: Document, took: Duration) -> Self {
        let op = Op {
            name: statement.op.name(),
            is_statement: false,
        };
        Self::new(statement, op, ns, command, took)
    }

    fn new(statement: &Statement<'_>, op: Op, ns: String, command: Document, took: Duration) -> Self {
        let figures = statement.figures.take();
        let plan = std::mem::take(&mut lock(&statement.slot.operation).plan);
        Self {
            op,
            db: statement.db().to_owned(),
            ns,
            command,
            plan_summary: plan_summary(&figures, &plan, op.name),
            figures,
            took,
            protocol: statement.protocol,
            shapes: Shapes::default(),
            is_envelope: false,
        }
    }

    /// Records it where the settings want it.
    pub fn record(self, database: &Database, conn: &Slot, ending: Ending<'_>) {
        let settings = database.profiler.settings(&self.db);
        let level = settings.database.level;
        let chosen = match &settings.database.filter {
            Some(filter) => {
                let op = OpContext::new(crate::clock::now_ms(), database.last_time(), database.random());
                // An operation for which the filter fails is not recorded.
                filter
                    .matches(&self.profile_document(conn, ending), &op)
                    .unwrap_or(false)
            }
            None => settings.is_slow(self.took) && is_sampled(database, &settings),
        };
        if (level == 2 || (level == 1 && chosen)) && !self.is_envelope {
            let doc = self.profile_document(conn, ending);
            if let Err(error) = system_profile::insert(database, &self.db, &doc) {
                let attr = doc! { "namespace": self.ns.clone(), "error": error.to_string() };
                let ctx = format!("conn{}", conn.id);
                let log = database.node.log();
                log.warn(
                    "COMMAND",
                    20_703,
                    &ctx,
                    "Cannot write the profile of an operation",
                    attr,
                );
            }
        }
        if chosen {
            let component = if self.op.is_statement { "WRITE" } else { "COMMAND" };
            let ctx = format!("conn{}", conn.id);
            let attr = self.log_attributes(conn, ending);
            database.node.log().info(component, 51_803, &ctx, "Slow query", attr);
        }
    }

    /// The document of `system.profile`.
    fn profile_document(&self, conn: &Slot, ending: Ending<'_>) -> Document {
        let mut out = doc! {
            "op": self.op.name,
            "ns": self.ns.as_str(),
            "command": cut(&self.shown_command(), COMMAND_BYTES_MAX),
        };
        self.originating(&mut out, COMMAND_BYTES_MAX);
        self.counts(&mut out, "numYield");
        if let Some(bytes) = ending.response_bytes {
            out.push("responseLength", bytes as i32);
        }
        out.push("protocol", self.protocol);
        out.push("millis", i32::try_from(self.took.as_millis()).unwrap_or(i32::MAX));
        if let Some(plan) = &self.plan_summary {
            out.push("planSummary", plan.as_str());
        }
        append_error(&mut out, ending.error);
        if let Some(stages) = &self.figures.stages {
            out.push("execStats", stages.clone());
        }
        out.push("ts", Value::DateTime(crate::clock::now_ms()));
        if !conn.peer.is_empty() {
            // Without the port.
            let host = conn.peer.rsplit_once(':').map_or(conn.peer.as_str(), |(host, _)| host);
            out.push("client", host);
        }
        self.application(&mut out, conn);
        let user = lock(&conn.user);
        let users: Vec<Value> = user.iter().map(|user| user.to_document().into()).collect();
        out.push("allUsers", users);
        out.push("user", user.as_ref().map(ToString::to_string).unwrap_or_default());
        out
    }

    /// `attr` of the log's line.
    fn log_attributes(&self, conn: &Slot, ending: Ending<'_>) -> Document {
        let kind = if self.op.is_statement { self.op.name } else { "command" };
        let mut out = doc! { "type": kind, "ns": self.ns.as_str() };
        self.application(&mut out, conn);
        out.push("command", cut(&self.shown_command(), LOGGED_COMMAND_BYTES_MAX));
        self.originating(&mut out, LOGGED_COMMAND_BYTES_MAX);
        if let Some(plan) = &self.plan_summary {
            out.push("planSummary", plan.as_str());
        }
        self.counts(&mut out, "numYields");
        append_error(&mut out, ending.error);
        if let Some(bytes) = ending.response_bytes {
            out.push("reslen", bytes as i32);
        }
        if !conn.peer.is_empty() {
            out.push("remote", conn.peer.clone());
        }
        out.push("protocol", self.protocol);
        out.push(
            "durationMillis",
            i32::try_from(self.took.as_millis()).unwrap_or(i32::MAX),
        );
        out
    }

    /// The command. A getMore without a comment has that of the command whose cursor it goes on with.
    fn shown_command(&self) -> Cow<'_, Document> {
        let of_cursor = self.figures.originating.as_ref();
        let comment = of_cursor.and_then(|command| command.as_raw().get("comment"));
        match comment.filter(|_| self.command.get("comment").is_none()) {
            Some(comment) => {
                let mut command = self.command.clone();
                command.push("comment", comment);
                Cow::Owned(command)
            }
            None => Cow::Borrowed(&self.command),
        }
    }

    fn originating(&self, out: &mut Document, bytes_max: usize) {
        if let Some(command) = &self.figures.originating {
            out.push(
                "originatingCommand",
                cut(&command.as_raw().as_doc().to_document(), bytes_max),
            );
        }
    }

    fn application(&self, out: &mut Document, conn: &Slot) {
        let client = lock(&conn.client);
        if let Some(name) = client.as_ref().and_then(|client| app_name(client.as_ref())) {
            out.push("appName", name);
        }
    }

    /// The counts. Flags are shown only when they are set.
    fn counts(&self, out: &mut Document, yields: &str) {
        let figures = &self.figures;
        let switch = |out: &mut Document, name: &str, on: bool| {
            if on {
                out.push(name, true);
            }
        };
        let number = |out: &mut Document, name: &str, count: Option<i64>| {
            if let Some(count) = count {
                out.push(name, int_or_long(count));
            }
        };
        let some = |count: u64| (count > 0).then_some(count as i64);
        if let Some(id) = figures.cursor_id {
            out.push("cursorid", id);
        }
        number(out, "keysExamined", figures.totals.map(|t| t.keys_examined as i64));
        number(out, "docsExamined", figures.totals.map(|t| t.docs_examined as i64));
        switch(out, "hasSortStage", figures.totals.is_some_and(|t| t.has_sort_stage));
        switch(out, "usedDisk", figures.totals.is_some_and(|t| t.used_disk));
        let choice = figures.totals.and_then(|t| t.choice);
        switch(out, "fromMultiPlanner", choice.is_some_and(|c| c.by_trial));
        switch(
            out,
            "fromPlanCache",
            choice.is_some_and(|c| !c.by_trial && c.cached_as.is_some()),
        );
        switch(out, "replanned", choice.is_some_and(|c| c.replanned));
        number(out, "nMatched", figures.matched);
        number(out, "nModified", figures.modified);
        number(out, "ninserted", figures.inserted);
        number(out, "ndeleted", figures.deleted);
        switch(out, "upsert", figures.upsert);
        switch(out, "cursorExhausted", figures.cursor_exhausted);
        number(out, "keysInserted", some(figures.keys_inserted));
        number(out, "keysDeleted", some(figures.keys_deleted));
        number(out, "writeConflicts", some(figures.write_conflicts));
        // Operations read snapshots and never yield.
        out.push(yields, 0);
        number(out, "nreturned", figures.returned.map(|n| n as i64));
        let (shape, key) = choice.and_then(|choice| choice.cached_as).unzip();
        if let Some(shape) = shape.or(self.shapes.plan).map(hash_text) {
            out.push("queryHash", shape.as_str());
            out.push("planCacheShapeHash", shape);
        }
        out.push("planCacheKey", key.map(hash_text).map(Value::from));
        out.push("queryShapeHash", self.shapes.query.clone().map(Value::from));
        if figures.totals.is_some() {
            out.push("queryFramework", "classic");
        }
    }
}

impl Statement<'_> {
    /// Ends one statement of a command: it is recorded as an operation of its own, and what was counted starts again.
    pub fn finish_statement(&self, op: Op, ns: &Namespace, command: impl FnOnce() -> Document, error: Option<&Error>) {
        let took = self.statement_started.replace(std::time::Instant::now()).elapsed();
        let metrics = &self.database.node.counters.metrics;
        metrics.count_work(self.slot.id, &self.figures.borrow());
        if !self.database.profiler.concerns(took) {
            self.figures.take();
            self.described.take();
            lock(&self.slot.operation).plan.clear();
            return;
        }
        let mut command = command();
        if let Some(comment) = self.terms.comment {
            // It stands beside the statements and is about each of them.
            command.push("comment", comment);
        }
        let observed = Observed {
            db: ns.db.to_string(),
            shapes: Shapes::of(self),
            ..Observed::new(self, op, ns.to_string(), command, took)
        };
        self.described.take();
        let ending = Ending {
            response_bytes: None,
            error,
        };
        observed.record(self.database, self.slot, ending);
    }
}

fn is_sampled(database: &Database, settings: &Settings) -> bool {
    let drawn = (database.random() >> 11) as f64 / (1u64 << 53) as f64;
    drawn < settings.sample_rate
}

fn append_error(out: &mut Document, error: Option<&Error>) {
    let Some(error) = error else { return };
    out.push("ok", 0.0);
    out.push("errMsg", error.message());
    out.push("errName", error.code().name());
    out.push("errCode", error.code().number());
}

fn int_or_long(count: i64) -> Value {
    match i32::try_from(count) {
        Ok(small) => Value::Int32(small),
        Err(_) => Value::Int64(count),
    }
}

/// A command, or `{$truncated: text}` with the beginning of a long one and its comment.
fn cut(command: &Document, bytes_max: usize) -> Document {
    shortened(command.to_raw().as_raw(), bytes_max).unwrap_or_else(|| command.clone())
}

/// `{$truncated: text}` with the beginning of a command that is longer than `bytes_max`; its comment stands beside the text, if that
/// makes it no longer than twice as much.
pub fn shortened(command: RawDoc<'_>, bytes_max: usize) -> Option<Document> {
    if command.as_bytes().len() <= bytes_max {
        return None;
    }
    let fields = command.iter().filter(|(name, _)| *name != "comment");
    let text = extjson::beginning(fields, Form::Relaxed, bytes_max);
    let mut out = doc! { "$truncated": text };
    if let Some(comment) = command.get("comment") {
        let mut with_comment = out.clone();
        with_comment.push("comment", comment);
        if with_comment.to_raw().as_bytes().len() <= 2 * bytes_max {
            out = with_comment;
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_commands_are_cut() {
        let long = doc! { "find": "c", "filter": doc! { "a": "é".repeat(100) }, "comment": "why" };
        let short = cut(&long, 50);
        let text = short.get("$truncated").and_then(|v| v.as_str()).expect("a text");
        assert!(
            text.starts_with(r#"{"find":"c","filter":{"a":"éé"#) && text.len() <= 50,
            "{text}"
        );
        assert_eq!(short.get("comment").and_then(|v| v.as_str()), Some("why"));
        let only_comment = doc! { "find": "c", "comment": "why ".repeat(100) };
        let short = cut(&only_comment, 50);
        assert_eq!(
            short.get("$truncated").and_then(|v| v.as_str()),
            Some(r#"{"find":"c"}"#)
        );
        assert_eq!(short.len(), 1);
        assert!(cut(&long, 5_000).get("$truncated").is_none());
    }
}
