//! Partitions: what a new one gets of the table that it is of, how tables become partitions and tables again, and what is passed on to them.
//!
//! A partition has copies of all that its table declares, which are its own: columns, constraints, indexes, triggers for each row. Which index of a
//! partition is one of the table is seen by what they are on.

mod guard;
mod passed;

pub(super) use self::passed::{
    attached_index, check_division, check_index, check_key, check_only, check_own, check_trigger, create_indexes,
    drop_indexes, pass_column_name, pass_constraint_name, pass_on,
};
use super::alter::{self, Found};
use super::like::{self, Taken};
use super::{name_of, namespace};
use crate::bind::declared::Declared;
use crate::bind::{Binder, ident};
use crate::catalog::partition::{Bound, Keys};
use crate::catalog::{Table, schemas};
use crate::error::{self, Field, error, fail, unsupported, with};
use crate::parse::likes::Like;
use crate::parse::partitions::{Change, is_inherited};
use crate::parse::trigger::Trigger;
use crate::run::partitions::{children, declared};
use crate::run::tables::{Reading, SessionFacts};
use crate::types::style::Style;
use crate::types::zone::Zone;
use nestor_database::rights::Action as Right;
use nestor_database::statement::Statement;
use nestor_database::write::{Progress, catalog};
use nestor_model::{Namespace, Result};
use nestor_planner::relation::Env;
use nestor_storage::{View, WriteSet};
use sqlparser::ast::{
    ColumnDef, ColumnOption, CreateTable, ForValues, Ident, ObjectName, Statement as Ast, TableConstraint,
};
use std::sync::Arc;

/// What a new partition gets besides columns and constraints.
pub(super) struct Inherited {
    /// The table that it is of.
    parent: Namespace,
    /// Triggers for each row.
    pub(super) triggers: Arc<[Trigger]>,
}

/// The name by which declarations have a collection.
fn kept_name(ns: &Namespace) -> ObjectName {
    ObjectName::from(vec![Ident::with_quote('"', ns.coll.as_str())])
}

/// All of a table but that its columns count.
fn like_all(table: &ObjectName) -> Like {
    Like {
        table: table.clone(),
        comments: false,
        constraints: true,
        defaults: true,
        generated: true,
        identity: false,
        indexes: true,
    }
}

/// The partitions of a table.
fn below(view: &dyn View, ns: &Namespace) -> Result<Vec<Found>> {
    let all = children(view, ns).into_iter();
    let found = all.map(|(collection, _)| alter::found(view, &collection.ns));
    found.filter_map(Result::transpose).collect()
}

/// The partition of a table for all rows that no other takes.
fn default_of(view: &dyn View, ns: &Namespace) -> Option<Namespace> {
    let is_default = |table: &Table| {
        let of = table.partition_of.as_ref();
        of.is_some_and(|of| of.bound == ForValues::Default)
    };
    let mut all = children(view, ns).into_iter();
    all.find(|(_, table)| is_default(table))
        .map(|(collection, _)| collection.ns.clone())
}

/// The triggers of a table that its partitions have.
fn row_triggers(declared: &Declared) -> Arc<[Trigger]> {
    declared.triggers.iter().filter(|own| own.is_row).cloned().collect()
}

/// 42P17 for what is not partitioned.
fn check_divided(found: &Found) -> Result<()> {
    match found.declared.division {
        Some(_) => Ok(()),
        None => fail("42P17", format!("table \"{}\" is not partitioned", found.name)),
    }
}

/// Gives a CREATE TABLE … PARTITION OF the columns and constraints of its table, and its bound the form that is kept.
///
/// Errors: 42P01, 42P17, 42703, 42601; those of bounds.
pub(super) fn expand(
    statement: &Statement<'_>,
    session: &SessionFacts,
    create: &mut CreateTable,
    taken: &mut Taken,
) -> Result<Option<Inherited>> {
    let Some(of) = create.partition_of.clone() else {
        return Ok(None);
    };
    let ns = namespace(statement, session, &of)?;
    session.check_right(&ns, Right::CollMod)?;
    let read = statement.current_view();
    let view = read.view();
    let Some(parent) = alter::found(view, &ns)? else {
        let name = crate::bind::parts(&of).join(".");
        return fail("42P01", format!("relation \"{name}\" does not exist"));
    };
    if parent.declared.division.is_none() {
        return fail("42P17", format!("\"{}\" is not partitioned", parent.name));
    }
    let like = like_all(&of);
    let mut columns = like::columns_of(&parent.create, &like, &ns, schemas::split(view, &ns))?;
    for def in std::mem::take(&mut create.columns) {
        add_options(&mut columns, def)?;
    }
    create.columns = columns;
    let mut constraints = constraints_of(&parent.create, &of);
    constraints.append(&mut create.constraints);
    create.constraints = constraints;
    taken
        .indexes
        .extend(like::indexes_of(&parent.collection, &parent.declared, true));
    create.partition_of = Some(kept_name(&ns));
    let said = create.for_values.take().unwrap_or(ForValues::Default);
    let (_, bound) = bound(statement, session, view, (&ns, &parent), &said)?;
    create.for_values = Some(bound);
    Ok(Some(Inherited {
        parent: ns,
        triggers: row_triggers(&parent.declared),
    }))
}

