//! Defaults of columns that ask a sequence for numbers: they follow it to another name, and it does not go without them.

use super::edit::Edit;
use super::found::{Found, depends, found};
use crate::bind::alter::Source;
use crate::bind::ident;
use crate::catalog::schemas;
use crate::parse;
use crate::run::tables::SessionFacts;
use crate::types::names::quoted;
use nestor_database::statement::Statement;
use nestor_model::{Namespace, Result};
use nestor_storage::{View as _, WriteSet};
use sqlparser::ast::{
    ColumnOption, ColumnOptionDef, CreateTable, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Value,
};

/// The name that `nextval` is called with, of an expression that is such a call.
fn asked(expr: &mut Expr) -> Option<&mut String> {
    let call = match expr {
        Expr::Function(call) => call,
        Expr::Cast { expr, .. } | Expr::Nested(expr) => return asked(expr),
        _ => return None,
    };
    let is_it = call
        .name
        .0
        .last()
        .and_then(|part| part.as_ident())
        .is_some_and(|name| ident(name) == "nextval");
    let FunctionArguments::List(list) = &mut call.args else {
        return None;
    };
    match list.args.as_mut_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))] if is_it => named(arg),
        _ => None,
    }
}

fn named(arg: &mut Expr) -> Option<&mut String> {
    match arg {
        Expr::Cast { expr, .. } | Expr::Nested(expr) => named(expr),
        Expr::Value(value) => match &mut value.value {
            Value::SingleQuotedString(name) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

/// The parts of a name in a text.
fn parts(text: &str) -> Vec<String> {
    match parse::expression(text) {
        Ok(Expr::Identifier(name)) => vec![ident(&name)],
        Ok(Expr::CompoundIdentifier(names)) => names.iter().map(ident).collect(),
        _ => Vec::new(),
    }
}

/// A table with what declares it once its defaults are others.
pub(super) type Changed = (Found, CreateTable);

/// What is done with a default: of which table, the options of its column, its place among them, and the name that it asks by.
type Work<'w> = &'w mut dyn FnMut(&Found, &mut Vec<ColumnOptionDef>, usize, &str) -> Result<()>;

/// The tables with defaults that ask the sequence `of`, after `work` was given each of these with the name that the sequence has there.
fn each(session: &SessionFacts, ws: &WriteSet, of: &Namespace, work: Work<'_>) -> Result<Vec<Changed>> {
    let mut out = Vec::new();
    let database = ws.catalog().database(&of.db);
    let tables: Vec<Namespace> = database
        .into_iter()
        .flat_map(|database| database.collections())
        .filter(|collection| crate::bind::declared::Declared::of_collection(collection).is_some())
        .map(|collection| collection.ns.clone())
        .collect();
    for ns in tables {
        let Some(table) = found(ws, &ns)? else { continue };
        let mut create = table.create.clone();
        let mut turned = false;
        for def in &mut create.columns {
            let mut at = 0;
            while at < def.options.len() {
                let name = match &mut def.options[at].option {
                    ColumnOption::Default(expr) => asked(expr).map(|name| name.clone()),
                    _ => None,
                };
                let is_it = |name: &String| {
                    let parts = parts(name);
                    let (schema, last) = match parts.as_slice() {
                        [last] => (None, last),
                        [schema, last] => (Some(schema.as_str()), last),
                        _ => return false,
                    };
                    let all = session.candidates(ws, (schema, last));
                    all.iter().find(|ns| ws.catalog().get(ns).is_some()) == Some(of)
                };
                let before = def.options.len();
                if let Some(name) = name.filter(is_it) {
                    work(&table, &mut def.options, at, &name)?;
                    turned = true;
                }
                at += usize::from(def.options.len() == before);
            }
        }
        if turned {
            out.push((table, create));
        }
    }
    Ok(out)
}

/// Declares tables with their new defaults.
///
/// Errors: those of declaring them.
pub(super) fn declare(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    changed: Vec<Changed>,
) -> Result<()> {
    for (table, create) in changed {
        let edit = Edit {
            sources: (0..create.columns.len()).map(Source::Kept).collect(),
            create,
            cascades: false,
        };
        super::declare(statement, session, ws, &table, edit)?;
    }
    Ok(())
}

/// The tables whose defaults ask a sequence, with these asking it by the name that it is to get; to be declared once it has that.
///
/// Errors: those of reading declarations.
pub(super) fn follow(
    session: &SessionFacts,
    ws: &WriteSet,
    (from, to): (&Namespace, &Namespace),
) -> Result<Vec<Changed>> {
    let (schema, own) = schemas::split(ws, to);
    let (schema, own) = (schema.to_owned(), own.to_owned());
    let moves = schema != schemas::split(ws, from).0;
    each(session, ws, from, &mut |_, options, at, name| {
        let new = match parts(name).len() {
            1 if !moves => quoted(&own),
            _ => format!("{}.{}", quoted(&schema), quoted(&own)),
        };
        if let ColumnOption::Default(expr) = &mut options[at].option
            && let Some(text) = asked(expr)
        {
            *text = new;
        }
        Ok(())
    })
}

/// Takes a sequence from the defaults that ask it, if that `cascades`.
///
/// Errors: 2BP01 if it does not and there are some.
pub(in crate::ddl) fn let_sequence_go(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    (of, cascades): (&Namespace, bool),
) -> Result<()> {
    let changed = each(session, ws, of, &mut |table, options, at, _| {
        if !cascades {
            let detail = format!(
                "default value for a column of table {} depends on sequence {}",
                table.name, of.coll
            );
            return Err(depends(&format!("sequence {}", of.coll), &detail));
        }
        options.remove(at);
        Ok(())
    })?;
    declare(statement, session, ws, changed)
}
