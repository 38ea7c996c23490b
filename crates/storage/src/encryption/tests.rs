//! Encrypted stores as a whole.

use super::keys::{KeyFile, Unusable};
use super::seals::Seal;
use super::*;
use crate::check::tests::fields;
use crate::check::{CheckReport, check};
use crate::engine::recovery_tests::{copy, segments};
use crate::{Engine, EngineOptions, RestoreOptions, StorageError, TreeId, View, restore};
use nestor_model::{CollectionOptions, Namespace, Timestamp, doc};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

const T: TreeId = TreeId(900);
/// The plain text that must not be found in any file.
const SECRET: &str = "Kremlin-Nightingale-7731";

fn master(byte: u8) -> MasterKey {
    MasterKey::new(&[byte; 32]).unwrap()
}

fn options(byte: u8) -> EngineOptions {
    let mut options = EngineOptions::at_time(100);
    options.master_key = Some(master(byte));
    options
}

fn open(dir: &Path) -> Engine {
    Engine::open(dir, options(7)).unwrap()
}

fn refusal(opened: crate::Result<Engine>) -> String {
    match opened {
        Ok(_) => panic!("it was opened"),
        Err(error) => error.to_string(),
    }
}

/// All files below `dir`, with what is in them.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let name = entry.path().display().to_string();
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => drop(found.insert(name, fs::read(entry.path()).unwrap())),
        }
    }
    found
}

/// Faults that are not about trees which the catalog does not know.
fn damage(report: &CheckReport) -> Vec<String> {
    report
        .faults
        .iter()
        .filter(|fault| fault.contains("is corrupt"))
        .cloned()
        .collect()
}

fn assert_nothing_is_plain(dir: &Path, when: &str) {
    let files = files(dir);
    assert!(files.len() > 3, "{when}");
    for (name, bytes) in files {
        let is_there = bytes.windows(SECRET.len()).any(|words| words == SECRET.as_bytes());
        assert!(!is_there, "{when}: {name}");
    }
}

/// Commits a document with its oplog entry, a long key, and a value that goes to an extent of its own.
fn commit(engine: &Engine, i: u32, text: &str) {
    let mut ws = engine.begin();
    let document = doc! { "_id": i as i32, "text": text }.to_raw();
    let entry = doc! { "ts": Timestamp::default(), "op": "n", "ns": "", "o": document.clone(), "wall": nestor_model::Value::DateTime(1) };
    ws.oplog(entry.to_raw()).unwrap();
    ws.put_document(T, i.to_be_bytes(), document);
    ws.put(
        TreeId(901),
        [text.as_bytes(), &i.to_be_bytes()].concat(),
        vec![i as u8; 10],
    );
    ws.put(
        TreeId(902),
        i.to_be_bytes(),
        text.repeat(30_000 / text.len()).into_bytes(),
    );
    engine.commit(ws).unwrap();
}

fn count(engine: &Engine, tree: TreeId) -> usize {
    let mut cursor = engine.snapshot().cursor(tree);
    let (mut count, mut more) = (0, cursor.first().unwrap());
    while more {
        count += 1;
        more = cursor.next().unwrap();
    }
    count
}

