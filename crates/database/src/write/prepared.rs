//! One update or delete, parsed in its scope and ready to run: a statement of a command, or a findAndModify.

use super::statements::{UpdateOp, WriteOp};
use super::target::Selection;
use super::timeseries;
use crate::read;
use crate::shape::Words;
use nestor_exec::write::oplog::Retryable;
use nestor_model::{DocRef, Result, ValueRef, bail};
use nestor_planner::Hint;
use nestor_query::env::Scope;
use nestor_query::update::{Update, UpdateOptions};
use nestor_storage::Collection;

/// One update or delete.
pub struct Prepared<'a> {
    /// Which documents.
    pub selection: Selection<'a>,
    /// Whether they are changed or removed, and how.
    pub action: Action<'a>,
    /// All of them, not the first one.
    pub multi: bool,
    /// Do not apply the collection's validator.
    pub bypass_validation: bool,
    /// [`old`](super::Written::old) and [`new`](super::Written::new) are wanted, of a write of one document.
    pub images: bool,
    /// Errors must not tell of the document, some of which is masked for who writes.
    pub hides_errors: bool,
    /// Which statement of a retryable write it is.
    pub retryable: Option<Retryable>,
}

/// The action on the selected documents.
pub enum Action<'a> {
    /// Change them.
    Update {
        /// How.
        update: Update,
        /// Insert a document when none matches, made of this filter: the statement's, as the client wrote it.
        upsert: Option<DocRef<'a>>,
    },
    /// Remove them.
    Delete,
}

impl<'a> Prepared<'a> {
    /// Parses an update or delete of documents of `collection` in a scope that is under its collation already; `words` are
    /// those of its shape. `bottom` has the indexes that a hint may name: the collection itself, or the buckets of a time-series
    /// collection (see [`timeseries::bottom_of`]).
    ///
    /// Errors: those of the filter, the sort, the hint and the update.
    pub fn new(
        op: &WriteOp<'a>,
        words: Words<'a>,
        (collection, bottom): (Option<&Collection>, Option<&Collection>),
        scope: &mut Scope,
    ) -> Result<Self> {
        let hint = |hint| {
            let hint = read::check_hint_at(hint, collection, bottom)?;
            if hint.columns {
                bail!(BadValue, "a $columns hint is for reads");
            }
            Ok(hint)
        };
        match op {
            WriteOp::Insert(_) => bail!(InternalError, "an insert selects nothing"),
            WriteOp::Update(op) => Self::update(op, words, &hint(op.hint)?, collection, scope),
            WriteOp::Delete(op) => Self::delete(op.multi, words, &hint(op.hint)?, scope),
        }
    }

    fn update(
        op: &UpdateOp<'a>,
        words: Words<'a>,
        hint: &Hint,
        collection: Option<&Collection>,
        scope: &mut Scope,
    ) -> Result<Self> {
        if op.multi && op.sort.is_some_and(|sort| !sort.is_empty()) {
            bail!(FailedToParse, "Cannot specify sort with multi=true");
        }
        let mut selection = Selection::parse(words, hint, scope)?;
        selection.may_insert = op.upsert;
        let options = UpdateOptions {
            array_filters: op.array_filters,
            constants: op.constants.map(DocRef::Raw),
            multi: op.multi,
        };
        let of_buckets = match collection.and_then(|found| Some((found.timeseries()?, &found.ns))) {
            Some((series, ns)) => Some(timeseries::words::of_buckets(op, series, ns)?),
            None => None,
        };
        let update = match &of_buckets {
            Some(update) => ValueRef::Document(update.as_ref()),
            None => op.update,
        };
        let action = Action::Update {
            update: Update::parse(update, options, scope)?,
            upsert: op.upsert.then_some(DocRef::Raw(op.filter)),
        };
        Ok(Self::with(selection, action, op.multi))
    }

    fn delete(multi: bool, words: Words<'a>, hint: &Hint, scope: &mut Scope) -> Result<Self> {
        let selection = Selection::parse(words, hint, scope)?;
        Ok(Self::with(selection, Action::Delete, multi))
    }

    fn with(mut selection: Selection<'a>, action: Action<'a>, multi: bool) -> Self {
        selection.query.limit = (!multi).then_some(1);
        Self {
            selection,
            action,
            multi,
            bypass_validation: false,
            images: false,
            hides_errors: false,
            retryable: None,
        }
    }
}
