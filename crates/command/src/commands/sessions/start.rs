//! `startSession`: a new session id. Drivers make their own; a session exists from its first use on.

use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::parameters::Param;
use nestor_model::ValueRef;

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("startSession", "Makes a session id.")
    .flags(Flags::QUIET)
    .needs(Needs::Login)
    .runs(|context, reply| {
        StartSession::parse(context.body, context.sequences)?;
        let node = &context.service.node;
        let uuid = nestor_database::node::new_uuid();
        reply.begin_document("id");
        reply.append(
            "id",
            ValueRef::Binary {
                subtype: 4,
                bytes: &uuid,
            },
        );
        reply.end();
        reply.append(
            "timeoutMinutes",
            node.parameters
                .number(Param::SessionTimeoutMinutes)
                .clamp(1, i32::MAX.into()) as i32,
        );
        Ok(())
    });

crate::args! {
    struct StartSession: "startSession" command {}
}
