//! The data directory.
//!
//! ```text
//! nestor.format     `nestor 3`: the version of what is here as a whole; `nestor 4` if it is encrypted
//! nestor.keys       the keys, if it is encrypted
//! nestor.lock       locked by the process that has the directory open
//! nestor.durable    how far the journal is known to be durable
//! base.nestor       the base B-tree
//! base.births       names of its pages, where somebody keeps them (base/tree/births.rs)
//! journal/          the segments
//! columns/          what is derived of the base and can be made anew (beside.rs)
//! ```
//!
//! A directory of version 1 has no `nestor.durable`, and its frames and base say less about what belongs together. It
//! becomes one of this version when it is opened for writing. Journals of versions 1 and 2 have no images of documents.

use crate::StorageError;
use crate::encryption::{self, KeyFile, MasterKey, Seals};
use crate::error::Result;
use crate::files;
use crate::journal::{mark, recover, segment};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The version of a directory that is not encrypted.
const VERSION: u32 = 3;
/// Of one that is: versions before would take what they cannot read for damaged.
const ENCRYPTED_VERSION: u32 = 4;
const FORMAT: &str = "nestor.format";
const LOCK: &str = "nestor.lock";
const MARK: &str = "nestor.durable";
/// The files that may lie in a directory whose version file has not been written yet.
const OWN: [&str; 13] = [
    LOCK,
    MARK,
    "nestor.durable.new",
    "nestor.format.new",
    encryption::FILE,
    "nestor.keys.new",
    "journal",
    "base.nestor",
    "base.nestor.new",
    "base.births",
    "base.births.new",
    crate::beside::DIRECTORY,
    "lost+found",
];

/// A data directory that this process has locked.
pub(crate) struct Directory {
    pub(crate) path: PathBuf,
    /// The version it has.
    version: u32,
    /// The keys of its files, if they are encrypted.
    seals: Option<Arc<Seals>>,
    /// The lock goes with the file. A copy that is only read may have none.
    _lock: Option<File>,
}

impl Directory {
    /// Makes the directory if needed, locks it and checks its version.
    ///
    /// With a master key it is an encrypted one. The time, in seconds since the epoch, is that of keys that are made.
    ///
    /// Errors: [`StorageError::NoDataDirectory`] for a directory with files of others, which are left alone;
    /// [`StorageError::Encryption`] for one that is encrypted with another key or not at all, or is encrypted and there is no key:
    /// nothing in it is touched.
    pub(crate) fn open(path: &Path, master: Option<&MasterKey>, now_secs: u64) -> Result<Self> {
        refuse_foreign(path)?;
        unlock(path, master)?;
        let journal = path.join("journal");
        if !journal.exists() {
            create_durably(&journal).map_err(|e| StorageError::io("create", &journal, &e))?;
        }
        let lock_path = path.join(LOCK);
        let lock = files::private()
            .create(true)
            .truncate(false)
            .open(&lock_path)
            .map_err(|e| StorageError::io("open", &lock_path, &e))?;
        lock_file(path, &lock, FlockOperation::NonBlockingLockExclusive)?;
        // Once more: now nobody else changes them.
        let keys = unlock(path, master)?;
        let mut directory = Self {
            path: path.to_owned(),
            version: if master.is_some() { ENCRYPTED_VERSION } else { VERSION },
            seals: None,
            _lock: Some(lock),
        };
        let format = directory.check_format()?;
        if let Some(master) = master {
            directory.seals = Some(directory.keys(keys, master, now_secs)?);
        }
        match format {
            Some(version) => {
                directory.version = version;
                directory.make_private()?;
            }
            None => {
                let mark = directory.mark();
                mark::create(&mark).map_err(|e| StorageError::io("create", &mark, &e))?;
                directory.write_format()?;
            }
        }
        Ok(directory)
    }

