//! The audit log: who did what to users, rights, the catalog and the server itself, one record an action.
//!
//! ```text
//! {atype: "dropCollection", ts: Date, uuid: UUID, local: {ip, port}, remote: {ip, port}, users: [{user, db}],
//!  roles: [{role, db}], param: {ns: "test.people"}, result: 0}
//! ```
//!
//! What actions there are and what their particulars mean say those who make events ([`Event`]); here is settled which of them are
//! written ([`Config`]), and in which form. An action that cannot be recorded is an error, never silence.
//!
//! Source: manual, "Auditing", "System Event Audit Messages" (the `mongo` schema), "auditConfig".

pub mod changes;

use crate::document_filter::DocumentFilter;
use crate::users::Account;
use crate::uuid::Uuid;
use base64::Engine as _;
use nestor_model::extjson::{self, Form};
use nestor_model::{DocRef, Document, Result, Timestamp, Value, doc};
use nestor_query::env::OpContext;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Where records go: a record's bytes are written as a whole, or an error says why not.
pub type Write = Box<dyn Fn(&[u8]) -> io::Result<()> + Send + Sync>;

/// Begins a new file, if records go to a file.
pub type Rotate = Box<dyn Fn() -> io::Result<()> + Send + Sync>;

/// The form of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A line of JSON each.
    Json,
    /// BSON documents one behind the other, which `bsondump` reads.
    Bson,
}

/// Where records go and what of them is wanted.
pub struct Destination {
    /// Their form.
    pub format: Format,
    /// Takes their bytes.
    pub write: Write,
    /// Begins a new file.
    pub rotate: Option<Rotate>,
}

/// Which records are wanted.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Records that do not match are not written; `None` lets all through.
    pub filter: Option<Arc<DocumentFilter>>,
    /// Commands that were allowed are recorded too, not only those that were refused (`auditAuthorizationSuccess`).
    pub authorization_success: bool,
}

impl Config {
    /// Reads a filter; an empty one lets all through.
    ///
    /// Errors: those of a query's filter.
    pub fn filter(given: DocRef<'_>) -> Result<Option<Arc<DocumentFilter>>> {
        match given.is_empty() {
            true => Ok(None),
            false => DocumentFilter::parse(given).map(|filter| Some(Arc::new(filter))),
        }
    }

    /// The filter as it was given.
    pub fn given_filter(&self) -> Document {
        self.filter
            .as_ref()
            .map(|filter| filter.given.clone())
            .unwrap_or_default()
    }

    /// As `getClusterParameter` shows it.
    pub fn to_document(&self) -> Document {
        doc! { "filter": self.given_filter(), "auditAuthorizationSuccess": self.authorization_success }
    }
}

/// The audit log. The default one is off: nothing is recorded.
#[derive(Default)]
pub struct Audit {
    destination: Option<Destination>,
    config: RwLock<Config>,
    /// The same as in the configuration, for those who ask with each command.
    authorization_success: AtomicBool,
    /// The configuration may be changed while the server runs, and is kept.
    is_runtime: bool,
}

impl std::fmt::Debug for Audit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Audit")
            .field("is_on", &self.is_on())
            .finish_non_exhaustive()
    }
}

/// The user who acts, and the connection.
#[derive(Clone, Debug, Default)]
pub struct Actor {
    /// Identifies the connection.
    pub uuid: [u8; 16],
    /// Our end of it.
    pub local: Document,
    /// The other end.
    pub remote: Document,
    /// The user who is logged in.
    pub users: Vec<Value>,
    /// The user's roles.
    pub roles: Vec<Value>,
}

impl Actor {
    /// The process itself, identified by `uuid`.
    pub fn process(uuid: [u8; 16]) -> Self {
        let own = doc! { "isSystemUser": true };
        Self {
            uuid,
            local: own.clone(),
            remote: own,
            ..Self::default()
        }
    }

    /// A connection from `peer` to `host`, with the user who is logged in.
    pub fn connection(uuid: [u8; 16], (host, peer): (&str, &str), account: Option<&Account>) -> Self {
        let account = account.into_iter();
        Self {
            uuid,
            local: end(host),
            remote: end(peer),
            users: account
                .clone()
                .map(|account| account.name.to_document().into())
                .collect(),
            roles: account
                .flat_map(|account| &account.all_roles)
                .map(|role| role.to_document().into())
                .collect(),
        }
    }
}

/// Something that somebody did or tried to do.
#[derive(Clone, Debug)]
pub struct Event {
    /// The action (`atype`).
    pub action: &'static str,
    /// Its particulars.
    pub param: Document,
    /// The error that it ended with, 0 for none.
    pub result: i32,
}

/// One end of a connection as records show it: the address of a socket, or the path of a Unix socket.
pub fn end(address: &str) -> Document {
    match address.parse::<std::net::SocketAddr>() {
        Ok(address) => doc! { "ip": address.ip().to_canonical().to_string(), "port": i32::from(address.port()) },
        Err(_) => match address.rsplit_once(':').map(|(host, port)| (host, port.parse::<u16>())) {
            Some((host, Ok(port))) => doc! { "ip": host, "port": i32::from(port) },
            _ => doc! { "unix": address },
        },
    }
}

impl Audit {
    /// An audit log that writes to `destination`. `is_runtime` lets its configuration be changed while the server runs.
    pub fn new(destination: Destination, config: Config, is_runtime: bool) -> Self {
        Self {
            destination: Some(destination),
            authorization_success: AtomicBool::new(config.authorization_success),
            config: RwLock::new(config),
            is_runtime,
        }
    }

    /// Whether anything is recorded.
    pub fn is_on(&self) -> bool {
        self.destination.is_some()
    }

    /// Whether the configuration may be changed while the server runs.
    pub fn is_runtime(&self) -> bool {
        self.is_runtime
    }

