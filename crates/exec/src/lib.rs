//! Runs plan trees on a snapshot; writes with index upkeep.
