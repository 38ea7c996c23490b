//! A log in memory, for tests: what it does is decided by its calls alone, and it fails when it is told to.

use crate::log::{Entry, Log, Reader, Version, Writer};
use crate::{LogError, Result};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

/// What becomes of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It does what it should.
    Done,
    /// It never reaches the store.
    Lost,
    /// It does what it should, and the answer never comes.
    Unanswered,
}

/// A log that ends with the process. Clones share it.
#[derive(Clone, Default)]
pub struct MemoryLog {
    store: Arc<Mutex<Store>>,
    address: Arc<str>,
    /// All logs that know each other, by address.
    all: Arc<Mutex<Stores>>,
}

type Stores = BTreeMap<Arc<str>, Arc<Mutex<Store>>>;

#[derive(Default)]
struct Store {
    epoch: u64,
    entries: BTreeMap<u64, Vec<u8>>,
    /// All entries below were trimmed.
    first: u64,
    records: BTreeMap<String, (Version, Vec<u8>)>,
    members: BTreeMap<String, Vec<u8>>,
    files: BTreeMap<String, Vec<u8>>,
    /// Of the next calls that write; then all are done.
    fates: VecDeque<Fate>,
}

impl MemoryLog {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty one at an address under which this one, and all that know it, find it ([`Log::elsewhere`]).
    pub fn beside(&self, address: &str) -> Self {
        let new = Self {
            store: Arc::default(),
            address: address.into(),
            all: self.all.clone(),
        };
        let mut all = self.all.lock().expect("no holder of the lock panics");
        all.insert(self.address.clone(), self.store.clone());
        all.insert(new.address.clone(), new.store.clone());
        drop(all);
        new
    }

    /// Decides about the next call that writes and has no fate yet.
    pub fn fate(&self, fate: Fate) {
        self.store().fates.push_back(fate);
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().expect("no holder of the lock panics")
    }

    /// Runs a call that writes as its fate wants.
    fn write<T>(&self, work: impl FnOnce(&mut Store) -> Result<T>) -> Result<T> {
        let mut store = self.store();
        let unavailable = |what: &str| LogError::Unavailable(what.to_owned());
        match store.fates.pop_front().unwrap_or(Fate::Done) {
            Fate::Done => work(&mut store),
            Fate::Lost => Err(unavailable("the request was lost")),
            Fate::Unanswered => work(&mut store).and(Err(unavailable("the answer was lost"))),
        }
    }
}

impl Store {
    fn read(&self, after: u64, bytes_max: usize) -> Result<Vec<Entry>> {
        if after + 1 < self.first {
            return Err(LogError::Trimmed {
                wanted: after + 1,
                first: self.first,
            });
        }
        let mut bytes = 0;
        let entries = self.entries.range(after + 1..).take_while(|(_, frame)| {
            let is_first = bytes == 0;
            bytes += frame.len();
            is_first || bytes <= bytes_max
        });
        Ok(entries
            .map(|(seq, frame)| Entry {
                seq: *seq,
                frame: frame.clone(),
            })
            .collect())
    }
}

impl Log for MemoryLog {
    fn open_writer(&self) -> Result<Box<dyn Writer>> {
        let epoch = self.write(|store| {
            store.epoch += 1;
            Ok(store.epoch)
        })?;
        Ok(Box::new(MemoryWriter {
            log: self.clone(),
            epoch,
        }))
    }

    fn open_reader(&self) -> Result<Box<dyn Reader>> {
        Ok(Box::new(MemoryReader(self.clone())))
    }

    fn verify(&self, _: &str) -> Result<()> {
        Ok(())
    }

    fn record(&self, name: &str) -> Result<Option<(Version, Vec<u8>)>> {
        Ok(self.store().records.get(name).cloned())
    }

    fn replace_record(&self, name: &str, expected: Version, contents: &[u8]) -> Result<bool> {
        self.write(|store| {
            let newest = store.records.get(name).map_or(0, |(version, _)| *version);
            if newest == expected {
                store.records.insert(name.to_owned(), (expected + 1, contents.to_vec()));
            }
            Ok(newest == expected)
        })
    }

    fn announce(&self, member: &str, contents: &[u8]) -> Result<()> {
        self.write(|store| {
            store.members.insert(member.to_owned(), contents.to_vec());
            Ok(())
        })
    }

