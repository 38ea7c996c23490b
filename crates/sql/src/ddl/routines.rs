//! CREATE and DROP of functions and procedures.

use super::keys;
use crate::bind::{Binder, entry, made, object_name};
use crate::catalog::routines::Routine;
use crate::catalog::schemas;
use crate::error::{self, error, fail, unsupported};
use crate::notices::{self, pass_over};
use crate::parse;
use crate::parse::assigned::Assigned;
use crate::parse::routines::{Change, Says};
use crate::parse::trigger::Trigger;
use crate::parse::triggers::ANY_ROUTINE;
use crate::run::tables::{Reading, SessionFacts};
use crate::settings;
use crate::types::Type;
use nestor_database::rights::Action as Right;
use nestor_database::statement::Statement;
use nestor_database::write::{Progress, catalog};
use nestor_model::{CollectionOptions, Error, Namespace, Result, doc};
use nestor_storage::{View, WriteSet};
use sqlparser::ast::{
    ArgMode, CreateFunction, CreateFunctionBody, DataType, DropBehavior, DropFunction, Expr,
    FunctionDefinitionSetParam, FunctionDesc, FunctionSetValue, Ident, ObjectName, Statement as Ast, Value as Literal,
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

/// Gives the settings of a function the form that declarations keep: those of the session where it says so.
///
/// Errors: those of [`settings::for_later`].
fn keep_settings(session: &SessionFacts, kept: &mut CreateFunction) -> Result<()> {
    let mut all = Vec::new();
    for clause in std::mem::take(&mut kept.set_params) {
        assign(session, &mut all, &Assigned::of_clause(&clause))?;
    }
    kept.set_params = clauses(&all);
    Ok(())
}

fn clauses(config: &[(String, String)]) -> Vec<FunctionDefinitionSetParam> {
    config.iter().map(|(name, value)| clause(name, value)).collect()
}

/// Changes the settings of a function.
///
/// Errors: those of [`settings::for_later`], 0A000 for a role.
fn assign(session: &SessionFacts, all: &mut Vec<(String, String)>, assigned: &Assigned) -> Result<()> {
    if assigned.name.as_deref() == Some("role") {
        return unsupported("SET role of a function");
    }
    let value = settings::assigned((&session.settings, session.is_superuser()), assigned)?;
    settings::put(all, assigned.name.as_deref(), value);
    Ok(())
}

/// The clause of CREATE FUNCTION that says it, as the entry of a function keeps it: with texts, whatever was written.
fn clause(name: &str, value: &str) -> FunctionDefinitionSetParam {
    let parts = name.split('.').map(|part| Ident::with_quote('"', part));
    let values = match schemas::listed(value).filter(|_| name == "search_path") {
        Some(names) => names,
        None => vec![value.to_owned()],
    };
    let each = values
        .into_iter()
        .map(|own| Expr::Value(Literal::EscapedStringLiteral(own).into()));
    FunctionDefinitionSetParam {
        name: ObjectName::from(parts.collect::<Vec<_>>()),
        value: FunctionSetValue::Values(each.collect()),
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

/// The schema that a routine is made in; `None` stands for `public`.
///
/// Errors: 3F000.
fn schema_of(view: &dyn View, session: &SessionFacts, name: &ObjectName) -> Result<Option<String>> {
    let exists = |schema: &str| schema == schemas::PUBLIC || schemas::exists(view, &session.database, schema);
    let schema = match object_name(name)?.0 {
        Some(schema) if schema == schemas::TEMPORARY => return Ok(Some(session.temporary_schema())),
        Some(schema) if !exists(&schema) => {
            return fail("3F000", format!("schema \"{schema}\" does not exist"));
        }
        Some(schema) => schema,
        None => {
            let path = session.path();
            let first = path.into_iter().find(|schema| exists(schema));
            first.unwrap_or_else(|| schemas::PUBLIC.to_owned())
        }
    };
    Ok((schema != schemas::PUBLIC).then_some(schema))
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
    keep_settings(session, &mut kept)?;
    let db = session.database.as_str();
    let schema = schema_of(statement.current_view().view(), session, &kept.name)?;
    let mut routine = made::routine(&kept, 0)?;
    routine.schema.clone_from(&schema);
    let routine = Arc::new(routine);
    let ns = entry::function(db, schema.as_deref(), &routine.key());
    match &schema {
        // A session's own.
        Some(schema) if schemas::is_temporary(schema) => session.temporary.use_it(),
        // As whoever may make collections with such names may.
        Some(schema) => {
            let name = schemas::collection(schema, &routine.name);
            session.check_right(&Namespace::new(db, name), Right::CreateCollection)?;
        }
        None => session.check_right(&Namespace::new(db, routine.name.as_str()), Right::CreateCollection)?,
    }
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
            let within = settings::under(session, &routine.config)?;
            let reading = Reading::new(statement, &*ws, &op, &within);
            let mut plain = (*routine).clone();
            plain.config.clear();
            Binder::new(&reading, Vec::new()).check_routine(&Arc::new(plain))?;
        }
        let Some(found) = ws.catalog().get(&ns).cloned() else {
            return catalog::create(statement, ws, &ns, uuid, &options);
        };
        if !create.or_replace {
            let kind = match &found_kind(&found) {
                Some(before) => before.kind().to_lowercase(),
                None => "function".to_owned(),
            };
            return fail(
                "42723",
                format!("{kind} \"{}\" already exists with same argument types", routine.name),
            );
        }
        if let Some(before) = found_kind(&found) {
            let before_ref = &*before;
            if before.is_procedure != routine.is_procedure {
                let kind = before.kind().to_lowercase();
                let detail = format!("\"{}\" is a {kind}.", routine.name);
                let told = error("42809", "cannot change routine kind");
                return Err(error::with(told, &[(error::Field::Detail, &detail)]));
            }
            if before.result(&Type::to_string) != routine.result(&Type::to_string) {
                return Err(drop_first("cannot change return type of existing function", &before));
            }
            let renamed = before
                .args
                .iter()
                .zip(&routine.args)
                .find(|(a, b)| a.name.is_some() && a.name != b.name);
            if let Some((before, _)) = renamed {
                let name = before.name.as_deref().unwrap_or_default();
                let message = format!("cannot change name of input parameter \"{name}\"");
                return Err(drop_first(&message, before_ref));
            }
            let lost = before
                .args
                .iter()
                .zip(&routine.args)
                .any(|(a, b)| a.default.is_some() && b.default.is_none());
            if lost {
                let message = "cannot remove parameter defaults from existing function";
                return Err(drop_first(message, before_ref));
            }
        }
        ws.set_options(found.id, options.clone())?;
        Ok(())
    })?;
    Ok(match routine.is_procedure {
        true => "CREATE PROCEDURE",
        false => "CREATE FUNCTION",
    })
}