#[test]
fn no_file_holds_what_was_stored() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let mut ws = engine.begin();
    ws.create_collection(&Namespace::new(SECRET, SECRET), [7; 16], CollectionOptions::default())
        .unwrap();
    engine.commit(ws).unwrap();
    for i in 0..20 {
        commit(&engine, i, SECRET);
    }
    assert_nothing_is_plain(dir.path(), "after commits");
    engine.checkpoint().unwrap();
    assert_nothing_is_plain(dir.path(), "after a checkpoint");
    commit(&engine, 20, SECRET);
    engine.crash();
    assert_nothing_is_plain(dir.path(), "after a crash");
    let engine = open(dir.path());
    assert_eq!([T, TreeId(901), TreeId(902)].map(|tree| count(&engine, tree)), [21; 3]);
    assert!(engine.snapshot().catalog().collection(SECRET, SECRET).is_some());
    engine.close().unwrap();
    assert_nothing_is_plain(dir.path(), "after closing");
    let report = check(dir.path(), Some(&master(7)), &fields).unwrap();
    assert_eq!((damage(&report), report.commits, report.data_keys), (Vec::new(), 22, 1));
    // The test would find it.
    let plain = tempfile::tempdir().unwrap();
    let engine = Engine::open(plain.path(), EngineOptions::at_time(100)).unwrap();
    commit(&engine, 0, SECRET);
    engine.close().unwrap();
    let holds = |name: &str| {
        fs::read(plain.path().join(name))
            .unwrap()
            .windows(SECRET.len())
            .any(|words| words == SECRET.as_bytes())
    };
    assert!(holds("base.nestor") && holds("journal/0000000000000001.journal"));
}

#[test]
fn without_the_right_key_nothing_is_touched() {
    let (dir, plain) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let engine = open(dir.path());
    commit(&engine, 1, SECRET);
    engine.crash();
    let engine = Engine::open(plain.path(), EngineOptions::at_time(100)).unwrap();
    commit(&engine, 1, SECRET);
    engine.crash();
    // A copy need not have a lock, and none is made.
    fs::remove_file(dir.path().join("nestor.lock")).unwrap();
    let before = (files(dir.path()), files(plain.path()));
    let cases = [
        (dir.path(), None, "is encrypted, and no master key was given"),
        (
            dir.path(),
            Some(8),
            "is encrypted with another master key than the one given",
        ),
        (plain.path(), Some(7), "is not encrypted, and a master key was given"),
    ];
    for (path, key, expected) in cases {
        let mut options = EngineOptions::at_time(100);
        options.master_key = key.map(master);
        let said = refusal(Engine::open(path, options));
        assert!(said.contains(expected), "{said}");
        let checked = check(path, key.map(master).as_ref(), &fields).unwrap_err();
        assert!(matches!(checked, StorageError::Encryption { .. }), "{checked}");
    }
    assert!(rotate(dir.path(), &master(8), &master(9), 100).is_err());
    assert!(rotate(plain.path(), &master(7), &master(9), 100).is_err());
    assert!(rotate(&plain.path().join("missing"), &master(7), &master(9), 100).is_err());
    assert!((files(dir.path()), files(plain.path())) == before);
    fs::remove_file(dir.path().join(FILE)).unwrap();
    for key in [None, Some(7)] {
        let mut options = EngineOptions::at_time(100);
        options.master_key = key.map(master);
        let said = refusal(Engine::open(dir.path(), options));
        assert!(said.contains("nestor.keys is missing"), "{said}");
    }
}

#[test]
fn the_master_key_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    commit(&engine, 1, SECRET);
    assert!(matches!(
        rotate(dir.path(), &master(7), &master(8), 200),
        Err(StorageError::DirectoryInUse { .. })
    ));
    engine.crash();
    rotate(dir.path(), &master(7), &master(8), 200).unwrap();
    assert!(refusal(Engine::open(dir.path(), options(7))).contains("another master key"));
    let engine = Engine::open(dir.path(), options(8)).unwrap();
    assert_eq!(count(&engine, T), 1);
    commit(&engine, 2, SECRET);
    engine.crash();
    let engine = Engine::open(dir.path(), options(8)).unwrap();
    assert_eq!(count(&engine, T), 2);
    let keys = KeyFile::read(dir.path(), &master(8)).unwrap().unwrap();
    assert_eq!(keys.into_data_keys().len(), 2, "what is written now needs the new file");
}

