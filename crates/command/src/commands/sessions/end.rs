//! `endSessions` and `refreshSessions`.

use super::kill::{Sessions, end_sessions};
use crate::dispatch::{CommandSpec, Flags};

/// `endSessions`: ends sessions and what runs under them.
pub const END: CommandSpec = CommandSpec {
    name: "endSessions",
    aliases: &[],
    flags: Flags::API_V1.and(Flags::QUIET),
    help: "Ends sessions.",
    run: |context, _reply| {
        let args = EndSessions::parse(context.body, context.sequences)?;
        end_sessions(context.service, |lsid| args.sessions.0.contains(lsid));
        Ok(())
    },
};

/// `refreshSessions`: says that sessions are still in use.
pub const REFRESH: CommandSpec = CommandSpec {
    name: "refreshSessions",
    aliases: &[],
    flags: Flags::API_V1.and(Flags::QUIET),
    help: "Says that sessions are still in use.",
    run: |context, _reply| {
        RefreshSessions::parse(context.body, context.sequences)?;
        Ok(())
    },
};

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
