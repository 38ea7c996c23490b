//! Statements that change what tables there are.
//!
//! [`table`] makes, drops and empties tables, [`alter`] changes them, [`view`] makes views and [`materialized`] those that keep their rows, [`index`] indexes, [`sequence`] sequences, [`schema`](mod@schema) schemas, [`database`] databases, [`temporary`] those that go with their session, [`enums`] and [`composites`] types, [`routines`] functions, [`extension`] those that are built in, [`assertion`] assertions; [`comment`] says something about them, [`owner`] whose they are, [`partition`] has those of others, [`policies`] say who sees which of their rows, [`keys`] has what making and altering tables share, [`like`] what they take of others. Each is a commit of its own, or a part of a transaction. Who looks at all rows of a table conflicts with whoever writes to it until the commit.

mod alter;
mod assertion;
mod comment;
mod composites;
mod database;
mod domains;
mod entries;
mod enums;
mod exclusion;
pub mod extension;
mod free;
mod index;
mod keys;
mod like;
pub(crate) mod lock;
mod materialized;
mod owner;
mod partition;
mod policies;
mod roles;
mod routines;
mod schema;
pub(crate) mod sequence;
mod table;
pub mod temporary;
mod view;

use crate::bind::{is_only, object_name};
use crate::catalog::schemas;
use crate::error::{Field, error, fail, unsupported, with};
use crate::parse::own::{self, Own, Renamed};
use crate::run::partitions::declared;
use crate::run::tables::Reading;
use crate::run::tables::SessionFacts;
use crate::types::Type;
use nestor_database::statement::Statement;
use nestor_database::write::Progress;
use nestor_model::{Namespace, Result, Value};
use nestor_storage::{View, WriteSet};
use sqlparser::ast::{DropFunction, Ident, ObjectName, ObjectType, Statement as Ast, UserDefinedTypeRepresentation};

/// Whether a statement is one of these.
pub fn is_ddl(ast: &Ast) -> bool {
    let is_known = matches!(
        ast,
        Ast::CreateTable(_)
            | Ast::AlterTable(_)
            | Ast::CreateView(_)
            | Ast::CreateIndex(_)
            | Ast::CreateSequence { .. }
            | Ast::CreateSchema { .. }
            | Ast::CreateType { .. }
            | Ast::AlterType(_)
            | Ast::Comment { .. }
            | Ast::Drop { .. }
            | Ast::CreateFunction(_)
            | Ast::DropFunction(_)
            | Ast::DropProcedure { .. }
            | Ast::CreatePolicy(_)
            | Ast::AlterPolicy(_)
            | Ast::DropPolicy(_)
    );
    is_known
        || matches!(own::of(ast), Ok(Some(own)) if !matches!(own, Own::SetConstraints { .. } | Own::Maintain(_) | Own::Do { .. } | Own::TwoPhase { .. }))
}

/// What a statement that changes what there is does, as messages name it: `CREATE TABLE`.
pub fn verb(text: &str) -> String {
    const BESIDE: [&str; 8] = [
        "OR",
        "REPLACE",
        "TEMP",
        "TEMPORARY",
        "UNLOGGED",
        "UNIQUE",
        "RECURSIVE",
        "DUALITY",
    ];
    let mut words = text.split_whitespace().map(str::to_uppercase);
    let mut verb = words.next().unwrap_or_default();
    if matches!(verb.as_str(), "CREATE" | "ALTER" | "DROP") {
        let mut objects = words.skip_while(|word| BESIDE.contains(&word.as_str()));
        for word in objects.by_ref() {
            verb = format!("{verb} {word}");
            if word != "MATERIALIZED" {
                break;
            }
        }
    }
    verb
}

/// Whether a statement is about roles: its text may have passwords.
pub fn is_of_roles(ast: &Ast) -> bool {
    own::is_roles(ast)
}

