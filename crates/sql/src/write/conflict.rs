//! ON CONFLICT: which document an insert would double.

use super::refused::constraint_name;
use crate::bind::write::{Conflict, Inferred};
use crate::catalog::exclusion::Exclusion;
use crate::catalog::{Later, Table, Timing, partial};
use crate::error::{Field, error, fail, with};
use crate::expr::{Expr, Node};
use crate::run::indexed;
use crate::run::predicate;
use crate::run::probe::scanned;
use nestor_database::write::rows::RowWriter;
use nestor_exec::catalog::indexes;
use nestor_exec::{Batch, BoxOperator, Step, find as find_by_plan, point};
use nestor_model::{DocRef, Document, Error, Result, Value, ValueRef};
use nestor_planner::access::{IndexBounds, implies};
use nestor_planner::find::Wanted;
use nestor_planner::interval::IntervalList;
use nestor_planner::kinds::expression;
use nestor_planner::relation::Env;
use nestor_planner::{FindQuery, IndexInfo};
use nestor_query::env::{OpContext, Scope};
use nestor_query::matcher::MatchExpr;
use nestor_storage::{Bytes, Collection};
use std::sync::Arc;

/// The index that decides.
pub(super) struct Arbiter {
    by: By,
}

/// What decides.
enum By {
    /// Any unique index.
    Any,
    /// The one on these paths, which has the documents that match the filter.
    Paths(Vec<String>, Option<Document>),
    /// One on expressions.
    Computed(Arc<IndexInfo>),
    /// The EXCLUDE constraint of a name.
    Excluding(String),
}

impl Arbiter {
    /// The unique index that a statement means.
    ///
    /// Errors: 42P10 and 42704 when there is none.
    pub(super) fn of(conflict: &Conflict, table: &Table, collection: &Arc<Collection>, env: &Env<'_>) -> Result<Self> {
        let by = match &conflict.inferred {
            Some(inferred) => By::inferred(inferred, table, collection, env)?,
            None => By::named(conflict, table, collection)?,
        };
        Ok(Self { by })
    }
}

/// 55000: a constraint that may be looked at later decides nothing.
fn deferrable(table: &Table, constraint: &str) -> Error {
    let message = "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters";
    let fields = [
        (Field::Schema, table.schema.as_str()),
        (Field::Table, &table.name),
        (Field::Constraint, constraint),
    ];
    with(error("55000", message), &fields)
}

fn none_matches<T>() -> Result<T> {
    fail(
        "42P10",
        "there is no unique or exclusion constraint matching the ON CONFLICT specification",
    )
}

impl By {
    /// The unique index on expressions, or on columns, that has the rows of which a predicate holds.
    fn inferred(inferred: &Inferred, table: &Table, collection: &Arc<Collection>, env: &Env<'_>) -> Result<Self> {
        let filter = predicate::said(&inferred.predicate, table, env)?;
        let said = MatchExpr::parse(filter.as_ref(), &mut Scope::new())?.normalize();
        let mut wanted: Vec<String> = inferred
            .parts
            .iter()
            .map(|part| indexed::normal(part, &table.columns))
            .collect();
        wanted.sort();
        for index in indexes(collection)?.iter().filter(|index| index.unique) {
            let spec = collection.indexes.iter().find(|own| own.id.0 == index.id);
            let Some(spec) = spec else { continue };
            let filter = match &index.partial {
                None => None,
                // That values of the key are there is no condition of SQL's.
                Some(_) => {
                    let filter = spec.partial_filter.as_ref();
                    filter.map(|filter| partial::joined(partial::said(filter, &spec.key_pattern)))
                }
            };
            let filter = filter.filter(|filter| !filter.is_empty());
            if let Some(filter) = &filter {
                let own = MatchExpr::parse(filter.as_ref(), &mut Scope::new())?.normalize();
                if !implies(&said, &own) {
                    continue;
                }
            }
            let mut own: Vec<String> = match indexed::of(index) {
                Some(own) => own.normals().to_vec(),
                None => {
                    let column = |path: &str| {
                        let at = table.columns.iter().position(|column| column.path == path)?;
                        let ty = table.columns[at].ty.clone();
                        Some(indexed::normal(&Expr::column(at, path, ty), &table.columns))
                    };
                    index.key_pattern.iter().filter_map(|(path, _)| column(path)).collect()
                }
            };
            own.sort();
            let conditions = inferred
                .predicate
                .iter()
                .map(|own| indexed::normal(own, &table.columns));
            let has_all = |index: &indexed::Indexed| index.serves(&conditions.collect::<Vec<_>>());
            if own != wanted || !indexed::of(index).is_none_or(has_all) {
                continue;
            }
            return Ok(match indexed::of(index) {
                Some(_) => Self::Computed(index.clone()),
                None => {
                    let paths = index.key_pattern.iter().map(|(path, _)| path.to_owned());
                    Self::Paths(paths.collect(), filter)
                }
            });
        }
        none_matches()
    }

