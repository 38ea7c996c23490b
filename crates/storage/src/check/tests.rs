use super::*;
use crate::base::Base;
use crate::engine::recovery_tests::trim;
use crate::journal::mark::{Mark, MarkFile};
use crate::journal::segment::HEADER_BYTES;
use crate::keys::{self, KeyWriter};
use crate::{Engine, EngineOptions, Index, StorageError, TreeId, WriteSet, record};
use nestor_model::{CollectionOptions, Document, IndexSpec, Namespace, RecordId, Timestamp, ValueRef, doc};
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// Knows indexes on one field that is not an array.
struct Fields(Vec<Arc<Index>>);

impl DocumentKeys for Fields {
    fn record_key(&self, doc: RawDoc<'_>) -> Bytes {
        keys::encode(doc.get("_id").unwrap_or(ValueRef::Null)).into()
    }

    fn index_keys(&self, index: usize, doc: RawDoc<'_>) -> Result<IndexKeys, Error> {
        let mut keys = IndexKeys::default();
        for (field, _) in self.0[index].key_pattern.iter() {
            let value = doc.get(field).unwrap_or(ValueRef::Null);
            keys.multikey.push(u64::from(matches!(value, ValueRef::Array(_))));
            let mut key = KeyWriter::new();
            key.push(value, false);
            keys.entries.insert(key.key().to_vec(), key.type_bits().to_vec());
        }
        Ok(keys)
    }
}

pub(crate) fn fields(collection: &Collection) -> Result<Box<dyn DocumentKeys>, Error> {
    Ok(Box::new(Fields(collection.indexes.clone())))
}

fn open(dir: &Path) -> Engine {
    let mut options = EngineOptions::at_time(1);
    options.journal.segment_bytes = 1500;
    Engine::open(dir, options).unwrap()
}

fn create(engine: &Engine, options: Document) -> Arc<Collection> {
    let mut ws = engine.begin();
    let c = ws
        .create_collection(
            &Namespace::new("db", "c"),
            [1; 16],
            CollectionOptions::parse(options).unwrap(),
        )
        .unwrap();
    let spec = doc! { "v": 2, "key": doc! { "a": 1 }, "name": "a_1" }.to_raw();
    ws.create_index(c.id, IndexSpec::parse(spec).unwrap()).unwrap();
    let c = ws.catalog().by_id(c.id).unwrap().clone();
    engine.commit(ws).unwrap();
    c
}

fn insert(engine: &Engine, c: &Collection, i: i64) {
    let mut ws = engine.begin();
    let doc = doc! { "_id": i, "a": format!("value {i}").as_str() }.to_raw();
    let id = record::record_key(c.allocate_record_id());
    for (at, index) in c.indexes.iter().enumerate() {
        let keys = fields(c).unwrap().index_keys(at, doc.as_raw()).unwrap();
        for (key, type_bits) in &keys.entries {
            let (key, value) = index.entry_format(c).entry(key, type_bits, &id);
            ws.put(index.tree, key, value);
        }
    }
    ws.add_count(c.id, 1, doc.as_bytes().len() as i64);
    ws.oplog(doc! { "ts": Timestamp::default(), "op": "i", "o": doc.clone() }.to_raw())
        .unwrap();
    ws.put_document(c.records, id, doc);
    let commit = engine.commit(ws).unwrap();
    engine.wait_durable(commit.lsn).unwrap();
}

/// A directory with a collection of `count` documents and an index on `a`, partly in the base; `change` may spoil the
/// last commit. With `closed` all of it is in the base in the end.
fn directory(count: i64, closed: bool, change: impl FnOnce(&mut WriteSet, &Collection)) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let c = create(&engine, Document::new());
    for i in 0..count {
        insert(&engine, &c, i);
        if i == count / 2 {
            engine.checkpoint().unwrap();
        }
    }
    let mut ws = engine.begin();
    change(&mut ws, &c);
    engine.commit(ws).unwrap();
    if closed {
        engine.close().unwrap();
        return dir;
    }
    let crashed = tempfile::tempdir().unwrap();
    copy(dir.path(), crashed.path());
    trim(crashed.path());
    crashed
}

