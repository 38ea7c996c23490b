//! The table of accumulators.

use super::{
    Accumulator, add_to_set, average, concat_arrays, count, first, first_n, last, last_n, merge_objects, min_max,
    min_max_n, percentile, push, set_union, std_dev, sum, top,
};
use crate::collation::Collator;
use crate::sort::SortSpec;
use std::fmt;
use std::sync::Arc;

/// What is known of an accumulator without its argument.
pub struct Definition {
    /// `$sum` and so on.
    pub name: &'static str,
    /// What stages give it.
    pub argument: Argument,
    /// A fresh machine.
    pub start: fn(Settings<'_>) -> Accumulator,
}

/// The form of an accumulator's argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// `{}`: each document counts one.
    Nothing,
    /// One expression.
    Expression,
    /// `{input, n}`.
    InputAndN,
    /// `{output, sortBy}`, and `n`.
    Sorted {
        /// Whether `n` is wanted.
        with_n: bool,
    },
    /// `{input, method}`, and `p`.
    Percentile {
        /// Whether `p` is wanted.
        with_p: bool,
    },
}

/// What a machine is started with, beside its name.
#[derive(Default)]
pub struct Settings<'a> {
    /// Compares strings.
    pub collator: Option<&'a Collator>,
    /// `n`; used where [`Argument`] has one.
    pub n: usize,
    /// `sortBy`; given where [`Argument`] has one.
    pub sort: Option<Arc<SortSpec>>,
    /// `p`, each from 0 to 1; used where [`Argument`] has it.
    pub probabilities: Vec<f64>,
}

static DEFINITIONS: [Definition; 24] = [
    sum::DEFINITION,
    average::DEFINITION,
    min_max::MIN,
    min_max::MAX,
    first::DEFINITION,
    last::DEFINITION,
    push::DEFINITION,
    add_to_set::DEFINITION,
    std_dev::POPULATION,
    std_dev::SAMPLE,
    merge_objects::DEFINITION,
    count::DEFINITION,
    concat_arrays::DEFINITION,
    set_union::DEFINITION,
    first_n::DEFINITION,
    last_n::DEFINITION,
    min_max_n::MIN,
    min_max_n::MAX,
    top::TOP,
    top::BOTTOM,
    top::TOP_N,
    top::BOTTOM_N,
    percentile::MEDIAN,
    percentile::DEFINITION,
];

impl Definition {
    /// The accumulator of that name, with `$`.
    pub fn named(name: &str) -> Option<&'static Self> {
        DEFINITIONS.iter().find(|definition| definition.name == name)
    }
}

impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
