//! CREATE, ALTER and DROP DOMAIN.

use super::entries::{self, found, redeclare};
use super::{enums, keys, namespace};
use crate::bind::{Binder, domains as conditions, ident, types};
use crate::catalog::{Column, Kind, Table};
use crate::error::{error, fail, unsupported};
use crate::notices::pass_over;
use crate::parse::domains::{Change, Domains, Said};
use crate::run::indexed;
use crate::run::tables::{Reading, SessionFacts};
use crate::types::domain::{Check, Domain, Judge};
use crate::types::{Type, collation};
use nestor_database::statement::Statement;
use nestor_database::write::{Progress, catalog, comments};
use nestor_model::Result;
use nestor_storage::WriteSet;
use sqlparser::ast::{AlterType, AlterTypeOperation, AlterTypeRename, DataType, Expr, Ident, ObjectName};
use std::sync::Arc;

/// The statement, and its tag.
///
/// Errors: 42704, 42710, 42809, 2BP01, those of types and conditions; 0A000.
pub(super) fn run(
    statement: &Statement<'_>,
    session: &SessionFacts,
    what: &Domains,
    progress: &mut Progress,
) -> Result<&'static str> {
    match what {
        Domains::Create { name, ty, said } => {
            entries::create(statement, session, name, progress, |ws, ns| {
                entries::domain(&made(statement, session, ws, &ns.coll, (ty, said))?)
            })?;
            Ok("CREATE DOMAIN")
        }
        Domains::Alter { name, change } => alter(statement, session, (name, change), progress),
        Domains::Drop {
            names,
            if_exists,
            cascades,
        } => {
            let is_domain = |own: &Type| matches!(own, Type::Domain(_));
            enums::drop(
                statement,
                session,
                (names, *if_exists, *cascades),
                (&is_domain, "domain"),
                progress,
            )?;
            Ok("DROP DOMAIN")
        }
    }
}

/// The domain that a statement declares.
fn made(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &WriteSet,
    name: &str,
    (ty, said): (&DataType, &Said),
) -> Result<Domain> {
    if let Some(why) = said.contradicts {
        return fail("42601", why);
    }
    let mut kept = ty.clone();
    keys::keep_type(ws, session, &mut kept)?;
    let (base, modifier) = types::data_type(&kept)?;
    let behind = base.clone().plain();
    match &behind {
        Type::Composite(_) => return unsupported("a domain over a composite type"),
        ty if ty.is_row() || matches!(ty, Type::Void | Type::Unknown) => {
            return fail("42804", format!("\"{ty}\" is not a valid base type for a domain"));
        }
        _ => {}
    }
    if let Some(name) = &said.collation {
        collation::of_type(name, &behind)?;
    }
    let mut own = Domain {
        oid: 0,
        name: name.to_owned(),
        judge: Judge::none(),
        base,
        modifier,
        not_null: said.not_null == Some(true),
        default: None,
        checks: Vec::new(),
    };
    for (given, condition) in &said.checks {
        add(statement, session, ws, &mut own, (given.as_ref(), condition, true))?;
    }
    if let Some(expr) = &said.default {
        own.default = Some(default(statement, session, ws, &own, expr)?);
    }
    Ok(own)
}

/// The text of a default, which means something.
fn default(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &WriteSet,
    own: &Domain,
    expr: &Expr,
) -> Result<String> {
    let (op, _) = statement.operation(None)?;
    let reading = Reading::new(statement, ws, &op, session);
    let text = expr.to_string();
    let column = Column {
        modifier: own.modifier,
        default: Some(text.clone()),
        ..Column::new(conditions::VALUE, own.base.clone().plain())
    };
    let table = Arc::new(Table::new(&own.name, vec![column], Kind::Rows(Arc::default())));
    Binder::new(&reading, Vec::new()).check_declaration(&table)?;
    Ok(text)
}

