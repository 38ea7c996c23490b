//! ALTER TABLE.
//!
//! [`edit`] makes the text that declares the table anew, [`rows`] sees what that means for its rows, [`indexes`] for its indexes, [`others`] for
//! tables that have keys of it, and [`triggers`] for what is called when its rows are written. All of it is one commit, or a part of a transaction: whoever else writes to the table meanwhile conflicts
//! with it.

mod defaults;
mod edit;
mod found;
mod indexes;
mod moved;
mod others;
mod rename;
mod rows;
pub(super) mod triggers;

pub(super) use self::defaults::let_sequence_go;
pub(super) use self::edit::{
    Edit, edited, name_of, set_not_null, uncount, with_column_renamed, with_constraint_renamed, without_columns,
};
pub(super) use self::found::{Found, found};
pub(super) use self::indexes::index_there;
pub(super) use self::moved::set_schema;
pub(super) use self::others::{check_index_goes, let_go};
pub(super) use self::rename::{Kind, rename};
use self::rows::{Change, Rows};
use super::keys::{check_expressions, check_keys};
use super::keys::{keep_type, qualify};
use super::sequence as own_sequence;
use super::{exclusion, index, namespace, partition, policies, view};
use crate::bind::alter::Source;
use crate::bind::declared::{Declared, name_in_schema};
use crate::bind::entry;
use crate::bind::{ident, numbers, object_name};
use crate::catalog::{Column, IdentityKind, Table, schemas};
use crate::error::{error, fail, unsupported};
use crate::notices::pass_over;
use crate::parse;
use crate::run::gathered::Gathered;
use crate::run::numbers::{Sequence, of_collection};
use crate::run::tables::{Reading, SessionFacts};
use crate::write::foreign::{Changes, referring};
use nestor_database::rights::Action as Right;
use nestor_database::statement::Statement;
use nestor_database::write::sequence::Counting;
use nestor_database::write::{Progress, catalog, comments, sequence};
use nestor_model::{Document, IndexSpec, Namespace, RawDocBuf, Result};
use nestor_storage::{View as _, WriteSet};
use sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, ColumnDef, CreateTable, Ident, ObjectName,
    RenameTableNameKind,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Another declaration of the same columns.
pub(super) fn as_is(create: CreateTable) -> Edit {
    Edit {
        sources: (0..create.columns.len()).map(Source::Kept).collect(),
        create,
        cascades: false,
    }
}

