//! Tables of documents: what columns a collection or view has.
//!
//! Fields that some of its first and last documents have are columns. A field's type is that of its values; whole numbers of two widths
//! are `bigint`, numbers of different kinds `numeric` if one of them is decimal and `double precision` otherwise, and values of any other
//! mixture, documents included, are `jsonb`. Arrays whose elements have one type are arrays of it. A document that was not looked at may
//! hold a value of another type: reading it is an error that names it, or shows it where the column is text ([`crate::types::stored`]).
//! Conditions are those of a filter on the path: they find values of the column's type, and one of another type only where it is read.

use super::Column;
use crate::types::Type;
use nestor_model::{DocRef, ValueRef};

/// Documents that are looked at, from either end.
pub const SAMPLE: u64 = 100;
/// Columns of a table at most; further fields are in `_doc`.
pub const COLUMNS_MAX: usize = 1600;
/// Levels of structs whose fields are known by their types.
const LEVELS_MAX: usize = 8;

/// What was seen at a path.
#[derive(Debug, Default)]
struct Seen {
    name: String,
    ty: Option<Type>,
    /// Types that do not go together were seen.
    mixed: bool,
    fields: Vec<Seen>,
}

/// Looks at documents one by one.
#[derive(Debug, Default)]
pub struct Inference {
    fields: Vec<Seen>,
}

fn merge(a: &Type, b: &Type) -> Option<Type> {
    if a == b {
        return Some(a.clone());
    }
    let number = |ty: &Type| matches!(ty, Type::Int4 | Type::Int8 | Type::Float8 | Type::Numeric);
    match (a, b) {
        (Type::Array(a), Type::Array(b)) => match (&**a, &**b) {
            // An empty array says nothing of its elements.
            (Type::Unknown, other) | (other, Type::Unknown) => Some(other.clone().array()),
            (a, b) => merge(a, b).map(Type::array),
        },
        (a, b) if number(a) && number(b) => Some(match (a, b) {
            (Type::Numeric, _) | (_, Type::Numeric) => Type::Numeric,
            (Type::Float8, _) | (_, Type::Float8) => Type::Float8,
            _ => Type::Int8,
        }),
        _ => None,
    }
}

/// The type of a value of a document; `None` when it says nothing.
pub fn type_of(value: ValueRef<'_>) -> Option<Type> {
    Some(match value {
        ValueRef::Missing | ValueRef::Null | ValueRef::Undefined => return None,
        ValueRef::Bool(_) => Type::Bool,
        ValueRef::Int32(_) => Type::Int4,
        ValueRef::Int64(_) => Type::Int8,
        ValueRef::Double(_) => Type::Float8,
        ValueRef::Decimal128(_) => Type::Numeric,
        ValueRef::String(_) => Type::Text,
        ValueRef::ObjectId(_) => Type::ObjectId,
        ValueRef::DateTime(_) => Type::Timestamptz,
        ValueRef::Binary { subtype: 3 | 4, bytes } if bytes.len() == 16 => Type::Uuid,
        ValueRef::Binary { .. } => Type::Bytea,
        ValueRef::Array(items) => {
            let mut element: Option<Type> = None;
            for item in items.iter() {
                let Some(ty) = type_of(item) else { continue };
                element = match element {
                    None => Some(ty),
                    Some(so_far) => match merge(&so_far, &ty) {
                        Some(ty) => Some(ty),
                        None => return Some(Type::Jsonb),
                    },
                };
            }
            match element {
                // Arrays of documents, and of arrays, have no type of their own.
                Some(Type::Jsonb | Type::Array(_)) => Type::Jsonb,
                other => other.unwrap_or(Type::Unknown).array(),
            }
        }
        _ => Type::Jsonb,
    })
}

impl Seen {
    fn note(&mut self, value: ValueRef<'_>, level: usize) {
        if let Some(ty) = type_of(value) {
            match &self.ty {
                None => self.ty = Some(ty),
                Some(so_far) => match merge(so_far, &ty) {
                    Some(ty) => self.ty = Some(ty),
                    None => (self.ty, self.mixed) = (Some(Type::Jsonb), true),
                },
            }
            if self.mixed {
                self.ty = Some(Type::Jsonb);
            }
        }
        if let (ValueRef::Document(doc), true) = (value, level < LEVELS_MAX) {
            note(&mut self.fields, doc, level + 1);
        }
    }

    fn column(self) -> Column {
        let ty = match self.ty {
            None => Type::Jsonb,
            Some(Type::Array(element)) if *element == Type::Unknown => Type::Jsonb,
            Some(ty) => ty,
        };
        Column {
            not_null: self.name == "_id",
            fields: self.fields.into_iter().map(Self::column).collect(),
            is_key: self.name == "_id",
            ..Column::new(&self.name, ty)
        }
    }
}

fn note(fields: &mut Vec<Seen>, doc: DocRef<'_>, level: usize) {
    for (name, value) in doc.iter() {
        let at = match fields.iter().position(|field| field.name == name) {
            Some(at) => at,
            None if fields.len() >= COLUMNS_MAX => continue,
            None => {
                fields.push(Seen {
                    name: name.to_owned(),
                    ..Seen::default()
                });
                fields.len() - 1
            }
        };
        fields[at].note(value, level);
    }
}

impl Inference {
    /// Looks at a document.
    pub fn note(&mut self, doc: DocRef<'_>) {
        note(&mut self.fields, doc, 0);
    }

    /// The columns.
    pub fn columns(self) -> Vec<Column> {
        self.fields.into_iter().map(Seen::column).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::{Document, Value, doc};

    fn types(docs: &[Document]) -> String {
        let mut inference = Inference::default();
        docs.iter().for_each(|doc| inference.note(doc.as_ref()));
        let shown = inference
            .columns()
            .into_iter()
            .map(|column| format!("{} {}", column.name, column.ty));
        shown.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn numbers_widen_and_other_mixtures_are_jsonb() {
        let docs = [
            doc! { "a": 1, "b": 1, "c": 1, "d": "x", "e": Value::Null },
            doc! { "a": 2i64, "b": 1.5, "c": "x", "d": "y" },
        ];
        assert_eq!(types(&docs), "a bigint, b double precision, c jsonb, d text, e jsonb");
    }

    #[test]
    fn arrays_of_one_type_are_arrays() {
        let array = |items: Vec<Value>| Value::from(items);
        let docs = [
            doc! { "a": array(vec![]), "b": array(vec![1.into(), "x".into()]), "c": array(vec![]) },
            doc! { "a": array(vec![1.into(), 2.into()]) },
        ];
        assert_eq!(types(&docs), "a integer[], b jsonb, c jsonb");
    }
}
