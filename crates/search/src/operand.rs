//! Reading operands: documents whose fields have types, and that may have no other fields. A field that is null is one that is left out.

use nestor_model::{ArrayRef, DocRef, Error, ErrorCode, Result, ValueRef};
use std::ops::RangeInclusive;

/// The error of the server that MongoDB runs beside itself for search.
pub(crate) fn refused(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::UnknownError, message)
}

/// Returns [`refused`] with a formatted message.
macro_rules! refuse {
    ($($arg:tt)*) => {
        return Err($crate::operand::refused(format!($($arg)*)))
    };
}
pub(crate) use refuse;

/// A document that is an operand, and how errors call it.
#[derive(Clone)]
pub(crate) struct Operand<'a> {
    name: String,
    doc: DocRef<'a>,
}

impl<'a> Operand<'a> {
    pub(crate) fn new(name: impl Into<String>, doc: DocRef<'a>) -> Self {
        Self { name: name.into(), doc }
    }

    /// The document that a value is.
    pub(crate) fn of(name: impl Into<String>, value: ValueRef<'a>) -> Result<Self> {
        let name = name.into();
        match value {
            ValueRef::Document(doc) => Ok(Self { name, doc }),
            _ => refuse!("\"{name}\" must be a document, not {}", value.bson_type().alias()),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn doc(&self) -> DocRef<'a> {
        self.doc
    }

    /// How errors call one of its fields.
    pub(crate) fn name_of(&self, field: &str) -> String {
        match self.name.is_empty() {
            true => field.to_owned(),
            false => format!("{}.{field}", self.name),
        }
    }

    /// Refuses fields that are not among these.
    pub(crate) fn only(&self, known: &[&str]) -> Result<()> {
        match self.doc.iter().find(|(name, _)| !known.contains(name)) {
            Some((name, _)) => refuse!("unrecognized field \"{}\"", self.name_of(name)),
            None => Ok(()),
        }
    }

    pub(crate) fn get(&self, field: &str) -> Option<ValueRef<'a>> {
        self.doc.get(field).filter(|value| !value.is_nullish())
    }

    pub(crate) fn required(&self, field: &str) -> Result<ValueRef<'a>> {
        match self.get(field) {
            Some(value) => Ok(value),
            None => refuse!("\"{}\" is required", self.name_of(field)),
        }
    }

    fn typed<T>(&self, field: &str, what: &str, read: impl Fn(ValueRef<'a>) -> Option<T>) -> Result<Option<T>> {
        let Some(value) = self.get(field) else {
            return Ok(None);
        };
        match read(value) {
            Some(read) => Ok(Some(read)),
            None => refuse!(
                "\"{}\" must be {what}, not {}",
                self.name_of(field),
                value.bson_type().alias()
            ),
        }
    }

    pub(crate) fn string(&self, field: &str) -> Result<Option<&'a str>> {
        self.typed(field, "a string", |value| match value {
            ValueRef::String(text) => Some(text),
            _ => None,
        })
    }

    pub(crate) fn required_string(&self, field: &str) -> Result<&'a str> {
        self.required(field)?;
        Ok(self.string(field)?.unwrap_or_default())
    }

    /// One of the values that a string may have.
    pub(crate) fn choice<T: Copy>(&self, field: &str, choices: &[(&str, T)]) -> Result<Option<T>> {
        let Some(text) = self.string(field)? else {
            return Ok(None);
        };
        match choices.iter().find(|(name, _)| *name == text) {
            Some((_, choice)) => Ok(Some(*choice)),
            None => {
                let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
                refuse!("\"{}\" must be one of [{}]", self.name_of(field), names.join(", "))
            }
        }
    }

    pub(crate) fn boolean(&self, field: &str) -> Result<Option<bool>> {
        self.typed(field, "a boolean", |value| match value {
            ValueRef::Bool(truth) => Some(truth),
            _ => None,
        })
    }

    /// A whole number of 32 bits; decimals are none.
    pub(crate) fn integer(&self, field: &str) -> Result<Option<i32>> {
        self.typed(field, "an integer of 32 bits", |value| match value {
            ValueRef::Int32(number) => Some(number),
            ValueRef::Int64(number) => i32::try_from(number).ok(),
            ValueRef::Double(number) if number.fract() == 0.0 => {
                let fits = number >= f64::from(i32::MIN) && number <= f64::from(i32::MAX);
                fits.then_some(number as i32)
            }
            _ => None,
        })
    }

    /// A whole number within a range.
    pub(crate) fn integer_within(&self, field: &str, range: RangeInclusive<i32>) -> Result<Option<i32>> {
        let number = self.integer(field)?;
        match number {
            Some(number) if !range.contains(&number) && *range.end() == i32::MAX => {
                refuse!("\"{}\" must be at least {}", self.name_of(field), range.start())
            }
            Some(number) if !range.contains(&number) => refuse!(
                "\"{}\" must be within bounds [{}, {}]",
                self.name_of(field),
                range.start(),
                range.end()
            ),
            number => Ok(number),
        }
    }

    /// A number that is no decimal.
    pub(crate) fn number(&self, field: &str) -> Result<Option<f64>> {
        self.typed(field, "a number", double)
    }

    pub(crate) fn document(&self, field: &str) -> Result<Option<Operand<'a>>> {
        match self.get(field) {
            Some(value) => Operand::of(self.name_of(field), value).map(Some),
            None => Ok(None),
        }
    }

    pub(crate) fn required_document(&self, field: &str) -> Result<Operand<'a>> {
        Operand::of(self.name_of(field), self.required(field)?)
    }

    pub(crate) fn array(&self, field: &str) -> Result<Option<ArrayRef<'a>>> {
        self.typed(field, "an array", |value| match value {
            ValueRef::Array(items) => Some(items),
            _ => None,
        })
    }

    /// The documents of an array, or one that stands for itself.
    pub(crate) fn documents(&self, field: &str) -> Result<Option<Vec<Operand<'a>>>> {
        let Some(value) = self.get(field) else {
            return Ok(None);
        };
        let name = self.name_of(field);
        let ValueRef::Array(items) = value else {
            return Ok(Some(vec![Operand::of(name, value)?]));
        };
        if items.is_empty() {
            refuse!("\"{name}\" cannot be empty");
        }
        let each = items.iter().enumerate();
        each.map(|(at, item)| Operand::of(format!("{name}[{at}]"), item))
            .collect::<Result<_>>()
            .map(Some)
    }

    /// One string or several.
    pub(crate) fn strings(&self, field: &str) -> Result<Option<Vec<&'a str>>> {
        let Some(value) = self.get(field) else {
            return Ok(None);
        };
        let name = self.name_of(field);
        let string = |value: ValueRef<'a>| match value {
            ValueRef::String(text) => Ok(text),
            _ => refuse!("\"{name}\" must be a string, or an array of them"),
        };
        let ValueRef::Array(items) = value else {
            return Ok(Some(vec![string(value)?]));
        };
        if items.is_empty() {
            refuse!("\"{name}\" cannot be empty");
        }
        items.iter().map(string).collect::<Result<_>>().map(Some)
    }
}

/// A number that is no decimal.
pub(crate) fn double(value: ValueRef<'_>) -> Option<f64> {
    match value {
        ValueRef::Int32(number) => Some(f64::from(number)),
        ValueRef::Int64(number) => Some(number as f64),
        ValueRef::Double(number) => Some(number),
        _ => None,
    }
}