fn copy(from: &Path, to: &Path) {
    for (path, bytes) in files(from) {
        let target = to.join(path.strip_prefix(from).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::write(target, bytes).unwrap();
    }
}

/// All files with what is in them.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if !path.ends_with("nestor.lock") {
            found.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    found
}

fn segments(dir: &Path) -> Vec<PathBuf> {
    files(&dir.join("journal")).into_keys().collect()
}

/// Checks that checking changes nothing.
fn checked(dir: &Path) -> CheckReport {
    let before = files(dir);
    let report = check(dir, None, &fields).unwrap();
    assert_eq!(files(dir), before);
    report
}

/// Faults with the directory's name left out.
fn faults_in(dir: &Path) -> Vec<String> {
    let report = checked(dir);
    assert_eq!(report.fault_count, report.faults.len() as u64);
    without(dir, &report.faults)
}

fn without(dir: &Path, texts: &[String]) -> Vec<String> {
    let dir = format!("{}/", dir.display());
    texts.iter().map(|text| text.replace(&dir, "")).collect()
}

/// The faults that a last commit makes, the same from the journal as from the base.
fn faults(change: impl Fn(&mut WriteSet, &Collection)) -> Vec<String> {
    let found = faults_in(directory(10, true, &change).path());
    assert_eq!(found, faults_in(directory(10, false, &change).path()));
    found
}

fn flip(path: &Path, offset: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[offset] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_sound_directory() {
    for closed in [true, false] {
        let dir = directory(10, closed, |_, _| {});
        let report = checked(dir.path());
        assert_eq!((report.faults, report.notes), (vec![], vec![]));
        assert_eq!((report.commits, report.oplog_entries), (11, 10));
        assert_eq!((report.replayed, report.segments), (if closed { 0 } else { 4 }, 2));
        let collection = &report.collections[0];
        assert_eq!((collection.documents, collection.bytes), (10, 330));
        let index = |name: &str| IndexReport {
            name: name.into(),
            entries: 10,
            faults: 0,
        };
        assert_eq!(collection.indexes, [index("_id_"), index("a_1")]);
    }
}

#[test]
fn a_new_directory() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    assert_eq!(faults_in(dir.path()), Vec::<String>::new());
    fs::remove_file(dir.path().join("base.nestor")).unwrap();
    let report = checked(dir.path());
    assert_eq!(report.notes, ["the directory is new, nothing was stored in it yet"]);
    assert_eq!(report.fault_count, 0);
}