    /// The keys that were found, or new ones, and another one if the last one is old.
    fn keys(&self, found: Option<KeyFile>, master: &MasterKey, now_secs: u64) -> Result<Arc<Seals>> {
        let failed = |e: &std::io::Error| StorageError::io("create", &self.path.join(encryption::FILE), e);
        let (mut keys, is_new) = match found {
            Some(keys) => (keys, false),
            None => (KeyFile::new(now_secs).map_err(|e| failed(&e))?, true),
        };
        if keys.renew(now_secs).map_err(|e| failed(&e))? || is_new {
            keys.write(&self.path, master)?;
        }
        Seals::new(keys.into_data_keys()).map(Arc::new).map_err(|e| failed(&e))
    }

    /// The keys of its files, if they are encrypted.
    pub(crate) fn seals(&self) -> Option<&Arc<Seals>> {
        self.seals.as_ref()
    }

    /// Takes what earlier versions let others read from them: the directory and the files in it that are Nestor's.
    fn make_private(&self) -> Result<()> {
        let private = |path: &Path| files::make_private(path).map_err(|e| StorageError::io("chmod", path, &e));
        for dir in [self.path.clone(), self.journal()] {
            private(&dir)?;
            for entry in fs::read_dir(&dir).map_err(|e| StorageError::io("open", &dir, &e))? {
                let entry = entry.map_err(|e| StorageError::io("open", &dir, &e))?;
                let name = entry.file_name();
                let is_own =
                    dir != self.path || name.to_str().is_some_and(|name| name == FORMAT || OWN.contains(&name));
                // The target of a link belongs to somebody else.
                if is_own && entry.file_type().is_ok_and(|kind| kind.is_file()) {
                    private(&entry.path())?;
                }
            }
        }
        Ok(())
    }

