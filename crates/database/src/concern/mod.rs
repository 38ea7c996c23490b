//! Read and write concerns, and the defaults that were set for them.

pub mod defaults;
pub mod read;
pub mod write;
