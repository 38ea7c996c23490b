//! `setParameter`: changes server parameters while the server runs.

use crate::facts::{Facts, Flags};
use crate::generic_names::is_generic;
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::parameters;
use nestor_database::parameters::Param;
use nestor_database::rights::Action;
use nestor_model::{Result, ValueRef, bail, doc};

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("setParameter", "Changes server parameters.")
    .flags(Flags::ADMIN.and(Flags::BEFORE_API))
    .needs(Needs::server(Action::SetParameter))
    .runs(|context, reply| {
        let node = &context.service.node;
        let mut wanted: Vec<(Param, &str, ValueRef<'_>)> = Vec::new();
        // All names are checked before any value is set.
        for (i, (name, value)) in context.body.iter().enumerate() {
            if i > 0 && !is_generic(name) {
                wanted.push((settable(name)?, name, value));
            }
        }
        let Some((first, ..)) = wanted.first() else {
            bail!(InvalidOptions, "no option found to set, use help:true to see options ");
        };
        reply.append("was", node.parameters.value(*first, node.log()).as_ref());
        for (parameter, name, value) in wanted {
            let old = node.parameters.value(parameter, node.log());
            node.parameters.set(parameter, value, node.log())?;
            node.log().info(
                "CONTROL",
                23435,
                &format!("conn{}", context.conn.id),
                "Successfully set parameter",
                doc! { "parameterName": name, "newValue": value.to_value(), "oldValue": old },
            );
        }
        context.service.parameters_changed();
        Ok(())
    });

fn settable(name: &str) -> Result<Param> {
    match parameters::find(name) {
        None => bail!(
            InvalidOptions,
            "attempted to set unrecognized parameter [{name}], use help:true to see options "
        ),
        Some(parameter) if !parameters::set_at(parameter).runtime() => {
            bail!(IllegalOperation, "not allowed to change [{name}] at runtime")
        }
        Some(parameter) => Ok(parameter),
    }
}
