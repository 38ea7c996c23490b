//! The planner's view of a collection's indexes.

use crate::write::IndexWriter;
use nestor_model::{Error, Path, Result, ValueRef};
use nestor_planner::catalog::{IndexInfo, IndexPart, Indexes, PartKind};
use nestor_planner::wildcard::{PATH_PART, Wildcard};
use nestor_query::Scope;
use nestor_query::collation::Collator;
use nestor_query::matcher::MatchExpr;
use nestor_query::schema::Validator;
use nestor_storage::{Collection, Derive, Index};
use std::sync::Arc;

/// What is computed once from each version of a collection's catalog entry.
pub struct Prepared {
    /// One per index of the collection, in its order.
    pub writers: Arc<Vec<IndexWriter>>,
    /// The collation by which `_id`s are told apart: the collection's own.
    pub id_collation: Option<Collator>,
}

impl Derive for Prepared {
    type Error = Error;

    fn derive(collection: &Collection) -> Result<Self> {
        Ok(Self {
            writers: Arc::new(IndexWriter::all(collection)?),
            id_collation: match &collection.options.collation {
                Some(collation) => Collator::parse(collation.as_ref())?,
                None => None,
            },
        })
    }
}

/// What is computed once from this version of the collection's catalog entry.
///
/// Errors: 2 for collations that this version does not know, those of parsing partial filters.
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
        Some(_) => Ok(prepared(collection)?.id_collation.clone()),
    }
}

/// The collation of one of a collection's indexes. Errors as [`prepared`].
pub fn index_collation(collection: &Collection, index: &Index) -> Result<Option<Collator>> {
    let prepared = prepared(collection)?;
    let writer = prepared.writers.iter().find(|writer| writer.index.id == index.id);
    Ok(writer.and_then(|writer| writer.encoder.collation.clone()))
}

/// The indexes that plans may use.
pub fn indexes(collection: &Collection) -> Result<Indexes> {
    let prepared = prepared(collection)?;
    let all = collection.indexes.iter().zip(prepared.writers.iter());
    Ok(Indexes {
        all: all.map(|(index, writer)| info(index, writer)).collect::<Result<_>>()?,
        id_collation: prepared.id_collation.clone(),
    })
}

fn info(index: &Index, writer: &IndexWriter) -> Result<Arc<IndexInfo>> {
    let wildcard = wildcard(index);
    let mut parts: Vec<IndexPart> = index
        .key_pattern
        .iter()
        .enumerate()
        .map(|(i, (name, direction))| IndexPart {
            path: Path::new(name),
            kind: kind(direction),
            multikey: index.multikey.get(i).copied().unwrap_or(0),
        })
        .collect();
    if let Some(wildcard) = &wildcard {
        if let Some(value) = parts.get_mut(wildcard.at) {
            // Which of all the paths ran through arrays is not known.
            value.multikey = if value.multikey == 0 { 0 } else { u64::MAX };
        }
        let path = IndexPart {
            path: Path::new(PATH_PART),
            kind: PartKind::Ascending,
            multikey: 0,
        };
        parts.insert(wildcard.at.min(parts.len()), path);
    }
    let collation = writer.encoder.collation.clone();
    let partial = match &index.partial_filter {
        Some(filter) => {
            let mut scope = Scope::new().with_collator(collation.clone());
            let filter = MatchExpr::parse(filter.as_ref(), &mut scope)?;
            Some(Arc::new(filter.normalize()))
        }
        None => None,
    };
    Ok(Arc::new(IndexInfo {
        id: index.id.0,
        name: index.name.clone(),
        key_pattern: index.key_pattern.clone(),
        parts,
        unique: index.unique,
        // What a sparse index cannot answer a wildcard index cannot either.
        sparse: index.sparse || wildcard.is_some(),
        wildcard: wildcard.map(Arc::new),
        partial,
        collation,
        hidden: index.hidden,
    }))
}

/// The wildcard in an index's key, if there is one.
fn wildcard(index: &Index) -> Option<Wildcard> {
    let projection = index.spec.as_raw().get("wildcardProjection");
    Wildcard::of(index.key_pattern.as_ref(), projection.and_then(ValueRef::as_document))
}

fn kind(direction: ValueRef<'_>) -> PartKind {
    match direction {
        ValueRef::String("hashed") => PartKind::Hashed,
        ValueRef::Int32(v) if v < 0 => PartKind::Descending,
        ValueRef::Int64(v) if v < 0 => PartKind::Descending,
        ValueRef::Double(v) if v < 0.0 => PartKind::Descending,
        ValueRef::Decimal128(v) if v.to_f64() < 0.0 => PartKind::Descending,
        _ => PartKind::Ascending,
    }
}