    fn announcements(&self) -> Result<Vec<(String, Vec<u8>)>> {
        let store = self.store();
        Ok(store
            .members
            .iter()
            .map(|(name, said)| (name.clone(), said.clone()))
            .collect())
    }

    fn upload(&self, name: &str, from: &Path) -> Result<()> {
        let contents = std::fs::read(from).map_err(|e| LogError::Unavailable(e.to_string()))?;
        self.write(|store| {
            store.files.insert(name.to_owned(), contents);
            Ok(())
        })
    }

    fn download(&self, name: &str, to: &Path) -> Result<()> {
        let contents = self.store().files.get(name).cloned();
        let contents = contents.ok_or_else(|| LogError::Damaged(format!("{name} is missing")))?;
        std::fs::write(to, contents).map_err(|e| LogError::Unavailable(e.to_string()))
    }

    fn put(&self, name: &str, contents: &[u8]) -> Result<()> {
        self.write(|store| {
            store.files.insert(name.to_owned(), contents.to_vec());
            Ok(())
        })
    }

    fn contents(&self, name: &str) -> Result<Vec<u8>> {
        self.get(name, 0..u64::MAX)
    }

    fn get(&self, name: &str, part: Range<u64>) -> Result<Vec<u8>> {
        let store = self.store();
        let contents = store.files.get(name);
        let contents = contents.ok_or_else(|| LogError::Damaged(format!("{name} is missing")))?;
        let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(contents.len());
        Ok(contents[at(part.start)..at(part.end)].to_vec())
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.write(|store| {
            store.files.remove(name);
            Ok(())
        })
    }

    fn files(&self, folder: &str) -> Result<Vec<String>> {
        let below = format!("{folder}/");
        let store = self.store();
        Ok(store
            .files
            .keys()
            .filter(|name| name.starts_with(&below))
            .cloned()
            .collect())
    }

    fn address(&self) -> &str {
        &self.address
    }

    fn elsewhere(&self, address: &str) -> Result<Arc<dyn Log>> {
        let all = self.all.lock().expect("no holder of the lock panics");
        let store = all.get(address).cloned();
        let unknown = || LogError::Address(format!("no log is at {address}"));
        Ok(Arc::new(Self {
            store: store.ok_or_else(unknown)?,
            address: address.into(),
            all: self.all.clone(),
        }))
    }
}

struct MemoryWriter {
    log: MemoryLog,
    epoch: u64,
}

impl MemoryWriter {
    fn check(&self, store: &Store) -> Result<()> {
        match store.epoch == self.epoch {
            true => Ok(()),
            false => Err(LogError::Fenced(format!("epoch {}", store.epoch))),
        }
    }
}

impl Writer for MemoryWriter {
    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn last(&mut self) -> Result<u64> {
        let store = self.log.store();
        self.check(&store)?;
        Ok(store
            .entries
            .last_key_value()
            .map_or(store.first.saturating_sub(1), |(seq, _)| *seq))
    }

    fn append(&mut self, entries: &[Entry]) -> Result<()> {
        self.log.write(|store| {
            self.check(store)?;
            if let (true, Some(first)) = (store.entries.is_empty(), entries.first()) {
                store.first = store.first.max(first.seq);
            }
            for entry in entries {
                store.entries.insert(entry.seq, entry.frame.clone());
            }
            Ok(())
        })
    }

    fn read(&mut self, after: u64, bytes_max: usize) -> Result<Vec<Entry>> {
        let store = self.log.store();
        self.check(&store)?;
        store.read(after, bytes_max)
    }

    fn trim(&mut self, below: u64) -> Result<()> {
        self.log.write(|store| {
            self.check(store)?;
            store.entries = store.entries.split_off(&below);
            store.first = store.first.max(below);
            Ok(())
        })
    }
}

struct MemoryReader(MemoryLog);

impl Reader for MemoryReader {
    fn entry(&mut self, seq: u64) -> Result<Option<Entry>> {
        let frame = self.0.store().entries.get(&seq).cloned();
        Ok(frame.map(|frame| Entry { seq, frame }))
    }

    fn read(&mut self, after: u64, bytes_max: usize) -> Result<Vec<Entry>> {
        self.0.store().read(after, bytes_max)
    }
}
