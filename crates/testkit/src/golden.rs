//! Golden cases: a text file of commands and what they answer, run in order against a fresh database.
//!
//! ```text
//! # A comment says why the case is there and where the expected answer comes from.
//! seed people
//! {_id: 1, tags: ["a", "b"]}
//!
//! run {find: "people", filter: {tags: "a"}}
//! ----
//! {_id: 1, tags: ["a", "b"]}
//! ```
//!
//! `seed NAME` replaces the collection by the documents that follow. `run` sends a command (which may take
//! several lines) to the database `test`. The answer stands after `----`: the documents of a cursor, all
//! batches together; else the reply without `ok` and times, `ok` if nothing is left; or
//! `error CodeName(code): message` and, before the message, what else the error carries. Of an explain the plans stand there, a line
//! for each stage, inputs below and indented, then what was counted, without times and sizes in
//! memory. `access` in place of `run` asks what a command would read and write, and which rights that needs,
//! without running it.
//!
//! `as NAME run` sends a command on a connection and in a session of that name. `as NAME txn` sends it in that session's
//! transaction, and starts one if there is none; `commitTransaction` and `abortTransaction` end it, also when it is
//! gone already.
//!
//! `eval DOCUMENT` starts a table of expressions and what they give for that document, a line each, `missing` for no value:
//!
//! ```text
//! eval {a: [1, 2]}
//! {$size: "$a"} => 2
//! ```
//!
//! A line `only PATH PATH` after the command picks parts of the reply, with paths through arrays as in a
//! filter, one line each. An empty line ends a block. With
//! `NESTOR_BLESS=1` in the environment the answers are written into the file instead of compared.

use crate::shell;
use nestor_command::{Connection, Request, Service};
use nestor_database::DatabaseOptions;
use nestor_database::rights::{Privilege, Resource};
use nestor_model::{Array, Binary, DocRef, Document, ErrorCode, Namespace, RawDoc, Value, ValueRef, doc};
use nestor_sql::stage::SqlStage;
use nestor_storage::{Engine, EngineOptions};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

/// Runs every case of a file.
///
/// # Errors
/// The first case that answers differently, or what is wrong with the file.
pub fn run_file(path: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let actual = answer(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    if actual == text {
        return Ok(());
    }
    if std::env::var_os("NESTOR_BLESS").is_some() {
        return std::fs::write(path, actual).map_err(|e| format!("{}: {e}", path.display()));
    }
    Err(format!("{}\n{}", path.display(), first_difference(&text, &actual)))
}

/// The file's text with the answers as they are.
///
/// # Errors
/// What is wrong with the file.
pub fn answer(text: &str) -> Result<String, String> {
    let mut database = Database::new();
    let mut out = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        writeln!(out, "{line}").expect("strings take everything");
        if let Some(collection) = line.strip_prefix("seed ") {
            let mut docs = Vec::new();
            while let Some(line) = lines.next_if(|l| !l.trim().is_empty()) {
                writeln!(out, "{line}").expect("strings take everything");
                if !line.starts_with('#') {
                    docs.push(Value::Document(
                        shell::document(line).map_err(|e| format!("{line}: {e}"))?,
                    ));
                }
            }
            database.seed(collection.trim(), docs)?;
        } else if let Some(doc) = line.strip_prefix("eval ") {
            let doc = shell::document(doc).map_err(|e| format!("{line}: {e}"))?;
            database.seed(EVALUATED, vec![doc.into()])?;
            while let Some(line) = lines.next_if(|l| !l.trim().is_empty()) {
                if line.starts_with('#') {
                    writeln!(out, "{line}").expect("strings take everything");
                    continue;
                }
                let (expression, rest) = shell::parse(line).map_err(|e| format!("{line}: {e}"))?;
                let written = line[..line.len() - rest.len()].trim_end();
                writeln!(out, "{written} => {}", database.eval(expression)).expect("strings take everything");
            }
        } else if let Some((who, command)) = sender(line) {
            let is_run = !line.starts_with("access ");
            let mut command = command.to_owned();
            let mut only: Vec<&str> = Vec::new();
            while let Some(line) = lines.next_if(|l| !l.trim().is_empty() && *l != "----") {
                writeln!(out, "{line}").expect("strings take everything");
                match line.strip_prefix("only ") {
                    Some(paths) => only.extend(paths.split_whitespace()),
                    None => command.push_str(line),
                }
            }
            // The old answer gives way to the new one.
            while lines.next_if(|l| !l.trim().is_empty()).is_some() {}
            let command = shell::document(&command).map_err(|e| format!("{command}: {e}"))?;
            let command = database.choose(who, command);
            out.push_str("----\n");
            if !is_run {
                out.push_str(&database.access(&command));
            } else if only.is_empty() {
                out.push_str(&database.show(&command));
            } else {
                out.push_str(&database.show_parts(&command, &only));
            }
        } else if !line.trim().is_empty() && !line.starts_with('#') {
            return Err(format!("a block starts with #, seed, eval, run, access or as: {line}"));
        }
    }
    Ok(out)
}

