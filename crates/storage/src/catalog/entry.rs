//! The durable form of the catalog: tree 0.
//!
//! ```text
//! key                                value
//! 'c' | db | '.' | collection        BSON: {id, kind, uuid, records, options, indexes: [{id, tree, spec, multikey, ready}]}
//! 'f' | tree (u32, BE)               number of a commit, u64, little-endian
//! 'n' | collection id (u32, BE)      documents i64 | bytes i64 | next record id u64, little-endian, as of the checkpoint
//! ```
//!
//! `kind` is "collection" or "view". `multikey` is an array of longs, one per key part. An index that is
//! not `ready` is being built; whoever opens the store drops it. The `n` entries are written by
//! checkpoints only; what commits changed after it is replayed from the journal. An `f` entry says that the base has entries of an index
//! that no commit has: all there are as of that commit ([`crate::engine::fill`]). It goes with the checkpoint that has the index as ready.

use super::{Collection, CollectionState, Index};
use crate::{Bytes, CollectionId, IndexId, Result, StorageError, TreeId};
use nestor_model::{Binary, CollectionOptions, DocRef, Namespace, RawDoc, RawDocBuf, RawWriter, Value, ValueRef, doc};
use std::sync::Arc;

const COLLECTION: u8 = b'c';
const NUMBERS: u8 = b'n';
const FILLED: u8 = b'f';

/// Key of the entry of a collection or view.
pub(crate) fn collection_key(ns: &Namespace) -> Bytes {
    let mut key = Vec::with_capacity(ns.db.len() + ns.coll.len() + 2);
    key.push(COLLECTION);
    key.extend_from_slice(ns.db.as_bytes());
    key.push(b'.');
    key.extend_from_slice(ns.coll.as_bytes());
    key.into()
}

/// The namespace of a key made by [`collection_key`]; `None` for other keys of tree 0.
pub(crate) fn collection_ns(key: &[u8]) -> Option<Namespace> {
    match key {
        [COLLECTION, text @ ..] => Some(Namespace::parse(std::str::from_utf8(text).ok()?)),
        _ => None,
    }
}

/// Key of the counts of a collection.
pub(crate) fn numbers_key(id: CollectionId) -> Bytes {
    numbered_key(NUMBERS, id.0)
}

/// The collection of a key made by [`numbers_key`].
pub(crate) fn numbers_collection(key: &[u8]) -> Option<CollectionId> {
    number_in(NUMBERS, key).map(CollectionId)
}

/// Key of the mark of a tree that was filled.
pub(crate) fn filled_key(tree: TreeId) -> Bytes {
    numbered_key(FILLED, tree.0)
}

/// The tree of a key made by [`filled_key`].
pub(crate) fn filled_tree(key: &[u8]) -> Option<TreeId> {
    number_in(FILLED, key).map(TreeId)
}

fn numbered_key(kind: u8, number: u32) -> Bytes {
    let [a, b, c, d] = number.to_be_bytes();
    Bytes::from([kind, a, b, c, d])
}

fn number_in(kind: u8, key: &[u8]) -> Option<u32> {
    match key {
        [own, number @ ..] if *own == kind => Some(u32::from_be_bytes(number.try_into().ok()?)),
        _ => None,
    }
}

/// The value of a counts entry.
pub(crate) fn encode_numbers(documents: i64, bytes: i64, next_record: u64) -> [u8; 24] {
    let mut out = [0; 24];
    out[..8].copy_from_slice(&documents.to_le_bytes());
    out[8..16].copy_from_slice(&bytes.to_le_bytes());
    out[16..].copy_from_slice(&next_record.to_le_bytes());
    out
}

/// Inverse of [`encode_numbers`].
pub(crate) fn decode_numbers(value: &[u8]) -> Option<(i64, i64, u64)> {
    let word = |at: usize| <[u8; 8]>::try_from(value.get(at..at + 8)?).ok();
    (value.len() == 24).then_some(())?;
    Some((
        i64::from_le_bytes(word(0)?),
        i64::from_le_bytes(word(8)?),
        u64::from_le_bytes(word(16)?),
    ))
}

/// The value of a collection's entry.
pub(crate) fn encode(collection: &Collection) -> RawDocBuf {
    let ready = collection.indexes.iter().map(|index| (index, true));
    let indexes: Vec<Value> = ready
        .chain(collection.building.iter().map(|index| (index, false)))
        .map(|(index, ready)| {
            let multikey: Vec<Value> = index.multikey.iter().map(|bits| Value::Int64(*bits as i64)).collect();
            doc! {
                "id": i64::from(index.id.0),
                "tree": i64::from(index.tree.0),
                "spec": index.spec.listed().clone(),
                "multikey": multikey,
                "ready": ready,
            }
            .into()
        })
        .collect();
    let entry = doc! {
        "id": i64::from(collection.id.0),
        "kind": if collection.is_view() { "view" } else { "collection" },
        "uuid": Binary { subtype: 4, bytes: collection.uuid.as_slice().into() },
        "records": i64::from(collection.records.0),
        "options": collection.options.listed().clone(),
        "indexes": indexes,
    };
    let mut writer = RawWriter::with_capacity(256);
    for (name, value) in entry.iter() {
        writer.append(name, value);
    }
    writer.into_doc()
}