/// 42P13 for what takes a function's place and may not.
fn drop_first(message: &str, before: &Routine) -> nestor_model::Error {
    let kind = before.kind();
    let hint = format!("Use DROP {kind} {} first.", before.shown().replace(", ", ","));
    error::with(error("42P13", message), &[(error::Field::Hint, &hint)])
}

/// The routine that an entry is.
fn found_kind(collection: &nestor_storage::Collection) -> Option<Arc<Routine>> {
    match entry::of(collection) {
        Some(entry::Object::Function(routine)) => Some(routine.clone()),
        _ => None,
    }
}

/// The functions that a name and types, if these are said, mean.
fn meant(ws: &WriteSet, session: &SessionFacts, described: &FunctionDesc) -> Result<Vec<Arc<Routine>>> {
    let name = made::plain(&described.name)?;
    let (op_schema, _) = object_name(&described.name)?;
    let mut all = entry::functions(ws, &session.database);
    let path = match op_schema.as_deref() {
        Some(schemas::TEMPORARY) => vec![session.temporary_schema()],
        Some(schema) => vec![schema.to_owned()],
        None => session.path(),
    };
    let is_in = |own: &Routine, schema: &String| own.schema.as_deref().unwrap_or(schemas::PUBLIC) == schema;
    all.retain(|own| own.name == name && path.iter().any(|schema| is_in(own, schema)));
    if let Some(args) = &described.args {
        let given = args.iter().filter(|arg| arg.mode != Some(ArgMode::Out));
        let types = given.map(|arg| crate::bind::made::known(&arg.data_type));
        let types = types.collect::<Result<Vec<_>>>()?;
        all.retain(|routine| routine.args.iter().map(|arg| &arg.ty).eq(&types));
    }
    Ok(all)
}

