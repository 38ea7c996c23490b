//! MQL as typed trees: parse, normalize, and evaluate on one document.
//!
//! Reading order, each module using only those before it: [`collation`] (how values compare), [`mod@env`] (what evaluation
//! sees), [`keys`] and [`sort`], [`regex`], [`types`], [`timeseries`], [`geo`] (geography), [`text`] (text search), [`accumulator`], [`expr`] (aggregation expressions), [`json_schema`],
//! [`matcher`] (filters), [`validation`], [`projection`], [`update`] and [`stage`].

pub mod accumulator;
pub mod collation;
pub mod env;
pub mod expr;
mod field_names;
pub mod geo;
pub mod json_schema;
pub mod keys;
pub mod masking;
pub mod matcher;
mod pcre;
pub mod projection;
pub mod regex;
pub mod sort;
pub mod stage;
pub mod text;
pub mod timeseries;
pub mod types;
pub mod update;
pub mod validation;

pub use env::{DocMeta, Env, OpContext, Scope, Val};
pub use expr::Expr;
pub use matcher::{MatchDetails, MatchExpr};
pub use projection::Projection;
