//! Typed arguments of commands, declared as structs.
//!
//! ```text
//! args! {
//!     /// `find`.
//!     pub struct FindArgs<'a>: "find" command {
//!         "find" => coll: CollectionName<'a>,
//!         "filter" => filter: Option<RawDoc<'a>>,
//!         "limit" => limit: Option<NonNegative>,
//!         "singleBatch" => single_batch: bool,
//!     }
//! }
//! let args = FindArgs::parse(body, sequences)?;
//! ```
//!
//! `command` structs read a whole command: the first element is the command itself whatever its
//! spelling, and the arguments every command takes ([`crate::generic`]) are passed over. `nested`
//! structs read a document inside one and are given their full path (`"update.updates"`). `lenient` structs read a whole
//! command that is older than typed arguments in MongoDB and passes over what it does not know.
//!
//! A field's type says what it accepts and what its absence means: `Option<T>` is optional, `bool`
//! defaults to false, all else is required. Null counts as absent, as in MongoDB. Errors are
//! MongoDB's: unknown field 40415, missing 40414, duplicate 40413, wrong type 14.

use crate::collection_at::collection_text;
use crate::generic_names;
use crate::request::Sequence;
use nestor_database::read::Target;
use nestor_database::uuid::Uuid;
use nestor_model::number::{Num, safe_i64};
use nestor_model::value::{ArrayRef, DocRef};
use nestor_model::{BsonType, Error, ErrorCode, RawDoc, Result, Timestamp, ValueRef, bail};
use std::fmt;

/// Where an argument stands: the path of its struct and its own name. Prints as `find.limit`.
#[derive(Clone, Copy, Debug)]
pub struct At<'n> {
    /// Path of the struct, such as `find` or `update.updates`.
    pub path: &'n str,
    /// The field.
    pub field: &'n str,
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.path, self.field)
    }
}

/// A type that an argument can have.
pub trait Arg<'a>: Sized {
    /// The type as error messages print it.
    const EXPECTED: &'static str = "any";

    /// Reads `value`; `None` when it counts as absent (null or undefined).
    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>>;

    /// The value of an absent argument. By default that is the error 40414.
    fn absent(at: At<'_>) -> Result<Self> {
        Err(Error::location(
            40414,
            format!("BSON field '{at}' is missing but a required field"),
        ))
    }

    /// Reads a document sequence (message section of kind 1); `None` when the argument is no array of documents.
    fn from_sequence(_documents: &[RawDoc<'a>]) -> Option<Self> {
        None
    }
}

/// The error of a value of the wrong type. `expected` is as printed: `'bool'` or `'[bool, long]'` without quotes.
pub fn wrong_type(at: impl fmt::Display, got: BsonType, expected: &str) -> Error {
    let types = if expected.starts_with('[') { "types" } else { "type" };
    Error::type_mismatch(format!(
        "BSON field '{at}' is the wrong type '{}', expected {types} '{expected}'",
        got.alias()
    ))
}

/// A hint: a string or a document. Null is neither.
///
/// Error: 9 for other types, which fails the command even when the hint is that of one statement in it.
#[derive(Clone, Copy, Debug)]
pub struct HintValue<'a>(pub ValueRef<'a>);

impl<'a> Arg<'a> for HintValue<'a> {
    fn parse(value: ValueRef<'a>, _: At<'_>) -> Result<Option<Self>> {
        match value {
            ValueRef::String(_) | ValueRef::Document(_) => Ok(Some(Self(value))),
            other => bail!(
                FailedToParse,
                "Hint must be a string or an object, found {}",
                other.bson_type().alias()
            ),
        }
    }
}

/// The error of a field nobody knows.
pub fn unknown_field(path: &str, field: &str) -> Error {
    Error::location(40415, format!("BSON field '{path}.{field}' is an unknown field."))
}

fn absent_or(at: At<'_>, value: ValueRef<'_>, expected: &str) -> Result<bool> {
    match value {
        ValueRef::Null | ValueRef::Undefined => Ok(true),
        other => Err(wrong_type(at, other.bson_type(), expected)),
    }
}

macro_rules! typed_arg {
    ($type:ty, $expected:literal, $($pattern:pat => $value:expr),+) => {
        impl<'a> Arg<'a> for $type {
            const EXPECTED: &'static str = $expected;

            fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
                match value {
                    $($pattern => Ok(Some($value)),)+
                    other => absent_or(at, other, $expected).map(|_| None),
                }
            }
        }
    };
}

