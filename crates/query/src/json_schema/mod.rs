//! `$jsonSchema`.
//!
//! The dialect is JSON Schema draft 4 with `bsonType`, without `$ref`, `$schema`, `default`,
//! `definitions`, `format`, `id` and the type `integer`, and with `encrypt` and `encryptMetadata`. Source: manual, "$jsonSchema" and
//! "Specify JSON Schema Validation"; JSON Schema draft 4, validation.
//!
//! Reading order: this file (a parsed [`Schema`]), `parse`, `eval`, [`explain`] (which rules failed and
//! why).

mod encrypt;
mod eval;
pub mod explain;
mod operand;
mod parse;
#[cfg(test)]
mod tests;

use self::encrypt::Encrypted;
use crate::regex::Regex;
use crate::types::TypeSet;
use nestor_model::{Document, Str, Value};
use std::collections::HashMap;

/// A parsed schema: the keywords that were given. A keyword about one type says nothing of values of others.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    source: Document,
    title: Option<Str>,
    description: Option<Str>,
    /// `bsonType` or `type`.
    types: Option<TypeSet>,
    allowed: Option<Vec<Value>>,
    minimum: Option<Bound>,
    maximum: Option<Bound>,
    multiple_of: Option<Value>,
    min_length: Option<u64>,
    max_length: Option<u64>,
    pattern: Option<Regex>,
    min_items: Option<u64>,
    max_items: Option<u64>,
    unique_items: bool,
    items: Option<Items>,
    additional_items: Option<Additional>,
    required: Vec<Str>,
    properties: Vec<(Str, Schema)>,
    /// Positions in `properties` by name.
    property_index: HashMap<Str, usize>,
    pattern_properties: Vec<(Regex, Schema)>,
    additional_properties: Option<Additional>,
    min_properties: Option<u64>,
    max_properties: Option<u64>,
    dependencies: Vec<(Str, Dependency)>,
    all_of: Vec<Schema>,
    any_of: Vec<Schema>,
    one_of: Vec<Schema>,
    not: Option<Box<Schema>>,
    /// Values have to be encrypted by their clients.
    encrypted: Option<Encrypted>,
}

/// A limit of numbers.
#[derive(Clone, Debug)]
struct Bound {
    value: Value,
    exclusive: bool,
}

/// The keyword `items`.
#[derive(Clone, Debug)]
enum Items {
    /// One schema for all.
    Each(Box<Schema>),
    /// A schema for each position.
    ByPosition(Vec<Schema>),
}

/// `additionalItems`, `additionalProperties`.
#[derive(Clone, Debug)]
enum Additional {
    Allowed(bool),
    Schema(Box<Schema>),
}

/// The demand that the presence of a property makes.
#[derive(Clone, Debug)]
enum Dependency {
    Properties(Vec<Str>),
    Schema(Box<Schema>),
}

impl Schema {
    /// The schema as it was written.
    pub fn source(&self) -> &Document {
        &self.source
    }

    /// The types the value may have, when that is restricted.
    pub fn types(&self) -> Option<TypeSet> {
        self.types
    }

    /// Properties an object must have.
    pub fn required(&self) -> &[Str] {
        &self.required
    }

    fn property(&self, name: &str) -> Option<&Schema> {
        self.property_index.get(name).map(|at| &self.properties[*at].1)
    }

    /// Schemas of properties, by name.
    pub fn properties(&self) -> &[(Str, Schema)] {
        &self.properties
    }
}