/// ALTER TABLE.
pub(super) fn alter(
    statement: &Statement<'_>,
    session: &SessionFacts,
    alter: &AlterTable,
    progress: &mut Progress,
) -> Result<&'static str> {
    if alter.location.is_some() || alter.on_cluster.is_some() || alter.table_type.is_some() {
        return unsupported("a clause of this ALTER TABLE");
    }
    let ns = namespace(statement, session, &alter.name)?;
    if let [
        AlterTableOperation::RenameTable {
            table_name: RenameTableNameKind::To(to),
        },
    ] = alter.operations.as_slice()
    {
        return rename(statement, session, (&ns, to), (Kind::Any, alter.if_exists), progress).map(|()| "ALTER TABLE");
    }
    if let [
        AlterTableOperation::RenameColumn {
            old_column_name,
            new_column_name,
        },
    ] = alter.operations.as_slice()
        && view::is_view(statement, &ns)
    {
        let names = (&ns, old_column_name, new_column_name);
        return view::rename_column(statement, session, names, alter.if_exists, progress).map(|()| "ALTER TABLE");
    }
    session.check_right(&ns, Right::CollMod)?;
    session.deferred.check_none_of(&ns, "ALTER TABLE")?;
    if let [operation] = alter.operations.as_slice()
        && let Some((name, is_off)) = triggers::switched(operation)?
    {
        return triggers::switch(statement, session, (&ns, &name, is_off), alter.if_exists, progress)
            .map(|()| "ALTER TABLE");
    }
    statement.atomically(progress, |ws| {
        let Some(mut found) = found(ws, &ns)? else {
            let missing = error("42P01", format!("relation \"{}\" does not exist", ns.coll));
            return pass_over(alter.if_exists, missing);
        };
        statement.check_plain(&found.collection, "SQL does not change its rows")?;
        if alter.operations.iter().any(policies::is_switch) {
            policies::switch(statement, session, ws, &found, &alter.operations)?;
            if alter.operations.iter().all(policies::is_switch) {
                return Ok(());
            }
            found = again(ws, found)?;
        }
        policies::follow(statement, ws, &found, &alter.operations)?;
        found = again(ws, found)?;
        partition::check_own(&*ws, &found, &alter.operations)?;
        let passes = found.declared.division.is_some();
        if passes && alter.only {
            partition::check_only(&alter.operations)?;
        }
        let mut asked = Vec::new();
        let edit = match alter.operations.as_slice() {
            [
                AlterTableOperation::RenameColumn {
                    old_column_name,
                    new_column_name,
                },
            ] => {
                let from = ident(old_column_name);
                let mut create = found.create.clone();
                numbers::keep(&mut create, &found.declared.columns, &found.name);
                let create = edit::with_column_renamed(&create, (&found.name, &ns.coll), &from, new_column_name)?;
                others::rename_referred(statement, ws, &found, (&from, &ident(new_column_name)))?;
                policies::rename_column(statement, ws, &found, (&from, &ident(new_column_name)))?;
                found = again(ws, found)?;
                as_is(create)
            }
            [AlterTableOperation::RenameConstraint { old_name, new_name }] => as_is(edit::with_constraint_renamed(
                &found.create,
                &found.name,
                &ident(old_name),
                new_name,
            )?),
            operations => {
                let mut operations = operations.to_vec();
                for operation in &mut operations {
                    if let AlterTableOperation::AddColumn {
                        column_def: ColumnDef { data_type, .. },
                        ..
                    }
                    | AlterTableOperation::AlterColumn {
                        op: AlterColumnOperation::SetDataType { data_type, .. },
                        ..
                    } = operation
                    {
                        keep_type(&*ws, session, data_type)?;
                    }
                }
                let (schema, _) = schemas::split(&*ws, &ns);
                let create = with_nulls(&found, schema, &operations)?;
                let mut edit = edit::edited(create, &found.name, &operations)?;
                qualify(&*ws, session, &mut edit.create)?;
                let (op, _) = statement.operation(None)?;
                let reading = Reading::new(statement, &*ws, &op, session);
                let now = Declared::of(&edit.create, &found.name)?.columns;
                let place = (&ns, found.name.as_str());
                own_sequence::name_new(&reading, &mut edit.create, place, &now, &found.declared.columns);
                asked = operations;
                edit
            }
        };
        declare(statement, session, ws, &found, edit)?;
        if !passes || alter.only {
            return Ok(());
        }
        match alter.operations.as_slice() {
            [
                AlterTableOperation::RenameColumn {
                    old_column_name,
                    new_column_name,
                },
            ] => {
                let names = (ident(old_column_name), new_column_name);
                partition::pass_column_name(statement, session, ws, &ns, (&names.0, names.1))
            }
            [AlterTableOperation::RenameConstraint { old_name, new_name }] => {
                partition::pass_constraint_name(statement, session, ws, &found, (&ident(old_name), new_name))
            }
            _ => partition::pass_on(statement, session, ws, &found, &asked),
        }
    })?;
    Ok("ALTER TABLE")
}

/// A table whose options may have changed.
///
/// Errors: those of [`found()`].
fn again(ws: &WriteSet, before: Found) -> Result<Found> {
    Ok(found(ws, &before.collection.ns)?.unwrap_or(before))
}

/// What declares a table whose serial columns ask their sequences as far as they are to have nulls: what counts by its type has none.
///
/// Errors: those of [`edit::with_sequence_asked`].
fn with_nulls(table: &Found, schema: &str, operations: &[AlterTableOperation]) -> Result<CreateTable> {
    let mut create = table.create.clone();
    for operation in operations {
        let AlterTableOperation::AlterColumn {
            column_name,
            op: AlterColumnOperation::DropNotNull,
        } = operation
        else {
            continue;
        };
        let name = ident(column_name);
        let is_serial = |column: &&Column| {
            column.name == name
                && column
                    .identity
                    .is_some_and(|identity| identity.kind == IdentityKind::Serial)
        };
        if let Some(column) = table.declared.columns.iter().find(is_serial) {
            create = edit::with_sequence_asked(&create, &name, (schema, &column.sequence_of(&table.name)))?;
        }
    }
    Ok(create)
}

