//! Columns: the documents of collections kept path by path, beside the records, for who reads few paths of many documents.
//!
//! They are derived data. A [`Segment`] holds the documents of a group of leaves of the base, a few thousand, and is exact as long as a
//! snapshot has just these leaves ([`nestor_storage::blocks`]): a checkpoint that writes some of them anew takes only their rows away, and keys that are
//! changed above the base take away the leaf that they would be in. What is taken away is read record by record, until the
//! segment is made anew. Nothing is ever written into a segment, so readers need no lock and no version.
//!
//! A collection has columns once somebody asked for them ([`Columns::read`]): a thread makes them that others come before, and a write pays nothing for them.
//!
//! Segments are written to files, and read from there column by column when somebody asks for them; what a file has lost is made anew.
//!
//! Reading order: `reader`, [`packed`], [`mod@column`], `codec`, [`mod@statistics`], [`segment`], [`elements`], `builder`, [`made`], `merged`, `file`, `memory`, [`pieces`], `tree`, [`store`], [`nice`].

mod builder;
mod codec;
pub mod column;
pub mod elements;
mod file;
pub mod made;
mod memory;
mod merged;
pub mod nice;
pub mod packed;
pub mod pieces;
mod reader;
pub mod segment;
pub mod statistics;
pub mod store;
mod tree;

pub use column::{Column, DAY_MS, State, Values};
pub use elements::Elements;
pub use memory::Figures;
pub use packed::Places;
pub use pieces::{Keys, Piece};
pub use segment::{Found, Segment, Zone};
pub use statistics::Statistics;
pub use store::{Columns, Reading};
