//! `connectionStatus`: who is logged in on this connection, and what that user may do.

use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_model::ValueRef;

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("connectionStatus", "Says who is logged in on this connection.")
    .flags(Flags::API_V1.and(Flags::QUIET))
    .needs(Needs::Nothing)
    .runs(|context, reply| {
        let args = ConnectionStatus::parse(context.body, context.sequences)?;
        let account = context.conn.identity.account();
        reply.begin_document("authInfo");
        reply.begin_array("authenticatedUsers");
        if let Some(account) = account {
            reply.append_index(0, &account.name.to_document());
        }
        reply.end();
        reply.begin_array("authenticatedUserRoles");
        let roles = account.iter().flat_map(|account| &account.all_roles);
        for (i, role) in roles.enumerate() {
            reply.append_index(i, &role.to_document());
        }
        reply.end();
        if args.show_privileges {
            reply.begin_array("authenticatedUserPrivileges");
            let grants = account.map(|account| account.privileges.as_slice());
            for (i, grant) in grants.unwrap_or_default().iter().enumerate() {
                reply.append_index(i, &grant.to_document());
            }
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
