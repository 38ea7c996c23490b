//! `planCacheClear`.

use crate::context::Context;
use crate::facts::Facts;
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::rights::Action;
use nestor_model::{RawWriter, Result};

/// The command.
pub const SPEC: CommandSpec = Facts::collection("planCacheClear", "Forgets cached plans.")
    .needs(Needs::collection(Action::PlanCacheWrite))
    .runs(run);

fn run(context: &mut Context<'_>, _: &mut RawWriter) -> Result<()> {
    let ns = super::target(context)?;
    // MongoDB looks no further when there is no collection.
    if super::exists(context, &ns) {
        let shape = super::shape(context, &ns, true)?;
        super::forget(context, &ns, shape.as_ref().map(|shape| shape.plan_shape));
    }
    Ok(())
}