/// The one routine that a statement means, which it says is of a kind: `function`, `procedure` or `routine`; why there is none, where there is none.
///
/// Errors: 42725 for several. In the place of the routine: 42883.
fn only(
    ws: &WriteSet,
    session: &SessionFacts,
    (kind, described): (&str, &FunctionDesc),
) -> Result<std::result::Result<Arc<Routine>, Error>> {
    let mut described = described.clone();
    for arg in described.args.iter_mut().flatten() {
        keep_type(ws, session, &mut arg.data_type)?;
    }
    let found = meant(ws, session, &described)?;
    let name = made::plain(&described.name)?;
    match found.as_slice() {
        [only] => Ok(Ok(only.clone())),
        [] => {
            let types = described.args.iter().flatten();
            let types = types.map(|arg| match crate::bind::types::data_type(&arg.data_type) {
                Ok((ty, _)) => ty.to_string(),
                Err(_) => arg.data_type.to_string(),
            });
            let shown = match &described.args {
                Some(_) => format!("{kind} {name}({}) does not exist", types.collect::<Vec<_>>().join(", ")),
                None => format!("could not find a {kind} named \"{name}\""),
            };
            Ok(Err(error("42883", shown)))
        }
        _ => {
            let told = error("42725", format!("{kind} name \"{name}\" is not unique"));
            let hint = format!("Specify the argument list to select the {kind} unambiguously.");
            Err(error::with(told, &[(error::Field::Hint, &hint)]))
        }
    }
}

/// The same, where there has to be one.
///
/// Errors: 42883, 42725 for several, 42809 for one of another kind.
fn the_one(ws: &WriteSet, session: &SessionFacts, (kind, described): (&str, &FunctionDesc)) -> Result<Arc<Routine>> {
    let routine = only(ws, session, (kind, described))??;
    if kind != "routine" && routine.is_procedure != (kind == "procedure") {
        return fail(
            "42809",
            format!("{} is not a {kind}", routine.shown().replace(", ", ",")),
        );
    }
    Ok(routine)
}

/// The entry of the routine that a statement means.
///
/// Errors: 42883, 42725, 42809.
pub(super) fn entry_of(ws: &WriteSet, session: &SessionFacts, named: (&str, &FunctionDesc)) -> Result<Namespace> {
    let routine = the_one(ws, session, named)?;
    Ok(entry::function(
        &session.database,
        routine.schema.as_deref(),
        &routine.key(),
    ))
}

/// ALTER FUNCTION: the entry has another name, or says something else.
///
/// Errors: 42883, 42725, 42809, 42723 where there is one of the new name, 3F000; 0A000 for another name of what something declared calls.
pub(super) fn alter(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (kind, described, change): (&str, &FunctionDesc, &Change),
    progress: &mut Progress,
) -> Result<&'static str> {
    let db = session.database.as_str();
    statement.atomically(progress, |ws| {
        let before = the_one(ws, session, (kind, described))?;
        let from = entry::function(db, before.schema.as_deref(), &before.key());
        let own = |schema: Option<&str>, name: &str| match schema {
            Some(schema) => Namespace::new(db, schemas::collection(schema, name)),
            None => Namespace::new(db, name),
        };
        session.check_right(&own(before.schema.as_deref(), &before.name), Right::CollMod)?;
        let Some(found) = ws.catalog().get(&from).cloned() else {
            return fail("42883", format!("{kind} {} does not exist", before.shown()));
        };
        let text = entry::text(&found).unwrap_or_default();
        let Some(Ast::CreateFunction(mut create)) = parse::parse(&text)?.pop() else {
            return fail("XX000", "the entry of a function says none");
        };
        let mut schema = before.schema.clone();
        match change {
            Change::Rename(to) => create.name = ObjectName::from(vec![Ident::with_quote('"', crate::bind::ident(to))]),
            Change::Schema(to) => {
                let to = crate::bind::ident(to);
                if to != schemas::PUBLIC && !schemas::exists(&*ws, db, &to) {
                    return fail("3F000", format!("schema \"{to}\" does not exist"));
                }
                schema = (to != schemas::PUBLIC).then_some(to);
            }
            Change::Says(all) => {
                for said in all {
                    match said {
                        Says::Behavior(behavior) => create.behavior = Some(behavior.clone()),
                        Says::Nulls(nulls) => create.called_on_null = Some(nulls.clone()),
                        Says::Parallel(parallel) => create.parallel = Some(parallel.clone()),
                        Says::Set(assigned) => {
                            let mut all = made::routine(&create, 0)?.config;
                            assign(session, &mut all, assigned)?;
                            create.set_params = clauses(&all);
                        }
                        Says::Usual => {}
                    }
                }
            }
        }
        let routine = made::routine(&create, 0)?;
        let to = entry::function(db, schema.as_deref(), &routine.key());
        if to != from {
            session.check_right(&own(schema.as_deref(), &routine.name), Right::CreateCollection)?;
            if ws.catalog().get(&to).is_some() {
                let schema = schema.as_deref().unwrap_or(schemas::PUBLIC);
                let shown = routine.shown().replace(", ", ",");
                return fail("42723", format!("{kind} {shown} already exists in schema \"{schema}\""));
            }
            for (ns, trigger) in triggers_of(ws, db, &before) {
                let calls = (
                    Some(schema.clone().unwrap_or_else(|| schemas::PUBLIC.to_owned())),
                    routine.name.clone(),
                );
                super::alter::triggers::call(statement, ws, (&ns, &trigger), calls)?;
            }
            if user(ws, db, &before.name).is_some() {
                return unsupported("another name or schema of a function that something declared calls");
            }
            catalog::rename(statement, ws, &found, &to, (false, false))?;
        }
        let create = self::kept(create);
        let text = create.to_string();
        entry::check_text(&text)?;
        let Some(found) = ws.catalog().get(&to).cloned() else {
            return fail("XX000", "the entry of a function is gone");
        };
        catalog::set_validator(statement, ws, &found, &entry::validator(entry::FUNCTION, &text))
    })?;
    Ok(match kind {
        "procedure" => "ALTER PROCEDURE",
        "routine" => "ALTER ROUTINE",
        _ => "ALTER FUNCTION",
    })
}