/// The collection of the document that `eval` blocks are about.
const EVALUATED: &str = "evaluated";

/// Who sends a command.
#[derive(Clone, Copy)]
struct Sender<'t> {
    name: &'t str,
    in_transaction: bool,
}

/// Takes a line apart that begins a command.
fn sender(line: &str) -> Option<(Option<Sender<'_>>, &str)> {
    if let Some(command) = line.strip_prefix("run ").or(line.strip_prefix("access ")) {
        return Some((None, command));
    }
    let (name, rest) = line.strip_prefix("as ")?.split_once(' ')?;
    let (command, in_transaction) = match rest.strip_prefix("txn ") {
        Some(command) => (command, true),
        None => (rest.strip_prefix("run ")?, false),
    };
    Some((Some(Sender { name, in_transaction }), command))
}

fn first_difference(expected: &str, actual: &str) -> String {
    let mut command = "";
    for (number, (want, got)) in expected.lines().zip(actual.lines()).enumerate() {
        if ["run ", "seed ", "as ", "eval "]
            .iter()
            .any(|start| want.starts_with(start))
        {
            command = want;
        }
        if want != got {
            return format!(
                "line {}, after: {command}\n  expected: {want}\n  answered: {got}",
                number + 1
            );
        }
    }
    let (want, got) = (expected.lines().count(), actual.lines().count());
    format!("after: {command}\n  expected {want} lines, answered {got}")
}

/// A database of its own, with those who send it commands.
pub(crate) struct Database {
    service: Service,
    /// The connection of commands that nobody in particular sends.
    connection: Connection,
    /// The sessions by name.
    sessions: BTreeMap<String, Session>,
    /// The client that sends the next commands.
    current: Option<String>,
}

struct Session {
    connection: Connection,
    lsid: Value,
    txn_number: i64,
    in_transaction: bool,
}

impl Database {
    pub(crate) fn new() -> Self {
        let engine = Engine::ephemeral(EngineOptions::at_time(1_700_000_000));
        let service = Service::new(DatabaseOptions::default(), engine).with_relational(Arc::new(SqlStage));
        let connection = Connection::new(&service, "golden");
        Self {
            service,
            connection,
            sessions: BTreeMap::new(),
            current: None,
        }
    }

