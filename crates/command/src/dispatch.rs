//! The table of commands.
//!
//! Every command is a file in [`crate::commands`] that declares a [`CommandSpec`]; [`lookup`] finds it
//! by name.

use crate::context::Context;
use crate::facts::Facts;
use nestor_model::{RawWriter, Result};
use std::collections::HashMap;
use std::sync::LazyLock;

/// Does a command's work: reads its arguments from `context`, writes the fields of its reply (all but
/// `ok` and the times). After an error what was written is thrown away.
pub type Handler = fn(&mut Context<'_>, &mut RawWriter) -> Result<()>;

/// A command.
#[derive(Clone, Copy)]
pub struct CommandSpec {
    /// What is known of it before it runs.
    pub facts: Facts,
    /// Does the work.
    pub run: Handler,
}

impl std::ops::Deref for CommandSpec {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        &self.facts
    }
}

static BY_NAME: LazyLock<HashMap<&'static str, (usize, &'static CommandSpec)>> = LazyLock::new(|| {
    let mut map = HashMap::new();
    for (number, spec) in all().enumerate() {
        for name in std::iter::once(&spec.facts.name).chain(spec.facts.aliases) {
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
