//! `$merge`: each document of a pipeline is written into a collection, where it meets what is there already.

use super::target::Selection;
use super::{Progress, check_document_namespace, prepare, writable};
use crate::read;
use crate::statement::Statement;
use crate::write::validator::Validator;
use nestor_exec::catalog::{id_collation, index_collation};
use nestor_exec::index_writer::duplicate;
use nestor_exec::write::{Changed, Writer};
use nestor_exec::{BoxOperator, Step};
use nestor_model::{
    DocRef, Document, Error, ErrorCode, Path, RawDoc, RawDocBuf, Result, Str, Value, ValueRef, bail, doc, values_equal,
};
use nestor_planner::FindQuery;
use nestor_query::Expr;
use nestor_query::collation::Collator;
use nestor_query::env::{Env, OpContext, Scope};
use nestor_query::matcher::{CompareOp, MatchExpr, Predicate};
use nestor_query::stage::{Merge, WhenMatched, WhenNotMatched};
use nestor_query::update::{Applied, Touched, Update, UpdateOptions};
use nestor_storage::{Index, View};
use std::sync::Arc;

/// The action of a `$merge` on each document, prepared once.
struct Merger<'m> {
    merge: &'m Merge,
    on: Vec<Path>,
    /// The unique index on these fields, unless it is that on `_id` of a collection to be made.
    index: Option<Arc<Index>>,
    /// Documents without one of these fields have null there: the index has them.
    takes_null: bool,
    /// The update of `whenMatched: [...]` and the expressions of its variables.
    update: Option<(Update, Vec<(Str, Expr)>)>,
    /// Why nothing can be written by the pipeline: what is no update fails with the first document, not before.
    refused: Option<Error>,
    bypass_validation: bool,
}

/// Drains `root` into the collection that `merge` names.
///
/// Errors: 51183 without a unique index on the `on` fields, 51132 and 51185 for documents without them, 13113 and
/// 11000 as `whenNotMatched: "fail"` and `whenMatched: "fail"` want, those of writing.
pub fn write_merge(
    statement: &Statement<'_>,
    view: &dyn View,
    mut root: BoxOperator,
    op: &OpContext,
    merge: &Merge,
    bypass_validation: bool,
    progress: &mut Progress,
) -> Result<()> {
    check_document_namespace(&merge.into)?;
    if let Some(existing) = view.catalog().get(&merge.into) {
        statement.check_all_rows(existing)?;
        statement.check_plain(existing, "$merge would tell of what it meets there")?;
    }
    let merger = Merger::new(view, merge, bypass_validation, op.collator.as_ref())?;
    statement.note_plan(&*root);
    let mut batch = read::batch(statement, view, op, true);
    let mut failed = None;
    loop {
        match root.next(&mut batch)? {
            Step::Row(row) => match merger.write(statement, row.doc.to_raw(), op, progress) {
                Ok(()) => {}
                // As in an unordered write, one document's failure does not keep the others from being written.
                Err(error) if of_one_document(&error) => failed = failed.or(Some(error)),
                Err(error) => return Err(error),
            },
            Step::Pause => {}
            Step::Eof => {
                statement.observe(&*root);
                return failed.map_or(Ok(()), Err);
            }
        }
    }
}

/// Finds the errors that [`write_merge`] would have before its first document.
pub fn check_merge(view: &dyn View, merge: &Merge, collator: Option<&Collator>) -> Result<()> {
    check_document_namespace(&merge.into)?;
    Merger::new(view, merge, false, collator).map(|_| ())
}

fn of_one_document(error: &Error) -> bool {
    matches!(
        error.code(),
        ErrorCode::DuplicateKey | ErrorCode::DocumentValidationFailure | ErrorCode::ImmutableField
    )
}

impl<'m> Merger<'m> {
    fn new(view: &dyn View, merge: &'m Merge, bypass_validation: bool, collator: Option<&Collator>) -> Result<Self> {
        let on = merge.on.clone().unwrap_or_else(|| vec![Path::new("_id")]);
        let existing = view.catalog().get(&merge.into);
        if existing.is_some_and(|c| c.is_view()) {
            bail!(
                CommandNotSupportedOnView,
                "namespace '{}' is a view, not a collection",
                merge.into
            );
        }
        let by_id = matches!(on.as_slice(), [path] if path.as_str() == "_id");
        let is_on = |index: &Index| {
            let mut fields = index.key_pattern.iter();
            index.key_pattern.len() == on.len() && fields.all(|(name, _)| on.iter().any(|path| path.as_str() == name))
        };
        // A field that is unique under another collation need not be unique under this operation's, `_id` included.
        let mut unique = by_id;
        let mut on_index = None;
        if let Some(c) = existing {
            unique = by_id && id_collation(c)?.as_ref() == collator;
            for index in c
                .indexes
                .iter()
                .filter(|index| index.unique && index.partial_filter.is_none())
            {
                if !unique && is_on(index) && index_collation(c, index)?.as_ref() == collator {
                    unique = true;
                    on_index = Some(index.clone());
                }
            }
        }
        if !unique {
            bail!(51183, "Cannot find index to verify that join fields will be unique");
        }
        let mut refused = None;
        let update = match &merge.when_matched {
            WhenMatched::Pipeline(stages) => {
                let variables = match &merge.variables {
                    Some(variables) => variables.clone(),
                    None => Vec::new(),
                };
                let mut names: Vec<Str> = variables.iter().map(|(name, _)| name.clone()).collect();
                if !names.iter().any(|name| name == "new") {
                    names.push("new".into());
                }
                let mut scope = Scope::with_vars(names).with_collator(collator.cloned());
                match Update::parse(ValueRef::Array(stages.as_ref()), UpdateOptions::default(), &mut scope) {
                    Ok(update) => Some((update, variables)),
                    Err(fault) => {
                        refused = Some(fault);
                        None
                    }
                }
            }
            _ => None,
        };
        Ok(Self {
            merge,
            on,
            takes_null: on_index.as_ref().is_some_and(|index| !index.sparse),
            index: on_index,
            update,
            refused,
            bypass_validation,
        })
    }

