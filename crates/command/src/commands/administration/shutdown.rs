//! `shutdown`: ends the server. Only from this machine, as nobody can log in yet.

use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::rights::Action;
use nestor_model::{Document, bail};

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("shutdown", "Ends the server.")
    .flags(Flags::ADMIN)
    .needs(Needs::server(Action::Shutdown)).runs(|context, _reply| {
        let args = Shutdown::parse(context.body, context.sequences)?;
        if !is_local(context) {
            bail!(
                Unauthorized,
                "shutdown must run from localhost when running db without auth"
            );
        }
        // A primary waits for a secondary that can take over; a set of one has none to wait for.
        if context.service.options.replica_set.is_some() && !args.force {
            bail!(
                ExceededTimeLimit,
                "No electable secondaries caught up as of now. Please use the replSetStepDown command with the argument {{force: true}} to force node to step down."
            );
        }
        context.note("shutdown", Document::new, None);
        context.after.hang_up = true;
        context.service.node.stop.request();
        Ok(())
    });

crate::args! {
    struct Shutdown: "shutdown" command {
        "force" => force: bool,
        /// How long to wait for a secondary that takes over; there is none to wait for.
        #[allow(dead_code)]
        "timeoutSecs" => timeout_secs: Option<i64>,
    }
}

fn is_local(context: &Context<'_>) -> bool {
    match context.conn.peer.parse::<std::net::SocketAddr>() {
        Ok(peer) => peer.ip().to_canonical().is_loopback(),
        // Unix sockets and embedded use have no address.
        Err(_) => true,
    }
}