/// Runs a statement that changes what there is, with parameters for CREATE TABLE AS, as no others have any; its tag.
///
/// Errors: 42P07, 42P01, 42704 and others of what there is and is not; 0A000.
pub fn run(statement: &Statement<'_>, session: &SessionFacts, ast: &Ast, given: (&[Type], &[Value])) -> Result<String> {
    let mut progress = Progress::default();
    if let Some(own) = own::of(ast)? {
        let tag = run_own(statement, session, &own, &mut progress)?;
        wait(statement, &progress)?;
        return Ok(tag);
    }
    let tag = match ast {
        Ast::CreateTable(create) if create.query.is_some() => {
            let rows = table::create_as(statement, session, (create, given), &mut progress)?;
            wait(statement, &progress)?;
            return Ok(rows.map_or_else(|| "CREATE TABLE AS".to_owned(), |rows| format!("SELECT {rows}")));
        }
        Ast::CreateView(create) => view::create(statement, session, (create, view::Kept::Plain), &mut progress)?,
        Ast::CreateTable(create) => table::create(statement, session, create, &mut progress)?,
        Ast::AlterTable(alter) => alter::alter(statement, session, alter, &mut progress)?,
        Ast::CreateIndex(create) => index::create(statement, session, create, &mut progress)?,
        Ast::CreateSequence { .. } => sequence::create(statement, session, ast, &mut progress)?,
        Ast::CreateType {
            name,
            representation: Some(UserDefinedTypeRepresentation::Enum { labels }),
        } => enums::create(statement, session, (name, labels), &mut progress)?,
        Ast::CreateType {
            name,
            representation: Some(UserDefinedTypeRepresentation::Composite { attributes }),
        } => composites::create(statement, session, (name, attributes), &mut progress)?,
        Ast::CreateType { .. } => return unsupported("a type that is neither an enum nor of columns"),
        Ast::CreateFunction(create) => routines::create(statement, session, create, &mut progress)?,
        Ast::DropFunction(dropped) => routines::drop(statement, session, (dropped, false), &mut progress)?,
        Ast::DropProcedure {
            if_exists,
            proc_desc,
            drop_behavior,
        } => {
            let dropped = DropFunction {
                if_exists: *if_exists,
                func_desc: proc_desc.clone(),
                drop_behavior: *drop_behavior,
            };
            routines::drop(statement, session, (&dropped, true), &mut progress)?
        }
        Ast::CreatePolicy(create) => policies::create(statement, session, create, &mut progress)?,
        Ast::AlterPolicy(alter) => policies::alter(statement, session, alter, &mut progress)?,
        Ast::DropPolicy(dropped) => policies::drop(statement, session, dropped, &mut progress)?,
        Ast::AlterType(alter) => enums::alter(statement, session, alter, &mut progress)?,
        Ast::CreateSchema {
            schema_name,
            or_replace: false,
            if_not_exists,
            with: None,
            options: None,
            default_collate_spec: None,
            clone: None,
        } => schema::create(statement, session, (schema_name, *if_not_exists), &mut progress)?,
        Ast::CreateSchema { .. } => return unsupported("a clause of this CREATE SCHEMA"),
        Ast::Comment {
            object_type,
            object_name,
            comment,
            if_exists: false,
            ..
        } => {
            let object = comment::Object::Of(*object_type, object_name);
            comment::comment(statement, session, &object, comment.as_deref(), &mut progress)?
        }
        Ast::Drop {
            object_type,
            if_exists,
            names,
            cascade,
            purge: false,
            temporary: false,
            table: None,
            ..
        } => match object_type {
            ObjectType::Table | ObjectType::View | ObjectType::MaterializedView => {
                let kind = match object_type {
                    ObjectType::Table => table::Kind::Table,
                    ObjectType::View => table::Kind::View,
                    _ => table::Kind::Materialized,
                };
                table::drop(statement, session, (names, *if_exists, *cascade), kind, &mut progress)?
            }
            ObjectType::Index => {
                let what = (names.as_slice(), *if_exists);
                index::drop(statement, session, what, &alter::check_index_goes, &mut progress)?
            }
            ObjectType::Sequence => {
                let unasked =
                    |ws: &mut WriteSet, of: &Namespace| alter::let_sequence_go(statement, session, ws, (of, *cascade));
                let stand = |ws: &mut WriteSet, of: &_| alter::ask_sequence(statement, session, ws, of);
                let asks = (&unasked as &sequence::Unasked<'_>, &stand as &sequence::Stand<'_>);
                sequence::drop(statement, session, (names, *if_exists), asks, &mut progress)?
            }
            ObjectType::Type => {
                let what = (names.as_slice(), *if_exists, *cascade);
                enums::drop(statement, session, what, (&|_| true, "type"), &mut progress)?
            }
            ObjectType::Schema => schema::drop(statement, session, (names, *if_exists, *cascade), &mut progress)?,
            other => return unsupported(format!("DROP {other}")),
        },
        _ => return fail("XX000", "a statement that changes no table was run as one that does"),
    };
    wait(statement, &progress)?;
    Ok(tag.to_owned())
}

