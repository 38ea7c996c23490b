//! `endSessions` and `refreshSessions`.

use super::kill::{Sessions, end};
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use std::time::Instant;

/// `endSessions`: ends sessions and what runs under them.
pub const END: CommandSpec = Facts::no_collection("endSessions", "Ends sessions.")
    .flags(Flags::API_V1.and(Flags::QUIET).and(Flags::ENDS_SESSIONS))
    .needs(Needs::Login)
    .runs(|context, _reply| {
        let args = EndSessions::parse(context.body, context.sequences)?;
        let sessions = args.sessions.of(context.conn.identity.owner(), false)?;
        end(context.service, &sessions);
        Ok(())
    });

/// `refreshSessions`: says that sessions are still in use.
pub const REFRESH: CommandSpec = Facts::no_collection("refreshSessions", "Says that sessions are still in use.")
    .flags(Flags::API_V1.and(Flags::QUIET))
    .needs(Needs::Login)
    .runs(|context, _reply| {
        let args = RefreshSessions::parse(context.body, context.sequences)?;
        let now = Instant::now();
        for lsid in args.sessions.of(context.conn.identity.owner(), false)? {
            context.service.sessions.note(lsid, now)?;
        }
        Ok(())
    });

crate::args! {
    struct EndSessions: "endSessions" command {
        "endSessions" => sessions: Sessions,
    }
}

crate::args! {
    struct RefreshSessions: "refreshSessions" command {
        "refreshSessions" => sessions: Sessions,
    }
}
