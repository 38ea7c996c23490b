//! MQL as typed trees: parse, normalize, and evaluate on one document.
//!
//! Reading order: [`env`] (what evaluation sees), [`expr`] (aggregation expressions).

pub mod env;
pub mod expr;
pub mod keys;
pub mod sort;

pub use env::{DocMeta, Env, OpContext, Scope, Val};
pub use expr::Expr;
