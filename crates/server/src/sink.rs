//! Where log lines go: a file, a pipe, or a person at a terminal.

use crate::serve::LogRotate;
use nestor_database::audit::{self, Destination, Format};
use nestor_database::observe::log::{Entry, Rotate, Severity, Sink};
use nestor_model::extjson::{self, Form};
use nestor_model::{ValueRef, date};
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// JSON lines into a file; an existing one is appended to or, as mongod does, moved aside first. With the
/// sink comes what begins a new file later (`logRotate`, `SIGUSR1`).
pub fn file(path: &Path, append: bool, how: LogRotate) -> io::Result<(Sink, Rotate)> {
    if !append && path.exists() {
        move_aside(path)?;
    }
    let file = Arc::new(Mutex::new(open(path)?));
    let rotate: Rotate = {
        let (path, file) = (path.to_owned(), file.clone());
        Box::new(move || {
            if how == LogRotate::Rename {
                move_aside(&path)?;
            }
            *lock(&file) = open(&path)?;
            Ok(())
        })
    };
    Ok((json_lines(SharedFile(file)), rotate))
}

fn open(path: &Path) -> io::Result<File> {
    // Through links: `/dev/stdout` is one, and whoever starts the server chose the path.
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Where the audit log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditDestination {
    /// A file, which is appended to.
    File(PathBuf),
    /// Standard output, or standard error where standard output is taken.
    Console,
    /// The system's log, at facility `user` and severity `info`.
    Syslog,
}

/// Records into a file, whole ones only; with the writer comes what begins a new file.
fn audit_file(path: &Path, how: LogRotate) -> io::Result<(audit::Write, audit::Rotate)> {
    let file = Arc::new(Mutex::new(open(path)?));
    let write: audit::Write = {
        let file = file.clone();
        Box::new(move |record| lock(&file).write_all(record))
    };
    let path = path.to_owned();
    let rotate: audit::Rotate = Box::new(move || {
        if how == LogRotate::Rename {
            move_aside(&path)?;
        }
        *lock(&file) = open(&path)?;
        Ok(())
    });
    Ok((write, rotate))
}

/// Opens the destination of the audit log.
///
/// Errors: those of the file system.
pub fn audit(
    destination: &AuditDestination,
    format: Format,
    how: LogRotate,
    stdout_is_taken: bool,
) -> io::Result<Destination> {
    let (write, rotate) = match destination {
        AuditDestination::File(path) => {
            let (write, rotate) = audit_file(path, how)?;
            (write, Some(rotate))
        }
        AuditDestination::Console if stdout_is_taken => (console(io::stderr()), None),
        AuditDestination::Console => (console(io::stdout()), None),
        AuditDestination::Syslog => (syslog()?, None),
    };
    Ok(Destination { format, write, rotate })
}

fn console(out: impl Write + Send + 'static) -> audit::Write {
    let out = Mutex::new(out);
    Box::new(move |record| {
        let mut out = lock(&out);
        out.write_all(record)?;
        out.flush()
    })
}

/// Messages of RFC 3164 to the socket of the machine's log.
fn syslog() -> io::Result<audit::Write> {
    /// Facility `user` (1), severity `info` (6).
    const PRIORITY: u8 = 8 + 6;
    let socket = UnixDatagram::unbound()?;
    socket.connect("/dev/log")?;
    let pid = std::process::id();
    Ok(Box::new(move |record| {
        let mut message = format!("<{PRIORITY}>nestor[{pid}]: ").into_bytes();
        message.extend_from_slice(record.trim_ascii_end());
        socket.send(&message).map(drop)
    }))
}

/// Renames `nestor.log` to `nestor.log.2024-05-01T12-00-00-000`.
fn move_aside(path: &Path) -> io::Result<()> {
    let mut aside = path.as_os_str().to_owned();
    let now = date::format_iso(now_ms()).replace(['.', ':'], "-");
    aside.push(format!(".{}", now.trim_end_matches('Z')));
    if Path::new(&aside).exists() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    std::fs::rename(path, aside)
}

struct SharedFile(Arc<Mutex<File>>);

impl Write for SharedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        lock(&self.0).write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        lock(&self.0).flush()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Standard output, or standard error when standard output is taken: readable text for a terminal,
/// JSON lines for anything else.
pub fn standard(stdout_is_taken: bool) -> Sink {
    if stdout_is_taken {
        let is_terminal = io::stderr().is_terminal();
        stream(io::stderr(), is_terminal)
    } else {
        let is_terminal = io::stdout().is_terminal();
        stream(io::stdout(), is_terminal)
    }
}

fn stream(out: impl Write + Send + 'static, is_terminal: bool) -> Sink {
    if is_terminal { text_lines(out) } else { json_lines(out) }
}

/// One write per line, so that lines of several threads do not mix and a crash loses none. A log that
/// cannot be written is no reason to stop serving.
fn json_lines(out: impl Write + Send + 'static) -> Sink {
    let out = Mutex::new((out, Vec::new()));
    Box::new(move |_, _, line| {
        let mut guard = lock(&out);
        let (out, buffer) = &mut *guard;
        buffer.clear();
        buffer.extend_from_slice(line.as_bytes());
        buffer.push(b'\n');
        let _ = out.write_all(buffer).and_then(|()| out.flush());
    })
}

fn text_lines(out: impl Write + Send + 'static) -> Sink {
    let out = Mutex::new(out);
    Box::new(move |entry, now_ms, _| {
        let line = text_line(entry, now_ms);
        let mut out = lock(&out);
        let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
    })
}

/// `12:00:00.123 network    connection accepted  remote=127.0.0.1:5`
fn text_line(entry: &Entry<'_>, now_ms: i64) -> String {
    use std::fmt::Write as _;
    let time = date::Civil::from_ms(now_ms);
    let mark = match entry.severity {
        Severity::Info | Severity::Debug(_) => "",
        Severity::Warning => "warning: ",
        Severity::Error => "error: ",
        Severity::Fatal => "fatal: ",
    };
    // Writing to a String cannot fail.
    let mut line = String::with_capacity(120);
    let _ = write!(
        line,
        "{:02}:{:02}:{:02}.{:03} {:<9} {mark}{}",
        time.hour,
        time.minute,
        time.second,
        time.millisecond,
        entry.component.to_lowercase(),
        entry.msg
    );
    for (name, value) in entry.attr.iter() {
        let _ = write!(line, "  {name}=");
        match value {
            ValueRef::String(text) if !text.contains([' ', '\n', '\r', '\x1b']) => line.push_str(text),
            other => extjson::print(other, Form::Relaxed, &mut line),
        }
    }
    line.push('\n');
    line
}

fn now_ms() -> i64 {
    nestor_database::clock::now_ms()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::doc;

    #[test]
    fn only_the_owner_may_read_a_log() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nestor.log");
        let (_sink, rotate) = file(&path, false, LogRotate::Rename).unwrap();
        rotate().unwrap();
        let modes = std::fs::read_dir(dir.path()).unwrap().map(|entry| {
            let metadata = entry.unwrap().metadata().unwrap();
            metadata.permissions().mode() & 0o777
        });
        assert_eq!(modes.collect::<Vec<_>>(), [0o600, 0o600]);
    }

    #[test]
    fn text_for_people() {
        let attr = doc! { "remote": "127.0.0.1:5", "why": "two words", "n": 3 };
        let entry = Entry {
            severity: Severity::Warning,
            component: "NETWORK",
            id: 1,
            ctx: "listener",
            msg: "Something is odd",
            attr: attr.as_ref(),
        };
        assert_eq!(
            text_line(&entry, 1_000),
            "00:00:01.000 network   warning: Something is odd  remote=127.0.0.1:5  why=\"two words\"  n=3\n"
        );
    }
}
