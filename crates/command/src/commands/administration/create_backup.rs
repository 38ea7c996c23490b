//! `createBackup`: a copy of the data directory in another directory of the server's machine, while writes go on.
//!
//! The command is none of MongoDB's. It has the name, and the first two fields, by which other servers of the wire protocol offer a hot
//! backup. `nestor backup` sends it.

use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::rights::Action;
use nestor_model::{bail, doc};
use std::path::Path;

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("createBackup", "Copies the data directory while writes go on.")
    .flags(Flags::ADMIN.and(Flags::LONG))
    .needs(Needs::server(Action::CreateBackup)).runs(|context, reply| {
        let args = CreateBackup::parse(context.body, context.sequences)?;
        let to = Path::new(args.backup_dir);
        let parent = args.incremental_from.map(Path::new);
        // Only whoever started the server knows its working directory, so relative paths are refused.
        for (field, path) in [("backupDir", Some(to)), ("incrementalFrom", parent)] {
            if let Some(path) = path.filter(|path| !path.is_absolute()) {
                bail!(InvalidOptions, "{field} has to be an absolute path: {}", path.display());
            }
        }
        let interrupt = &context.interrupt;
        let backup = context.service.engine.backup(to, parent, || interrupt.check())?;
        let ctx = format!("conn{}", context.conn.id);
        let attr = doc! { "backupDir": args.backup_dir, "id": backup.id.as_str(), "bytes": (backup.copied_bytes + backup.journal_bytes) as i64 };
        let log = context.service.node.log();
        log.info("STORAGE", 9_000_013, &ctx, "Backup made", attr);
        reply.append("id", backup.id.as_str());
        if let Some(parent) = &backup.parent {
            reply.append("parent", parent.as_str());
        }
        reply.append("from", backup.from);
        reply.append("until", backup.until);
        reply.append("continues", backup.continues);
        reply.append("baseBytes", backup.base_bytes as i64);
        reply.append("copiedBytes", backup.copied_bytes as i64);
        reply.append("oplogBytes", backup.journal_bytes as i64);
        Ok(())
    });

crate::args! {
    struct CreateBackup<'a>: "createBackup" command {
        "backupDir" => backup_dir: &'a str,
        "incrementalFrom" => incremental_from: Option<&'a str>,
    }
}
