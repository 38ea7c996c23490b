//! Time-series collections: buckets of measurements in compressed columns.
//!
//! A time-series collection `X` is a view of the collection `system.buckets.X`, whose documents are buckets. Reading order: `bits`, `ints`,
//! `doubles` (how numbers are written), [`mod@column`] (a field of a bucket), `parts` (a column that was appended to), [`bucket`],
//! `append` (measurements behind those of a stored bucket).

mod append;
mod bits;
pub mod bucket;
pub mod column;
mod doubles;
mod ints;
mod parts;

pub use bucket::{Bucket, Header, Rows, bucket_id, fault, from_client};
pub use column::{Column, Values};
