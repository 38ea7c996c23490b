//! Files and directories that only their owner may read, and that nobody can redirect.
//!
//! What is stored is as confidential as the data, so files have mode 0600 and directories 0700, whatever the umask says. A
//! file that this process makes is a new one (`O_EXCL`), and a file that it opens for writing is the file of that name
//! (`O_NOFOLLOW`): a symbolic link that somebody else put there is never written through. Directories above may be links:
//! those who administer the machine place them.
//!
//! Files and directories that exist already are made private when a data directory is opened for writing: earlier versions left
//! them readable to all. Who else is to read them, a backup for one, gets a copy.

use rustix::fs::OFlags;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Mode of a file.
const FILE: u32 = 0o600;
/// Mode of a directory.
const DIRECTORY: u32 = 0o700;

/// Options for a file that this process writes: not through a symbolic link, and private if it is made.
pub(crate) fn private() -> OpenOptions {
    let mut options = File::options();
    options
        .read(true)
        .write(true)
        .mode(FILE)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options
}

/// Makes a new file for reading and writing.
///
/// Errors: [`ErrorKind::AlreadyExists`] for anything of that name, a symbolic link too.
pub fn create_new(path: &Path) -> io::Result<File> {
    private().create_new(true).open(path)
}

/// Makes a new file in the place of whatever has that name. What that was, a symbolic link for one, is removed and not
/// written to.
pub(crate) fn create_anew(path: &Path) -> io::Result<File> {
    remove_if_there(path)?;
    create_new(path)
}

/// Opens a file that exists, for reading and writing.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    private().open(path)
}

/// Takes all rights to a file or directory that exists from everybody but its owner. Only the owner can do that: for others
/// it stays as it is.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    let metadata = fs::metadata(path)?;
    if metadata.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    let mode = if metadata.is_dir() { DIRECTORY } else { FILE };
    match fs::set_permissions(path, Permissions::from_mode(mode)) {
        Err(error) if error.kind() != ErrorKind::PermissionDenied => Err(error),
        _ => Ok(()),
    }
}

/// Puts a file with these bytes at `path` such that after a crash it is either whole or as it was before. It is written as
/// `<path>.new` first.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let mut file = create_anew(Path::new(&new))?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    match path.parent() {
        Some(parent) if parent != Path::new("") => File::open(parent)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}

/// Makes a directory and those above it that are missing.
pub fn create_directories(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIRECTORY).create(path)
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, EngineOptions, TreeId};
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    /// Commits, in more than one segment and with a checkpoint.
    fn fill(dir: &Path) {
        let mut options = EngineOptions::at_time(100);
        options.journal.segment_bytes = 200;
        let engine = Engine::open(dir, options).unwrap();
        for i in 0..8_u8 {
            let mut ws = engine.begin();
            ws.put(TreeId(900), [i], vec![i; 100]);
            engine.commit(ws).unwrap();
        }
        engine.close().unwrap();
    }

    #[test]
    fn only_their_owner_may_read_files_and_directories() {
        let above = tempfile::tempdir().unwrap();
        let dir = above.path().join("missing").join("data");
        fill(&dir);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let mut files = 0;
        for place in [above.path().join("missing"), dir.clone(), dir.join("journal")] {
            assert_eq!(mode(&place), 0o700, "{}", place.display());
            for entry in fs::read_dir(&place).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_file() {
                    files += 1;
                    assert_eq!(mode(&entry.path()), 0o600, "{}", entry.path().display());
                }
            }
        }
        assert!(files >= 6, "{files}: format, lock, base and segments");
    }

    /// As earlier versions left them.
    #[test]
    fn what_all_could_read_is_private_once_it_was_opened() {
        let above = tempfile::tempdir().unwrap();
        let dir = above.path().join("data");
        fill(&dir);
        let all = || {
            let inside = |dir: &Path| {
                fs::read_dir(dir)
                    .unwrap()
                    .map(|e| e.unwrap().path())
                    .collect::<Vec<_>>()
            };
            let mut paths = vec![dir.clone()];
            paths.extend(inside(&dir));
            paths.extend(inside(&dir.join("journal")));
            paths
        };
        for path in all() {
            let mode = if path.is_dir() { 0o755 } else { 0o644 };
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        }
        Engine::open(&dir, EngineOptions::at_time(100))
            .unwrap()
            .close()
            .unwrap();
        for path in all() {
            let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
        }
    }

    #[test]
    fn links_of_others_are_not_written_through() {
        let next_segments: Vec<PathBuf> = (2..9).map(|seq| format!("journal/{seq:016x}.journal").into()).collect();
        for name in ["base.nestor.new", "nestor.format.new"] {
            let dir = tempfile::tempdir().unwrap();
            let target = dir.path().join(".victim");
            fs::write(&target, b"precious").unwrap();
            symlink(&target, dir.path().join(name)).unwrap();
            fill(dir.path());
            assert_eq!(fs::read(&target).unwrap(), b"precious", "{name}");
        }
        for name in ["nestor.lock", "base.nestor", "nestor.format"] {
            let dir = tempfile::tempdir().unwrap();
            let target = dir.path().join(".victim");
            symlink(&target, dir.path().join(name)).unwrap();
            let opened = Engine::open(dir.path(), EngineOptions::at_time(100)).map(|_| ());
            assert!(!target.exists(), "{name}: {opened:?}");
        }
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join(".victim");
        fs::write(&target, b"precious").unwrap();
        let engine = Engine::open(dir.path(), EngineOptions::at_time(100)).unwrap();
        for name in &next_segments {
            symlink(&target, dir.path().join(name)).unwrap();
        }
        let mut ws = engine.begin();
        ws.put(TreeId(900), [1], [1]);
        engine.commit(ws).unwrap();
        engine.crash();
        // Found as segments at the next start, which refuses them.
        let opened = Engine::open(dir.path(), EngineOptions::at_time(100)).map(|_| ());
        assert!(opened.is_err(), "a segment that is a link was opened");
        assert_eq!(fs::read(&target).unwrap(), b"precious");
    }

    /// A segment is made under its name at once.
    #[test]
    fn a_new_segment_takes_the_place_of_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join(".victim");
        fs::write(&target, b"precious").unwrap();
        let mut options = EngineOptions::at_time(100);
        options.journal.segment_bytes = 100;
        let engine = Engine::open(dir.path(), options).unwrap();
        for i in 0..3_u8 {
            symlink(&target, dir.path().join(format!("journal/{:016x}.journal", i + 2))).unwrap();
            let mut ws = engine.begin();
            ws.put(TreeId(900), [i], vec![i; 100]);
            engine.commit(ws).unwrap();
        }
        engine.crash();
        assert_eq!(fs::read(&target).unwrap(), b"precious");
    }
}
