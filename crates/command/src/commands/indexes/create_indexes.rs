//! `createIndexes`.

use super::{build, spec};
use crate::Context;
use crate::args::CollectionName;
use crate::dispatch::{CommandSpec, Flags};
use crate::names;
use crate::write::{self, Progress};
use nestor_exec::write::oplog::Origin;
use nestor_model::{Document, RawDoc, RawDocBuf, RawWriter, Result, ValueRef, bail, doc};
use nestor_storage::View;

/// Most indexes of a collection.
const INDEXES_MAX: usize = 64;

/// The command.
pub const SPEC: CommandSpec = CommandSpec {
    name: "createIndexes",
    aliases: &[],
    flags: Flags::API_V1
        .and(Flags::WRITE)
        .and(Flags::LONG)
        .and(Flags::TXN)
        .and(Flags::WRITE_CONCERN),
    help: "Makes indexes.",
    run,
};

crate::args! {
    /// Arguments of `createIndexes`.
    pub struct CreateIndexesArgs<'a>: "createIndexes" command {
        "createIndexes" => coll: CollectionName<'a>,
        "indexes" => indexes: Vec<RawDoc<'a>>,
        "ignoreUnknownIndexOptions" => ignore_unknown: bool,
        "commitQuorum" => commit_quorum: Option<ValueRef<'a>>,
        "isTimeseriesNamespace" => is_timeseries_namespace: bool,
        "returnOnStart" => return_on_start: bool,
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = CreateIndexesArgs::parse(context.body, context.sequences)?;
    let ns = names::collection(context.db(), args.coll.0)?;
    if args.indexes.is_empty() {
        bail!(BadValue, "Must specify at least one index to create");
    }
    check_quorum(args.commit_quorum)?;
    let specs = args
        .indexes
        .iter()
        .map(|index| spec::parse(*index))
        .collect::<Result<Vec<RawDocBuf>>>()?;
    write::check_namespace(&ns)?;
    context.check_write_concern()?;
    let mut progress = Progress::default();
    let mut uuid = None;
    let (before, after, created) = context.atomically(&mut progress, |ws| {
        let created = ws.catalog().get(&ns).is_none();
        let collection = write::writable(ws, &ns, context, &mut uuid)?;
        let before = collection.indexes.len();
        for spec in &specs {
            let Some(now) = ws.catalog().get(&ns).cloned() else {
                bail!(NamespaceNotFound, "ns does not exist: {ns}");
            };
            let spec = spec::inherit(spec.clone(), &now)?;
            if spec::exists(&now, &spec)? {
                continue;
            }
            if now.indexes.len() >= INDEXES_MAX {
                bail!(
                    CannotCreateIndex,
                    "add index fails, too many indexes for {ns} key: {:?}",
                    spec.as_raw().get("key")
                );
            }
            build::build(context, ws, &ns, spec.clone())?;
            if context.origin(&ns.db).is_some() {
                let mut command: Document = doc! { "createIndexes": ns.coll.clone() };
                for (name, value) in spec.as_raw().iter() {
                    command.push(name, value);
                }
                let entry = Origin::default().command(&ns.db, Some(now.uuid), &command, crate::clock::now_ms());
                ws.oplog(entry)?;
            }
        }
        let after = ws.catalog().get(&ns).map_or(before, |c| c.indexes.len());
        Ok((before, after, created))
    })?;
    reply.append("numIndexesBefore", before as i32);
    reply.append("numIndexesAfter", after as i32);
    if created {
        reply.append("createdCollectionAutomatically", true);
    } else {
        reply.append("createdCollectionAutomatically", false);
    }
    if before == after {
        reply.append("note", "all indexes already exist");
    } else if context.service.options.replica_set.is_some() {
        reply.append("commitQuorum", "votingMembers");
    }
    context.finish_concern(progress.last, reply, false)
}

/// `commitQuorum`: with one member every quorum that it can be part of is met.
fn check_quorum(quorum: Option<ValueRef<'_>>) -> Result<()> {
    match quorum {
        None | Some(ValueRef::Null | ValueRef::Undefined) => Ok(()),
        Some(ValueRef::String("majority" | "votingMembers")) => Ok(()),
        Some(ValueRef::String(other)) => bail!(
            UnknownReplWriteConcern,
            "No write concern mode named '{other}' found in replica set configuration"
        ),
        Some(value) => match crate::args::safe_i64(value) {
            Some(0 | 1) => Ok(()),
            Some(n) if (2..=50).contains(&n) => bail!(
                UnsatisfiableCommitQuorum,
                "Commit quorum cannot be satisfied with the current replica set configuration"
            ),
            Some(_) => bail!(
                FailedToParse,
                "commitQuorum has to be a non-negative number and not greater than 50"
            ),
            None => bail!(FailedToParse, "commitQuorum has to be a number or a string"),
        },
    }
}
