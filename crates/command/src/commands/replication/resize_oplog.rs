//! `replSetResizeOplog`: how much of the oplog is kept.
//!
//! Source: manual, "replSetResizeOplog".

use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::rights::Action;
use nestor_database::write::Progress;
use nestor_model::{RawWriter, Result, bail};
use std::time::Duration;

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection(
    "replSetResizeOplog",
    "Changes the size of the oplog and how long it is kept at least.",
)
.flags(Flags::ADMIN.and(Flags::WRITE).and(Flags::LONG))
.needs(Needs::server(Action::ReplSetResizeOplog))
.runs(run);

/// The smallest and the largest size, in megabytes of 2^20 bytes: 990 MB and a petabyte.
const SIZE_MB: (f64, f64) = (990.0, 1_073_741_824.0);

crate::args! {
    struct ResizeOplog: "replSetResizeOplog" command {
        "size" => size: Option<f64>,
        "minRetentionHours" => hours: Option<f64>,
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = ResizeOplog::parse(context.body, context.sequences)?;
    let bytes = args.size.map(bytes).transpose()?;
    let age = args.hours.map(age).transpose()?;
    if bytes.is_none() && age.is_none() {
        bail!(InvalidOptions, "replSetResizeOplog needs 'size' or 'minRetentionHours'");
    }
    let mut progress = Progress::default();
    context.resize_oplog(bytes, age, &mut progress)?;
    context.finish_concern(progress.last, reply, false)
}

fn bytes(size: f64) -> Result<u64> {
    let (min, max) = SIZE_MB;
    let limit = |op: &str, limit: f64| {
        format!("BSON field 'replSetResizeOplog.size' value must be {op} {limit}, actual value '{size}'")
    };
    // A value that is not a number is refused too.
    if size.is_nan() || size < min {
        bail!(BadValue, "{}", limit(">=", min));
    }
    if size > max {
        bail!(BadValue, "{}", limit("<=", max));
    }
    Ok((size * f64::from(1 << 20)) as u64)
}

fn age(hours: f64) -> Result<Duration> {
    let age = Duration::try_from_secs_f64(hours * 3600.0);
    match age {
        Ok(age) => Ok(age),
        Err(_) => bail!(
            BadValue,
            "BSON field 'replSetResizeOplog.minRetentionHours' value must be >= 0, actual value '{hours}'"
        ),
    }
}