/// ALTER INDEX … RENAME TO. The index of a constraint is called by it, so that gets the name; another is made anew under its new one in the same
/// commit, as commands of MQL have no such thing, and so other nodes do it.
///
/// Errors: 42704, 42P07; 2BP01 for `_id_`, which has one name.
pub(super) fn rename_index(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (from, to): (&ObjectName, &ObjectName),
    if_exists: bool,
    progress: &mut Progress,
) -> Result<()> {
    let (_, from) = object_name(from)?;
    let (None, to) = object_name(to)? else {
        return fail("42601", "a new name has no schema");
    };
    statement.atomically(progress, |ws| {
        let Some((collection, index)) = index::find(ws, session, &from) else {
            let missing = error("42P01", format!("relation \"{from}\" does not exist"));
            return pass_over(if_exists, missing);
        };
        let ns = &collection.ns;
        session.check_right(ns, Right::DropIndex)?;
        session.check_right(ns, Right::CreateIndex)?;
        let (schema, _) = schemas::split(&*ws, ns);
        let taken = Namespace::new(&*ns.db, schemas::collection(schema, &to));
        let (op, _) = statement.operation(None)?;
        if Reading::new(statement, &*ws, &op, session).has_relation(&taken) {
            return fail("42P07", format!("relation \"{to}\" already exists"));
        }
        if let Some(found) = found(ws, ns).ok().flatten()
            && found.declared.constraint_names().contains(&from)
        {
            session.check_right(ns, Right::CollMod)?;
            statement.check_plain(&collection, "SQL does not change its rows")?;
            let new = Ident::with_quote('"', &to);
            let create = edit::with_constraint_renamed(&found.create, &found.name, &from, &new)?;
            return declare(statement, session, ws, &found, as_is(create));
        }
        if index.is_id() {
            return fail("2BP01", format!("the index of _id of {} has no other name", ns.coll));
        }
        let mut listed = Document::from(index.spec.listed().clone());
        listed.set("name", to.as_str());
        let spec = IndexSpec::parse(listed.to_raw())?;
        catalog::drop_index(statement, ws, &collection, &index)?;
        catalog::create_index(statement, ws, ns, &spec)?;
        let Some(now) = ws.catalog().by_id(collection.id).cloned() else {
            return Ok(());
        };
        comments::keep(statement, ws, &now, &|kind, name| {
            let is_it = kind == "indexes" && *name == *index.name;
            Some(if is_it { to.clone() } else { name.to_owned() })
        })
    })
}

/// Declares an identity column anew, with how it counts.
///
/// Errors: 0A000 for serial columns, whose declaration has no place for that: those [ask](ask_sequence) a sequence first.
pub(super) fn recount(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    (sequence, counting): (&Sequence, Counting),
) -> Result<()> {
    let Some(table) = found(ws, &sequence.ns)? else {
        return fail("42P01", format!("relation \"{}\" does not exist", sequence.ns.coll));
    };
    let create = edit::with_counting(&table.create, sequence.column(), &counting)?;
    declare(statement, session, ws, &table, as_is(create))
}

/// Has a serial column ask its sequence by its default: that stands for itself from then on, and goes with the column still.
///
/// Errors: those of [`declare`].
pub(super) fn ask_sequence(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    sequence: &Sequence,
) -> Result<()> {
    let Some(table) = found(ws, &sequence.ns)? else {
        return fail("42P01", format!("relation \"{}\" does not exist", sequence.ns.coll));
    };
    let create = edit::with_sequence_asked(&table.create, sequence.column(), (&sequence.schema, &sequence.name))?;
    declare(statement, session, ws, &table, as_is(create))
}

/// Gives the sequence of a column another name.
///
/// Errors: those of [`declare`].
fn rename_sequence(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    (sequence, name): (&Sequence, &str),
) -> Result<()> {
    let Some(table) = found(ws, &sequence.ns)? else {
        return fail("42P01", format!("relation \"{}\" does not exist", sequence.ns.coll));
    };
    let mut create = table.create.clone();
    numbers::name(&mut create, sequence.column(), name);
    declare(statement, session, ws, &table, as_is(create))
}

