//! A few documents of a collection, by which it is told how many have what neither indexes nor columns tell of.
//!
//! They are taken once for a version of the catalog entry, all over the collection, and again when it has grown or shrunk by [`CHANGED_PART`] or when somebody
//! says ANALYZE. What they tell chooses plans and nothing else.

use nestor_model::order::hash_value;
use nestor_model::{Error, RecordId, Result, ValueRef};
use nestor_query::OpContext;
use nestor_query::matcher::MatchExpr;
use nestor_storage::record::{document, record_id, record_key};
use nestor_storage::{Collection, Derive, Engine, View as _};
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Collections with fewer documents are not sampled: whatever is done with them is soon done.
const DOCUMENTS_MIN: i64 = 1000;
/// Documents of a sample.
const TAKEN: u64 = 256;
/// And at least so many, of large ones.
const TAKEN_MIN: u64 = 16;
/// What the documents of a sample take, about.
const BYTES: u64 = 256 << 10;
/// What all samples take together at most.
const BYTES_ALL_MAX: usize = 32 << 20;
/// A collection that has become larger or smaller by this part is sampled anew.
const CHANGED_PART: f64 = 0.2;

static KEPT: AtomicUsize = AtomicUsize::new(0);

/// Documents of a collection.
pub struct Sample {
    /// How many the collection had when they were taken.
    documents: i64,
    taken: Vec<Box<[u8]>>,
    /// About how many different values there are in all documents, by path.
    distinct: Mutex<HashMap<String, Option<f64>>>,
    /// What it takes of [`BYTES_ALL_MAX`].
    bytes: usize,
}