typed_arg!(&'a str, "string", ValueRef::String(text) => text);
typed_arg!(RawDoc<'a>, "object", ValueRef::Document(DocRef::Raw(doc)) => doc);
typed_arg!(RawArray<'a>, "array", ValueRef::Array(ArrayRef::Raw(doc)) => RawArray(doc));
typed_arg!(Timestamp, "timestamp", ValueRef::Timestamp(ts) => ts);

impl<'a, T: Arg<'a>> Arg<'a> for Option<T> {
    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        Ok(T::parse(value, at)?.map(Some))
    }
    fn absent(_: At<'_>) -> Result<Self> {
        Ok(None)
    }
    fn from_sequence(documents: &[RawDoc<'a>]) -> Option<Self> {
        T::from_sequence(documents).map(Some)
    }
}

/// An argument for which null is a wrong type, not an absent value.
#[derive(Clone, Copy, Debug)]
pub struct NotNull<T>(pub T);

impl<'a, T: Arg<'a>> Arg<'a> for NotNull<T> {
    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        match T::parse(value, at)? {
            Some(parsed) => Ok(Some(Self(parsed))),
            None => Err(wrong_type(at, value.bson_type(), T::EXPECTED)),
        }
    }
    fn absent(at: At<'_>) -> Result<Self> {
        T::absent(at).map(Self)
    }
}

/// Any value at all, null included.
impl<'a> Arg<'a> for ValueRef<'a> {
    fn parse(value: ValueRef<'a>, _: At<'_>) -> Result<Option<Self>> {
        Ok(Some(value))
    }
}

/// A boolean, or a number whose being zero means false. Absent means false.
impl<'a> Arg<'a> for bool {
    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        if value.is_number() || matches!(value, ValueRef::Bool(_)) {
            return Ok(Some(value.truthy()));
        }
        absent_or(at, value, "[bool, long, int, decimal, double]").map(|_| None)
    }
    fn absent(_: At<'_>) -> Result<Self> {
        Ok(false)
    }
}

impl<'a> Arg<'a> for Target<'a> {
    fn parse(value: ValueRef<'a>, _: At<'_>) -> Result<Option<Self>> {
        match value {
            ValueRef::String(name) | ValueRef::Symbol(name) => Ok(Some(Self::Name(name))),
            ValueRef::Binary { subtype: 4, bytes } => match bytes.try_into() {
                Ok(bytes) => Ok(Some(Self::Uuid(bytes))),
                Err(_) => bail!(InvalidUUID, "uuid must be a 16-byte binary field with UUID (4) subtype"),
            },
            other => bail!(
                InvalidNamespace,
                "collection name has invalid type {}",
                other.bson_type().alias()
            ),
        }
    }
}

/// A boolean and nothing else. Absent means false.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct StrictBool(pub bool);

impl<'a> Arg<'a> for StrictBool {
    const EXPECTED: &'static str = "bool";

    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        match value {
            ValueRef::Bool(v) => Ok(Some(Self(v))),
            other => absent_or(at, other, "bool").map(|_| None),
        }
    }
    fn absent(_: At<'_>) -> Result<Self> {
        Ok(Self(false))
    }
}

/// A boolean and nothing else, which has to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequiredBool(pub bool);

impl<'a> Arg<'a> for RequiredBool {
    const EXPECTED: &'static str = "bool";

    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        Ok(StrictBool::parse(value, at)?.map(|given| Self(given.0)))
    }
}

/// Types that [`safe_i64`] takes, as error messages print them.
pub const NUMBER_TYPES: &str = "[long, int, decimal, double]";

impl<'a> Arg<'a> for i64 {
    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        match safe_i64(value) {
            Some(v) => Ok(Some(v)),
            None => absent_or(at, value, NUMBER_TYPES).map(|_| None),
        }
    }
}

/// A number clamped to 32 bits.
impl<'a> Arg<'a> for i32 {
    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        let wide = <i64 as Arg>::parse(value, at)?;
        Ok(wide.map(|v| v.clamp(i32::MIN.into(), i32::MAX.into()) as i32))
    }
}

/// A number as a double.
impl<'a> Arg<'a> for f64 {
    const EXPECTED: &'static str = NUMBER_TYPES;

    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        match Num::from_ref(value) {
            Some(number) => Ok(Some(number.to_f64())),
            None => absent_or(at, value, NUMBER_TYPES).map(|_| None),
        }
    }
}

/// A BSON long and nothing else (cursor ids, transaction numbers).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Long(pub i64);
impl<'a> Arg<'a> for Long {
    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        match value {
            ValueRef::Int64(v) => Ok(Some(Self(v))),
            other => absent_or(at, other, "long").map(|_| None),
        }
    }
}

