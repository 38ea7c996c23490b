//! What is computed once from each version of a collection's catalog entry, and lives with it.

use crate::index_writer::IndexWriter;
use nestor_model::{Error, Result};
use nestor_planner::{IndexInfo, Indexes};
use nestor_query::collation::Collator;
use nestor_query::validation::Validator;
use nestor_storage::{Collection, Derive, Index};
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
            },
            writers: Arc::new(writers),
        })
    }
}

/// What is computed once from this version of the collection's catalog entry.
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

/// What judges the documents that are written to a collection; `None` when nothing does.
///
/// Errors: those of [`Validator::from_options`].
pub fn validator(collection: &Collection) -> Result<Option<Arc<Validator>>> {
    match collection.options.validator {
        None => Ok(None),
        Some(_) => Ok(collection.derived::<WriteRules>()?.0.clone()),
    }
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
