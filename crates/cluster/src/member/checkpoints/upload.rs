//! Uploading checkpoints, and removing what nobody needs any more.

use super::map::{BlockMap, PACK_BLOCKS, PACK_BYTES, Pack, Place};
use super::{
    AT_ONCE, BRANCHES, Checkpoint, HASHES, MAP, ORIGINS, ORIGINS_FOLDER, PACKS, RECORD, encode, in_parallel, local,
    map_of, name_of, parts_of, pin_of, read,
};
use crate::member::keeper::Keeper;
use crate::member::{MemberError, MemberOptions, Stop, shipper};
use crate::trimming::{Span, kept_checkpoints};
use crate::{Log, LogError, Version};
use nestor_model::Timestamp;
use nestor_storage::{BlockHash, Engine, StorageError, UPLOAD, block_hashes, hash_of_block};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Packs of which less than half is used, as the last one of a checkpoint may be: if there are more their blocks are uploaded again.
const SMALL_PACKS: usize = 8;
/// How often a member looks whether one is due.
const LOOK: Duration = Duration::from_secs(2);
/// After an upload none begins for so many times what it took, because reading all of the base costs the member's disk; a base that is smaller
/// than this costs nothing that counts.
const REST: u32 = 20;
const REST_BYTES: u64 = 64 << 20;

/// Uploads checkpoints whenever one is due, until the role is over. What fails is tried again.
pub(in crate::member) fn run(
    engine: Engine,
    log: Arc<dyn Log>,
    options: MemberOptions,
    keeper: Arc<Keeper>,
    stop: Arc<Stop>,
) -> Result<JoinHandle<()>, MemberError> {
    shipper::spawn("cluster-checkpoints", move || {
        let mut uploader = Uploader {
            engine,
            log,
            options,
            stop,
            rests_until: Instant::now(),
        };
        while !uploader.stop.wait(LOOK) {
            if let Err(error) = uploader.look(&keeper) {
                tracing::warn!(%error, "no checkpoint of the set is uploaded");
            }
        }
    })
}

struct Uploader {
    engine: Engine,
    log: Arc<dyn Log>,
    options: MemberOptions,
    stop: Arc<Stop>,
    rests_until: Instant,
}

impl Uploader {
    fn look(&mut self, keeper: &Keeper) -> Result<(), MemberError> {
        if Instant::now() < self.rests_until {
            return Ok(());
        }
        let (version, mut checkpoints) = read(&*self.log)?;
        let newest = checkpoints.last().map_or(0, |checkpoint| checkpoint.seq);
        let is_due = self.engine.last_lsn().0 >= newest.saturating_add(self.options.checkpoint_commits);
        let last_by = checkpoints.last().and_then(|newest| Some(parts_of(&newest.id)?.0));
        if !is_due || !keeper.uploads(last_by) {
            return Ok(());
        }
        let begun = Instant::now();
        let dir = self.options.dir.join(UPLOAD);
        let result = self.upload(&dir, version, checkpoints.last());
        // What is left is removed the next time.
        let _ = fs::remove_dir_all(&dir);
        let Some(checkpoint) = result? else { return Ok(()) };
        if checkpoint.base_bytes >= REST_BYTES {
            self.rests_until = Instant::now() + begun.elapsed() * REST;
        }
        checkpoints.push(checkpoint.clone());
        let kept = kept(&checkpoints, self.engine.log_retention().age_min);
        if !self.log.replace_record(RECORD, version, &encode(&kept))? {
            // Another member has uploaded one.
            return self.remove(&checkpoint.id);
        }
        tracing::info!(checkpoint = checkpoint.id, took = ?begun.elapsed(), "a checkpoint of the set is uploaded");
        if let Err(error) = self.clean(&kept) {
            tracing::warn!(%error, "what no checkpoint of the set needs any more is not removed");
        }
        Ok(())
    }

