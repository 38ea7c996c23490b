//! A start: from a directory as a crash or another role left it to a primary or a secondary.

use super::follower::Following;
use super::keeper::Keeper;
use super::knocks::Knocks;
use super::patience::Patience;
use super::{Member, MemberError, MemberOptions, Stop, checkpoints, config, follower, rollback, shipper};
use crate::{Entry, Log, LogError, Writer, reconcile};
use nestor_storage::{Engine, Lsn};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of the log that are read at a time.
pub(super) const READ_BYTES: usize = 8 << 20;
/// How long a member that took the lease and could not become primary leaves it to others.
const CANNOT_LEAD: Duration = Duration::from_secs(30);

/// Starts a member over a log.
///
/// Errors: the directory is one of another set, the log is one of another set, the store of the log does not answer, or the member's own store
/// does not open.
pub fn start(log: Arc<dyn Log>, options: MemberOptions) -> Result<Member, MemberError> {
    let stop = Arc::<Stop>::default();
    // The address of a first start may be wrong. Later the member waits for its store, however long that takes.
    let patience = match checkpoints::is_empty(&options.dir) {
        true => Patience::brief(stop.clone()),
        false => Patience::endless(stop.clone()),
    };
    if checkpoints::is_empty(&options.dir) {
        patience.ask(|| Ok(log.verify(&options.host)?))?;
    }
    let set = patience.ask(|| config::join(&*log, &options.set, &options.host))?;
    patience.ask(|| checkpoints::begin(&*log, &options))?;
    let keeper = Arc::new(Keeper::new(log.clone(), &options, set, stop.clone()));
    // From here on the lease is renewed if it is ours, however long the rest takes.
    let is_primary = patience.ask(|| Ok(keeper.take_if_free()?))?;
    let mut threads = vec![keeper.clone().run()?, Knocks::run(keeper.clone(), stop.clone())?];
    let started = match is_primary {
        true => begin_as_primary(&*log, &options, &keeper, &patience),
        false => begin_as_secondary(&*log, &options, &keeper, &patience),
    };
    let (engine, work) = match started {
        Ok(started) => started,
        Err(error) => {
            match error {
                // Another member was faster: this one starts again, as after any other role.
                MemberError::Log(LogError::Fenced(_)) => keeper.over(&error.to_string()),
                // Another one may do better.
                _ => keeper.give_up(CANNOT_LEAD, None),
            }
            let is_over = stop.is_set();
            stop.set();
            return Err(match is_over {
                true => MemberError::Over,
                false => error,
            });
        }
    };
    keeper.serves(&engine);
    threads.push(match work {
        Work::Ship(writer) => shipper::run(engine.clone(), writer, log.clone(), keeper.clone(), stop.clone())?,
        Work::Follow(following) => follower::run(engine.clone(), following, keeper.clone(), stop.clone())?,
    });
    let uploader = checkpoints::run(engine.clone(), log, options, keeper.clone(), stop.clone())?;
    Ok(Member {
        engine,
        keeper,
        stop,
        threads,
        uploader,
    })
}

/// The work of a role.
enum Work {
    Ship(Box<dyn Writer>),
    Follow(Following),
}

/// Shuts others out, and has exactly what the log has, or more if nobody wrote since.
fn begin_as_primary(
    log: &dyn Log,
    options: &MemberOptions,
    keeper: &Keeper,
    patience: &Patience,
) -> Result<(Engine, Work), MemberError> {
    let mut writer = patience.ask(|| Ok(log.open_writer()?))?;
    let log_last = patience.ask(|| Ok(writer.last()?))?;
    let mut engine = open(options, None)?;
    let first = patience.ask(|| oldest(writer.read(engine.base_lsn()?.0, 1)))?;
    let kept = patience.ask(|| agreed(&engine, first, |seq| Ok(writer.read(seq - 1, 1)?.pop())))?;
    if kept < log_last && engine.last_lsn() > Lsn(kept) {
        engine = dropped(engine, options, kept)?;
    }
    while engine.last_lsn() < Lsn(log_last) {
        let entries = patience.ask(|| Ok(writer.read(engine.last_lsn().0, READ_BYTES)?))?;
        if entries.is_empty() {
            return Err(LogError::Damaged(format!("commits before {log_last} are missing")).into());
        }
        apply(&engine, entries)?;
    }
    engine.note_committed(Lsn(log_last), optime_of(&engine, Lsn(log_last))?);
    let term = i64::try_from(writer.epoch()).unwrap_or(i64::MAX);
    keeper.leads(writer.epoch());
    engine.begin_term(term)?;
    Ok((engine, Work::Ship(writer)))
}