/// Reads a collection's entry.
pub(crate) fn decode(ns: Namespace, value: &[u8], state: Arc<CollectionState>) -> Result<Collection> {
    let broken = |what: &str| StorageError::Undecodable(format!("catalog entry of {ns}: {what}"));
    let doc = RawDoc::validate(value).map_err(|e| broken(&e.to_string()))?;
    let number = |doc: DocRef<'_>, field: &str| match doc.get(field) {
        Some(ValueRef::Int64(v)) => u32::try_from(v).map_err(|_| broken(field)),
        _ => Err(broken(field)),
    };
    let doc = DocRef::Raw(doc);
    let uuid = match doc.get("uuid") {
        Some(ValueRef::Binary { bytes, .. }) => bytes.try_into().map_err(|_| broken("uuid"))?,
        _ => return Err(broken("uuid")),
    };
    let options = doc
        .get("options")
        .and_then(ValueRef::as_document)
        .ok_or_else(|| broken("options"))?
        .to_document();
    let options = CollectionOptions::parse(options).map_err(|e| broken(&e.to_string()))?;
    let kind = if options.view.is_some() { "view" } else { "collection" };
    if doc.get("kind").and_then(ValueRef::as_str) != Some(kind) {
        return Err(broken("kind"));
    }
    let (mut indexes, mut building) = (Vec::new(), Vec::new());
    for item in doc
        .get("indexes")
        .and_then(ValueRef::as_array)
        .ok_or_else(|| broken("indexes"))?
    {
        let index = item.as_document().ok_or_else(|| broken("indexes"))?;
        let spec = index
            .get("spec")
            .and_then(ValueRef::as_document)
            .ok_or_else(|| broken("spec"))?;
        let multikey = index
            .get("multikey")
            .and_then(ValueRef::as_array)
            .ok_or_else(|| broken("multikey"))?
            .iter()
            .map(|bits| match bits {
                ValueRef::Int64(bits) => Ok(bits as u64),
                _ => Err(broken("multikey")),
            })
            .collect::<Result<Vec<u64>>>()?;
        let ready = index.get("ready").is_some_and(ValueRef::truthy);
        let list = if ready { &mut indexes } else { &mut building };
        list.push(Arc::new(Index::from_spec(
            IndexId(number(index, "id")?),
            TreeId(number(index, "tree")?),
            spec.to_raw(),
            multikey,
        )?));
    }
    Ok(Collection {
        id: CollectionId(number(doc, "id")?),
        uuid,
        records: TreeId(number(doc, "records")?),
        options,
        indexes,
        building,
        state,
        derived: Default::default(),
        ns,
    })
}

/// The collection id in an entry, without reading the rest.
pub(crate) fn id_of(value: &[u8]) -> Option<CollectionId> {
    match RawDoc::validate(value).ok()?.get("id")? {
        ValueRef::Int64(v) => u32::try_from(v).ok().map(CollectionId),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_round_trip() {
        let spec = doc! { "v": 2, "key": doc! { "a": 1, "b.c": -1 }, "name": "x", "unique": true }.to_raw();
        let collection = Collection {
            id: CollectionId(7),
            ns: Namespace::new("db", "a.b"),
            uuid: [9; 16],
            options: CollectionOptions::parse(doc! { "capped": true, "size": 4096 }).unwrap(),
            records: TreeId(7),
            indexes: vec![Arc::new(
                Index::from_spec(IndexId(8), TreeId(8), spec.clone(), vec![0, 3]).unwrap(),
            )],
            building: vec![Arc::new(
                Index::from_spec(IndexId(9), TreeId(9), spec, vec![0, 0]).unwrap(),
            )],
            state: Arc::new(CollectionState::new(1, 2, 3)),
            derived: Default::default(),
        };
        let key = collection_key(&collection.ns);
        assert_eq!(collection_ns(&key), Some(collection.ns.clone()));
        let bytes = encode(&collection);
        let back = decode(collection.ns.clone(), bytes.as_bytes(), collection.state.clone()).unwrap();
        assert_eq!(format!("{back:?}"), format!("{collection:?}"));
        assert!(back.indexes[0].unique && back.indexes[0].is_multikey() && back.is_capped());
        assert_eq!(id_of(bytes.as_bytes()), Some(CollectionId(7)));
    }

    #[test]
    fn numbers_round_trip() {
        let value = encode_numbers(-1, i64::MAX, 5);
        assert_eq!(decode_numbers(&value), Some((-1, i64::MAX, 5)));
        assert_eq!(
            numbers_collection(&numbers_key(CollectionId(300))),
            Some(CollectionId(300))
        );
    }
}