/// The constraints of a table that its partitions have: keys get names of their own.
fn constraints_of(create: &CreateTable, table: &ObjectName) -> Vec<TableConstraint> {
    let mut out = like::constraints_of(create, &like_all(table));
    let foreign = create.constraints.iter();
    out.extend(
        foreign
            .filter(|own| matches!(own, TableConstraint::ForeignKey(_)))
            .cloned(),
    );
    out
}

/// What a partition says of a column beside what its table does.
fn add_options(columns: &mut [ColumnDef], said: ColumnDef) -> Result<()> {
    let name = ident(&said.name);
    if !is_inherited(&said.data_type) {
        return fail(
            "42601",
            format!("column \"{name}\" of a partition has the type of that of its table"),
        );
    }
    let Some(def) = columns.iter_mut().find(|def| ident(&def.name) == name) else {
        return fail("42703", format!("column \"{name}\" does not exist"));
    };
    for own in said.options {
        match &own.option {
            ColumnOption::Null => {}
            ColumnOption::NotNull => alter::set_not_null(def),
            ColumnOption::Default(_) => {
                def.options
                    .retain(|before| !matches!(before.option, ColumnOption::Default(_)));
                def.options.push(own);
            }
            ColumnOption::Generated { .. } => return unsupported("a generated column of a partition alone"),
            _ => def.options.push(own),
        }
    }
    Ok(())
}

/// The bound that is said of a partition, and the form of it that is kept.
fn bound(
    statement: &Statement<'_>,
    session: &SessionFacts,
    view: &dyn View,
    (ns, parent): (&Namespace, &Found),
    said: &ForValues,
) -> Result<(Bound, ForValues)> {
    let (op, _) = statement.operation(None)?;
    let reading = Reading::new(statement, view, &op, session);
    let Some(division) = &parent.declared.division else {
        return fail("42809", format!("\"{}\" is not partitioned", parent.name));
    };
    let table = Arc::new(parent.declared.table(ns, (None, &parent.name)));
    let env = Env {
        op: &op,
        params: &[],
        outer: None,
        effects: None,
        compared: None,
    };
    let mut binder = Binder::new(&reading, Vec::new());
    let keys = binder.partition_keys(&table, division)?;
    let bound = binder.partition_bound((&keys, division), said, &env)?;
    Ok((bound.clone(), kept_bound(&keys, &bound)?))
}

fn kept_bound(keys: &Keys, bound: &Bound) -> Result<ForValues> {
    let _style = Style::neutral();
    let _zone = Zone::default().enter();
    let text = format!("CREATE TABLE a PARTITION OF b {}", keys.shown(bound));
    match crate::parse::parse(&text)?.pop() {
        Some(Ast::CreateTable(CreateTable {
            for_values: Some(bound),
            ..
        })) => Ok(bound),
        _ => unsupported("a bound of these values"),
    }
}

/// Has whoever makes a partition of the same table meanwhile conflict.
fn touch(ws: &mut WriteSet, parent: &Namespace) -> Result<()> {
    if let Some(collection) = ws.catalog().get(parent).cloned() {
        ws.set_options(collection.id, collection.options.clone())?;
    }
    Ok(())
}

