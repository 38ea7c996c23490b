//! `killSessions`, `killAllSessions`, `killAllSessionsByPattern`: end sessions with their cursors and
//! running operations. Fields they do not know they pass over, as MongoDB does.

use crate::args::{Arg, At, unknown_field, wrong_type};
use crate::facts::Facts;
use crate::generic::session_id;
use crate::service::Service;
use crate::spec::CommandSpec;
use nestor_database::session_id::Lsid;
use nestor_model::value::{ArrayRef, DocRef};
use nestor_model::{ErrorCode, RawDoc, Result, ValueRef, bail};

/// `killSessions`: sessions by id; an empty array means the caller's own, which without users are all.
pub const KILL: CommandSpec =
    Facts::no_collection("killSessions", "Ends sessions by their ids.").runs(|context, _reply| {
        let sessions: Sessions = first(context.body, "killSessions")?;
        let all = sessions.0.is_empty();
        end_sessions(context.service, |lsid| all || sessions.0.contains(lsid));
        Ok(())
    });

/// `killAllSessions`: sessions of users; an empty array means everybody's.
pub const KILL_ALL: CommandSpec = Facts::no_collection("killAllSessions", "Ends all sessions, or those of some users.")
    .runs(|context, _reply| {
        let users: Users = first(context.body, "killAllSessions")?;
        // Nobody is logged in, so named users have no sessions.
        end_sessions(context.service, |_| users.0 == 0);
        Ok(())
    });

/// `killAllSessionsByPattern`: sessions that match one of the patterns; an empty array means all.
pub const KILL_BY_PATTERN: CommandSpec =
    Facts::no_collection("killAllSessionsByPattern", "Ends sessions that match a pattern.").runs(|context, _reply| {
        let patterns: Patterns = first(context.body, "killAllSessionsByPattern")?;
        let all = patterns.0.is_empty() || patterns.0.contains(&Pattern::All);
        end_sessions(context.service, |lsid| {
            all || patterns.0.contains(&Pattern::Session(*lsid))
        });
        Ok(())
    });

/// Ends sessions that `which` picks, with their cursors and running operations.
pub fn end_sessions(service: &Service, which: impl Fn(&Lsid) -> bool) {
    service.cursors.kill_sessions(&which);
    for slot in service.connections.all() {
        let operation = crate::lock(&slot.operation);
        if operation.opid == 0 || matches!(operation.command, "endSessions" | "killSessions") {
            continue;
        }
        let lsid = RawDoc::validate(&operation.body).ok().and_then(|body| {
            let at = At {
                path: operation.command,
                field: "lsid",
            };
            session_id(body.get("lsid")?, at).ok().flatten()
        });
        if lsid.is_some_and(|lsid| which(&lsid)) {
            slot.kill.kill(ErrorCode::Interrupted);
        }
    }
    for (lsid, _) in service.sessions.all() {
        if which(&lsid) {
            service.sessions.end(lsid);
        }
    }
}

/// Reads the command's own value.
fn first<'a, T: Arg<'a>>(body: RawDoc<'a>, name: &str) -> Result<T> {
    let at = At {
        path: name,
        field: name,
    };
    let value = body.iter().next().map_or(ValueRef::Null, |(_, value)| value);
    match T::parse(value, at)? {
        Some(value) => Ok(value),
        None => T::absent(at),
    }
}

fn items<'a, T>(
    value: ValueRef<'a>,
    at: At<'_>,
    mut read: impl FnMut(RawDoc<'a>, &str) -> Result<T>,
) -> Result<Option<Vec<T>>> {
    let array = match value {
        ValueRef::Array(ArrayRef::Raw(array)) => array,
        ValueRef::Null | ValueRef::Undefined => return Ok(None),
        other => return Err(wrong_type(at, other.bson_type(), "array")),
    };
    let mut out = Vec::new();
    for (i, (_, item)) in array.iter().enumerate() {
        let path = format!("{at}.{i}");
        match item {
            ValueRef::Document(DocRef::Raw(doc)) => out.push(read(doc, &path)?),
            ValueRef::Null | ValueRef::Undefined => {}
            other => return Err(wrong_type(path, other.bson_type(), "object")),
        }
    }
    Ok(Some(out))
}

/// An array of session ids.
#[derive(Debug)]
pub struct Sessions(pub Vec<Lsid>);

impl<'a> Arg<'a> for Sessions {
    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        let sessions = items(value, at, |doc, path| {
            let at = At { path, field: "id" };
            match session_id(ValueRef::Document(doc.as_doc()), at)? {
                Some(lsid) => Ok(lsid),
                None => bail!(40414, "BSON field '{path}.id' is missing but a required field"),
            }
        })?;
        Ok(sessions.map(Self))
    }
}

/// How many users an array of `{user, db}` names.
#[derive(Debug)]
struct Users(usize);

impl<'a> Arg<'a> for Users {
    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        let users = items(value, at, |doc, path| User::check(doc, path))?;
        Ok(users.map(|users| Self(users.len())))
    }
}

struct User;

impl User {
    fn check(doc: RawDoc<'_>, path: &str) -> Result<()> {
        for field in ["user", "db"] {
            match doc.get(field) {
                Some(ValueRef::String(_)) => {}
                None | Some(ValueRef::Null | ValueRef::Undefined) => {
                    bail!(40414, "BSON field '{path}.{field}' is missing but a required field")
                }
                Some(other) => return Err(wrong_type(At { path, field }, other.bson_type(), "string")),
            }
        }
        match doc.iter().find(|(name, _)| !matches!(*name, "user" | "db")) {
            Some((other, _)) => Err(unknown_field(path, other)),
            None => Ok(()),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Pattern {
    All,
    Session(Lsid),
    /// Of users or roles, whom nobody has logged in as.
    None,
}

#[derive(Debug)]
struct Patterns(Vec<Pattern>);

impl<'a> Arg<'a> for Patterns {
    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        let patterns = items(value, at, |doc, path| {
            let mut pattern = Pattern::All;
            for (name, value) in doc.iter() {
                match name {
                    "lsid" => {
                        let at = At { path, field: "lsid" };
                        pattern = session_id(value, at)?.map_or(Pattern::All, Pattern::Session);
                    }
                    "uid" | "users" | "roles" => pattern = Pattern::None,
                    other => return Err(unknown_field(path, other)),
                }
            }
            Ok(pattern)
        })?;
        Ok(patterns.map(Self))
    }
}
