//! CREATE TYPE … AS ENUM, ALTER TYPE and DROP TYPE.

use super::alter;
use super::checked;
use super::entries::{self, found, function_with, made_of, redeclare, users};
use crate::bind::declared::Declared;
use crate::bind::entry;
use crate::catalog::partial;
use crate::catalog::schemas;
use crate::error::{self, error, fail, unsupported};
use crate::notices::{self, pass_over};
use crate::run::tables::SessionFacts;
use crate::types::Type;
use crate::types::composite::Composite;
use crate::types::domain::Domain;
use crate::types::enums::{Enum, LABELS_MAX};
use nestor_database::rights::Action as Right;
use nestor_database::statement::Statement;
use nestor_database::write::{Progress, catalog, comments};
use nestor_model::{Document, Namespace, Result};
use nestor_storage::{Collection, View, WriteSet};
use sqlparser::ast::{
    AlterType, AlterTypeAddValue, AlterTypeAddValuePosition, AlterTypeOperation, AlterTypeRenameValue, Ident,
    ObjectName,
};
use std::sync::Arc;

/// Bytes of a label at most.
const LABEL_BYTES_MAX: usize = 63;

fn check_labels(labels: &[String]) -> Result<()> {
    for (at, label) in labels.iter().enumerate() {
        if label.len() > LABEL_BYTES_MAX {
            return fail("42602", format!("invalid enum label \"{label}\""));
        }
        if labels[..at].contains(label) {
            return fail("23505", format!("enum label \"{label}\" used more than once"));
        }
    }
    match labels.len() > LABELS_MAX {
        true => fail("54000", format!("an enum has at most {LABELS_MAX} labels")),
        false => Ok(()),
    }
}

fn validator(name: &str, labels: &[String]) -> Document {
    let quoted = labels.iter().map(|label| format!("'{}'", label.replace('\'', "''")));
    let name = Ident::with_quote('"', name);
    let text = format!("CREATE TYPE {name} AS ENUM ({})", quoted.collect::<Vec<_>>().join(", "));
    entry::validator(entry::ENUM, &text)
}

/// CREATE TYPE … AS ENUM.
pub(super) fn create(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (name, labels): (&ObjectName, &[Ident]),
    progress: &mut Progress,
) -> Result<&'static str> {
    let labels: Vec<String> = labels.iter().map(|label| label.value.clone()).collect();
    check_labels(&labels)?;
    entries::create(statement, session, name, progress, |_, ns| {
        Ok(validator(&ns.coll, &labels))
    })
}

/// Gives a type another name, and tells whatever has it.
fn become_named(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    (collection, own): (&Arc<Collection>, Type),
    to: &Namespace,
) -> Result<()> {
    catalog::rename(statement, ws, collection, to, (false, false))?;
    let name = to.coll.to_string();
    let new = match own {
        Type::Enum(own) => Type::Enum(Arc::new(Enum { name, ..(*own).clone() })),
        Type::Composite(own) => Type::Composite(Arc::new(Composite { name, ..(*own).clone() })),
        Type::Domain(own) => Type::Domain(Arc::new(Domain { name, ..(*own).clone() })),
        other => other,
    };
    redeclare(statement, session, ws, &to.db, (&new, false))
}

/// ALTER TYPE and ALTER DOMAIN … SET SCHEMA, where the type gets a name in another schema.
///
/// Errors: 42704, 42710, 42809.
pub(super) fn set_schema(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (name, to): (&ObjectName, &Namespace),
    of_domain: bool,
    progress: &mut Progress,
) -> Result<()> {
    entries::alter(statement, session, name, progress, |ws, collection, own| {
        if of_domain && !matches!(own, Type::Domain(_)) {
            return fail("42809", format!("\"{}\" is not a domain", collection.ns.coll));
        }
        if collection.ns == *to {
            return Ok(());
        }
        if ws.catalog().get(to).is_some() {
            let (schema, name) = schemas::split(&*ws, to);
            return fail(
                "42710",
                format!("type \"{name}\" already exists in schema \"{schema}\""),
            );
        }
        become_named(statement, session, ws, (collection, own), to)
    })?;
    Ok(())
}

/// ALTER TYPE.
pub(super) fn alter(
    statement: &Statement<'_>,
    session: &SessionFacts,
    alter: &AlterType,
    progress: &mut Progress,
) -> Result<&'static str> {
    entries::alter(statement, session, &alter.name, progress, |ws, collection, own| {
        let ns = &collection.ns;
        if let AlterTypeOperation::Rename(rename) = &alter.operation {
            let (schema, _) = schemas::split(&*ws, ns);
            let name = crate::bind::ident(&rename.new_name);
            let to = checked(Namespace::new(&*ns.db, schemas::collection(schema, &name)))?;
            if ws.catalog().get(&to).is_some() || Type::of_name(&name).is_some() {
                return fail("42710", format!("type \"{name}\" already exists"));
            }
            return become_named(statement, session, ws, (collection, own), &to);
        }
        let Type::Enum(own) = own else {
            return fail("42809", format!("\"{}\" is not an enum", ns.coll));
        };
        let mut new = (*own).clone();
        let mut turns = false;
        match &alter.operation {
            AlterTypeOperation::AddValue(AlterTypeAddValue {
                if_not_exists,
                value,
                position,
            }) => {
                if new.labels.contains(&value.value) {
                    let taken = error("42710", format!("enum label \"{}\" already exists", value.value));
                    return pass_over(*if_not_exists, taken);
                }
                let at = |label: &Ident| place(&own, &label.value, "22023");
                let at = match position {
                    None => new.labels.len(),
                    Some(AlterTypeAddValuePosition::Before(label)) => at(label)?,
                    Some(AlterTypeAddValuePosition::After(label)) => at(label)? + 1,
                };
                new.labels.insert(at, value.value.clone());
                check_labels(&new.labels)?;
            }
            AlterTypeOperation::RenameValue(AlterTypeRenameValue { from, to }) => {
                let at = place(&own, &from.value, "22023")?;
                if new.labels.contains(&to.value) {
                    return fail("42710", format!("enum label \"{}\" already exists", to.value));
                }
                to.value.clone_into(&mut new.labels[at]);
                check_labels(&new.labels)?;
                turns = true;
            }
            AlterTypeOperation::Rename(_) => {}
        }
        check_predicates(ws, &ns.db, &own, turns)?;
        catalog::set_validator(statement, ws, collection, &validator(&ns.coll, &new.labels))?;
        redeclare(statement, session, ws, &ns.db, (&Type::Enum(Arc::new(new)), turns))
    })
}

