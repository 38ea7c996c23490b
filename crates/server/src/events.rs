//! Warnings and errors of storage and of the log of a set, and of the libraries below them, as lines of the log.

use nestor_database::observe::log::Log;
use nestor_model::{Document, Value};
use std::fmt::Debug;
use std::sync::Arc;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// The id of all lines that come from here; their message says what happened.
const ID: u32 = 9_000_030;

/// Has events written to `log` from now on, for the life of the process. Only the first log is written to.
pub fn write_to(log: Arc<Log>) {
    // A process that has Nestor as a library may have a subscriber of its own.
    let _ = tracing::subscriber::set_global_default(Lines(log));
}

struct Lines(Arc<Log>);

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Levels order by how much they say.
        !metadata.is_span() && *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let metadata = event.metadata();
        let component = match metadata.target().starts_with("nestor_storage") {
            true => "STORAGE",
            false => "REPL",
        };
        let thread = std::thread::current();
        let context = thread.name().unwrap_or("thread");
        match *metadata.level() == Level::ERROR {
            true => self.0.error(component, ID, context, &line.message, line.attributes),
            false => self.0.warn(component, ID, context, &line.message, line.attributes),
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Line {
    message: String,
    attributes: Document,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            name => self.attributes.push(name, Value::String(format!("{value:?}").into())),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.attributes.push(field.name(), Value::String(value.into()));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        self.attributes.push(field.name(), Value::Int64(value));
    }
}
