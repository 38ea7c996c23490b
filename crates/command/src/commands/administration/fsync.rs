//! `fsync` and `fsyncUnlock`: writes everything to disk, and may lock writes out meanwhile and afterwards,
//! for copies of the data directory.

use crate::args::{Arg, At, wrong_type};
use crate::dispatch::{CommandSpec, Flags};
use crate::service::Service;
use nestor_model::{Result, ValueRef, bail};

/// `fsync`.
pub const LOCK: CommandSpec = CommandSpec {
    name: "fsync",
    aliases: &[],
    flags: Flags::ADMIN.and(Flags::LONG),
    help: "Writes everything to disk, and may lock writes out.",
    run: |context, reply| {
        let args = Fsync::parse(context.body, context.sequences)?;
        if !args.lock {
            flush(context.service)?;
            reply.append("numFiles", 1);
            return Ok(());
        }
        // Locked first: what is flushed then is all there is. It goes into the base, so that a copy of the
        // directory opens without replay.
        let locks = context.service.node.gates.fsync_lock();
        if let Err(error) = context.service.engine.checkpoint() {
            context.service.node.gates.fsync_unlock();
            return Err(error.into());
        }
        reply.append("info", "now locked against writes, use db.fsyncUnlock() to unlock");
        reply.append("lockCount", locks);
        reply.append("seeAlso", "http://dochub.mongodb.org/core/fsynccommand");
        Ok(())
    },
};

/// `fsyncUnlock`.
pub const UNLOCK: CommandSpec = CommandSpec {
    name: "fsyncUnlock",
    aliases: &[],
    flags: Flags::ADMIN,
    help: "Takes one lock of fsync away.",
    run: |context, reply| {
        FsyncUnlock::parse(context.body, context.sequences)?;
        let Some(left) = context.service.node.gates.fsync_unlock() else {
            bail!(IllegalOperation, "fsyncUnlock called when not locked");
        };
        let info = if left == 0 {
            "fsyncUnlock completed"
        } else {
            "fsyncUnlock completed, still locked"
        };
        reply.append("info", info);
        reply.append("lockCount", left);
        Ok(())
    },
};

/// Brings everything committed so far to disk.
fn flush(service: &Service) -> Result<()> {
    Ok(service.engine.wait_durable(service.engine.last_lsn())?)
}

crate::args! {
    struct Fsync: "fsync" command {
        "lock" => lock: bool,
        /// Taking the lock waits for nobody here, so no time is too short.
        #[allow(dead_code)]
        "fsyncLockAcquisitionTimeoutMillis" => timeout: Option<Int>,
    }
}

crate::args! {
    struct FsyncUnlock: "fsyncUnlock" command {}
}

/// An int32 and nothing else.
#[derive(Debug)]
struct Int;

impl<'a> Arg<'a> for Int {
    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        match value {
            ValueRef::Int32(_) => Ok(Some(Self)),
            ValueRef::Null | ValueRef::Undefined => Ok(None),
            other => Err(wrong_type(at, other.bson_type(), "int")),
        }
    }
}
