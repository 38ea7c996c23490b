//! `$count`: the number of documents, as `{$sum: 1}`.

use super::{Accumulator, Argument, Definition, Sum};

pub(super) const DEFINITION: Definition = Definition {
    name: "$count",
    argument: Argument::Nothing,
    start: |_| Accumulator::Sum(Sum::default()),
};
