//! Time-series collections: what is asked of measurements, asked of their buckets.
//!
//! `predicates` finds the buckets that may have measurements which satisfy a condition; `index_keys` says which keys of buckets an index on
//! measurements has.

mod index_keys;
mod predicates;

pub use index_keys::{key_of_buckets, key_of_measurements};
pub use predicates::{Divided, bucket_filter, divide, renamed_meta};
