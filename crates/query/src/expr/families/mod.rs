//! The operator families, each a table.

use super::parse::OpDef;

pub(crate) mod boolean;
pub(crate) mod compare;
pub(crate) mod conditional;
pub(crate) mod meta;
pub(crate) mod variables;

/// All operators.
pub(crate) const FAMILIES: &[&[OpDef]] = &[
    boolean::OPERATORS,
    compare::OPERATORS,
    conditional::OPERATORS,
    meta::OPERATORS,
    variables::OPERATORS,
];
