//! What only documents have: fields within large ones, arrays, pipelines, text and places, change streams, transactions over several of
//! them. It needs a server of MongoDB's protocol.
//!
//! [`data`] has the documents, which are functions of their `_id`; [`tests`] what is asked and how answers are checked; [`run`] loads, runs a
//! test and audits afterwards what it wrote.

pub mod data;
mod run;
mod tests;

pub use run::Documents;
pub use tests::NAMES;
