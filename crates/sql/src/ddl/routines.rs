//! CREATE FUNCTION and DROP FUNCTION, of functions in SQL.

use super::keys;
use crate::bind::{Binder, entry, made};
use crate::catalog::routines::Routine;
use crate::error::{self, error, fail, unsupported};
use crate::notices::pass_over;
use crate::parse;
use crate::run::tables::{Reading, SessionFacts};
use crate::types::Type;
use nestor_database::rights::Action as Right;
use nestor_database::statement::Statement;
use nestor_database::write::{Progress, catalog};
use nestor_model::{CollectionOptions, Namespace, Result, doc};
use nestor_storage::{View, WriteSet};
use sqlparser::ast::{
    CreateFunction, CreateFunctionBody, DataType, DropBehavior, DropFunction, Expr, FunctionDesc, Ident, ObjectName,
    Value as Literal,
};
use std::sync::Arc;

/// Gives the types of a function the form that declarations keep.
///
/// Errors: those of types, but for one that there is not: it may be a table, whose rows are returned.
fn keep_types(statement: &Statement<'_>, session: &SessionFacts, kept: &mut CreateFunction) -> Result<()> {
    let read = statement.read_view()?;
    let types = kept.args.iter_mut().flatten().map(|arg| &mut arg.data_type);
    for ty in types.chain(made::returned(&mut kept.return_type)) {
        keep_type(read.view(), session, ty)?;
    }
    Ok(())
}

fn keep_type(view: &dyn View, session: &SessionFacts, ty: &mut DataType) -> Result<()> {
    match keys::keep_type(view, session, ty) {
        Err(error) if error::state(&error) != "42704" => Err(error),
        _ => Ok(()),
    }
}

/// A function as its entry keeps it.
pub(super) fn kept(mut create: CreateFunction) -> CreateFunction {
    if let Some(CreateFunctionBody::AsBeforeOptions {
        body: Expr::Value(body),
        ..
    }) = &mut create.function_body
        && let Literal::SingleQuotedString(source) = &mut body.value
    {
        // The other form is printed otherwise than it is where quotes follow each other.
        body.value = Literal::EscapedStringLiteral(std::mem::take(source));
    }
    create
}

/// CREATE FUNCTION: an entry that holds no documents.
pub(super) fn create(
    statement: &Statement<'_>,
    session: &SessionFacts,
    create: &CreateFunction,
    progress: &mut Progress,
) -> Result<&'static str> {
    let mut kept = create.clone();
    keep_types(statement, session, &mut kept)?;
    let routine = Arc::new(made::routine(&kept, 0)?);
    let db = session.database.as_str();
    // As whoever may make collections with such names may.
    session.check_right(&Namespace::new(db, routine.name.as_str()), Right::CreateCollection)?;
    let ns = entry::function(db, &routine.key());
    kept.or_replace = false;
    kept.name = ObjectName::from(vec![Ident::with_quote('"', routine.name.as_str())]);
    let kept = self::kept(kept);
    let text = kept.to_string();
    entry::check_text(&text)?;
    let options = CollectionOptions::parse(doc! {
        "validator": entry::validator(entry::FUNCTION, &text),
        "validationLevel": "strict",
        "validationAction": "error",
    })?;
    let uuid = statement.database.new_uuid();
    statement.atomically(progress, |ws| {
        if session
            .settings
            .get("check_function_bodies")
            .is_none_or(|on| on != "off")
        {
            let (op, _) = statement.operation(None)?;
            let reading = Reading::new(statement, &*ws, &op, session);
            Binder::new(&reading, Vec::new()).check_routine(&routine)?;
        }
        let Some(found) = ws.catalog().get(&ns).cloned() else {
            return catalog::create(statement, ws, &ns, uuid, &options);
        };
        if !create.or_replace {
            return fail(
                "42723",
                format!("function \"{}\" already exists with same argument types", routine.name),
            );
        }
        if let Some(entry::Object::Function(before)) = entry::of(&found) {
            if before.result(&Type::to_string) != routine.result(&Type::to_string) {
                return fail("42P13", "cannot change return type of existing function");
            }
            let renamed = before
                .args
                .iter()
                .zip(&routine.args)
                .find(|(a, b)| a.name.is_some() && a.name != b.name);
            if let Some((before, _)) = renamed {
                let name = before.name.as_deref().unwrap_or_default();
                return fail("42P13", format!("cannot change name of input parameter \"{name}\""));
            }
            let lost = before
                .args
                .iter()
                .zip(&routine.args)
                .any(|(a, b)| a.default.is_some() && b.default.is_none());
            if lost {
                return fail("42P13", "cannot remove parameter defaults from existing function");
            }
        }
        ws.set_options(found.id, options.clone())?;
        Ok(())
    })?;
    Ok("CREATE FUNCTION")
}

