//! Time-series collections: buckets of measurements in compressed columns.
//!
//! A time-series collection `X` is a view of the collection `system.buckets.X`, whose documents are buckets. Reading order: `bits`, `ints`,
//! `doubles` (how numbers are written), [`mod@column`] (a field of a bucket), [`bucket`].

mod bits;
pub mod bucket;
pub mod column;
mod doubles;
mod ints;

pub use bucket::{Bucket, Header, Rows, bucket_id, fault, from_client};
pub use column::{Column, Values};
