//! `autoCompact`: gives space back in the background.
//!
//! The base reuses the pages of deleted data by itself; what compaction can do beyond that is to bring the
//! journal's data into the base and let the checkpoint cut off what is free. Switched on, that happens at
//! once; from then on checkpoints do it as they come.

use crate::args::{InRange, RequiredBool, StrictBool};
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::rights::Action;
use nestor_model::{Result, bail};
use std::sync::atomic::Ordering;

/// Bytes of a MiB.
const MIB: i64 = 1 << 20;

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("autoCompact", "Gives space back in the background.")
    .flags(Flags::ADMIN.and(Flags::LONG))
    .needs(Needs::server(Action::Compact))
    .runs(|context, _reply| {
        let args = AutoCompact::parse(context.body, context.sequences)?;
        let enable = args.enable.0;
        if enable {
            check_target(args.free_space_target_mb.map_or(20, |mib| mib.0))?;
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
        "autoCompact" => enable: RequiredBool,
        "freeSpaceTargetMB" => free_space_target_mb: Option<InRange<1, { i64::MAX }>>,
        "runOnce" => run_once: StrictBool,
    }
}

/// The target has to be a size in bytes that can be told.
fn check_target(mib: i64) -> Result<()> {
    match mib.checked_mul(MIB) {
        Some(_) => Ok(()),
        None => bail!(BadValue, "freeSpaceTargetMB is too large: {mib}"),
    }
}
