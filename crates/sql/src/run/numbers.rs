//! What sequences there are, and the numbers that a session got from them.

use crate::bind::entry::{self, Object};
use crate::catalog::system::{RELATIONS, SEQUENCES};
use crate::catalog::{IdentityKind, schemas};
use crate::types::Type;
use nestor_database::write::sequence::{Counting, Key};
use nestor_model::Namespace;
use nestor_storage::Collection;
use std::collections::HashMap;

/// The numbers that a session got.
#[derive(Clone, Debug, Default)]
pub struct Got {
    /// The last one of each sequence, by its name.
    pub of: HashMap<String, i64>,
    /// The sequence that gave the last one.
    pub last: Option<String>,
}

impl Got {
    /// Notes that a sequence gave a number.
    pub fn note(&mut self, name: &str, number: i64) {
        self.of.insert(name.to_owned(), number);
        self.last = Some(name.to_owned());
    }
}

/// A sequence.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// Its OID.
    pub oid: u32,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// How it counts.
    pub counting: Counting,
    /// The type of its numbers.
    pub ty: Type,
    /// The table whose column counts with it, and the number of the column.
    pub owner: Option<(u32, usize)>,
    /// It is a part of an IDENTITY column.
    pub is_identity: bool,
    /// The collection and the column that it goes with, if it stands for itself.
    pub owned_by: Option<(String, String)>,
    /// Where it is.
    pub ns: Namespace,
    uuid: [u8; 16],
    column: String,
}

impl Sequence {
    /// The column that it is part of; empty for one that stands for itself.
    pub fn column(&self) -> &str {
        &self.column
    }

    /// The name that no other sequence of the database has.
    pub fn full_name(&self) -> String {
        schemas::collection(&self.schema, &self.name)
    }

    /// Which one it is.
    pub fn key(&self) -> Key<'_> {
        Key {
            collection: self.uuid,
            column: &self.column,
        }
    }
}

/// The sequences of a collection: itself, or those of its columns.
pub fn of_collection(collection: &Collection) -> Vec<Sequence> {
    let sequence = |(schema, name): (&str, String), counting: &Counting, ty: &Type| Sequence {
        schema: schema.to_owned(),
        oid: RELATIONS.saturating_add(collection.id.0),
        name,
        counting: *counting,
        ty: ty.clone(),
        owner: None,
        is_identity: false,
        owned_by: None,
        ns: collection.ns.clone(),
        uuid: collection.uuid,
        column: String::new(),
    };
    match entry::of(collection) {
        Some(Object::Sequence(counting, ty, schema, owner)) => {
            let schema = schema.as_deref().unwrap_or(schemas::PUBLIC);
            let name = match schema {
                schemas::PUBLIC => collection.ns.coll.to_string(),
                schema => collection.ns.coll.chars().skip(schema.chars().count() + 1).collect(),
            };
            let owned_by = owner.clone();
            vec![Sequence {
                owned_by,
                ..sequence((schema, name), counting, ty)
            }]
        }
        Some(Object::Table(declared, table)) => {
            let each = (1..).zip(&declared.columns).filter_map(|(at, column)| {
                let identity = column.identity?;
                let own = column.sequence_of(&table.name);
                let place = u32::try_from(at).unwrap_or(u32::MAX);
                Some(Sequence {
                    // The tables that there can be have 1600 columns at most.
                    oid: SEQUENCES
                        .saturating_add(collection.id.0.saturating_mul(1601))
                        .saturating_add(place),
                    owner: Some((RELATIONS.saturating_add(collection.id.0), at)),
                    column: column.name.clone(),
                    is_identity: identity.kind != IdentityKind::Serial,
                    ..sequence((&table.schema, own), &identity.counting, &column.ty)
                })
            });
            each.collect()
        }
        Some(
            Object::Schema | Object::Type(_) | Object::Materialized(_) | Object::Assertion(_) | Object::Function(_),
        )
        | None => Vec::new(),
    }
}

/// 2200H.
pub fn exhausted(name: &str, counting: &Counting) -> nestor_model::Error {
    let (end, at) = match counting.increment > 0 {
        true => ("maximum", counting.max),
        false => ("minimum", counting.min),
    };
    crate::error::error(
        "2200H",
        format!("nextval: reached {end} value of sequence \"{name}\" ({at})"),
    )
}