#[test]
fn data_keys_are_renewed_when_they_are_old() {
    let dir = tempfile::tempdir().unwrap();
    let day = 24 * 3600;
    for (days, expected) in [(0, 1), (80, 1), (100, 2), (110, 2), (300, 3)] {
        let mut options = EngineOptions::at_time(day * days + 1);
        options.master_key = Some(master(7));
        let engine = Engine::open(dir.path(), options).unwrap();
        commit(&engine, days, SECRET);
        engine.close().unwrap();
        let keys = KeyFile::read(dir.path(), &master(7)).unwrap().unwrap();
        assert_eq!(keys.into_data_keys().len(), expected, "day {days}");
    }
    let engine = open(dir.path());
    assert_eq!(count(&engine, TreeId(902)), 5, "all of them are kept");
}

#[test]
fn the_file_of_keys() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).close().unwrap();
    let bytes = fs::read(dir.path().join(FILE)).unwrap();
    assert_eq!(bytes.len(), 56 + 44 + 16);
    assert!(KeyFile::decode(&bytes, &master(7)).is_ok());
    assert_eq!(KeyFile::decode(&bytes, &master(8)).err(), Some(Unusable::OtherKey));
    for bit in 0..bytes.len() * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(
            matches!(KeyFile::decode(&bytes, &master(7)), Err(Unusable::Damaged(_))),
            "bit {bit}"
        );
        // As who makes the checksum fit would leave it.
        let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[16..]);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        assert!(
            (96..128).contains(&bit) || KeyFile::decode(&bytes, &master(7)).is_err(),
            "bit {bit}"
        );
    }
    for len in 0..bytes.len() {
        assert!(KeyFile::decode(&bytes[..len], &master(7)).is_err());
    }
    assert_eq!(format!("{:?}", master(7)), "MasterKey(..)");
}

/// Seals in the files of a directory, with what is encrypted under each.
fn seals(dir: &Path, found: &mut HashMap<[u8; 24], Vec<u8>>) -> usize {
    let mut count = 0;
    let mut add = |seal: &[u8], what: &[u8]| {
        let number: [u8; 24] = seal[..24].try_into().unwrap();
        assert_eq!(Seal::decode(seal.try_into().unwrap()).encode(), seal);
        count += 1;
        if let Some(before) = found.insert(number, what.to_vec()) {
            assert!(before == what, "one nonce for two texts");
        }
    };
    for page in fs::read(dir.join("base.nestor")).unwrap().chunks_exact(8192) {
        add(&page[8192 - SEAL_BYTES..], &page[..8192 - SEAL_BYTES]);
    }
    for segment in segments(dir) {
        let bytes = fs::read(segment).unwrap();
        let mut at = crate::journal::segment::HEADER_BYTES;
        while at < bytes.len() {
            let length = crate::journal::frame::length(&bytes[at..]).unwrap();
            add(
                &bytes[at + length - SEAL_BYTES..at + length],
                &bytes[at + 8..at + length - SEAL_BYTES],
            );
            at += length;
        }
    }
    count
}

/// A nonce that a crash forgets is not used again, nor one of a copy that somebody else opens.
#[test]
fn no_nonce_comes_twice() {
    let dir = tempfile::tempdir().unwrap();
    let mut found = HashMap::new();
    let mut total = 0;
    for round in 0..3 {
        let engine = open(dir.path());
        for i in 0..30 {
            commit(&engine, round * 100 + i, "text");
            if i % 10 == 5 {
                engine.checkpoint().unwrap();
                total += seals(dir.path(), &mut found);
            }
        }
        engine.crash();
        total += seals(dir.path(), &mut found);
        // Back to an earlier moment, as a crash of the machine may take it.
        let other = tempfile::tempdir().unwrap();
        copy(dir.path(), other.path());
        for (place, text) in [(other.path(), "one way"), (dir.path(), "another")] {
            let engine = open(place);
            (0..5).for_each(|i| commit(&engine, 50 + i, text));
            engine.checkpoint().unwrap();
            engine.crash();
            total += seals(place, &mut found);
        }
    }
    assert!(total > 500 && found.len() > 200, "{total}, {}", found.len());
}

