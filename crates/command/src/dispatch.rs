//! The table of commands.
//!
//! Every command is a file in [`crate::commands`] that declares a [`CommandSpec`]; [`lookup`] finds it
//! by name.

use crate::context::Context;
use nestor_model::{RawWriter, Result};
use std::collections::HashMap;
use std::sync::LazyLock;

/// Does a command's work: reads its arguments from `context`, writes the fields of its reply (all but
/// `ok` and the times). After an error what was written is thrown away.
pub type Handler = fn(&mut Context<'_>, &mut RawWriter) -> Result<()>;

/// A set of properties of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(u16);

impl Flags {
    /// No property.
    pub const NONE: Flags = Flags(0);
    /// Only in database `admin`.
    pub const ADMIN: Flags = Flags(1);
    /// Changes documents or the catalog.
    pub const WRITE: Flags = Flags(2);
    /// May take long or wait for the disk: not to be run where it keeps others waiting.
    pub const LONG: Flags = Flags(4);
    /// Part of API version 1.
    pub const API_V1: Flags = Flags(8);
    /// Allowed within a multi-document transaction.
    pub const TXN: Flags = Flags(16);
    /// Takes a writeConcern.
    pub const WRITE_CONCERN: Flags = Flags(32);
    /// Takes any readConcern level; without it only local.
    pub const READ_CONCERN: Flags = Flags(64);
    /// May be retried under a transaction number.
    pub const RETRYABLE: Flags = Flags(128);
    /// Commits or aborts a transaction.
    pub const ENDS_TXN: Flags = Flags(256);
    /// Sent by drivers on its own; not counted or logged as a client's operation.
    pub const QUIET: Flags = Flags(512);
    /// May be sent as OP_QUERY.
    pub const LEGACY: Flags = Flags(1024);

    /// `maxTimeMS` means something of the command's own, not a limit on its work.
    pub const OWN_TIME: Flags = Flags(2048);

    /// Takes a readConcern other than local as the first command of a transaction only.
    pub const TXN_READ_CONCERN: Flags = Flags(4096);

    /// Has no effect besides its reply: stops when the client is gone that wants it.
    pub const FOR_REPLY: Flags = Flags(8192);

    /// Both sets.
    pub const fn and(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// True when all of `other` are in this set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A command.
#[derive(Clone, Copy)]
pub struct CommandSpec {
    /// Its name, as error messages print it.
    pub name: &'static str,
    /// Other names it answers to.
    pub aliases: &'static [&'static str],
    /// Properties.
    pub flags: Flags,
    /// One sentence for `listCommands`.
    pub help: &'static str,
    /// Does the work.
    pub run: Handler,
}

static BY_NAME: LazyLock<HashMap<&'static str, (usize, &'static CommandSpec)>> = LazyLock::new(|| {
    let mut map = HashMap::new();
    for (number, spec) in all().enumerate() {
        for name in std::iter::once(&spec.name).chain(spec.aliases) {
            let previous = map.insert(*name, (number, spec));
            debug_assert!(previous.is_none(), "command {name} is declared once");
        }
    }
    map
});

/// The command of that name. Names are case-sensitive.
pub fn lookup(name: &str) -> Option<&'static CommandSpec> {
    lookup_numbered(name).map(|(_, spec)| spec)
}

/// As [`lookup`], with the command's place in [`all`].
pub fn lookup_numbered(name: &str) -> Option<(usize, &'static CommandSpec)> {
    BY_NAME.get(name).copied()
}

/// All commands, in the order of their families.
pub fn all() -> impl Iterator<Item = &'static CommandSpec> {
    crate::commands::ALL.iter().copied().flatten().copied()
}