    fn write(&self, statement: &Statement<'_>, doc: RawDocBuf, op: &OpContext, progress: &mut Progress) -> Result<()> {
        if let Some(fault) = &self.refused {
            return Err(fault.clone());
        }
        // An `_id` is made for the document that is inserted; one that replaces another takes over its `_id`.
        let fresh = prepare::for_insert(doc.as_raw(), op, true)?;
        let doc = if self.on.iter().any(|path| path.as_str() == "_id") {
            fresh.clone()
        } else {
            doc
        };
        let filter = Arc::new(self.filter(doc.as_raw(), op.collator.as_ref())?);
        let fresh = match self.merge.when_matched {
            WhenMatched::Merge | WhenMatched::KeepExisting => self.upserted(fresh.as_raw()),
            _ => fresh,
        };
        let selection = Selection {
            query: FindQuery {
                collation: op.collator.clone(),
                ..FindQuery::all(filter)
            },
            may_insert: false,
            words: None,
        };
        let ns = &self.merge.into;
        let mut uuid = None;
        statement.atomically(progress, |ws| {
            if ws.catalog().get(ns).is_none() {
                // Only an insert makes the collection.
                match self.merge.when_not_matched {
                    WhenNotMatched::Insert => {}
                    WhenNotMatched::Discard => return Ok(()),
                    WhenNotMatched::Fail => return Err(unmatched()),
                }
            }
            let collection = writable(ws, ns, statement, &mut uuid)?;
            let validator = Validator::of(statement, &collection, self.bypass_validation)?;
            let found = selection.first(statement, ws, &collection, op)?;
            let mut writer = Writer::new(ws, collection, op, statement.origin(&ns.db))?;
            match found {
                None => match self.merge.when_not_matched {
                    WhenNotMatched::Insert => {
                        if let Some(validator) = &validator {
                            validator.check(fresh.as_raw(), op)?;
                        }
                        writer.insert(fresh.clone(), None)?;
                        statement.observe_keys(&writer);
                    }
                    WhenNotMatched::Discard => {}
                    WhenNotMatched::Fail => return Err(unmatched()),
                },
                Some((record, old)) => {
                    let Some(new) = self.matched(old.document(), doc.as_raw(), op)? else {
                        return Ok(());
                    };
                    if let Some(validator) = &validator {
                        validator.check_update(old.document(), new.as_raw(), op)?;
                    }
                    let changed = Changed {
                        doc: new,
                        diff: None,
                        touched: &Touched::All,
                    };
                    writer.update(&record, old.document(), changed, None)?;
                    statement.observe_keys(&writer);
                }
            }
            Ok(())
        })
    }

    /// Equality on the `on` fields.
    fn filter(&self, doc: RawDoc<'_>, collator: Option<&Collator>) -> Result<MatchExpr> {
        let mut parts = Vec::with_capacity(self.on.len());
        for path in &self.on {
            let value = value_at(doc, path, self.takes_null)?;
            let predicate = Predicate::Compare {
                op: CompareOp::Eq,
                value: value.to_value(),
                collator: collator.cloned(),
            };
            parts.push(MatchExpr::leaf(path.clone(), predicate));
        }
        Ok(if parts.len() == 1 {
            parts.remove(0)
        } else {
            MatchExpr::And(parts)
        })
    }

    /// A document to be inserted, with its fields in the order in which MongoDB's upsert sets them: `_id`, the fields that it is
    /// found by, then the others in the order of their names.
    fn upserted(&self, fresh: RawDoc<'_>) -> RawDocBuf {
        let mut out = Document::new();
        if let Some(id) = fresh.get("_id") {
            out.push("_id", id);
        }
        for path in &self.on {
            let Some(first) = path.parts().first().map(|part| part.name.clone()) else {
                continue;
            };
            let value = match fresh.get(&first) {
                None if path.parts().len() == 1 => ValueRef::Null,
                None => continue,
                Some(value) => value,
            };
            out.set(&first, value);
        }
        for (name, value) in in_order_of_names(fresh) {
            out.set(name, value);
        }
        out.to_raw()
    }

