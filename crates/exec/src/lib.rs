//! Runs plan trees on a snapshot; writes with index upkeep.

mod interrupt;

pub use interrupt::{Interrupt, KillSwitch};
