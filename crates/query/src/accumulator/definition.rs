//! The table of accumulators.

use super::Scripts;
use super::{
    Accumulator, add_to_set, average, concat_arrays, count, first, first_n, last, last_n, merge_objects, min_max,
    min_max_n, percentile, push, scripted, set_union, std_dev, sum, top,
};
use crate::collation::Collator;
use crate::sort::SortSpec;
use nestor_model::Value;
use std::fmt;
use std::sync::Arc;

/// The definition of an accumulator, without its argument.
pub struct Definition {
    /// `$sum` and so on.
    pub name: &'static str,
    /// The form of argument that stages give it.
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
    /// Functions that are scripts.
    Script,
    /// `{input, method}`, and `p`.
    Percentile {
        /// Whether `p` is wanted.
        with_p: bool,
    },
}

/// The parameters that a machine is started with, beside its name.
pub struct Settings<'a> {
    /// Compares strings.
    pub collator: Option<&'a Collator>,
    /// `n`; used where [`Argument`] has one.
    pub n: usize,
    /// `sortBy`; given where [`Argument`] has one.
    pub sort: Option<Arc<SortSpec>>,
    /// `p`, each from 0 to 1; used where [`Argument`] has it.
    pub probabilities: Vec<f64>,
    /// The functions; given where [`Argument`] is scripts.
    pub scripts: Option<Arc<Scripts>>,
    /// The state to start from, where [`Argument`] is scripts.
    pub initial: Value,
}

impl Default for Settings<'_> {
    fn default() -> Self {
        Self {
            collator: None,
            n: 0,
            sort: None,
            probabilities: Vec::new(),
            scripts: None,
            initial: Value::Null,
        }
    }
}

static DEFINITIONS: [Definition; 26] = [
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
    scripted::ACCUMULATOR,
    scripted::REDUCE,
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
