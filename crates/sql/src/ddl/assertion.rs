//! CREATE ASSERTION and DROP ASSERTION.

use crate::bind::{entry, object_name};
use crate::catalog::Kind;
use crate::error::{error, fail, unsupported};
use crate::notices::pass_over;
use crate::plan;
use crate::run::tables::{Reading, SessionFacts};
use crate::types::Type;
use crate::write::assertions;
use nestor_database::rights::Action as Right;
use nestor_database::statement::Statement;
use nestor_database::write::{Progress, catalog};
use nestor_model::{CollectionOptions, Namespace, Result, doc};
use nestor_storage::{View as _, WriteSet};
use sqlparser::ast::ObjectName;

fn name_of(name: &ObjectName) -> Result<String> {
    match object_name(name)? {
        (None, name) if !name.is_empty() && !name.contains(['.', '$', '\0']) => Ok(name),
        _ => unsupported("an assertion of this name"),
    }
}

/// CREATE ASSERTION: an entry that holds no documents. Whether it holds is seen before the commit, as it is before others.
pub(super) fn create(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (name, condition): (&ObjectName, &str),
    progress: &mut Progress,
) -> Result<&'static str> {
    let name = name_of(name)?;
    let db = session.database.as_str();
    let ns = entry::assertion(db, &name);
    // As whoever may make collections with such names may.
    session.check_right(&Namespace::new(db, name.as_str()), Right::CreateCollection)?;
    let text = format!("SELECT {condition}");
    let Some(query) = entry::parsed(&text) else {
        return fail("42601", "syntax error: an assertion is a condition in parentheses");
    };
    let options = CollectionOptions::parse(doc! {
        "validator": entry::validator(entry::ASSERTION, &query.to_string()),
        "validationLevel": "strict",
        "validationAction": "error",
    })?;
    let uuid = statement.database.new_uuid();
    statement.atomically(progress, |ws| {
        if ws.catalog().get(&ns).is_some() {
            return fail("42710", format!("assertion \"{name}\" already exists"));
        }
        let (op, _) = statement.operation(None)?;
        {
            let reading = Reading::new(statement, &*ws, &op, session);
            let (binder, bound) = assertions::bound(&reading, &query)?;
            match bound.columns.as_slice() {
                [only] if only.ty == Type::Bool => {}
                [only] => {
                    let message = format!("argument of CHECK must be type boolean, not type {}", only.ty);
                    return fail("42804", message);
                }
                _ => return fail("42601", "syntax error: an assertion is one condition"),
            }
            if !binder.params.is_empty() {
                return fail("42P02", "there is no parameter $1");
            }
            let mut has_table = false;
            for table in &binder.tables {
                match &table.kind {
                    Kind::Collection(ns) if *ns.db == *db => {
                        has_table = true;
                        // It decides what others may write.
                        session.check_right(ns, Right::CollMod)?;
                    }
                    _ => return unsupported(format!("\"{}\" in an assertion", table.name)),
                }
            }
            let mut is_volatile = false;
            plan::map(&bound.plan, 0, &mut |expr, _| {
                is_volatile |= expr.is_volatile();
                expr.clone()
            });
            if is_volatile {
                return fail("42P17", "functions in an assertion must be immutable");
            }
            if !has_table {
                return unsupported("an assertion about no table");
            }
        }
        catalog::create(statement, ws, &ns, uuid, &options)
    })?;
    Ok("CREATE ASSERTION")
}

/// DROP ASSERTION.
pub(super) fn drop(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (names, if_exists): (&[ObjectName], bool),
    progress: &mut Progress,
) -> Result<&'static str> {
    let names: Vec<String> = names.iter().map(name_of).collect::<Result<_>>()?;
    statement.atomically(progress, |ws| {
        for name in &names {
            let db = session.database.as_str();
            session.check_right(&Namespace::new(db, name.as_str()), Right::DropCollection)?;
            let ns = entry::assertion(db, name);
            match ws.catalog().get(&ns).is_some() {
                true => catalog::drop(statement, ws, &ns)?,
                false => pass_over(
                    if_exists,
                    error("42704", format!("assertion \"{name}\" does not exist")),
                )?,
            }
        }
        Ok(())
    })?;
    Ok("DROP ASSERTION")
}

/// Drops the assertions that read a collection.
///
/// Errors: those of the catalog.
pub(super) fn let_go(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    ns: &Namespace,
) -> Result<()> {
    let (op, _) = statement.operation(None)?;
    let mut names: Vec<String> = {
        let reading = Reading::new(statement, &*ws, &op, session);
        let all = assertions::read_by_assertions(&reading, &ns.db).into_iter();
        all.filter(|(_, read)| read == ns).map(|(name, _)| name).collect()
    };
    names.dedup();
    for name in names {
        session.check_right(&Namespace::new(&*ns.db, name.as_str()), Right::DropCollection)?;
        catalog::drop(statement, ws, &entry::assertion(&ns.db, &name))?;
    }
    Ok(())
}
