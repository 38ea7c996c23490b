//! A directory whose files may be read and written: paths that are given are found below it or nowhere.
//!
//! The kernel resolves them (`openat2` with `RESOLVE_BENEATH`), so that neither `..` nor a symbolic link leads outside of the directory, also
//! when somebody changes it meanwhile. What is no regular file (a device, a pipe) is not opened for reading.

use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Files that a pattern may match.
pub const MATCHES_MAX: usize = 10_000;
/// Directories and files that are looked at for a pattern.
const LOOKED_AT_MAX: usize = 1_000_000;
/// Levels of directories below which `**` finds nothing.
const LEVELS_MAX: usize = 32;

/// A directory.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    root: OwnedFd,
}

fn failed(error: Errno) -> io::Error {
    match error {
        // A way out of the directory.
        Errno::XDEV => io::Error::new(io::ErrorKind::PermissionDenied, "the path leads out of the directory"),
        error => error.into(),
    }
}

impl Folder {
    /// A directory that is there.
    ///
    /// Errors: those of the system.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let root = fs::open(&path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { path, root })
    }

    fn at(&self, path: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        fs::openat2(&self.root, path, flags | OFlags::CLOEXEC, mode, ResolveFlags::BENEATH).map_err(failed)
    }

    /// A path as one below the directory.
    fn below<'p>(&self, path: &'p Path) -> io::Result<&'p Path> {
        let below = match path.is_absolute() {
            true => path.strip_prefix(&self.path).ok(),
            false => Some(path),
        };
        let is_plain = |path: &&Path| {
            path.components()
                .all(|part| !matches!(part, Component::ParentDir | Component::RootDir))
        };
        below.filter(is_plain).ok_or_else(|| failed(Errno::XDEV))
    }

    /// Opens a file to read it.
    ///
    /// Errors: those of the system; it is no regular file; it is not below the directory.
    pub fn read(&self, path: &Path) -> io::Result<File> {
        // A pipe that nobody writes to would be waited for.
        let file = self.at(self.below(path)?, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())?;
        match FileType::from_raw_mode(fs::fstat(&file)?.st_mode) {
            FileType::RegularFile => Ok(file.into()),
            FileType::Directory => Err(Errno::ISDIR.into()),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")),
        }
    }

    /// Begins a file, which is there once it is whole, in the place of one that has its name.
    ///
    /// Errors: those of the system; it is not below the directory.
    pub fn create(&self, path: &Path) -> io::Result<NewFile> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let path = self.below(path)?;
        let (Some(name), Some(parent)) = (path.file_name(), path.parent()) else {
            return Err(Errno::ISDIR.into());
        };
        let within = self.at(parent, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let own = PathBuf::from(format!(".{}.{}-{number}.new", name.display(), std::process::id()));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = fs::openat(&within, &own, flags, Mode::from_raw_mode(0o640))?;
        Ok(NewFile {
            file: file.into(),
            within,
            own,
            name: name.into(),
        })
    }

    /// The files that a pattern matches, in the order of their names: `*` and `?` stand for any letters and one letter of a name, `[a-z]` for one of
    /// some, `**` for directories of any depth. Names that begin with a dot match only what begins with one. A path without any
    /// of these is itself, whether it is there or not.
    ///
    /// Errors: those of the system; more than [`MATCHES_MAX`] files.
    pub fn matching(&self, pattern: &str) -> io::Result<Vec<PathBuf>> {
        let path = self.below(Path::new(pattern))?;
        if !pattern.contains(['*', '?', '[']) {
            return Ok(vec![path.to_owned()]);
        }
        let parts: Vec<&str> = path
            .iter()
            .filter_map(|part| part.to_str())
            .filter(|part| *part != ".")
            .collect();
        let mut search = Search {
            folder: self,
            found: Vec::new(),
            looked_at: 0,
        };
        search.within(Path::new(""), &parts, 0)?;
        search.found.sort();
        search.found.dedup();
        Ok(search.found)
    }
}

/// A file that is being written. Dropped before it is whole it leaves nothing.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    within: OwnedFd,
    /// Its name until it is whole; empty from then on.
    own: PathBuf,
    name: PathBuf,
}

