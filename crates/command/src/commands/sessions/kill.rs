//! `killSessions`, `killAllSessions`, `killAllSessionsByPattern`: end sessions with their cursors and
//! running operations. Fields they do not know they pass over, as MongoDB does.

use crate::args::{Arg, At, unknown_field, wrong_type};
use crate::facts::{Facts, Flags};
use crate::generic::{GivenSession, digest};
use crate::needs::Needs;
use crate::privileges;
use crate::service::Service;
use crate::spec::CommandSpec;
use nestor_database::rights::{Action, Resource};
use nestor_database::session_id::{Lsid, Owner};
use nestor_database::users::UserName;
use nestor_model::value::{ArrayRef, DocRef};
use nestor_model::{ErrorCode, RawDoc, Result, ValueRef, bail};
use std::collections::HashSet;

/// `killSessions`: sessions by id; an empty array means the caller's own, which where nobody has to log in are all.
pub const KILL: CommandSpec = Facts::no_collection("killSessions", "Ends sessions by their ids.")
    .flags(Flags::ENDS_SESSIONS)
    .needs(Needs::Login)
    .runs(|context, _reply| {
        let given: Sessions = first(context.body, "killSessions")?;
        let owner = context.conn.identity.owner();
        let may_kill_any =
            privileges::grants(context).is_none_or(|grants| grants.on(&Resource::Cluster).has(Action::KillAnySession));
        let sessions = given.of(owner, may_kill_any)?;
        match sessions.is_empty() {
            true => end_those(context.service, |lsid| lsid.owner == owner),
            false => end(context.service, &sessions),
        }
        Ok(())
    });

/// `killAllSessions`: sessions of users; an empty array means everybody's.
pub const KILL_ALL: CommandSpec = Facts::no_collection("killAllSessions", "Ends all sessions, or those of some users.")
    .needs(Needs::server(Action::KillAnySession))
    .runs(|context, _reply| {
        let users: Users = first(context.body, "killAllSessions")?;
        end_those(context.service, |lsid| {
            users.0.is_empty() || users.0.contains(&lsid.owner)
        });
        Ok(())
    });

/// `killAllSessionsByPattern`: sessions that match one of the patterns; an empty array means all.
pub const KILL_BY_PATTERN: CommandSpec =
    Facts::no_collection("killAllSessionsByPattern", "Ends sessions that match a pattern.")
        .needs(Needs::server(Action::KillAnySession))
        .runs(|context, _reply| {
            let given: Patterns = first(context.body, "killAllSessionsByPattern")?;
            let owner = context.conn.identity.owner();
            let mut patterns = Vec::new();
            for pattern in given.0 {
                patterns.push(match pattern {
                    Pattern::Given(given) => Pattern::Session(given.of(owner, true)?),
                    Pattern::None if context.service.options.authorization => {
                        bail!(
                            Unauthorized,
                            "Not authorized to impersonate in killAllSessionsByPattern"
                        )
                    }
                    other => other,
                });
            }
            end_those(context.service, |lsid| {
                patterns.is_empty() || patterns.iter().any(|pattern| pattern.fits(lsid))
            });
            Ok(())
        });

/// Ends these sessions, with their cursors and running operations.
pub fn end(service: &Service, sessions: &HashSet<Lsid>) {
    interrupt(service, |lsid| sessions.contains(lsid));
    for lsid in sessions {
        service.sessions.end(lsid);
    }
}

/// Ends the sessions that `which` picks, with their cursors and running operations.
fn end_those(service: &Service, which: impl Fn(&Lsid) -> bool) {
    interrupt(service, &which);
    service.sessions.end_those(which);
}

/// Ends the cursors and running operations of the sessions that `which` picks.
fn interrupt(service: &Service, which: impl Fn(&Lsid) -> bool) {
    service.cursors.kill_sessions(&which);
    for slot in service.connections.all() {
        let operation = crate::lock(&slot.operation);
        let facts = service.commands.lookup(operation.command);
        if operation.opid == 0 || facts.is_some_and(|facts| facts.flags.has(Flags::ENDS_SESSIONS)) {
            continue;
        }
        if operation.lsid.is_some_and(|lsid| which(&lsid)) {
            slot.kill.kill(ErrorCode::Interrupted);
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
pub struct Sessions(Vec<GivenSession>);

impl Sessions {
    /// The sessions, which belong to `owner` unless they were said to be another's.
    ///
    /// Errors: those of [`GivenSession::of`].
    pub fn of(&self, owner: Owner, may_name_others: bool) -> Result<HashSet<Lsid>> {
        let sessions = self.0.iter();
        sessions.map(|given| given.of(owner, may_name_others)).collect()
    }
}

impl<'a> Arg<'a> for Sessions {
    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        let sessions = items(value, at, |doc, path| {
            let at = At { path, field: "id" };
            match GivenSession::read(ValueRef::Document(doc.as_doc()), at)? {
                Some(given) => Ok(given),
                None => bail!(40414, "BSON field '{path}.id' is missing but a required field"),
            }
        })?;
        Ok(sessions.map(Self))
    }
}

/// The users that an array of `{user, db}` names.
#[derive(Debug)]
struct Users(Vec<Owner>);

impl<'a> Arg<'a> for Users {
    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        let users = items(value, at, |doc, path| {
            User::check(doc, path)?;
            UserName::parse_any(ValueRef::Document(doc.as_doc()), "").map(|user| Owner::of(&user))
        })?;
        Ok(users.map(Self))
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
    /// A session of the caller's, or of another whose digest stands with it.
    Given(GivenSession),
    /// Sessions of one user.
    Owner(Owner),
    /// Of users or roles that another server would have checked.
    None,
}

impl Pattern {
    fn fits(&self, lsid: &Lsid) -> bool {
        match self {
            Self::All => true,
            Self::Session(session) => session == lsid,
            Self::Owner(owner) => *owner == lsid.owner,
            Self::Given(_) | Self::None => false,
        }
    }
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
                        pattern = GivenSession::read(value, at)?.map_or(Pattern::All, Pattern::Given);
                    }
                    "uid" => {
                        let at = At { path, field: "uid" };
                        pattern = digest(value, at)?.map_or(Pattern::All, Pattern::Owner);
                    }
                    "users" | "roles" => pattern = Pattern::None,
                    other => return Err(unknown_field(path, other)),
                }
            }
            Ok(pattern)
        })?;
        Ok(patterns.map(Self))
    }
}
