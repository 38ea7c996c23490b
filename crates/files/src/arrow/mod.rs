//! Arrow's arrays of documents and back, and the files that hold them: Parquet ([`parquet`]) and Arrow's IPC ([`ipc`]).
//!
//! | in documents | in Arrow |
//! |---|---|
//! | double, int, long, bool, string | `Float64`, `Int32`, `Int64`, `Boolean`, `Utf8` |
//! | decimal | `Decimal128(38, s)`, as many digits behind the point as the first values have |
//! | date | `Timestamp(Millisecond, "UTC")` |
//! | binary, UUID | `Binary`, `FixedSizeBinary(16)` with the extension `arrow.uuid` |
//! | ObjectId | `Utf8` of its hexadecimal digits; `nestor.type` of the field says `objectId` |
//! | document, array | `Struct`, `List` |
//! | values of several types, and types that Arrow does not have | `Utf8` of Extended JSON; `nestor.type` of the field says `json` |
//!
//! A missing field and null are both null there, and what is null there is a missing field: elements of arrays alone are null in documents.
//!
//! Reading order: [`shape`] (the type of a column, and how it is found), [`encode`] and [`decode`], the files ([`mod@file`] is either of them), [`records`].

pub mod decode;
pub mod encode;
pub mod file;
pub mod ipc;
pub mod parquet;
pub mod records;
pub mod shape;

/// What arrays are looked at by.
pub mod array {
    pub use arrow_array::cast::AsArray;
    pub use arrow_array::types::{
        ArrowPrimitiveType, Date32Type, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType,
    };
}

pub use arrow_array::{Array, ArrayRef, RecordBatch};
pub use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};

#[cfg(test)]
mod tests;