    /// The unique index of a name, or on columns, that has what these compare by.
    fn by_values(conflict: &Conflict, collection: &Arc<Collection>) -> Result<Option<Self>> {
        for index in indexes(collection)?
            .iter()
            .filter(|index| index.unique && index.partial.is_none())
        {
            let spec = collection.indexes.iter().find(|own| own.id.0 == index.id);
            let (Some(own), Some(spec)) = (indexed::of(index), spec) else {
                continue;
            };
            let paths = own.parts.iter().map(|part| match part.node() {
                Node::Column { index, .. } => own.table.columns.get(*index).map(|column| column.path.clone()),
                _ => None,
            });
            let Some(mut paths) = paths.collect::<Option<Vec<String>>>().filter(|_| own.serves(&[])) else {
                continue;
            };
            paths.sort();
            let is_meant = match (&conflict.constraint, &conflict.paths) {
                (Some(name), _) => **name == *spec.name,
                (None, Some(wanted)) => {
                    let mut wanted = wanted.clone();
                    wanted.sort();
                    wanted == paths
                }
                (None, None) => false,
            };
            if is_meant {
                return Ok(Some(Self::Computed(index.clone())));
            }
        }
        Ok(None)
    }

    /// The unique index of a name, or on columns.
    fn named(conflict: &Conflict, table: &Table, collection: &Arc<Collection>) -> Result<Self> {
        if let Some(found) = Self::by_values(conflict, collection)? {
            return Ok(found);
        }
        let sorted = |mut paths: Vec<String>| {
            paths.sort();
            paths
        };
        let unique = collection
            .indexes
            .iter()
            .filter(|index| index.unique || index.name == "_id_")
            .filter(|index| index.spec.kind() != expression::NAME)
            // One with a predicate knows nothing of the rows that it has not.
            .filter(|index| match &index.partial_filter {
                Some(filter) => partial::said(filter, &index.key_pattern).is_empty(),
                None => true,
            })
            .map(|index| {
                let paths = index.key_pattern.iter().map(|(path, _)| path.to_owned());
                (constraint_name(table, &index.name), paths.collect::<Vec<String>>())
            });
        let mut unique: Vec<(String, Vec<String>)> = unique.collect();
        if collection.is_clustered() {
            unique.push((constraint_name(table, "_id_"), vec!["_id".to_owned()]));
        }
        if let Some(name) = &conflict.constraint {
            // The index of `_id` has the name of the key where the table has no key of its own.
            let is_id = |paths: &[String]| matches!(paths, [path] if path == "_id");
            if table.later.iter().any(|own| own.name == *name) {
                return Err(deferrable(table, name));
            }
            if let Some(own) = table.exclusions.iter().find(|own| own.name == *name) {
                return match conflict.update {
                    None if own.timing != Timing::AtOnce => Err(deferrable(table, name)),
                    Some(_) => fail(
                        "42809",
                        "ON CONFLICT DO UPDATE not supported with exclusion constraints",
                    ),
                    None => Ok(Self::Excluding(name.clone())),
                };
            }
            let named = unique.into_iter().filter(|(own, _)| own == name);
            return match named.min_by_key(|(_, paths)| is_id(paths)) {
                Some((_, paths)) => Ok(Self::Paths(paths, None)),
                None => fail(
                    "42704",
                    format!("constraint \"{name}\" for table \"{}\" does not exist", table.name),
                ),
            };
        }
        let Some(wanted) = &conflict.paths else {
            let later = table.later.iter().map(|own| (&own.name, own.timing));
            let excluding = table.exclusions.iter().map(|own| (&own.name, own.timing));
            let mut all = later.chain(excluding);
            return match all.find(|(_, timing)| *timing != Timing::AtOnce) {
                Some((name, _)) => Err(deferrable(table, name)),
                None => Ok(Self::Any),
            };
        };
        let wanted = sorted(wanted.clone());
        let later = |own: &&Later| sorted(table.paths(&own.columns)) == wanted;
        match unique.into_iter().find(|(_, paths)| sorted(paths.clone()) == wanted) {
            Some((_, paths)) => Ok(Self::Paths(paths, None)),
            None => match table.later.iter().find(later) {
                Some(own) => Err(deferrable(table, &own.name)),
                None => none_matches(),
            },
        }
    }
}

impl Arbiter {
    /// Whether an EXCLUDE constraint decides.
    pub(super) fn asks(&self, own: &Exclusion) -> bool {
        match &self.by {
            By::Any => true,
            By::Excluding(name) => *name == own.name,
            By::Paths(..) | By::Computed(_) => false,
        }
    }

