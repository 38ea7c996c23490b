//! Owned BSON values, and the borrowed view that raw and owned forms share.

use crate::raw::{self, RawDoc, RawDocBuf, RawIter};
use crate::raw_write::RawWriter;
use crate::shared::{Measure, Shared};
use crate::statement::{BYTES_PER_UNIT, effort, note};
use crate::{Decimal128, ObjectId, Str, Timestamp};
use std::sync::Arc;

/// BSON type numbers, as on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum BsonType {
    /// No value (MongoDB's EOO); never stored.
    Missing = 0x00,
    Double = 0x01,
    String = 0x02,
    Object = 0x03,
    Array = 0x04,
    BinData = 0x05,
    Undefined = 0x06,
    ObjectId = 0x07,
    Bool = 0x08,
    Date = 0x09,
    Null = 0x0A,
    Regex = 0x0B,
    DbPointer = 0x0C,
    Javascript = 0x0D,
    Symbol = 0x0E,
    JavascriptWithScope = 0x0F,
    Int = 0x10,
    Timestamp = 0x11,
    Long = 0x12,
    Decimal = 0x13,
    MaxKey = 0x7F,
    MinKey = 0xFF,
}

impl BsonType {
    /// The alias used by `$type`, error messages and `$type` expressions (`missing` for no value).
    pub fn alias(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Double => "double",
            Self::String => "string",
            Self::Object => "object",
            Self::Array => "array",
            Self::BinData => "binData",
            Self::Undefined => "undefined",
            Self::ObjectId => "objectId",
            Self::Bool => "bool",
            Self::Date => "date",
            Self::Null => "null",
            Self::Regex => "regex",
            Self::DbPointer => "dbPointer",
            Self::Javascript => "javascript",
            Self::Symbol => "symbol",
            Self::JavascriptWithScope => "javascriptWithScope",
            Self::Int => "int",
            Self::Timestamp => "timestamp",
            Self::Long => "long",
            Self::Decimal => "decimal",
            Self::MaxKey => "maxKey",
            Self::MinKey => "minKey",
        }
    }

    /// int, long, double or decimal.
    pub fn is_number(self) -> bool {
        matches!(self, Self::Double | Self::Int | Self::Long | Self::Decimal)
    }
}

/// A binary value with its subtype.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Binary {
    /// 0 generic, 3/4 UUID, 128 and up user-defined, ...
    pub subtype: u8,
    /// Contents.
    pub bytes: Arc<[u8]>,
}

/// A regular expression as data.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Regex {
    /// Pattern text.
    pub pattern: Str,
    /// Option letters, in alphabetical order on the wire.
    pub options: Str,
}

/// An owned BSON value. 32 bytes or less; clones never copy more than a short string.
///
/// There is no `PartialEq`: values are compared by [`crate::compare`] (BSON order, `1 == 1.0`) or by
/// [`Value::identical`] (same type and bits).
#[derive(Clone)]
#[allow(missing_docs)]
pub enum Value {
    /// No value: the result of reading an absent field. Never stored; see [`Document::set`].
    Missing,
    Double(f64),
    String(Str),
    Document(Document),
    Array(Array),
    Binary(Binary),
    Undefined,
    ObjectId(ObjectId),
    Bool(bool),
    /// Milliseconds since the Unix epoch.
    DateTime(i64),
    Null,
    Regex(Box<Regex>),
    DbPointer(Box<(Str, ObjectId)>),
    Code(Str),
    Symbol(Str),
    CodeWithScope(Box<(Str, Document)>),
    Int32(i32),
    Timestamp(Timestamp),
    Int64(i64),
    Decimal128(Decimal128),
    MinKey,
    MaxKey,
}

