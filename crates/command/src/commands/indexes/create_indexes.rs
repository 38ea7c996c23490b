//! `createIndexes`.

use super::{spec, timeseries};
use crate::api_strict;
use crate::args::CollectionName;
use crate::audited::{self, Audited};
use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::index_build;
use nestor_database::names;
use nestor_database::parameters::Param;
use nestor_database::rights::Action;
use nestor_database::write;
use nestor_database::write::Progress;
use nestor_model::timeseries::BUCKETS_PREFIX;
use nestor_model::{IndexSpec, Namespace, RawDoc, RawWriter, Result, ValueRef, bail};
use nestor_storage::{Collection, CollectionId, Index, IndexId, View, WriteSet};
use std::sync::Arc;

/// Most indexes of a collection.
const INDEXES_MAX: usize = 64;
/// Write conflicts of an index made at once after which it is built beside the writers.
const AT_ONCE_ATTEMPTS: u32 = 8;

/// The command.
pub const SPEC: CommandSpec = Facts::collection("createIndexes", "Makes indexes.")
    .flags(
        Flags::API_V1
            .and(Flags::WRITE)
            .and(Flags::LONG)
            .and(Flags::TXN)
            .and(Flags::WRITE_CONCERN),
    )
    .needs(Needs::collection(Action::CreateIndex))
    .audited(Audited::Attempts(audited::create_indexes))
    .runs(run);

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
    if context.terms.strict_api {
        args.indexes
            .iter()
            .try_for_each(|index| api_strict::check_index(*index))?;
    }
    let series = write::timeseries::found(context.current_view().view(), &ns)?.map(|(_, buckets)| buckets);
    let series_collation = series.as_ref().and_then(|buckets| buckets.options.collation.as_ref());
    let parse = |index: RawDoc<'_>| match series.as_ref().and_then(|buckets| buckets.buckets()) {
        Some(series) => timeseries::of_buckets(index, series, series_collation),
        None => spec::parse(index),
    };
    let specs = args
        .indexes
        .iter()
        .map(|index| match args.ignore_unknown {
            true => parse(spec::without_unknown(*index).as_raw()),
            false => parse(*index),
        })
        .collect::<Result<Vec<IndexSpec>>>()?;
    write::check_namespace(&ns)?;
    // An index on measurements is one on their buckets.
    let of_series = series.is_some();
    let ns = series.map_or(ns, |buckets| buckets.ns.clone());
    if !of_series && ns.coll.starts_with("system.") && specs.iter().any(|spec| spec.hidden) {
        bail!(BadValue, "indexes of system collections cannot be hidden: {ns}");
    }
    context.check_write_concern()?;
    let mut progress = Progress::default();
    let (before, after, created) = make(context, &mut progress, &ns, &specs)?;
    reply.append("numIndexesBefore", before as i32);
    reply.append("numIndexesAfter", after as i32);
    reply.append("createdCollectionAutomatically", created);
    if before == after {
        reply.append("note", "all indexes already exist");
    } else if context.service.options.replica_set.is_some() {
        reply.append("commitQuorum", "votingMembers");
    }
    context.finish_concern(progress.last, reply, false)
}

/// The result of one look at the collection.
enum Step {
    /// All indexes are there: how many there were before and are now, and whether the collection was made.
    Done(usize, usize, bool),
    /// One of them is being built by another command.
    Wait(CollectionId, IndexId),
    /// There is something to build, for which a place is needed.
    Enter,
    /// These have been started, beside those that there were.
    Started(usize, CollectionId, Vec<Arc<Index>>),
}

/// Makes the indexes. Returns how many there were before and are now, and whether the collection was made.
fn make(
    context: &Context<'_>,
    progress: &mut Progress,
    ns: &Namespace,
    specs: &[IndexSpec],
) -> Result<(usize, usize, bool)> {
    let service = context.service;
    let mut slot = None;
    loop {
        match step(context, progress, ns, specs, slot.is_some())? {
            Step::Done(before, after, created) => return Ok((before, after, created)),
            Step::Enter => {
                let most = service.node.parameters.number(Param::IndexBuildsMax);
                slot = Some(service.index_builds.enter(most, &context.interrupt)?);
            }
            Step::Started(before, collection, indexes) => {
                let commit = index_build::beside_writers(context, collection, &indexes)?;
                progress.last = Some((commit.lsn, commit.optime));
                return Ok((before, before + indexes.len(), false));
            }
            Step::Wait(collection, index) => {
                // While it waits for another connection's build it gives its place to operations that can go on.
                slot = None;
                service.index_builds.wait(index, &context.interrupt, || {
                    // An index that its build has given up is built by nobody.
                    let admission = &service.node.gates.admission;
                    service.index_builds.drop_left(&service.engine, admission)?;
                    let snapshot = service.engine.snapshot();
                    let found = snapshot.catalog().by_id(collection);
                    Ok(found.is_some_and(|c| c.building_by_id(index).is_some()))
                })?;
            }
        }
    }
}

