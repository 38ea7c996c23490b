//! Finding the documents that an update or delete is about.

use crate::observe::figures::IdLookup;
use crate::read;
use crate::shape::Words;
use crate::statement::Statement;
use nestor_exec::catalog::id_collation;
use nestor_exec::{Batch, BoxOperator, Step, find, point};
use nestor_model::{DocRef, RawDoc, Result, ValueRef};
use nestor_planner::find::Wanted;
use nestor_planner::finish::id_lookup;
use nestor_planner::{FindQuery, Hint};
use nestor_query::env::{OpContext, Scope};
use nestor_query::sort::SortSpec;
use nestor_storage::{Bytes, Collection, View};
use std::sync::Arc;

/// Which documents, in which order.
#[derive(Clone)]
pub struct Selection<'a> {
    /// The query that finds them. Index filters restrict a copy of it, once for each plan that is made.
    pub query: FindQuery,
    /// When there is none, one is inserted.
    pub may_insert: bool,
    /// The query as its client wrote it; `None` when a stage of a pipeline made it.
    pub words: Option<Words<'a>>,
}

impl<'a> Selection<'a> {
    /// Parses the words of a statement in a scope that is under its collation already.
    ///
    /// Errors: those of the filter and of the sort.
    pub fn parse(words: Words<'a>, hint: &Hint, scope: &mut Scope) -> Result<Self> {
        // The one document of an `_id` needs no order, and MongoDB does not look at the one given.
        let is_one = scope.collator().is_none() && words.filter.is_some_and(is_one_id);
        let sort = match words.sort.filter(|sort| !sort.is_empty() && !is_one) {
            Some(sort) => Some(Arc::new(SortSpec::parse(DocRef::Raw(sort))?.under(scope.collator()))),
            None => None,
        };
        let query = FindQuery {
            sort,
            ..read::filtered(&words, hint, scope)?
        };
        query.check_scores()?;
        Ok(Self {
            query,
            may_insert: false,
            words: Some(words),
        })
    }

    /// The plan that finds them in `collection`; at most `limit`.
    pub fn plan(
        &self,
        statement: &Statement<'_>,
        collection: &Arc<Collection>,
        limit: Option<u64>,
    ) -> Result<BoxOperator> {
        let mut query = self.query.clone();
        query.limit = limit;
        let written = self.words.map(|words| words.written()).unwrap_or_default();
        statement.apply_index_filter(&collection.ns, &mut query, written);
        let cache = Some(&*statement.database.plan_cache);
        let root = find(&query, Wanted::Documents, written, collection, cache, None)?;
        if self.words.is_some() {
            statement.describe_query(query);
        }
        Ok(root)
    }

    /// The first one: its record key and bytes.
    pub fn first(
        &self,
        statement: &Statement<'_>,
        view: &dyn View,
        collection: &Arc<Collection>,
        op: &OpContext,
    ) -> Result<Option<(Bytes, Bytes)>> {
        // One `_id` needs no plan.
        if self.query.hint.is_none() && self.query.natural.is_none() {
            let by_id = id_lookup(&self.query.filter, id_collation(collection)?.as_ref());
            if let Some(lookup) = by_id {
                let found = point::by_id(view, collection, lookup.id.as_ref())?;
                let kind = match lookup.filter.is_some() || self.may_insert {
                    true => IdLookup::Plain,
                    false => IdLookup::express(collection),
                };
                statement.observe_id_lookup(kind, found.is_some());
                let Some((record, bytes)) = found else {
                    return Ok(None);
                };
                let matched = match &lookup.filter {
                    Some(filter) => filter.matches(bytes.document().as_doc(), op)?,
                    None => true,
                };
                return Ok(matched.then_some((record, bytes)));
            }
        }
        let mut root = self.plan(statement, collection, Some(1))?;
        statement.note_plan(&*root);
        let found = next(&mut root, &mut read::batch(statement, view, op, true));
        statement.observe(&*root);
        found
    }
}

/// True for `{_id: value}` and nothing else.
fn is_one_id(q: RawDoc<'_>) -> bool {
    let mut fields = q.iter();
    let value = match (fields.next(), fields.next()) {
        (Some(("_id", value)), None) => value,
        _ => return false,
    };
    match value {
        ValueRef::Array(_) | ValueRef::Regex { .. } => false,
        ValueRef::Document(doc) => !doc.iter().next().is_some_and(|(name, _)| name.starts_with('$')),
        _ => true,
    }
}

/// The next stored document of a plan over a collection.
pub fn next(root: &mut BoxOperator, batch: &mut Batch<'_>) -> Result<Option<(Bytes, Bytes)>> {
    loop {
        match root.next(batch)? {
            Step::Row(row) => {
                // Rows that went through a file are bytes without a handle into the store.
                let bytes = match row.doc {
                    nestor_exec::RowDoc::Stored(bytes) => bytes,
                    other => Bytes::from(other.to_raw()),
                };
                if let Some(record) = row.record {
                    return Ok(Some((record, bytes)));
                }
            }
            Step::Pause => {}
            Step::Eof => return Ok(None),
        }
    }
}
