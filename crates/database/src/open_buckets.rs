//! Which buckets of time-series collections have room for more measurements.
//!
//! A hint and no more: a writer reads the bucket before it adds to it, in its own write set, and opens another when there is none or no room. So
//! nothing here has to be undone when a commit fails, and what is forgotten costs only that buckets stay smaller.

use crate::lock;
use nestor_model::ObjectId;
use nestor_storage::CollectionId;
use std::collections::HashMap;
use std::sync::Mutex;

/// Sources that are remembered at most, of all collections.
const SOURCES_MAX: usize = 100_000;
/// Buckets of one source that are remembered at most: measurements that come late find theirs.
const OF_SOURCE_MAX: usize = 8;
/// Longest metadata that is remembered, in bytes.
const META_BYTES_MAX: usize = 1_024;

/// A source of measurements: the collection of buckets, and the element `meta` as bytes.
type Source = (CollectionId, Vec<u8>);

/// The buckets that were written last, by source.
#[derive(Default)]
pub struct OpenBuckets {
    sources: Mutex<HashMap<Source, Vec<ObjectId>>>,
}

impl OpenBuckets {
    /// The buckets of a source, the newest last.
    pub(crate) fn of(&self, collection: CollectionId, meta: &[u8]) -> Vec<ObjectId> {
        let sources = lock(&self.sources);
        sources.get(&(collection, meta.to_vec())).cloned().unwrap_or_default()
    }

    /// Notes that a bucket has no more room.
    pub(crate) fn forget(&self, collection: CollectionId, meta: Vec<u8>, bucket: ObjectId) {
        if let Some(buckets) = lock(&self.sources).get_mut(&(collection, meta)) {
            buckets.retain(|known| *known != bucket);
        }
    }

    /// Notes that the source has this bucket, which may have room.
    pub(crate) fn note(&self, collection: CollectionId, meta: Vec<u8>, bucket: ObjectId) {
        if meta.len() > META_BYTES_MAX {
            return;
        }
        let mut sources = lock(&self.sources);
        if sources.len() >= SOURCES_MAX && !sources.contains_key(&(collection, meta.clone())) {
            // Whichever goes: its next measurements begin a bucket.
            let some: Vec<Source> = sources.keys().take(SOURCES_MAX / 10).cloned().collect();
            some.iter().for_each(|source| drop(sources.remove(source)));
        }
        let buckets = sources.entry((collection, meta)).or_default();
        buckets.retain(|known| *known != bucket);
        if buckets.len() >= OF_SOURCE_MAX {
            buckets.remove(0);
        }
        buckets.push(bucket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_buckets_of_a_source_are_remembered() {
        let open = OpenBuckets::default();
        let id = |n: u8| ObjectId([n; 12]);
        for n in 0..20 {
            open.note(CollectionId(1), b"m".to_vec(), id(n));
        }
        open.note(CollectionId(1), b"m".to_vec(), id(15));
        open.note(CollectionId(1), b"m".to_vec(), id(99));
        open.forget(CollectionId(1), b"m".to_vec(), id(99));
        let known = open.of(CollectionId(1), b"m");
        assert_eq!(known.len(), OF_SOURCE_MAX - 1);
        assert_eq!(known.last(), Some(&id(15)));
        assert!(open.of(CollectionId(2), b"m").is_empty());
        for n in 0..SOURCES_MAX + 10 {
            open.note(CollectionId(1), n.to_be_bytes().to_vec(), id(1));
        }
        assert!(lock(&open.sources).len() <= SOURCES_MAX);
    }
}
