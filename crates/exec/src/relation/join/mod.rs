//! Joins: by a hash table of the right input ([`hashed`]), or over all of its rows where no keys are equal ([`nested`]).

mod hashed;
mod nested;

use super::BoxRows;
use nestor_planner::relation::{Join, Scalar};

pub(super) fn join<S: Scalar>(plan: &Join<S>, left: BoxRows<S>, right: BoxRows<S>) -> BoxRows<S> {
    match plan.keys.is_empty() {
        true => nested::join(plan, left, right),
        false => hashed::join(plan, left, right),
    }
}