/// Makes a table what it is declared to be.
///
/// Errors: 23502, 23503, 23505, 23514 and others of its rows.
pub(super) fn declare(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    found: &Found,
    edit: Edit,
) -> Result<()> {
    let ns = &found.collection.ns;
    let mut declared = Declared::of(&edit.create, &found.name)?;
    declared.triggers = triggers::kept(found, &declared, &edit)?;
    let text = declared.named(&edit.create).to_string();
    entry::check_text(&text)?;
    check_expressions(statement, session, ws, ns, &declared)?;
    partition::check_division(statement, session, ws, (ns, &declared))?;
    let (schema, name) = name_in_schema(&edit.create.name, &ns.coll);
    let place = (schema.as_deref(), name);
    let (old, new) = (
        Arc::new(found.declared.table(ns, place)),
        Arc::new(declared.table(ns, place)),
    );
    exclusion::check(&new)?;
    if declared.is_unlogged != found.declared.is_unlogged {
        check_persistence(ws, &declared, &new, ns)?;
    }
    let foreign = new_keys(&old, &new, &edit.sources);
    let of_keys = Declared {
        foreign: foreign.foreign.clone(),
        ..declared.clone()
    };
    check_keys(session, ws, ns, &of_keys)?;
    others::settle(statement, ws, found, (&declared, &edit.sources), edit.cascades)?;
    let (op, _) = statement.operation(None)?;
    let change = Change {
        statement,
        session,
        op: &op,
        old: &old,
        new: &new,
        sources: &edit.sources,
        collection: &found.collection,
    };
    let mut gathered = Gathered::new();
    let mut keyed: Vec<RawDocBuf> = Vec::new();
    let mut look = |doc: &Document| keyed.push(doc.to_raw());
    let wants = !foreign.foreign.is_empty() || !foreign.exclusions.is_empty();
    let rows: Rows = change.gather(ws, &mut gathered, wants.then_some(&mut look))?;
    catalog::set_validator(statement, ws, &found.collection, &declared.validator(&text))?;
    let missing = indexes::drop_changed(statement, ws, found, (&declared, &new, &edit.sources))?;
    change.write(ws, ns, rows)?;
    indexes::make(statement, ws, &new, &missing)?;
    if wants {
        let mut changes = Changes::default();
        let table = Arc::new(foreign);
        keyed
            .into_iter()
            .for_each(|doc| changes.note((&table, ns), None, Some(doc)));
        changes.settle_all(statement, session, ws, &op, &mut gathered)?;
    }
    said(statement, ws, found, (&declared, &edit.sources))?;
    own_sequence::follow(statement, ws, ns, &|column| {
        let before = found.declared.columns.iter().position(|own| own.name == column)?;
        let at = edit.sources.iter().position(|source| source.before() == Some(before))?;
        Some((ns.coll.to_string(), declared.columns[at].name.clone()))
    })?;
    release_sequences(statement, ws, found, (&declared, &edit.sources))?;
    numbers(statement, ws, found, (&declared, &edit.sources))?;
    partition::guarded(statement, session, ws, ns)
}

/// Tables that stay have keys of such tables alone: what is UNLOGGED may be empty after a crash in PostgreSQL.
///
/// Errors: 42P16.
fn check_persistence(ws: &WriteSet, declared: &Declared, table: &Table, ns: &Namespace) -> Result<()> {
    let is_unlogged = |name: &str| {
        let own = ws.catalog().get(&Namespace::new(&*ns.db, name)).cloned();
        own.and_then(|own| Declared::of_collection(&own))
            .map(|own| own.is_unlogged)
    };
    let others: Vec<String> = match declared.is_unlogged {
        true => referring(ws, ns)
            .into_iter()
            .map(|(other, _)| other.coll.to_string())
            .collect(),
        false => table
            .foreign
            .iter()
            .map(|key| key.table.clone())
            .filter(|own| *own != *ns.coll)
            .collect(),
    };
    let Some(other) = others
        .iter()
        .find(|other| is_unlogged(other) == Some(!declared.is_unlogged))
    else {
        return Ok(());
    };
    let name = &table.name;
    let message = match declared.is_unlogged {
        true => format!("could not change table \"{name}\" to unlogged because it references logged table \"{other}\""),
        false => {
            format!("could not change table \"{name}\" to logged because it references unlogged table \"{other}\"")
        }
    };
    Err(error("42P16", message))
}

