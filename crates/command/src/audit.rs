//! Which commands go to the audit log ([`nestor_database::audit`]), and as what.
//!
//! Changes of the catalog are told by the commits that make them, whichever command asked for them; what else is recorded of a command
//! that ran stands in one table (`told`), and so do failed attempts to change the catalog. Logging in and out and the server's own
//! configuration are told where they happen, by [`Context::note`].
//!
//! Source: manual, "mongo Schema Audit Messages".

use crate::context::Context;
use crate::facts::hidden;
use nestor_database::audit::changes::Change;
use nestor_database::audit::{Actor, Event, end};
use nestor_database::users::{RoleName, roles_namespace, users_namespace};
use nestor_model::{Document, Error, ErrorCode, RawDoc, Result, Value, ValueRef, doc};

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
    let account = conn.identity.account();
    Actor {
        uuid: context.service.node.connection_uuid(conn.id),
        local: end(conn.host),
        remote: end(conn.peer),
        users: account
            .iter()
            .map(|account| account.name.to_document().into())
            .collect(),
        roles: account
            .iter()
            .flat_map(|account| &account.all_roles)
            .map(|role| role.to_document().into())
            .collect(),
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
    let ns = match context.named_collection() {
        Some((db, coll)) => format!("{db}.{coll}"),
        None => context.db().to_owned(),
    };
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
        if passed && changes.is_empty() {
            events.extend(failed.and_then(|code| attempt(context, code)).into_iter().flatten());
        }
        if passed {
            events.extend(told(context, failed));
        }
    }
    events.extend(changes.into_iter().map(of_change));
    if events.is_empty() {
        return;
    }
    let actor = actor(context);
    for event in events {
        if let Err(error) = node.audit().record(nestor_database::clock::now_ms(), &actor, event) {
            let attr = doc! { "error": error.to_string() };
            let ctx = format!("conn{}", context.conn.id);
            node.log().error(
                "CONTROL",
                20_007,
                &ctx,
                "Cannot write to the audit log: the server stops",
                attr,
            );
            node.stop.request();
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

fn index(ns: &str, name: &str, spec: Document, state: &str) -> Document {
    doc! { "ns": ns, "indexName": name, "indexSpec": spec, "indexBuildState": state }
}

/// A command that would have changed the catalog, and failed; `None` for others.
fn attempt(context: &Context<'_>, code: ErrorCode) -> Option<Vec<Event>> {
    let (body, db) = (context.body, context.db());
    let named = context.named_collection();
    let ns = named.map_or_else(|| db.to_owned(), |(db, coll)| format!("{db}.{coll}"));
    let first = body.iter().next().map(|(_, value)| value);
    let event = |action, param| Event {
        action,
        param,
        result: code.number(),
    };
    let one = match context.spec.name {
        "create" => event("createCollection", doc! { "ns": ns }),
        "drop" => event("dropCollection", doc! { "ns": ns }),
        "dropDatabase" => event("dropDatabase", doc! { "ns": db }),
        "dropIndexes" => {
            let name = body.get("index").map(|v| v.to_value());
            event("dropIndex", doc! { "ns": ns, "indexName": name })
        }
        "renameCollection" => {
            let (old, new) = (first.map(|v| v.to_value()), body.get("to").map(|v| v.to_value()));
            event("renameCollection", doc! { "old": old, "new": new })
        }
        "createIndexes" => {
            let specs = body.get("indexes").and_then(ValueRef::as_array);
            let specs = specs.into_iter().flat_map(|specs| specs.iter());
            let attempts = specs.filter_map(ValueRef::as_document).map(|spec| {
                let name = spec.get("name").and_then(ValueRef::as_str).unwrap_or_default();
                event("createIndex", index(&ns, name, spec.to_document(), "IndexBuildAborted"))
            });
            return Some(attempts.collect());
        }
        _ => return None,
    };
    Some(vec![one])
}

/// Of whom a command of users and roles tells, and which of its fields.
struct Told {
    action: &'static str,
    whose: &'static str,
    fields: &'static [&'static str],
}

const USER: &[&str] = &["customData", "roles", "authenticationRestrictions"];
const ROLE: &[&str] = &["roles", "privileges", "authenticationRestrictions"];

/// The record of a command whether or not it failed.
fn told(context: &Context<'_>, failed: Option<ErrorCode>) -> Option<Event> {
    let body = context.body;
    let of = |action, whose, fields| Some(Told { action, whose, fields });
    let table = match context.spec.name {
        "createUser" => of("createUser", "user", USER),
        "updateUser" => of("updateUser", "user", USER),
        "dropUser" => of("dropUser", "user", &[]),
        "dropAllUsersFromDatabase" => of("dropAllUsersFromDatabase", "", &[]),
        "grantRolesToUser" => of("grantRolesToUser", "user", &["roles"]),
        "revokeRolesFromUser" => of("revokeRolesFromUser", "user", &["roles"]),
        "createRole" => of("createRole", "role", ROLE),
        "updateRole" => of("updateRole", "role", ROLE),
        "dropRole" => of("dropRole", "role", &[]),
        "dropAllRolesFromDatabase" => of("dropAllRolesFromDatabase", "", &[]),
        "grantRolesToRole" => of("grantRolesToRole", "role", &["roles"]),
        "revokeRolesFromRole" => of("revokeRolesFromRole", "role", &["roles"]),
        "grantPrivilegesToRole" => of("grantPrivilegesToRole", "role", &["privileges"]),
        "revokePrivilegesFromRole" => of("revokePrivilegesFromRole", "role", &["privileges"]),
        _ => None,
    };
    let event = |action, param| Event {
        action,
        param,
        result: failed.map_or(0, |code| code.number()),
    };
    let Some(Told { action, whose, fields }) = table else {
        let first = body.iter().next().map(|(_, value)| value.to_value());
        return match context.spec.name {
            "logApplicationMessage" => Some(event("applicationMessage", doc! { "msg": first })),
            "getClusterParameter" => Some(event(
                "getClusterParameter",
                doc! { "requestedClusterServerParameters": first },
            )),
            "_mergeAuthzCollections" => {
                let document = body.as_doc().to_document();
                Some(event(
                    "directAuthMutation",
                    doc! { "document": document, "ns": users_namespace().to_string(), "operation": "command" },
                ))
            }
            "insert" | "update" | "delete" | "findAndModify" => {
                direct(context).map(|param| event("directAuthMutation", param))
            }
            _ => None,
        };
    };
    let mut param = Document::new();
    if !whose.is_empty() {
        param.push(whose, body.iter().next().map(|(_, value)| value.to_value()));
    }
    param.push("db", context.db());
    if action == "updateUser" {
        param.push("passwordChanged", body.get("pwd").is_some());
    }
    for field in fields {
        if let Some(value) = shown(body, field, context.db()) {
            param.push(*field, value);
        }
    }
    Some(event(action, param))
}

/// A field as records show it: names of roles always with their databases.
fn shown(body: RawDoc<'_>, field: &str, db: &str) -> Option<Value> {
    let value = body.get(field)?;
    let (Some(roles), "roles") = (value.as_array(), field) else {
        return Some(value.to_value());
    };
    let named = roles.iter().map(|role| match RoleName::parse(role, db) {
        Ok(name) => Value::from(name.to_document()),
        Err(_) => role.to_value(),
    });
    Some(named.collect::<Vec<_>>().into())
}

/// A write to the documents of users or roles themselves. What is written stays out of the record: it holds credentials.
fn direct(context: &Context<'_>) -> Option<Document> {
    let (db, coll) = context.named_collection()?;
    let own = [users_namespace(), roles_namespace()];
    let ns = own.iter().find(|ns| ns.db == db && ns.coll == coll)?;
    Some(doc! { "ns": ns.to_string(), "operation": context.spec.name })
}
