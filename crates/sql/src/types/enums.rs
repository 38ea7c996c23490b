//! Enums: values are held as the place of their label, so that they compare by it; documents have the labels.

use super::Type;
use super::names::quoted;
use crate::error::fail;
use nestor_model::{Result, Value};
use sqlparser::ast::{DataType, EnumMember};
use std::sync::Arc;

/// What is added to the OID of a type that somebody has made for that of its arrays.
pub const MADE_ARRAYS: u32 = 4_100_000_000;
/// The labels of an enum at most.
pub const LABELS_MAX: usize = 10_000;

/// An enum.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Enum {
    /// Its OID.
    pub oid: u32,
    /// Its name, with its schema if that is not `public`.
    pub name: String,
    /// Its labels, in their order.
    pub labels: Vec<String>,
}

impl Enum {
    /// The OID of its arrays.
    pub fn array_oid(&self) -> u32 {
        MADE_ARRAYS.saturating_add(self.oid)
    }

    /// Its name as statements have it.
    pub fn shown(&self) -> String {
        shown(&self.name)
    }

    /// The value that a label is.
    ///
    /// Errors: 22P02.
    pub fn value(&self, label: &str) -> Result<Value> {
        let place = self.labels.iter().position(|own| own == label);
        match place.and_then(|place| i32::try_from(place).ok()) {
            Some(place) => Ok(Value::Int32(place)),
            None => fail(
                "22P02",
                format!("invalid input value for enum {}: \"{label}\"", self.shown()),
            ),
        }
    }

    /// The label of a value.
    pub fn label(&self, value: &Value) -> &str {
        let place = match value {
            Value::Int32(place) => usize::try_from(*place).ok(),
            _ => None,
        };
        place
            .and_then(|place| self.labels.get(place))
            .map_or("", String::as_str)
    }

    /// The type as declarations of tables keep it, which are read without the rest of the catalog: `ENUM('=OID', 'name', labels)`.
    pub fn written(&self) -> DataType {
        let first = [format!("={}", self.oid), self.name.clone()];
        list(first.into_iter().chain(self.labels.iter().cloned()))
    }

    /// The type that a declaration keeps, whose texts are these.
    pub fn declared(texts: &[String]) -> Option<Type> {
        let [oid, name, labels @ ..] = texts else { return None };
        Some(Type::Enum(Arc::new(Self {
            oid: oid.strip_prefix('=')?.parse().ok()?,
            name: name.clone(),
            labels: labels.to_vec(),
        })))
    }
}

/// What stands between a quote and another, or a backslash, in the lists that declarations keep: printed otherwise the quote would be
/// taken for one that is doubled already.
const APART: &str = "\u{1}'";

/// The list that declarations keep of such texts.
pub fn list(texts: impl Iterator<Item = String>) -> DataType {
    let apart = |text: String| {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            match c == '\'' && out.ends_with(['\'', '\\']) {
                true => out.push_str(APART),
                false => out.push(c),
            }
        }
        EnumMember::Name(out)
    };
    DataType::Enum(texts.map(apart).collect(), None)
}

/// The texts that such a list is of, if it is one.
pub fn texts(members: &[EnumMember]) -> Option<Vec<String>> {
    let text = |member: &EnumMember| match member {
        EnumMember::Name(text) => Some(text.replace(APART, "'")),
        EnumMember::NamedValue(..) => None,
    };
    members.iter().map(text).collect()
}

/// The name of a type that somebody has made, with its schema if that is not `public`, as statements have it.
pub fn shown(name: &str) -> String {
    let parts: Vec<String> = name.splitn(2, '.').map(quoted).collect();
    parts.join(".")
}