/// The table that a name means, which may be emptied.
///
/// Errors: 42809 for what is no table.
pub(crate) fn truncated(statement: &Statement<'_>, session: &SessionFacts, name: &ObjectName) -> Result<Namespace> {
    let read = statement.current_view();
    let ns = namespace_in(read.view(), session, name)?;
    let found = read.view().catalog().get(&ns);
    if is_only(name) && declared(read.view(), &ns).is_some_and(|table| table.division.is_some()) {
        let told = error("42809", "cannot truncate only a partitioned table");
        let hint = "Do not specify the ONLY keyword, or use TRUNCATE ONLY on the partitions directly.";
        return Err(with(told, &[(Field::Hint, hint)]));
    }
    match found.map(|collection| table::Kind::of(collection)) {
        Some(Some(table::Kind::Table)) => Ok(ns),
        None => fail("42P01", format!("relation \"{}\" does not exist", ns.coll)),
        Some(_) => fail("42809", format!("\"{}\" is not a table", ns.coll)),
    }
}

fn run_own(statement: &Statement<'_>, session: &SessionFacts, own: &Own, progress: &mut Progress) -> Result<String> {
    let tag = match own {
        Own::CommentOnConstraint {
            constraint,
            table,
            text,
        } => {
            let object = comment::Object::Constraint(constraint, table);
            comment::comment(statement, session, &object, text.as_deref(), progress)?
        }
        Own::Comment { kind, name, on, text } => {
            let object = comment::Object::Own(kind, name, on.as_ref());
            comment::comment(statement, session, &object, text.as_deref(), progress)?
        }
        Own::CommentOnRoutine { kind, routine, text } => {
            let object = comment::Object::Routine(kind, routine);
            comment::comment(statement, session, &object, text.as_deref(), progress)?
        }
        Own::AlterRoutine { kind, routine, change } => {
            routines::alter(statement, session, (kind, routine, change), progress)?
        }
        Own::Database(what) => database::run(statement, session, what, progress)?,
        Own::Schema(what) => schema::run(statement, session, what, progress)?,
        Own::Roles(what) => roles::run(statement, session, what, progress)?,
        Own::Partition {
            table,
            if_exists,
            partition,
            change,
        } => partition::change(statement, session, (table, partition, *if_exists), change, progress)?,
        Own::AttachIndex { index, partition } => {
            let read = statement.current_view();
            partition::attached_index(read.view(), session, (index, partition))?
        }
        Own::Domain(what) => domains::run(statement, session, what, progress)?,
        Own::AlterAttributes(alter) => composites::alter(statement, session, alter, progress)?,
        Own::AlterSequence(alter) => {
            let recount = |ws: &mut WriteSet, of: &_, counting| alter::recount(statement, session, ws, (of, counting));
            let stand = |ws: &mut WriteSet, of: &_| alter::ask_sequence(statement, session, ws, of);
            sequence::alter(statement, session, alter, (&recount, &stand), progress)?
        }
        Own::CreateAssertion { name, condition } => assertion::create(statement, session, (name, condition), progress)?,
        Own::DropAssertion { names, if_exists } => assertion::drop(statement, session, (names, *if_exists), progress)?,
        Own::View { create, check } => {
            view::create(statement, session, (create, view::Kept::Checked(*check)), progress)?
        }
        Own::Duality { create } => view::create(statement, session, (create, view::Kept::Duality), progress)?,
        Own::Materialize { create, has_data } => {
            return materialized::create(statement, session, (create, *has_data), progress);
        }
        Own::Refresh {
            name,
            concurrently,
            has_data,
        } => materialized::refresh(statement, session, (name, *concurrently, *has_data), progress)?,
        Own::CreateTrigger {
            table,
            replaces,
            trigger,
        } => alter::triggers::create(statement, session, (table, trigger, *replaces), progress)?,
        Own::RenameTrigger { name, table, to } => {
            alter::triggers::rename(statement, session, (name, table, to), progress)?
        }
        Own::DropTrigger { name, table, if_exists } => {
            alter::triggers::drop(statement, session, (name, table, *if_exists), progress)?
        }
        Own::Owner { kind, name, owner, .. } if kind == "DATABASE" => {
            database::give(statement, session, (name, owner), progress)?
        }
        Own::Owner {
            kind,
            name,
            owner,
            if_exists,
        } => return owner::owner(statement, session, kind, (name, owner), *if_exists),
        Own::SetSchema {
            kind,
            name,
            schema,
            if_exists,
        } => return alter::set_schema(statement, session, (kind, name, schema), *if_exists, progress),
        Own::SetConstraints { .. } | Own::Maintain(_) | Own::Do { .. } | Own::TwoPhase { .. } => {
            return fail("XX000", "a choice of a transaction was run as one that changes tables");
        }
        Own::DropIndex { name, if_exists } => {
            if statement.in_transaction() {
                return fail("25001", "DROP INDEX CONCURRENTLY cannot run inside a transaction block");
            }
            let what = (std::slice::from_ref(name), *if_exists);
            index::drop(statement, session, what, &alter::check_index_goes, progress)?
        }
        Own::ViewOptions {
            view,
            options,
            if_exists,
        } => {
            let ns = namespace(statement, session, view)?;
            view::set_options(statement, session, (&ns, options), *if_exists, progress)?
        }
        Own::RenameViewColumn {
            view,
            column,
            to,
            if_exists,
        } => {
            let ns = namespace(statement, session, view)?;
            view::rename_column(statement, session, (&ns, column, to), *if_exists, progress)?;
            "ALTER VIEW"
        }
        Own::Rename {
            kind: Renamed::Index,
            name,
            to,
            if_exists,
        } => {
            alter::rename_index(statement, session, (name, to), *if_exists, progress)?;
            "ALTER INDEX"
        }
        Own::Rename {
            kind,
            name,
            to,
            if_exists,
        } => {
            let names = (&namespace(statement, session, name)?, to);
            let (kind, tag) = match kind {
                Renamed::View => (alter::Kind::View, "ALTER VIEW"),
                Renamed::Materialized => (alter::Kind::Materialized, "ALTER MATERIALIZED VIEW"),
                Renamed::Sequence | Renamed::Index => (alter::Kind::Sequence, "ALTER SEQUENCE"),
            };
            alter::rename(statement, session, names, (kind, *if_exists), progress)?;
            tag
        }
    };
    Ok(tag.to_owned())
}