/// A number that must lie in `MIN..=MAX`; otherwise the error is `BadValue`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InRange<const MIN: i64, const MAX: i64>(pub i64);

/// A number that is not negative.
pub type NonNegative = InRange<0, { i64::MAX }>;

impl<'a, const MIN: i64, const MAX: i64> Arg<'a> for InRange<MIN, MAX> {
    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        let Some(v) = <i64 as Arg>::parse(value, at)? else {
            return Ok(None);
        };
        let (sign, bound) = match v {
            v if v < MIN => (">=", MIN),
            v if v > MAX => ("<=", MAX),
            _ => return Ok(Some(Self(v))),
        };
        Err(Error::bad_value(format!(
            "BSON field '{}' value must be {sign} {bound}, actual value '{v}'",
            at.field
        )))
    }
}

/// A whole number that must lie in `MIN..=MAX`.
///
/// Errors: 9 for a fraction or what no long holds, 2 for a whole number outside the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactInt<const MIN: i64, const MAX: i64>(pub i64);

impl<'a, const MIN: i64, const MAX: i64> Arg<'a> for ExactInt<MIN, MAX> {
    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        let Some(number) = Num::from_ref(value) else {
            return absent_or(at, value, NUMBER_TYPES).map(|_| None);
        };
        if number.to_i64_exact().is_none() {
            bail!(FailedToParse, "BSON field '{at}' must be a whole number: {value:?}");
        }
        let bounded = <InRange<MIN, MAX> as Arg>::parse(value, at)?;
        Ok(bounded.map(|bounded| Self(bounded.0)))
    }
}

/// An array as bytes.
#[derive(Clone, Copy, Debug)]
pub struct RawArray<'a>(pub RawDoc<'a>);

impl<'a> RawArray<'a> {
    /// The items.
    pub fn iter(self) -> impl Iterator<Item = ValueRef<'a>> {
        self.0.iter().map(|(_, value)| value)
    }

    /// As any value.
    pub fn to_ref(self) -> ValueRef<'a> {
        ValueRef::Array(ArrayRef::Raw(self.0))
    }
}

/// The items of an array that `take` accepts; an item it gives back is of the wrong type, `expected` is the right one.
fn array_of<'a, T>(
    value: ValueRef<'a>,
    at: At<'_>,
    expected: &str,
    take: impl Fn(ValueRef<'a>) -> std::result::Result<Option<T>, ValueRef<'a>>,
) -> Result<Option<Vec<T>>> {
    let ValueRef::Array(array) = value else {
        return absent_or(at, value, "array").map(|_| None);
    };
    let mut out = Vec::new();
    for (i, item) in array.iter().enumerate() {
        match take(item) {
            Ok(taken) => out.extend(taken),
            Err(other) => return Err(wrong_type(format_args!("{at}.{i}"), other.bson_type(), expected)),
        }
    }
    Ok(Some(out))
}

/// An array of documents, or a document sequence.
impl<'a> Arg<'a> for Vec<RawDoc<'a>> {
    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        array_of(value, at, "object", |item| match item {
            ValueRef::Document(DocRef::Raw(doc)) => Ok(Some(doc)),
            other => Err(other),
        })
    }
    fn from_sequence(documents: &[RawDoc<'a>]) -> Option<Self> {
        Some(documents.to_vec())
    }
}

/// An array of strings.
impl<'a> Arg<'a> for Vec<&'a str> {
    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        array_of(value, at, "string", |item| match item {
            ValueRef::String(text) => Ok(Some(text)),
            other => Err(other),
        })
    }
}

/// An array of longs (cursor ids); nulls in it are passed over.
impl<'a> Arg<'a> for Vec<i64> {
    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        array_of(value, at, "long", |item| match item {
            ValueRef::Int64(v) => Ok(Some(v)),
            ValueRef::Null | ValueRef::Undefined => Ok(None),
            other => Err(other),
        })
    }
}

/// An array of 32-bit integers (statement ids).
impl<'a> Arg<'a> for Vec<i32> {
    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        array_of(value, at, "int", |item| match item {
            ValueRef::Int32(v) => Ok(Some(v)),
            other => Err(other),
        })
    }
}

impl<'a> Arg<'a> for Uuid {
    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        match value {
            ValueRef::Binary { subtype: 4, bytes } => match bytes.try_into() {
                Ok(bytes) => Ok(Some(Self(bytes))),
                Err(_) => Err(Error::new(
                    ErrorCode::InvalidUUID,
                    format!("uuid must be a 16-byte binary field with UUID (4) subtype: '{at}'"),
                )),
            },
            ValueRef::Binary { subtype, .. } => Err(Error::type_mismatch(format!(
                "BSON field '{at}' is the wrong binData type '{}', expected type 'UUID'",
                subtype_name(subtype)
            ))),
            other => absent_or(at, other, "binData").map(|_| None),
        }
    }
}