    /// The new version of a document that is there; `None` to leave it.
    fn matched(&self, old: RawDoc<'_>, new: RawDoc<'_>, op: &OpContext) -> Result<Option<RawDocBuf>> {
        let result = match &self.merge.when_matched {
            WhenMatched::KeepExisting => return Ok(None),
            WhenMatched::Fail => {
                let index = self.index.as_ref().map_or("_id_", |index| index.name.as_str());
                let pattern = match &self.index {
                    Some(index) => index.key_pattern.clone(),
                    None => doc! { "_id": 1 },
                };
                let mut key = Document::new();
                for (name, _) in pattern.iter() {
                    key.push(name, value_at(new, &Path::new(name), self.takes_null)?);
                }
                return Err(duplicate(&self.merge.into, index, pattern, key, op.collator.as_ref()));
            }
            WhenMatched::Replace => {
                check_id(old, new)?;
                match (new.get("_id"), old.get("_id")) {
                    (None, Some(id)) => {
                        let mut replaced = doc! { "_id": id };
                        for (name, value) in new.iter() {
                            replaced.push(name, value);
                        }
                        replaced.to_raw()
                    }
                    _ => new.to_buf(),
                }
            }
            WhenMatched::Merge => {
                check_id(old, new)?;
                let mut merged: Document = old.to_buf().into();
                for (name, value) in in_order_of_names(new) {
                    merged.set(name, value);
                }
                merged.to_raw()
            }
            WhenMatched::Pipeline(_) => match self.piped(old, new, op)? {
                Some(doc) => doc,
                None => return Ok(None),
            },
        };
        Ok((result.as_bytes() != old.as_bytes()).then_some(result))
    }

    fn piped(&self, old: RawDoc<'_>, new: RawDoc<'_>, op: &OpContext) -> Result<Option<RawDocBuf>> {
        let Some((update, variables)) = &self.update else {
            return Ok(None);
        };
        let mut values = Vec::with_capacity(variables.len() + 1);
        for (_, expr) in variables {
            values.push(expr.eval(&mut Env::new(DocRef::Raw(new), op))?);
        }
        if !variables.iter().any(|(name, _)| name == "new") {
            values.push(Value::from(new));
        }
        if values.iter().any(Value::is_missing) {
            // A variable without a value is not defined: the pipeline may not name it.
            let names = variables.iter().map(|(name, _)| name.clone()).chain(["new".into()]);
            let defined = names.zip(&values).filter(|(_, value)| !value.is_missing());
            let mut scope = Scope::with_vars(defined.map(|(name, _): (Str, _)| name).collect::<Vec<Str>>());
            if let WhenMatched::Pipeline(stages) = &self.merge.when_matched {
                Update::parse(ValueRef::Array(stages.as_ref()), UpdateOptions::default(), &mut scope)?;
            }
        }
        match update.apply(old, None, &op.with_vars(values))? {
            Applied::NoChange => Ok(None),
            Applied::Changed(changed) => Ok(Some(changed.doc)),
        }
    }
}

fn unmatched() -> Error {
    Error::new(
        ErrorCode::MergeStageNoMatchingDocument,
        "$merge could not find a matching document in the target collection for at least one document in the source collection",
    )
}

fn check_id(old: RawDoc<'_>, new: RawDoc<'_>) -> Result<()> {
    match (old.get("_id"), new.get("_id")) {
        (Some(a), Some(b)) if values_equal(a, b) => Ok(()),
        (_, None) => Ok(()),
        _ => bail!(
            ImmutableField,
            "$merge failed to update the matching document, did you attempt to modify the _id or the shard key?"
        ),
    }
}

/// The fields of a document in the order of their names, in which an update sets them.
fn in_order_of_names(doc: RawDoc<'_>) -> Vec<(&str, ValueRef<'_>)> {
    let mut fields: Vec<_> = doc.iter().collect();
    fields.sort_by_key(|(name, _)| *name);
    fields
}

/// The value of an `on` field: there must be exactly one. `takes_null`: null is one, and what is not there is null.
fn value_at<'d>(doc: RawDoc<'d>, path: &Path, takes_null: bool) -> Result<ValueRef<'d>> {
    let mut value = ValueRef::Document(DocRef::Raw(doc));
    for part in path.parts() {
        value = match value {
            ValueRef::Document(doc) => doc.get(&part.name).unwrap_or(ValueRef::Missing),
            ValueRef::Array(_) => bail!(51132, "$merge write error: 'on' field '{path}' cannot be an array"),
            _ => ValueRef::Missing,
        };
    }
    match value {
        ValueRef::Array(_) => bail!(51185, "$merge write error: 'on' field '{path}' cannot be an array"),
        value if value.is_nullish() && takes_null => Ok(ValueRef::Null),
        value if value.is_nullish() => bail!(
            51132,
            "$merge write error: 'on' field '{path}' cannot be missing, null or undefined"
        ),
        value => Ok(value),
    }
}
