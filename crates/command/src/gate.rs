//! Whether a command may run now: locks and blocks that an operator set, and fail points.

use crate::context::Context;
use crate::facts::Flags;
use crate::faults::{self, Verdict};
use crate::request::{Park, Wake};
use nestor_database::concern::read::Level;
use nestor_database::gates::LOCK_POLL;
use nestor_database::parameters::Param;
use nestor_database::statement::transaction;
use nestor_model::{Result, bail};
use std::time::{Duration, Instant};

/// Decides whether a command may run now.
pub fn check(context: &mut Context<'_>) -> Result<Verdict> {
    let gates = &context.service.node.gates;
    if context.service.engine.is_member() {
        check_role(context)?;
    }
    let closed = gates.closed();
    if closed.none() {
        return Ok(Verdict::Run);
    }
    if closed.api() && !context.generic.api_version && !context.spec.flags.has(Flags::BEFORE_API) {
        bail!(
            498870,
            "The apiVersion parameter is required, please configure your MongoClient's API version"
        );
    }
    if closed.fail_points() {
        let verdict = faults::check(context)?;
        if verdict != Verdict::Run {
            return Ok(verdict);
        }
    }
    let is_write = context.spec.flags.has(Flags::WRITE);
    if is_write {
        gates.check_user_write(context.db())?;
    }
    if closed.fsync() && is_write {
        // An operation that was killed meanwhile stops waiting.
        context.interrupt.check()?;
        check_lock_wait(context)?;
        context.after.park = Some(Park {
            until: Instant::now() + lock_poll(context),
            wake: Wake::Never,
        });
        context.after.waits_for_lock = true;
        return Ok(Verdict::Wait);
    }
    Ok(Verdict::Run)
}

/// Refuses on a secondary what only the primary does.
///
/// Errors: 10107, 13435.
fn check_role(context: &Context<'_>) -> Result<()> {
    if context.service.engine.is_writable() {
        return Ok(());
    }
    let flags = context.spec.flags;
    let is_write = flags.has(Flags::WRITE) || flags.has(Flags::ENDS_TXN) || context.terms.in_transaction;
    if is_write || context.terms.read_concern.level() == Level::Linearizable {
        bail!(NotWritablePrimary, "not primary");
    }
    if flags.has(Flags::PRIMARY_READ) && !context.generic.secondary_ok && !context.conn.is_own {
        bail!(NotPrimaryNoSecondaryOk, "not primary and secondaryOk=false");
    }
    Ok(())
}

/// When to look again.
fn lock_poll(context: &Context<'_>) -> Duration {
    let limit_ms = context.service.node.parameters.number(Param::TransactionLockMillis);
    match u64::try_from(limit_ms) {
        Ok(limit_ms) if context.terms.in_transaction => LOCK_POLL.min(Duration::from_millis(limit_ms.max(1))),
        _ => LOCK_POLL,
    }
}

/// Statements of a transaction wait for locks for `maxTransactionLockRequestTimeoutMillis`; -1 is as long as they may run.
///
/// Error: 24, which aborts the transaction.
fn check_lock_wait(context: &Context<'_>) -> Result<()> {
    if !context.terms.in_transaction || context.spec.flags.has(Flags::ENDS_TXN) {
        return Ok(());
    }
    let limit_ms = context.service.node.parameters.number(Param::TransactionLockMillis);
    let waited = context.conn.parked.map_or(Duration::ZERO, |since| since.elapsed());
    if limit_ms >= 0 && waited.as_millis() >= limit_ms as u128 {
        transaction::abort(context);
        bail!(
            LockTimeout,
            "Unable to acquire lock within a max lock request timeout of '{limit_ms}ms' milliseconds"
        );
    }
    Ok(())
}
