//! Composite types: rows whose columns are declared. A value is a document that has all fields in their order, each as documents hold
//! values of its type; a table stores the same document, so that MQL and other paths see a struct.

use super::cast::cast;
use super::compare::compare as compare_values;
use super::enums::{MADE_ARRAYS, list, shown};
use super::output::{self, quote_field};
use super::{Type, input, record, stored};
use crate::error::{Field, error, fail, with};
use nestor_model::value::{Array, Value};
use nestor_model::{Document, Error, Result, ValueRef};
use sqlparser::ast::DataType;
use std::cmp::Ordering;
use std::sync::Arc;

/// Attributes of a composite type at most, as in PostgreSQL.
pub const ATTRIBUTES_MAX: usize = 1600;

/// Bytes of a type as declarations keep it, with all that it is made of, at most: what is made of it has it as often as it names it.
const WRITTEN_BYTES_MAX: usize = 64 << 10;
/// How deep types are within each other at most.
const DEPTH_MAX: usize = 16;

/// A column of a composite type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Attribute {
    /// Its name, which is the field of documents.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// The modifier of its type; -1 for none.
    pub modifier: i32,
}

impl Attribute {
    /// What a value has for it.
    pub fn of<'v>(&self, value: &ValueRef<'v>) -> ValueRef<'v> {
        match value {
            ValueRef::Document(doc) => doc.get(&self.name).unwrap_or(ValueRef::Missing),
            _ => ValueRef::Missing,
        }
    }
}

/// A composite type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Composite {
    /// Its OID, which is that of its relation as well.
    pub oid: u32,
    /// Its name, with its schema if that is not `public`.
    pub name: String,
    /// Its attributes, in their order.
    pub attributes: Vec<Attribute>,
}

fn malformed(text: &str, detail: &str) -> Error {
    let error = error("22P02", format!("malformed record literal: \"{text}\""));
    with(error, &[(Field::Detail, detail)])
}

impl Composite {
    /// The type of a row whose columns have names, which nobody has declared.
    pub fn of_row_type(attributes: Vec<Attribute>) -> Self {
        Self {
            oid: Type::Record.oid(),
            name: Type::Record.name(),
            attributes,
        }
    }

    /// The type of a table's rows, which its columns are asked for where it is used.
    pub fn of_table(name: &str) -> Self {
        Self {
            oid: 0,
            name: name.to_owned(),
            attributes: Vec::new(),
        }
    }

    /// The table of whose rows it is the type, while nobody has asked for its columns.
    pub fn table(&self) -> Option<&str> {
        (self.oid == 0).then_some(self.name.as_str())
    }

    /// Whether nobody has declared it.
    pub fn is_of_row(&self) -> bool {
        self.oid == Type::Record.oid()
    }

    /// The OID of its arrays.
    pub fn array_oid(&self) -> u32 {
        match self.is_of_row() {
            true => Type::Record.array().oid(),
            false => MADE_ARRAYS.saturating_add(self.oid),
        }
    }

    /// Its name as statements have it.
    pub fn shown(&self) -> String {
        shown(&self.name)
    }

    /// How many composite types are within each other here.
    fn depth(&self) -> usize {
        let each = self
            .attributes
            .iter()
            .map(|own| match own.ty.element().unwrap_or(&own.ty) {
                Type::Composite(inner) => inner.depth(),
                _ => 0,
            });
        1 + each.max().unwrap_or(0)
    }

    /// Refuses a type that declarations could not keep. What it is made of was not refused.
    ///
    /// Errors: 54000, 54001.
    pub fn check_size(&self) -> Result<()> {
        if self.depth() > DEPTH_MAX {
            return fail(
                "54001",
                format!("composite types are within each other {DEPTH_MAX} times at most"),
            );
        }
        let mut bytes = 0;
        for own in &self.attributes {
            bytes += own.name.len() + own.ty.written(own.modifier).len();
            if bytes > WRITTEN_BYTES_MAX {
                let message =
                    format!("a composite type takes {WRITTEN_BYTES_MAX} bytes at most with all that it is made of");
                return fail("54000", message);
            }
        }
        Ok(())
    }

