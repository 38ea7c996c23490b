//! Ways in: the exchange of messages by which a client proves that it knows a password (SCRAM), the password itself (PLAIN), a certificate
//! (MONGODB-X509).

use crate::context::Context;
use crate::identity::{Exchange, Login, Step};
use crate::request::{Park, Wake};
use nestor_database::login::mechanism::Mechanism;
use nestor_database::login::scram::Hello;
use nestor_database::login::{failed, nonce};
use nestor_database::parameters::Param;
use nestor_database::session_id::Owner;
use nestor_database::users::restriction::Ends;
use nestor_database::users::{Account, UserName};
use nestor_model::{Document, Error, ErrorCode, Result, bail, doc};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How a client begins.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// The database that the user belongs to.
    pub db: &'a str,
    /// Name of the mechanism.
    pub mechanism: &'a str,
    /// The first message.
    pub payload: &'a [u8],
    /// The client wants no empty messages at the end.
    pub skips_empty: bool,
}

/// The answer to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The message.
    pub payload: Vec<u8>,
    /// The exchange is over and the client logged in.
    pub done: bool,
}

/// Number of an exchange; a connection has one at a time.
pub const CONVERSATION_ID: i32 = 1;

/// Begins to log in.
///
/// `None` asks to be run again later: whoever fails is told so only after a while, so that passwords cannot be guessed quickly.
///
/// Errors: 334 for a mechanism that is not there, 18 for whatever else is wrong.
pub fn start(context: &mut Context<'_>, start: Start<'_>) -> Result<Option<Answer>> {
    context.conn.identity.exchange = None;
    check_failure(context)?;
    if start.mechanism == PLAIN {
        return with_password(context, start);
    }
    let Some(mechanism) = Mechanism::of_name(start.mechanism) else {
        let name = UserName::new("", start.db);
        let unknown = Some(ErrorCode::MechanismUnavailable);
        context.note("authenticate", || audited(&name, start.mechanism), unknown);
        return Err(unavailable(start.mechanism));
    };
    let hello = Hello::parse(start.payload)?;
    let name = UserName::new(&hello.user, start.db);
    let (account, _) = context.service.users.account(&name)?;
    let has_others =
        |account: &Account| !account.credentials.is_empty() && !account.mechanisms().any(|own| own == mechanism);
    if account.as_deref().is_some_and(has_others) {
        // Drivers begin with the newest mechanism before they know which the user has, and would take a challenge for consent. Which ones a
        // user has, `hello` tells everybody.
        return Err(failed());
    }
    let iterations = context.service.node.parameters.iterations(mechanism);
    let users = &context.service.users;
    let credential = users.credential((mechanism, iterations), &name, account.as_deref())?;
    let (challenge, answer) = hello.challenge(credential, &nonce()?);
    context.conn.identity.exchange = Some(Exchange {
        name,
        mechanism,
        step: Step::Challenged(challenge),
        skips_empty: start.skips_empty,
    });
    Ok(Some(Answer {
        payload: answer.into_bytes(),
        done: false,
    }))
}

/// Goes on with what [`start`] began. An error ends the exchange.
///
/// `None` as for [`start`].
///
/// Errors: 17 when none has begun, or somebody else is logged in; 18 when anything is wrong.
pub fn proceed(context: &mut Context<'_>, conversation: i32, payload: &[u8]) -> Result<Option<Answer>> {
    check_failure(context)?;
    let Some(exchange) = context.conn.identity.exchange.take() else {
        bail!(ProtocolError, "No SASL session state found");
    };
    if conversation != CONVERSATION_ID {
        bail!(ProtocolError, "sasl: Mismatched conversation id");
    }
    match exchange.step {
        Step::Challenged(challenge) => match challenge.verify(payload) {
            Ok(answer) => {
                let answer = answer.into_bytes();
                if exchange.skips_empty {
                    return end(context, &exchange.name, exchange.mechanism.name(), answer);
                }
                context.conn.identity.exchange = Some(Exchange {
                    step: Step::Proved,
                    ..exchange
                });
                Ok(Some(Answer {
                    payload: answer,
                    done: false,
                }))
            }
            Err(error) => {
                tell(context, &exchange.name, exchange.mechanism.name(), Outcome::Failed);
                fail_later(context, error)
            }
        },
        Step::Proved if payload.is_empty() => end(context, &exchange.name, exchange.mechanism.name(), Vec::new()),
        Step::Proved => Err(failed()),
    }
}