/// Waits until what was done is on disk.
fn wait(statement: &Statement<'_>, progress: &Progress) -> Result<()> {
    if let Some((lsn, _)) = progress.last {
        statement.database.wait_durable(lsn)?;
    }
    Ok(())
}

/// The collection that a name means, or would mean if there were one: of the connection's database, or of that of its schema.
///
/// Errors: 42501 for catalogs, 42602 for names that collections cannot have.
fn namespace(statement: &Statement<'_>, session: &SessionFacts, name: &ObjectName) -> Result<Namespace> {
    namespace_in(statement.current_view().view(), session, name)
}

/// As [`namespace`], in a state.
fn namespace_in(view: &dyn View, session: &SessionFacts, name: &ObjectName) -> Result<Namespace> {
    let mut all = candidates(view, session, name)?;
    let there = all.iter().position(|ns| view.catalog().get(ns).is_some());
    let ns = match there {
        Some(at) => all.swap_remove(at),
        None if all.is_empty() => return no_schema(session),
        None => all.swap_remove(0),
    };
    checked(ns)
}

/// The collection that something new of this name is to be: in the first schema of the search path if it says none.
///
/// Errors: those of [`namespace`], 3F000 where there is no such schema.
fn new_namespace(statement: &Statement<'_>, session: &SessionFacts, name: &ObjectName) -> Result<Namespace> {
    let read = statement.current_view();
    let (schema, name) = changed_name(name)?;
    let all = schemas::candidates(
        read.view(),
        &session.database,
        &session.path(),
        (schema.as_deref(), &name),
    );
    match all.into_iter().next() {
        // Another database is a schema, but a word that names neither makes none.
        Some(ns) if *ns.db != *session.database && read.view().catalog().database(&ns.db).is_none() => {
            fail("3F000", format!("schema \"{}\" does not exist", ns.db))
        }
        Some(ns) => checked(ns),
        None => no_schema(session),
    }
}

