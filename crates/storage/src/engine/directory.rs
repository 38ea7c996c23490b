//! The data directory.
//!
//! ```text
//! nestor.format     `nestor 1`: the version of what is here as a whole
//! nestor.lock       locked by the process that has the directory open
//! base.nestor       the base B-tree
//! journal/          the segments
//! ```

use crate::StorageError;
use crate::error::Result;
use crate::journal::recover;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

const VERSION: u32 = 1;

/// A data directory that this process has locked.
pub(crate) struct Directory {
    pub(crate) path: PathBuf,
    /// The lock goes with the file.
    _lock: File,
}

impl Directory {
    /// Makes the directory if needed, locks it and checks its version.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let journal = path.join("journal");
        if !journal.exists() {
            create_durably(&journal).map_err(|e| StorageError::io("create", &journal, &e))?;
        }
        let lock_path = path.join("nestor.lock");
        let lock = File::options()
            .create(true)
            .write(true)
            .truncate(false)
            .open(&lock_path)
            .map_err(|e| StorageError::io("open", &lock_path, &e))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(StorageError::DirectoryInUse { dir: path.to_owned() });
            }
            Err(error) => return Err(StorageError::io("lock", &lock_path, &error.into())),
        }
        let directory = Self {
            path: path.to_owned(),
            _lock: lock,
        };
        directory.check_format()?;
        Ok(directory)
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

    /// Checks the version file, or writes it in a new directory.
    fn check_format(&self) -> Result<()> {
        let path = self.path.join("nestor.format");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                if self.base().exists() {
                    return Err(StorageError::Corrupt {
                        file: path,
                        offset: 0,
                        reason: "the version file is missing".into(),
                    });
                }
                return self.write_format(&path);
            }
            Err(error) => return Err(StorageError::io("open", &path, &error)),
        };
        match text
            .trim_end()
            .strip_prefix("nestor ")
            .and_then(|v| v.parse::<u32>().ok())
        {
            Some(VERSION) => Ok(()),
            Some(found) if found > VERSION => Err(StorageError::NewerFormat {
                file: path,
                found,
                supported: VERSION,
            }),
            _ => Err(StorageError::Corrupt {
                file: path,
                offset: 0,
                reason: "not a version of Nestor's data directory".into(),
            }),
        }
    }

    fn write_format(&self, path: &Path) -> Result<()> {
        let new = self.path.join("nestor.format.new");
        let write = || {
            fs::write(&new, format!("nestor {VERSION}\n"))?;
            File::open(&new)?.sync_all()?;
            fs::rename(&new, path)?;
            File::open(&self.path)?.sync_all()
        };
        write().map_err(|e| StorageError::io("create", path, &e))
    }
}

/// Makes a directory and those above it, such that none of them is gone after a crash.
fn create_durably(path: &Path) -> std::io::Result<()> {
    fs::create_dir_all(path)?;
    let above = path.ancestors().skip(1).take(2);
    for parent in above.filter(|parent| *parent != Path::new("")) {
        // One that may not be read may not be synced either; then it was there before.
        if let Ok(parent) = File::open(parent) {
            parent.sync_all()?;
        }
    }
    Ok(())
}
