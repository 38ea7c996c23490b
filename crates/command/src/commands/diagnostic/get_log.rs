//! `getLog`: recent lines of the log, each a JSON document as a string.

use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::rights::Action;
use nestor_model::{RawWriter, Result, ValueRef, bail};

/// The logs there are.
const NAMES: [&str; 2] = ["global", "startupWarnings"];

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection(
    "getLog",
    "Answers recent lines of the log: global, startupWarnings, or * for the names.",
)
.flags(Flags::ADMIN.and(Flags::QUIET))
.needs(Needs::server(Action::GetLog))
.runs(|context, reply| {
    let args = GetLog::parse(context.body, context.sequences)?;
    if args.name.is_nullish() {
        bail!(40414, "BSON field 'getLog.getLog' is missing but a required field");
    }
    let ValueRef::String(name) = args.name else {
        bail!(
            TypeMismatch,
            "Argument to getLog must be of type String; found {:?} of type {}",
            args.name,
            args.name.bson_type().alias()
        );
    };
    let log = context.service.node.log();
    match name {
        "*" => write_lines(reply, "names", NAMES),
        "global" => {
            let (lines, total) = log.recent();
            reply.append("totalLinesWritten", i32::try_from(total).unwrap_or(i32::MAX));
            write_lines(reply, "log", &lines);
        }
        "startupWarnings" => {
            let lines = log.startup_warnings();
            reply.append("totalLinesWritten", lines.len() as i32);
            write_lines(reply, "log", &lines);
        }
        other => return no_log(other),
    }
    Ok(())
});

crate::args! {
    struct GetLog<'a>: "getLog" command {
        "getLog" => name: ValueRef<'a>,
    }
}

fn no_log(name: &str) -> Result<()> {
    bail!(OperationFailed, "No log named '{name}'")
}

fn write_lines(reply: &mut RawWriter, field: &str, lines: impl IntoIterator<Item = impl AsRef<str>>) {
    reply.begin_array(field);
    for (i, line) in lines.into_iter().enumerate() {
        reply.append_index(i, line.as_ref());
    }
    reply.end();
}
