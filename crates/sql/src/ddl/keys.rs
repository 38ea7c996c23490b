//! What a declaration says has a meaning, and its keys have indexes.

use super::index::{Method, Part, computed};
use super::namespace_in;
use crate::bind::Binder;
use crate::bind::declared::{Declared, Unique};
use crate::bind::entry::{self, Object};
use crate::bind::types::kept_type;
use crate::catalog::{Column, Foreign, Timing};
use crate::catalog::{partial, schemas};
use crate::error::{fail, unsupported};
use crate::run::index_facts::predicate;
use crate::run::tables::{Reading, SessionFacts};
use crate::types::Type;
use nestor_database::rights::Action as Right;
use nestor_database::statement::Statement;
use nestor_model::{Document, IndexSpec, Namespace, Result, Value, ValueRef, doc};
use nestor_planner::kinds::expression;
use nestor_storage::{Collection, Index, View};
use sqlparser::ast::{ColumnOption, CreateTable, DataType, Ident, ObjectName, TableConstraint};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Gives the tables that keys refer to the names of their collections.
///
/// Errors: those of names; 0A000 for a table of another database.
pub(super) fn qualify(view: &dyn View, session: &SessionFacts, create: &mut CreateTable) -> Result<()> {
    let constraints = create.constraints.iter_mut().filter_map(|constraint| match constraint {
        TableConstraint::ForeignKey(key) => Some(key),
        _ => None,
    });
    let options = create.columns.iter_mut().flat_map(|def| &mut def.options);
    let options = options.filter_map(|option| match &mut option.option {
        ColumnOption::ForeignKey(key) => Some(key),
        _ => None,
    });
    for key in constraints.chain(options) {
        let ns = namespace_in(view, session, &key.foreign_table)?;
        if *ns.db != *session.database {
            return unsupported("a foreign key to a table of another database");
        }
        key.foreign_table = ObjectName::from(vec![Ident::with_quote('"', ns.coll.as_str())]);
    }
    Ok(())
}

/// Gives a column's type the form that declarations keep: enums with their labels.
///
/// Errors: 42704, 42601.
pub(super) fn keep_type(view: &dyn View, session: &SessionFacts, ty: &mut DataType) -> Result<()> {
    let find = |schema: Option<&str>, name: &str| entry::type_among(view, &session.candidates(view, (schema, name)));
    *ty = kept_type(ty, &find)?;
    Ok(())
}

/// Defaults and checks mean something.
pub(super) fn check_expressions(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &nestor_storage::WriteSet,
    ns: &Namespace,
    declared: &Declared,
) -> Result<()> {
    let (op, _) = statement.operation(None)?;
    let reading = Reading::new(statement, ws, &op, session);
    let (schema, name) = schemas::split(ws, ns);
    let table = Arc::new(declared.table(ns, (Some(schema), name)));
    Binder::new(&reading, Vec::new()).check_declaration(&table)
}

/// Keys of other tables are keys there. The entries of these tables are written anew, so that whoever deletes keys meanwhile without knowing
/// of this table conflicts with it. Rows that may have a key or not tell which keys there are, so it takes the right to read them.
pub(super) fn check_keys(
    session: &SessionFacts,
    ws: &mut nestor_storage::WriteSet,
    ns: &Namespace,
    declared: &Declared,
) -> Result<()> {
    for key in &declared.foreign {
        let other = Namespace::new(&*ns.db, key.table.as_str());
        let stays = match schemas::is_temporary(&ns.coll) {
            _ if schemas::is_temporary(&ns.coll) == schemas::is_temporary(&other.coll) => None,
            true => Some("temporary"),
            false => Some("permanent"),
        };
        if let Some(kind) = stays {
            let message = format!("constraints on {kind} tables may reference only {kind} tables");
            return fail("42P16", message);
        }
        if other != *ns {
            session.check_right(&other, Right::Find)?;
            let theirs = ws.catalog().get(&other).and_then(|own| Declared::of_collection(own));
            if theirs.is_some_and(|theirs| theirs.is_unlogged) && !declared.is_unlogged {
                let message = "constraints on permanent tables may reference only permanent tables";
                return fail("42P16", message);
            }
        }
        let collection = ws.catalog().get(&other).cloned();
        let found = match (other == *ns, collection.as_deref().map(entry::of)) {
            (true, _) => None,
            (false, Some(Some(Object::Table(other, _)))) => Some(other.clone()),
            (false, None) => return fail("42P01", format!("relation \"{}\" does not exist", key.table)),
            (false, Some(_)) => {
                return fail(
                    "42809",
                    format!("referenced relation \"{}\" is not a declared table", key.table),
                );
            }
        };
        let apart = collection.as_deref().map(unique_indexes).unwrap_or_default();
        check_key(key, declared, (found.as_deref().unwrap_or(declared), &apart))?;
        if let (Some(collection), true) = (collection, other != *ns) {
            ws.set_options(collection.id, collection.options.clone())?;
        }
    }
    Ok(())
}

