//! Values that are computed once from each version of a collection's catalog entry, and live with it.

use crate::index_writer::IndexWriter;
use nestor_model::{Error, Result, bail};
use nestor_planner::rules::fields_read;
use nestor_planner::{IndexInfo, Indexes};
use nestor_query::collation::Collator;
use nestor_query::env::Caller;
use nestor_query::masking::Masking;
use nestor_query::validation::Validator;
use nestor_storage::{Collection, Derive, Index, View};
use std::sync::Arc;

/// The indexes of a collection, for those who write and those who plan.
pub struct Prepared {
    /// One per index of the collection, in its order.
    pub writers: Arc<Vec<IndexWriter>>,
    /// The same as plans see them.
    pub indexes: Indexes,
}

impl Derive for Prepared {
    type Error = Error;

    fn derive(collection: &Collection) -> Result<Self> {
        let writers = collection.indexes.iter();
        let writers: Vec<_> = writers
            .map(|index| IndexWriter::new(collection, index))
            .collect::<Result<_>>()?;
        Ok(Self {
            indexes: Indexes {
                all: writers.iter().map(|writer| writer.info.clone()).collect(),
                id_collation: match &collection.options.collation {
                    Some(collation) => Collator::parse(collation.as_ref())?,
                    None => None,
                },
                clustered: collection.is_clustered(),
            },
            writers: Arc::new(writers),
        })
    }
}

/// The values that are computed once from this version of the collection's catalog entry.
///
/// Errors: 2 for collations and 67 for kinds of indexes that this version does not know, those of parsing partial filters.
pub fn prepared(collection: &Collection) -> Result<&Prepared> {
    collection.derived()
}

/// A collection's compiled validator, if writes are to be checked.
struct WriteRules(Option<Arc<Validator>>);

impl Derive for WriteRules {
    type Error = Error;

    fn derive(collection: &Collection) -> Result<Self> {
        Ok(Self(Validator::from_options(&collection.options)?.map(Arc::new)))
    }
}

/// The validator of a collection; `None` without one.
///
/// Errors: those of [`Validator::from_options`].
pub fn validator(collection: &Collection) -> Result<Option<Arc<Validator>>> {
    match collection.options.validator {
        None => Ok(None),
        Some(_) => Ok(collection.derived::<WriteRules>()?.0.clone()),
    }
}

/// A collection as somebody sees it who may not see it plain.
pub struct Masked {
    /// How its fields are masked.
    pub masking: Arc<Masking>,
    /// The indexes that plans may use: those that neither hold nor are limited by masked fields. Bounds on those would tell of the
    /// values, and so would the order of their entries and which documents they have.
    pub indexes: Indexes,
}

impl Derive for Masked {
    type Error = Error;

    fn derive(collection: &Collection) -> Result<Self> {
        let none = nestor_model::Document::new();
        let listed = collection.options.masking.as_ref().unwrap_or(&none);
        let masking = Masking::parse(listed.as_ref())?;
        let all = &prepared(collection)?.indexes;
        Ok(Self {
            indexes: Indexes {
                all: all.iter().filter(|index| !tells(index, &masking)).cloned().collect(),
                id_collation: all.id_collation.clone(),
                // How many records a range has could tell of a masked `_id`.
                clustered: false,
            },
            masking: Arc::new(masking),
        })
    }
}

/// Whether an index holds masked fields or is limited by them.
pub fn tells(index: &IndexInfo, masking: &Masking) -> bool {
    let is_limited = index.partial.as_ref().is_some_and(|filter| match fields_read(filter) {
        Some(fields) => fields.iter().any(|field| masking.has_field(field)),
        None => true,
    });
    // The key pattern of a text index names none of the fields whose texts and languages it is about.
    let is_about = index.kind.text().is_some_and(|text| match text.paths() {
        Some(paths) => paths.iter().any(|path| masking.touches(&path.to_string())),
        None => true,
    });
    is_limited || is_about || index.key_pattern.iter().any(|(path, _)| key_tells(path, masking))
}