#[test]
fn pages_do_not_change_places() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    (0..40).for_each(|i| commit(&engine, i, SECRET));
    engine.close().unwrap();
    let path = dir.path().join("base.nestor");
    let bytes = fs::read(&path).unwrap();
    let pages = bytes.len() / 8192;
    assert!(pages > 40, "{pages}");
    let master = master(7);
    let found = |dir: &Path| check(dir, Some(&master), &fields).unwrap();
    assert_eq!(damage(&found(dir.path())), Vec::<String>::new());
    for (a, b) in [(2, 3), (5, 20), (30, 31)] {
        let mut swapped = bytes.clone();
        swapped[a * 8192..][..8192].copy_from_slice(&bytes[b * 8192..][..8192]);
        swapped[b * 8192..][..8192].copy_from_slice(&bytes[a * 8192..][..8192]);
        fs::write(&path, swapped).unwrap();
        let report = found(dir.path());
        let told = damage(&report).iter().any(|fault| fault.contains("does not decrypt"));
        assert!(told, "{a} and {b}: {:?}", report.faults);
    }
    fs::write(&path, &bytes).unwrap();
    let free_pages = found(dir.path()).base.free_pages;
    let mut unseen = 0;
    for at in (0..bytes.len()).step_by(8192 / 2 + 17) {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        fs::write(&path, changed).unwrap();
        let report = found(dir.path());
        // Of the meta pages one is enough.
        let is_told = !damage(&report).is_empty() || report.base.stale_meta;
        unseen += usize::from(!is_told);
    }
    // Nobody reads them.
    assert!(
        unseen as u64 <= 2 * free_pages,
        "{unseen} changes, {free_pages} free pages"
    );
}

/// Whoever can write to the files knows how to make checksums fit.
#[test]
fn frames_that_are_not_encrypted_are_refused() {
    let (dir, plain) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (place, options) in [(dir.path(), options(7)), (plain.path(), EngineOptions::at_time(100))] {
        let engine = Engine::open(place, options).unwrap();
        commit(&engine, 1, "text");
        engine.crash();
    }
    let (ours, theirs) = (&segments(dir.path())[0], &segments(plain.path())[0]);
    let sealed = fs::read(ours).unwrap();
    fs::write(ours, fs::read(theirs).unwrap()).unwrap();
    fs::remove_file(dir.path().join("nestor.durable")).unwrap();
    let said = refusal(Engine::open(dir.path(), options(7)));
    assert!(said.contains("the frame is not encrypted, the directory is"), "{said}");
    fs::write(theirs, sealed).unwrap();
    fs::remove_file(plain.path().join("nestor.durable")).unwrap();
    let said = refusal(Engine::open(plain.path(), EngineOptions::at_time(100)));
    assert!(said.contains("the frame is encrypted, the directory is not"), "{said}");
    // What was encrypted, changed, with a checksum that fits.
    let mut changed = fs::read(theirs).unwrap();
    let at = crate::journal::segment::HEADER_BYTES;
    changed[at + crate::journal::frame::HEADER_BYTES + 3] ^= 1;
    let crc = crc32c::crc32c(&changed[at + 8..]);
    changed[at + 4..at + 8].copy_from_slice(&crc.to_le_bytes());
    fs::write(ours, changed).unwrap();
    let said = refusal(Engine::open(dir.path(), options(7)));
    assert!(
        said.contains("it was changed, or is not what was encrypted for this place"),
        "{said}"
    );
}

