//! Search indexes: what their definitions say, what they hold of documents, and what queries find in them; pure.
//!
//! ```text
//! createSearchIndexes  ──Definition::parse──►  Definition
//! records of a snapshot  ──Index::change──►  Index                  immutable; with changes it becomes the next one
//! {text: {query: "fox", path: "title"}}  ──Search::parse──►  Search  ──Index::search──►  Found
//! {path: "v", queryVector: […], limit: 5}  ──Nearest::parse──►  Nearest  ──Index::nearest──►  Found
//! ```
//!
//! An index holds each document under the key of its record. Which snapshot it is of is the business of who calls.
//!
//! Reading order: [`definition`], [`index`], [`found`], `parts` and `dead` (states and their segments), [`text`] (the kind `search`, and what `$search` asks for), [`vector`] (the kind
//! `vectorSearch`, and what `$vectorSearch` asks for).
//! Source: manual, "Atlas Search", "Atlas Vector Search".

mod dead;
pub mod definition;
pub mod found;
pub mod index;
mod operand;
mod parts;
pub mod text;
pub mod vector;

pub use definition::{Definition, IndexKind};
pub use found::{Found, Highlights, Hit, Hits, ReadSynonyms};
pub use index::Index;
pub use text::Search;
pub use vector::Nearest;