/// The mechanism that sends the password itself.
pub const PLAIN: &str = "PLAIN";
/// The mechanism of certificates.
pub const X509: &str = "MONGODB-X509";
/// The database of users whom somebody else knows, such as an authority of certificates.
pub const EXTERNAL: &str = "$external";

/// Logs in with the password itself, which only an encrypted connection may send. It has to be that of the user's stored credential; there
/// is no directory (LDAP) to ask.
///
/// Errors: 334 when the connection is not encrypted, 18 when anything is wrong.
fn with_password(context: &mut Context<'_>, start: Start<'_>) -> Result<Option<Answer>> {
    if !context.conn.protection.is_encrypted {
        return Err(unavailable(start.mechanism));
    }
    let words = std::str::from_utf8(start.payload).map_err(|_| failed())?;
    let words: Vec<&str> = words.split('\0').collect();
    let [on_behalf_of, user, password] = words.as_slice() else {
        return Err(failed());
    };
    if !on_behalf_of.is_empty() && on_behalf_of != user {
        return Err(failed());
    }
    let name = UserName::new(user, start.db);
    let found = context.service.users.account(&name)?;
    // The next step takes some milliseconds of computing, so the other connections of this thread are handed on.
    nestor_model::interrupt::lose_patience();
    let users = &context.service.users;
    let parameters = &context.service.node.parameters;
    let iterations = |mechanism| parameters.iterations(mechanism);
    if !users.is_password(&name, found.0.as_deref(), password, iterations)? {
        tell(context, &name, PLAIN, Outcome::Failed);
        return fail_later(context, failed());
    }
    match log_in_as(context, found, &name, PLAIN) {
        Ok(()) => Ok(Some(Answer {
            payload: Vec::new(),
            done: true,
        })),
        Err(error) => refuse(context, error),
    }
}

/// Logs in who has proved to be `name`, and answers.
fn end(context: &mut Context<'_>, name: &UserName, mechanism: &str, payload: Vec<u8>) -> Result<Option<Answer>> {
    match log_in(context, name, mechanism) {
        Ok(()) => Ok(Some(Answer { payload, done: true })),
        Err(error) => refuse(context, error),
    }
}

/// As [`fail_later`] if it was an attempt to log in that failed; other errors are told at once. Who has the password and comes from the
/// wrong place is not told sooner than who does not have it.
fn refuse<T>(context: &mut Context<'_>, error: Error) -> Result<Option<T>> {
    match error.code() {
        ErrorCode::AuthenticationFailed => fail_later(context, error),
        _ => Err(error),
    }
}

/// Has the failure told when the command runs again, after `authFailedDelayMs`.
fn fail_later<T>(context: &mut Context<'_>, error: Error) -> Result<Option<T>> {
    let delay_ms = context.service.node.parameters.number(Param::AuthFailedDelayMillis);
    let delay_ms = u64::try_from(delay_ms).unwrap_or(0);
    if delay_ms == 0 {
        return Err(error);
    }
    context.conn.identity.has_failed = true;
    context.after.park = Some(Park {
        until: Instant::now() + Duration::from_millis(delay_ms),
        wake: Wake::Never,
    });
    Ok(None)
}

/// Tells the failure that [`fail_later`] kept, to the command that runs again.
fn check_failure(context: &mut Context<'_>) -> Result<()> {
    let has_failed = std::mem::take(&mut context.conn.identity.has_failed);
    match has_failed && context.conn.parked.is_some() {
        true => Err(failed()),
        false => Ok(()),
    }
}

