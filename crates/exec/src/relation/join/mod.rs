//! Joins: by a hash table of the right input, or of what an index finds of it for some left rows at a time ([`hashed`]), with parts of both inputs in files where there is no room for it ([`divided`]), or over all of its rows where no keys are equal ([`nested`]).

mod divided;
mod hashed;
mod keys;
mod nested;
mod table;

use super::BoxRows;
use nestor_planner::relation::{Join, Scalar};

/// The operator of a join. `numbering` is the number of the right input's node, and whether nodes count.
pub(super) fn join<S: Scalar>(
    plan: &Join<S>,
    left: BoxRows<S>,
    right: BoxRows<S>,
    numbering: (usize, bool),
) -> BoxRows<S> {
    match plan.keys.is_empty() {
        true => nested::join(plan, left, right),
        false => hashed::join(plan, left, right, numbering),
    }
}
