use super::*;
use crate::{Engine, EngineOptions};
use nestor_model::{Document, RecordId, doc};

fn unknown(_: &Collection, _: &Index, _: RawDoc<'_>) -> Option<Vec<KeyWriter>> {
    None
}

/// Knows indexes on one field, `a`, which is not an array.
fn on_a(_: &Collection, index: &Index, doc: RawDoc<'_>) -> Option<Vec<KeyWriter>> {
    index.key_pattern.get("a")?;
    let mut key = KeyWriter::new();
    key.push(doc.get("a").unwrap_or(ValueRef::Null), false);
    Some(vec![key])
}

/// A directory with a collection of `count` documents and an index on `a`, partly in the base; `change` may spoil the
/// last commit.
fn directory(count: i64, change: impl FnOnce(&mut crate::WriteSet, &Collection)) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open(dir.path(), EngineOptions::at_time(1)).unwrap();
    let mut ws = engine.begin();
    let ns = Namespace::new("db", "c");
    let c = ws.create_collection(&ns, [1; 16], Document::new()).unwrap();
    let spec = doc! { "v": 2, "key": doc! { "a": 1 }, "name": "a_1" }.to_raw();
    ws.create_index(c.id, spec).unwrap();
    let c = ws.catalog().by_id(c.id).unwrap().clone();
    engine.commit(ws).unwrap();
    for i in 0..count {
        let mut ws = engine.begin();
        let doc = doc! { "_id": i, "a": format!("value {i}").as_str() }.to_raw();
        let id = record::record_key(c.allocate_record_id());
        for index in &c.indexes {
            let keys = keys_of(&c, index, doc.as_raw(), &on_a).unwrap();
            let (key, value) = index.entry_format(&c).entry(keys[0].key(), keys[0].type_bits(), &id);
            ws.put(index.tree, key, value);
        }
        ws.add_count(c.id, 1, doc.as_bytes().len() as i64);
        ws.oplog(doc! { "ts": Timestamp::default(), "op": "i", "o": doc.clone() }.to_raw())
            .unwrap();
        ws.put_document(c.records, id, doc);
        engine.commit(ws).unwrap();
        if i == count / 2 {
            engine.checkpoint().unwrap();
        }
    }
    let mut ws = engine.begin();
    change(&mut ws, &c);
    engine.commit(ws).unwrap();
    engine.close().unwrap();
    dir
}

fn faults(change: impl FnOnce(&mut crate::WriteSet, &Collection)) -> Vec<String> {
    check(directory(10, change).path(), &on_a).unwrap().faults
}

#[test]
fn a_sound_directory() {
    let dir = directory(10, |_, _| {});
    let report = check(dir.path(), &on_a).unwrap();
    assert_eq!(report.faults, Vec::<String>::new());
    assert_eq!((report.commits, report.oplog_entries, report.replayed), (11, 10, 0));
    let collection = &report.collections[0];
    assert_eq!(collection.documents, 10);
    assert_eq!(collection.indexes, [("_id_".into(), 10), ("a_1".into(), 10)]);
    // Without knowing the index, its form is still checked.
    assert_eq!(check(dir.path(), &unknown).unwrap().faults.len(), 0);
}

#[test]
fn each_fault_is_named() {
    let id = |n| record::record_key(RecordId(n));
    let no_entry = faults(|ws, c| {
        let key = keys::encode("value 3");
        ws.delete(c.indexes[1].tree, [&key[..], &id(4)].concat());
    });
    assert_eq!(
        no_entry,
        [
            "db.c: record 4 has no entry in index a_1",
            "db.c: index a_1 has 9 entries, 10 belong there"
        ]
    );
    let no_record = faults(|ws, c| {
        ws.delete(c.records, id(4));
        ws.add_count(c.id, -1, 0);
    });
    assert_eq!(no_record.len(), 5, "{no_record:?}");
    assert!(no_record[0].starts_with("db.c: 9 documents of "), "{no_record:?}");
    assert!(
        no_record[1].ends_with("of index _id_ leads to no record"),
        "{no_record:?}"
    );
    let wrong_key = faults(|ws, c| ws.put(c.indexes[1].tree, [keys::encode("x"), id(4).to_vec()].concat(), b""));
    assert!(
        wrong_key[0].ends_with("of index a_1 leads to a record without that key"),
        "{wrong_key:?}"
    );
    let not_bson = faults(|ws, c| {
        ws.put(c.records, id(4), [5, 0, 0, 0, 1, 2, 3]);
    });
    assert!(
        not_bson[0].starts_with("db.c: record 4 is not a document"),
        "{not_bson:?}"
    );
    let not_given = faults(|ws, c| {
        let doc = doc! { "_id": 3i64, "a": "value 3" }.to_raw();
        ws.put_document(c.records, id(u64::MAX), doc);
    });
    assert!(
        not_given[0].ends_with("has an id that was not given yet"),
        "{not_given:?}"
    );
    let nobodys = faults(|ws, _| ws.put(TreeId(5_000), b"k", b"v"));
    assert_eq!(nobodys.len(), 1);
    assert!(nobodys[0].contains("belong to nothing"), "{nobodys:?}");
}

#[test]
fn damage_in_an_old_segment_is_found() {
    let dir = directory(10, |_, _| {});
    let path = std::fs::read_dir(dir.path().join("journal"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[500] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    // All of it is in the base, so the engine starts; but its oplog is damaged.
    let report = check(dir.path(), &on_a).unwrap();
    assert_eq!(report.fault_count, 1);
    assert!(
        report.faults[0].contains("frame checksum does not match"),
        "{:?}",
        report.faults
    );
}

#[test]
fn nothing_is_changed() {
    let dir = directory(3, |_, _| {});
    let engine = Engine::open(dir.path(), EngineOptions::at_time(1)).unwrap();
    assert!(matches!(
        check(dir.path(), &on_a),
        Err(StorageError::DirectoryInUse { .. })
    ));
    let mut ws = engine.begin();
    ws.put(TreeId(5_000), b"k", b"v");
    engine.commit(ws).unwrap();
    let copy = tempfile::tempdir().unwrap();
    let journal = copy.path().join("journal");
    std::fs::create_dir(&journal).unwrap();
    for name in ["base.nestor", "nestor.format"] {
        std::fs::copy(dir.path().join(name), copy.path().join(name)).unwrap();
    }
    for entry in std::fs::read_dir(dir.path().join("journal")).unwrap() {
        let entry = entry.unwrap();
        let mut bytes = std::fs::read(entry.path()).unwrap();
        bytes.extend([7; 100]);
        std::fs::write(journal.join(entry.file_name()), bytes).unwrap();
    }
    let sizes = |dir: &Path| {
        let files = std::fs::read_dir(dir)
            .unwrap()
            .map(|e| e.unwrap().metadata().unwrap().len());
        files.sum::<u64>()
    };
    let before = sizes(&journal);
    let report = check(copy.path(), &unknown).unwrap();
    assert_eq!((report.replayed, report.fault_count), (1, 1), "{:?}", report.faults);
    assert_eq!(sizes(&journal), before);
}

#[test]
fn what_is_no_data_directory_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    for path in [dir.path().to_owned(), dir.path().join("missing")] {
        let refused = check(&path, &unknown)
            .map(|_| ())
            .map_err(|e| e.to_string())
            .unwrap_err();
        assert!(
            refused.starts_with("open ") && refused.contains("nestor.format"),
            "{refused}"
        );
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
