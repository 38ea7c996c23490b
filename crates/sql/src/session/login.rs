//! Logging in: SCRAM-SHA-256 with the users that commands have, and what a user who is logged in may do.
//!
//! A user of the connection's database is meant first, then one of `admin`: PostgreSQL's messages have no place for the database that a
//! user belongs to.

use crate::error::error;
use nestor_database::Database;
use nestor_database::audit::{Actor, Event};
use nestor_database::connections::Slot;
use nestor_database::login::mechanism::Mechanism;
use nestor_database::login::nonce;
use nestor_database::login::scram::{Challenge, Hello};
use nestor_database::users::restriction::Ends;
use nestor_database::users::{Account, UserName};
use nestor_model::namespace::ADMIN;
use nestor_model::{Document, Error, ErrorCode, Result, doc};
use std::sync::{Arc, PoisonError};

/// The only mechanism, as PostgreSQL names it.
pub const MECHANISM: &str = "SCRAM-SHA-256";

/// A user who is logged in.
#[derive(Clone, Debug)]
pub struct Login {
    /// The user's account.
    pub account: Arc<Account>,
    /// The generation of the users that this is of.
    generation: u64,
}

/// An exchange that has begun and waits for the client's proof.
#[derive(Debug)]
pub struct Exchange {
    name: UserName,
    challenge: Challenge,
}

/// The ends of a connection as `address:port`: the server's, the client's.
#[derive(Clone, Copy, Debug)]
pub struct Peers<'p> {
    /// The address that the client came to.
    pub host: &'p str,
    /// The client's address.
    pub peer: &'p str,
}

fn refused(user: &str) -> Error {
    error("28P01", format!("password authentication failed for user \"{user}\""))
}

/// Answers the client's first message with a challenge. Who does not exist is challenged as well.
///
/// Errors: 28P01 for a message that is none; those of reading users.
pub fn begin(database: &Database, (user, db): (&str, &str), message: &[u8]) -> Result<(Exchange, String)> {
    let hello = Hello::parse_of(user, message).map_err(|_| refused(user))?;
    let mut name = UserName::new(user, db);
    let mut account = database.users.account(&name)?.0;
    if account.is_none() {
        name = UserName::new(user, ADMIN);
        account = database.users.account(&name)?.0;
    }
    let mechanism = Mechanism::ScramSha256;
    let iterations = database.node.parameters.iterations(mechanism);
    let users = &database.users;
    let credential = users.credential((mechanism, iterations), &name, account.as_deref())?;
    let (challenge, answer) = hello.challenge(credential, &nonce()?);
    Ok((Exchange { name, challenge }, answer))
}

/// Checks the client's proof: the login, and the server's own proof. Log and audit log are told what came of it.
///
/// Errors: 28P01 when anything is wrong, also when the user may not come from there.
pub fn finish(
    database: &Database,
    slot: &Slot,
    peers: Peers<'_>,
    exchange: Exchange,
    message: &[u8],
) -> Result<(Login, String)> {
    let name = exchange.name;
    let ends = Ends::parse(peers.peer, peers.host);
    let proved = exchange.challenge.verify(message).ok();
    // The user may have gone since the challenge.
    let (account, generation) = database.users.account(&name)?;
    let account = account.filter(|account| account.may_come_by(ends));
    let login = proved
        .zip(account)
        .map(|(answer, account)| (Login { account, generation }, answer));
    tell(database, slot, peers, &name, login.as_ref().map(|(login, _)| login));
    let (login, answer) = login.ok_or_else(|| refused(&name.user))?;
    *slot.user.lock().unwrap_or_else(PoisonError::into_inner) = Some(name);
    Ok((login, answer))
}

fn tell(database: &Database, slot: &Slot, peers: Peers<'_>, name: &UserName, login: Option<&Login>) {
    let (id, what) = match login {
        Some(_) => (5_286_306, "Successfully authenticated"),
        None => (5_286_307, "Failed to authenticate"),
    };
    let said = doc! { "user": name.user.clone(), "db": name.db.clone(), "mechanism": MECHANISM };
    let mut attr = said.clone();
    attr.push("client", peers.peer);
    let thread = format!("conn{}", slot.id);
    database.node.log().info("ACCESS", id, &thread, what, attr);
    let code = login.is_none().then_some(ErrorCode::AuthenticationFailed);
    record(database, slot, peers, login, ("authenticate", said, code));
}

/// Writes to the audit log, if there is one.
pub fn record(
    database: &Database,
    slot: &Slot,
    peers: Peers<'_>,
    login: Option<&Login>,
    (action, param, code): (&'static str, Document, Option<ErrorCode>),
) {
    if !database.node.audit().is_on() {
        return;
    }
    let uuid = database.node.connection_uuid(slot.id);
    let account = login.map(|login| &*login.account);
    let actor = Actor::connection(uuid, (peers.host, peers.peer), account);
    let result = code.map_or(0, |code| code.number());
    let event = Event { action, param, result };
    database.node.record(&format!("conn{}", slot.id), &actor, event);
}

impl Login {
    /// Brings what is known of the user up to date; `false` when the user is gone, another one has the name, or the user may not come
    /// over this connection any more. Costs a few loads while no user or role changes.
    ///
    /// Errors: those of reading users.
    pub fn refresh(&mut self, database: &Database, peers: Peers<'_>) -> Result<bool> {
        if self.generation == database.users.generation() {
            return Ok(true);
        }
        let (account, generation) = database.users.account(&self.account.name)?;
        let ends = Ends::parse(peers.peer, peers.host);
        match account.filter(|account| account.id == self.account.id && account.may_come_by(ends)) {
            Some(account) => {
                *self = Self { account, generation };
                Ok(true)
            }
            None => Ok(false),
        }
    }
}