/// Refuses a change of labels that the predicate of an index has: lists of labels by any, single ones by another name.
///
/// Errors: 0A000.
fn check_predicates(ws: &WriteSet, db: &str, own: &Enum, renames: bool) -> Result<()> {
    let database = ws.catalog().database(db);
    for collection in database.into_iter().flat_map(|database| database.collections()) {
        let declared = Declared::of_collection(collection);
        let columns = declared.iter().flat_map(|declared| &declared.columns);
        let paths: Vec<&str> = columns
            .filter(|column| column.ty.oid() == own.oid)
            .map(|column| column.path.as_str())
            .collect();
        let mut filters = collection
            .indexes
            .iter()
            .filter_map(|index| index.partial_filter.as_ref());
        if !paths.is_empty() && filters.any(|filter| partial::compares(filter.as_ref(), &paths, renames)) {
            return unsupported("a change of labels that the predicate of an index compares");
        }
    }
    Ok(())
}

fn place(own: &Enum, label: &str, state: &str) -> Result<usize> {
    let place = own.labels.iter().position(|own| own == label);
    place.ok_or_else(|| error(state, format!("\"{label}\" is not an existing enum label")))
}

/// DROP TYPE, or DROP of types of one kind. With CASCADE columns of the type go with it.
pub(super) fn drop(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (names, if_exists, cascades): (&[ObjectName], bool, bool),
    (is_kind, kind): (&dyn Fn(&Type) -> bool, &str),
    progress: &mut Progress,
) -> Result<&'static str> {
    statement.atomically(progress, |ws| {
        for name in names {
            let ns = super::namespace_in(&*ws, session, name)?;
            if ws.catalog().get(&ns).is_none() && if_exists {
                pass_over(true, error("42704", format!("type \"{}\" does not exist", ns.coll)))?;
                continue;
            }
            let (collection, own) = found(ws, &ns)?;
            if !is_kind(&own) {
                return fail("42809", format!("\"{}\" is not a {kind}", own.name()));
            }
            session.check_right(&ns, Right::DropCollection)?;
            let_go(statement, session, ws, (&collection, &own), cascades)?;
        }
        Ok(())
    })?;
    Ok("DROP TYPE")
}

/// Drops a type, with `cascades` from the tables as well that have columns of it.
///
/// Errors: 2BP01; those of dropping columns; 0A000 for an attribute of another type that would go with it.
pub(super) fn let_go(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    (collection, own): (&Collection, &Type),
    cascades: bool,
) -> Result<()> {
    let ns = &collection.ns;
    let needed = |detail: String| {
        let message = format!("cannot drop type {own} because other objects depend on it");
        let hint = "Use DROP ... CASCADE to drop the dependent objects too.";
        let fields = [(error::Field::Detail, detail.as_str()), (error::Field::Hint, hint)];
        Err(error::with(error("2BP01", message), &fields))
    };
    for (made, other) in made_of(ws, &ns.db, own.oid()) {
        match (&other, cascades) {
            (Type::Domain(_), true) => {
                // One that is over another one that went is gone already.
                if ws.catalog().get(&made.ns).is_some() {
                    let_go(statement, session, ws, (&made, &other), true)?;
                }
            }
            (_, true) => return unsupported("CASCADE to a column of a composite type"),
            (Type::Domain(_), false) => return needed(format!("type {other} depends on type {own}")),
            (_, false) => return needed(format!("a column of composite type {other} depends on type {own}")),
        }
    }
    if let Some(function) = function_with(ws, &ns.db, own.oid()) {
        return match cascades {
            true => unsupported("CASCADE to a function"),
            false => needed(format!("function {} depends on type {own}", function.shown())),
        };
    }
    for (table, places) in users(ws, &ns.db, own.oid()) {
        session.check_right(&table, Right::CollMod)?;
        let Some(found) = alter::found(ws, &table)? else {
            continue;
        };
        let names = places
            .iter()
            .map(|at| crate::bind::ident(&found.create.columns[*at].name));
        let names: Vec<String> = names.collect();
        if let (Some(name), false) = (names.first(), cascades) {
            return needed(format!("column {name} of table {} depends on type {own}", table.coll));
        }
        statement.check_plain(&found.collection, "SQL does not change its rows")?;
        let edit = alter::without_columns(&found, &places)?;
        alter::declare(statement, session, ws, &found, edit)?;
        for name in names {
            let message = format!("drop cascades to column {name} of table {}", table.coll);
            notices::raise("NOTICE", error("00000", message));
        }
    }
    catalog::drop(statement, ws, ns)?;
    comments::forget(statement, ws, &ns.db, collection.uuid)
}