impl Drop for Sample {
    fn drop(&mut self) {
        KEPT.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The sample of a version of a catalog entry.
struct Sampled(Mutex<Option<Arc<Sample>>>);

impl Derive for Sampled {
    type Error = Error;

    fn derive(_: &Collection) -> Result<Self> {
        Ok(Self(Mutex::default()))
    }
}

/// The sample of a collection; `None` of small ones, of those whose records have no numbers, and where there is no room.
///
/// Errors: those of storage.
pub fn of(collection: &Collection, engine: &Engine) -> Result<Option<Arc<Sample>>> {
    let documents = collection.state.documents();
    if documents < DOCUMENTS_MIN || collection.is_view() {
        return Ok(None);
    }
    let mut kept = collection
        .derived::<Sampled>()?
        .0
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let holds = |sample: &Arc<Sample>| {
        let changed = (documents - sample.documents).unsigned_abs() as f64;
        changed <= CHANGED_PART * sample.documents as f64
    };
    if let Some(sample) = kept.as_ref().filter(|sample| holds(sample)) {
        return Ok(Some(sample.clone()));
    }
    *kept = None;
    *kept = Sample::take(collection, engine, documents)?.map(Arc::new);
    Ok(kept.clone())
}

/// Has a collection sampled anew by the next who asks.
pub fn forget(collection: &Collection) {
    if let Ok(sampled) = collection.derived::<Sampled>() {
        *sampled.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Sample {
    /// Reads what was committed last, beside whatever the statement reads: a transaction is not said to have read it.
    fn take(collection: &Collection, engine: &Engine, documents: i64) -> Result<Option<Self>> {
        let snapshot = engine.snapshot();
        let mut cursor = snapshot.cursor(collection.records);
        let ends = match cursor.last()? {
            true => record_id(cursor.key()),
            false => None,
        };
        let Some(last) = ends else { return Ok(None) };
        let Some(first) = cursor.first()?.then(|| record_id(cursor.key())).flatten() else {
            return Ok(None);
        };
        let each = (collection.state.bytes().max(0) as u64 / documents as u64).max(1);
        let wanted = (BYTES / each).clamp(TAKEN_MIN, TAKEN);
        let step = ((last.0 - first.0) / wanted).max(1);
        let mut out = Self {
            documents,
            taken: Vec::new(),
            distinct: Mutex::default(),
            bytes: 0,
        };
        let mut next = first.0;
        for turn in 0..wanted {
            // Not always as far from one another, lest that goes with something in the data.
            let begins = first.0.saturating_add(turn.saturating_mul(step));
            let at = begins
                .saturating_add(turn.wrapping_mul(0x9E37_79B9_7F4A_7C15) % step)
                .max(next);
            if !cursor.seek(&record_key(RecordId(at)))? {
                break;
            }
            let Some(found) = record_id(cursor.key()) else { break };
            let bytes: Box<[u8]> = cursor.value()?.into();
            out.bytes += bytes.len();
            let before = KEPT.fetch_add(bytes.len(), Ordering::Relaxed);
            if before + bytes.len() > BYTES_ALL_MAX {
                return Ok(None);
            }
            out.taken.push(bytes);
            next = found.0.saturating_add(1);
        }
        Ok((!out.taken.is_empty()).then_some(out))
    }

    /// The part of the documents that a filter finds: those that it finds none of are taken for half a document of the sample.
    ///
    /// Errors: those of the filter.
    pub fn part(&self, filter: &MatchExpr, op: &OpContext) -> Result<f64> {
        let mut found = 0;
        for bytes in &self.taken {
            found += u32::from(filter.matches(document(bytes).as_doc(), op)?);
        }
        Ok(f64::from(found).max(0.5) / self.taken.len() as f64)
    }

    /// Whether a part is that of a filter which finds none of the sample.
    pub fn is_of_none(&self, part: f64) -> bool {
        part * (self.taken.len() as f64) < 1.0
    }

    /// About how many different values all documents have at a path; `None` where those of the sample have none.
    pub fn distinct(&self, path: &str) -> Option<f64> {
        let mut known = self.distinct.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(path) {
            return *known;
        }
        let mut times: HashMap<u64, u32> = HashMap::new();
        for bytes in &self.taken {
            if let Some(value) = at(bytes, path) {
                let mut hasher = DefaultHasher::new();
                hash_value(value, &mut hasher);
                *times.entry(hasher.finish()).or_default() += 1;
            }
        }
        let values: u32 = times.values().sum();
        let once = times.values().filter(|times| **times == 1).count();
        let all = self.documents as f64 * f64::from(values) / self.taken.len() as f64;
        let found = (values > 0).then(|| different(f64::from(values), times.len() as f64, once as f64, all));
        known.insert(path.to_owned(), found);
        found
    }
}

/// The value at a path of fields within each other; neither null nor within an array.
fn at<'d>(bytes: &'d [u8], path: &str) -> Option<ValueRef<'d>> {
    let mut fields = path.split('.');
    let mut value = document(bytes).get(fields.next()?)?;
    for field in fields {
        value = value.as_document()?.get(field)?;
    }
    (!matches!(value, ValueRef::Null)).then_some(value)
}

/// How many different values `all` rows have, of which `sampled` have so many different ones and so many that come once: the estimator Duj1
/// of P. J. Haas and L. Stokes, Estimating the number of classes in a finite population, 1998.
fn different(sampled: f64, found: f64, once: f64, all: f64) -> f64 {
    let all = all.max(sampled);
    (sampled * found / (sampled - once + once * sampled / all)).clamp(found, all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::testing;
    use nestor_model::{DocRef, doc};
    use nestor_query::env::Scope;
    use nestor_query::matcher::Context;
    use nestor_storage::WriteSet;

    #[test]
    fn the_number_of_different_values_is_about_right() {
        // All come once; none does; in between.
        assert_eq!(different(256.0, 256.0, 256.0, 150_000.0), 150_000.0);
        assert_eq!(different(256.0, 5.0, 0.0, 150_000.0), 5.0);
        let between = different(256.0, 122.0, 46.0, 20_000.0);
        assert!((140.0..160.0).contains(&between), "{between}");
    }

    #[test]
    fn a_sample_is_of_all_and_taken_anew_when_there_are_many_more() {
        let (engine, ns, made) = testing::collection();
        let add = |from: u64, to: u64| {
            let mut ws: WriteSet = engine.begin();
            ws.require_collection(made.id);
            for id in from..to {
                let row = doc! { "_id": id as i64, "of": doc! { "ten": (id % 10) as i64 }, "none": nestor_model::Value::Null };
                ws.put_document(made.records, record_key(RecordId(id)), row.to_raw());
            }
            ws.add_count(made.id, (to - from) as i64, 60 * (to - from) as i64);
            engine.commit(ws).unwrap();
        };
        let collection = || engine.snapshot().catalog().get(&ns).unwrap().clone();
        add(1, 500);
        assert!(of(&collection(), &engine).unwrap().is_none(), "it is small");
        add(500, 4000);
        let collection = collection();
        let sample = of(&collection, &engine).unwrap().unwrap();
        assert_eq!(sample.taken.len(), TAKEN as usize);
        assert_eq!(sample.distinct("of.ten"), Some(10.0));
        assert_eq!(sample.distinct("none"), None);
        let all = sample.distinct("_id").unwrap();
        assert!((3900.0..4000.0).contains(&all), "{all}");
        let op = OpContext::default();
        let part = |filter: nestor_model::Document| {
            let raw = filter.to_raw();
            let filter = MatchExpr::parse_in(DocRef::Raw(raw.as_raw()), &mut Scope::default(), Context::Find);
            sample.part(&filter.unwrap(), &op).unwrap()
        };
        let half = part(doc! { "_id": doc! { "$lt": 2000 } });
        assert!((0.45..0.55).contains(&half), "{half}");
        assert_eq!(part(doc! { "_id": -1 }), 0.5 / TAKEN as f64);
        add(4000, 4100);
        assert!(Arc::ptr_eq(&sample, &of(&collection, &engine).unwrap().unwrap()));
        add(4100, 6000);
        let again = of(&collection, &engine).unwrap().unwrap();
        assert!(!Arc::ptr_eq(&sample, &again));
        forget(&collection);
        assert!(!Arc::ptr_eq(&again, &of(&collection, &engine).unwrap().unwrap()));
    }
}
