//! What is passed on from a partitioned table to its partitions when it is altered, and what these may not do by themselves.

use super::super::alter::{self, Found, name_of, triggers};
use super::super::keys::{keep_type, qualify};
use super::super::{free, like};
use super::{below, like_all, requires, row_triggers, shown};
use crate::bind::declared::{Declared, names};
use crate::bind::{Binder, ident};
use crate::catalog::partition::Division;
use crate::catalog::schemas;
use crate::error::{Field, error, fail, unsupported, with};
use crate::parse::altered::{self, Altered};
use crate::parse::trigger::Trigger;
use crate::run::partitions::{children, declared};
use crate::run::tables::{Reading, SessionFacts, index_name};
use crate::write;
use nestor_database::statement::Statement;
use nestor_database::write::catalog;
use nestor_model::{Document, IndexSpec, Namespace, Result};
use nestor_storage::{Collection, Index, View, WriteSet};
use sqlparser::ast::{
    AlterColumnOperation, AlterTableOperation, CreateTable, DropBehavior, Ident, ObjectName, TableConstraint,
};
use std::sync::Arc;

/// The keys of a partitioned table have the columns that divide it, and these are columns.
///
/// Errors: 0A000; those of binding the key.
pub(in crate::ddl) fn check_division(
    statement: &Statement<'_>,
    session: &SessionFacts,
    view: &dyn View,
    (ns, declared): (&Namespace, &Declared),
) -> Result<()> {
    let Some(division) = &declared.division else {
        return Ok(());
    };
    let (op, _) = statement.operation(None)?;
    let reading = Reading::new(statement, view, &op, session);
    let (schema, name) = schemas::split(view, ns);
    let table = Arc::new(declared.table(ns, (Some(schema), name)));
    Binder::new(&reading, Vec::new()).partition_keys(&table, division)?;
    if !declared.key.is_empty() {
        check_key((name, division), "PRIMARY KEY", &declared.key)?;
    }
    for unique in &declared.unique {
        let own = |path: &String| {
            let column = declared.columns.iter().find(|column| column.path == *path);
            column.map_or_else(|| path.clone(), |column| column.name.clone())
        };
        let columns: Vec<String> = unique.paths.iter().map(own).collect();
        check_key((name, division), "UNIQUE", &columns)?;
    }
    Ok(())
}

/// A unique key has the columns that divide a table.
///
/// Errors: 0A000.
pub(in crate::ddl) fn check_key((table, division): (&str, &Division), kind: &str, columns: &[String]) -> Result<()> {
    for part in &division.parts {
        let Some(column) = &part.column else {
            let told = error(
                "0A000",
                format!("unsupported {kind} constraint with partition key definition"),
            );
            let detail = format!("{kind} constraints cannot be used when partition keys include expressions.");
            return Err(with(told, &[(Field::Detail, &detail)]));
        };
        if !columns.contains(column) {
            let told = error(
                "0A000",
                "unique constraint on partitioned table must include all partitioning columns",
            );
            let detail = format!(
                "{kind} constraint on table \"{table}\" lacks column \"{column}\" which is part of the partition key."
            );
            return Err(with(told, &[(Field::Detail, &detail)]));
        }
    }
    Ok(())
}

fn key_columns(constraint: &TableConstraint) -> Option<(bool, Vec<String>)> {
    match constraint {
        TableConstraint::PrimaryKey(key) => Some((true, names(&key.columns).ok()?)),
        TableConstraint::Unique(key) => Some((false, names(&key.columns).ok()?)),
        _ => None,
    }
}

/// The constraint of this name.
fn named<'c>(create: &'c CreateTable, name: &str) -> Option<&'c TableConstraint> {
    let mut all = create.constraints.iter();
    all.find(|own| name_of(own).as_deref() == Some(name))
}