    /// `None` if it is time to end.
    fn upload(
        &self,
        dir: &Path,
        version: Version,
        newest: Option<&Checkpoint>,
    ) -> Result<Option<Checkpoint>, MemberError> {
        if dir.exists() {
            fs::remove_dir_all(dir).map_err(|e| local(dir, &e))?;
        }
        fs::create_dir_all(dir).map_err(|e| local(dir, &e))?;
        // What the base has need not be in the journal that is copied.
        self.engine.checkpoint()?;
        let seq = self.engine.base_lsn()?.0;
        let id = Checkpoint::new_id(&self.options.host, seq, version, self.engine.last_lsn().0);
        let before = newest.and_then(|newest| match self.before(newest, dir) {
            Ok(before) => Some(before),
            Err(error) => {
                tracing::warn!(%error, checkpoint = newest.id, "all of a checkpoint is uploaded: the one before cannot be read");
                None
            }
        });
        let result = self.upload_as(&id, dir, before);
        if !matches!(result, Ok(Some(_))) {
            self.remove(&id)?;
        }
        result
    }

    fn upload_as(&self, id: &str, dir: &Path, before: Option<Before>) -> Result<Option<Checkpoint>, MemberError> {
        let files_of = dir.join("backup");
        let (full, packs) = sync_channel(1);
        let failed: Mutex<Option<MemberError>> = Mutex::new(None);
        let check = || match self.stop.is_set() || failed.lock().map_or(true, |failed| failed.is_some()) {
            true => Err(MemberError::Over),
            false => Ok(()),
        };
        let packs = Mutex::new(packs);
        let made = std::thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| send(&*self.log, &packs, &failed));
            }
            let mut packer = Packer::new(id, before, full);
            let mut put = |number: u64, hash: &BlockHash, block: &[u8]| packer.put(number, hash, block);
            let backup = self.engine.backup_blocks(&files_of, &mut put, check)?;
            Ok((backup, packer.finish()?))
        });
        if let Some(error) = failed.lock().ok().and_then(|mut failed| failed.take()) {
            return Err(error);
        }
        let (backup, map) = match made {
            Err(MemberError::Over | MemberError::Storage(StorageError::Closed)) => return Ok(None),
            made => made?,
        };
        let path = files_of.join(MAP);
        fs::write(&path, map.encode()).map_err(|e| local(&path, &e))?;
        let mut files = Vec::new();
        list(&files_of, &files_of, &mut files)?;
        // The manifest names and hashes the others.
        files.sort_by_key(|file| (file == "nestor.backup", file.clone()));
        let checkpoint = Checkpoint {
            id: id.to_owned(),
            seq: backup.from_lsn.0,
            from: Some(backup.from),
            until: Some(backup.until),
            base_bytes: backup.base_bytes,
            is_base_only: false,
            files,
        };
        let sent = in_parallel(&checkpoint.files, |file| {
            check()?;
            Ok(self.log.upload(&checkpoint.path_of(file), &files_of.join(file))?)
        });
        match sent {
            Err(MemberError::Over) => Ok(None),
            sent => sent.map(|()| Some(checkpoint)),
        }
    }

    /// What the newest checkpoint has.
    fn before(&self, newest: &Checkpoint, dir: &Path) -> Result<Before, MemberError> {
        let hashes = dir.join("hashes");
        self.log.download(&newest.path_of(HASHES), &hashes)?;
        Ok(Before {
            hashes: block_hashes(&hashes, newest.base_bytes)?,
            map: map_of(&*self.log, newest)?,
        })
    }

    /// Removes everything of a checkpoint that is not kept.
    fn remove(&self, id: &str) -> Result<(), MemberError> {
        for folder in [RECORD, PACKS] {
            let files = self.log.files(&format!("{folder}/{id}"))?;
            in_parallel(&files, |file| Ok(self.log.remove(file)?))?;
        }
        Ok(())
    }

    /// Removes what neither the checkpoints that are kept nor branches refer to: what others left that were dropped, and halves of some
    /// that nobody goes on with, because they are older, or this member's.
    fn clean(&self, kept: &[Checkpoint]) -> Result<(), MemberError> {
        let Some(oldest) = kept.first() else { return Ok(()) };
        let mut used = BTreeSet::new();
        let mut origins = BTreeSet::new();
        for checkpoint in kept.iter().filter(|kept| kept.files.iter().any(|file| file == MAP)) {
            for pack in map_of(&*self.log, checkpoint)?.packs {
                match pack.store.is_empty() {
                    true => used.insert(pack.name),
                    false => origins.insert(pack.store),
                };
            }
        }
        used.extend(packs_of_branches(&*self.log)?);
        let own = name_of(&self.options.host);
        let is_gone = |path: &&String| {
            let Some(id) = path.split('/').nth(1) else { return false };
            let is_kept = kept.iter().any(|kept| kept.id == id) || used.contains(*path);
            // Those of old have other ids, and are dropped like any.
            let is_idle = parts_of(id).is_none_or(|(host, seq)| host == own || seq <= oldest.seq);
            !is_kept && is_idle
        };
        for folder in [RECORD, PACKS] {
            let files = self.log.files(folder)?;
            let gone: Vec<_> = files.iter().filter(is_gone).collect();
            in_parallel(&gone, |file| Ok(self.log.remove(file)?))?;
        }
        self.leave_origins(&origins)
    }

    /// Tells the sets that this one is a branch of, and refers to no more, that their packs may go.
    fn leave_origins(&self, used: &BTreeSet<String>) -> Result<(), MemberError> {
        if self.log.files(ORIGINS_FOLDER)?.is_empty() {
            return Ok(());
        }
        let origins = self.log.contents(ORIGINS)?;
        let origins = String::from_utf8_lossy(&origins).into_owned();
        let (stay, leave): (Vec<_>, Vec<_>) = origins.lines().partition(|origin| used.contains(*origin));
        for origin in &leave {
            let pin = pin_of(self.log.address());
            self.log.elsewhere(origin)?.remove(&pin)?;
        }
        match (stay.is_empty(), leave.is_empty()) {
            (_, true) => {}
            (true, _) => self.log.remove(ORIGINS)?,
            (false, _) => self.log.put(ORIGINS, stay.join("\n").as_bytes())?,
        }
        Ok(())
    }
}

