//! Nestor: a document database that MongoDB drivers and tools use unmodified.

pub mod client;
pub mod import;
