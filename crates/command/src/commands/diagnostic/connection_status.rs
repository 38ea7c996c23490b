//! `connectionStatus`: who is logged in on this connection. There are no users yet, so nobody is.

use crate::facts::{Facts, Flags};
use crate::spec::CommandSpec;
use nestor_model::ValueRef;

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("connectionStatus", "Says who is logged in on this connection.")
    .flags(Flags::API_V1.and(Flags::QUIET))
    .runs(|context, reply| {
        let args = ConnectionStatus::parse(context.body, context.sequences)?;
        reply.begin_document("authInfo");
        for field in ["authenticatedUsers", "authenticatedUserRoles"] {
            reply.begin_array(field);
            reply.end();
        }
        if args.show_privileges {
            reply.begin_array("authenticatedUserPrivileges");
            reply.end();
        }
        reply.end();
        let uuid = context.service.node.connection_uuid(context.conn.id);
        reply.append(
            "uuid",
            ValueRef::Binary {
                subtype: 4,
                bytes: &uuid,
            },
        );
        Ok(())
    });

crate::args! {
    struct ConnectionStatus: "connectionStatus" command {
        "showPrivileges" => show_privileges: bool,
    }
}
