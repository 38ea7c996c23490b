//! The Insert Benchmark: a table that grows and shrinks at the same rate, with three secondary indexes, and queries beside it.
//!
//! `transactionid` is the key that counts up; `dateandtime`, `cashregisterid`, `customerid`, `productid` and `price` are random numbers, `data`
//! is a text. [`table`] has the rows and the statements, [`steps`] runs l.i0 (load in key order), l.x (three secondary indexes), l.i1
//! (inserts and deletes at the same rate, 50 rows a transaction), l.i2 (5 rows), and the six steps of queries beside so many
//! inserts and deletes a second: qr (ranges that an index covers) and qp (points by key), 100, 500 and 1000. Each client is a user with a table of its own,
//! and has three connections: one asks, one inserts, one deletes.

pub mod steps;
pub mod table;

pub use steps::{Insert, STEPS};