    /// Opens an existing directory for reading: changes nothing in it, so it need not be writable. Others may read it at
    /// the same time; who wants to write is kept out.
    ///
    /// Errors: [`StorageError::DirectoryInUse`]: somebody has it open for writing.
    pub(crate) fn read(path: &Path, master: Option<&MasterKey>) -> Result<Self> {
        let opened = |path: &Path| match File::open(path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StorageError::io("open", path, &error)),
        };
        if !path.is_dir() {
            opened(path)?;
            return Err(no_data_directory(path, "it is no directory, or does not exist"));
        }
        let lock = opened(&path.join(LOCK))?;
        if let Some(lock) = &lock {
            lock_file(path, lock, FlockOperation::NonBlockingLockShared)?;
        }
        let seals = match unlock(path, master)? {
            Some(keys) => {
                let seals = Seals::new(keys.into_data_keys());
                Some(Arc::new(seals.map_err(|e| {
                    StorageError::io("open", &path.join(encryption::FILE), &e)
                })?))
            }
            None => None,
        };
        let mut directory = Self {
            path: path.to_owned(),
            version: VERSION,
            seals,
            _lock: lock,
        };
        match directory.check_format()? {
            Some(version) => directory.version = version,
            None => return Err(no_data_directory(path, "there is no nestor.format in it")),
        }
        Ok(directory)
    }

    /// The version it was written with, or has by now.
    pub(crate) fn version(&self) -> u32 {
        self.version
    }

    /// Makes it one of this version, once its journal and its mark are.
    pub(crate) fn upgrade(&mut self) -> Result<()> {
        if self.version < VERSION {
            self.write_format()?;
            tracing::info!(
                from = self.version,
                to = VERSION,
                "the data directory has a new version"
            );
            self.version = VERSION;
        }
        Ok(())
    }

    /// The file that says how far the journal is durable.
    pub(crate) fn mark(&self) -> PathBuf {
        self.path.join(MARK)
    }

    /// The contents of that file.
    pub(crate) fn read_mark(&self) -> Result<mark::Found> {
        let path = self.mark();
        mark::Mark::read(&path).map_err(|e| StorageError::io("read", &path, &e))
    }

    pub(crate) fn base(&self) -> PathBuf {
        self.path.join("base.nestor")
    }

    /// Whether there is a base already. It is made before the first commit, so one that is missing beside commits is lost,
    /// and with it what they were based on.
    pub(crate) fn has_base(&self) -> Result<bool> {
        let base = self.base();
        if base.try_exists().map_err(|e| StorageError::io("open", &base, &e))? {
            return Ok(true);
        }
        let journal = self.journal();
        match recover::has_commits(&journal)? {
            false => Ok(false),
            true => Err(StorageError::Corrupt {
                file: base,
                offset: 0,
                reason: format!("it is missing, but {} has commits", journal.display()),
            }),
        }
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.path.join("journal")
    }

    /// Whether there is any segment of the journal.
    fn has_segments(&self) -> bool {
        fs::read_dir(self.journal()).is_ok_and(|entries| {
            let mut names = entries.flatten().map(|entry| entry.file_name());
            names.any(|name| name.to_str().and_then(segment::parse_name).is_some())
        })
    }

    /// Checks the version file and returns what it says; `None` if there is none because the directory is new.
    fn check_format(&self) -> Result<Option<u32>> {
        let path = self.path.join(FORMAT);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if self.base().exists() || self.has_segments() {
                    return Err(StorageError::Corrupt {
                        file: path,
                        offset: 0,
                        reason: "the version file is missing".into(),
                    });
                }
                return Ok(None);
            }
            Err(error) => return Err(StorageError::io("open", &path, &error)),
        };
        match text
            .trim_end()
            .strip_prefix("nestor ")
            .and_then(|v| v.parse::<u32>().ok())
        {
            Some(ENCRYPTED_VERSION) if self.seals.is_none() && !self.path.join(encryption::FILE).exists() => {
                Err(lost_keys(&self.path))
            }
            Some(found @ 1..=ENCRYPTED_VERSION) => Ok(Some(found)),
            Some(found) if found > ENCRYPTED_VERSION => Err(StorageError::NewerFormat {
                file: path,
                found,
                supported: ENCRYPTED_VERSION,
            }),
            _ => Err(StorageError::Corrupt {
                file: path,
                offset: 0,
                reason: "not a version of Nestor's data directory".into(),
            }),
        }
    }

    fn write_format(&self) -> Result<()> {
        let path = self.path.join(FORMAT);
        let version = if self.seals.is_some() {
            ENCRYPTED_VERSION
        } else {
            VERSION
        };
        let text = format!("nestor {version}\n");
        files::replace(&path, text.as_bytes()).map_err(|e| StorageError::io("create", &path, &e))
    }
}

/// The keys of a directory that is to be opened with this master key; `None` if it is not encrypted, or new.
pub(crate) fn unlock(dir: &Path, master: Option<&MasterKey>) -> Result<Option<KeyFile>> {
    let is_there = |name: &str| dir.join(name).exists();
    let Some(master) = master else {
        return match is_there(encryption::FILE) {
            true => Err(StorageError::encryption(
                dir,
                "is encrypted, and no master key was given",
            )),
            false => Ok(None),
        };
    };
    if let Some(keys) = KeyFile::read(dir, master)? {
        return Ok(Some(keys));
    }
    match fs::read_to_string(dir.join(FORMAT)) {
        Ok(text) if text.trim_end() == format!("nestor {ENCRYPTED_VERSION}") => Err(lost_keys(dir)),
        Err(_) if !is_there("base.nestor") => Ok(None),
        _ => Err(StorageError::encryption(
            dir,
            "is not encrypted, and a master key was given; a dump of it can be restored into a new directory that is",
        )),
    }
}

fn lost_keys(dir: &Path) -> StorageError {
    StorageError::encryption(
        dir,
        "is encrypted, and nestor.keys is missing: without that file nothing in it can be read",
    )
}

fn no_data_directory(dir: &Path, reason: impl Into<String>) -> StorageError {
    StorageError::NoDataDirectory {
        dir: dir.to_owned(),
        reason: reason.into(),
    }
}