/// A borrowed view of a value, over raw bytes or an owned [`Value`]. Copying it is cheap.
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub enum ValueRef<'a> {
    /// No value.
    Missing,
    Double(f64),
    String(&'a str),
    Document(DocRef<'a>),
    Array(ArrayRef<'a>),
    Binary {
        subtype: u8,
        bytes: &'a [u8],
    },
    Undefined,
    ObjectId(ObjectId),
    Bool(bool),
    DateTime(i64),
    Null,
    Regex {
        pattern: &'a str,
        options: &'a str,
    },
    DbPointer {
        namespace: &'a str,
        id: ObjectId,
    },
    Code(&'a str),
    Symbol(&'a str),
    CodeWithScope {
        code: &'a str,
        scope: DocRef<'a>,
    },
    Int32(i32),
    Timestamp(Timestamp),
    Int64(i64),
    Decimal128(Decimal128),
    MinKey,
    MaxKey,
}

impl Value {
    /// A count as MongoDB's statistics have it: an int when it fits, else a long.
    pub fn count(count: u64) -> Self {
        i32::try_from(count).map_or_else(|_| Value::Int64(i64::try_from(count).unwrap_or(i64::MAX)), Value::Int32)
    }

    /// The view.
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Value::Missing => ValueRef::Missing,
            Value::Double(v) => ValueRef::Double(*v),
            Value::String(v) => ValueRef::String(v),
            Value::Document(v) => ValueRef::Document(v.as_ref()),
            Value::Array(v) => ValueRef::Array(v.as_ref()),
            Value::Binary(v) => ValueRef::Binary {
                subtype: v.subtype,
                bytes: &v.bytes,
            },
            Value::Undefined => ValueRef::Undefined,
            Value::ObjectId(v) => ValueRef::ObjectId(*v),
            Value::Bool(v) => ValueRef::Bool(*v),
            Value::DateTime(v) => ValueRef::DateTime(*v),
            Value::Null => ValueRef::Null,
            Value::Regex(v) => ValueRef::Regex {
                pattern: &v.pattern,
                options: &v.options,
            },
            Value::DbPointer(v) => ValueRef::DbPointer {
                namespace: &v.0,
                id: v.1,
            },
            Value::Code(v) => ValueRef::Code(v),
            Value::Symbol(v) => ValueRef::Symbol(v),
            Value::CodeWithScope(v) => ValueRef::CodeWithScope {
                code: &v.0,
                scope: v.1.as_ref(),
            },
            Value::Int32(v) => ValueRef::Int32(*v),
            Value::Timestamp(v) => ValueRef::Timestamp(*v),
            Value::Int64(v) => ValueRef::Int64(*v),
            Value::Decimal128(v) => ValueRef::Decimal128(*v),
            Value::MinKey => ValueRef::MinKey,
            Value::MaxKey => ValueRef::MaxKey,
        }
    }

    /// The type.
    pub fn bson_type(&self) -> BsonType {
        self.as_ref().bson_type()
    }

    /// Missing, null or undefined.
    pub fn is_nullish(&self) -> bool {
        self.as_ref().is_nullish()
    }

    /// True for [`Value::Missing`].
    pub fn is_missing(&self) -> bool {
        matches!(self, Value::Missing)
    }

    /// Truth as expressions see it; see [`ValueRef::truthy`].
    pub fn truthy(&self) -> bool {
        self.as_ref().truthy()
    }

    /// Same type and same bits, names and order included: the identity of values, not BSON equality.
    pub fn identical(&self, other: &Value) -> bool {
        let bytes = |value: &Value| {
            let mut writer = RawWriter::new();
            writer.append("", value.as_ref());
            writer.finish()
        };
        self.is_missing() == other.is_missing() && bytes(self) == bytes(other)
    }

    /// Bytes that it takes, itself included: what memory limits count. What it shares with other values counts in full,
    /// as it would if it were written out. Costs a look at each value that was not weighed before.
    #[inline]
    pub fn weight(&self) -> usize {
        self.measure().weight
    }

    #[inline]
    fn measure(&self) -> Measure {
        let Measure { weight, levels } = match self {
            Value::Document(v) => v.measure(),
            Value::Array(v) => v.measure(),
            Value::CodeWithScope(v) => {
                let scope = v.1.measure();
                Measure {
                    weight: size_of::<(Str, Document)>() + str_weight(&v.0) + scope.weight,
                    ..scope
                }
            }
            Value::String(v) | Value::Code(v) | Value::Symbol(v) => Measure {
                weight: str_weight(v),
                levels: 0,
            },
            Value::Binary(v) => Measure {
                weight: v.bytes.len(),
                levels: 0,
            },
            Value::Regex(v) => Measure {
                weight: size_of::<Regex>() + str_weight(&v.pattern),
                levels: 0,
            },
            Value::DbPointer(v) => Measure {
                weight: size_of::<(Str, ObjectId)>() + str_weight(&v.0),
                levels: 0,
            },
            _ => Measure { weight: 0, levels: 0 },
        };
        Measure {
            weight: size_of::<Value>().saturating_add(weight),
            levels,
        }
    }

    /// As [`ValueRef::is_deeper_than`], but goes through the value only when it may be: what nests others in ever more
    /// levels can ask each time.
    pub fn is_deeper_than(&self, levels: usize) -> bool {
        self.measure().levels > levels && self.as_ref().is_deeper_than(levels)
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        if let Value::String(v) = self { Some(v) } else { None }
    }

    /// The document, if it is one.
    pub fn as_document(&self) -> Option<&Document> {
        if let Value::Document(v) = self { Some(v) } else { None }
    }

    /// The array, if it is one.
    pub fn as_array(&self) -> Option<&Array> {
        if let Value::Array(v) = self { Some(v) } else { None }
    }
}

impl<'a> ValueRef<'a> {
    /// The type.
    pub fn bson_type(self) -> BsonType {
        match self {
            ValueRef::Missing => BsonType::Missing,
            ValueRef::Double(_) => BsonType::Double,
            ValueRef::String(_) => BsonType::String,
            ValueRef::Document(_) => BsonType::Object,
            ValueRef::Array(_) => BsonType::Array,
            ValueRef::Binary { .. } => BsonType::BinData,
            ValueRef::Undefined => BsonType::Undefined,
            ValueRef::ObjectId(_) => BsonType::ObjectId,
            ValueRef::Bool(_) => BsonType::Bool,
            ValueRef::DateTime(_) => BsonType::Date,
            ValueRef::Null => BsonType::Null,
            ValueRef::Regex { .. } => BsonType::Regex,
            ValueRef::DbPointer { .. } => BsonType::DbPointer,
            ValueRef::Code(_) => BsonType::Javascript,
            ValueRef::Symbol(_) => BsonType::Symbol,
            ValueRef::CodeWithScope { .. } => BsonType::JavascriptWithScope,
            ValueRef::Int32(_) => BsonType::Int,
            ValueRef::Timestamp(_) => BsonType::Timestamp,
            ValueRef::Int64(_) => BsonType::Long,
            ValueRef::Decimal128(_) => BsonType::Decimal,
            ValueRef::MinKey => BsonType::MinKey,
            ValueRef::MaxKey => BsonType::MaxKey,
        }
    }

    /// An owned copy. Nested documents and arrays of raw form are copied as bytes, not decoded.
    pub fn to_value(self) -> Value {
        match self {
            ValueRef::Missing => Value::Missing,
            ValueRef::Double(v) => Value::Double(v),
            ValueRef::String(v) => Value::String(v.into()),
            ValueRef::Document(v) => Value::Document(v.to_document()),
            ValueRef::Array(v) => Value::Array(v.to_array()),
            ValueRef::Binary { subtype, bytes } => Value::Binary(Binary {
                subtype,
                bytes: bytes.into(),
            }),
            ValueRef::Undefined => Value::Undefined,
            ValueRef::ObjectId(v) => Value::ObjectId(v),
            ValueRef::Bool(v) => Value::Bool(v),
            ValueRef::DateTime(v) => Value::DateTime(v),
            ValueRef::Null => Value::Null,
            ValueRef::Regex { pattern, options } => Value::Regex(Box::new(Regex {
                pattern: pattern.into(),
                options: options.into(),
            })),
            ValueRef::DbPointer { namespace, id } => Value::DbPointer(Box::new((namespace.into(), id))),
            ValueRef::Code(v) => Value::Code(v.into()),
            ValueRef::Symbol(v) => Value::Symbol(v.into()),
            ValueRef::CodeWithScope { code, scope } => {
                Value::CodeWithScope(Box::new((code.into(), scope.to_document())))
            }
            ValueRef::Int32(v) => Value::Int32(v),
            ValueRef::Timestamp(v) => Value::Timestamp(v),
            ValueRef::Int64(v) => Value::Int64(v),
            ValueRef::Decimal128(v) => Value::Decimal128(v),
            ValueRef::MinKey => Value::MinKey,
            ValueRef::MaxKey => Value::MaxKey,
        }
    }

    /// True for [`ValueRef::Missing`].
    pub fn is_missing(self) -> bool {
        matches!(self, ValueRef::Missing)
    }

    /// Missing, null or undefined.
    pub fn is_nullish(self) -> bool {
        matches!(self, ValueRef::Missing | ValueRef::Null | ValueRef::Undefined)
    }

    /// int, long, double or decimal.
    pub fn is_number(self) -> bool {
        self.bson_type().is_number()
    }

    /// Truth as expressions see it: false, null, undefined, missing and any numeric zero are false,
    /// all else (NaN, empty strings and arrays) is true.
    pub fn truthy(self) -> bool {
        match self {
            ValueRef::Missing | ValueRef::Null | ValueRef::Undefined => false,
            ValueRef::Bool(v) => v,
            ValueRef::Double(v) => v != 0.0,
            ValueRef::Int32(v) => v != 0,
            ValueRef::Int64(v) => v != 0,
            ValueRef::Decimal128(v) => v.total_cmp(Decimal128::from_i64(0)) != std::cmp::Ordering::Equal,
            _ => true,
        }
    }

    /// True when there are more than `levels` levels of documents and arrays here, this one counted.
    pub fn is_deeper_than(self, levels: usize) -> bool {
        match self {
            ValueRef::Document(doc) | ValueRef::CodeWithScope { scope: doc, .. } => {
                levels == 0 || doc.is_deeper_than(levels - 1)
            }
            ValueRef::Array(ArrayRef::Raw(raw)) => levels == 0 || raw.is_deeper_than(levels - 1),
            ValueRef::Array(ArrayRef::Items(items)) => {
                note(items.len());
                levels == 0 || items.iter().any(|item| item.as_ref().is_deeper_than(levels - 1))
            }
            _ => false,
        }
    }

    /// The string, if it is one.
    pub fn as_str(self) -> Option<&'a str> {
        if let ValueRef::String(v) = self { Some(v) } else { None }
    }

    /// The document, if it is one.
    pub fn as_document(self) -> Option<DocRef<'a>> {
        if let ValueRef::Document(v) = self {
            Some(v)
        } else {
            None
        }
    }

    /// The array, if it is one.
    pub fn as_array(self) -> Option<ArrayRef<'a>> {
        if let ValueRef::Array(v) = self { Some(v) } else { None }
    }
}