#[test]
fn records_and_entries() {
    let id = |n| record::record_key(RecordId(n));
    let a = |value: &str, n| [keys::encode(value), id(n).to_vec()].concat();
    assert_eq!(
        faults(|ws, c| ws.delete(c.indexes[1].tree, a("value 3", 4))),
        [
            "db.c: record 4 has no entry in index a_1",
            "db.c: index a_1 has 9 entries, 10 belong there"
        ]
    );
    let no_record = faults(|ws, c| {
        ws.delete(c.records, id(4));
        ws.add_count(c.id, -1, 0);
    });
    assert_eq!(
        no_record,
        [
            "db.c: index _id_ has 10 entries, 9 belong there".into(),
            format!(
                "db.c: entry {:?} of index _id_ leads to no record",
                Bytes::from(keys::encode(3i64))
            ),
            "db.c: index a_1 has 10 entries, 9 belong there".into(),
            format!(
                "db.c: entry {:?} of index a_1 leads to no record",
                Bytes::from(a("value 3", 4))
            ),
            "db.c: 9 documents of 297 bytes, but counts say 9 of 330".into(),
        ]
    );
    let wrong_key = faults(|ws, c| ws.put(c.indexes[1].tree, a("x", 4), b""));
    assert_eq!(wrong_key[0], "db.c: index a_1 has 11 entries, 10 belong there");
    assert!(wrong_key[1].ends_with("of index a_1 leads to a record without that key"));
    let wrong_record = faults(|ws, c| ws.put(c.indexes[0].tree, keys::encode(3i64), id(5)));
    assert_eq!(wrong_record, ["db.c: record 4 has another entry in index _id_"]);
    let short = faults(|ws, c| ws.put(c.indexes[1].tree, b"k", b""));
    assert_eq!(short[0], "db.c: entry 6b of index a_1 does not decode");
    let not_bson = faults(|ws, c| {
        ws.put(c.records, id(4), [5, 0, 0, 0, 1, 2, 3]);
    });
    assert!(
        not_bson[0].starts_with("db.c: record 4 is not a document"),
        "{not_bson:?}"
    );
    let not_given = faults(|ws, c| {
        ws.put_document(c.records, id(u64::MAX), doc! { "_id": 3i64, "a": "value 3" }.to_raw());
    });
    assert!(
        not_given[0].ends_with("has an id that was not given yet"),
        "{not_given:?}"
    );
    let array = faults(|ws, c| {
        ws.put_document(
            c.records,
            id(4),
            doc! { "_id": 3i64, "a": vec![nestor_model::Value::from(1)] }.to_raw(),
        );
    });
    assert_eq!(array[0], "db.c: record 4 has arrays that index a_1 does not know of");
}

#[test]
fn a_clustered_collection() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let c = create(
        &engine,
        doc! { "clusteredIndex": doc! { "key": doc! { "_id": 1 }, "unique": true } },
    );
    assert_eq!(c.indexes.len(), 1, "none on _id");
    for (i, at) in [(1, 1), (2, 7)] {
        let mut ws = engine.begin();
        let doc = doc! { "_id": i, "a": "x" }.to_raw();
        let (entry, value) = c.indexes[0]
            .entry_format(&c)
            .entry(&keys::encode("x"), &[], &keys::encode(at));
        ws.put(c.indexes[0].tree, entry, value);
        ws.add_count(c.id, 1, doc.as_bytes().len() as i64);
        ws.put_document(c.records, keys::encode(at), doc);
        engine.commit(ws).unwrap();
    }
    engine.close().unwrap();
    drop(engine);
    let place = Bytes::from(keys::encode(7));
    assert_eq!(
        faults_in(dir.path()),
        [format!("db.c: record {place:?} does not lie at its _id")]
    );
}

#[test]
fn keys_that_cannot_be_made() {
    let dir = directory(3, true, |_, _| {});
    let unknown = |_: &Collection| Err(Error::new(nestor_model::ErrorCode::BadValue, "no such collation"));
    let report = check(dir.path(), None, &unknown).unwrap();
    assert_eq!(
        report.faults,
        ["db.c: keys of its indexes cannot be made: no such collation"]
    );
    assert_eq!(
        report.collections[0].indexes[1].entries, 3,
        "they are counted all the same"
    );
}

#[test]
fn trees() {
    let nobodys = faults(|ws, _| ws.put(TreeId(5_000), b"k", b"v"));
    assert_eq!(nobodys, ["tree 5000 has entries and belongs to nothing"]);
    let unknown = faults(|ws, _| ws.put(TreeId::CATALOG, b"a", b"v"));
    assert_eq!(unknown, ["entry 61 of the catalog does not decode"]);
    let twice = faults(|ws, c| {
        let bytes = crate::catalog::entry::encode(c);
        let key = crate::catalog::entry::collection_key(&Namespace::new("db", "d"));
        ws.put(TreeId::CATALOG, key, bytes.as_bytes());
    });
    assert_eq!(twice[0], "db.c and db.d have the same UUID");
    assert!(
        twice[1].starts_with("tree ") && twice[1].ends_with("belongs to index _id_ of db.c and to index _id_ of db.d")
    );
}