/// The constraint of a partition that is one of its table.
fn counterpart<'c>(create: &'c CreateTable, of: &TableConstraint) -> Option<&'c TableConstraint> {
    let mut all = create.constraints.iter();
    match (of, key_columns(of)) {
        (_, Some(key)) => all.find(|own| key_columns(own).as_ref() == Some(&key)),
        (TableConstraint::ForeignKey(key), None) => all.find(|own| match own {
            TableConstraint::ForeignKey(own) => {
                own.columns == key.columns && own.foreign_table == key.foreign_table && own.name == key.name
            }
            _ => false,
        }),
        _ => name_of(of).and_then(|name| named(create, &name)),
    }
}

/// The constraint that a partition is to have where its table has one.
fn inherited(of: &TableConstraint) -> TableConstraint {
    let mut out = of.clone();
    match &mut out {
        TableConstraint::PrimaryKey(key) => key.name = None,
        TableConstraint::Unique(key) => key.name = None,
        _ => {}
    }
    out
}

/// The keys of a table that one which is to be a partition of it has not yet.
pub(super) fn missing_constraints(above: &Found, create: &CreateTable) -> Vec<TableConstraint> {
    let is_missing = |constraint: &&TableConstraint| {
        let is_key = matches!(
            constraint,
            TableConstraint::PrimaryKey(_) | TableConstraint::Unique(_) | TableConstraint::ForeignKey(_)
        );
        is_key && counterpart(create, constraint).is_none()
    };
    let all = above.create.constraints.iter();
    all.filter(is_missing).map(inherited).collect()
}

/// What ALTER TABLE says of a partitioned table, as its partitions are told it. Constraints are compared with what they were instead.
fn told(
    (before, now): (&Found, &Found),
    operations: &[AlterTableOperation],
    below: &Found,
    place: (&Namespace, (&str, &str)),
) -> Result<Vec<AlterTableOperation>> {
    use AlterTableOperation as Op;
    let mut out = Vec::new();
    for operation in operations {
        match operation {
            Op::AddColumn { column_def, .. } => {
                let name = ident(&column_def.name);
                let table = ObjectName::from(vec![Ident::with_quote('"', now.name.as_str())]);
                let all = like::columns_of(&now.create, &like_all(&table), place.0, place.1)?;
                let is_there = below.declared.columns.iter().any(|own| own.name == name);
                let was_there = before.declared.columns.iter().any(|own| own.name == name);
                if is_there && !was_there {
                    let message = format!("column \"{name}\" of relation \"{}\" already exists", below.name);
                    return fail("42701", message);
                }
                let def = all.into_iter().find(|def| ident(&def.name) == name);
                out.extend(def.filter(|_| !is_there).map(|column_def| Op::AddColumn {
                    column_keyword: true,
                    if_not_exists: false,
                    column_def,
                    column_position: None,
                }));
            }
            Op::DropColumn { column_names, .. } => out.push(Op::DropColumn {
                has_column_keyword: true,
                column_names: column_names.clone(),
                if_exists: true,
                drop_behavior: Some(DropBehavior::Cascade),
            }),
            Op::AlterColumn {
                op: AlterColumnOperation::SetDefault { value },
                ..
            } if matches!(
                Altered::of(value),
                Some(Altered::DropIdentity { .. } | Altered::SetGenerated { .. })
            ) || altered::timing_of(value)?.is_some() => {}
            Op::AlterColumn {
                op: AlterColumnOperation::AddGenerated { .. },
                ..
            } => {}
            Op::AlterColumn { .. } => out.push(operation.clone()),
            Op::ValidateConstraint { name } if named(&below.create, &ident(name)).is_some() => {
                out.push(operation.clone());
            }
            _ => {}
        }
    }
    for gone in &before.create.constraints {
        if now.create.constraints.iter().any(|own| name_of(own) == name_of(gone)) {
            continue;
        }
        if let Some(name) = counterpart(&below.create, gone).and_then(name_of) {
            out.push(Op::DropConstraint {
                if_exists: true,
                name: Ident::with_quote('"', name),
                drop_behavior: Some(DropBehavior::Cascade),
            });
        }
    }
    for new in &now.create.constraints {
        let was_there = before.create.constraints.iter().any(|own| name_of(own) == name_of(new));
        if was_there || counterpart(&below.create, new).is_some() {
            continue;
        }
        let mut constraint = inherited(new);
        let mut not_valid = false;
        if let TableConstraint::Check(check) = &mut constraint {
            not_valid = check.enforced == Some(false);
            check.enforced = None;
        }
        if let TableConstraint::ForeignKey(key) = &mut constraint
            && let Some(said) = &mut key.characteristics
        {
            not_valid = said.enforced == Some(false);
            said.enforced = None;
        }
        out.push(Op::AddConstraint { constraint, not_valid });
    }
    Ok(out)
}

