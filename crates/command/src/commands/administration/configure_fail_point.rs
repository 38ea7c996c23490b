//! `configureFailPoint`: asks for faults; only where `enableTestCommands` is on, elsewhere it does not exist.

use crate::facts::{Facts, Flags};
use crate::fail_points;
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::parameters::Param;
use nestor_database::rights::Action;
use nestor_model::{Document, RawDoc, ValueRef, bail};

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection(
    "configureFailPoint",
    "Asks for faults, for tests of drivers; needs enableTestCommands.",
)
.flags(Flags::ADMIN)
.needs(Needs::server(Action::SetParameter))
.runs(|context, reply| {
    let service = context.service;
    if !service.node.parameters.is_on(Param::EnableTestCommands) {
        bail!(CommandNotFound, "no such command: 'configureFailPoint'");
    }
    let args = ConfigureFailPoint::parse(context.body, context.sequences)?;
    let Some(name) = fail_points::known(args.name) else {
        bail!(FailPointSetFailed, "failpoint not found: {}", args.name);
    };
    let mode = fail_points::parse_mode(args.mode)?;
    let data = args.data.map_or(Document::new(), |data| Document::from(data.to_buf()));
    fail_points::check_data(data.as_ref())?;
    let gates = &service.node.gates;
    let count = gates.fail_points.configure(name, mode, data);
    gates.fail_points_changed();
    reply.append("count", count);
    Ok(())
});

crate::args! {
    struct ConfigureFailPoint<'a>: "configureFailPoint" lenient {
        "configureFailPoint" => name: &'a str,
        "mode" => mode: ValueRef<'a>,
        "data" => data: Option<RawDoc<'a>>,
    }
}
