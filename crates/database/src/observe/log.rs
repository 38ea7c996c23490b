//! The server's log: MongoDB's line format, a ring of recent lines for `getLog`, and a sink.
//!
//! ```text
//! {"t":{"$date":"2024-05-01T12:00:00.000+00:00"},"s":"I","c":"NETWORK","id":22943,"ctx":"listener","msg":"Connection accepted","attr":{...}}
//! ```
//!
//! Lines go to the ring always and to the sink when there is one: a library user has none, the server
//! sets a file, a pipe or a terminal. Source: the manual's "Log Messages".

use super::log_components::{component_document, component_levels};
use super::redact::redacted;
use nestor_model::extjson::{self, Form};
use nestor_model::{DocRef, Document, Result, ValueRef, date};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Lines that `getLog: "global"` answers at most.
pub const RING_LINES: usize = 1024;
/// Longest line kept in the ring, in bytes.
const RING_LINE_BYTES_MAX: usize = 10 * 1024;

/// How much a line matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// The process ends.
    Fatal,
    /// Something failed that should not.
    Error,
    /// Something is odd.
    Warning,
    /// Messages that an operator wants to see.
    Info,
    /// Detail at a verbosity of 1 to 5.
    Debug(u8),
}

impl Severity {
    /// The letter in field `s`.
    pub fn letters(self) -> &'static str {
        match self {
            Severity::Fatal => "F",
            Severity::Error => "E",
            Severity::Warning => "W",
            Severity::Info => "I",
            Severity::Debug(1) => "D1",
            Severity::Debug(2) => "D2",
            Severity::Debug(3) => "D3",
            Severity::Debug(4) => "D4",
            Severity::Debug(_) => "D5",
        }
    }
}

/// One thing to say.
#[derive(Debug)]
pub struct Entry<'a> {
    /// How much it matters.
    pub severity: Severity,
    /// `NETWORK`, `STORAGE`, `CONTROL`, `COMMAND`, ...
    pub component: &'static str,
    /// MongoDB's number of the message, where there is one; tools look for them.
    pub id: u32,
    /// The source of the line: `listener`, `conn12`, `initandlisten`.
    pub ctx: &'a str,
    /// The message, always the same words for one id.
    pub msg: &'a str,
    /// Its particulars.
    pub attr: DocRef<'a>,
}

pub use super::log_components::COMPONENTS;

/// Where lines go besides the ring. Gets the entry, its time in milliseconds and its JSON line without newline.
pub type Sink = Box<dyn Fn(&Entry<'_>, i64, &str) + Send + Sync>;

/// Closes the log file and begins a new one.
pub type Rotate = Box<dyn Fn() -> std::io::Result<()> + Send + Sync>;

/// The log.
pub struct Log {
    ring: Mutex<VecDeque<String>>,
    lines_total: AtomicU64,
    startup_warnings: Mutex<Vec<String>>,
    sink: Option<Sink>,
    rotate: Option<Rotate>,
    /// Highest debug level that is written by components without a level of their own.
    verbosity: AtomicU8,
    /// Levels of components, by name; those that are not here inherit.
    components: Mutex<BTreeMap<String, i32>>,
    /// Lines say nothing of what clients store or ask for.
    redacts: AtomicBool,
    /// Highest of all levels: what is above it is not written, without looking further.
    verbosity_max: AtomicU8,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log")
            .field("lines_total", &self.lines_total)
            .finish_non_exhaustive()
    }
}

impl Default for Log {
    fn default() -> Self {
        Self::new(None, 0)
    }
}

impl Log {
    /// A log that writes to `sink`, debug lines up to level `verbosity`.
    pub fn new(sink: Option<Sink>, verbosity: u8) -> Self {
        Self {
            ring: Mutex::default(),
            lines_total: AtomicU64::new(0),
            startup_warnings: Mutex::default(),
            sink,
            rotate: None,
            verbosity: AtomicU8::new(verbosity),
            components: Mutex::default(),
            verbosity_max: AtomicU8::new(verbosity),
            redacts: AtomicBool::new(false),
        }
    }

    /// Says how `logRotate` begins a new file. Without it there is none, and nothing to do.
    #[must_use]
    pub fn with_rotate(mut self, rotate: Rotate) -> Self {
        self.rotate = Some(rotate);
        self
    }