fn subtype_name(subtype: u8) -> &'static str {
    match subtype {
        0 => "general",
        1 => "function",
        2 => "byte",
        3 => "UUID",
        4 => "UUID",
        5 => "MD5",
        6 => "encrypt",
        7 => "column",
        8 => "sensitive",
        9 => "vector",
        _ => "user-defined",
    }
}

/// The collection that a command names. Anything but a string or a symbol is `InvalidNamespace`; which texts
/// are good names is the catalog's business.
#[derive(Clone, Copy, Debug)]
pub struct CollectionName<'a>(pub &'a str);

impl<'a> Arg<'a> for CollectionName<'a> {
    fn parse(value: ValueRef<'a>, _: At<'_>) -> Result<Option<Self>> {
        match collection_text(value) {
            Some(name) => Ok(Some(Self(name))),
            None => Err(Error::new(
                ErrorCode::InvalidNamespace,
                format!("collection name has invalid type {}", value.bson_type().alias()),
            )),
        }
    }
}

/// A slot of an argument while its struct is read.
#[doc(hidden)]
pub struct Slot<T> {
    value: Option<T>,
    seen: bool,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self {
            value: None,
            seen: false,
        }
    }
}

impl<'a, T: Arg<'a>> Slot<T> {
    #[doc(hidden)]
    pub fn read(&mut self, value: ValueRef<'a>, at: At<'_>) -> Result<()> {
        self.once(at)?;
        self.value = T::parse(value, at)?;
        Ok(())
    }

    #[doc(hidden)]
    pub fn read_sequence(&mut self, documents: &[RawDoc<'a>], at: At<'_>) -> Result<()> {
        self.once(at)?;
        self.value = T::from_sequence(documents);
        match self.value {
            Some(_) => Ok(()),
            None => Err(wrong_type(at, BsonType::Array, "object")),
        }
    }

    fn once(&mut self, at: At<'_>) -> Result<()> {
        if std::mem::replace(&mut self.seen, true) {
            return Err(Error::location(
                40413,
                format!("BSON field '{at}' is a duplicate field"),
            ));
        }
        Ok(())
    }

    #[doc(hidden)]
    pub fn finish(self, at: At<'_>) -> Result<T> {
        match self.value {
            Some(value) => Ok(value),
            None => T::absent(at),
        }
    }
}

#[doc(hidden)]
pub fn check_unknown(reads: Reads, index: usize, path: &str, field: &str) -> Result<()> {
    match reads {
        Reads::Lenient => Ok(()),
        Reads::Command if index == 0 || generic_names::is_generic(field) => Ok(()),
        Reads::Command | Reads::Nested => Err(unknown_field(path, field)),
    }
}

/// The kinds of documents that a struct of arguments can read.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// A whole command.
    Command,
    /// A whole command, of which fields that nobody knows are passed over.
    Lenient,
    /// A document inside a command.
    Nested,
}

#[doc(hidden)]
pub fn no_sequences<'s, 'a>(path: &str, sequences: &'s [Sequence<'a>]) -> Result<()> {
    match sequences.first() {
        Some(sequence) => Err(unknown_field(path, sequence.name)),
        None => Ok(()),
    }
}

