//! The operator families, each a table.

use super::parse::OpDef;

pub(crate) mod arithmetic;
pub(crate) mod array;
pub(crate) mod array_loop;
pub(crate) mod array_shape;
pub(crate) mod boolean;
pub(crate) mod compare;
pub(crate) mod conditional;
pub(crate) mod meta;
pub(crate) mod power;
pub(crate) mod rounding;
pub(crate) mod sort_by;
pub(crate) mod trigonometry;
pub(crate) mod types;
pub(crate) mod variables;

/// All operators.
pub(crate) const FAMILIES: &[&[OpDef]] = &[
    arithmetic::OPERATORS,
    array::OPERATORS,
    array_loop::OPERATORS,
    array_shape::OPERATORS,
    boolean::OPERATORS,
    compare::OPERATORS,
    conditional::OPERATORS,
    meta::OPERATORS,
    power::OPERATORS,
    rounding::OPERATORS,
    trigonometry::OPERATORS,
    types::OPERATORS,
    variables::OPERATORS,
];
