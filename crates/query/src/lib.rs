//! MQL as typed trees: parse, normalize, and evaluate on one document.
