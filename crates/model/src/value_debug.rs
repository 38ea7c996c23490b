//! How values are printed for people: in error messages and tests.

use crate::value::{Array, ArrayRef, DocRef, Document, Value, ValueRef};
use std::fmt;

impl fmt::Debug for ValueRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueRef::Missing => f.write_str("missing"),
            ValueRef::Double(v) => write!(f, "{v:?}"),
            ValueRef::String(v) => write!(f, "{v:?}"),
            ValueRef::Document(v) => fmt::Debug::fmt(v, f),
            ValueRef::Array(v) => f.debug_list().entries(v.iter()).finish(),
            ValueRef::Binary { subtype, bytes } => {
                write!(f, "BinData({subtype}, ")?;
                bytes.iter().try_for_each(|b| write!(f, "{b:02x}"))?;
                f.write_str(")")
            }
            ValueRef::Undefined => f.write_str("undefined"),
            ValueRef::ObjectId(v) => fmt::Debug::fmt(v, f),
            ValueRef::Bool(v) => write!(f, "{v}"),
            ValueRef::DateTime(v) => write!(f, "Date({v})"),
            ValueRef::Null => f.write_str("null"),
            ValueRef::Regex { pattern, options } => write!(f, "/{pattern}/{options}"),
            ValueRef::DbPointer { namespace, id } => write!(f, "DBPointer({namespace:?}, {id:?})"),
            ValueRef::Code(v) => write!(f, "Code({v:?})"),
            ValueRef::Symbol(v) => write!(f, "Symbol({v:?})"),
            ValueRef::CodeWithScope { code, scope } => write!(f, "Code({code:?}, {scope:?})"),
            ValueRef::Int32(v) => write!(f, "{v}"),
            ValueRef::Timestamp(v) => write!(f, "Timestamp({}, {})", v.secs, v.inc),
            ValueRef::Int64(v) => write!(f, "Long({v})"),
            ValueRef::Decimal128(v) => write!(f, "Decimal({v:?})"),
            ValueRef::MinKey => f.write_str("MinKey"),
            ValueRef::MaxKey => f.write_str("MaxKey"),
        }
    }
}

impl fmt::Debug for DocRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl fmt::Debug for ArrayRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.as_ref(), f)
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.as_ref(), f)
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.as_ref(), f)
    }
}