/// Does to the partitions of a table what was done to it, which was `before`.
///
/// Errors: those of altering them.
pub(in crate::ddl) fn pass_on(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    before: &Found,
    operations: &[AlterTableOperation],
) -> Result<()> {
    let ns = &before.collection.ns;
    let Some(now) = alter::found(&*ws, ns)? else {
        return Ok(());
    };
    if now.declared.division.is_none() {
        return Ok(());
    }
    for below in below(&*ws, ns)? {
        let mut own = {
            let place = schemas::split(&*ws, ns);
            told((before, &now), operations, &below, (ns, place))?
        };
        if own.is_empty() {
            continue;
        }
        for operation in &mut own {
            if let AlterTableOperation::AlterColumn {
                op: AlterColumnOperation::SetDataType { data_type, .. },
                ..
            } = operation
            {
                keep_type(&*ws, session, data_type)?;
            }
        }
        let mut edit = alter::edited(below.create.clone(), &below.name, &own)?;
        qualify(&*ws, session, &mut edit.create)?;
        alter::declare(statement, session, ws, &below, edit)?;
        pass_on(statement, session, ws, &below, &own)?;
    }
    Ok(())
}

/// Gives a column of partitions the name that it has in their table.
///
/// Errors: those of renaming it.
pub(in crate::ddl) fn pass_column_name(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    ns: &Namespace,
    (from, to): (&str, &Ident),
) -> Result<()> {
    for below in below(&*ws, ns)? {
        let place = (below.name.as_str(), &*below.collection.ns.coll);
        let create = alter::with_column_renamed(&below.create, place, from, to)?;
        alter::declare(statement, session, ws, &below, alter::as_is(create))?;
        pass_column_name(statement, session, ws, &below.collection.ns, (from, to))?;
    }
    Ok(())
}

/// Gives a constraint of partitions that is called as that of their table the new name of this.
///
/// Errors: those of renaming it.
pub(in crate::ddl) fn pass_constraint_name(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    before: &Found,
    (from, to): (&str, &Ident),
) -> Result<()> {
    let is_shared = matches!(
        named(&before.create, from),
        Some(TableConstraint::Check(_) | TableConstraint::ForeignKey(_))
    );
    if !is_shared {
        return Ok(());
    }
    for below in below(&*ws, &before.collection.ns)? {
        if named(&below.create, from).is_none() {
            continue;
        }
        let create = alter::with_constraint_renamed(&below.create, &below.name, from, to)?;
        alter::declare(statement, session, ws, &below, alter::as_is(create))?;
        pass_constraint_name(statement, session, ws, &below, (from, to))?;
    }
    Ok(())
}

