//! `getCmdLineOpts`: how the process was started.

use crate::dispatch::{CommandSpec, Flags};

/// The command.
pub const SPEC: CommandSpec = CommandSpec {
    name: "getCmdLineOpts",
    aliases: &[],
    flags: Flags::ADMIN.and(Flags::QUIET),
    help: "Says how the process was started.",
    run: |context, reply| {
        GetCmdLineOpts::parse(context.body, context.sequences)?;
        let process = &context.service.node.options;
        reply.begin_array("argv");
        for (i, arg) in process.argv.iter().enumerate() {
            reply.append_index(i, arg.as_str());
        }
        reply.end();
        reply.append("parsed", &process.parsed);
        Ok(())
    },
};

crate::args! {
    struct GetCmdLineOpts: "getCmdLineOpts" command {}
}