/// The packs of this log that branches refer to.
fn packs_of_branches(log: &dyn Log) -> Result<BTreeSet<String>, LogError> {
    let mut packs = BTreeSet::new();
    for branch in log.files(BRANCHES)? {
        let names = log.contents(&branch)?;
        packs.extend(String::from_utf8_lossy(&names).lines().map(str::to_owned));
    }
    Ok(packs)
}

/// Those of the checkpoints that stay.
fn kept(checkpoints: &[Checkpoint], age: Duration) -> Vec<Checkpoint> {
    let secs = |time: Option<Timestamp>| u64::from(time.unwrap_or_default().secs);
    let span = |checkpoint: &Checkpoint| Span {
        from: secs(checkpoint.from),
        until: secs(checkpoint.until),
    };
    let spans: Vec<Span> = checkpoints.iter().map(span).collect();
    let kept = kept_checkpoints(&spans, age);
    kept.into_iter().map(|at| checkpoints[at].clone()).collect()
}

/// The checkpoint before.
struct Before {
    /// Of its blocks.
    hashes: Vec<u8>,
    map: BlockMap,
}

/// A pack on its way.
struct Full {
    name: String,
    bytes: Vec<u8>,
}

/// Makes packs of blocks that the checkpoint before does not have.
struct Packer {
    id: String,
    hashes: Vec<u8>,
    /// Where the blocks are in the checkpoint before; those of packs of which little is used count as not there.
    places: std::vec::IntoIter<Option<Place>>,
    /// Packs of the checkpoint before, and which of the new map's each is.
    packs: Vec<Pack>,
    known: BTreeMap<u32, u32>,
    map: BlockMap,
    /// The pack that is being filled: which of the map's, and its blocks.
    open: Option<u32>,
    blocks: u32,
    bytes: Vec<u8>,
    made: u32,
    full: SyncSender<Full>,
}