    /// Makes `sender` the one who sends the next commands, and the command one of its session or transaction.
    fn choose(&mut self, sender: Option<Sender<'_>>, mut command: Document) -> Document {
        self.current = sender.map(|sender| sender.name.to_owned());
        let Some(sender) = sender else { return command };
        let number = self.sessions.len() as u8 + 1;
        let session = self.sessions.entry(sender.name.to_owned()).or_insert_with(|| Session {
            connection: Connection::new(&self.service, "golden"),
            lsid: Value::Document(doc! { "id": Binary { subtype: 4, bytes: [number; 16].as_slice().into() } }),
            txn_number: 0,
            in_transaction: false,
        });
        command.push("lsid", session.lsid.clone());
        if !sender.in_transaction {
            return command;
        }
        let ends =
            ["commitTransaction", "abortTransaction"].contains(&command.iter().next().map_or("", |(name, _)| name));
        if !ends && !session.in_transaction {
            session.txn_number += 1;
            command.push("startTransaction", true);
        }
        session.in_transaction = !ends;
        command.push("txnNumber", session.txn_number);
        command.push("autocommit", false);
        if ends {
            command.push("$db", "admin");
        }
        command
    }

    /// Runs a command and gives its reply.
    pub(crate) fn command(&mut self, command: &Document) -> Document {
        let raw = in_database(command).to_raw();
        let session = self.current.as_ref().and_then(|name| self.sessions.get_mut(name));
        let connection = session.map_or(&mut self.connection, |session| &mut session.connection);
        let outcome = self.service.run(connection, Request::new(raw.as_raw()));
        let reply = RawDoc::validate(&outcome.reply).expect("a reply is BSON");
        Document::from(reply.to_buf())
    }

    fn seed(&mut self, collection: &str, docs: Vec<Value>) -> Result<(), String> {
        self.current = None;
        self.command(&doc! { "drop": collection });
        if docs.is_empty() {
            return Ok(());
        }
        let documents: Array = docs.into_iter().collect();
        let reply = self.command(&doc! { "insert": collection, "documents": documents });
        let failed = reply.get("writeErrors").is_some() || !reply.get("ok").is_some_and(ValueRef::truthy);
        if failed {
            Err(format!("seed {collection}: {reply:?}"))
        } else {
            Ok(())
        }
    }

    /// The value of an expression for the one document of the collection [`EVALUATED`].
    fn eval(&mut self, expression: Value) -> String {
        let stage = doc! { "$replaceWith": doc! { "r": expression } };
        let pipeline: Array = [Value::Document(stage)].into_iter().collect();
        let reply = self.command(&doc! { "aggregate": EVALUATED, "pipeline": pipeline, "cursor": Document::new() });
        if !reply.get("ok").is_some_and(ValueRef::truthy) {
            return error(&reply);
        }
        let batch = at(ValueRef::Document(reply.as_ref()), "cursor.firstBatch");
        let value = batch.and_then(|batch| {
            let row = batch.as_array()?.iter().next()?;
            Some(row.as_document()?.get("r")?.to_value())
        });
        value.map_or_else(|| "missing".into(), |value| shell::print(&value))
    }

