//! `setFeatureCompatibilityVersion`: kept and answered; no feature of this server depends on it.

use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::parameters::FEATURE_VERSIONS;
use nestor_database::rights::Action;
use nestor_model::bail;

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("setFeatureCompatibilityVersion", "Sets the version whose features may be used.")
    .flags(Flags::ADMIN.and(Flags::WRITE_CONCERN))
    .needs(Needs::server(Action::SetFeatureCompatibilityVersion)).runs(|context, _reply| {
        let args = SetFeatureVersion::parse(context.body, context.sequences)?;
        if !FEATURE_VERSIONS.contains(&args.version) {
            bail!(
                4926900,
                "Invalid feature compatibility version value '{}'; expected one of {}",
                args.version,
                FEATURE_VERSIONS.join(", ")
            );
        }
        if !args.confirm {
            bail!(
                7369100,
                "Once you have changed the feature compatibility version it may not be possible to change it back. To go on, run the command again with confirm: true"
            );
        }
        context.service.node.parameters.set_feature_version(args.version);
        Ok(())
    });

crate::args! {
    struct SetFeatureVersion<'a>: "setFeatureCompatibilityVersion" command {
        "setFeatureCompatibilityVersion" => version: &'a str,
        "confirm" => confirm: bool,
    }
}
