//! The indexes of a table that is declared anew.

use super::found::Found;
use crate::bind::alter::Source;
use crate::bind::declared::Declared;
use crate::catalog::Table;
use crate::catalog::partial::with_paths;
use crate::ddl::exclusion;
use crate::ddl::keys::{check_is_whole, keyed, limit, only_where_not_null, spec};
use crate::error::unsupported;
use crate::run::index_facts::nulls_are_equal;
use crate::run::{included, indexed};
use crate::write;
use nestor_database::statement::Statement;
use nestor_database::write::catalog;
use nestor_model::{Document, IndexSpec, Namespace, Result, ValueRef};
use nestor_planner::kinds::expression;
use nestor_storage::{Collection, Index, View as _, WriteSet};
use std::sync::Arc;

/// Where the field of a column is now; `None` when it is gone. Fields that are no columns stay where they are.
pub(super) fn path_now(path: &str, old: &Declared, (new, sources): (&Declared, &[Source])) -> Option<String> {
    let (field, rest) = path
        .split_once('.')
        .map_or((path, None), |(field, rest)| (field, Some(rest)));
    let Some(before) = old.columns.iter().position(|column| column.path == field) else {
        return Some(path.to_owned());
    };
    let at = sources.iter().position(|source| source.before() == Some(before))?;
    let now = &new.columns[at].path;
    Some(rest.map_or_else(|| now.clone(), |rest| format!("{now}.{rest}")))
}

/// The values that a predicate compares with are still of the columns' types.
///
/// Errors: 0A000.
fn check_types(filter: &Document, old: &Declared, (new, sources): (&Declared, &[Source])) -> Result<()> {
    let turned = new
        .columns
        .iter()
        .zip(sources)
        .filter_map(|(now, source)| match source {
            Source::Turned(before, _) => Some((&old.columns[*before], now)),
            _ => None,
        });
    for (before, now) in turned {
        let (a, b) = (&before.ty, &now.ty);
        let goes = a == b || a.is_number() && b.is_number() || a.is_text() && b.is_text();
        let is_used = std::cell::Cell::new(false);
        with_paths(filter.as_ref(), &|path| {
            is_used.set(is_used.get() || path == before.path);
            Some(path.to_owned())
        });
        if is_used.get() && !goes {
            return unsupported("another type of a column that the predicate of an index is about");
        }
    }
    Ok(())
}

/// What an index that SQL has not declared is in the table as it is now; `None` when a column of it is gone.
fn index_now(index: &Index, old: &Declared, now: (&Declared, &[Source])) -> Result<Option<IndexSpec>> {
    let mut key = Document::new();
    for (path, direction) in index.key_pattern.iter() {
        match path_now(path, old, now) {
            Some(path) => key.push(path, direction.to_value()),
            None => return Ok(None),
        }
    }
    let paths: Vec<String> = key.iter().map(|(path, _)| path.to_owned()).collect();
    let mut listed = Document::from(index.spec.listed().clone());
    listed.set("key", key);
    if let Some(option) = index.spec.option(expression::OPTION).and_then(ValueRef::as_document) {
        let mut option = Some(option.to_document());
        if let (Some(before), expression::NAME) = (&option, index.spec.kind()) {
            option = indexed::moved(before, &|path| {
                let path = path_now(path, old, now)?;
                now.0.columns.iter().find(|column| column.path == path).cloned()
            })?;
        }
        match option.and_then(|option| included::moved(option, &|path| path_now(path, old, now))) {
            Some(option) => listed.set(expression::OPTION, option),
            None => return Ok(None),
        }
    }
    if let Some(filter) = &index.partial_filter {
        check_types(filter, old, now)?;
        match with_paths(filter.as_ref(), &|path| path_now(path, old, now)) {
            Some(filter) => listed.set("partialFilterExpression", filter),
            None => return Ok(None),
        }
    }
    if index.unique && index.spec.kind() != expression::NAME && !nulls_are_equal(index, &old.columns) {
        only_where_not_null(&mut listed, &paths, now.0);
    }
    IndexSpec::parse(listed.to_raw()).map(Some)
}