impl NewFile {
    /// Gives it its name, once it is on disk.
    ///
    /// Errors: those of the system.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::renameat(&self.within, &self.own, &self.within, &self.name)?;
        self.own = PathBuf::new();
        Ok(())
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.own.as_os_str().is_empty() {
            // Who wrote it is told why it is not there; that it cannot be removed is no more than that.
            let _ = fs::unlinkat(&self.within, &self.own, AtFlags::empty());
        }
    }
}

struct Search<'f> {
    folder: &'f Folder,
    found: Vec<PathBuf>,
    looked_at: usize,
}

impl Search<'_> {
    fn within(&mut self, at: &Path, parts: &[&str], level: usize) -> io::Result<()> {
        let Some((part, rest)) = parts.split_first() else {
            return Ok(());
        };
        if *part == "**" {
            self.within(at, rest, level)?;
            if level == LEVELS_MAX {
                return Ok(());
            }
        }
        for (name, is_directory) in self.entries(at)? {
            let goes_down = *part == "**";
            if goes_down && (!is_directory || name.starts_with('.')) || !goes_down && !matches(part, &name) {
                continue;
            }
            let path = at.join(&name);
            if goes_down {
                self.within(&path, parts, level + 1)?;
            } else if !rest.is_empty() {
                self.within(&path, rest, level)?;
            } else if !is_directory {
                if self.found.len() == MATCHES_MAX {
                    return Err(io::Error::other(format!(
                        "the pattern matches more than {MATCHES_MAX} files"
                    )));
                }
                self.found.push(path);
            }
        }
        Ok(())
    }

    /// What a directory has: each name, and whether that is a directory. What is none has nothing.
    fn entries(&mut self, at: &Path) -> io::Result<Vec<(String, bool)>> {
        let fd = match self.folder.at(at, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()) {
            Ok(fd) => fd,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotADirectory | io::ErrorKind::PermissionDenied
                ) =>
            {
                return Ok(Vec::new());
            }
            Err(error) => return Err(error),
        };
        let mut out = Vec::new();
        for entry in Dir::read_from(&fd)? {
            let entry = entry?;
            self.looked_at += 1;
            if self.looked_at > LOOKED_AT_MAX {
                return Err(io::Error::other("too many files stand where the pattern looks"));
            }
            if let Ok(name) = entry.file_name().to_str()
                && !matches!(name, "." | "..")
            {
                out.push((name.to_owned(), entry.file_type() == FileType::Directory));
            }
        }
        Ok(out)
    }
}

/// Whether a name matches a pattern without slashes.
fn matches(pattern: &str, name: &str) -> bool {
    let is_hidden = name.starts_with('.') && !pattern.starts_with('.');
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    // Where the last star stood, and how much of the name it has taken.
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
                continue;
            }
            Some('[') => {
                if let Some((is_in, after)) = one_of(&pattern, p, name[n]) {
                    if is_in {
                        (p, n) = (after, n + 1);
                        continue;
                    }
                } else if name[n] == '[' {
                    (p, n) = (p + 1, n + 1);
                    continue;
                }
            }
            Some(c) if *c == '?' || *c == name[n] => {
                (p, n) = (p + 1, n + 1);
                continue;
            }
            _ => {}
        }
        match star {
            Some((at, taken)) => {
                star = Some((at, taken + 1));
                (p, n) = (at + 1, taken + 1);
            }
            None => return false,
        }
    }
    !is_hidden && pattern[p..].iter().all(|c| *c == '*')
}