/// The triggers that call a function.
fn triggers_of(ws: &WriteSet, db: &str, routine: &Routine) -> Vec<(Namespace, String)> {
    let schema = routine.schema.as_deref().unwrap_or(schemas::PUBLIC);
    let mut out = Vec::new();
    let database = ws.catalog().database(db);
    for collection in database.into_iter().flat_map(|database| database.collections()) {
        let triggers = match entry::of(collection) {
            Some(entry::Object::Table(declared, _)) => declared.triggers.clone(),
            _ => entry::view_triggers(collection).unwrap_or_default(),
        };
        let calls = |own: &&Trigger| own.function == routine.name && own.schema.as_deref().unwrap_or(schema) == schema;
        let own = triggers.iter().filter(calls);
        out.extend(own.map(|own| (collection.ns.clone(), own.name.clone())));
    }
    out
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
    (dropped, is_procedure): (&DropFunction, bool),
    progress: &mut Progress,
) -> Result<&'static str> {
    let db = session.database.as_str();
    let is_any = |described: &FunctionDesc| described.name.to_string() == format!("\"{ANY_ROUTINE}\"");
    let (mut all, mut kind) = (dropped.func_desc.as_slice(), "function");
    let of_any = all.first().is_some_and(is_any);
    if of_any {
        all = &all[1..];
    }
    if of_any || is_procedure {
        kind = if of_any { "routine" } else { "procedure" };
    }
    statement.atomically(progress, |ws| {
        for described in all {
            let routine = match only(ws, session, (kind, described))? {
                Ok(routine) => routine,
                Err(none) => {
                    pass_over(dropped.if_exists, none)?;
                    continue;
                }
            };
            let name = made::plain(&described.name)?;
            if !of_any && routine.is_procedure != is_procedure && described.args.is_none() {
                return fail("42883", format!("could not find a {kind} named \"{name}\""));
            }
            if !of_any && routine.is_procedure != is_procedure {
                return fail("42809", format!("{} is not a {kind}", routine.shown()));
            }
            let of = match &routine.schema {
                Some(schema) => schemas::collection(schema, &routine.name),
                None => routine.name.clone(),
            };
            session.check_right(&Namespace::new(db, of), Right::DropCollection)?;
            let called = triggers_of(ws, db, &routine);
            if dropped.drop_behavior == Some(DropBehavior::Cascade) {
                for (ns, trigger) in &called {
                    notices::notice(&format!("drop cascades to trigger {trigger} on table {}", ns.coll));
                    super::alter::triggers::remove(statement, ws, ns, trigger)?;
                }
            } else if !called.is_empty() {
                let shown = routine.shown().replace(", ", ",");
                let told = error(
                    "2BP01",
                    format!("cannot drop function {shown} because other objects depend on it"),
                );
                let each = called
                    .iter()
                    .map(|(ns, trigger)| format!("trigger {trigger} on table {} depends on function {shown}", ns.coll));
                let detail = each.collect::<Vec<_>>().join("\n");
                let hint = "Use DROP ... CASCADE to drop the dependent objects too.";
                let fields = [(error::Field::Detail, detail.as_str()), (error::Field::Hint, hint)];
                return Err(error::with(told, &fields));
            }
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
            catalog::drop(
                statement,
                ws,
                &entry::function(db, routine.schema.as_deref(), &routine.key()),
            )?;
        }
        Ok(())
    })?;
    Ok(match (of_any, is_procedure) {
        (true, _) => "DROP ROUTINE",
        (_, true) => "DROP PROCEDURE",
        _ => "DROP FUNCTION",
    })
}