impl Packer {
    fn new(id: &str, before: Option<Before>, full: SyncSender<Full>) -> Self {
        let (hashes, map) = before.map_or_else(Default::default, |before| (before.hashes, before.map));
        let used = map.used();
        let is_full = |pack: usize| used[pack] >= PACK_BLOCKS / 2;
        // The last pack of each checkpoint has what it has. A branch needs little of its origin's no longer.
        let is_few = (0..used.len()).filter(|pack| !is_full(*pack)).count() <= SMALL_PACKS;
        let stays = |pack: usize| is_full(pack) || (is_few && map.packs[pack].store.is_empty());
        let places: Vec<_> = map
            .places()
            .map(|place| stays(place.pack as usize).then_some(place))
            .collect();
        Self {
            id: id.to_owned(),
            hashes,
            places: places.into_iter(),
            packs: map.packs,
            known: BTreeMap::new(),
            map: BlockMap::default(),
            open: None,
            blocks: 0,
            bytes: Vec::new(),
            made: 0,
            full,
        }
    }

    fn put(&mut self, number: u64, hash: &BlockHash, block: &[u8]) -> Result<(), MemberError> {
        let before = self.places.next().flatten();
        if let Some(place) = before.filter(|_| hash_of_block(&self.hashes, number) == Some(&hash[..])) {
            let pack = *self.known.entry(place.pack).or_insert_with(|| {
                self.map.packs.push(self.packs[place.pack as usize].clone());
                self.map.packs.len() as u32 - 1
            });
            self.map.push(Place { pack, ..place });
            return Ok(());
        }
        let pack = match self.open {
            Some(pack) => pack,
            None => {
                let name = format!("{PACKS}/{}/{}", self.id, self.made);
                let store = String::new();
                self.map.packs.push(Pack { store, name });
                self.made += 1;
                let pack = self.map.packs.len() as u32 - 1;
                self.open = Some(pack);
                pack
            }
        };
        let slot = self.blocks;
        self.map.push(Place { pack, slot });
        self.bytes.extend_from_slice(block);
        self.blocks += 1;
        match self.blocks == PACK_BLOCKS {
            true => self.send(),
            false => Ok(()),
        }
    }

    fn send(&mut self) -> Result<(), MemberError> {
        let Some(pack) = self.open.take() else { return Ok(()) };
        self.blocks = 0;
        let full = Full {
            name: self.map.packs[pack as usize].name.clone(),
            bytes: std::mem::replace(&mut self.bytes, Vec::with_capacity(PACK_BYTES)),
        };
        // Those who upload have left, and have said why.
        self.full.send(full).map_err(|_| MemberError::Over)
    }

    fn finish(mut self) -> Result<BlockMap, MemberError> {
        self.send()?;
        Ok(self.map)
    }
}

/// Uploads packs until there are no more, or one fails.
fn send(log: &dyn Log, packs: &Mutex<Receiver<Full>>, failed: &Mutex<Option<MemberError>>) {
    loop {
        let next = packs.lock().ok().and_then(|packs| packs.recv().ok());
        let Some(Full { name, bytes }) = next else { return };
        let is_failed = || failed.lock().map_or(true, |failed| failed.is_some());
        // After a failure the others are taken and left.
        if !is_failed()
            && let Err(error) = log.put(&name, &bytes)
            && let Ok(mut failed) = failed.lock()
        {
            failed.get_or_insert(error.into());
        }
    }
}

/// Names of all files below `dir`, relative to `root`.
fn list(root: &Path, dir: &Path, files: &mut Vec<String>) -> Result<(), MemberError> {
    for entry in fs::read_dir(dir).map_err(|e| local(dir, &e))? {
        let path: PathBuf = entry.map_err(|e| local(dir, &e))?.path();
        if path.is_dir() {
            list(root, &path, files)?;
        } else if let Some(name) = path.strip_prefix(root).ok().and_then(Path::to_str) {
            files.push(name.to_owned());
        }
    }
    Ok(())
}
