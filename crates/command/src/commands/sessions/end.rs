//! `endSessions` and `refreshSessions`.

use super::kill::{Sessions, end_sessions};
use crate::facts::{Facts, Flags};
use crate::spec::CommandSpec;

/// `endSessions`: ends sessions and what runs under them.
pub const END: CommandSpec = Facts::no_collection("endSessions", "Ends sessions.")
    .flags(Flags::API_V1.and(Flags::QUIET))
    .runs(|context, _reply| {
        let args = EndSessions::parse(context.body, context.sequences)?;
        end_sessions(context.service, |lsid| args.sessions.0.contains(lsid));
        Ok(())
    });

/// `refreshSessions`: says that sessions are still in use.
pub const REFRESH: CommandSpec = Facts::no_collection("refreshSessions", "Says that sessions are still in use.")
    .flags(Flags::API_V1.and(Flags::QUIET))
    .runs(|context, _reply| {
        RefreshSessions::parse(context.body, context.sequences)?;
        Ok(())
    });

crate::args! {
    struct EndSessions: "endSessions" command {
        "endSessions" => sessions: Sessions,
    }
}

crate::args! {
    struct RefreshSessions: "refreshSessions" command {
        /// Checked for its form only: sessions are not kept apart from what runs under them.
        #[allow(dead_code)]
        "refreshSessions" => sessions: Sessions,
    }
}