    /// An attribute by its name.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|own| own.name == name)
    }

    /// The value that has these, one for each attribute.
    fn of(&self, values: Vec<Value>) -> Value {
        let mut out = Document::new();
        for (own, value) in self.attributes.iter().zip(values) {
            out.push(own.name.as_str(), stored::write(&own.ty, value));
        }
        out.into()
    }

    /// The value that has what `value` gives for each attribute, fitted to its modifier.
    ///
    /// Errors: those of `value` and of modifiers.
    pub fn filled(&self, value: impl Fn(&Attribute) -> Result<Value>) -> Result<Value> {
        let each = self.attributes.iter().map(|own| {
            let value = value(own)?;
            cast(value, &own.ty, &own.ty, own.modifier, false)
        });
        Ok(self.of(each.collect::<Result<_>>()?))
    }

    /// What a value has for each attribute.
    pub fn values(&self, value: &Value) -> Vec<Value> {
        let whole = value.as_ref();
        let each = self.attributes.iter().map(|own| {
            let found = own.of(&whole);
            // What is held was read, or made of values of these types.
            stored::read(&own.ty, found, &own.name).unwrap_or(Value::Null)
        });
        each.collect()
    }

    /// The value that a document is; fields that are no attributes are left out.
    ///
    /// Errors: those of [`stored::read`].
    pub fn read(&self, value: ValueRef<'_>, path: &str) -> Result<Value> {
        let each = self.attributes.iter().map(|own| {
            let found = own.of(&value);
            stored::read(&own.ty, found, &format!("{path}.{}", own.name))
        });
        Ok(self.of(each.collect::<Result<_>>()?))
    }

    /// The value that a row is whose columns are not declared.
    ///
    /// Errors: 42846 for more or fewer columns than attributes; those of casts.
    pub fn of_row(&self, items: &Array, explicit: bool) -> Result<Value> {
        self.check_width(items.len())?;
        let each = self.attributes.iter().zip(items.iter()).map(|(own, item)| {
            let (from, value) = record::field(item.to_value());
            cast(value, &from, &own.ty, own.modifier, explicit)
        });
        Ok(self.of(each.collect::<Result<_>>()?))
    }

    /// Whether a row has as many columns as there are attributes.
    ///
    /// Errors: 42846.
    pub fn check_width(&self, columns: usize) -> Result<()> {
        let detail = match columns.cmp(&self.attributes.len()) {
            Ordering::Equal => return Ok(()),
            Ordering::Less => "Input has too few columns.",
            Ordering::Greater => "Input has too many columns.",
        };
        let error = error("42846", format!("cannot cast type record to {}", self.shown()));
        Err(with(error, &[(Field::Detail, detail)]))
    }

    /// A value as a row whose columns are not declared.
    pub fn to_row(&self, value: &Value) -> Value {
        let values = self.attributes.iter().zip(self.values(value));
        Value::Array(Array::new(
            values.map(|(own, value)| record::held(&own.ty, value)).collect(),
        ))
    }

    /// A value as JSON has it.
    pub fn to_json(&self, value: &Value) -> Value {
        let mut out = Document::new();
        for (own, value) in self.attributes.iter().zip(self.values(value)) {
            out.push(own.name.as_str(), stored::to_json(&own.ty, value));
        }
        out.into()
    }

    /// Whether no attribute of a value is null, or, if not `none`, whether all are.
    pub fn is_null(&self, value: &Value, none: bool) -> bool {
        let whole = value.as_ref();
        let mut each = self.attributes.iter().map(|own| own.of(&whole).is_nullish());
        match none {
            true => !each.any(|is_null| is_null),
            false => each.all(|is_null| is_null),
        }
    }

    /// The order of two values: that of the first attributes in which they differ. Nulls are last.
    pub fn compare(&self, a: &Value, b: &Value) -> Ordering {
        let pairs = self.values(a).into_iter().zip(self.values(b));
        for (own, (a, b)) in self.attributes.iter().zip(pairs) {
            let behind = own.ty.is_constrained().then(|| own.ty.clone().plain());
            let ty = behind.as_ref().unwrap_or(&own.ty);
            let order = match (&a, &b) {
                (Value::Null, Value::Null) => Ordering::Equal,
                (Value::Null, _) => Ordering::Greater,
                (_, Value::Null) => Ordering::Less,
                (a, b) => compare_values(ty, a, b),
            };
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    }

    /// A value as text.
    pub fn format(&self, value: &Value) -> String {
        let fields = self
            .attributes
            .iter()
            .zip(self.values(value))
            .map(|(own, value)| match value {
                Value::Null => String::new(),
                value => quote_field(&output::text(&own.ty, &value)),
            });
        format!("({})", fields.collect::<Vec<_>>().join(","))
    }

    /// The value that a text is.
    ///
    /// Errors: 22P02 for what is no row of so many columns; those of reading the columns.
    pub fn parse(&self, text: &str) -> Result<Value> {
        let wrong = |detail: &str| Err(malformed(text, detail));
        let Some(inside) = text.trim_start().strip_prefix('(') else {
            return wrong("Missing left parenthesis.");
        };
        let mut chars = inside.chars();
        let mut values = Vec::with_capacity(self.attributes.len());
        for (at, own) in self.attributes.iter().enumerate() {
            let mut word: Option<String> = None;
            let mut quoted = false;
            let end = loop {
                let Some(c) = chars.next() else {
                    return wrong("Unexpected end of input.");
                };
                match c {
                    ',' | ')' if !quoted => break c,
                    '"' if quoted && chars.as_str().starts_with('"') => {
                        chars.next();
                        word.get_or_insert_default().push('"');
                    }
                    '"' => {
                        quoted = !quoted;
                        word.get_or_insert_default();
                    }
                    '\\' => match chars.next() {
                        Some(c) => word.get_or_insert_default().push(c),
                        None => return wrong("Unexpected end of input."),
                    },
                    c => word.get_or_insert_default().push(c),
                }
            };
            let is_last = at + 1 == self.attributes.len();
            match (end, is_last) {
                (',', true) => return wrong("Too many columns."),
                (')', false) => return wrong("Too few columns."),
                _ => {}
            }
            values.push(match word {
                None => Value::Null,
                Some(word) => cast(input::text(&own.ty, &word)?, &own.ty, &own.ty, own.modifier, false)?,
            });
        }
        if self.attributes.is_empty() && chars.next() != Some(')') {
            return wrong("Too many columns.");
        }
        match chars.as_str().trim_start().is_empty() {
            true => Ok(self.of(values)),
            false => wrong("Junk after right parenthesis."),
        }
    }

    /// Writes a value in binary format.
    pub fn to_binary(&self, value: &Value, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.attributes.len() as i32).to_be_bytes());
        for (own, value) in self.attributes.iter().zip(self.values(value)) {
            out.extend_from_slice(&own.ty.oid().to_be_bytes());
            output::sized(&own.ty, &value, out);
        }
    }

    /// The value of a binary format; `None` for bytes that have another form.
    pub fn of_binary(&self, mut bytes: &[u8]) -> Option<Result<Value>> {
        let rest = &mut bytes;
        let count = i32::from_be_bytes(input::take(rest)?);
        if usize::try_from(count).ok()? != self.attributes.len() {
            let message = format!("wrong number of columns: {count}, expected {}", self.attributes.len());
            return Some(fail("42804", message));
        }
        let mut values = Vec::with_capacity(self.attributes.len());
        for (at, own) in self.attributes.iter().enumerate() {
            let sent = u32::from_be_bytes(input::take(rest)?);
            if sent != own.ty.oid() {
                let message = format!(
                    "binary data has type {sent} instead of expected {} ({}) in record column {}",
                    own.ty.oid(),
                    own.ty,
                    at + 1
                );
                return Some(fail("42804", message));
            }
            let length = i32::from_be_bytes(input::take(rest)?);
            if length == -1 {
                values.push(Value::Null);
                continue;
            }
            let (item, after) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            *rest = after;
            let value = input::binary(&own.ty, item);
            match value.and_then(|value| cast(value, &own.ty, &own.ty, own.modifier, false)) {
                Ok(value) => values.push(value),
                Err(error) => return Some(Err(error)),
            }
        }
        rest.is_empty().then(|| Ok(self.of(values)))
    }

    /// The type as declarations keep it, which are read without the rest of the catalog: `ENUM('(OID', 'name', names and types of
    /// attributes)`. Types have no quotes there, whose doubling does not nest: `~1` stands for one and `~0` for `~`.
    pub fn written(&self) -> DataType {
        let first = [format!("({}", self.oid), self.name.clone()];
        let own = self.attributes.iter();
        let each = own.flat_map(|own| {
            let ty = own.ty.written(own.modifier).replace('~', "~0").replace('\'', "~1");
            [own.name.clone(), ty]
        });
        list(first.into_iter().chain(each))
    }

    /// The type that a declaration keeps, whose texts are these; `types` reads those of attributes.
    pub fn declared(texts: &[String], types: impl Fn(&str) -> Result<(Type, i32)>) -> Option<Type> {
        let [oid, name, attributes @ ..] = texts else {
            return None;
        };
        let each = attributes.chunks_exact(2).map(|pair| {
            let text = pair[1].replace("~1", "'").replace("~0", "~");
            let (ty, modifier) = types(&text).ok()?;
            Some(Attribute {
                name: pair[0].clone(),
                ty,
                modifier,
            })
        });
        Some(Type::Composite(Arc::new(Self {
            oid: oid.strip_prefix('(')?.parse().ok()?,
            name: name.clone(),
            attributes: each.collect::<Option<_>>()?,
        })))
    }
}