fn str_weight(text: &Str) -> usize {
    if text.is_heap_allocated() { text.len() } else { 0 }
}

/// An owned document: ordered fields, duplicate names possible when they came from raw bytes.
/// Clones share; the first change copies one level. May still be raw bytes inside.
#[derive(Clone)]
pub struct Document(DocRepr);

#[derive(Clone)]
enum DocRepr {
    Raw(RawDocBuf),
    Fields(Arc<Shared<(Str, Value)>>),
}

impl Default for Document {
    fn default() -> Self {
        Self::new()
    }
}

impl Document {
    /// The empty document.
    pub fn new() -> Self {
        Self(DocRepr::Fields(Shared::new(Vec::new())))
    }

    /// The empty document with room for `fields`.
    pub fn with_capacity(fields: usize) -> Self {
        Self(DocRepr::Fields(Shared::new(Vec::with_capacity(fields))))
    }

    /// The view.
    pub fn as_ref(&self) -> DocRef<'_> {
        match &self.0 {
            DocRepr::Raw(raw) => DocRef::Raw(raw.as_raw()),
            DocRepr::Fields(fields) => DocRef::Fields(&fields.inner),
        }
    }

    fn measure(&self) -> Measure {
        match &self.0 {
            DocRepr::Raw(raw) => Measure::of_raw(raw.as_raw()),
            DocRepr::Fields(fields) => fields.measure(|(name, value)| {
                let measure = value.measure();
                Measure {
                    weight: size_of::<Str>() + str_weight(name) + measure.weight,
                    ..measure
                }
            }),
        }
    }

    /// Bytes that it takes; see [`Value::weight`].
    #[inline]
    pub fn weight(&self) -> usize {
        self.measure().weight
    }

    /// As [`ValueRef::is_deeper_than`]; see [`Value::is_deeper_than`].
    pub fn is_deeper_than(&self, levels: usize) -> bool {
        self.measure().levels > levels && ValueRef::Document(self.as_ref()).is_deeper_than(levels)
    }

    /// Number of fields. Counts through the bytes when raw.
    pub fn len(&self) -> usize {
        self.as_ref().iter().count()
    }

    /// True when there are no fields.
    pub fn is_empty(&self) -> bool {
        self.as_ref().is_empty()
    }

    /// The first field of that name.
    pub fn get(&self, name: &str) -> Option<ValueRef<'_>> {
        self.as_ref().get(name)
    }

    /// Fields in order.
    pub fn iter(&self) -> DocIter<'_> {
        self.as_ref().iter()
    }

    /// The fields, decoded one level if still raw, for changing.
    pub fn fields_mut(&mut self) -> &mut Vec<(Str, Value)> {
        if let DocRepr::Raw(raw) = &self.0 {
            let fields = raw
                .as_raw()
                .iter()
                .map(|(name, value)| (Str::from(name), value.to_value()))
                .collect();
            self.0 = DocRepr::Fields(Shared::new(fields));
        }
        match &mut self.0 {
            DocRepr::Fields(fields) => Shared::make_mut(fields),
            DocRepr::Raw(_) => unreachable!("decoded above"),
        }
    }

    /// Appends without looking for the name. A missing value is left out.
    pub fn push(&mut self, name: impl Into<Str>, value: impl Into<Value>) {
        let value = value.into();
        if !value.is_missing() {
            self.fields_mut().push((name.into(), value));
        }
    }

    /// Replaces the field in place or appends it; a missing value removes it.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        let value = value.into();
        if value.is_missing() {
            self.remove(name);
            return;
        }
        let fields = self.fields_mut();
        match fields.iter_mut().find(|(n, _)| n == name) {
            Some((_, old)) => *old = value,
            None => fields.push((name.into(), value)),
        }
    }

    /// Removes the first field of that name and returns its value.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        self.get(name)?;
        let fields = self.fields_mut();
        let at = fields.iter().position(|(n, _)| n == name)?;
        Some(fields.remove(at).1)
    }

    /// The document as bytes; cheap when it still is.
    pub fn to_raw(&self) -> RawDocBuf {
        match &self.0 {
            DocRepr::Raw(raw) => raw.clone(),
            DocRepr::Fields(_) => self.as_ref().to_raw(),
        }
    }
}

