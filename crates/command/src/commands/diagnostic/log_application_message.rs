//! `logApplicationMessage`: writes a line of the client's into the log.

use crate::audited::{self, Audited};
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::rights::Action;
use nestor_model::doc;

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("logApplicationMessage", "Writes a line into the log.")
    .flags(Flags::ADMIN)
    .needs(Needs::server(Action::ApplicationMessage))
    .audited(Audited::Told(audited::application_message))
    .runs(|context, _reply| {
        let args = LogApplicationMessage::parse(context.body, context.sequences)?;
        context.service.node.log().info(
            "CONTROL",
            5_060_500,
            &format!("conn{}", context.conn.id),
            "logApplicationMessage",
            doc! { "msg": args.message },
        );
        Ok(())
    });

crate::args! {
    struct LogApplicationMessage<'a>: "logApplicationMessage" command {
        "logApplicationMessage" => message: &'a str,
    }
}
