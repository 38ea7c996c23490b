//! From what is asked for to what is found.
//!
//! An operator is made ready for a state of an index once: its terms are analyzed, patterns become the terms that match them, and weights
//! follow from how frequent terms are in all segments. Then each segment is looked through by itself.
//!
//! Reading order: `node`, `distance` and `automaton` (which terms are meant), `terms`, `compile`, `bm25`, `phrase`, `spans`, `scoring`,
//! `evaluate`.

mod automaton;
mod bm25;
mod compile;
mod distance;
mod evaluate;
mod node;
mod phrase;
mod scoring;
mod spans;
mod terms;

pub(super) use compile::Compiler;
pub(super) use evaluate::Evaluation;
pub(super) use node::{Match, Node, SpanTree};
pub(super) use terms::{Context, TextPath};
