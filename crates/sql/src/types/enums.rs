//! Enums: values are held as the place of their label, so that they compare by it; documents have the labels.

use super::Type;
use super::names::quoted;
use crate::error::{error, fail};
use nestor_model::{Result, Value};
use sqlparser::ast::{DataType, EnumMember};
use std::sync::Arc;

/// What is added to the OID of an enum for that of its arrays.
const ARRAYS: u32 = 4_100_000_000;
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
        ARRAYS.saturating_add(self.oid)
    }

    /// Its name as statements have it.
    pub fn shown(&self) -> String {
        let parts: Vec<String> = self.name.splitn(2, '.').map(quoted).collect();
        parts.join(".")
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
        let all = first.into_iter().chain(self.labels.iter().cloned());
        DataType::Enum(all.map(EnumMember::Name).collect(), None)
    }

    /// The type that a declaration keeps.
    ///
    /// Errors: 42601 for what is none.
    pub fn read(members: &[EnumMember]) -> Result<Type> {
        let text = |member: &EnumMember| match member {
            EnumMember::Name(text) => Some(text.clone()),
            EnumMember::NamedValue(..) => None,
        };
        let all: Option<Vec<String>> = members.iter().map(text).collect();
        let read = all.and_then(|all| {
            let (oid, rest) = all.split_first()?;
            let (name, labels) = rest.split_first()?;
            Some(Type::Enum(Arc::new(Self {
                oid: oid.strip_prefix('=')?.parse().ok()?,
                name: name.clone(),
                labels: labels.to_vec(),
            })))
        });
        read.ok_or_else(|| error("42601", "syntax error at ENUM: CREATE TYPE makes enums"))
    }
}
