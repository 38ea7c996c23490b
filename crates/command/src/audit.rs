//! Which commands go to the audit log ([`nestor_database::audit`]), and as what.
//!
//! Changes of the catalog are told by the commits that make them, whichever command asked for them; what else is recorded of a command
//! that ran, and of failed attempts to change the catalog, says the table of commands ([`Audited`](crate::audited::Audited)). Logging in and out and the server's own
//! configuration are told where they happen, by [`Context::note`].
//!
//! Source: manual, "mongo Schema Audit Messages".

use crate::audited::{Told, Words, index};
use crate::context::Context;
use crate::facts::hidden;
use nestor_database::audit::changes::Change;
use nestor_database::audit::{Actor, Event};
use nestor_model::{Document, Error, ErrorCode, Result, doc};

impl Context<'_> {
    /// Keeps an event for the audit log, if there is one.
    pub fn note(&mut self, action: &'static str, param: impl FnOnce() -> Document, result: Option<ErrorCode>) {
        if self.service.node.audit().is_on() {
            self.after.audited.push(Event {
                action,
                param: param(),
                result: result.map_or(0, |code| code.number()),
            });
        }
    }
}

/// The user who runs a command.
fn actor(context: &Context<'_>) -> Actor {
    let conn = &context.conn;
    if conn.peer.is_empty() {
        return Actor::process(context.service.node.process_uuid());
    }
    let uuid = context.service.node.connection_uuid(conn.id);
    let account = conn.identity.account().map(|account| &**account);
    Actor::connection(uuid, (conn.host, conn.peer), account)
}

fn words<'r>(context: &Context<'r>) -> Words<'r> {
    Words {
        name: context.spec.name,
        db: context.db(),
        collection: context.named_collection(),
        body: context.body,
    }
}

/// Tells that a command was allowed or refused.
pub fn checked(context: &mut Context<'_>, allowed: &Result<()>) {
    let refused = match allowed {
        Ok(()) => None,
        Err(error) if error.code() == ErrorCode::Unauthorized => Some(ErrorCode::Unauthorized),
        // A command that cannot be parsed is no matter of rights.
        Err(_) => return,
    };
    if refused.is_none() && !context.service.node.audit().records_success() || context.conn.parked.is_some() {
        return;
    }
    let (spec, body) = (context.spec, context.body);
    let secrets = context.service.commands.secrets(spec, body);
    let ns = words(context).ns();
    let param = || {
        let shown = hidden(body, secrets);
        let args = shown.as_ref().map_or(body, |shown| shown.as_raw());
        doc! { "command": spec.name, "ns": ns, "args": args.as_doc().to_document() }
    };
    context.note("authCheck", param, refused);
}

/// Writes what there is to record of a command that has run. If that fails the server is asked to stop: nobody may act unseen.
pub fn write(context: &mut Context<'_>, result: &Result<()>) {
    let node = &context.service.node;
    if !node.audit().is_on() {
        return;
    }
    let changes = context.catalog_changes.take();
    let mut events: Vec<Event> = std::mem::take(&mut context.after.audited);
    if context.after.park.is_none() {
        let failed = result.as_ref().err().map(Error::code);
        let passed = failed != Some(ErrorCode::Unauthorized);
        let (spec, words) = (context.spec, words(context));
        let mut tell = |told: Vec<Told>| {
            events.extend(told.into_iter().map(|(action, param)| Event {
                action,
                param,
                result: failed.map_or(0, |code| code.number()),
            }));
        };
        if passed && failed.is_some() && changes.is_empty() {
            tell(spec.audited.attempts(&words));
        }
        if passed {
            tell(spec.audited.told(&words).into_iter().collect());
        }
    }
    events.extend(changes.into_iter().map(of_change));
    if events.is_empty() {
        return;
    }
    let actor = actor(context);
    let thread = format!("conn{}", context.conn.id);
    for event in events {
        if !node.record(&thread, &actor, event) {
            return;
        }
    }
}

fn of_change(change: Change) -> Event {
    let mut result = 0;
    let (action, param) = match change {
        Change::NewDatabase(db) => ("createDatabase", doc! { "ns": db }),
        Change::NoDatabase(db) => ("dropDatabase", doc! { "ns": db }),
        Change::NewCollection { ns, view } => {
            let mut param = doc! { "ns": ns.to_string() };
            if let Some((on, pipeline)) = view {
                param.push("viewOn", format!("{}.{on}", ns.db));
                param.push("pipeline", pipeline);
            }
            ("createCollection", param)
        }
        Change::NoCollection(ns) => ("dropCollection", doc! { "ns": ns.to_string() }),
        Change::Renamed { old, new } => (
            "renameCollection",
            doc! { "old": old.to_string(), "new": new.to_string() },
        ),
        Change::NewIndex {
            ns,
            name,
            spec,
            is_ready,
        } => {
            let state = if is_ready {
                "IndexBuildSucceeded"
            } else {
                "IndexBuildStarted"
            };
            ("createIndex", index(&ns.to_string(), &name, spec, state))
        }
        Change::BuildEnded { ns, name, spec, error } => {
            result = error.map_or(0, |code| code.number());
            let state = match error {
                None => "IndexBuildSucceeded",
                Some(_) => "IndexBuildAborted",
            };
            ("createIndex", index(&ns.to_string(), &name, spec, state))
        }
        Change::NoIndex { ns, name } => ("dropIndex", doc! { "ns": ns.to_string(), "indexName": name }),
    };
    Event { action, param, result }
}
