//! `connPoolStats`: outgoing connections. A single node makes none, so there are none to count.

use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::rights::Action;

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("connPoolStats", "Counts connections to other nodes.")
    .flags(Flags::QUIET)
    .needs(Needs::server(Action::ConnPoolStats))
    .runs(|context, reply| {
        ConnPoolStats::parse(context.body, context.sequences)?;
        for field in ["numClientConnections", "numAScopedConnections"] {
            reply.append(field, 0);
        }
        for field in [
            "totalInUse",
            "totalAvailable",
            "totalLeased",
            "totalCreated",
            "totalRefreshing",
            "totalRefreshed",
        ] {
            reply.append(field, 0);
        }
        for field in ["pools", "hosts", "replicaSets"] {
            reply.begin_document(field);
            reply.end();
        }
        Ok(())
    });

crate::args! {
    struct ConnPoolStats: "connPoolStats" lenient {}
}