impl From<RawDocBuf> for Document {
    fn from(raw: RawDocBuf) -> Self {
        Self(DocRepr::Raw(raw))
    }
}

impl FromIterator<(Str, Value)> for Document {
    /// Collects fields as they come; missing values are left out.
    fn from_iter<I: IntoIterator<Item = (Str, Value)>>(fields: I) -> Self {
        Self(DocRepr::Fields(Shared::new(
            fields.into_iter().filter(|(_, v)| !v.is_missing()).collect(),
        )))
    }
}

/// An owned array; clones share. May still be raw bytes inside.
#[derive(Clone)]
pub struct Array(ArrayRepr);

#[derive(Clone)]
enum ArrayRepr {
    Raw(RawDocBuf),
    Items(Arc<Shared<Value>>),
}

impl Default for Array {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl Array {
    /// An array of these items. Missing items are kept and written as null.
    pub fn new(items: Vec<Value>) -> Self {
        Self(ArrayRepr::Items(Shared::new(items)))
    }

    /// The view.
    pub fn as_ref(&self) -> ArrayRef<'_> {
        match &self.0 {
            ArrayRepr::Raw(raw) => ArrayRef::Raw(raw.as_raw()),
            ArrayRepr::Items(items) => ArrayRef::Items(&items.inner),
        }
    }