    /// Whether any unique index decides.
    pub(super) fn is_any(&self) -> bool {
        matches!(self.by, By::Any)
    }

    /// The record and document that have the key of `doc` already. Keys with nulls are equal to none.
    ///
    /// Errors: those of reading.
    pub(super) fn find(
        &self,
        writer: &RowWriter<'_, '_>,
        doc: DocRef<'_>,
        op: &OpContext,
    ) -> Result<Option<(Bytes, Bytes)>> {
        let (paths, filter) = match &self.by {
            By::Any | By::Excluding(_) => return Ok(None),
            By::Computed(index) => return find_computed(writer, index, doc, op),
            By::Paths(paths, filter) => (paths, filter),
        };
        if let Some(filter) = filter
            && !matches(filter, doc, op)?
        {
            return Ok(None);
        }
        let mut key = Vec::with_capacity(paths.len());
        for path in paths {
            let value = value_at(doc, path);
            if value.is_nullish() {
                return Ok(None);
            }
            key.push((path.clone(), value.to_value()));
        }
        find_by(writer, &key, filter.as_ref(), op)
    }
}

/// The first record and document that have these values at their paths.
///
/// Errors: those of reading.
pub(super) fn find_by(
    writer: &RowWriter<'_, '_>,
    key: &[(String, Value)],
    among: Option<&Document>,
    op: &OpContext,
) -> Result<Option<(Bytes, Bytes)>> {
    let collection: &Arc<Collection> = writer.collection();
    if let [(path, value)] = key
        && path == "_id"
    {
        return point::by_id(writer.view(), collection, value.as_ref());
    }
    let mut filter = Document::new();
    for (path, value) in key {
        let mut equal = Document::new();
        equal.push("$eq", value.clone());
        filter.push(path.as_str(), equal);
    }
    if let Some(among) = among {
        filter = partial::group("$and", vec![filter, among.clone()]);
    }
    let collator = nestor_exec::catalog::id_collation(collection)?;
    let mut scope = Scope::new().with_collator(collator.clone());
    let parsed = Arc::new(MatchExpr::parse(filter.as_ref(), &mut scope)?.normalize());
    let mut query = FindQuery::all(parsed);
    query.collation = collator;
    query.limit = Some(1);
    let root = find_by_plan(&query, Wanted::Documents, Default::default(), collection, None, None)?;
    first(root, writer, op)
}

/// The first document that an operator gives.
fn first(mut root: BoxOperator, writer: &RowWriter<'_, '_>, op: &OpContext) -> Result<Option<(Bytes, Bytes)>> {
    let interrupt = nestor_exec::Interrupt::default();
    let mut batch = Batch::new(writer.view(), op, &interrupt);
    loop {
        match root.next(&mut batch)? {
            Step::Row(row) => {
                let bytes = match row.doc {
                    nestor_exec::RowDoc::Stored(bytes) => bytes,
                    other => Bytes::from(other.to_raw()),
                };
                return Ok(row.record.map(|record| (record, bytes)));
            }
            Step::Pause => {}
            Step::Eof => return Ok(None),
        }
    }
}

/// Whether a document matches a filter.
fn matches(filter: &Document, doc: DocRef<'_>, op: &OpContext) -> Result<bool> {
    let parsed = MatchExpr::parse(filter.as_ref(), &mut Scope::new())?.normalize();
    parsed.matches(doc, op)
}

/// The document that has the key of `doc` in an index on expressions.
fn find_computed(
    writer: &RowWriter<'_, '_>,
    index: &Arc<IndexInfo>,
    doc: DocRef<'_>,
    op: &OpContext,
) -> Result<Option<(Bytes, Bytes)>> {
    if let Some(partial) = &index.partial
        && !partial.matches(doc, op)?
    {
        return Ok(None);
    }
    let mut bounds = IndexBounds::all(index);
    let mut found = false;
    index.kind.for_each_key(doc, &mut |key| {
        found = true;
        for (part, value) in bounds.parts.iter_mut().zip(key) {
            *part = IntervalList::point(value.to_value());
        }
        Ok(())
    })?;
    match found {
        true => first(scanned(index, bounds, writer.collection())?, writer, op),
        false => Ok(None),
    }
}

fn value_at<'d>(doc: DocRef<'d>, path: &str) -> ValueRef<'d> {
    let mut at = ValueRef::Document(doc);
    for name in path.split('.') {
        at = match at {
            ValueRef::Document(doc) => doc.get(name).unwrap_or(ValueRef::Missing),
            _ => return ValueRef::Missing,
        };
    }
    at
}
