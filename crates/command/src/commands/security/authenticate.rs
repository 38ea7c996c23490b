//! `authenticate`: logging in with a certificate.
//!
//! Source: driver specification "Authentication", MONGODB-X509.

use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::login::{EXTERNAL, X509, try_certificate, with_certificate};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_model::{RawDoc, RawWriter, Result, ValueRef, bail};

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("authenticate", "Logs in with a certificate.")
    .flags(Flags::API_V1.and(Flags::QUIET).and(Flags::BEFORE_API))
    .needs(Needs::Nothing)
    .runs(|context, reply| {
        let args = Authenticate::parse(context.body, context.sequences)?;
        let db = context.db();
        log_in(context, (args.mechanism, args.user), db, reply)
    });

crate::args! {
    struct Authenticate<'a>: "authenticate" command {
        "mechanism" => mechanism: Option<&'a str>,
        "user" => user: Option<&'a str>,
    }
}

crate::args! {
    struct Speculative<'a>: "hello.speculativeAuthenticate" nested {
        #[allow(dead_code)]
        "authenticate" => command: ValueRef<'a>,
        "mechanism" => mechanism: Option<&'a str>,
        "user" => user: Option<&'a str>,
        "db" => db: Option<&'a str>,
    }
}

fn log_in(
    context: &mut Context<'_>,
    (mechanism, user): (Option<&str>, Option<&str>),
    db: &str,
    reply: &mut RawWriter,
) -> Result<()> {
    let Some(mechanism) = mechanism else {
        bail!(BadValue, "Auth mechanism not specified");
    };
    if mechanism != X509 {
        // Other mechanisms go by saslStart.
        bail!(AuthenticationFailed, "Authentication failed.");
    }
    if let Some(name) = with_certificate(context, user, db)? {
        reply.append("dbname", name.db.as_str());
        reply.append("user", name.user.as_str());
    }
    Ok(())
}

/// Answers `speculativeAuthenticate` of `hello` for a certificate. An attempt that fails is not answered and fails when the client tries in
/// earnest. PyMongo names no database: certificates are for one alone.
pub fn speculate(context: &mut Context<'_>, words: RawDoc<'_>, reply: &mut RawWriter) {
    let Ok(args) = Speculative::parse(words, &[]) else {
        return;
    };
    if args.mechanism != Some(X509) {
        return;
    }
    if let Ok(name) = try_certificate(context, args.user, args.db.unwrap_or(EXTERNAL)) {
        reply.begin_document("speculativeAuthenticate");
        reply.append("dbname", name.db.as_str());
        reply.append("user", name.user.as_str());
        reply.end();
    }
}
