//! Reading many records one by one, cheaply where their ids follow one another.
//!
//! An index often leads to records in about the order they were inserted: `_id`s and dates ascend with the record ids. Then
//! the next record lies next to the last, and a cursor finds it with a few comparisons where a look-up starts at the top of
//! each layer.

use crate::record::{record_id, record_key};
use crate::{Bytes, Cursor, Result, StorageError, TreeId, View};
use nestor_model::RecordId;
use std::cmp::Ordering;

/// Ids this close behind the last one are looked for from there.
const NEAR: u64 = 32;
/// Such ids in a row from which on a cursor is worth its opening.
const RUN_MIN: u32 = 2;

/// Reads records of one tree. It does the same as [`View::get`] at each call.
pub struct RecordReader {
    records: TreeId,
    last: u64,
    /// Ids in a row that were close behind the one before.
    run: u32,
    cursor: Option<Cursor>,
    /// The cursor is at the record of the last id.
    stands: bool,
    /// Behind the last of the records that are wanted now.
    until: Option<[u8; 8]>,
}

impl RecordReader {
    /// A reader of that tree.
    pub fn new(records: TreeId) -> Self {
        Self {
            records,
            last: u64::MAX,
            run: 0,
            cursor: None,
            stands: false,
            until: None,
        }
    }

    /// Says which records, near to one another, are wanted next.
    fn expect(&mut self, keys: &[&[u8]]) {
        let last = keys.iter().filter_map(|key| record_id(key)).max();
        self.until = last.map(|last| record_key(RecordId(last.0.saturating_add(1))));
        if let (Some(cursor), Some(until)) = (&mut self.cursor, &self.until) {
            cursor.read_ahead_to(until);
        }
    }

    /// The record of `key`. All calls up to the next [`RecordReader::save`] come with the same view.
    pub fn get(&mut self, view: &dyn View, key: &[u8]) -> Result<Option<Bytes>> {
        match self.place(view, key)? {
            Place::Cursor(cursor) => Ok(Some(cursor.value_bytes()?)),
            Place::Nowhere => Ok(None),
            Place::Unknown => view.get(self.records, key),
        }
    }