#[test]
fn an_index_that_was_being_built() {
    let dir = directory(3, false, |ws, c| {
        let spec = doc! { "v": 2, "key": doc! { "b": 1 }, "name": "b_1" };
        ws.start_index(c.id, IndexSpec::parse(spec.to_raw()).unwrap()).unwrap();
    });
    let report = checked(dir.path());
    assert_eq!(report.faults, Vec::<String>::new());
    assert_eq!(
        report.notes,
        ["db.c: index b_1 was being built; the next start drops it"]
    );
}

/// After a loss of power the mark may be old.
fn age_mark(dir: &Path) {
    MarkFile::new(dir.join("nestor.durable")).note(Mark::default());
}

#[test]
fn a_torn_tail_is_no_fault() {
    let dir = directory(10, false, |_, _| {});
    age_mark(dir.path());
    let last = segments(dir.path()).pop().unwrap();
    let name = last.file_name().unwrap().to_str().unwrap().to_owned();
    let sound = fs::read(&last).unwrap();
    fs::write(&last, [&sound[..], &[7; 100]].concat()).unwrap();
    let report = checked(dir.path());
    assert_eq!(report.faults, Vec::<String>::new());
    let cut = "that the next start cuts off, because the journal ended in the middle of a write";
    assert_eq!(
        without(dir.path(), &report.notes),
        [format!(
            "journal/{name} at byte {}: 100 bytes {cut}: no frame starts here",
            sound.len()
        )]
    );
    // The last frame is not whole: its document is gone, everything before it is there.
    fs::write(&last, &sound[..sound.len() - 8]).unwrap();
    let report = checked(dir.path());
    assert_eq!((report.fault_count, report.notes.len()), (0, 1), "{report:?}");
    assert_eq!(report.collections[0].documents, 9);
    // Segments of which nothing was synced.
    fs::write(&last, &sound).unwrap();
    let made = ["00000000000000fe", "00000000000000ff"].map(|name| format!("journal/{name}.journal"));
    made.iter()
        .for_each(|name| fs::write(dir.path().join(name), b"").unwrap());
    let report = checked(dir.path());
    let expected = made.map(|name| format!("{name}: the segment was being made"));
    assert_eq!(
        (without(dir.path(), &report.notes), report.fault_count),
        (expected.into(), 0)
    );
}

#[test]
fn damage_in_the_journal() {
    let dir = directory(20, true, |_, _| {});
    let all = segments(dir.path());
    assert!(all.len() >= 3, "{all:?}");
    let name = |at: usize| format!("journal/{}", all[at].file_name().unwrap().to_str().unwrap());
    let sound = files(dir.path());
    let again = || {
        fs::remove_dir_all(dir.path().join("journal")).unwrap();
        let journal = sound.iter().filter(|(path, _)| all.contains(path));
        fs::create_dir(dir.path().join("journal")).unwrap();
        journal.for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    };
    // All of it is in the base, so the engine starts; but its oplog is damaged.
    flip(&all[0], HEADER_BYTES + 60);
    assert_eq!(
        faults_in(dir.path()),
        [format!(
            "{} is corrupt at byte 32: frame checksum does not match",
            name(0)
        )]
    );
    again();
    fs::remove_file(&all[1]).unwrap();
    assert_eq!(
        faults_in(dir.path()),
        [format!("{}: frames before it are missing", name(2))]
    );
    again();
    fs::remove_file(&all[0]).unwrap();
    assert_eq!(
        faults_in(dir.path()),
        Vec::<String>::new(),
        "the oldest are removed one day"
    );
    again();
    flip(&all[1], 20);
    let header = format!(
        "{} is corrupt at byte 12: segment header checksum does not match",
        name(1)
    );
    assert_eq!(faults_in(dir.path()), [header]);
    again();
    fs::remove_file(&all[all.len() - 1]).unwrap();
    let lost = faults_in(dir.path());
    assert!(
        lost[0].contains("the journal ends before the last checkpoint"),
        "{lost:?}"
    );
    fs::remove_dir_all(dir.path().join("journal")).unwrap();
    let report = check(dir.path(), None, &fields).unwrap();
    assert_eq!(
        without(dir.path(), &report.faults),
        ["journal: the directory is missing"]
    );
}

