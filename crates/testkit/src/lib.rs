//! Golden runner, reference evaluator, generators. Used by test targets only.
