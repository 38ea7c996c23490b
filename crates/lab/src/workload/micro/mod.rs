//! The 32 microbenchmarks: small tests, each of one kind of query or write, that find what a change has made slower.
//!
//! Their names are the public ones; what each of them does is a list of [`ask::Ask`]s in [`mod@test`]. [`model`] knows every row of
//! the tables, [`client`] asks and compares, [`run`] loads, runs and puts back what a test has taken away.

pub mod ask;
mod client;
pub mod model;
pub mod run;
pub mod test;

pub use run::Micro;
pub use test::Test;