#[test]
fn frames_that_are_wrong_although_their_checksums_fit() {
    let dir = directory(20, true, |_, _| {});
    let path = segments(dir.path()).remove(0);
    let name = format!("journal/{}", path.file_name().unwrap().to_str().unwrap());
    let sound = fs::read(&path).unwrap();
    let length = |at: usize| u32::from_le_bytes(sound[at + 8..at + 12].try_into().unwrap()) as usize;
    // The first commit made the collection, the second inserted the first document.
    let at = HEADER_BYTES + length(HEADER_BYTES);
    let changed = |offset: usize, byte: u8| {
        let mut bytes = sound.clone();
        let frame = &mut bytes[at..at + length(at)];
        frame[offset] = byte;
        let crc = crc32c::crc32c(&frame[8..]);
        frame[4..8].copy_from_slice(&crc.to_le_bytes());
        fs::write(&path, bytes).unwrap();
        faults_in(dir.path())
    };
    let fault = |reason: &str| vec![format!("{name} is corrupt at byte {at}: {reason}")];
    assert_eq!(changed(16, 9), fault("frame has a wrong number"));
    assert_eq!(changed(48, 3), fault("an oplog entry is broken or out of order"));
    assert_eq!(
        changed(24, 0),
        fault("an oplog entry is broken or out of order"),
        "after the frame's optime"
    );
    assert_eq!(changed(44, 99), fault("operations do not decode"));
}

#[test]
fn what_is_known_of_the_end() {
    let missing = "whether commits that were durable are missing at the end of the journal";
    let closed = directory(10, true, |_, _| {});
    assert_eq!(checked(closed.path()).unverified, Vec::<String>::new());
    let crashed = directory(10, false, |_, _| {});
    let open = checked(crashed.path()).unverified.remove(0);
    assert!(
        open.starts_with(&format!("{missing}: the store was not closed")),
        "{open}"
    );
    fs::write(crashed.path().join("nestor.durable"), b"torn").unwrap();
    let torn = checked(crashed.path());
    assert!(
        torn.unverified[0].ends_with("nestor.durable cannot be read"),
        "{torn:?}"
    );
    fs::remove_file(crashed.path().join("nestor.durable")).unwrap();
    let gone = checked(crashed.path());
    assert!(
        gone.faults[0].ends_with("nestor.durable: the file is missing"),
        "{gone:?}"
    );
    // Whole frames that are gone are a fault although what is left is sound.
    let last = segments(closed.path()).pop().unwrap();
    fs::write(&last, &fs::read(&last).unwrap()[..HEADER_BYTES]).unwrap();
    assert!(checked(closed.path()).fault_count > 0);
}

#[test]
fn damage_in_what_is_replayed() {
    let dir = directory(10, false, |_, _| {});
    let last = segments(dir.path()).pop().unwrap();
    let sound = fs::read(&last).unwrap();
    // The frames behind it say that it was durable.
    flip(&last, HEADER_BYTES + 60);
    let report = checked(dir.path());
    assert_eq!((report.fault_count, report.collections.len()), (1, 1), "{report:?}");
    assert_eq!(report.notes, Vec::<String>::new());
    let lost = "is corrupt at byte 32: frame checksum does not match; commits after number ";
    assert!(report.faults[0].contains(lost), "{report:?}");
    fs::write(&last, sound).unwrap();
    fs::remove_file(dir.path().join("base.nestor")).unwrap();
    let missing = faults_in(dir.path());
    assert_eq!(missing.len(), 1);
    assert!(
        missing[0].starts_with("base.nestor is corrupt at byte 0: it is missing"),
        "{missing:?}"
    );
}