/// Has nothing that the log does not have, and all that it has now.
fn begin_as_secondary(
    log: &dyn Log,
    options: &MemberOptions,
    keeper: &Keeper,
    patience: &Patience,
) -> Result<(Engine, Work), MemberError> {
    let mut reader = patience.ask(|| Ok(log.open_reader()?))?;
    let mut engine = open(options, None)?;
    let first = patience.ask(|| oldest(reader.read(engine.base_lsn()?.0, 1)))?;
    let kept = patience.ask(|| agreed(&engine, first, |seq| reader.entry(seq)))?;
    if engine.last_lsn() > Lsn(kept) {
        engine = dropped(engine, options, kept)?;
    }
    engine.note_committed(Lsn(kept), engine.last_optime());
    let mut following = Following::new(reader, options.engine.clock.clone());
    // Clients are not to see how a new member begins with nothing.
    loop {
        let entries = patience.ask(|| Ok(following.next(engine.last_lsn().0, keeper.delay())?))?;
        if entries.is_empty() {
            return Ok((engine, Work::Follow(following)));
        }
        apply(&engine, entries)?;
    }
}

fn open(options: &MemberOptions, last_kept: Option<u64>) -> Result<Engine, MemberError> {
    let mut engine = options.engine.clone();
    (engine.is_member, engine.last_kept) = (true, last_kept);
    Ok(Engine::open(&options.dir, engine)?)
}

/// The oldest entry of a log that was trimmed beyond the place where it was read, else 0.
fn oldest(read: Result<Vec<Entry>, LogError>) -> Result<u64, MemberError> {
    match read {
        Ok(_) => Ok(0),
        Err(LogError::Trimmed { first, .. }) => Ok(first),
        Err(error) => Err(error.into()),
    }
}

/// The last commit that the member and the log, which may begin with `first`, have alike.
fn agreed(
    engine: &Engine,
    first: u64,
    mut entry: impl FnMut(u64) -> Result<Option<Entry>, LogError>,
) -> Result<u64, MemberError> {
    let (base, last) = (engine.base_lsn()?.0, engine.last_lsn().0);
    let mut failed = None;
    let same = |seq: u64| {
        let own = match engine.frames(Lsn(seq - 1)).next(1) {
            Ok(own) => own,
            Err(error) => {
                failed = Some(error);
                return Ok(false);
            }
        };
        Ok(match (own.first(), entry(seq)?) {
            (Some(own), Some(found)) => found.seq == seq && own.bytes == found.frame,
            _ => false,
        })
    };
    let kept = reconcile(base, first, last, same)?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    kept.ok_or_else(|| {
        MemberError::Refused(format!(
            "the data directory has {base} commits that cannot be dropped, and the log has others, or none, or has them no more: a \
             member begins with an empty directory, or with its own, unless that is older than the log"
        ))
    })
}

/// The store without the commits after `kept`, which are left in files.
fn dropped(engine: Engine, options: &MemberOptions, kept: u64) -> Result<Engine, MemberError> {
    let last = engine.last_lsn().0;
    let files = rollback::write(&engine, &options.dir, Lsn(kept))?;
    tracing::warn!(
        commits = last - kept,
        last = kept,
        files,
        "commits that the log of the set does not have are dropped"
    );
    engine.abandon();
    open(options, Some(kept))
}

/// The optime of a commit that the member has.
fn optime_of(engine: &Engine, lsn: Lsn) -> Result<nestor_model::Timestamp, MemberError> {
    if lsn == engine.last_lsn() || lsn == Lsn(0) {
        return Ok(engine.last_optime());
    }
    let found = engine.frames(Lsn(lsn.0 - 1)).next(1)?;
    Ok(found.first().map_or_else(|| engine.last_optime(), |frame| frame.optime))
}

pub(super) fn apply(engine: &Engine, entries: Vec<Entry>) -> Result<(), MemberError> {
    let frames: Vec<Vec<u8>> = entries.into_iter().map(|entry| entry.frame).collect();
    Ok(engine.apply(&frames)?)
}
