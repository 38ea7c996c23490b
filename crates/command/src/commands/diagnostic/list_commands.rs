//! `listCommands`: the commands there are.

use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;

/// The command. Fields it does not know it passes over, as MongoDB does.
pub const SPEC: CommandSpec = Facts::no_collection("listCommands", "Lists the commands there are.")
    .flags(Flags::QUIET)
    .needs(Needs::Nothing)
    .runs(|context, reply| {
        let mut specs: Vec<&Facts> = context.service.commands.all().to_vec();
        specs.sort_by_key(|spec| spec.name);
        reply.begin_document("commands");
        for spec in specs {
            reply.begin_document(spec.name);
            reply.append("help", spec.help);
            reply.append("requiresAuth", false);
            reply.append("secondaryOk", !spec.flags.has(Flags::WRITE));
            reply.append("adminOnly", spec.flags.has(Flags::ADMIN));
            reply.begin_array("apiVersions");
            if spec.flags.has(Flags::API_V1) {
                reply.append_index(0, "1");
            }
            reply.end();
            reply.begin_array("deprecatedApiVersions");
            reply.end();
            reply.end();
        }
        reply.end();
        Ok(())
    });