    /// Begins a new file, if lines go to a file.
    pub fn rotate(&self) -> std::io::Result<()> {
        self.rotate.as_ref().map_or(Ok(()), |rotate| rotate())
    }

    /// From now on lines say nothing of what clients store or ask for, or they do again (`redactClientLogData`).
    pub fn set_redacts(&self, redacts: bool) {
        self.redacts.store(redacts, Ordering::Relaxed);
    }

    /// Highest debug level that is written (`logLevel`).
    pub fn verbosity(&self) -> u8 {
        self.verbosity.load(Ordering::Relaxed)
    }

    /// Changes [`Log::verbosity`].
    pub fn set_verbosity(&self, level: u8) {
        self.verbosity.store(level, Ordering::Relaxed);
        self.update_max();
    }

    /// The levels of all components as `logComponentVerbosity` shows them; -1 inherits.
    pub fn component_verbosity(&self) -> Document {
        let components = lock(&self.components);
        let default = i32::from(self.verbosity());
        component_document(&|name| match name {
            "" => default,
            name => components.get(name).copied().unwrap_or(-1),
        })
    }

    /// Sets levels of components; all or, when one has no such name, none.
    pub fn set_component_verbosity(&self, levels: DocRef<'_>) -> Result<()> {
        for (name, level) in component_levels(levels)? {
            if name.is_empty() {
                self.verbosity.store(level.clamp(0, 5) as u8, Ordering::Relaxed);
            } else {
                lock(&self.components).insert(name, level);
            }
        }
        self.update_max();
        Ok(())
    }

    fn update_max(&self) {
        let highest = lock(&self.components).values().copied().max().unwrap_or(0);
        let max = highest.clamp(0, 5).max(i32::from(self.verbosity()));
        self.verbosity_max.store(max as u8, Ordering::Relaxed);
    }

    /// The level of a component as lines name it (`NETWORK`).
    fn level_of(&self, component: &str) -> u8 {
        let components = lock(&self.components);
        let own = components.iter().find(|(name, _)| name.eq_ignore_ascii_case(component));
        match own {
            Some((_, level)) if *level >= 0 => *level as u8,
            _ => self.verbosity(),
        }
    }

    /// Writes a line at severity info.
    pub fn info(&self, component: &'static str, id: u32, ctx: &str, msg: &str, attr: Document) {
        self.write(Severity::Info, component, id, ctx, msg, &attr);
    }

    /// Writes a line at severity warning.
    pub fn warn(&self, component: &'static str, id: u32, ctx: &str, msg: &str, attr: Document) {
        self.write(Severity::Warning, component, id, ctx, msg, &attr);
    }

    /// Writes a line at severity error.
    pub fn error(&self, component: &'static str, id: u32, ctx: &str, msg: &str, attr: Document) {
        self.write(Severity::Error, component, id, ctx, msg, &attr);
    }

    /// Writes a line at debug level `level`, if that is wanted.
    pub fn debug(
        &self,
        level: u8,
        component: &'static str,
        id: u32,
        ctx: &str,
        msg: &str,
        attr: impl Fn() -> Document,
    ) {
        if level <= self.verbosity_max.load(Ordering::Relaxed) && level <= self.level_of(component) {
            self.write(Severity::Debug(level), component, id, ctx, msg, &attr());
        }
    }

    /// Writes a warning that `getLog: "startupWarnings"` shows too.
    pub fn startup_warning(&self, component: &'static str, id: u32, msg: &str) {
        let line = self.write(Severity::Warning, component, id, "initandlisten", msg, &Document::new());
        lock(&self.startup_warnings).push(line);
    }

