//! The memory of rows that wait.

use nestor_model::Result;
use nestor_model::memory::Held;
use nestor_model::statement::look;

/// Bytes after which the account of the statement learns of what was gathered.
const STEP: usize = 64 << 10;

/// Memory of the rows that a statement gathers and writes.
pub(crate) struct Gathered {
    bytes: usize,
    shown: usize,
    held: Held,
}

impl Gathered {
    pub(crate) fn new() -> Self {
        Self {
            bytes: 0,
            shown: 0,
            held: Held::by_this_statement(),
        }
    }

    /// So much more.
    ///
    /// Errors: those of the statement's interrupt, too little memory among them.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<()> {
        self.bytes += bytes;
        if self.bytes - self.shown < STEP {
            return Ok(());
        }
        self.shown = self.bytes;
        self.held.set(self.bytes);
        look()
    }
}