fn lock_file(dir: &Path, lock: &File, how: FlockOperation) -> Result<()> {
    match flock(lock, how) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(StorageError::DirectoryInUse { dir: dir.to_owned() }),
        Err(error) => Err(StorageError::io("lock", &dir.join(LOCK), &error.into())),
    }
}

/// Refuses a directory without a version file that holds what Nestor did not write: an empty database must not start
/// beside the files of another, as if these were gone. Hidden files are what file systems and desktops leave; a log
/// (`--logpath`) and a socket may be there before the data.
fn refuse_foreign(dir: &Path) -> Result<()> {
    if !dir.is_dir() || dir.join(FORMAT).exists() {
        return Ok(());
    }
    let entries = fs::read_dir(dir).map_err(|e| StorageError::io("open", dir, &e))?;
    let mut foreign = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|e| StorageError::io("open", dir, &e))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_data = entry.file_type().is_ok_and(|kind| kind.is_file() || kind.is_dir());
        if is_data && !name.starts_with('.') && !name.contains(".log") && !OWN.contains(&&*name) {
            foreign.push(name);
        }
    }
    match foreign.iter().min() {
        Some(name) => Err(no_data_directory(
            dir,
            format!("there is {name} in it and no nestor.format; name an empty or a new directory"),
        )),
        None => Ok(()),
    }
}

/// Makes a directory and those above it, such that none of them is gone after a crash.
fn create_durably(path: &Path) -> std::io::Result<()> {
    files::create_directories(path)?;
    let above = path.ancestors().skip(1).take(2);
    for parent in above.filter(|parent| *parent != Path::new("")) {
        // A folder that may not be read may not be synced either; then it was there before.
        if let Ok(parent) = File::open(parent) {
            parent.sync_all()?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(result: Result<Directory>) -> String {
        match result {
            Ok(_) => panic!("opened"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn files_of_others_are_left_alone() {
        for foreign in ["WiredTiger", "storage.bson", "PG_VERSION", "notes.txt"] {
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join(foreign), b"x").unwrap();
            let said = refusal(Directory::open(dir.path(), None, 0));
            assert!(said.contains(&format!("there is {foreign} in it")), "{said}");
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing was made");
        }
    }

    #[test]
    fn what_may_be_there_before_the_data() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["nestor.log", "nestor.log.2026-01-01", ".DS_Store", "nestor.format.new"] {
            fs::write(dir.path().join(name), b"").unwrap();
        }
        fs::create_dir(dir.path().join("lost+found")).unwrap();
        drop(Directory::open(dir.path(), None, 0).unwrap());
        fs::write(dir.path().join("notes.txt"), b"").unwrap();
        Directory::open(dir.path(), None, 0).expect("it is Nestor's by now");
    }

    #[test]
    fn readers_share_it_and_keep_writers_out() {
        let dir = tempfile::tempdir().unwrap();
        assert!(refusal(Directory::read(dir.path(), None)).contains("there is no nestor.format in it"));
        assert!(refusal(Directory::read(&dir.path().join("missing"), None)).contains("does not exist"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        let writer = Directory::open(dir.path(), None, 0).unwrap();
        assert!(refusal(Directory::read(dir.path(), None)).contains("in use"));
        drop(writer);
        let readers = [
            Directory::read(dir.path(), None).unwrap(),
            Directory::read(dir.path(), None).unwrap(),
        ];
        assert!(refusal(Directory::open(dir.path(), None, 0)).contains("in use"));
        drop(readers);
        fs::remove_file(dir.path().join(LOCK)).unwrap();
        Directory::read(dir.path(), None).expect("a copy may have no lock");
        fs::remove_file(dir.path().join(FORMAT)).unwrap();
        fs::write(dir.path().join("base.nestor"), b"").unwrap();
        for refused in [Directory::read(dir.path(), None), Directory::open(dir.path(), None, 0)] {
            assert!(refusal(refused).contains("the version file is missing"));
        }
    }
}
