//! `nestor backup` has a running server copy its data directory, and `nestor restore` makes a data directory of such copies.

use crate::client::{Client, ClientError, Uri, number};
use crate::master_key;
use clap::Args;
use nestor_cluster::member::checkpoints::moments::{self, Moment};
use nestor_cluster::member::open_log;
use nestor_model::namespace::ADMIN;
use nestor_model::{RawDoc, Timestamp, ValueRef, doc};
use nestor_storage::{EngineOptions, RestoreOptions, restore};
use std::path::{Path, PathBuf};

/// Arguments of `nestor backup`.
#[derive(Args, Debug)]
pub struct BackupArgs {
    /// Directory for the backup, on the server's machine; made if it does not exist, and empty if it does
    pub dir: PathBuf,
    /// A backup that was made before: only what has changed since is copied
    #[arg(long = "incrementalFrom", value_name = "DIR")]
    pub incremental_from: Option<PathBuf>,
    /// Server to back up, with the user to log in as, and tls=true, tlsCAFile and tlsCertificateKeyFile for an encrypted connection
    #[arg(long, default_value = "mongodb://127.0.0.1:27017")]
    pub uri: String,
    /// File whose first line is the password. Without it the password is that of the URI or of the environment (NESTOR_PASSWORD), else it
    /// is asked for
    #[arg(long = "passwordFile", value_name = "FILE")]
    pub password_file: Option<PathBuf>,
}

/// Arguments of `nestor restore`.
#[derive(Args, Debug)]
pub struct RestoreArgs {
    /// Directory of a backup; given for the full one and for each incremental one that follows it
    #[arg(long, value_name = "DIR", required_unless_present = "log", conflicts_with = "log")]
    pub from: Vec<PathBuf>,
    /// Instead of backups, the log of a replica set and what its members have uploaded: s3://BUCKET/PATH or file:///PATH
    #[arg(long, value_name = "ADDRESS")]
    pub log: Option<String>,
    /// The data directory to make; must not exist, or be empty
    #[arg(long, value_name = "DIR")]
    pub dbpath: PathBuf,
    /// Restore the state of this time: seconds since the epoch, and a number within the second, as timestamps of the oplog have it
    #[arg(long, visible_alias = "at", value_name = "SECONDS[:ORDINAL]", value_parser = timestamp)]
    pub to: Option<Timestamp>,
    /// The data directory that was backed up, if its oplog is still there: it goes on where the last backup ends
    #[arg(long = "oplogFrom", value_name = "DIR", conflicts_with = "log")]
    pub oplog_from: Option<PathBuf>,
    /// File with the master key of an encrypted backup
    #[arg(long = "encryptionKeyFile", value_name = "FILE", conflicts_with = "log")]
    pub encryption_key_file: Option<PathBuf>,
}

/// Arguments of `nestor branch`.
#[derive(Args, Debug)]
pub struct BranchArgs {
    /// Log of the replica set: s3://BUCKET/PATH or file:///PATH
    #[arg(long, value_name = "ADDRESS")]
    pub log: String,
    /// Where the branch is to have its log; nothing may be there. Start members with it, and a name of a set of its own
    #[arg(
        long,
        value_name = "ADDRESS",
        required_unless_present = "forget",
        conflicts_with = "forget"
    )]
    pub to: Option<String>,
    /// Branch off the state of this time, instead of the newest: seconds since the epoch, and a number within the second
    #[arg(long, value_name = "SECONDS[:ORDINAL]", value_parser = timestamp)]
    pub at: Option<Timestamp>,
    /// Keep nothing any more for the branch that had its log there
    #[arg(long, value_name = "ADDRESS", conflicts_with = "at")]
    pub forget: Option<String>,
}

/// `seconds` or `seconds:ordinal`. Without an ordinal it is the end of that second.
fn timestamp(text: &str) -> Result<Timestamp, String> {
    let (secs, inc) = text
        .split_once(':')
        .map_or((text, None), |(secs, inc)| (secs, Some(inc)));
    let number = |text: &str| text.parse::<u32>().map_err(|error| format!("{text}: {error}"));
    Ok(Timestamp {
        secs: number(secs)?,
        inc: inc.map_or(Ok(u32::MAX), number)?,
    })
}

