//! Nestor: a document database that MongoDB drivers and tools use unmodified.
//!
//! [`Database`] is all of it as a library, without sockets. The rest of this crate stands around it. The
//! server: [`serve`] (a process from start to end), [`config`] (the configuration file), [`listener`] (accepting), [`connection`] (reading, running,
//! answering), [`watcher`], [`niceness`] (of long reads), [`stream`], [`tls`], [`metrics`], [`notify`], [`buffers`], [`sink`] (where log lines go), [`events`] (those of storage and of the log of a set), [`limits`], [`sql`] (connections that speak SQL),
//! [`key_file`] and [`first_user`] (who may log in without anybody having made a user), [`master_key`]. Beside it [`client`], a small
//! client of our own, and [`import`], [`export`], [`mod@bench`] and [`shell`], which use it; [`check`]; and what [`fuzz`] targets run.

pub mod backup;
pub mod bench;
pub mod buffers;
pub mod check;
pub mod client;
pub mod config;
pub mod connection;
pub mod database;
pub mod events;
pub mod export;
pub mod first_user;
pub mod forward;
pub mod fuzz;
pub mod import;
pub mod key_file;
pub mod limits;
pub mod listener;
pub mod master_key;
pub mod member;
pub mod memory_watch;
pub mod metrics;
pub mod niceness;
pub mod notify;
pub mod serve;
pub mod shell;
pub mod sink;
pub mod sql;
pub mod stream;
pub mod tls;
pub mod watcher;

pub use database::{Database, Reply};
pub use nestor_model::{Document, Error, ErrorCode, Value, doc};