    /// The collections that a command reads and writes, and the rights that it needs.
    fn access(&mut self, command: &Document) -> String {
        let raw = in_database(command).to_raw();
        let access = match self.service.access(&mut self.connection, Request::new(raw.as_raw())) {
            Ok(Some(access)) => access,
            Ok(None) => return "no operation on documents\n".into(),
            Err(error) => return format!("error {}: {}\n", error.code(), error.message()),
        };
        let names = |namespaces: &[Namespace]| {
            namespaces
                .iter()
                .map(Namespace::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let mut out = String::new();
        for (what, namespaces) in [("reads", &access.reads), ("writes", &access.writes)] {
            if !namespaces.is_empty() {
                writeln!(out, "{what} {}", names(namespaces)).expect("strings take everything");
            }
        }
        for Privilege { resource, action } in &access.privileges {
            let resource = match resource {
                Resource::Collection(ns) => ns.to_string(),
                Resource::Database(db) => format!("database {db}"),
                Resource::AllCollections => "all collections".into(),
                Resource::Cluster => "the cluster".into(),
            };
            writeln!(out, "needs {} on {resource}", action.name()).expect("strings take everything");
        }
        if access.privileges.is_empty() {
            out.push_str("needs no right\n");
        }
        out
    }

    fn show_parts(&mut self, command: &Document, paths: &[&str]) -> String {
        let reply = self.command(command);
        if !reply.get("ok").is_some_and(ValueRef::truthy) {
            return error(&reply) + "\n";
        }
        let part = |path: &&str| {
            let found = at(ValueRef::Document(reply.as_ref()), path);
            format!(
                "{path}: {}\n",
                found.map_or("none".into(), |value| shell::print(&value))
            )
        };
        paths.iter().map(part).collect()
    }

    fn show(&mut self, command: &Document) -> String {
        let mut reply = self.command(command);
        let mut out = String::new();
        let mut line = |text: String| writeln!(out, "{text}").expect("strings take everything");
        if !reply.get("ok").is_some_and(ValueRef::truthy) {
            line(error(&reply));
            return out;
        }
        if command.iter().next().is_some_and(|(name, _)| name == "explain") {
            explained(reply.as_ref(), &mut line);
            return out;
        }
        let Some(ValueRef::Document(cursor)) = reply.get("cursor") else {
            let rest = without(&reply, &["ok", "$clusterTime", "operationTime", "electionId", "opTime"]);
            line(if rest.is_empty() {
                "ok".into()
            } else {
                shell::print(&Value::Document(rest))
            });
            return out;
        };
        let mut batch = cursor.get("firstBatch").map(ValueRef::to_value);
        let mut id = cursor.get("id").map(ValueRef::to_value);
        let collection = cursor.get("ns").and_then(ValueRef::as_str).unwrap_or_default();
        let collection = collection.split_once('.').map_or("", |(_, name)| name).to_owned();
        loop {
            if let Some(Value::Array(items)) = &batch {
                items.iter().for_each(|item| line(shell::print(item)));
            }
            let open = match &id {
                Some(Value::Int64(n)) if *n != 0 => *n,
                _ => break,
            };
            reply = self.command(&doc! { "getMore": open, "collection": collection.as_str() });
            let Some(ValueRef::Document(cursor)) = reply.get("cursor") else {
                line(error(&reply));
                break;
            };
            batch = cursor.get("nextBatch").map(ValueRef::to_value);
            id = cursor.get("id").map(ValueRef::to_value);
        }
        out
    }
}

/// A command with the database that it is sent to.
fn in_database(command: &Document) -> Document {
    let mut command = command.clone();
    if command.get("$db").is_none() {
        command.push("$db", "test");
    }
    command
}

/// Figures of explain that depend on how values are laid out in memory.
const MEMORY_SIZES: [&str; 5] = [
    "maxAccumulatorMemoryUsageBytes",
    "maxTotalMemoryUsageBytes",
    "totalDataSizeSorted",
    "totalDataSizeSortedBytesEstimate",
    "totalOutputDataSizeBytes",
];

/// A value of explain without times, and without sizes in memory.
fn untimed(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Document(doc) => Value::Document(
            doc.iter()
                .filter(|(name, _)| !name.starts_with("executionTime"))
                .map(|(name, value)| match MEMORY_SIZES.contains(&name) {
                    true => (name.into(), "counted".into()),
                    false => (name.into(), untimed(value)),
                })
                .collect(),
        ),
        ValueRef::Array(items) => Value::Array(items.iter().map(untimed).collect()),
        other => other.to_value(),
    }
}

/// The value at a path; through an array the values of its elements.
fn at(value: ValueRef<'_>, path: &str) -> Option<Value> {
    let (name, rest) = match path.split_once('.') {
        Some((name, rest)) => (name, Some(rest)),
        None => (path, None),
    };
    match value {
        ValueRef::Document(doc) => {
            let inner = doc.get(name)?;
            rest.map_or_else(|| Some(inner.to_value()), |rest| at(inner, rest))
        }
        ValueRef::Array(items) => Some(items.iter().filter_map(|item| at(item, path)).collect::<Array>().into()),
        _ => None,
    }
}

fn error(reply: &Document) -> String {
    let code = match reply.get("code") {
        Some(ValueRef::Int32(code)) => ErrorCode::location(code),
        _ => return format!("no code in {reply:?}"),
    };
    let rest = without(
        reply,
        &["ok", "code", "codeName", "errmsg", "$clusterTime", "operationTime"],
    );
    let rest = if rest.is_empty() {
        String::new()
    } else {
        format!(" {}", shell::print(&Value::Document(rest)))
    };
    let message = match reply.get("errmsg") {
        Some(ValueRef::String(message)) => message.replace('\n', "\\n"),
        _ => return format!("no errmsg in {reply:?}"),
    };
    format!("error {code}{rest}: {message}")
}

/// The lines of an explain's plans and counts.
fn explained(reply: DocRef<'_>, line: &mut dyn FnMut(String)) {
    if let Some(ValueRef::Document(planner)) = reply.get("queryPlanner") {
        if let Some(ValueRef::Document(plan)) = planner.get("winningPlan") {
            stage(plan, 0, line);
        }
        for plan in documents(planner.get("rejectedPlans")) {
            line("rejected:".into());
            stage(plan, 1, line);
        }
    }
    if let Some(ValueRef::Document(stats)) = reply.get("executionStats") {
        line("executed:".into());
        stage(stats, 1, line);
    }
    stages(reply.get("stages"), line);
}

/// The lines of the stages of an explained pipeline. Those of a pipeline that a stage runs over another collection stand below it.
fn stages(items: Option<ValueRef<'_>>, line: &mut dyn FnMut(String)) {
    for item in documents(items) {
        let cursor = ["$cursor", "$geoNearCursor"]
            .into_iter()
            .find_map(|name| Some((name, item.get(name)?)));
        if let Some((own, ValueRef::Document(cursor))) = cursor {
            line(format!("{own}:"));
            explained(cursor, line);
            let figures = item.iter().filter(|(name, _)| *name != own);
            let figures: Document = figures.map(|(name, value)| (name.into(), value.to_value())).collect();
            if !figures.is_empty() {
                stage(figures.as_ref(), 1, line);
            }
            continue;
        }
        let union = item.get("$unionWith").and_then(ValueRef::as_document);
        match union.and_then(|union| union.get("pipeline")) {
            Some(pipeline) => {
                let mut shown = item.to_document();
                let mut union = union.map(DocRef::to_document).unwrap_or_default();
                union.set("pipeline", "below");
                shown.set("$unionWith", union);
                stage(shown.as_ref(), 0, line);
                stages(Some(pipeline), &mut |text| line(format!("    {text}")));
            }
            None => stage(item, 0, line),
        }
    }
}

/// A document, or those of an array.
fn documents(value: Option<ValueRef<'_>>) -> Vec<DocRef<'_>> {
    match value {
        Some(ValueRef::Array(items)) => items.iter().filter_map(ValueRef::as_document).collect(),
        value => value.and_then(ValueRef::as_document).into_iter().collect(),
    }
}

/// A stage of a plan, or the head of statistics, with what is below it.
fn stage(doc: DocRef<'_>, depth: usize, line: &mut dyn FnMut(String)) {
    const INPUTS: [&str; 3] = ["inputStage", "inputStages", "executionStages"];
    let own = |name: &str| !INPUTS.contains(&name) && !name.starts_with("executionTime") && name != "allPlansExecution";
    let fields: Document = doc
        .iter()
        .filter(|(name, _)| own(name))
        .map(|(name, value)| (name.into(), value.to_value()))
        .collect();
    line(format!(
        "{}{}",
        "  ".repeat(depth),
        shell::print(&untimed(fields.as_ref().into()))
    ));
    for input in INPUTS.into_iter().flat_map(|name| documents(doc.get(name))) {
        stage(input, depth + 1, line);
    }
}

fn without(doc: &Document, names: &[&str]) -> Document {
    let kept = doc.iter().filter(|(name, _)| !names.contains(name));
    kept.map(|(name, value)| (name.into(), value.to_value())).collect()
}