/// Whether a field of a key pattern holds masked fields.
fn key_tells(path: &str, masking: &Masking) -> bool {
    match path.strip_suffix("$**") {
        Some("") => true,
        Some(below) => masking.touches(below.trim_end_matches('.')),
        None => masking.touches(path),
    }
}

/// The collection as `caller` sees it; `None` when that is as it is: it has no policy, or the caller sees it plain, or nobody has to
/// log in. This is the one place that decides it.
///
/// Errors: those of the policy, and of [`prepared`].
pub fn masked<'c>(collection: &'c Collection, caller: Option<&Caller>) -> Result<Option<&'c Masked>> {
    let (Some(_), Some(caller)) = (&collection.options.masking, caller) else {
        return Ok(None);
    };
    match caller.sight.is_plain(&collection.ns.db, &collection.ns.coll) {
        true => Ok(None),
        false => collection.derived().map(Some),
    }
}

/// Whether policies say which documents of the collection `caller` sees and writes. They are conditions of SQL, which looks at them itself; all else
/// is to [refuse](refuse_guarded) such a collection. This is the one place that decides it.
pub fn is_guarded(collection: &Collection, caller: Option<&Caller>) -> bool {
    let (Some(own), Some(caller)) = (&collection.options.row_security, caller) else {
        return false;
    };
    let ns = &collection.ns;
    own.is_on && !caller.sight.has_all_rows(&ns.db, &ns.coll, own.is_forced)
}

/// Refuses a collection of which policies say what `caller` sees, also if they were not forced upon its owner: what owners change, they change for
/// all rows.
///
/// Errors: 13.
pub fn refuse_others(collection: &Collection, caller: Option<&Caller>) -> Result<()> {
    let ns = &collection.ns;
    match caller {
        Some(caller) if caller.sight.has_all_rows(&ns.db, &ns.coll, false) => Ok(()),
        caller => refuse_guarded(collection, caller),
    }
}

/// Refuses a collection of which policies say what `caller` sees.
///
/// Errors: 13.
pub fn refuse_guarded(collection: &Collection, caller: Option<&Caller>) -> Result<()> {
    if is_guarded(collection, caller) {
        bail!(
            Unauthorized,
            "{} has row security: only SQL knows which of its documents are for you",
            collection.ns
        );
    }
    Ok(())
}

/// Refuses to read the oplog to who may not see some collection plain: it has all documents.
///
/// Errors: 13.
pub fn refuse_log(view: &dyn View, collection: &Collection, caller: Option<&Caller>) -> Result<()> {
    if caller.is_none() || !collection.ns.is_named_as_oplog() {
        return Ok(());
    }
    for other in view.catalog().collections() {
        if masked(other, caller)?.is_some() {
            bail!(
                Unauthorized,
                "the oplog has documents of collections that are masked for you, {} among them",
                other.ns
            );
        }
        if is_guarded(other, caller) {
            bail!(
                Unauthorized,
                "the oplog has documents that row security may keep from you, those of {} among them",
                other.ns
            );
        }
    }
    Ok(())
}

/// The collation by which a collection tells `_id`s apart. Errors as [`prepared`].
pub fn id_collation(collection: &Collection) -> Result<Option<Collator>> {
    match collection.options.collation {
        None => Ok(None),
        Some(_) => Ok(prepared(collection)?.indexes.id_collation.clone()),
    }
}

/// One of a collection's indexes as plans see it. Errors as [`prepared`].
pub fn index_info<'c>(collection: &'c Collection, index: &Index) -> Result<Option<&'c Arc<IndexInfo>>> {
    Ok(indexes(collection)?.iter().find(|info| info.id == index.id.0))
}

/// The collation of one of a collection's indexes. Errors as [`prepared`].
pub fn index_collation(collection: &Collection, index: &Index) -> Result<Option<Collator>> {
    Ok(index_info(collection, index)?.and_then(|info| info.collation.clone()))
}

/// The indexes that plans may use. Errors as [`prepared`].
pub fn indexes(collection: &Collection) -> Result<&Indexes> {
    Ok(&prepared(collection)?.indexes)
}