/// Lets the sequences of serial columns stand for themselves that these do not count with any more.
fn release_sequences(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    found: &Found,
    (declared, sources): (&Declared, &[Source]),
) -> Result<()> {
    for sequence in of_collection(&found.collection).iter().filter(|own| !own.is_identity) {
        let before = found
            .declared
            .columns
            .iter()
            .position(|own| own.name == sequence.column());
        let at = sources
            .iter()
            .position(|source| before.is_some() && source.before() == before);
        let Some(column) = at.map(|at| &declared.columns[at]) else {
            continue;
        };
        if column.identity.is_none() {
            let owner = (found.collection.ns.coll.to_string(), column.name.clone());
            own_sequence::release(statement, ws, sequence, &owner)?;
        }
    }
    Ok(())
}

/// What is said of columns, constraints and indexes stays with them. A constraint that has another name stands where it stood.
fn said(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    found: &Found,
    (declared, sources): (&Declared, &[Source]),
) -> Result<()> {
    let (old, new) = (found.declared.constraint_names(), declared.constraint_names());
    let indexes: BTreeSet<String> = match ws.catalog().by_id(found.collection.id) {
        Some(now) => now.indexes.iter().map(|index| index.name.to_string()).collect(),
        None => BTreeSet::new(),
    };
    let constraint = |name: &str| match new.iter().any(|own| own == name) {
        true => Some(name.to_owned()),
        false if old.len() == new.len() => {
            let at = old.iter().position(|own| own == name)?;
            (!old.contains(&new[at])).then(|| new[at].clone())
        }
        false => None,
    };
    comments::keep(statement, ws, &found.collection, &|kind, name| match kind {
        "columns" => {
            let before = found.declared.columns.iter().position(|column| column.name == name)?;
            let at = sources.iter().position(|source| source.before() == Some(before))?;
            Some(declared.columns[at].name.clone())
        }
        "constraints" => constraint(name),
        _ => match indexes.contains(name) {
            true => Some(name.to_owned()),
            false => constraint(name),
        },
    })
}

/// The table with those of its keys of other tables, and of what its rows exclude each other by, alone that its rows have not been looked at for.
fn new_keys(old: &Table, new: &Table, sources: &[Source]) -> Table {
    let turned = new.columns.iter().zip(sources);
    let turned = turned.filter(|(_, source)| matches!(source, Source::Turned(..)));
    let turned: BTreeSet<&String> = turned.map(|(column, _)| &column.name).collect();
    let mut out = new.clone();
    out.foreign.retain(|key| {
        let was = old
            .foreign
            .iter()
            .any(|before| before.name == key.name && before.is_valid);
        key.is_valid && (!was || key.columns.iter().any(|column| turned.contains(column)))
    });
    out.exclusions.retain(|own| {
        let was = old.exclusions.iter().any(|before| before.name == own.name);
        let is_turned = |text: &String| parse::columns(text).iter().any(|column| turned.contains(column));
        let mut texts = own.elements.iter().map(|element| &element.text).chain(&own.predicate);
        !was || texts.any(is_turned)
    });
    out
}

/// The numbers of columns that count stay with them.
fn numbers(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    found: &Found,
    (declared, sources): (&Declared, &[Source]),
) -> Result<()> {
    let (uuid, db) = (found.collection.uuid, &found.collection.ns.db);
    let key = |column| sequence::Key {
        collection: uuid,
        column,
    };
    let mut gone: Vec<&str> = Vec::new();
    for (at, column) in found.declared.columns.iter().enumerate() {
        if column.identity.is_none() {
            continue;
        }
        let now = sources.iter().position(|source| source.before() == Some(at));
        let now = now.map(|at| &declared.columns[at]).filter(|now| now.identity.is_some());
        match now {
            Some(now) if now.name == column.name => continue,
            Some(now) => {
                if let Some(state) = sequence::state(statement.database, db, key(&column.name))? {
                    sequence::set(statement, db, key(&now.name), state)?;
                }
            }
            None => {}
        }
        gone.push(&column.name);
    }
    // A transaction that took them back could not wait for itself to take numbers.
    if gone.is_empty() || statement.in_transaction() {
        return Ok(());
    }
    let keys: Vec<_> = gone.into_iter().map(key).collect();
    sequence::forget(statement, ws, db, &keys)
}