/// Another condition of a domain, by its name.
///
/// Errors: 42710, those of the condition; 0A000 for one that may be another answer each time.
fn add(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &WriteSet,
    own: &mut Domain,
    (given, condition, is_valid): (Option<&Ident>, &Expr, bool),
) -> Result<()> {
    let (op, _) = statement.operation(None)?;
    let reading = Reading::new(statement, ws, &op, session);
    let text = condition.to_string();
    let ty = own.base.clone().plain();
    let bound = match conditions::condition(&ty, &text) {
        Ok(bound) => bound,
        // What is known here and not there is what somebody has made.
        Err(told) => match conditions::condition_in(&reading, &ty, &text) {
            Ok(_) => return unsupported("a function or a type that somebody has made in a CHECK of a domain"),
            Err(_) => return Err(told),
        },
    };
    if indexed::check(&bound).is_err() {
        return unsupported("a CHECK of a domain that depends on settings or on time");
    }
    let is_taken = |name: &str| own.checks.iter().any(|check| check.name == name);
    let (_, plain) = own.name.split_once('.').unwrap_or(("", &own.name));
    let name = match given.map(ident) {
        Some(name) if is_taken(&name) => {
            return fail(
                "42710",
                format!("constraint \"{name}\" for domain \"{plain}\" already exists"),
            );
        }
        Some(name) => name,
        None => {
            let base = format!("{plain}_check");
            let mut all = std::iter::once(base.clone()).chain((1..).map(|n| format!("{base}{n}")));
            all.find(|name| !is_taken(name)).unwrap_or(base)
        }
    };
    own.checks.push(Check { name, text, is_valid });
    // They are looked at in the order of their names.
    own.checks.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(())
}

fn alter(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (name, change): (&ObjectName, &Change),
    progress: &mut Progress,
) -> Result<&'static str> {
    if let Change::Rename(to) = change {
        let ns = namespace(statement, session, name)?;
        statement.atomically(progress, |ws| domain_of(found(ws, &ns)?.1).map(drop))?;
        let rename = AlterType {
            name: name.clone(),
            operation: AlterTypeOperation::Rename(AlterTypeRename { new_name: to.clone() }),
        };
        enums::alter(statement, session, &rename, progress)?;
        return Ok("ALTER DOMAIN");
    }
    entries::alter(statement, session, name, progress, |ws, collection, own| {
        let own = domain_of(own)?;
        let mut new = (*own).clone();
        // What is there has to be looked at.
        let mut turns = false;
        match change {
            Change::Default(expr) => {
                new.default = match expr {
                    Some(expr) => Some(default(statement, session, ws, &own, expr)?),
                    None => None,
                };
            }
            Change::NotNull(not_null) => {
                turns = *not_null && !own.not_null;
                new.not_null = *not_null;
            }
            Change::Add { said, is_not_valid } => {
                for (given, condition) in &said.checks {
                    add(
                        statement,
                        session,
                        ws,
                        &mut new,
                        (given.as_ref(), condition, !is_not_valid),
                    )?;
                }
                turns = !is_not_valid;
            }
            Change::DropConstraint(name, if_exists) => match place(&own, name) {
                Ok(at) => drop(new.checks.remove(at)),
                Err(missing) => return pass_over(*if_exists, missing),
            },
            Change::Validate(name) => {
                let at = place(&own, name)?;
                turns = !own.checks[at].is_valid;
                new.checks[at].is_valid = true;
            }
            Change::RenameConstraint(from, to) => {
                let missing = |_| {
                    let shown = own.shown();
                    error(
                        "42704",
                        format!("constraint \"{}\" for domain {shown} does not exist", ident(from)),
                    )
                };
                let (at, to) = (place(&own, from).map_err(missing)?, ident(to));
                if own.checks.iter().any(|check| check.name == to) {
                    let shown = own.shown();
                    return fail(
                        "42710",
                        format!("constraint \"{to}\" for domain {shown} already exists"),
                    );
                }
                new.checks[at].name = to;
                new.checks.sort_by(|a, b| a.name.cmp(&b.name));
            }
            Change::Schema(_) => return unsupported("ALTER DOMAIN … SET SCHEMA"),
            Change::Rename(_) => {}
        }
        let db = &collection.ns.db;
        let names = |own: &Domain| own.checks.iter().map(|check| check.name.clone()).collect::<Vec<_>>();
        let both = (&*names(&own), &*names(&new));
        comments::follow(statement, ws, (db, collection.uuid), "constraints", both)?;
        new.judge = conditions::judge(&new.base.clone().plain(), &new.checks);
        catalog::set_validator(statement, ws, collection, &entries::domain(&new)?)?;
        redeclare(statement, session, ws, db, (&Type::Domain(Arc::new(new)), turns))
    })?;
    Ok("ALTER DOMAIN")
}

/// The domain that a type is.
///
/// Errors: 42809.
fn domain_of(own: Type) -> Result<Arc<Domain>> {
    match own {
        Type::Domain(own) => Ok(own),
        other => fail("42809", format!("{other} is not a domain")),
    }
}

/// The place of a condition.
///
/// Errors: 42704.
fn place(own: &Domain, name: &Ident) -> Result<usize> {
    let name = ident(name);
    let (_, plain) = own.name.split_once('.').unwrap_or(("", &own.name));
    let found = own.checks.iter().position(|check| check.name == name);
    found.ok_or_else(|| {
        error(
            "42704",
            format!("constraint \"{name}\" of domain \"{plain}\" does not exist"),
        )
    })
}
