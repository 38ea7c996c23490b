//! Golden runner, reference evaluator, generators. Used by test targets only.

pub mod expressions;
pub mod fuzz;
pub mod golden;
pub mod imports;
pub mod pipelines;
pub mod random;
pub mod reference;
pub mod shell;
