//! The shared vocabulary of Nestor as plain data. No I/O.
//!
//! Reading order: [`error`] (codes and the one client-visible error type), [`raw`] (BSON as bytes),
//! [`value`] (BSON as owned values, and [`ValueRef`], the view both forms share), [`vector`] (values of many rows side by side), [`order`] (the one
//! canonical comparison and hash), [`sort`], [`number`] and [`decimal`] (arithmetic), [`path`], [`namespace`],
//! [`ids`] (object ids, timestamps, record ids), [`timeseries`], [`row_security`], [`collection_options`], [`index_spec`]; then what limits a statement:
//! [`interrupt`], [`memory`] and [`statement`].
//!
//! Two forms of BSON live side by side. [`RawDoc`] is a validated byte slice: documents stay in that
//! form from disk to socket. [`Document`] and [`Value`] are owned, cheap to clone, and hold computed
//! results; a [`Document`] may itself still be raw inside. Code that only reads takes [`DocRef`] and
//! [`ValueRef`], which look the same over both.

pub mod collection_options;
pub mod date;
pub mod decimal;
pub mod error;
pub mod extjson;
pub mod fnv;
pub mod ids;
pub mod index_spec;
pub mod interrupt;
pub mod memory;
pub mod namespace;
pub mod number;
pub mod order;
pub mod path;
pub mod random;
pub mod raw;
mod raw_write;
pub mod row_security;
pub mod search_index;
mod shared;
pub mod sort;
pub mod statement;
pub mod storage_settings;
pub mod timeseries;
pub mod value;
mod value_debug;
pub mod vector;

pub use collection_options::CollectionOptions;
pub use decimal::Decimal128;
pub use error::{Error, ErrorCode, Result};
pub use ids::{ObjectId, RecordId, Timestamp};
pub use index_spec::IndexSpec;
pub use namespace::Namespace;
pub use order::{compare, hash_value, values_equal};
pub use path::{Path, PathPart};
pub use raw::{RawDoc, RawDocBuf};
pub use raw_write::RawWriter;
pub use row_security::RowSecurity;
pub use search_index::SearchIndex;
pub use smol_str::SmolStr as Str;
pub use timeseries::TimeSeries;
pub use value::{Array, ArrayRef, Binary, BsonType, DocRef, Document, Regex, Value, ValueRef};