/// A table that is declared as a partition may be one, and stands beside the others.
///
/// Errors: 42P17 for a bound that overlaps, 23514 for rows that it would not let stand.
fn settle(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    (ns, parent): (&Namespace, &Namespace),
) -> Result<()> {
    let (op, _) = statement.operation(None)?;
    let default = {
        let reading = Reading::new(statement, &*ws, &op, session);
        let (Some(own), Some(table)) = (declared(&*ws, ns), declared(&*ws, parent)) else {
            return Ok(());
        };
        let (keys, parts) = reading.parts_of(&table)?;
        let (mine, others): (Vec<_>, Vec<_>) = parts.into_iter().partition(|(_, collection, _)| collection.ns == *ns);
        let others: Vec<(Bound, Namespace, Arc<Table>)> = others
            .into_iter()
            .map(|(bound, collection, table)| (bound, collection.ns.clone(), table))
            .collect();
        if let Some((bound, ..)) = mine.first() {
            check_bound(&keys, (&own.name, bound), &others)?;
        }
        let is_default = |(bound, ..): &&(Bound, Namespace, Arc<Table>)| matches!(bound, Bound::Default);
        let default = others
            .iter()
            .find(is_default)
            .map(|(_, ns, table)| (ns.clone(), table.clone()));
        if let Some((_, other)) = &default
            && let Some(tree) = reading.tree_of(other)?
            && !reading.rows_fit(other, &tree.levels)?
        {
            let message = format!(
                "updated partition constraint for default partition \"{}\" would be violated by some row",
                other.name
            );
            return Err(with(
                error("23514", message),
                &[(Field::Schema, &other.schema), (Field::Table, &other.name)],
            ));
        }
        if let Some(tree) = reading.tree_of(&own)?
            && !reading.rows_fit(&own, &tree.levels)?
        {
            let message = format!(
                "partition constraint of relation \"{}\" is violated by some row",
                own.name
            );
            return Err(with(
                error("23514", message),
                &[(Field::Schema, &own.schema), (Field::Table, &own.name)],
            ));
        }
        default
    };
    guard::set(statement, session, ws, ns)?;
    if let Some((other, _)) = default {
        guard::set(statement, session, ws, &other)?;
    }
    touch(ws, parent)
}

/// Two partitions have no rows in common.
fn check_bound(keys: &Keys, (name, bound): (&str, &Bound), others: &[(Bound, Namespace, Arc<Table>)]) -> Result<()> {
    if let Bound::Range { from, to } = bound
        && keys.is_empty(from, to)
    {
        let shown = keys.shown(bound);
        let ends = shown.trim_start_matches("FOR VALUES FROM ");
        let (low, high) = ends.split_once(" TO ").unwrap_or((ends, ""));
        let told = error("42P17", format!("empty range bound specified for partition \"{name}\""));
        let detail = format!("Specified lower bound {low} is greater than or equal to upper bound {high}.");
        return Err(with(told, &[(Field::Detail, &detail)]));
    }
    for (other, _, table) in others {
        if let (Bound::Default, Bound::Default) = (bound, other) {
            let message = format!(
                "partition \"{name}\" conflicts with existing default partition \"{}\"",
                table.name
            );
            return fail("42P17", message);
        }
        if let (Bound::Hash { modulus: own, .. }, Bound::Hash { modulus, .. }) = (bound, other) {
            let (least, most) = (own.min(modulus), own.max(modulus));
            if most % least != 0 {
                let told = error(
                    "42P17",
                    "every hash partition modulus must be a factor of the next larger modulus",
                );
                let detail = match own < modulus {
                    true => format!(
                        "The new modulus {own} is not a factor of {modulus}, the modulus of existing partition \"{}\".",
                        table.name
                    ),
                    false => format!(
                        "The new modulus {own} is not divisible by {modulus}, the modulus of existing partition \"{}\".",
                        table.name
                    ),
                };
                return Err(with(told, &[(Field::Detail, &detail)]));
            }
        }
        if keys.overlap(bound, other) {
            let message = format!("partition \"{name}\" would overlap partition \"{}\"", table.name);
            return fail("42P17", message);
        }
    }
    Ok(())
}

/// A new partition stands beside the others.
///
/// Errors: 42P17, 23514.
pub(super) fn made(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    (ns, inherited): (&Namespace, &Inherited),
) -> Result<()> {
    settle(statement, session, ws, (ns, &inherited.parent))
}

