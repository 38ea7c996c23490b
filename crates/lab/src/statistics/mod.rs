//! Numbers about numbers; no clock and no I/O, so that all of it is tested on series that were made up.

pub mod ratio;
pub mod steady;
