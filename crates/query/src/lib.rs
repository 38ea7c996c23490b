//! MQL as typed trees: parse, normalize, and evaluate on one document.
//!
//! Reading order: [`mod@env`] (what evaluation sees), [`expr`] (aggregation expressions),
//! [`regex`], [`collation`], [`matcher`] (filters), [`schema`], [`projection`], [`update`].

pub mod accumulator;
pub mod collation;
pub mod env;
pub mod expr;
pub mod keys;
pub mod matcher;
mod pcre;
pub mod projection;
pub mod regex;
pub mod schema;
pub mod sort;
pub mod stage;
pub mod update;

pub use env::{DocMeta, Env, OpContext, Scope, Val};
pub use expr::Expr;
pub use matcher::{MatchDetails, MatchExpr};
pub use projection::Projection;
