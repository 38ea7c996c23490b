//! Statements run on the statement service.
//!
//! [`find`] turns what a scan knows of its rows into a filter of the find layer, [`tables`] reads the catalog, [`query`] runs queries.

pub mod find;
pub mod query;
pub mod tables;