    fn write(
        &self,
        severity: Severity,
        component: &'static str,
        id: u32,
        ctx: &str,
        msg: &str,
        attr: &Document,
    ) -> String {
        let redacted = self.redacts.load(Ordering::Relaxed).then(|| redacted(attr));
        let attr = redacted.as_ref().unwrap_or(attr);
        let entry = Entry {
            severity,
            component,
            id,
            ctx,
            msg,
            attr: attr.as_ref(),
        };
        let now_ms = now_ms();
        let line = json_line(&entry, now_ms);
        if let Some(sink) = &self.sink {
            sink(&entry, now_ms, &line);
        }
        let mut kept = line.clone();
        if kept.len() > RING_LINE_BYTES_MAX {
            // A cut line would be no JSON any more, so a short one takes its place.
            let short = Entry {
                attr: nestor_model::value::EMPTY_DOC,
                ..entry
            };
            kept = json_line(&short, now_ms);
        }
        self.lines_total.fetch_add(1, Ordering::Relaxed);
        let mut ring = lock(&self.ring);
        if ring.len() == RING_LINES {
            ring.pop_front();
        }
        ring.push_back(kept);
        line
    }

    /// The newest lines, oldest first, and how many there have been in all.
    pub fn recent(&self) -> (Vec<String>, u64) {
        let ring = lock(&self.ring);
        (ring.iter().cloned().collect(), self.lines_total.load(Ordering::Relaxed))
    }

    /// Warnings of the start.
    pub fn startup_warnings(&self) -> Vec<String> {
        lock(&self.startup_warnings).clone()
    }
}

/// A poisoned lock only says that a thread panicked while it logged; the lines are whole.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// A time as log lines print it.
pub fn time_text(now_ms: i64) -> String {
    let c = date::Civil::from_ms(now_ms);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}+00:00",
        c.year, c.month, c.day, c.hour, c.minute, c.second, c.millisecond
    )
}

fn json_line(entry: &Entry<'_>, now_ms: i64) -> String {
    let mut line = String::with_capacity(200);
    // Writing to a String cannot fail.
    let _ = write!(
        line,
        r#"{{"t":{{"$date":"{}"}},"s":"{}","c":"{}","id":{},"ctx":"#,
        time_text(now_ms),
        entry.severity.letters(),
        entry.component,
        entry.id,
    );
    extjson::print(ValueRef::String(entry.ctx), Form::Relaxed, &mut line);
    line.push_str(r#","msg":"#);
    extjson::print(ValueRef::String(entry.msg), Form::Relaxed, &mut line);
    if !entry.attr.is_empty() {
        line.push_str(r#","attr":"#);
        extjson::print(ValueRef::Document(entry.attr), Form::Relaxed, &mut line);
    }
    line.push('}');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::doc;
    use std::sync::Arc;

    #[test]
    fn a_line_has_mongodbs_form() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = {
            let seen = seen.clone();
            Box::new(move |_: &Entry<'_>, _: i64, line: &str| seen.lock().unwrap().push(line.to_owned()))
        };
        let log = Log::new(Some(sink), 0);
        log.info(
            "NETWORK",
            22943,
            "listener",
            "Connection \"accepted\"",
            doc! { "remote": "127.0.0.1:5", "connectionCount": 1 },
        );
        log.debug(1, "NETWORK", 1, "listener", "not wanted", Document::new);
        log.set_component_verbosity(doc! { "command": 2 }.as_ref()).unwrap();
        log.debug(1, "NETWORK", 1, "listener", "not wanted either", Document::new);
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len(), 1);
        let (time, rest) = seen[0].split_once(r#""},"#).unwrap();
        assert!(
            time.starts_with(r#"{"t":{"$date":"2"#) && time.ends_with("+00:00"),
            "{time}"
        );
        assert_eq!(
            rest,
            r#""s":"I","c":"NETWORK","id":22943,"ctx":"listener","msg":"Connection \"accepted\"","attr":{"remote":"127.0.0.1:5","connectionCount":1}}"#
        );
        assert_eq!(log.recent().0, *seen);
    }

    #[test]
    fn the_ring_keeps_the_newest_lines() {
        let log = Log::default();
        for i in 0..RING_LINES as i32 + 10 {
            log.info("CONTROL", 1, "t", "line", doc! { "i": i });
        }
        let (lines, total) = log.recent();
        assert_eq!((lines.len(), total), (RING_LINES, RING_LINES as u64 + 10));
        assert!(lines[0].ends_with(r#""attr":{"i":10}}"#), "{}", lines[0]);
        log.startup_warning("CONTROL", 22120, "no access control");
        assert_eq!(log.startup_warnings().len(), 1);
    }
}
