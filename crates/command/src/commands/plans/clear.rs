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
    let ns = super::target(context)?;
    // MongoDB looks no further when there is no collection.
    if super::exists(context, &ns) {
        super::shape(context.body, true)?;
    }
    Ok(())
}
