//! Nestor: a document database that MongoDB drivers and tools use unmodified.

pub mod bench;
pub mod client;
pub mod import;
