//! What is measured beside the clock: processes, the host, latencies.

pub mod histogram;
pub mod host;
pub mod meter;
pub mod process;
pub mod profile;