    /// Moves the cursor to a record, if a cursor is worth it.
    fn place(&mut self, view: &dyn View, key: &[u8]) -> Result<Place<'_>> {
        let Some(id) = record_id(key).filter(|_| view.is_fixed()) else {
            return Ok(Place::Unknown);
        };
        let ahead = id.0.wrapping_sub(self.last);
        self.last = id.0;
        self.run = if (1..=NEAR).contains(&ahead) {
            self.run.saturating_add(1)
        } else {
            0
        };
        if self.run < RUN_MIN {
            self.stands = false;
            return Ok(Place::Unknown);
        }
        let cursor = self.cursor.get_or_insert_with(|| {
            let mut cursor = view.cursor(self.records);
            if let Some(until) = &self.until {
                cursor.read_ahead_to(until);
            }
            cursor
        });
        // The very next record is a step away. An id that is not there leaves the cursor ahead.
        let is_behind = self.stands || cursor.is_valid() && cursor.key() < key;
        let next = match is_behind && cursor.next()? {
            true => cursor.key().cmp(key),
            false => Ordering::Less,
        };
        self.stands = match next {
            Ordering::Equal => true,
            Ordering::Greater => false,
            Ordering::Less => cursor.seek(key)? && cursor.key() == key,
        };
        Ok(match self.stands {
            true => Place::Cursor(cursor),
            false => Place::Nowhere,
        })
    }

    /// The records of `keys`, in their order; for the calls the same holds as for [`RecordReader::get`].
    pub fn get_many(&mut self, view: &dyn View, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        match are_near(keys) {
            true => {
                self.expect(keys);
                keys.iter().map(|key| self.get(view, key)).collect()
            }
            false => self.get_apart(view, keys),
        }
    }

    fn get_apart(&mut self, view: &dyn View, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        self.run = 0;
        self.stands = false;
        view.get_many(self.records, keys)
    }

    /// As [`RecordReader::get_many`], with a look at each record that is there, and a handle only for who wants it.
    ///
    /// Errors: those of `each`, too.
    pub fn look_at<E: From<StorageError>>(
        &mut self,
        view: &dyn View,
        keys: &[&[u8]],
        mut each: impl FnMut(&[u8], &dyn Fn() -> Result<Bytes>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        if !are_near(keys) {
            let found = self.get_apart(view, keys)?;
            let mut found = found.iter().flatten();
            return found.try_for_each(|bytes| each(bytes, &|| Ok(bytes.clone())));
        }
        self.expect(keys);
        let records = self.records;
        for key in keys {
            match self.place(view, key)? {
                Place::Cursor(cursor) => each(cursor.value()?, &|| cursor.value_bytes())?,
                Place::Nowhere => {}
                Place::Unknown => {
                    if let Some(bytes) = view.get(records, key)? {
                        each(&bytes, &|| Ok(bytes.clone()))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Lets go of its cursor, and with it of the state it reads.
    pub fn save(&mut self) {
        self.cursor = None;
        self.stands = false;
        self.run = 0;
    }
}

/// Where a record is.
enum Place<'r> {
    /// The cursor stands at it.
    Cursor(&'r Cursor),
    /// There is none.
    Nowhere,
    /// Nobody looked.
    Unknown,
}

/// Whether a cursor is faster than look-ups, because most keys are close to one another.
fn are_near(keys: &[&[u8]]) -> bool {
    let is_near = |pair: &&[&[u8]]| match (record_id(pair[0]), record_id(pair[1])) {
        (Some(one), Some(next)) => (1..=NEAR).contains(&next.0.wrapping_sub(one.0)),
        _ => false,
    };
    keys.windows(2).filter(is_near).count() * 2 >= keys.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::record_key;
    use crate::{Engine, EngineOptions};
    use nestor_model::{RecordId, doc};

    const RECORDS: TreeId = TreeId(9);

    /// So that there are several leaves.
    const PAD: &str = match std::str::from_utf8(&[b'x'; 1000]) {
        Ok(pad) => pad,
        Err(_) => "",
    };

    /// Records 1 to 200 without every fifth, part of them in the base, part in the memtable; some removed again.
    fn engine() -> (tempfile::TempDir, Engine) {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(dir.path(), EngineOptions::at_time(1)).unwrap();
        let put = |from: u64, step| {
            let mut ws = engine.begin();
            for id in (from..=200).step_by(step).filter(|id| id % 5 != 0) {
                ws.put_document(
                    RECORDS,
                    record_key(RecordId(id)),
                    doc! { "_id": id as i64, "from": from as i64, "pad": PAD }.to_raw(),
                );
            }
            engine.commit(ws).unwrap();
        };
        put(1, 1);
        engine.checkpoint().unwrap();
        put(3, 7);
        let mut ws = engine.begin();
        for id in (1..=200).step_by(9) {
            ws.delete(RECORDS, record_key(RecordId(id)));
        }
        engine.commit(ws).unwrap();
        (dir, engine)
    }

    #[test]
    fn it_finds_what_a_look_up_finds() {
        let (_dir, engine) = engine();
        let snapshot = engine.snapshot();
        let up: Vec<u64> = (0..220).collect();
        let down: Vec<u64> = (0..220).rev().collect();
        let gaps: Vec<u64> = (0..220).filter(|id| id % 3 != 0).collect();
        let jumps: Vec<u64> = (0..600).map(|i: u64| i * i * 37 / 11 % 230).collect();
        let mixed: Vec<u64> = (0..60)
            .flat_map(|i: u64| [i * 3, i * 3 + 1, i * 3 + 1, i * 3 + 2, i * 3 + 40, 199])
            .collect();
        // Runs that begin below, above and right behind where the one before has ended.
        let runs: Vec<u64> = [50..60, 10..20, 100..120, 120..121, 119..125]
            .into_iter()
            .flatten()
            .collect();
        for ids in [up, down, gaps, jumps, mixed, runs] {
            let mut reader = RecordReader::new(RECORDS);
            for (i, id) in ids.iter().enumerate() {
                let key = record_key(RecordId(*id));
                assert_eq!(
                    reader.get(&snapshot, &key).unwrap(),
                    snapshot.get(RECORDS, &key).unwrap(),
                    "{id}"
                );
                if i % 50 == 49 {
                    reader.save();
                }
            }
            for ids in ids.chunks(13) {
                let keys: Vec<[u8; 8]> = ids.iter().map(|id| record_key(RecordId(*id))).collect();
                let keys: Vec<&[u8]> = keys.iter().map(|key| key.as_slice()).collect();
                let singly: Vec<Option<Bytes>> = keys.iter().map(|key| snapshot.get(RECORDS, key).unwrap()).collect();
                assert_eq!(reader.get_many(&snapshot, &keys).unwrap(), singly, "{ids:?}");
                assert_eq!(snapshot.get_many(RECORDS, &keys).unwrap(), singly, "{ids:?}");
                let mut looked_at = Vec::new();
                let look = reader.look_at(&snapshot, &keys, |bytes, handle| {
                    assert_eq!(handle()?.as_slice(), bytes);
                    looked_at.push(handle()?);
                    Ok::<_, StorageError>(())
                });
                look.unwrap();
                let there: Vec<Bytes> = singly.into_iter().flatten().collect();
                assert_eq!(looked_at, there, "{ids:?}");
            }
        }
    }

    #[test]
    fn it_sees_changes_of_a_write_set_made_since() {
        let (_dir, engine) = engine();
        let key = record_key(RecordId(3));
        let mut changed = engine.begin();
        changed.delete(RECORDS, key);
        assert_eq!(changed.get_many(RECORDS, &[&key]).unwrap(), [None]);
        let mut ws = engine.begin();
        let mut reader = RecordReader::new(RECORDS);
        for id in 101..104 {
            reader.get(&ws, &record_key(RecordId(id))).unwrap();
        }
        ws.delete(RECORDS, record_key(RecordId(104)));
        assert_eq!(reader.get(&ws, &record_key(RecordId(104))).unwrap(), None);
    }
}
