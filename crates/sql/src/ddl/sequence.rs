//! CREATE SEQUENCE and DROP SEQUENCE.

use super::{hold_schema, name_of, namespace, new_namespace};
use crate::bind::entry::{self, Object};
use crate::bind::types::data_type;
use crate::error::{fail, unsupported};
use crate::run::tables::SessionFacts;
use crate::types::Type;
use nestor_database::rights::Action as Right;
use nestor_database::statement::Statement;
use nestor_database::write::sequence::Key;
use nestor_database::write::{Progress, catalog, comments, sequence};
use nestor_model::{CollectionOptions, Namespace, Result, doc};
use nestor_storage::{Collection, View as _, WriteSet};
use sqlparser::ast::{ObjectName, Statement as Ast};

/// CREATE SEQUENCE: an entry that holds no documents.
pub(super) fn create(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ast: &Ast,
    progress: &mut Progress,
) -> Result<&'static str> {
    let Ast::CreateSequence {
        temporary,
        if_not_exists,
        name,
        data_type: ty,
        sequence_options,
        owned_by,
    } = ast
    else {
        return fail("XX000", "a sequence was to be made of another statement");
    };
    let is_owned = owned_by
        .as_ref()
        .is_some_and(|owner| owner.to_string().to_lowercase() != "none");
    if *temporary || is_owned {
        return unsupported("a clause of this CREATE SEQUENCE");
    }
    let ns = new_namespace(statement, session, name)?;
    session.check_right(&ns, Right::CreateCollection)?;
    let ty = match ty {
        None => Type::Int8,
        Some(ty) => data_type(ty)?.0,
    };
    entry::counting(sequence_options, &ty)?;
    let mut named = ast.clone();
    if let Ast::CreateSequence { name, .. } = &mut named {
        *name = name_of(statement.current_view().view(), &ns);
    }
    let text = named.to_string();
    entry::check_text(&text)?;
    let validator = entry::validator(entry::SEQUENCE, &text);
    let options = CollectionOptions::parse(
        doc! { "validator": validator, "validationLevel": "strict", "validationAction": "error" },
    )?;
    let uuid = statement.database.new_uuid();
    statement.atomically(progress, |ws| match ws.catalog().get(&ns) {
        Some(_) if *if_not_exists => Ok(()),
        Some(_) => fail("42P07", format!("relation \"{}\" already exists", ns.coll)),
        None => {
            hold_schema(statement, ws, &ns);
            catalog::create(statement, ws, &ns, uuid, &options)
        }
    })?;
    Ok("CREATE SEQUENCE")
}

/// DROP SEQUENCE.
pub(super) fn drop(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (names, if_exists): (&[ObjectName], bool),
    progress: &mut Progress,
) -> Result<&'static str> {
    let all: Vec<Namespace> = names
        .iter()
        .map(|name| namespace(statement, session, name))
        .collect::<Result<_>>()?;
    all.iter()
        .try_for_each(|ns| session.check_right(ns, Right::DropCollection))?;
    statement.atomically(progress, |ws| {
        for ns in &all {
            let Some(found) = ws.catalog().get(ns).cloned() else {
                match if_exists {
                    true => continue,
                    false => return fail("42P01", format!("sequence \"{}\" does not exist", ns.coll)),
                }
            };
            if !matches!(entry::of(&found), Some(Object::Sequence(..))) {
                return fail("42809", format!("\"{}\" is not a sequence", ns.coll));
            }
            let_go(statement, ws, &found)?;
        }
        Ok(())
    })?;
    Ok("DROP SEQUENCE")
}

/// Drops a sequence with what was said of it and its numbers.
///
/// Errors: those of the catalog.
pub(super) fn let_go(statement: &Statement<'_>, ws: &mut WriteSet, found: &Collection) -> Result<()> {
    let ns = &found.ns;
    catalog::drop(statement, ws, ns)?;
    comments::forget(statement, ws, &ns.db, found.uuid)?;
    let key = Key {
        collection: found.uuid,
        column: "",
    };
    sequence::forget(statement, ws, &ns.db, &[key])
}
