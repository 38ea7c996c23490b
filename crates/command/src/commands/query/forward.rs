//! `$out` and `$merge` on a secondary: the primary runs the pipeline, and the secondary answers when it has what was written.
//!
//! Source: manual, "$out" and "$merge", "Read preference".

use crate::context::Context;
use nestor_model::{Document, Error, ErrorCode, RawDoc, RawWriter, Result, ValueRef, bail, doc};

/// Fields of the command that are of the connection on which it came.
const OF_THE_CONNECTION: [&str; 3] = ["lsid", "$readPreference", "$client"];

/// Has the primary run the command.
///
/// Errors: those of the primary; 10107 if none is known.
pub(super) fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let engine = context.service.engine.clone();
    let topology = engine.topology();
    let primary = topology.primary.and_then(|at| topology.config.members.get(at));
    let Some(primary) = primary else {
        bail!(NotWritablePrimary, "not primary, and no primary is known");
    };
    let user = context.conn.identity.account().map(|account| account.name.clone());
    let mut command = RawWriter::onto(Vec::new());
    for (name, value) in context.body.iter() {
        if !OF_THE_CONNECTION.contains(&name) {
            command.append(name, value);
        }
    }
    command.append("$readPreference", &doc! { "mode": "primary" });
    let command = command.finish();
    let command = RawDoc::validate(&command)?;
    let interrupt = &context.interrupt;
    // Nobody answers any more when another member is primary.
    let mut check = || {
        interrupt.check()?;
        match engine.topology().primary == topology.primary {
            true => Ok(()),
            false => bail!(
                InterruptedDueToReplStateChange,
                "the primary changed while it ran the pipeline"
            ),
        }
    };
    let to_primary = &context.service.node.to_primary;
    let said = to_primary.run(&primary.host, user.as_ref(), command, &mut check)?;
    let said = said.as_raw();
    if said.get("ok").is_none_or(|ok| !ok.truthy()) {
        return Err(error_of(said));
    }
    if let Some(ValueRef::Timestamp(written)) = said.get("operationTime") {
        context
            .database
            .await_time("the time of what the primary wrote", written, &context.interrupt)?;
    }
    for name in ["cursor", "writeConcernError"] {
        if let Some(value) = said.get(name) {
            reply.append(name, value);
        }
    }
    Ok(())
}

fn error_of(said: RawDoc<'_>) -> Error {
    let code = match said.get("code") {
        Some(ValueRef::Int32(code)) => ErrorCode::location(code),
        _ => ErrorCode::UnknownError,
    };
    let message = said.get("errmsg").and_then(ValueRef::as_str).unwrap_or("no message");
    let of_every_error = [
        "ok",
        "code",
        "codeName",
        "errmsg",
        "errorLabels",
        "operationTime",
        "$clusterTime",
    ];
    let mut extra = Document::new();
    for (name, value) in said.iter().filter(|(name, _)| !of_every_error.contains(name)) {
        extra.push(name, nestor_model::Value::from(value));
    }
    match extra.is_empty() {
        true => Error::new(code, message),
        false => Error::new(code, message).with_extra(extra),
    }
}