/// Refuses what partitions, and columns that divide rows, may not have done to them.
///
/// Errors: 42809, 42P16.
pub(in crate::ddl) fn check_own(view: &dyn View, found: &Found, operations: &[AlterTableOperation]) -> Result<()> {
    use AlterTableOperation as Op;
    if let Some(division) = &found.declared.division {
        for operation in operations {
            let (columns, verb) = match operation {
                Op::DropColumn { column_names, .. } => (column_names.clone(), "drop"),
                Op::AlterColumn {
                    column_name,
                    op: AlterColumnOperation::SetDataType { .. },
                } => (vec![column_name.clone()], "alter"),
                _ => continue,
            };
            for column in columns.iter().map(ident) {
                let is_used = division
                    .parts
                    .iter()
                    .any(|part| crate::parse::columns(&part.text).contains(&column));
                if is_used {
                    let message = format!(
                        "cannot {verb} column \"{column}\" because it is part of the partition key of relation \"{}\"",
                        found.name
                    );
                    return fail("42P16", message);
                }
            }
        }
    }
    let Some(parent) = super::parent_of(view, &found.collection.ns) else {
        return Ok(());
    };
    let Some(above) = alter::found(view, &parent)? else {
        return Ok(());
    };
    for operation in operations {
        match operation {
            Op::AddColumn { .. } => return fail("42809", "cannot add column to a partition"),
            Op::DropColumn { column_names, .. } => {
                if let Some(column) = column_names.first() {
                    return fail("42P16", format!("cannot drop inherited column \"{}\"", ident(column)));
                }
            }
            Op::RenameColumn { old_column_name, .. } => {
                let message = format!("cannot rename inherited column \"{}\"", ident(old_column_name));
                return fail("42P16", message);
            }
            Op::AlterColumn {
                column_name,
                op: AlterColumnOperation::SetDataType { .. },
            } => {
                return fail(
                    "42P16",
                    format!("cannot alter inherited column \"{}\"", ident(column_name)),
                );
            }
            Op::AlterColumn {
                column_name,
                op: AlterColumnOperation::DropNotNull,
            } => {
                let name = ident(column_name);
                let mut all = above.declared.columns.iter();
                if all.any(|column| column.name == name && column.not_null) {
                    return fail("42P16", format!("column \"{name}\" is marked NOT NULL in parent table"));
                }
            }
            Op::DropConstraint { name, .. } => {
                let name = ident(name);
                let mut all = above.create.constraints.iter();
                let own = all
                    .find_map(|of| counterpart(&found.create, of).filter(|own| name_of(own).as_deref() == Some(&name)));
                if own.is_some() {
                    let message = format!(
                        "cannot drop inherited constraint \"{name}\" of relation \"{}\"",
                        found.name
                    );
                    return fail("42P16", message);
                }
            }
            Op::RenameConstraint { old_name, .. } => {
                let name = ident(old_name);
                let mut all = above.create.constraints.iter();
                if all.any(|own| key_columns(own).is_none() && name_of(own).as_deref() == Some(&name)) {
                    return fail("42P16", format!("cannot rename inherited constraint \"{name}\""));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Gives a table triggers.
///
/// Errors: 42710 for a name that is taken.
pub(super) fn add_triggers(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    ns: &Namespace,
    all: &[Trigger],
) -> Result<()> {
    match all.is_empty() {
        true => Ok(()),
        false => triggers::add(statement, ws, ns, all, false),
    }
}

/// Takes a trigger from a table and from its partitions.
///
/// Errors: those of the catalog.
pub(super) fn remove_trigger(statement: &Statement<'_>, ws: &mut WriteSet, ns: &Namespace, name: &str) -> Result<()> {
    triggers::remove(statement, ws, ns, name)?;
    for (collection, _) in children(&*ws, ns) {
        remove_trigger(statement, ws, &collection.ns, name)?;
    }
    Ok(())
}

/// A specification without its name.
fn nameless(spec: &IndexSpec) -> Result<Document> {
    let mut listed: Document = spec.listed().as_raw().as_doc().to_document();
    listed.set("name", "");
    Ok(listed)
}

fn is_alike(a: &IndexSpec, b: &IndexSpec) -> Result<bool> {
    Ok(nameless(a)?.to_raw().as_bytes() == nameless(b)?.to_raw().as_bytes())
}

/// The index of a partition that is one of its table.
///
/// Errors: those of specifications.
fn index_of(
    (above, index): (&Declared, &Index),
    (below, collection): (&Declared, &Collection),
) -> Result<(Option<IndexSpec>, Option<Arc<Index>>)> {
    if index.is_id() {
        let own = collection.indexes.iter().find(|own| own.is_id()).cloned();
        return Ok((
            None,
            own.filter(|_| below.columns.iter().any(|column| column.path == "_id")),
        ));
    }
    let Some(spec) = alter::index_there(index, above, below)? else {
        return Ok((None, None));
    };
    for own in collection.indexes.iter().filter(|own| !own.is_id()) {
        if is_alike(&own.spec, &spec)? {
            return Ok((Some(spec), Some(own.clone())));
        }
    }
    Ok((Some(spec), None))
}

/// Makes the indexes of a table that one of its partitions has not yet, and that are those of no constraint.
///
/// Errors: 23505, those of making keys.
pub(super) fn add_indexes(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    (parent, ns): (&Namespace, &Namespace),
) -> Result<()> {
    let (Some(above), Some(below)) = (alter::found(&*ws, parent)?, alter::found(&*ws, ns)?) else {
        return Ok(());
    };
    for (spec, parts) in like::indexes_of(&above.collection, &above.declared, true) {
        let Some(index) = above.collection.indexes.iter().find(|index| *index.name == *spec.name) else {
            continue;
        };
        let Some(collection) = ws.catalog().get(ns).cloned() else {
            return Ok(());
        };
        let (Some(spec), None) = index_of((&above.declared, index), (&below.declared, &collection))? else {
            continue;
        };
        let name = {
            let (op, _) = statement.operation(None)?;
            let reading = Reading::new(statement, &*ws, &op, session);
            free::of_index(&reading, ns, &below.name, &parts)
        };
        let made = catalog::create_index(statement, ws, ns, &like::renamed(&spec, &name)?);
        if let (Err(failed), Some(table)) = (made, declared(&*ws, ns)) {
            return Err(write::duplicated(failed, &table, &name));
        }
    }
    Ok(())
}

/// Gives the partitions below a table what it has.
///
/// Errors: those of altering them.
pub(in crate::ddl) fn conform(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    ns: &Namespace,
) -> Result<()> {
    for (collection, _) in children(&*ws, ns) {
        let own = &collection.ns;
        let (Some(above), Some(below)) = (alter::found(&*ws, ns)?, alter::found(&*ws, own)?) else {
            continue;
        };
        let mut create = below.create.clone();
        let missing = missing_constraints(&above, &create);
        if !missing.is_empty() {
            create.constraints.extend(missing);
            alter::declare(statement, session, ws, &below, alter::as_is(create))?;
        }
        let wanted: Vec<Trigger> = row_triggers(&above.declared)
            .iter()
            .filter(|wanted| below.declared.triggers.iter().all(|own| own.name != wanted.name))
            .cloned()
            .collect();
        add_triggers(statement, ws, own, &wanted)?;
        add_indexes(statement, session, ws, (ns, own))?;
        conform(statement, session, ws, own)?;
    }
    Ok(())
}

/// Makes the indexes of a table on all partitions below it.
///
/// Errors: 23505, those of making keys.
pub(in crate::ddl) fn create_indexes(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    ns: &Namespace,
) -> Result<()> {
    for (collection, _) in children(&*ws, ns) {
        add_indexes(statement, session, ws, (ns, &collection.ns))?;
        create_indexes(statement, session, ws, &collection.ns)?;
    }
    Ok(())
}

/// Drops the indexes of partitions that are one of their table, which is about to go.
///
/// Errors: those of the catalog.
pub(in crate::ddl) fn drop_indexes(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    collection: &Collection,
    index: &Index,
) -> Result<()> {
    let Some(above) = Declared::of_collection(collection) else {
        return Ok(());
    };
    for (child, _) in children(&*ws, &collection.ns) {
        let Some(below) = Declared::of_collection(&child) else {
            continue;
        };
        if let (_, Some(own)) = index_of((&above, index), (&below, &child))? {
            drop_indexes(statement, ws, &child, &own)?;
            if let Some(now) = ws.catalog().get(&child.ns).cloned() {
                catalog::drop_index(statement, ws, &now, &own)?;
            }
        }
    }
    Ok(())
}

/// The index of the table that an index of a partition is one of.
///
/// Errors: those of specifications.
pub(in crate::ddl) fn index_parent(view: &dyn View, collection: &Collection, index: &Index) -> Result<Option<String>> {
    let Some(parent) = super::parent_of(view, &collection.ns) else {
        return Ok(None);
    };
    let (Some(above), Some(below)) = (view.catalog().get(&parent), Declared::of_collection(collection)) else {
        return Ok(None);
    };
    let Some(declared) = Declared::of_collection(above) else {
        return Ok(None);
    };
    for own in above.indexes.iter() {
        let (_, found) = index_of((&declared, own), (&below, collection))?;
        if found.is_some_and(|found| found.id == index.id) {
            return Ok(Some(index_name(above, own)));
        }
    }
    Ok(None)
}

/// Refuses to drop an index that a partition has of its table.
///
/// Errors: 2BP01.
pub(in crate::ddl) fn check_index(view: &dyn View, collection: &Collection, index: &Index) -> Result<()> {
    match index_parent(view, collection, index)? {
        Some(parent) => Err(requires(
            &format!("index {}", index_name(collection, index)),
            &format!("index {parent}"),
        )),
        None => Ok(()),
    }
}

/// Refuses to drop a trigger that a partition has of its table.
///
/// Errors: 2BP01.
pub(in crate::ddl) fn check_trigger(view: &dyn View, ns: &Namespace, name: &str) -> Result<()> {
    let Some(parent) = super::parent_of(view, ns) else {
        return Ok(());
    };
    let above = view.catalog().get(&parent).and_then(|own| Declared::of_collection(own));
    let is_above = above.is_some_and(|above| row_triggers(&above).iter().any(|own| own.name == name));
    match is_above {
        true => Err(requires(
            &format!("trigger {name} on table {}", shown(view, ns)),
            &format!("trigger {name} on table {}", shown(view, &parent)),
        )),
        false => Ok(()),
    }
}

/// ALTER INDEX … ATTACH PARTITION: an index of a partition that is one of the table's already, as what they are on tells.
///
/// Errors: 42704, 55000 for another one.
pub(in crate::ddl) fn attached_index(
    view: &dyn View,
    session: &SessionFacts,
    (index, partition): (&ObjectName, &ObjectName),
) -> Result<&'static str> {
    let named = |name: &ObjectName| {
        let name = crate::parse::partitions::last(name);
        match super::super::index::find(view, session, &name) {
            Some(found) => Ok((name, found)),
            None => fail("42P01", format!("relation \"{name}\" does not exist")),
        }
    };
    let (above, below) = (named(index)?, named(partition)?);
    let parent = index_parent(view, &below.1.0, &below.1.1)?;
    if parent.as_ref() == Some(&above.0) {
        return Ok("ALTER INDEX");
    }
    let told = error(
        "55000",
        format!(
            "cannot attach index \"{}\" as a partition of index \"{}\"",
            below.0, above.0
        ),
    );
    let detail = "The index definitions do not match.";
    Err(with(told, &[(Field::Detail, detail)]))
}

/// Refuses ONLY where partitions have to follow.
///
/// Errors: 0A000, 42P16.
pub(in crate::ddl) fn check_only(operations: &[AlterTableOperation]) -> Result<()> {
    use AlterTableOperation as Op;
    for operation in operations {
        match operation {
            Op::AddConstraint {
                constraint: TableConstraint::PrimaryKey(_) | TableConstraint::Unique(_),
                ..
            }
            | Op::AlterColumn {
                op: AlterColumnOperation::SetDefault { .. } | AlterColumnOperation::DropDefault,
                ..
            } => {}
            Op::AddColumn { .. } => return fail("42P16", "column must be added to child tables too"),
            Op::AddConstraint { .. } => return fail("42P16", "constraint must be added to child tables too"),
            _ => return unsupported("ALTER TABLE ONLY of a partitioned table in this form"),
        }
    }
    Ok(())
}
