//! The kind `search`, and what `$search` and `$searchMeta` ask of it.
//!
//! Reading order: `analysis` (from texts to tokens), `analyzers`, `grams`, `source`, `synonyms`, `mapping` and `definition` (what is indexed, and how), `store`
//! (segments), `state` (the states of an index), `ask` (what is asked for), `plan` (how it is found), `facets`, `highlight` and `results`.

mod analysis;
mod analyzers;
mod ask;
mod definition;
mod facets;
mod grams;
mod highlight;
mod mapping;
mod plan;
mod results;
mod source;
mod state;
mod store;
mod synonyms;
#[cfg(test)]
mod tests;

pub use ask::Search;
pub use definition::Definition;
pub use state::{Change, Index};
