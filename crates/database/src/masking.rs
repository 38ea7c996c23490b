//! Masking, as far as statements have to do with it. Reads are masked where plans are made ([`nestor_exec::catalog::masked`]); here is
//! what else somebody may do with a collection of which not everything is seen plain.
//!
//! The rule for writes: nothing that a write does or answers may depend on a masked field. So its filter, order and hint must not read
//! one, what it changes must not be one, and no unique index may compare one. `docs/decisions/0008-masking-beneath-the-query.md`.

use crate::login::secret_bytes;
use crate::statement::Statement;
use crate::users::{MASKING_KEY_ID, masking_key_namespace};
use crate::write::Progress;
use crate::write::prepared::{Action, Prepared};
use crate::write::replace::replace_by_id;
use nestor_exec::catalog::{Masked, key_tells, masked, prepared, refuse_log, tells};
use nestor_model::{Binary, Document, Error, ErrorCode, IndexSpec, RawDocBuf, Result, Value, bail, doc};
use nestor_planner::find::AllowedIndex;
use nestor_planner::rules::fields_read;
use nestor_query::env::OpContext;
use nestor_query::masking::{Key, Masking};
use nestor_query::sort::SortBy;
use nestor_query::update::Touched;
use nestor_storage::{Collection, View};

impl Statement<'_> {
    /// Whether what is asked of `collection` is asked of what a pipeline makes of it: it is a view, or masked for the caller.
    ///
    /// Errors: 13 for the oplog, when the caller may not see some collection plain; those of the policy.
    pub fn reads_by_pipeline(&self, view: &dyn View, collection: &Collection) -> Result<bool> {
        let caller = self.caller.as_deref();
        if caller.is_none() || collection.is_view() {
            return Ok(collection.is_view());
        }
        refuse_log(view, collection, caller)?;
        Ok(masked(collection, caller)?.is_some())
    }

    /// Refuses to do something with all documents of a collection that the caller may not see plain.
    ///
    /// Errors: 13.
    pub fn check_plain(&self, collection: &Collection, what: &str) -> Result<()> {
        match masked(collection, self.caller.as_deref())? {
            None => Ok(()),
            Some(_) => bail!(Unauthorized, "{} is masked for you: {what}", collection.ns),
        }
    }

    /// Refuses to make an index that would tell of masked fields: by a duplicate key, or by the documents that it has.
    ///
    /// Errors: 13.
    pub fn check_index(&self, collection: &Collection, spec: &IndexSpec) -> Result<()> {
        let Some(masked) = masked(collection, self.caller.as_deref())? else {
            return Ok(());
        };
        let masking = &masked.masking;
        let holds = spec.key_pattern.iter().any(|(path, _)| key_tells(path, masking));
        if holds || spec.partial_filter.is_some() {
            bail!(
                Unauthorized,
                "{} is masked for you: an index on or limited by fields must not tell of masked ones",
                collection.ns
            );
        }
        Ok(())
    }

    /// Makes the key of hashes before the first policy is made, and keeps it.
    ///
    /// Errors: 263 within a transaction; those of writing.
    pub fn keep_masking_key(&self, progress: &mut Progress) -> Result<()> {
        if self.terms.in_transaction {
            bail!(
                OperationNotSupportedInTransaction,
                "a masking policy cannot be made within a transaction"
            );
        }
        let users = &self.database.users;
        let _alone = users.making_key();
        if users.masking_key().get().is_some() {
            return Ok(());
        }
        let key: Key = secret_bytes()?;
        let bytes = Value::Binary(Binary {
            subtype: 0,
            bytes: key.as_slice().into(),
        });
        let stored = doc! { "_id": MASKING_KEY_ID, "key": bytes };
        replace_by_id(self, &masking_key_namespace(), &stored, progress)?;
        users.masking_key().get_or_init(|| key);
        Ok(())
    }
}

/// Checks a policy before it is stored.
///
/// Errors: those of [`Masking::parse`].
pub fn check_policy(policy: &Document) -> Result<()> {
    Masking::parse(policy.as_ref()).map(drop)
}

/// A document of `collection` as whoever runs `op` may see it.
///
/// Errors: those of the policy.
pub fn shown(doc: RawDocBuf, collection: Option<&Collection>, op: &OpContext) -> Result<RawDocBuf> {
    let caller = op.caller.as_deref();
    let Some(collection) = collection else { return Ok(doc) };
    Ok(match (masked(collection, caller)?, caller) {
        (Some(masked), Some(caller)) => masked.masking.apply(doc.as_raw().as_doc(), caller.sight.key()),
        _ => doc,
    })
}

/// Refuses to insert where a unique index would tell whether somebody has the same value in a masked field.
///
/// Errors: 13.
pub fn check_insert(collection: &Collection, op: &OpContext) -> Result<()> {
    match masked(collection, op.caller.as_deref())? {
        None => Ok(()),
        Some(masked) => check_unique(collection, masked, &Touched::All),
    }
}

/// Refuses an update or delete that depends on masked fields, and keeps it from indexes that do.
///
/// Errors: 13.
pub fn check_write(collection: Option<&Collection>, op: &OpContext, write: &mut Prepared<'_>) -> Result<()> {
    let Some(collection) = collection else { return Ok(()) };
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

fn check_unique(collection: &Collection, masked: &Masked, touched: &Touched) -> Result<()> {
    for (index, info) in collection.indexes.iter().zip(prepared(collection)?.indexes.iter()) {
        let is_touched = || info.parts.iter().any(|part| touched.affects(&part.path));
        if index.unique && tells(info, &masked.masking) && is_touched() {
            bail!(
                Unauthorized,
                "{} is masked for you: the unique index '{}' would tell of a masked field",
                collection.ns,
                index.name
            );
        }
    }
    Ok(())
}

/// An error without what it tells of the document, as who may not see that plain is told it.
pub fn without_document(error: Error) -> Error {
    match error.code() {
        ErrorCode::DocumentValidationFailure => Error::new(error.code(), "Document failed validation"),
        _ => error,
    }
}
