//! `CREATE TABLE … (LIKE t INCLUDING …)`: columns as those of another table, and what else is taken of it.

use super::alter::{self, set_not_null, uncount};
use super::namespace;
use crate::bind::declared::{Declared, distinct, names};
use crate::bind::exclusion::called;
use crate::bind::{ident, numbers};
use crate::catalog::schemas;
use crate::error::{fail, unsupported};
use crate::parse;
use crate::parse::likes::{self, Like};
use crate::run::included;
use crate::run::tables::{Reading, SessionFacts};
use nestor_database::statement::Statement;
use nestor_database::write::comments;
use nestor_model::{Document, IndexSpec, Namespace, Result, Value};
use nestor_storage::{Collection, View};
use sqlparser::ast::{
    ColumnDef, ColumnOption, ColumnOptionDef, CreateTable, DataType, Ident, ObjectName, Statement as Ast,
    TableConstraint,
};
use std::collections::BTreeSet;

/// What a new table gets of others besides columns and constraints.
#[derive(Default)]
pub(super) struct Taken {
    /// Indexes, as they are listed, without names.
    pub(super) indexes: Vec<(IndexSpec, Vec<String>)>,
    /// What is said of columns and constraints.
    pub(super) said: Vec<(&'static str, String, String)>,
}

/// Puts the columns of other tables in their places.
///
/// Errors: 42P01, 42809; 0A000.
pub(super) fn expand(statement: &Statement<'_>, session: &SessionFacts, create: &mut CreateTable) -> Result<Taken> {
    let mut taken = Taken::default();
    let mut columns = Vec::with_capacity(create.columns.len());
    for def in std::mem::take(&mut create.columns) {
        let Some(like) = likes::of(&def)? else {
            columns.push(def);
            continue;
        };
        let ns = namespace(statement, session, &like.table)?;
        session.check_right(&ns, nestor_database::rights::Action::Find)?;
        let read = statement.current_view();
        let view = read.view();
        let Some(collection) = view.catalog().get(&ns).cloned() else {
            let name = crate::bind::parts(&like.table).join(".");
            return fail("42P01", format!("relation \"{name}\" does not exist"));
        };
        match Declared::of_collection(&collection) {
            Some(declared) => {
                let Some(found) = alter::found(view, &ns)? else {
                    continue;
                };
                columns.extend(columns_of(&found.create, &like, &ns, schemas::split(view, &ns))?);
                create.constraints.extend(constraints_of(&found.create, &like));
                if like.indexes {
                    taken.indexes.extend(indexes_of(&collection, &declared, false));
                }
            }
            None => columns.extend(shown(statement, session, view, &ns)?),
        }
        if like.comments {
            said_of(view, &collection, &like, &mut taken)?;
        }
    }
    create.columns = columns;
    Ok(taken)
}

pub(super) fn columns_of(
    from: &CreateTable,
    like: &Like,
    ns: &Namespace,
    (schema, name): (&str, &str),
) -> Result<Vec<ColumnDef>> {
    let key: BTreeSet<String> = from
        .constraints
        .iter()
        .filter_map(|constraint| match constraint {
            TableConstraint::PrimaryKey(key) => names(&key.columns).ok(),
            _ => None,
        })
        .flatten()
        .collect();
    let mut out = Vec::new();
    for def in &from.columns {
        let mut def = def.clone();
        let before = def.data_type.clone();
        uncount(&mut def);
        if before != def.data_type && like.defaults {
            // It takes its numbers of the same sequence.
            let sequence = sequence_of(name, &def);
            let quoted = [schema, sequence.as_str()].map(|part| Ident::with_quote('"', part).to_string());
            let text = format!("nextval('{}')", quoted.join(".").replace('\'', "''"));
            let default = ColumnOption::Default(parse::expression(&text)?);
            def.options.push(ColumnOptionDef {
                name: None,
                option: default,
            });
        }
        let counts = def.options.iter().any(|option| is_identity(&option.option));
        def.options.retain(|option| match &option.option {
            ColumnOption::Default(_) => like.defaults,
            ColumnOption::Generated {
                generation_expr: Some(_),
                ..
            } => like.generated,
            option if is_identity(option) => like.identity,
            ColumnOption::NotNull | ColumnOption::Collation(_) => true,
            _ => false,
        });
        if counts && !like.identity || key.contains(&ident(&def.name)) && !like.indexes {
            set_not_null(&mut def);
        }
        if matches!(&def.data_type, DataType::Custom(..)) && def.data_type != before {
            return unsupported(format!("a column of {} of this type", ns.coll));
        }
        out.push(def);
    }
    Ok(out)
}

fn is_identity(option: &ColumnOption) -> bool {
    matches!(
        option,
        ColumnOption::Generated {
            generation_expr: None,
            ..
        }
    )
}

/// Keys get names of their own.
pub(super) fn constraints_of(from: &CreateTable, like: &Like) -> Vec<TableConstraint> {
    let each = from.constraints.iter().filter_map(|constraint| match constraint {
        TableConstraint::Check(check) if like.constraints => {
            // There are no rows that it need not hold of.
            let mut check = check.clone();
            check.enforced = None;
            Some(TableConstraint::Check(check))
        }
        TableConstraint::PrimaryKey(key) if like.indexes => {
            let mut key = key.clone();
            key.name = None;
            Some(TableConstraint::PrimaryKey(key))
        }
        TableConstraint::Unique(key) if like.indexes => {
            let mut key = key.clone();
            key.name = None;
            Some(TableConstraint::Unique(key))
        }
        TableConstraint::Exclude(own) if like.indexes => {
            let mut own = own.clone();
            own.name = None;
            Some(TableConstraint::Exclude(own))
        }
        _ => None,
    });
    each.collect()
}

/// The indexes that are those of no constraint, with the columns that they are called by, and functions if `names_calls`.
pub(super) fn indexes_of(
    collection: &Collection,
    declared: &Declared,
    names_calls: bool,
) -> Vec<(IndexSpec, Vec<String>)> {
    let mut out = Vec::new();
    for index in collection.indexes.iter() {
        if index.is_id() || declared.keeps_by_index(&index.name) {
            continue;
        }
        let (keys, include) = included::of(&index.spec);
        let of_key = index.spec.key.iter().take(keys).map(|part| &*part.path);
        let parts = of_key.chain(include.iter().map(String::as_str)).map(|path| {
            let path = path.strip_suffix(".$**").unwrap_or(path);
            let column = declared.columns.iter().find(|column| column.path == *path);
            match (column, crate::parse::expression(path)) {
                (Some(column), _) => column.name.clone(),
                (None, Ok(computed)) if names_calls => called(&computed),
                (None, _) => "expr".to_owned(),
            }
        });
        let parts: Vec<String> = parts.collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        out.push((index.spec.clone(), distinct(&parts)));
    }
    out
}

/// The columns of what was not declared: their names and types.
fn shown(statement: &Statement<'_>, session: &SessionFacts, view: &dyn View, ns: &Namespace) -> Result<Vec<ColumnDef>> {
    let (op, _) = statement.operation(None)?;
    let Some(table) = Reading::new(statement, view, &op, session).table_at(ns)? else {
        return fail("42P01", format!("relation \"{}\" does not exist", ns.coll));
    };
    let defs = table.columns.iter().map(|column| {
        let name = Ident::with_quote('"', column.name.as_str());
        format!("{name} {}", column.ty.format(column.modifier))
    });
    let text = format!("CREATE TABLE t ({})", defs.collect::<Vec<_>>().join(", "));
    match parse::parse(&text)?.pop() {
        Some(Ast::CreateTable(create)) => Ok(create.columns),
        _ => unsupported("LIKE of a table of these columns"),
    }
}

/// What is said of columns, of constraints that are taken.
fn said_of(view: &dyn View, collection: &Collection, like: &Like, taken: &mut Taken) -> Result<()> {
    let all = comments::all(view, &collection.ns.db)?;
    let Some((_, said)) = all.into_iter().find(|(uuid, _)| *uuid == collection.uuid) else {
        return Ok(());
    };
    for (kind, is_taken) in [("columns", true), ("constraints", like.constraints)] {
        let Some(Value::Document(of_kind)) = said.get(kind).map(|of_kind| of_kind.to_value()).filter(|_| is_taken)
        else {
            continue;
        };
        for (name, text) in of_kind.iter() {
            if let Some(text) = text.as_str() {
                taken.said.push((kind, name.to_owned(), text.to_owned()));
            }
        }
    }
    Ok(())
}

/// An index under another name.
///
/// Errors: those of its options.
pub(super) fn renamed(spec: &IndexSpec, name: &str) -> Result<IndexSpec> {
    let mut listed: Document = spec.listed().as_raw().as_doc().to_document();
    listed.set("name", name);
    IndexSpec::parse(listed.to_raw())
}

/// The name of the sequence of a column that counts.
fn sequence_of(table: &str, def: &ColumnDef) -> String {
    let said = def.options.iter().find_map(|option| numbers::said(&option.option));
    said.unwrap_or_else(|| parse::sequence_of(table, &ident(&def.name)))
}

/// The name that a table is called by, of a name with a schema or not.
pub(super) fn last_of(name: &ObjectName) -> String {
    name.0
        .last()
        .and_then(|part| part.as_ident())
        .map(ident)
        .unwrap_or_default()
}