#[test]
fn damage_in_the_base() {
    let dir = directory(1_500, true, |_, _| {});
    let path = dir.path().join("base.nestor");
    let sound = fs::read(&path).unwrap();
    let page = checked(dir.path()).base.page_bytes as usize;
    let damaged = |at: usize| {
        fs::write(&path, &sound).unwrap();
        flip(&path, at);
        faults_in(dir.path())
    };
    let kind = |wanted: u8| {
        (2..sound.len() / page)
            .filter(|n| sound[n * page + 8] == wanted && sound[n * page + 4..][..4] == (*n as u32).to_le_bytes())
            .collect::<Vec<_>>()
    };
    let (leaves, interiors, free_lists) = ([kind(2), kind(6)].concat(), kind(3), kind(5));
    let mut found = [0; 3];
    for (found, pages) in found.iter_mut().zip([leaves, interiors, free_lists]) {
        for n in pages {
            let faults = damaged(n * page + 100);
            // Pages of states before are free by now.
            if let Some(first) = faults.first() {
                *found += 1;
                assert!(
                    first.starts_with(&format!("base.nestor is corrupt at byte {}: checksum", n * page)),
                    "{first}"
                );
            }
        }
    }
    assert!(found[0] > 3 && found[1] == 1 && found[2] == 1, "{found:?}");
    for slot in [0, 1] {
        let faults = damaged(slot * page + 30);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].starts_with(&format!("base.nestor is corrupt at byte {}: meta page", slot * page)));
    }
    fs::write(&path, &sound[..sound.len() - 1]).unwrap();
    assert!(faults_in(dir.path())[0].contains("bytes, "), "cut short");
    fs::write(&path, [&sound[..], &[0; 10]].concat()).unwrap();
    let notes = checked(dir.path()).notes;
    assert_eq!(
        without(dir.path(), &notes),
        ["base.nestor: 10 bytes of an interrupted checkpoint"]
    );
}

#[test]
fn a_commit_of_the_base_that_was_interrupted_between_its_meta_pages() {
    let dir = directory(10, true, |_, _| {});
    let path = dir.path().join("base.nestor");
    let before = fs::read(&path).unwrap();
    let base = Tree::open(&path, TreeOptions::default()).unwrap();
    let meta = base.snapshot().meta().to_vec();
    base.apply(&[], &mut crate::base::changes([]), &meta).unwrap();
    drop(base);
    let page = checked(dir.path()).base.page_bytes as usize;
    let mut bytes = fs::read(&path).unwrap();
    bytes[page..2 * page].copy_from_slice(&before[page..2 * page]);
    fs::write(&path, bytes).unwrap();
    let report = checked(dir.path());
    assert_eq!(report.fault_count, 0, "{report:?}");
    assert_eq!(
        without(dir.path(), &report.notes),
        ["base.nestor: a checkpoint was interrupted in its last step"]
    );
}

#[test]
fn what_cannot_be_checked() {
    let refused = |dir: &Path| match check(dir, None, &fields) {
        Ok(report) => panic!("{report:?}"),
        Err(error) => error,
    };
    let dir = tempfile::tempdir().unwrap();
    for path in [dir.path().to_owned(), dir.path().join("missing")] {
        assert!(matches!(refused(&path), StorageError::NoDataDirectory { .. }));
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    let engine = open(dir.path());
    assert!(matches!(refused(dir.path()), StorageError::DirectoryInUse { .. }));
    drop(engine);
    fs::write(dir.path().join("nestor.format"), "nestor 5\n").unwrap();
    assert!(matches!(refused(dir.path()), StorageError::NewerFormat { .. }));
    fs::write(dir.path().join("nestor.format"), "nestor?").unwrap();
    assert_eq!(
        faults_in(dir.path()),
        ["nestor.format is corrupt at byte 0: not a version of Nestor's data directory"]
    );
}
