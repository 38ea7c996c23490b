//! `planCacheClear`.

use crate::Context;
use crate::dispatch::{CommandSpec, Flags};
use nestor_model::{RawWriter, Result};

/// The command.
pub const SPEC: CommandSpec = CommandSpec {
    name: "planCacheClear",
    aliases: &[],
    flags: Flags::NONE,
    help: "Forgets cached plans.",
    run,
};

/// Plans are made anew for each query, so there is nothing to forget once the arguments are checked.
fn run(context: &mut Context<'_>, _: &mut RawWriter) -> Result<()> {
    super::target(context)?;
    super::shape(context.body, true)?;
    Ok(())
}