fn no_schema<T>(session: &SessionFacts) -> Result<T> {
    let path = session.settings.get("search_path").map_or("", String::as_str);
    fail(
        "3F000",
        format!("no schema of \"{path}\" has been selected to create in"),
    )
}

fn candidates(view: &dyn View, session: &SessionFacts, name: &ObjectName) -> Result<Vec<Namespace>> {
    let (schema, name) = changed_name(name)?;
    Ok(session.candidates(view, (schema.as_deref(), &name)))
}

/// The schema and the name of what is to be changed.
///
/// Errors: 42501 for what nobody changes.
fn changed_name(name: &ObjectName) -> Result<(Option<String>, String)> {
    let (schema, name) = object_name(name)?;
    if matches!(schema.as_deref(), Some("pg_catalog" | "information_schema")) {
        return fail("42501", format!("permission denied to change \"{name}\""));
    }
    Ok((schema, name))
}

/// The collection that something new is to be, which the statement may say is temporary.
///
/// Errors: those of [`new_namespace`] and of [`temporary::new_namespace`].
fn made_namespace(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (says_temporary, name): (bool, &ObjectName),
    progress: &mut Progress,
) -> Result<Namespace> {
    match temporary::is_meant(session, (says_temporary, name))? {
        true => temporary::new_namespace(statement, session, name, progress),
        false => new_namespace(statement, session, name),
    }
}

fn checked(ns: Namespace) -> Result<Namespace> {
    let invalid = |e: nestor_model::Error| error("42602", e.message().to_owned());
    nestor_database::names::check_database(&ns.db).map_err(invalid)?;
    let ns = nestor_database::names::collection(&ns.db, &ns.coll).map_err(invalid)?;
    nestor_database::write::check_document_namespace(&ns).map_err(invalid)?;
    if ns.coll.starts_with("system.") {
        return fail("42939", format!("unacceptable name \"{}\"", ns.coll));
    }
    Ok(ns)
}

/// The schema of a collection and its name there, as the name that declarations keep.
fn name_of(view: &dyn View, ns: &Namespace) -> ObjectName {
    let (schema, name) = schemas::split(view, ns);
    let quoted = |name: &str| Ident::with_quote('"', name);
    match schema {
        schemas::PUBLIC => ObjectName::from(vec![quoted(name)]),
        schema => ObjectName::from(vec![quoted(schema), quoted(name)]),
    }
}

/// What is made at a namespace: it goes with its schema, so that whoever drops that meanwhile conflicts (what a transaction makes would be left, in
/// `public`), and belongs to who makes it.
///
/// Errors: 42P07 where an index of the schema has the name, those of storage.
fn note_made(statement: &Statement<'_>, session: &SessionFacts, ws: &mut WriteSet, ns: &Namespace) -> Result<()> {
    let (op, _) = statement.operation(None)?;
    if Reading::new(statement, &*ws, &op, session).has_relation(ns) {
        return fail("42P07", format!("relation \"{}\" already exists", ns.coll));
    }
    let (schema, _) = schemas::split(&*ws, ns);
    if schema != schemas::PUBLIC && !statement.in_transaction() {
        let entry = schemas::entry(&ns.db, schema);
        ws.require_namespace(&entry);
    }
    roles::own(statement, session, ws, ns)
}