/// Whether a letter is in the set that begins at a place of a pattern, and where that ends; `None` when it does not end.
fn one_of(pattern: &[char], at: usize, letter: char) -> Option<(bool, usize)> {
    let negated = matches!(pattern.get(at + 1), Some('!' | '^'));
    let first = at + 1 + usize::from(negated);
    // A bracket that stands first is a letter.
    let end = (first + 1..pattern.len()).find(|i| pattern[*i] == ']')?;
    let (mut i, mut is_in) = (first, false);
    while i < end {
        let range = pattern[i + 1] == '-' && i + 2 < end;
        let last = if range { pattern[i + 2] } else { pattern[i] };
        is_in |= (pattern[i]..=last).contains(&letter);
        i += if range { 3 } else { 1 };
    }
    Some((is_in != negated, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn patterns() {
        for (pattern, yes, no) in [
            ("*.csv", &["a.csv", "b.c.csv"][..], &["a.csv.gz", ".a.csv", "csv"][..]),
            ("a?c", &["abc", "aéc"], &["ac", "abbc"]),
            ("[a-c]x", &["ax", "cx"], &["dx", "x"]),
            ("[!a]x", &["bx"], &["ax"]),
            ("[]]x", &["]x"], &["x"]),
            ("[x", &["[x"], &["x"]),
            ("*a*b*", &["ab", "xaxbx", "aab"], &["ba", "a"]),
            (".*", &[".a"], &["a"]),
        ] {
            for name in yes {
                assert!(matches(pattern, name), "{pattern} matches {name}");
            }
            for name in no {
                assert!(!matches(pattern, name), "{pattern} does not match {name}");
            }
        }
    }

    #[test]
    fn nothing_outside_is_found() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("in");
        std::fs::create_dir_all(inner.join("a/b")).unwrap();
        for (path, text) in [
            ("secret", "s"),
            ("in/x.csv", "x"),
            ("in/a/y.csv", "y"),
            ("in/a/b/z.csv", "z"),
        ] {
            std::fs::write(outer.path().join(path), text).unwrap();
        }
        for (link, to) in [
            ("in/out.csv", "../secret"),
            ("in/up", ".."),
            ("in/abs.csv", "/etc/passwd"),
            ("in/own.csv", "a/y.csv"),
        ] {
            std::os::unix::fs::symlink(to, outer.path().join(link)).unwrap();
        }
        let folder = Folder::open(&inner).unwrap();
        let read = |path: &str| {
            let mut text = String::new();
            folder
                .read(Path::new(path))
                .map(|mut file| file.read_to_string(&mut text).map(|_| text))?
        };
        assert_eq!(read("x.csv").unwrap(), "x");
        assert_eq!(read("own.csv").unwrap(), "y", "a link within");
        assert_eq!(
            read(inner.canonicalize().unwrap().join("a/y.csv").to_str().unwrap()).unwrap(),
            "y"
        );
        for path in [
            "../secret",
            "a/../../secret",
            "out.csv",
            "up/secret",
            "abs.csv",
            "/etc/passwd",
            "/etc/hostname",
        ] {
            let refused = read(path).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied, "{path}: {refused}");
        }
        assert_eq!(read("a").unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(read("gone").unwrap_err().kind(), io::ErrorKind::NotFound);
        let found = |pattern: &str| {
            let found = folder.matching(pattern).unwrap();
            found
                .iter()
                .map(|path| path.display().to_string())
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(found("*.csv"), "abs.csv out.csv own.csv x.csv");
        assert_eq!(found("**/*.csv"), "a/b/z.csv a/y.csv abs.csv out.csv own.csv x.csv");
        assert_eq!(found("?/*.csv"), "a/y.csv");
        assert_eq!(found("up/*"), "");
        assert_eq!(found("x.csv"), "x.csv");
        assert!(folder.matching("../*").is_err());
        for path in ["../new", "up/new", "/tmp/new"] {
            assert!(folder.create(Path::new(path)).is_err(), "{path}");
        }
        // A link is replaced, and what it led to stays.
        for (path, finishes) in [("a/new", true), ("out.csv", true), ("x.csv", false)] {
            let mut file = folder.create(Path::new(path)).unwrap();
            file.write_all(b"written").unwrap();
            if finishes {
                file.finish().unwrap();
                assert_eq!(read(path).unwrap(), "written");
            }
        }
        assert_eq!(read("x.csv").unwrap(), "x");
        assert_eq!(std::fs::read_to_string(outer.path().join("secret")).unwrap(), "s");
        assert_eq!(found(".*"), "", "nothing is left behind");
    }
}
