//! What fail points do to a command.

use crate::connection::{Fault, Pending};
use crate::context::Context;
use crate::facts::Flags;
use crate::fail_points::{FAIL_COMMAND, FAIL_GET_MORE, known_label};
use crate::request::{Park, Wake};
use nestor_database::connections::app_name;
use nestor_database::fail_points::TIMES_OUT;
use nestor_database::failures;
use nestor_database::observe::op_kind::OpKind;
use nestor_exec::Interrupt;
use nestor_model::number::safe_i64;
use nestor_model::value::DocRef;
use nestor_model::{Error, ErrorCode, Result, ValueRef, bail};
use std::time::{Duration, Instant};

/// What a fail point decides for a command.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Run,
    /// Not now: the context's park says when to try again.
    Wait,
    /// It does not run, and the connection is closed.
    HangUp,
}

/// Looks whether `context`'s command is to fail, and how.
pub fn check(context: &mut Context<'_>) -> Result<Verdict> {
    if context.interrupt.deadline().is_some() && context.service.node.gates.fail_points.never_times_out() {
        context.interrupt = Interrupt::new(context.conn.slot.kill.clone(), None);
        nestor_model::statement::stop_by(&context.interrupt);
    }
    let pending = match context.conn.fault.take() {
        Some(pending) => pending,
        // A command that runs again after waiting on its own account has passed here before.
        None if context.conn.parked.is_some() => return Ok(Verdict::Run),
        None => match hit(context)? {
            Some(pending) => pending,
            None => return Ok(Verdict::Run),
        },
    };
    if Instant::now() < pending.until {
        context.after.park = Some(Park {
            until: pending.until,
            wake: Wake::Never,
        });
        *context.conn.fault = Some(pending);
        return Ok(Verdict::Wait);
    }
    // The command begins now: what it waits for on its own account is not shorter for the fault.
    *context.conn.parked = None;
    let fault = pending.fault;
    if fault.hang_up {
        return Ok(Verdict::HangUp);
    }
    if let Some(error) = fault.error {
        if let (true, Some(ValueRef::Int64(id))) = (fault.has_cursor, context.body.get(context.spec.name)) {
            context.figures.borrow_mut().originating = context.service.cursors.originating(id);
        }
        context.after.by_fail_point = true;
        context.after.labels_given = fault.labels.is_some();
        return Err(fault.labels.into_iter().flatten().fold(error, Error::with_label));
    }
    context.after.write_concern_error = fault.write_concern_error;
    Ok(Verdict::Run)
}

fn hit(context: &Context<'_>) -> Result<Option<Pending>> {
    let fail_points = &context.service.node.gates.fail_points;
    let applies = |name: &'static str, data: DocRef<'_>| match name {
        FAIL_COMMAND => fails_command(context, data),
        FAIL_GET_MORE => context.spec.op == OpKind::GetMore,
        TIMES_OUT => context.interrupt.deadline().is_some(),
        // It is for commits, not for commands.
        _ => false,
    };
    match fail_points.first(applies) {
        Some((TIMES_OUT, _)) => bail!(MaxTimeMSExpired, "operation exceeded time limit"),
        Some((name, data)) => Ok(Some(fault(context, name, data.as_ref()))),
        None => Ok(None),
    }
}

fn fails_command(context: &Context<'_>, data: DocRef<'_>) -> bool {
    let Some(ValueRef::Array(commands)) = data.get("failCommands") else {
        return false;
    };
    let names = |name: &str| name == context.spec.name || context.spec.aliases.contains(&name);
    if !commands.iter().any(|item| item.as_str().is_some_and(names)) {
        return false;
    }
    if let Some(ValueRef::String(wanted)) = data.get("appName") {
        let known = crate::lock(&context.conn.slot.client);
        // The handshake says itself who comes.
        let name = match (context.body.get("client"), &*known) {
            (Some(ValueRef::Document(client)), _) if context.spec.flags.has(Flags::HELLO) => app_name(client),
            (_, client) => client.as_ref().and_then(|client| app_name(client.as_ref())),
        };
        if name != Some(wanted) {
            return false;
        }
    }
    if let Some(ValueRef::String(wanted)) = data.get("namespace") {
        let (db, coll) = context.named_collection().unwrap_or((context.db(), ""));
        if format!("{db}.{coll}") != wanted {
            return false;
        }
    }
    true
}

fn fault(context: &Context<'_>, name: &'static str, data: DocRef<'_>) -> Pending {
    let has_cursor = name == FAIL_GET_MORE;
    let truthy = |name: &str| data.get(name).is_some_and(|value| value.truthy());
    let number = |name: &str| data.get(name).and_then(safe_i64);
    let block_ms = if truthy("blockConnection") {
        number("blockTimeMS").unwrap_or(0)
    } else {
        0
    };
    let error = number("errorCode").filter(|code| *code != 0).map(|code| {
        let code = ErrorCode::location(code.clamp(0, i32::MAX.into()) as i32);
        // That of getMores takes a code and has a text of its own: the Node.js driver's tests, which set `errmsg` for it,
        // expect an error that the driver does not take for its own closing of the cursor, as it would by that text.
        let told = data.get("errmsg").and_then(ValueRef::as_str).filter(|_| !has_cursor);
        match told {
            Some(message) => Error::new(code, message),
            None => Error::new(code, format!("Failing command via '{name}' failpoint")),
        }
    });
    let mut write_concern_error = match data.get("writeConcernError") {
        Some(ValueRef::Document(doc)) => Some(doc.to_document()),
        _ => None,
    };
    let labels = match data.get("errorLabels") {
        Some(ValueRef::Array(labels)) => Some(labels.iter().filter_map(known_label).collect::<Vec<_>>()),
        _ => None,
    };
    if let Some(doc) = &mut write_concern_error {
        let code = doc.as_ref().get("code").and_then(safe_i64).unwrap_or(0);
        let code = ErrorCode::location(code.clamp(0, i32::MAX.into()) as i32);
        let labels = labels
            .clone()
            .unwrap_or_else(|| failures::concern_labels(context, code));
        let labels: Vec<_> = labels.into_iter().map(Into::into).collect();
        if !labels.is_empty() {
            doc.push("errorLabels", labels);
        }
    }
    Pending {
        until: Instant::now() + Duration::from_millis(u64::try_from(block_ms).unwrap_or(0)),
        fault: Fault {
            hang_up: truthy("closeConnection"),
            error,
            labels,
            write_concern_error,
            has_cursor,
        },
    }
}
