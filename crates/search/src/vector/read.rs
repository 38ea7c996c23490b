//! The options of definitions and queries, which are read strictly: nothing is taken for something else, and null is as if not given.

use nestor_model::number::whole_number;
use nestor_model::{DocRef, Result, ValueRef, bail};

/// An option, if it is given.
pub fn given<'a>(options: DocRef<'a>, name: &str) -> Option<ValueRef<'a>> {
    options.get(name).filter(|value| !value.is_nullish())
}

/// Refuses other options than these.
pub fn known(what: &str, options: DocRef<'_>, names: &[&str]) -> Result<()> {
    match options.iter().find(|(name, _)| !names.contains(name)) {
        Some((name, _)) => bail!(UnknownError, "unrecognized field \"{name}\" of {what}"),
        None => Ok(()),
    }
}

/// A text.
pub fn text<'a>(name: &str, value: Option<ValueRef<'a>>) -> Result<Option<&'a str>> {
    match value {
        Some(ValueRef::String(text)) => Ok(Some(text)),
        Some(value) => bail!(UnknownError, "\"{name}\" must be a string, not {}", kind(value)),
        None => Ok(None),
    }
}

/// A boolean.
pub fn flag(name: &str, value: Option<ValueRef<'_>>) -> Result<Option<bool>> {
    match value {
        Some(ValueRef::Bool(flag)) => Ok(Some(flag)),
        Some(value) => bail!(UnknownError, "\"{name}\" must be a boolean, not {}", kind(value)),
        None => Ok(None),
    }
}

/// A document.
pub fn document<'a>(name: &str, value: Option<ValueRef<'a>>) -> Result<Option<DocRef<'a>>> {
    match value {
        Some(ValueRef::Document(document)) => Ok(Some(document)),
        Some(value) => bail!(UnknownError, "\"{name}\" must be a document, not {}", kind(value)),
        None => Ok(None),
    }
}

/// A whole number of 32 bits, also as a double.
pub fn whole(name: &str, value: Option<ValueRef<'_>>) -> Result<Option<i64>> {
    let number = match value {
        Some(value @ (ValueRef::Int32(_) | ValueRef::Int64(_) | ValueRef::Double(_))) => whole_number(value),
        Some(value) => bail!(UnknownError, "\"{name}\" must be an integer, not {}", kind(value)),
        None => return Ok(None),
    };
    match number {
        Some(number) if i32::try_from(number).is_ok() => Ok(Some(number)),
        _ => bail!(UnknownError, "\"{name}\" must be a whole number of 32 bits"),
    }
}

/// How the type of a value is called.
pub fn kind(value: ValueRef<'_>) -> &'static str {
    value.bson_type().alias()
}
