//! `saslStart`, `saslContinue` and `logout`: logging in with a password, and out; and what `hello` does of it.
//!
//! Source: driver specification "Authentication"; manual, "SCRAM".

use crate::args::StrictBool;
use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::login::{self, Answer, CONVERSATION_ID, Start};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::login::mechanism::Mechanism;
use nestor_database::users::UserName;
use nestor_model::{RawDoc, RawWriter, Result, Value, ValueRef, bail, doc};

/// `saslStart`.
pub const START: CommandSpec = Facts::no_collection("saslStart", "Begins to log in.")
    .flags(
        Flags::API_V1
            .and(Flags::QUIET)
            .and(Flags::BEFORE_API)
            .and(Flags::LONG)
            .and(Flags::USUALLY_SHORT),
    )
    .secrets(&["payload"])
    .needs(Needs::Nothing)
    .runs(|context, reply| {
        let args = StartArgs::parse(context.body, context.sequences)?;
        let db = context.db();
        if let Some(answer) = start(context, (args.mechanism, args.payload, args.options), db)? {
            write(&answer, reply);
        }
        Ok(())
    });

/// `saslContinue`.
pub const CONTINUE: CommandSpec = Facts::no_collection("saslContinue", "Goes on logging in.")
    .flags(Flags::API_V1.and(Flags::QUIET).and(Flags::BEFORE_API))
    .secrets(&["payload"])
    .needs(Needs::Nothing)
    .runs(|context, reply| {
        let args = ContinueArgs::parse(context.body, context.sequences)?;
        if let Some(answer) = login::proceed(context, args.conversation, payload(args.payload)?)? {
            write(&answer, reply);
        }
        Ok(())
    });

/// `logout`. Its database does not matter: a connection is logged in as one user.
pub const LOGOUT: CommandSpec = Facts::no_collection("logout", "Logs out.")
    .flags(Flags::QUIET)
    .needs(Needs::Nothing)
    .runs(|context, _reply| {
        let slot = context.conn.slot;
        let user = context
            .conn
            .identity
            .account()
            .map(|account| account.name.to_document());
        context.conn.identity.log_out(slot);
        if let Some(user) = user {
            let param = || {
                doc! {
                    "reason": "Client has issued a logout command",
                    "initialUsers": vec![Value::from(user)],
                    "updatedUsers": Vec::<Value>::new(),
                }
            };
            context.note("logout", param, None);
        }
        Ok(())
    });

crate::args! {
    struct StartArgs<'a>: "saslStart" command {
        "mechanism" => mechanism: &'a str,
        "payload" => payload: ValueRef<'a>,
        /// Always so, as in MongoDB.
        #[allow(dead_code)]
        "autoAuthorize" => auto_authorize: Option<ValueRef<'a>>,
        "options" => options: Option<RawDoc<'a>>,
    }
}

crate::args! {
    struct Speculative<'a>: "hello.speculativeAuthenticate" nested {
        #[allow(dead_code)]
        "saslStart" => command: ValueRef<'a>,
        "mechanism" => mechanism: &'a str,
        "payload" => payload: ValueRef<'a>,
        "db" => db: &'a str,
        #[allow(dead_code)]
        "autoAuthorize" => auto_authorize: Option<ValueRef<'a>>,
        "options" => options: Option<RawDoc<'a>>,
    }
}

crate::args! {
    struct Options: "saslStart.options" nested {
        "skipEmptyExchange" => skip_empty_exchange: StrictBool,
    }
}

crate::args! {
    struct ContinueArgs<'a>: "saslContinue" command {
        "conversationId" => conversation: i32,
        "payload" => payload: ValueRef<'a>,
    }
}

fn start(
    context: &mut Context<'_>,
    (mechanism, message, options): (&str, ValueRef<'_>, Option<RawDoc<'_>>),
    db: &str,
) -> Result<Option<Answer>> {
    let skips_empty = match options {
        Some(options) => Options::parse(options, &[])?.skip_empty_exchange.0,
        None => false,
    };
    let start = Start {
        db,
        mechanism,
        payload: payload(message)?,
        skips_empty,
    };
    login::start(context, start)
}

/// The bytes of a message: drivers send them as binary, of which MongoDB's shell of old made a text.
fn payload(value: ValueRef<'_>) -> Result<&[u8]> {
    match value {
        ValueRef::Binary { bytes, .. } => Ok(bytes),
        other => bail!(
            TypeMismatch,
            "BSON field 'payload' is the wrong type '{}', expected type 'binData'",
            other.bson_type().alias()
        ),
    }
}

fn write(answer: &Answer, reply: &mut RawWriter) {
    reply.append("conversationId", CONVERSATION_ID);
    reply.append("done", answer.done);
    let bytes = answer.payload.as_slice();
    reply.append("payload", ValueRef::Binary { subtype: 0, bytes });
}

/// Answers `speculativeAuthenticate` of `hello`, by which a client that logs in saves a message. An attempt that fails is not answered
/// and fails when the client tries in earnest.
pub fn speculate(context: &mut Context<'_>, words: RawDoc<'_>, reply: &mut RawWriter) {
    let answer = Speculative::parse(words, &[]).and_then(|args| {
        let words = (args.mechanism, args.payload, args.options);
        // No driver sends a password on the chance, and guesses would not be slowed down.
        match args.mechanism {
            login::PLAIN => Err(login::unavailable(args.mechanism)),
            _ => start(context, words, args.db),
        }
    });
    if let Ok(Some(answer)) = answer {
        reply.begin_document("speculativeAuthenticate");
        write(&answer, reply);
        reply.end();
    }
}

/// Answers `saslSupportedMechs` of `hello`. A user who does not exist is said to have all mechanisms, as most users do, so that nobody
/// learns from it who exists.
pub fn append_mechanisms(context: &Context<'_>, user: &UserName, reply: &mut RawWriter) -> Result<()> {
    let mut mechanisms = context.service.users.mechanisms(user)?;
    if mechanisms.is_empty() {
        mechanisms.extend(Mechanism::ALL);
    }
    reply.begin_array("saslSupportedMechs");
    for (i, mechanism) in mechanisms.into_iter().enumerate() {
        reply.append_index(i, mechanism.name());
    }
    reply.end();
    Ok(())
}
