//! `lockInfo`: locks that are held. Reads and writes take none here; `fsync` with `lock` does.

use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::rights::Action;

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("lockInfo", "Lists locks that are held.")
    .flags(Flags::ADMIN)
    .needs(Needs::server(Action::ServerStatus))
    .runs(|context, reply| {
        LockInfo::parse(context.body, context.sequences)?;
        reply.begin_array("lockInfo");
        if context.service.node.gates.fsync_locks() > 0 {
            reply.begin_document_at(0);
            reply.append("resourceId", "{1: Global, 1}");
            reply.begin_array("granted");
            reply.begin_document_at(0);
            reply.append("mode", "S");
            reply.append("desc", "fsyncLockWorker");
            reply.end();
            reply.end();
            reply.begin_array("pending");
            reply.end();
            reply.end();
        }
        reply.end();
        Ok(())
    });

crate::args! {
    struct LockInfo: "lockInfo" command {}
}
