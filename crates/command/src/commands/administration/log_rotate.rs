//! `logRotate`: moves the log file aside and begins a new one.

use crate::facts::{Facts, Flags};
use crate::spec::CommandSpec;
use nestor_model::{ValueRef, bail};

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("logRotate", "Begins a new log file.")
    .flags(Flags::ADMIN)
    .runs(|context, _reply| {
        let args = LogRotate::parse(context.body, context.sequences)?;
        match args.which {
            Some(ValueRef::String("server")) => {}
            Some(ValueRef::String(other)) => bail!(NoSuchKey, "unknown log type {other}"),
            Some(other) if other.is_number() || matches!(other, ValueRef::Bool(_)) => {}
            Some(other) => {
                return Err(crate::args::wrong_type(
                    "logRotate.logRotate",
                    other.bson_type(),
                    "[string, bool, long, int, decimal, double]",
                ));
            }
            None => bail!(
                40414,
                "BSON field 'logRotate.logRotate' is missing but a required field"
            ),
        }
        if let Err(error) = context.service.node.log().rotate() {
            bail!(FileRenameFailed, "failed to rename the log file: {error}");
        }
        Ok(())
    });

crate::args! {
    struct LogRotate<'a>: "logRotate" command {
        "logRotate" => which: Option<ValueRef<'a>>,
    }
}