/// The functions that a name and types, if these are said, mean.
fn meant(ws: &WriteSet, db: &str, described: &FunctionDesc) -> Result<Vec<Arc<Routine>>> {
    let name = made::last(&described.name)?;
    let mut all = entry::functions(ws, db);
    all.retain(|routine| routine.name == name);
    if let Some(args) = &described.args {
        let types = args
            .iter()
            .map(|arg| crate::bind::types::data_type(&arg.data_type).map(|(ty, _)| ty));
        let types = types.collect::<Result<Vec<_>>>()?;
        all.retain(|routine| routine.args.iter().map(|arg| &arg.ty).eq(&types));
    }
    Ok(all)
}

/// What is declared with a call of a function of this name: its entry, or nothing.
fn user(ws: &WriteSet, db: &str, name: &str) -> Option<String> {
    let database = ws.catalog().database(db)?;
    let calls = |text: &str| parse::calls(text).iter().any(|own| own == name);
    let mut all = database.collections();
    let found = all.find(|collection| {
        let view = entry::query_of(collection).is_some_and(calls);
        let declared = !matches!(entry::of(collection), Some(entry::Object::Function(_)))
            && entry::text(collection).is_some_and(|text| calls(&text));
        view || declared
    });
    found.map(|collection| collection.ns.coll.to_string())
}

/// DROP FUNCTION.
pub(super) fn drop(
    statement: &Statement<'_>,
    session: &SessionFacts,
    dropped: &DropFunction,
    progress: &mut Progress,
) -> Result<&'static str> {
    let db = session.database.as_str();
    statement.atomically(progress, |ws| {
        for described in &dropped.func_desc {
            let mut described = described.clone();
            for arg in described.args.iter_mut().flatten() {
                keep_type(&*ws, session, &mut arg.data_type)?;
            }
            let described = &described;
            let found = meant(ws, db, described)?;
            let name = made::last(&described.name)?;
            let routine = match found.as_slice() {
                [only] => only.clone(),
                [] => {
                    let types = described.args.iter().flatten();
                    let types = types.map(|arg| match crate::bind::types::data_type(&arg.data_type) {
                        Ok((ty, _)) => ty.to_string(),
                        Err(_) => arg.data_type.to_string(),
                    });
                    let shown = match &described.args {
                        Some(_) => format!(
                            "function {name}({}) does not exist",
                            types.collect::<Vec<_>>().join(", ")
                        ),
                        None => format!("could not find a function named \"{name}\""),
                    };
                    pass_over(dropped.if_exists, error("42883", shown))?;
                    continue;
                }
                _ => return fail("42725", format!("function name \"{name}\" is not unique")),
            };
            session.check_right(&Namespace::new(db, routine.name.as_str()), Right::DropCollection)?;
            if let Some(user) = user(ws, db, &name) {
                if dropped.drop_behavior == Some(DropBehavior::Cascade) {
                    return unsupported("DROP FUNCTION … CASCADE of a function that something depends on");
                }
                let shown = routine.shown().replace(", ", ",");
                let told = error(
                    "2BP01",
                    format!("cannot drop function {shown} because other objects depend on it"),
                );
                let detail = format!("{user} depends on function {shown}");
                return Err(error::with(told, &[(error::Field::Detail, &detail)]));
            }
            catalog::drop(statement, ws, &entry::function(db, &routine.key()))?;
        }
        Ok(())
    })?;
    Ok("DROP FUNCTION")
}