    fn measure(&self) -> Measure {
        match &self.0 {
            ArrayRepr::Raw(raw) => Measure::of_raw(raw.as_raw()),
            ArrayRepr::Items(items) => items.measure(Value::measure),
        }
    }

    /// Number of items. Counts through the bytes when raw.
    pub fn len(&self) -> usize {
        self.as_ref().len()
    }

    /// True when there are no items.
    pub fn is_empty(&self) -> bool {
        self.as_ref().is_empty()
    }

    /// Items in order.
    pub fn iter(&self) -> ArrayIter<'_> {
        self.as_ref().iter()
    }

    /// The items, decoded one level if still raw, for changing.
    pub fn items_mut(&mut self) -> &mut Vec<Value> {
        if let ArrayRepr::Raw(raw) = &self.0 {
            let items = raw.as_raw().iter().map(|(_, value)| value.to_value()).collect();
            self.0 = ArrayRepr::Items(Shared::new(items));
        }
        match &mut self.0 {
            ArrayRepr::Items(items) => Shared::make_mut(items),
            ArrayRepr::Raw(_) => unreachable!("decoded above"),
        }
    }
}

impl FromIterator<Value> for Array {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Self {
        Self::new(items.into_iter().collect())
    }
}

/// A view of a document in either form.
#[derive(Clone, Copy)]
pub enum DocRef<'a> {
    /// Over bytes.
    Raw(RawDoc<'a>),
    /// Over owned fields.
    Fields(&'a [(Str, Value)]),
}

impl<'a> DocRef<'a> {
    /// Fields in order.
    #[inline]
    pub fn iter(self) -> DocIter<'a> {
        self.note_if_large();
        match self {
            DocRef::Raw(raw) => DocIter::Raw(raw.iter()),
            DocRef::Fields(fields) => DocIter::Fields(fields.iter()),
        }
    }

    /// Counts the work of going through a document where it is much; for small ones it does not pay.
    #[inline]
    fn note_if_large(self) {
        const LARGE: usize = 64 * BYTES_PER_UNIT;
        match self {
            DocRef::Raw(raw) if raw.len() > LARGE => note(raw.len() / BYTES_PER_UNIT),
            DocRef::Fields(fields) if fields.len() > LARGE / 16 => note(fields.len() / 16),
            _ => {}
        }
    }

    /// The first field of that name.
    pub fn get(self, name: &str) -> Option<ValueRef<'a>> {
        self.note_if_large();
        match self {
            DocRef::Raw(raw) => raw.get(name),
            DocRef::Fields(fields) => fields.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_ref()),
        }
    }

    /// True when there are no fields.
    pub fn is_empty(self) -> bool {
        match self {
            DocRef::Raw(raw) => raw.is_empty(),
            DocRef::Fields(fields) => fields.is_empty(),
        }
    }

    /// True when there are more than `levels` levels of documents and arrays below this one; see
    /// [`RawDoc::is_deeper_than`].
    pub fn is_deeper_than(self, levels: usize) -> bool {
        match self {
            DocRef::Raw(raw) => raw.is_deeper_than(levels),
            DocRef::Fields(fields) => fields.iter().any(|(_, value)| value.as_ref().is_deeper_than(levels)),
        }
    }

    /// An owned document: bytes are copied as bytes, owned fields are cloned.
    pub fn to_document(self) -> Document {
        match self {
            DocRef::Raw(raw) => {
                note(raw.len() / BYTES_PER_UNIT);
                Document::from(raw.to_buf())
            }
            DocRef::Fields(fields) => Document(DocRepr::Fields(Shared::new(fields.to_vec()))),
        }
    }

    /// The document as bytes.
    pub fn to_raw(self) -> RawDocBuf {
        match self {
            DocRef::Raw(raw) => raw.to_buf(),
            DocRef::Fields(fields) => {
                let mut writer = RawWriter::new();
                for (name, value) in fields {
                    writer.append(name, value.as_ref());
                }
                writer.into_doc()
            }
        }
    }
}