/// A tail that was cut short at any byte is cut off, as in other stores; what was durable before it comes back.
#[test]
fn torn_tails_are_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    commit(&engine, 1, "first");
    let from = segments(dir.path())
        .first()
        .map(|path| fs::metadata(path).unwrap().len())
        .unwrap() as usize;
    let mut ws = engine.begin();
    ws.put(T, [9], vec![1; 200]);
    engine.commit(ws).unwrap();
    engine.crash();
    fs::remove_file(dir.path().join("nestor.durable")).unwrap();
    let journal = segments(dir.path()).remove(0);
    let bytes = fs::read(&journal).unwrap();
    for len in (from..bytes.len()).step_by(7) {
        let torn = tempfile::tempdir().unwrap();
        copy(dir.path(), torn.path());
        fs::write(&segments(torn.path())[0], &bytes[..len]).unwrap();
        let engine = open(torn.path());
        assert_eq!((engine.last_lsn().0, count(&engine, T)), (1, 1), "{len} bytes");
        engine.crash();
    }
}

/// Backups need the key that the directory has, and hold nothing that is plain.
#[test]
fn backups_are_encrypted_too() {
    let above = tempfile::tempdir().unwrap();
    let place = |name: &str| above.path().join(name);
    let engine = open(&place("data"));
    (0..30).for_each(|i| commit(&engine, i, SECRET));
    engine.checkpoint().unwrap();
    let check = || Ok::<(), StorageError>(());
    engine.backup(&place("full"), None, check).unwrap();
    (30..40).for_each(|i| commit(&engine, i, SECRET));
    engine.checkpoint().unwrap();
    engine.backup(&place("more"), Some(&place("full")), check).unwrap();
    assert_nothing_is_plain(&place("full"), "full backup");
    assert_nothing_is_plain(&place("more"), "incremental backup");
    (40..45).for_each(|i| commit(&engine, i, SECRET));
    engine.crash();
    // With a data key that no backup has.
    rotate(&place("data"), &master(7), &master(8), 200).unwrap();
    let engine = Engine::open(&place("data"), options(8)).unwrap();
    (45..50).for_each(|i| commit(&engine, i, SECRET));
    engine.crash();
    for (to, journal, key, expected) in [("end", None, 7, 40), ("newest", Some(place("data")), 8, 50)] {
        let wanted = RestoreOptions {
            from: vec![place("full"), place("more")],
            journal,
            to: place(to),
            until: None,
            moves: false,
        };
        for wrong in [None, Some(9)] {
            let mut options = EngineOptions::at_time(100);
            options.master_key = wrong.map(master);
            assert!(matches!(
                restore(&wanted, options),
                Err(StorageError::Encryption { .. })
            ));
            assert!(!place(to).exists(), "nothing was made");
        }
        restore(&wanted, options(key)).unwrap();
        assert_eq!(
            count(&Engine::open(&place(to), options(key)).unwrap(), TreeId(902)),
            expected,
            "{to}"
        );
        assert_nothing_is_plain(&place(to), to);
    }
}

/// Frames of several pieces, which readers take apart.
#[test]
fn long_frames_are_read_in_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let mut ws = engine.begin();
    let text = |i: usize| char::from(b'a' + i as u8).to_string().repeat(30_000 * i + 1);
    for i in 0..12 {
        let o = doc! { "text": text(i).as_str() };
        let entry =
            doc! { "ts": Timestamp::default(), "op": "n", "ns": "", "o": o, "wall": nestor_model::Value::DateTime(1) };
        ws.oplog(entry.to_raw()).unwrap();
    }
    engine.commit(ws).unwrap();
    commit(&engine, 1, "short");
    let mut cursor = engine.oplog_cursor(Timestamp::default());
    for i in 0..12 {
        let entry = nestor_model::Document::from(cursor.next().unwrap().unwrap());
        let found = entry.get("o").and_then(|o| o.as_document()).unwrap();
        assert_eq!(
            found.get("text").and_then(|text| text.as_str()),
            Some(&*text(i)),
            "entry {i}"
        );
    }
    assert!(cursor.next().unwrap().is_some());
    assert!(cursor.next().unwrap().is_none());
    // From the end: the whole frame at once.
    let (first, last) = engine.oplog_range().unwrap().unwrap();
    assert_eq!((first.inc, last.inc), (1, 13));
    engine.crash();
    open(dir.path()).close().unwrap();
}