/// Declares a struct of arguments; see the module.
#[macro_export]
macro_rules! args {
    (@reads command) => { $crate::args::Reads::Command };
    (@reads lenient) => { $crate::args::Reads::Lenient };
    (@reads nested) => { $crate::args::Reads::Nested };
    (@parse $lt:lifetime $top:ident $path:literal $doc:ident $sequences:ident { $( $wire:literal => $field:ident : $type:ty ),* }) => {{
        #[allow(unused_imports)]
        use $crate::args::{Arg as _, At, Slot};
        const READS: $crate::args::Reads = $crate::args!(@reads $top);
        let top = !matches!(READS, $crate::args::Reads::Nested);
        $( let mut $field = Slot::<$type>::default(); )*
        for (index, (name, value)) in $doc.iter().enumerate() {
            let name = if top && index == 0 { $path } else { name };
            let _ = &value;
            match name {
                $( $wire => $field.read(value, At { path: $path, field: $wire })?, )*
                other => $crate::args::check_unknown(READS, index, $path, other)?,
            }
        }
        for sequence in $sequences {
            match sequence.name {
                $( $wire => $field.read_sequence(&sequence.documents, At { path: $path, field: $wire })?, )*
                other => return Err($crate::args::unknown_field($path, other)),
            }
        }
        Ok(Self { $( $field: $field.finish(At { path: $path, field: $wire })? ),* })
    }};
    ($(#[$meta:meta])* $vis:vis struct $name:ident<$lt:lifetime>: $path:literal $top:ident {
        $( $(#[$fmeta:meta])* $wire:literal => $field:ident : $type:ty ),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug)]
        #[allow(missing_docs)]
        $vis struct $name<$lt> { $( $(#[$fmeta])* pub $field: $type ),* }
        impl<$lt> $name<$lt> {
            /// Reads the arguments; errors are MongoDB's.
            pub fn parse(
                doc: nestor_model::RawDoc<$lt>,
                sequences: &[$crate::request::Sequence<$lt>],
            ) -> nestor_model::Result<Self> {
                $crate::args!(@parse $lt $top $path doc sequences { $( $wire => $field : $type ),* })
            }
        }
    };
    ($(#[$meta:meta])* $vis:vis struct $name:ident: $path:literal $top:ident {
        $( $(#[$fmeta:meta])* $wire:literal => $field:ident : $type:ty ),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug)]
        #[allow(missing_docs)]
        $vis struct $name { $( $(#[$fmeta])* pub $field: $type ),* }
        impl $name {
            /// Reads the arguments; errors are MongoDB's.
            pub fn parse<'a>(
                doc: nestor_model::RawDoc<'a>,
                sequences: &[$crate::request::Sequence<'a>],
            ) -> nestor_model::Result<Self> {
                $crate::args!(@parse 'a $top $path doc sequences { $( $wire => $field : $type ),* })
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::{Document, Value, doc};

    args! {
        struct Sample<'a>: "sample" command {
            "sample" => coll: CollectionName<'a>,
            "filter" => filter: Option<RawDoc<'a>>,
            "limit" => limit: Option<NonNegative>,
            "flag" => flag: bool,
            "documents" => documents: Vec<RawDoc<'a>>,
        }
    }

    fn parse(doc: Document) -> String {
        let raw = doc.to_raw();
        match Sample::parse(raw.as_raw(), &[]) {
            Ok(args) => format!(
                "{} {:?} {:?} {} {}",
                args.coll.0,
                args.filter,
                args.limit,
                args.flag,
                args.documents.len()
            ),
            Err(e) => format!("{} {}", e.code().number(), e.message()),
        }
    }

    fn documents() -> Vec<Value> {
        vec![Value::from(doc! {})]
    }

    #[test]
    fn good_arguments() {
        assert_eq!(
            parse(doc! { "SAMPLE": "c", "limit": 2.9, "flag": 1, "lsid": doc! {}, "documents": documents() }),
            "c None Some(InRange(2)) true 1"
        );
        assert_eq!(
            parse(doc! { "sample": "c", "filter": Value::Null, "documents": documents() }),
            "c None None false 1"
        );
    }

    #[test]
    fn errors_are_mongodbs() {
        let cases = [
            (
                doc! { "sample": "c", "foo": 1 },
                "40415 BSON field 'sample.foo' is an unknown field.",
            ),
            (
                doc! { "sample": "c" },
                "40414 BSON field 'sample.documents' is missing but a required field",
            ),
            (
                doc! { "sample": "c", "limit": "x" },
                "14 BSON field 'sample.limit' is the wrong type 'string', expected types '[long, int, decimal, double]'",
            ),
            (
                doc! { "sample": "c", "filter": 1 },
                "14 BSON field 'sample.filter' is the wrong type 'int', expected type 'object'",
            ),
            (
                doc! { "sample": "c", "limit": -1 },
                "2 BSON field 'limit' value must be >= 0, actual value '-1'",
            ),
            (
                doc! { "sample": "c", "flag": true, "flag": true },
                "40413 BSON field 'sample.flag' is a duplicate field",
            ),
            (
                doc! { "sample": "c", "documents": vec![Value::from(1)] },
                "14 BSON field 'sample.documents.0' is the wrong type 'int', expected type 'object'",
            ),
            (doc! { "sample": 1 }, "73 collection name has invalid type int"),
        ];
        for (doc, expected) in cases {
            assert_eq!(parse(doc), expected);
        }
    }

    #[test]
    fn a_sequence_stands_for_its_array() {
        let body = doc! { "sample": "c" }.to_raw();
        let one = doc! { "a": 1 }.to_raw();
        let sequence = Sequence {
            name: "documents",
            documents: vec![one.as_raw(), one.as_raw()],
        };
        let args = Sample::parse(body.as_raw(), &[sequence]).expect("good arguments");
        assert_eq!(args.documents.len(), 2);
    }
}