    /// Whether commands that are allowed are recorded too.
    pub fn records_success(&self) -> bool {
        self.is_on() && self.authorization_success.load(Ordering::Relaxed)
    }

    /// Which records are wanted.
    pub fn config(&self) -> Config {
        self.config.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes which records are wanted.
    pub fn configure(&self, config: Config) {
        let mut held = self.config.write().unwrap_or_else(PoisonError::into_inner);
        self.authorization_success
            .store(config.authorization_success, Ordering::Relaxed);
        *held = config;
    }

    /// Records `event`, if it is wanted.
    ///
    /// Errors: those of writing.
    pub fn record(&self, now_ms: i64, actor: &Actor, event: Event) -> io::Result<()> {
        let Some(destination) = &self.destination else {
            return Ok(());
        };
        let Event { action, param, result } = event;
        let users = Value::from(actor.users.clone());
        let roles = Value::from(actor.roles.clone());
        let record = |ts: Value, uuid: Value| {
            doc! {
                "atype": action,
                "ts": ts,
                "uuid": uuid,
                "local": actor.local.clone(),
                "remote": actor.remote.clone(),
                "users": users.clone(),
                "roles": roles.clone(),
                "param": param.clone(),
                "result": result,
            }
        };
        let plain = record(Value::DateTime(now_ms), Uuid(actor.uuid).to_value());
        let filter = self.config().filter;
        let op = OpContext::new(now_ms, Timestamp::default(), 0);
        // A filter that cannot be computed keeps nothing back.
        if filter.is_some_and(|filter| matches!(filter.matches(&plain, &op), Ok(false))) {
            return Ok(());
        }
        match destination.format {
            Format::Bson => (destination.write)(plain.to_raw().as_bytes()),
            Format::Json => {
                let ts = doc! { "$date": crate::observe::log::time_text(now_ms) };
                let base64 = base64::engine::general_purpose::STANDARD.encode(actor.uuid);
                let uuid = doc! { "$binary": base64, "$type": "04" };
                let shown = record(ts.into(), uuid.into());
                let mut line = String::with_capacity(300);
                extjson::print(shown.as_ref().into(), Form::Relaxed, &mut line);
                line.push('\n');
                (destination.write)(line.as_bytes())
            }
        }
    }

    /// Begins a new file, if records go to a file.
    ///
    /// Errors: those of the file system.
    pub fn rotate(&self) -> io::Result<()> {
        let rotate = self
            .destination
            .as_ref()
            .and_then(|destination| destination.rotate.as_ref());
        rotate.map_or(Ok(()), |rotate| rotate())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    fn log(format: Format, filter: Document) -> (Audit, Arc<Mutex<Vec<u8>>>) {
        let written = Arc::new(Mutex::new(Vec::new()));
        let kept = written.clone();
        let write: Write = Box::new(move |bytes| {
            crate::lock(&kept).extend_from_slice(bytes);
            Ok(())
        });
        let config = Config {
            filter: Config::filter(filter.as_ref()).expect("a good filter"),
            authorization_success: false,
        };
        let destination = Destination {
            format,
            write,
            rotate: None,
        };
        (Audit::new(destination, config, false), written)
    }

    fn drop_of(ns: &str) -> Event {
        Event {
            action: "dropCollection",
            param: doc! { "ns": ns },
            result: 26,
        }
    }

    #[test]
    fn a_record_has_the_documented_form() {
        let (audit, written) = log(Format::Json, doc! {});
        let actor = Actor {
            uuid: [7; 16],
            local: end("127.0.0.1:27017"),
            remote: end("[::ffff:10.0.0.1]:5"),
            users: vec![doc! { "user": "ann", "db": "test" }.into()],
            roles: Vec::new(),
        };
        audit
            .record(1_714_564_800_000, &actor, drop_of("a.b"))
            .expect("written");
        let line = String::from_utf8(crate::lock(&written).clone()).expect("text");
        assert_eq!(
            line,
            concat!(
                r#"{"atype":"dropCollection","ts":{"$date":"2024-05-01T12:00:00.000+00:00"},"#,
                r#""uuid":{"$binary":"BwcHBwcHBwcHBwcHBwcHBw==","$type":"04"},"local":{"ip":"127.0.0.1","port":27017},"#,
                r#""remote":{"ip":"10.0.0.1","port":5},"users":[{"user":"ann","db":"test"}],"roles":[],"#,
                r#""param":{"ns":"a.b"},"result":26}"#,
                "\n"
            )
        );
    }

    #[test]
    fn a_filter_sees_the_particulars() {
        let (audit, written) = log(Format::Bson, doc! { "param.ns": "a.b" });
        let actor = Actor::process([1; 16]);
        for ns in ["a.a", "a.b", "a.c"] {
            audit.record(0, &actor, drop_of(ns)).expect("written");
        }
        let bytes = crate::lock(&written).clone();
        let record = nestor_model::RawDoc::validate(&bytes).expect("one record");
        assert_eq!(record.get("uuid").map(|v| v.bson_type().alias()), Some("binData"));
        assert_eq!(record.get("ts").map(|v| v.bson_type().alias()), Some("date"));
        audit.configure(Config::default());
        audit.record(0, &actor, drop_of("a.c")).expect("written");
        assert!(crate::lock(&written).len() > bytes.len());
    }

    #[test]
    fn ends_of_connections() {
        for (address, expected) in [
            ("[::1]:5", doc! { "ip": "::1", "port": 5 }),
            ("localhost:27017", doc! { "ip": "localhost", "port": 27017 }),
            ("/tmp/x.sock", doc! { "unix": "/tmp/x.sock" }),
        ] {
            assert_eq!(format!("{:?}", end(address)), format!("{expected:?}"));
        }
    }
}
