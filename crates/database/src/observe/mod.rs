//! Observation: counters, latencies, `top`, figures of one operation, the log.
//!
//! These watch. Nothing that runs a statement asks them.

pub mod api_use;
pub mod counters;
pub mod figures;
pub mod latency;
pub mod log;
pub mod log_components;
pub mod metrics;
pub mod op_kind;
pub mod redact;
pub mod top;
pub mod transaction_counts;
