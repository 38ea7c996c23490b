//! Files of documents, read record by record, and written.
//!
//! Reading order: [`records`] (what every format yields), then the formats: [`json`], [`bson_dump`], [`csv`]. What a record is for
//! whoever reads it, and whether he may read the file, is not known here. [`output`] writes documents. [`format`](mod@format) has what names tell, [`folder`] the files that a server may read.

#[cfg(feature = "parquet")]
pub mod arrow;
pub mod bson_dump;
pub mod csv;
pub mod folder;
pub mod format;
pub mod json;
pub mod output;
pub mod records;

pub use format::Format;