fn step(
    context: &Context<'_>,
    progress: &mut Progress,
    ns: &Namespace,
    specs: &[IndexSpec],
    has_slot: bool,
) -> Result<Step> {
    let mut uuid = None;
    let mut attempts = 0;
    context.atomically(progress, |ws| {
        attempts += 1;
        let created = ws.catalog().get(ns).is_none();
        if created && ns.coll.starts_with(BUCKETS_PREFIX) {
            bail!(NamespaceNotFound, "the time-series collection is gone: {ns}");
        }
        let collection = write::writable(ws, ns, context, &mut uuid)?;
        let before = collection.indexes.len();
        let mut missing: Vec<IndexSpec> = Vec::new();
        for spec in specs {
            if spec.is_id() && collection.is_clustered() {
                // Its records are in the order of `_id` already.
                continue;
            }
            let spec = spec::inherit(spec, &collection)?;
            match spec::find(&collection, &spec)? {
                Some(index) if collection.building_by_id(index.id).is_some() => {
                    return Ok(Step::Wait(collection.id, index.id));
                }
                Some(_) => {}
                None => {
                    context.check_index(&collection, &spec)?;
                    missing.push(spec);
                }
            }
        }
        if context.in_transaction() && !missing.is_empty() {
            check_is_new(ws, &collection)?;
        }
        // A collection that is written all the time leaves no quiet moment in which to build at once.
        let at_once = context.terms.in_transaction
            || created
            || index_build::is_small(ws, &collection) && attempts <= AT_ONCE_ATTEMPTS;
        if !missing.is_empty() && !at_once && !has_slot {
            return Ok(Step::Enter);
        }
        let mut started = Vec::new();
        for spec in missing {
            let Some(now) = ws.catalog().get(ns).cloned() else {
                bail!(NamespaceNotFound, "ns does not exist: {ns}");
            };
            // Two of the command may be alike, or conflict.
            if spec::find(&now, &spec)?.is_some() {
                continue;
            }
            if now.all_indexes().count() >= INDEXES_MAX {
                bail!(
                    CannotCreateIndex,
                    "add index fails, too many indexes for {ns} key: {:?}",
                    spec.key_pattern
                );
            }
            if at_once {
                let index = index_build::at_once(context, ws, ns, spec.clone())?;
                index_build::log(context, ws, &now, &index)?;
            } else {
                started.push(ws.start_index(now.id, spec.clone())?);
            }
        }
        if started.is_empty() {
            let after = ws.catalog().get(ns).map_or(before, |c| c.indexes.len());
            return Ok(Step::Done(before, after, created));
        }
        Ok(Step::Started(before, collection.id, started))
    })
}

/// Within a transaction only what the transaction has made itself, and not yet filled, gets indexes.
fn check_is_new(ws: &WriteSet, collection: &Collection) -> Result<()> {
    let ns = &collection.ns;
    if ws.snapshot().catalog().by_id(collection.id).is_some() {
        bail!(
            OperationNotSupportedInTransaction,
            "Cannot create new indexes on existing collection {ns} in a multi-document transaction."
        );
    }
    if ws.counts(collection).0 > 0 {
        bail!(
            OperationNotSupportedInTransaction,
            "Cannot create new indexes on non-empty collection {ns} in a multi-document transaction."
        );
    }
    Ok(())
}

/// `commitQuorum`: with one member every quorum that it can be part of is met.
pub(super) fn check_quorum(quorum: Option<ValueRef<'_>>) -> Result<()> {
    match quorum {
        None | Some(ValueRef::Null | ValueRef::Undefined) => Ok(()),
        Some(ValueRef::String("majority" | "votingMembers")) => Ok(()),
        Some(ValueRef::String(other)) => bail!(
            UnknownReplWriteConcern,
            "No write concern mode named '{other}' found in replica set configuration"
        ),
        Some(value) => match nestor_model::number::safe_i64(value) {
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