/// ALTER TABLE … ATTACH PARTITION and DETACH PARTITION.
///
/// Errors: those of both.
pub(super) fn change(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (table, partition, if_exists): (&ObjectName, &ObjectName, bool),
    change: &Change,
    progress: &mut Progress,
) -> Result<&'static str> {
    let parent = namespace(statement, session, table)?;
    let ns = namespace(statement, session, partition)?;
    session.check_right(&parent, Right::CollMod)?;
    session.check_right(&ns, Right::CollMod)?;
    session.deferred.check_none_of(&ns, "ALTER TABLE")?;
    if let Change::Detach { concurrently, finalize } = change {
        if *finalize {
            return unsupported("DETACH PARTITION FINALIZE");
        }
        if *concurrently && statement.in_transaction() {
            let message = "ALTER TABLE ... DETACH CONCURRENTLY cannot run inside a transaction block";
            return fail("25001", message);
        }
    }
    statement.atomically(progress, |ws| {
        let Some(above) = alter::found(&*ws, &parent)? else {
            let missing = error("42P01", format!("relation \"{}\" does not exist", parent.coll));
            return crate::notices::pass_over(if_exists, missing);
        };
        check_divided(&above)?;
        let Some(below) = alter::found(&*ws, &ns)? else {
            return fail("42P01", format!("relation \"{}\" does not exist", ns.coll));
        };
        match change {
            Change::Attach(said) => attach(statement, session, ws, (&parent, &above), (&ns, &below), said),
            Change::Detach { concurrently, .. } => {
                if *concurrently && default_of(&*ws, &parent).is_some() {
                    let message = "cannot detach partitions concurrently when a default partition exists";
                    return fail("55000", message);
                }
                detach(statement, session, ws, (&parent, &above), (&ns, &below))
            }
        }
    })?;
    Ok("ALTER TABLE")
}

fn attach(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    (parent, above): (&Namespace, &Found),
    (ns, below): (&Namespace, &Found),
    said: &ForValues,
) -> Result<()> {
    statement.check_plain(&below.collection, "SQL does not change its rows")?;
    if below.declared.partition_of.is_some() {
        return fail("42809", format!("\"{}\" is already a partition", below.name));
    }
    let is_above = ns == parent
        || crate::run::partitions::descendants(&*ws, ns)
            .iter()
            .any(|(own, _)| own.ns == *parent);
    if is_above {
        let told = error("42P07", "circular inheritance not allowed");
        let detail = format!("\"{}\" is already a child of \"{}\".", above.name, below.name);
        return Err(with(told, &[(Field::Detail, &detail)]));
    }
    let (a, b) = (schemas::is_temporary(&parent.coll), schemas::is_temporary(&ns.coll));
    if a != b {
        let (a, b) = if a {
            ("temporary", "permanent")
        } else {
            ("permanent", "temporary")
        };
        let message = format!(
            "cannot attach a {b} relation as partition of {a} relation \"{}\"",
            above.name
        );
        return fail("42809", message);
    }
    check_columns(above, below)?;
    let (_, kept) = bound(statement, session, &*ws, (parent, above), said)?;
    let mut create = below.create.clone();
    create.partition_of = Some(kept_name(parent));
    create.for_values = Some(kept);
    let own = passed::missing_constraints(above, &create);
    create.constraints.extend(own);
    let edit = alter::as_is(create);
    alter::declare(statement, session, ws, below, edit)?;
    passed::add_triggers(statement, ws, ns, &row_triggers(&above.declared))?;
    passed::add_indexes(statement, session, ws, (parent, ns))?;
    passed::conform(statement, session, ws, ns)?;
    settle(statement, session, ws, (ns, parent))
}

