//! `logRotate`: moves the files of the log and of the audit log aside and begins new ones.

use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::rights::Action;
use nestor_model::{ErrorCode, Value, ValueRef, bail, doc};

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("logRotate", "Begins a new log file.")
    .flags(Flags::ADMIN)
    .needs(Needs::server(Action::LogRotate))
    .runs(|context, _reply| {
        let args = LogRotate::parse(context.body, context.sequences)?;
        let node = &context.service.node;
        let (server, audit) = match args.which {
            Some(ValueRef::String("server")) => (true, false),
            Some(ValueRef::String("audit")) if node.audit().is_on() => (false, true),
            Some(ValueRef::String(other)) => bail!(NoSuchKey, "unknown log type {other}"),
            Some(other) if other.is_number() || matches!(other, ValueRef::Bool(_)) => (true, true),
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
        };
        let rotate = |is_wanted: bool, rotate: &dyn Fn() -> std::io::Result<()>| match is_wanted {
            true => rotate(),
            false => Ok(()),
        };
        let done = rotate(server, &|| node.log().rotate()).and_then(|()| rotate(audit, &|| node.audit().rotate()));
        let failed = done.as_ref().err().map(|_| ErrorCode::FileRenameFailed);
        let status = if done.is_ok() { "OK" } else { "Failed" };
        let errors: Vec<Value> = done
            .as_ref()
            .err()
            .map(|error| error.to_string().into())
            .into_iter()
            .collect();
        context.note(
            "rotateLog",
            || doc! { "logRotationStatus": doc! { "status": status, "errors": errors } },
            failed,
        );
        if let Err(error) = done {
            bail!(FileRenameFailed, "failed to rename the log file: {error}");
        }
        Ok(())
    });

crate::args! {
    struct LogRotate<'a>: "logRotate" command {
        "logRotate" => which: Option<ValueRef<'a>>,
    }
}
