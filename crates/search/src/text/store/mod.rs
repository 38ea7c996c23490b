//! What an index of kind `search` holds: segments, which never change, and which of their records are dead.
//!
//! ```text
//! segment    records (keys)  ◄──  rows: each record has one, and one more for each embedded document, parents first
//!            text fields:    term → rows, positions in each;  row → length
//!            columns:        value → rows;  row → values
//! ```
//!
//! Each text field and each column belongs to a [`FieldKey`]. Numbers of rows ascend wherever they stand.
//! Reading order: `key`, `column`, `terms`, `geo`, `segment`, `build`, `merge`.

mod build;
mod column;
mod geo;
mod key;
mod merge;
mod segment;
mod terms;

pub(super) use build::Builder;
pub(super) use column::{Atom, Column};
pub(super) use geo::GeoField;
pub(super) use key::{FieldKey, Kind, RowId};
pub(super) use segment::Segment;
pub(super) use terms::TextField;
