//! Updates and deletes of collections of which not everything is seen plain.
//!
//! The rule: nothing that a write does or answers may depend on a masked field. So its filter, order and hint must not read one, what it
//! changes must not be one, and no unique index may compare one. `docs/decisions/0008-masking-beneath-the-query.md`.

use crate::masking::check_unique;
use crate::write::prepared::{Action, Prepared};
use nestor_exec::catalog::{masked, refuse_guarded};
use nestor_model::{Error, ErrorCode, Result, bail};
use nestor_planner::find::AllowedIndex;
use nestor_planner::rules::fields_read;
use nestor_query::env::OpContext;
use nestor_query::sort::SortBy;
use nestor_query::update::Touched;
use nestor_storage::Collection;

/// Refuses an update or delete that depends on masked fields, or on rows that the caller may not see, and keeps it from indexes with such fields.
///
/// Errors: 13.
pub fn check_write(collection: Option<&Collection>, op: &OpContext, write: &mut Prepared<'_>) -> Result<()> {
    let Some(collection) = collection else { return Ok(()) };
    refuse_guarded(collection, op.caller.as_deref())?;
    let Some(masked) = masked(collection, op.caller.as_deref())? else {
        return Ok(());
    };
    let masking = &masked.masking;
    let refuse = |what: String| -> Result<()> {
        bail!(
            Unauthorized,
            "{} is masked for you: {what}, so the write would tell of it",
            collection.ns
        )
    };
    let query = &mut write.selection.query;
    match fields_read(&query.filter) {
        None => return refuse("the filter reads whole documents".to_owned()),
        Some(fields) => {
            if let Some(field) = fields.iter().find(|field| masking.has_field(field)) {
                return refuse(format!("the filter reads the field '{field}'"));
            }
        }
    }
    for part in query.sort.iter().flat_map(|sort| sort.parts()) {
        match &part.by {
            SortBy::Path(path) if !masking.has_field(path.head()) => {}
            _ => return refuse("the order reads a masked field".to_owned()),
        }
    }
    let is_usable = |name: &str| masked.indexes.iter().any(|index| index.name == name);
    if query.hint.as_ref().is_some_and(|name| !is_usable(name)) {
        return refuse("the hinted index has a masked field".to_owned());
    }
    let usable = masked
        .indexes
        .iter()
        .map(|index| AllowedIndex::Name(index.name.clone()));
    query.allowed = Some(usable.collect());
    write.hides_errors = true;
    let Action::Update { update, upsert } = &write.action else {
        return Ok(());
    };
    match update.touched() {
        Touched::Paths(paths) if update.is_modifiers() => {
            let head = |path: &str| path.split('.').next().unwrap_or_default().to_owned();
            if let Some(field) = paths
                .iter()
                .map(|path| head(path))
                .find(|field| masking.has_field(field))
            {
                return refuse(format!("the update is about the field '{field}'"));
            }
        }
        _ => return refuse("the update is about whole documents".to_owned()),
    }
    check_unique(collection, masked, update.touched())?;
    match upsert {
        Some(_) => check_unique(collection, masked, &Touched::All),
        None => Ok(()),
    }
}

/// An error without what it tells of the document, as who may not see that plain is told it.
pub fn without_document(error: Error) -> Error {
    match error.code() {
        ErrorCode::DocumentValidationFailure => Error::new(error.code(), "Document failed validation"),
        _ => error,
    }
}