impl<'a> IntoIterator for DocRef<'a> {
    type Item = (&'a str, ValueRef<'a>);
    type IntoIter = DocIter<'a>;
    fn into_iter(self) -> DocIter<'a> {
        self.iter()
    }
}

impl<'a> From<RawDoc<'a>> for DocRef<'a> {
    fn from(raw: RawDoc<'a>) -> Self {
        DocRef::Raw(raw)
    }
}

impl<'a> From<&'a Document> for DocRef<'a> {
    fn from(doc: &'a Document) -> Self {
        doc.as_ref()
    }
}

/// Iterator over a [`DocRef`].
#[derive(Clone)]
#[allow(missing_docs)]
pub enum DocIter<'a> {
    Raw(RawIter<'a>),
    Fields(std::slice::Iter<'a, (Str, Value)>),
}

impl<'a> Iterator for DocIter<'a> {
    type Item = (&'a str, ValueRef<'a>);
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            DocIter::Raw(iter) => iter.next(),
            DocIter::Fields(iter) => iter.next().map(|(n, v)| (n.as_str(), v.as_ref())),
        }
    }
}

/// A view of an array in either form.
#[derive(Clone, Copy)]
pub enum ArrayRef<'a> {
    /// Over bytes (a document whose names are ignored).
    Raw(RawDoc<'a>),
    /// Over owned items.
    Items(&'a [Value]),
}

impl<'a> ArrayRef<'a> {
    /// Items in order.
    pub fn iter(self) -> ArrayIter<'a> {
        match self {
            ArrayRef::Raw(raw) => ArrayIter::Raw(raw.iter()),
            ArrayRef::Items(items) => ArrayIter::Items(items.iter()),
        }
    }

    /// The item at `index`. Walks the bytes when raw.
    pub fn get(self, index: usize) -> Option<ValueRef<'a>> {
        match self {
            ArrayRef::Raw(_) => self.iter().nth(index),
            ArrayRef::Items(items) => items.get(index).map(Value::as_ref),
        }
    }

    /// Number of items. Walks the bytes when raw.
    pub fn len(self) -> usize {
        match self {
            ArrayRef::Raw(raw) => {
                note(raw.len() / (BYTES_PER_UNIT / 4));
                raw.iter().count()
            }
            ArrayRef::Items(items) => items.len(),
        }
    }

    /// True when there are no items.
    pub fn is_empty(self) -> bool {
        match self {
            ArrayRef::Raw(raw) => raw.is_empty(),
            ArrayRef::Items(items) => items.is_empty(),
        }
    }

    /// An owned array.
    pub fn to_array(self) -> Array {
        match self {
            ArrayRef::Raw(raw) => {
                note(raw.len() / BYTES_PER_UNIT);
                Array(ArrayRepr::Raw(raw.to_buf()))
            }
            ArrayRef::Items(items) => {
                note(items.len() / 8);
                Array::new(items.to_vec())
            }
        }
    }
}