/// A table that is to be a partition has the columns of the table and no others.
///
/// Errors: 42804.
fn check_columns(above: &Found, below: &Found) -> Result<()> {
    for own in &below.declared.columns {
        if above.declared.columns.iter().all(|column| column.name != own.name) {
            let message = format!(
                "table \"{}\" contains column \"{}\" not found in parent \"{}\"",
                below.name, own.name, above.name
            );
            let detail = "The new partition may contain only the columns present in parent.";
            return Err(with(error("42804", message), &[(Field::Detail, detail)]));
        }
    }
    for column in &above.declared.columns {
        let Some(own) = below.declared.columns.iter().find(|own| own.name == column.name) else {
            return fail("42804", format!("child table is missing column \"{}\"", column.name));
        };
        let name = &column.name;
        if own.declared_type() != column.declared_type() || own.modifier != column.modifier {
            let message = format!(
                "child table \"{}\" has different type for column \"{name}\"",
                below.name
            );
            return fail("42804", message);
        }
        if own.collation() != column.collation() {
            let message = format!(
                "child table \"{}\" has different collation for column \"{name}\"",
                below.name
            );
            return fail("42P21", message);
        }
        if column.not_null && !own.not_null {
            return fail(
                "42804",
                format!("column \"{name}\" in child table must be marked NOT NULL"),
            );
        }
        match (&column.generated, &own.generated) {
            (Some(_), None) => {
                return fail(
                    "42804",
                    format!("column \"{name}\" in child table must be a generated column"),
                );
            }
            (None, Some(_)) => {
                return fail(
                    "42804",
                    format!("column \"{name}\" in child table must not be a generated column"),
                );
            }
            _ => {}
        }
    }
    for check in &above.declared.checks {
        match below.declared.checks.iter().find(|own| own.name == check.name) {
            None => return fail("42804", format!("child table is missing constraint \"{}\"", check.name)),
            Some(own) if own.text != check.text => {
                let message = format!(
                    "child table \"{}\" has different definition for check constraint \"{}\"",
                    below.name, check.name
                );
                return fail("42804", message);
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn detach(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    (parent, above): (&Namespace, &Found),
    (ns, below): (&Namespace, &Found),
) -> Result<()> {
    let is_it = below
        .declared
        .partition_of
        .as_ref()
        .is_some_and(|of| *of.parent == *parent.coll);
    if !is_it {
        let message = format!(
            "relation \"{}\" is not a partition of relation \"{}\"",
            below.name, above.name
        );
        return fail("42P01", message);
    }
    for (own, table) in std::iter::once((ns.clone(), declared(&*ws, ns))).chain(
        crate::run::partitions::descendants(&*ws, ns)
            .into_iter()
            .map(|(own, table)| (own.ns.clone(), Some(table))),
    ) {
        if let Some(table) = table {
            crate::write::foreign::check_removed(statement, session, ws, (&own, &table))?;
        }
    }
    let mut create = below.create.clone();
    create.partition_of = None;
    create.for_values = None;
    let inherited: Vec<String> = row_triggers(&above.declared)
        .iter()
        .map(|own| own.name.clone())
        .collect();
    alter::declare(statement, session, ws, below, alter::as_is(create))?;
    for name in inherited {
        passed::remove_trigger(statement, ws, ns, &name)?;
    }
    guard::set(statement, session, ws, ns)?;
    gone(statement, session, ws, parent)?;
    touch(ws, parent)
}

/// A partition of a table is gone: its rows may be those of the one for all others now.
///
/// Errors: those of the catalog.
pub(super) fn gone(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    parent: &Namespace,
) -> Result<()> {
    match default_of(&*ws, parent) {
        Some(default) => guard::set(statement, session, ws, &default),
        None => Ok(()),
    }
}

/// The collection of the table that the partition at a namespace is of.
pub(super) fn parent_of(view: &dyn View, ns: &Namespace) -> Option<Namespace> {
    let table = declared(view, ns)?;
    let of = table.partition_of.as_ref()?;
    Some(Namespace::new(&*ns.db, of.parent.as_str()))
}

/// Tells partitions of the new name of their table.
///
/// Errors: those of the catalog.
pub(super) fn rename(statement: &Statement<'_>, ws: &mut WriteSet, (from, to): (&Namespace, &Namespace)) -> Result<()> {
    for mut found in below(&*ws, from)? {
        found.create.partition_of = Some(kept_name(to));
        let text = found.declared.named(&found.create).to_string();
        catalog::set_validator(statement, ws, &found.collection, &found.declared.validator(&text))?;
    }
    Ok(())
}

/// The guard of a table that was declared anew.
///
/// Errors: those of the catalog.
pub(super) fn guarded(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    ns: &Namespace,
) -> Result<()> {
    let is_one = declared(&*ws, ns).is_some_and(|table| table.partition_of.is_some());
    match is_one {
        true => guard::set(statement, session, ws, ns),
        false => Ok(()),
    }
}

/// The whole name of a table, as messages have it.
fn shown(view: &dyn View, ns: &Namespace) -> String {
    name_of(view, ns).to_string().replace('"', "")
}

/// 2BP01 for what a partition has of its table.
fn requires(what: &str, by: &str) -> nestor_model::Error {
    let message = format!("cannot drop {what} because {by} requires it");
    let hint = format!("You can drop {by} instead.");
    error::with(error("2BP01", message), &[(Field::Hint, &hint)])
}
