//! A command: what is known of it, and what it does.

use crate::context::Context;
use crate::facts::Facts;
use nestor_model::{RawWriter, Result};

/// Does a command's work: reads its arguments from `context`, writes the fields of its reply (all but
/// `ok` and the times). After an error what was written is thrown away.
pub type Handler = fn(&mut Context<'_>, &mut RawWriter) -> Result<()>;

/// A command.
#[derive(Clone, Copy)]
pub struct CommandSpec {
    /// The facts that hold before it runs.
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

impl Facts {
    /// The command that these are the facts of.
    pub const fn runs(self, run: Handler) -> CommandSpec {
        CommandSpec { facts: self, run }
    }
}
