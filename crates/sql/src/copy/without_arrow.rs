//! What a build without the feature `parquet` says of such files.

use super::Format;
use crate::error::unsupported;
use crate::run::query::Field;
use nestor_model::Result;
use nestor_planner::relation::Chunk;

/// Writes nothing.
pub struct Writer;

impl Writer {
    /// For rows that are refused.
    pub fn new(_: Format, _: &[Field]) -> Self {
        Self
    }

    /// Errors: 0A000.
    pub fn add(&mut self, _: &Chunk) -> Result<()> {
        unsupported("Parquet and Arrow in a build without the feature \"parquet\"")
    }

    /// Nothing.
    pub fn take(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// Errors: 0A000.
    pub fn finish(mut self) -> Result<Vec<u8>> {
        self.add(&Chunk::default()).map(|()| Vec::new())
    }
}