/// What an index of a table is in another one that has its columns; `None` where that lacks one.
///
/// Errors: those of [`index_now`].
pub(in crate::ddl) fn index_there(index: &Index, from: &Declared, to: &Declared) -> Result<Option<IndexSpec>> {
    let sources = to.columns.iter().map(|own| {
        let before = from.columns.iter().position(|column| column.name == own.name);
        before.map_or(Source::Added, Source::Kept)
    });
    let sources: Vec<Source> = sources.collect();
    index_now(index, from, (to, &sources))
}

/// Drops the indexes that are no more what they were; what is to be made anew once the rows are written.
///
/// Errors: those of the catalog.
pub(super) fn drop_changed(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    found: &Found,
    (declared, table, sources): (&Declared, &Arc<Table>, &[Source]),
) -> Result<Vec<IndexSpec>> {
    let old = &found.declared;
    let mut wanted: Vec<IndexSpec> = Vec::new();
    for unique in &declared.unique {
        if old.unique.iter().all(|own| own.name != unique.name) {
            check_is_whole(keyed(unique, declared))?;
        }
        wanted.push(spec(unique, declared)?);
    }
    for own in &table.exclusions {
        wanted.push(exclusion::spec(table, own)?);
    }
    let Some(collection) = now(ws, &found.collection) else {
        return Ok(Vec::new());
    };
    let is_declared = |index: &Index| old.keeps_by_index(&index.name);
    for index in collection.indexes.iter().filter(|index| !index.is_id()) {
        let anew = match is_declared(index) {
            true => wanted.iter().find(|spec| spec.name == index.name).cloned(),
            false => index_now(index, old, (declared, sources))?,
        };
        let is_same = anew
            .as_ref()
            .is_some_and(|spec| spec.listed().as_bytes() == index.spec.listed().as_bytes());
        if is_same {
            wanted.retain(|spec| spec.name != index.name);
            continue;
        }
        catalog::drop_index(statement, ws, &collection, index)?;
        if let (Some(spec), false) = (anew, is_declared(index)) {
            wanted.push(spec);
        }
    }
    Ok(wanted)
}

fn now(ws: &WriteSet, collection: &Collection) -> Option<Arc<Collection>> {
    ws.catalog().by_id(collection.id).cloned()
}

/// Looks at rows by a unique index that goes again: they are unique before statements may leave that for later.
///
/// Errors: 23505.
fn check_unique(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    (ns, table): (&Namespace, &Table),
    spec: &IndexSpec,
) -> Result<()> {
    let mut listed = Document::from(spec.listed().clone());
    listed.set("unique", true);
    let own = table.later.iter().find(|own| *own.name == *spec.name);
    if let Some(own) = own.filter(|own| !own.nulls_equal) {
        limit(&mut listed, table.paths(&own.columns));
    }
    let unique = IndexSpec::parse(listed.to_raw())?;
    let made = catalog::create_index(statement, ws, ns, &unique);
    made.map_err(|error| write::duplicated(error, table, &spec.name))?;
    let Some(collection) = ws.catalog().get(ns).cloned() else {
        return Ok(());
    };
    match collection.indexes.iter().find(|index| *index.name == *spec.name) {
        Some(index) => catalog::drop_index(statement, ws, &collection, index).map(drop),
        None => Ok(()),
    }
}

/// Makes indexes of the rows that there are.
///
/// Errors: 23505, those of making keys.
pub(super) fn make(statement: &Statement<'_>, ws: &mut WriteSet, table: &Table, specs: &[IndexSpec]) -> Result<()> {
    let crate::catalog::Kind::Collection(ns) = &table.kind else {
        return Ok(());
    };
    let ns: &Namespace = ns;
    for spec in specs {
        if table.later.iter().any(|own| *own.name == *spec.name) {
            check_unique(statement, ws, (ns, table), spec)?;
        }
        let made = catalog::create_index(statement, ws, ns, spec);
        made.map_err(|error| write::duplicated(error, table, &spec.name))?;
    }
    Ok(())
}