/// The paths of the indexes of a table that let no two of its rows have the same values, but for those of its constraints.
pub(super) fn unique_indexes(collection: &Collection) -> Vec<BTreeSet<String>> {
    let Some(Object::Table(declared, table)) = entry::of(collection) else {
        return Vec::new();
    };
    let is_free = |index: &Index| !index.is_id() && declared.unique.iter().all(|own| *own.name != *index.name);
    let keeps = |index: &&Arc<Index>| {
        index.unique && is_free(index) && index.spec.kind() != expression::NAME && predicate(index, table).is_none()
    };
    let paths = |index: &Arc<Index>| index.key_pattern.iter().map(|(path, _)| path.to_owned()).collect();
    collection.indexes.iter().filter(keeps).map(paths).collect()
}

/// A key of `declared` is one of `parent`, or has a unique index there; `apart` has the paths of these.
///
/// Errors: 42703, 42704, 42804, 42830.
pub(super) fn check_key(
    key: &Foreign,
    declared: &Declared,
    (parent, apart): (&Declared, &[BTreeSet<String>]),
) -> Result<()> {
    let referred = match key.referred.is_empty() {
        true if parent.key.is_empty() => {
            return fail(
                "42704",
                format!("there is no primary key for referenced table \"{}\"", key.table),
            );
        }
        true => &parent.key,
        false => &key.referred,
    };
    if referred.len() != key.columns.len() {
        return fail(
            "42830",
            "number of referencing and referenced columns for foreign key disagree",
        );
    }
    let paths = |names: &[String]| -> Result<Vec<String>> {
        let each = names
            .iter()
            .map(|name| match parent.columns.iter().find(|column| column.name == *name) {
                Some(column) => Ok(column.path.clone()),
                None => fail(
                    "42703",
                    format!("column \"{name}\" referenced in foreign key constraint does not exist"),
                ),
            });
        each.collect()
    };
    let set = |paths: &[String]| paths.iter().cloned().collect::<BTreeSet<String>>();
    let wanted = set(&paths(referred)?);
    let own = parent.unique.iter().find(|own| set(&own.paths) == wanted);
    if own.is_some_and(|own| own.timing != Timing::AtOnce) {
        let message = format!(
            "cannot use a deferrable unique constraint for referenced table \"{}\"",
            key.table
        );
        return fail("55000", message);
    }
    let is_key = wanted == set(&paths(&parent.key)?) || own.is_some() || apart.contains(&wanted);
    if !is_key {
        return fail(
            "42830",
            format!(
                "there is no unique constraint matching given keys for referenced table \"{}\"",
                key.table
            ),
        );
    }
    for (own, theirs) in key.columns.iter().zip(referred) {
        let ty = |columns: &[Column], name: &str| {
            let found = columns.iter().find(|column| column.name == name);
            found.map(|column| column.ty.clone())
        };
        let (a, b) = (ty(&declared.columns, own), ty(&parent.columns, theirs));
        if a.iter().chain(&b).any(|ty| ty.clone().plain() == Type::Citext) {
            return unsupported("a foreign key of type citext");
        }
        let goes = match (&a, &b) {
            (Some(a), Some(b)) => a == b || a.is_number() && b.is_number() || a.is_text() && b.is_text(),
            _ => false,
        };
        if !goes {
            return fail(
                "42804",
                format!("foreign key constraint \"{}\" cannot be implemented", key.name),
            );
        }
    }
    Ok(())
}

/// The columns of a key whose index keeps it.
pub(super) fn keyed<'d>(unique: &'d Unique, declared: &'d Declared) -> impl Iterator<Item = &'d Column> {
    let of_key = |column: &&Column| unique.timing == Timing::AtOnce && unique.paths.contains(&column.path);
    declared.columns.iter().filter(of_key)
}