impl<'a> IntoIterator for ArrayRef<'a> {
    type Item = ValueRef<'a>;
    type IntoIter = ArrayIter<'a>;
    fn into_iter(self) -> ArrayIter<'a> {
        self.iter()
    }
}

/// Iterator over an [`ArrayRef`].
#[derive(Clone)]
#[allow(missing_docs)]
pub enum ArrayIter<'a> {
    Raw(RawIter<'a>),
    Items(std::slice::Iter<'a, Value>),
}

impl<'a> Iterator for ArrayIter<'a> {
    type Item = ValueRef<'a>;
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        // Whoever goes through an array works, so nobody has to remember counting it.
        effort::made();
        note(1);
        match self {
            ArrayIter::Raw(iter) => iter.next().map(|(_, v)| v),
            ArrayIter::Items(iter) => iter.next().map(Value::as_ref),
        }
    }
}

macro_rules! value_from {
    ($($type:ty => $variant:ident),* $(,)?) => {$(
        impl From<$type> for Value {
            fn from(v: $type) -> Self { Value::$variant(v.into()) }
        }
    )*};
}
value_from! {
    f64 => Double, &str => String, String => String, Str => String, bool => Bool, i32 => Int32, i64 => Int64,
    Document => Document, Array => Array, ObjectId => ObjectId, Timestamp => Timestamp, Decimal128 => Decimal128,
    Binary => Binary, RawDocBuf => Document,
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Self {
        Value::Array(Array::new(items))
    }
}

