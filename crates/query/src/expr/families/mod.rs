//! The operator families, each a table.

use super::parse::OpDef;

pub(crate) mod accumulate;
pub(crate) mod arithmetic;
pub(crate) mod array;
pub(crate) mod array_loop;
pub(crate) mod array_shape;
pub(crate) mod binary;
pub(crate) mod bitwise;
pub(crate) mod boolean;
pub(crate) mod compare;
pub(crate) mod conditional;
pub(crate) mod convert;
pub(crate) mod date;
pub(crate) mod ejson;
pub(crate) mod hashing;
pub(crate) mod meta;
pub(crate) mod misc;
pub(crate) mod object;
pub(crate) mod percentile;
pub(crate) mod power;
pub(crate) mod regex;
pub(crate) mod rounding;
pub(crate) mod script;
pub(crate) mod set;
pub(crate) mod similarity;
pub(crate) mod sort_by;
pub(crate) mod string;
pub(crate) mod substring;
pub(crate) mod text;
pub(crate) mod trigonometry;
pub(crate) mod types;
pub(crate) mod variables;

/// All operators but those of dates, which are in [`date::TABLES`].
pub(crate) const FAMILIES: &[&[OpDef]] = &[
    accumulate::OPERATORS,
    arithmetic::OPERATORS,
    array::OPERATORS,
    array_loop::OPERATORS,
    array_shape::OPERATORS,
    bitwise::OPERATORS,
    boolean::OPERATORS,
    compare::OPERATORS,
    conditional::OPERATORS,
    convert::OPERATORS,
    ejson::OPERATORS,
    hashing::OPERATORS,
    meta::OPERATORS,
    misc::OPERATORS,
    object::OPERATORS,
    percentile::OPERATORS,
    power::OPERATORS,
    regex::OPERATORS,
    rounding::OPERATORS,
    script::OPERATORS,
    set::OPERATORS,
    similarity::OPERATORS,
    string::OPERATORS,
    substring::OPERATORS,
    trigonometry::OPERATORS,
    types::OPERATORS,
    variables::OPERATORS,
];
