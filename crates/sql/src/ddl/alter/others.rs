//! Tables that have keys of a table which is declared anew, or gets another name.

use super::found::{Found, depends, found};
use super::indexes::path_now;
use crate::bind::alter::Source;
use crate::bind::declared::Declared;
use crate::bind::numbers;
use crate::catalog::Foreign;
use crate::ddl::keys::{check_key, unique_indexes};
use crate::ddl::partition;
use crate::error;
use crate::run::references::references;
use nestor_database::statement::Statement;
use nestor_database::write::catalog;
use nestor_model::{Namespace, Result};
use nestor_storage::{Collection, Index, View as _, WriteSet};
use std::collections::BTreeSet;

/// The other tables that have keys of the one at `ns`.
fn referring(ws: &WriteSet, ns: &Namespace) -> Result<Vec<Found>> {
    let all: BTreeSet<Namespace> = references(ws, ns).into_iter().map(|reference| reference.ns).collect();
    let mut out = Vec::new();
    for other in all.iter().filter(|other| *other != ns) {
        out.extend(found(ws, other)?);
    }
    Ok(out)
}

/// Declares another table with other keys.
fn redeclare(statement: &Statement<'_>, ws: &mut WriteSet, other: &Found, foreign: Vec<Foreign>) -> Result<()> {
    let declared = Declared {
        foreign,
        ..(*other.declared).clone()
    };
    let text = declared.named(&other.create).to_string();
    catalog::set_validator(statement, ws, &other.collection, &declared.validator(&text))
}

/// Gives a column that other tables refer to another name there.
///
/// Errors: those of the catalog.
pub(super) fn rename_referred(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    table: &Found,
    (from, to): (&str, &str),
) -> Result<()> {
    let ns = &table.collection.ns;
    for other in referring(ws, ns)? {
        let mut foreign = other.declared.foreign.clone();
        for key in foreign.iter_mut().filter(|key| *key.table == *ns.coll) {
            for column in key.referred.iter_mut().filter(|column| *column == from) {
                to.clone_into(column);
            }
        }
        if foreign != other.declared.foreign {
            redeclare(statement, ws, &other, foreign)?;
        }
    }
    Ok(())
}

/// Tells the tables that have keys of one, itself among them, of its new name.
///
/// Errors: those of the catalog.
pub(super) fn rename_table(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    (from, to): (&Namespace, &Namespace),
) -> Result<()> {
    let is_declared = ws
        .catalog()
        .get(from)
        .is_some_and(|own| Declared::of_collection(own).is_some());
    let mut own = if is_declared { found(ws, from)? } else { None };
    if let Some(own) = &mut own {
        numbers::keep(&mut own.create, &own.declared.columns, &own.name);
    }
    for other in own.into_iter().chain(referring(ws, from)?) {
        let mut foreign = other.declared.foreign.clone();
        for key in foreign.iter_mut().filter(|key| *key.table == *from.coll) {
            key.table = to.coll.to_string();
        }
        redeclare(statement, ws, &other, foreign)?;
    }
    partition::rename(statement, ws, (from, to))
}

/// Takes the keys that other tables have of one from them.
///
/// Errors: those of the catalog.
pub(in crate::ddl) fn let_go(statement: &Statement<'_>, ws: &mut WriteSet, ns: &Namespace) -> Result<()> {
    for other in referring(ws, ns)? {
        let kept = other.declared.foreign.iter().filter(|key| *key.table != *ns.coll);
        redeclare(statement, ws, &other, kept.cloned().collect())?;
    }
    Ok(())
}

/// Refuses to drop a unique index that keys of other tables need.
///
/// Errors: 2BP01.
pub(in crate::ddl) fn check_index_goes(ws: &WriteSet, collection: &Collection, index: &Index) -> Result<()> {
    let Some(table) = found(ws, &collection.ns)? else {
        return Ok(());
    };
    let mut without = collection.clone();
    without.indexes.retain(|own| own.id != index.id);
    let apart = unique_indexes(&without);
    let mut others = referring(ws, &collection.ns)?;
    others.extend(found(ws, &collection.ns)?);
    for other in &others {
        let keys = other.declared.foreign.iter();
        for key in keys.filter(|key| *key.table == *collection.ns.coll) {
            if check_key(key, &other.declared, (&table.declared, &apart)).is_err() {
                let what = format!("index {}", index.name);
                let key = format!("constraint {} on table {}", key.name, other.collection.ns.coll);
                return Err(depends(&what, &format!("{key} depends on {what}")));
            }
        }
    }
    Ok(())
}

/// Keys that other tables have of this one are keys of it still, or go where `cascades` says so. Their entries are written anew: whoever
/// writes a row with such a key meanwhile conflicts.
///
/// Errors: 2BP01; 42804 for types that do not go together any more.
pub(super) fn settle(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    table: &Found,
    (declared, sources): (&Declared, &[Source]),
    cascades: bool,
) -> Result<()> {
    let ns = &table.collection.ns;
    let now = |path: &String| path_now(path, &table.declared, (declared, sources));
    let apart = unique_indexes(&table.collection);
    let apart: Vec<BTreeSet<String>> = apart
        .iter()
        .filter_map(|paths| paths.iter().map(now).collect())
        .collect();
    for other in referring(ws, ns)? {
        let mut gone: Vec<&str> = Vec::new();
        for key in other.declared.foreign.iter().filter(|key| *key.table == *ns.coll) {
            match check_key(key, &other.declared, (declared, &apart)) {
                Ok(()) => {}
                Err(wrong) if error::state(&wrong) == "42804" => return Err(wrong),
                Err(_) if cascades => gone.push(&key.name),
                Err(_) => {
                    let key = format!("constraint {} on table {}", key.name, other.collection.ns.coll);
                    let what = format!("a key of table {}", ns.coll);
                    return Err(depends(&what, &format!("{key} depends on {what}")));
                }
            }
        }
        if !gone.is_empty() {
            let kept = other.declared.foreign.iter();
            let kept = kept.filter(|key| !gone.contains(&key.name.as_str())).cloned();
            redeclare(statement, ws, &other, kept.collect())?;
        }
    }
    Ok(())
}
