//! `getCmdLineOpts`: how the process was started.

use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::rights::Action;

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("getCmdLineOpts", "Says how the process was started.")
    .flags(Flags::ADMIN.and(Flags::QUIET))
    .needs(Needs::server(Action::GetCmdLineOpts))
    .runs(|context, reply| {
        GetCmdLineOpts::parse(context.body, context.sequences)?;
        let process = &context.service.node.options;
        reply.begin_array("argv");
        for (i, arg) in process.argv.iter().enumerate() {
            reply.append_index(i, arg.as_str());
        }
        reply.end();
        reply.append("parsed", &process.parsed);
        Ok(())
    });

crate::args! {
    struct GetCmdLineOpts: "getCmdLineOpts" command {}
}