/// Logs in as the subject of the client's certificate, who is a user of `$external`; `user`, if the client says who it is, has to be the
/// same. Returns the name.
///
/// `None` as for [`start`].
///
/// Errors: 334 when the connection is not encrypted, 18 when there is no certificate or no such user.
pub fn with_certificate(context: &mut Context<'_>, user: Option<&str>, db: &str) -> Result<Option<UserName>> {
    check_failure(context)?;
    match try_certificate(context, user, db) {
        Ok(name) => Ok(Some(name)),
        Err(error) => refuse(context, error),
    }
}

/// As [`with_certificate`], on the chance: a failure is told at once.
pub fn try_certificate(context: &mut Context<'_>, user: Option<&str>, db: &str) -> Result<UserName> {
    if !context.conn.protection.is_encrypted {
        return Err(unavailable(X509));
    }
    let subject = context.conn.protection.certificate.clone();
    let known = subject.filter(|subject| db == EXTERNAL && user.is_none_or(|user| user == subject.as_str()));
    let Some(subject) = known else {
        tell(
            context,
            &UserName::new(user.unwrap_or_default(), db),
            X509,
            Outcome::Failed,
        );
        return Err(failed());
    };
    let name = UserName::new(&subject, EXTERNAL);
    log_in(context, &name, X509)?;
    Ok(name)
}

fn log_in(context: &mut Context<'_>, name: &UserName, mechanism: &str) -> Result<()> {
    // The user may have gone since the challenge.
    let found = context.service.users.account(name)?;
    log_in_as(context, found, name, mechanism)
}

/// Logs in who has proved to be `name`, of whom that account and its generation are known. Failures are told to the log.
fn log_in_as(
    context: &mut Context<'_>,
    (account, generation): (Option<Arc<Account>>, u64),
    name: &UserName,
    mechanism: &str,
) -> Result<()> {
    let ends = Ends::parse(context.conn.peer, context.conn.host);
    let Some(account) = account.filter(|account| account.may_come_by(ends)) else {
        tell(context, name, mechanism, Outcome::Failed);
        return Err(failed());
    };
    if let Some(other) = context.conn.identity.account().filter(|other| other.name != *name) {
        bail!(
            ProtocolError,
            "Each client connection may only be authenticated once. Previously authenticated as: {}",
            other.name
        );
    }
    if context.service.options.authorization {
        context.conn.identity.owner = Owner::of(name);
        *crate::lock(&context.conn.slot.user) = Some(name.clone());
    }
    context.conn.identity.login = Some(Login { account, generation });
    tell(context, name, mechanism, Outcome::LoggedIn);
    Ok(())
}

/// The outcome of an attempt to log in.
#[derive(Clone, Copy)]
enum Outcome {
    LoggedIn,
    Failed,
}

/// Tells the log and the audit log what became of an attempt to log in.
fn tell(context: &mut Context<'_>, name: &UserName, mechanism: &str, outcome: Outcome) {
    let (id, what, code) = match outcome {
        Outcome::LoggedIn => (5_286_306, "Successfully authenticated", None),
        Outcome::Failed => (
            5_286_307,
            "Failed to authenticate",
            Some(ErrorCode::AuthenticationFailed),
        ),
    };
    let attr = doc! {
        "user": name.user.clone(),
        "db": name.db.clone(),
        "mechanism": mechanism,
        "client": context.conn.peer.clone(),
    };
    let thread = format!("conn{}", context.conn.id);
    context.service.node.log().info("ACCESS", id, &thread, what, attr);
    context.note("authenticate", || audited(name, mechanism), code);
}

fn audited(name: &UserName, mechanism: &str) -> Document {
    doc! { "user": name.user.clone(), "db": name.db.clone(), "mechanism": mechanism }
}

/// The error of a mechanism that is not there.
pub fn unavailable(mechanism: &str) -> Error {
    Error::new(
        ErrorCode::MechanismUnavailable,
        format!("Received authentication for mechanism {mechanism} which is unknown or not enabled"),
    )
}
