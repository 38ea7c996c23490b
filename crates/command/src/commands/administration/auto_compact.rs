//! `autoCompact`: gives space back in the background.
//!
//! The base reuses the pages of deleted data by itself; what compaction can do beyond that is to bring the
//! journal's data into the base and let the checkpoint cut off what is free. Switched on, that happens at
//! once; from then on checkpoints do it as they come.

use crate::args::{Arg, At, StrictBool, wrong_type};
use crate::facts::{Facts, Flags};
use crate::spec::CommandSpec;
use nestor_model::{Result, ValueRef, bail};
use std::sync::atomic::Ordering;

/// Bytes of a MiB.
const MIB: i64 = 1 << 20;

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("autoCompact", "Gives space back in the background.")
    .flags(Flags::ADMIN.and(Flags::LONG))
    .runs(|context, _reply| {
        let args = AutoCompact::parse(context.body, context.sequences)?;
        let enable = args.enable.0;
        if enable {
            check_target(args.free_space_target_mb.unwrap_or(20))?;
        }
        let is_on = &context.service.node.auto_compact;
        if enable && is_on.load(Ordering::Acquire) {
            bail!(ObjectIsBusy, "auto-compaction is already enabled");
        }
        if enable {
            context.service.engine.checkpoint()?;
        }
        is_on.store(enable && !args.run_once.0, Ordering::Release);
        Ok(())
    });

crate::args! {
    struct AutoCompact: "autoCompact" command {
        "autoCompact" => enable: Required,
        "freeSpaceTargetMB" => free_space_target_mb: Option<i64>,
        "runOnce" => run_once: StrictBool,
    }
}

/// The target has to be a size in bytes that can be told.
fn check_target(mib: i64) -> Result<()> {
    if mib < 1 {
        bail!(
            51024,
            "BSON field 'freeSpaceTargetMB' value must be >= 1, actual value '{mib}'"
        );
    }
    match mib.checked_mul(MIB) {
        Some(_) => Ok(()),
        None => bail!(BadValue, "freeSpaceTargetMB is too large: {mib}"),
    }
}

/// A boolean that has to be there.
#[derive(Debug)]
struct Required(bool);

impl<'a> Arg<'a> for Required {
    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        match value {
            ValueRef::Bool(on) => Ok(Some(Self(on))),
            ValueRef::Null | ValueRef::Undefined => Ok(None),
            other => Err(wrong_type(at, other.bson_type(), "bool")),
        }
    }
}
