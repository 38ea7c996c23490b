//! Golden runner, reference evaluator, generators. Used by test targets only.

pub mod random;
pub mod reference;