/// Has the server make the backup and prints what it says. The error is for people to read.
pub fn back_up(args: &BackupArgs) -> Result<(), String> {
    let absolute = |path: &Path| {
        let path = std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))?;
        path.into_os_string()
            .into_string()
            .map_err(|path| format!("{}: the path is not UTF-8", path.display()))
    };
    let mut command = doc! { "createBackup": 1, "backupDir": absolute(&args.dir)? };
    if let Some(parent) = &args.incremental_from {
        command.push("incrementalFrom", absolute(parent)?);
    }
    command.push("$db", ADMIN);
    let mut uri: Uri = args.uri.parse().map_err(|error: ClientError| error.to_string())?;
    match (&mut uri.credentials, &args.password_file) {
        (Some(credentials), file) => credentials.complete(file.as_deref())?,
        (None, Some(_)) => return Err("a password file is given, but the URI names no user".to_owned()),
        (None, None) => {}
    }
    let mut client = Client::connect(&uri).map_err(|error| error.to_string())?;
    let reply = client
        .command(command.to_raw().as_raw())
        .map_err(|error| error.to_string())?;
    println!("{}", summary(reply.as_raw()));
    Ok(())
}

fn summary(reply: RawDoc<'_>) -> String {
    let time = |name| match reply.get(name) {
        Some(ValueRef::Timestamp(Timestamp { secs, inc })) => format!("{secs}:{inc}"),
        _ => "?".to_owned(),
    };
    let number = |name| number(reply, name).unwrap_or(0);
    let id = reply.get("id").and_then(ValueRef::as_str).unwrap_or("?");
    let gap = match reply.get("continues") {
        Some(ValueRef::Bool(false)) => "; the oplog between the parent and this backup was gone",
        _ => "",
    };
    format!(
        "backup {id}: restores {} to {}; {} of {} bytes of the base and {} bytes of the oplog copied{gap}",
        time("from"),
        time("until"),
        number("copiedBytes"),
        number("baseBytes"),
        number("oplogBytes")
    )
}

/// Makes the data directory and prints the time that it is of. The error is for people to read.
pub fn run_restore(args: &RestoreArgs) -> Result<(), String> {
    if let Some(address) = &args.log {
        let log = open_log(address).map_err(|error| error.to_string())?;
        let moment = moments::restore_moment(&*log, &args.dbpath, args.to, engine_options());
        let Moment { until, commits } = moment.map_err(|error| error.to_string())?;
        let Timestamp { secs, inc } = until;
        let dir = args.dbpath.display();
        println!("restored the state of {secs}:{inc} into {dir}; {commits} commits came from the log");
        return Ok(());
    }
    let wanted = RestoreOptions {
        from: args.from.clone(),
        journal: args.oplog_from.clone(),
        to: args.dbpath.clone(),
        until: args.to,
        moves: false,
    };
    let mut options = engine_options();
    options.master_key = args.encryption_key_file.as_deref().map(master_key::read).transpose()?;
    let Timestamp { secs, inc } = restore(&wanted, options).map_err(|error| error.to_string())?.until;
    println!("restored the state of {secs}:{inc} into {}", args.dbpath.display());
    Ok(())
}

fn engine_options() -> EngineOptions {
    let mut options = crate::serve::usual_engine_options();
    // How much of the oplog is kept, the server decides that opens the directory.
    options.oplog_bytes_max = u64::MAX;
    options
}

/// Makes a branch of a set, or forgets one, and prints what became of it. The error is for people to read.
pub fn run_branch(args: &BranchArgs) -> Result<(), String> {
    let open = |address: &str| open_log(address).map_err(|error| error.to_string());
    let origin = open(&args.log)?;
    if let Some(branch) = &args.forget {
        moments::forget_branch(&*origin, branch).map_err(|error| error.to_string())?;
        println!("nothing is kept for {branch} any more");
        return Ok(());
    }
    let to = args.to.as_deref().unwrap_or_default();
    let branch = moments::branch(&*origin, &*open(to)?, args.at).map_err(|error| error.to_string())?;
    let Moment { until, commits } = branch;
    let Timestamp { secs, inc } = until;
    println!("{to} is a branch with the state of {secs}:{inc}; {commits} commits were copied, and no base");
    println!("start members with --log {to} and a --replSet of their own");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::Document;

    #[test]
    fn times() {
        let end = |secs| Timestamp { secs, inc: u32::MAX };
        assert_eq!(timestamp("1764000000"), Ok(end(1_764_000_000)));
        assert_eq!(
            timestamp("1764000000:7"),
            Ok(Timestamp {
                secs: 1_764_000_000,
                inc: 7
            })
        );
        for wrong in ["", "x", "1:", "1:2:3", "-1", "5000000000"] {
            assert!(timestamp(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_printed() {
        let mut reply: Document =
            doc! { "id": "ab", "copiedBytes": 1_i64, "baseBytes": 2_i64, "oplogBytes": 3_i64, "continues": false };
        reply.push("from", Timestamp { secs: 5, inc: 1 });
        reply.push("until", Timestamp { secs: 6, inc: 2 });
        assert_eq!(
            summary(reply.to_raw().as_raw()),
            "backup ab: restores 5:1 to 6:2; 1 of 2 bytes of the base and 3 bytes of the oplog copied; the oplog between the parent and \
             this backup was gone"
        );
    }
}
