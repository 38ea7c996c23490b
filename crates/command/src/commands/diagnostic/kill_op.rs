//! `killOp`: ends an operation that `currentOp` shows. It ends at its next look at the interrupt.

use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::privileges;
use crate::spec::CommandSpec;
use nestor_database::rights::{Action, Resource};
use nestor_model::{ErrorCode, Result, ValueRef, bail};

/// The command. Fields it does not know it passes over, as MongoDB does.
pub const SPEC: CommandSpec = Facts::no_collection("killOp", "Ends a running operation.")
    .flags(Flags::ADMIN)
    .needs(Needs::Login)
    .runs(|context, reply| {
        let Some(op) = context.body.get("op") else {
            bail!(NoSuchKey, "Missing expected field \"op\"");
        };
        let opid = opid(op)?;
        // Everybody may end their own.
        let may_kill_any =
            privileges::grants(context).is_none_or(|grants| grants.on(&Resource::Cluster).has(Action::Killop));
        let user = privileges::user(context);
        let mut found = false;
        for slot in context.service.connections.all() {
            let running = crate::lock(&slot.operation).opid;
            // Operation numbers are unsigned and are shown as they are; half of them are negative as int32.
            let is_it = running != 0 && running == opid as u32 && slot.id != context.conn.id;
            if is_it && (may_kill_any || slot.is_of(user)) {
                slot.kill.kill(ErrorCode::Interrupted);
                found = true;
            }
        }
        // One of another's is told no more of than one that there is not.
        if !found && !may_kill_any {
            bail!(Unauthorized, "not authorized to kill op {opid}");
        }
        reply.append("info", "attempting to kill op");
        Ok(())
    });

/// The number of an operation: any whole number that fits 32 bits.
fn opid(value: ValueRef<'_>) -> Result<i32> {
    let number = match value {
        ValueRef::Int32(v) => i64::from(v),
        ValueRef::Int64(v) => v,
        ValueRef::Double(v) if v.fract() == 0.0 => v as i64,
        ValueRef::Double(_) => bail!(
            BadValue,
            "Expected field \"op\" to have a value exactly representable as a 64-bit integer"
        ),
        ValueRef::Decimal128(v) => match v.to_i64_exact() {
            Some(v) => v,
            None => bail!(
                BadValue,
                "Expected field \"op\" to have a value exactly representable as a 64-bit integer"
            ),
        },
        other => bail!(
            TypeMismatch,
            "Expected field \"op\" to have numeric type, but found {}",
            other.bson_type().alias()
        ),
    };
    match i32::try_from(number) {
        Ok(opid) => Ok(opid),
        Err(_) => bail!(26823, "invalid op : {number}. Op ID cannot be represented with 32 bits"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operation_numbers() {
        let cases = [
            (ValueRef::Int32(5), Ok(5)),
            (ValueRef::Int64(-7), Ok(-7)),
            (ValueRef::Double(2_147_483_647.0), Ok(i32::MAX)),
            (ValueRef::Double(1.5), Err(2)),
            (ValueRef::Double(2_147_483_648.0), Err(26823)),
            (ValueRef::Int64(i64::MIN), Err(26823)),
            (ValueRef::String("5"), Err(14)),
        ];
        for (value, expected) in cases {
            assert_eq!(opid(value).map_err(|e| e.code().number()), expected, "{value:?}");
        }
    }
}
