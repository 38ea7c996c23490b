//! CREATE TYPE … AS (columns).

use super::{entries, keys};
use crate::bind::{entry, ident, types};
use crate::error::{fail, unsupported};
use crate::run::tables::SessionFacts;
use crate::types::Type;
use crate::types::composite::{ATTRIBUTES_MAX, Attribute};
use nestor_database::statement::Statement;
use nestor_database::write::Progress;
use nestor_model::{Document, Result};
use sqlparser::ast::{Ident, ObjectName, UserDefinedTypeCompositeAttributeDef};

/// The validator that keeps the declaration of a type.
pub(super) fn validator(name: &str, attributes: &[Attribute]) -> Document {
    let each = attributes.iter().map(|own| {
        let name = Ident::with_quote('"', own.name.as_str());
        format!("{name} {}", own.ty.written(own.modifier))
    });
    let name = Ident::with_quote('"', name);
    let text = format!("CREATE TYPE {name} AS ({})", each.collect::<Vec<_>>().join(", "));
    entry::validator(entry::COMPOSITE, &text)
}

/// CREATE TYPE … AS (columns).
///
/// Errors: 42701 for two of one name, 42P16 for types that have no values, 54011, those of types.
pub(super) fn create(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (name, attributes): (&ObjectName, &[UserDefinedTypeCompositeAttributeDef]),
    progress: &mut Progress,
) -> Result<&'static str> {
    if attributes.len() > ATTRIBUTES_MAX {
        return fail("54011", format!("tables can have at most {ATTRIBUTES_MAX} columns"));
    }
    for (at, own) in attributes.iter().enumerate() {
        let name = ident(&own.name);
        if attributes[..at].iter().any(|other| ident(&other.name) == name) {
            return fail("42701", format!("column \"{name}\" specified more than once"));
        }
        if own.collation.is_some() {
            return unsupported("COLLATE of a column of a type");
        }
    }
    entries::create(statement, session, name, progress, |ws, ns| {
        let each = attributes.iter().map(|own| {
            let (name, mut kept) = (ident(&own.name), own.data_type.clone());
            keys::keep_type(ws, session, &mut kept)?;
            let (ty, modifier) = types::data_type(&kept)?;
            if matches!(ty.element().unwrap_or(&ty), Type::Void | Type::Record | Type::Unknown) {
                return fail("42P16", format!("column \"{name}\" has pseudo-type {ty}"));
            }
            Ok(Attribute { name, ty, modifier })
        });
        Ok(validator(&ns.coll, &each.collect::<Result<Vec<_>>>()?))
    })
}