impl From<RawDoc<'_>> for Value {
    fn from(raw: RawDoc<'_>) -> Self {
        Value::Document(raw.to_buf().into())
    }
}

impl From<ValueRef<'_>> for Value {
    fn from(v: ValueRef<'_>) -> Self {
        v.to_value()
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    /// `None` is [`Value::Missing`].
    fn from(v: Option<T>) -> Self {
        v.map_or(Value::Missing, Into::into)
    }
}

macro_rules! ref_from {
    ($($type:ty => $variant:ident),* $(,)?) => {$(
        impl<'a> From<$type> for ValueRef<'a> {
            fn from(v: $type) -> Self { ValueRef::$variant(v.into()) }
        }
    )*};
}
ref_from! {
    f64 => Double, &'a str => String, bool => Bool, i32 => Int32, i64 => Int64, ObjectId => ObjectId,
    Timestamp => Timestamp, Decimal128 => Decimal128, DocRef<'a> => Document, RawDoc<'a> => Document,
    ArrayRef<'a> => Array, &'a Document => Document,
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    fn from(v: &'a Value) -> Self {
        v.as_ref()
    }
}

/// Builds a [`Document`]: `doc! { "ok": 1.0, "cursor": doc! { "id": 0i64 } }`. A missing value
/// (`Value::Missing`, `None`) leaves its field out.
#[macro_export]
macro_rules! doc {
    ($($name:tt : $value:expr),* $(,)?) => {{
        #[allow(unused_mut)]
        let mut doc = $crate::Document::new();
        $(doc.push($name, $value);)*
        doc
    }};
}

/// The empty document as a view.
pub const EMPTY_DOC: DocRef<'static> = DocRef::Raw(raw::EMPTY);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_small() {
        assert!(size_of::<Value>() <= 32, "{}", size_of::<Value>());
    }

    #[test]
    fn owned_and_raw_forms_read_alike() {
        let mut owned =
            doc! { "a": 1, "b": vec![Value::from("x"), Value::Null], "c": doc! { "d": 2.5 }, "gone": None::<i32> };
        let raw = Document::from(owned.to_raw());
        assert_eq!(format!("{owned:?}"), format!("{raw:?}"));
        assert_eq!(raw.len(), 3);
        owned.set("a", 7i64);
        owned.set("b", Value::Missing);
        assert_eq!(format!("{owned:?}"), r#"{"a": Long(7), "c": {"d": 2.5}}"#);
        assert_eq!(format!("{:?}", raw.get("a")), "Some(1)");
    }

    #[test]
    fn identity_is_not_equality() {
        assert!(!Value::from(1).identical(&Value::from(1.0)));
        assert!(Value::Double(f64::NAN).identical(&Value::Double(f64::NAN)));
        assert!(!Value::Missing.identical(&Value::Undefined));
    }
}