/// Refuses columns of a key whose values are not compared as a whole: an index has the elements of arrays one by one.
///
/// Errors: 0A000.
pub(super) fn check_is_whole<'c>(columns: impl IntoIterator<Item = &'c Column>) -> Result<()> {
    let is_apart = |column: &&Column| matches!(column.ty, Type::Array(_) | Type::Jsonb);
    match columns.into_iter().find(is_apart) {
        Some(column) => unsupported(format!("a unique key of type {}", column.ty)),
        None => Ok(()),
    }
}

/// The index of a key. Rows in which a column is null are in none: they are equal to no row.
pub(super) fn spec(unique: &Unique, declared: &Declared) -> Result<IndexSpec> {
    let columns = unique
        .paths
        .iter()
        .map(|path| declared.columns.iter().find(|column| column.path == *path));
    let columns: Vec<&Column> = columns.flatten().collect();
    if columns.iter().any(|column| is_by_value(column)) {
        return spec_by_values(unique, declared, &columns);
    }
    let mut key = Document::new();
    unique.paths.iter().for_each(|path| key.push(path.as_str(), 1));
    let mut listed = doc! { "v": 2, "key": key, "name": unique.name.as_str() };
    // One that is looked at later lets rows in that are not unique yet.
    if unique.timing == Timing::AtOnce {
        listed.push("unique", true);
        if !unique.nulls_equal {
            only_where_not_null(&mut listed, &unique.paths, declared);
        }
    }
    IndexSpec::parse(listed.to_raw())
}

/// Whether an index has of a column what its values compare by, as documents have them otherwise.
pub(super) fn is_by_value(column: &Column) -> bool {
    column.ty.clone().plain() == Type::Citext
}

/// The index of a key whose values documents have otherwise than they compare.
fn spec_by_values(unique: &Unique, declared: &Declared, columns: &[&Column]) -> Result<IndexSpec> {
    if unique.timing != Timing::AtOnce || unique.nulls_equal {
        return unsupported("a deferrable key, or one whose nulls are not distinct, of type citext");
    }
    let table = Arc::new(declared.table(&Namespace::new("", "t"), (None, "t")));
    let parts: Vec<Part<'_>> = columns.iter().map(|column| Part::of(&column.name, None)).collect();
    let parts: Vec<&Part<'_>> = parts.iter().collect();
    let (mut listed, ..) = computed(&table, &parts, Method::Ordered, (&unique.name, true), Vec::new())?;
    listed.push("unique", true);
    IndexSpec::parse(listed.to_raw())
}

/// Leaves rows out of a unique index of `paths` in which one of them may be null, and is. The predicate that the index has stays.
pub(super) fn only_where_not_null(listed: &mut Document, paths: &[String], declared: &Declared) {
    let is_nullable = |path: &&String| {
        let column = declared.columns.iter().find(|column| column.path == **path);
        column.is_none_or(|column| !column.not_null)
    };
    let nullable = paths.iter().filter(is_nullable).cloned().collect();
    limit(listed, nullable);
}

/// Leaves rows out of a unique index in which one of the paths `nullable` is null.
pub(super) fn limit(listed: &mut Document, nullable: Vec<String>) {
    let key = match listed.get("key") {
        Some(ValueRef::Document(key)) => key.to_document(),
        _ => Document::new(),
    };
    let said = match listed.get("partialFilterExpression") {
        Some(ValueRef::Document(filter)) => partial::said(&filter.to_document(), &key),
        _ => Vec::new(),
    };
    listed.remove("sparse");
    listed.remove("partialFilterExpression");
    match (said.is_empty(), nullable.as_slice()) {
        (true, []) => {}
        (true, [_]) if key.iter().count() == 1 => listed.push("sparse", true),
        _ => {
            let asked = said.iter().filter_map(partial::there).map(str::to_owned);
            let paths: BTreeSet<String> = nullable.iter().cloned().chain(asked).collect();
            let there = paths
                .iter()
                .map(|path| partial::condition(path, "$exists", Value::Bool(true)));
            let all = said.iter().cloned().chain(there).collect();
            listed.push("partialFilterExpression", partial::joined(all));
        }
    }
}
