//! CREATE TYPE … AS (columns), and ALTER TYPE of these.

use super::{entries, keys};
use crate::bind::{ident, types};
use crate::error::{error, fail, unsupported};
use crate::notices::pass_over;
use crate::parse::attributes::{AlterAttributes, Change};
use crate::run::tables::SessionFacts;
use crate::types::Type;
use crate::types::composite::{ATTRIBUTES_MAX, Attribute, Composite};
use nestor_database::statement::Statement;
use nestor_database::write::{Progress, catalog};
use nestor_model::Result;
use nestor_storage::WriteSet;
use sqlparser::ast::{DataType, Ident, ObjectName, UserDefinedTypeCompositeAttributeDef};
use std::sync::Arc;

/// An attribute that is declared.
///
/// Errors: 42P16 for types that have no values, those of types.
fn attribute(ws: &WriteSet, session: &SessionFacts, name: &Ident, ty: &DataType) -> Result<Attribute> {
    let (name, mut kept) = (ident(name), ty.clone());
    keys::keep_type(ws, session, &mut kept)?;
    let (ty, modifier) = types::data_type(&kept)?;
    types::check_column(&name, &ty)?;
    Ok(Attribute { name, ty, modifier })
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
        let each = attributes
            .iter()
            .map(|own| attribute(ws, session, &own.name, &own.data_type));
        entries::composite(&Composite {
            oid: 0,
            name: ns.coll.to_string(),
            attributes: each.collect::<Result<_>>()?,
        })
    })
}

/// ALTER TYPE … ATTRIBUTE. Documents have nothing of an attribute that is new; others change as long as no table has the type.
///
/// Errors: 42809, 42701, 42703, 42P16 for a type that would be within itself; 0A000.
pub(super) fn alter(
    statement: &Statement<'_>,
    session: &SessionFacts,
    alter: &AlterAttributes,
    progress: &mut Progress,
) -> Result<&'static str> {
    entries::alter(statement, session, &alter.name, progress, |ws, collection, own| {
        let ns = &collection.ns;
        let Type::Composite(own) = own else {
            return fail("42809", format!("\"{}\" is not a composite type", ns.coll));
        };
        let mut new = (*own).clone();
        for change in &alter.changes {
            changed(ws, session, &mut new, change)?;
        }
        if new.attributes.len() > ATTRIBUTES_MAX {
            return fail("54011", format!("tables can have at most {ATTRIBUTES_MAX} columns"));
        }
        let only_adds = alter.changes.iter().all(|change| matches!(change, Change::Add(..)));
        if let Some((table, _)) = entries::users(ws, &ns.db, own.oid).first().filter(|_| !only_adds) {
            let what = format!("ALTER TYPE of an attribute that documents of table {} have", table.coll);
            return unsupported(what);
        }
        catalog::set_validator(statement, ws, collection, &entries::composite(&new)?)?;
        let new = Type::Composite(Arc::new(new));
        entries::redeclare(statement, session, ws, &ns.db, (&new, false))
    })
}

fn changed(ws: &WriteSet, session: &SessionFacts, own: &mut Composite, change: &Change) -> Result<()> {
    let shown = own.shown();
    let place = |own: &Composite, name: &Ident| {
        let name = ident(name);
        let found = own.attributes.iter().position(|own| own.name == name);
        found.ok_or_else(|| {
            error(
                "42703",
                format!("column \"{name}\" of relation \"{shown}\" does not exist"),
            )
        })
    };
    let check_new = |own: &Composite, name: &str| match own.attribute(name) {
        Some(_) => fail(
            "42701",
            format!("column \"{name}\" of relation \"{shown}\" already exists"),
        ),
        None => Ok(()),
    };
    let declared = |own: &Composite, name: &Ident, ty: &DataType| {
        let new = attribute(ws, session, name, ty)?;
        match new.ty.is_of(own.oid) {
            true => fail(
                "42P16",
                format!("composite type {shown} cannot be made a member of itself"),
            ),
            false => Ok(new),
        }
    };
    match change {
        Change::Add(name, ty) => {
            check_new(own, &ident(name))?;
            let new = declared(own, name, ty)?;
            own.attributes.push(new);
        }
        Change::Drop(name, if_exists) => match place(own, name) {
            Err(missing) => pass_over(*if_exists, missing)?,
            Ok(at) => drop(own.attributes.remove(at)),
        },
        Change::Retype(name, ty) => {
            let at = place(own, name)?;
            own.attributes[at] = declared(own, name, ty)?;
        }
        Change::Rename(from, to) => {
            let (at, to) = (place(own, from)?, ident(to));
            check_new(own, &to)?;
            own.attributes[at].name = to;
        }
    }
    Ok(())
}
