//! What the fuzz targets of the bytes on disk do with their input, and tests that replay the corpus (`fuzz/corpus/`) the same
//! way.
//!
//! Checksums keep accidents out, but whoever can write the files can make them fit, so what is behind them must not panic
//! either: where bytes need a checksum, these functions put the right one in.

use crate::base::tree::fuzz as tree;
use crate::encryption::{KeyFile, MasterKey, Seals, keys};
use crate::journal::frame::{self, Frame};
use crate::journal::mark::Mark;
use crate::keys::{EntryFormat, KeyWriter, decode};

/// An index key and its type bits. `bytes[0]`: the number of parts less one in the two lowest bits, and above them the
/// direction of each; `bytes[1]`: how many bytes of type bits follow; then those and the key.
pub fn key(bytes: &[u8]) {
    let [shape, types, rest @ ..] = bytes else { return };
    let descending: Vec<bool> = (0..=shape & 3).map(|part| shape >> (2 + part) & 1 == 1).collect();
    let (type_bits, key) = rest.split_at(rest.len().min(usize::from(*types)));
    for unique in [false, true] {
        for clustered in [false, true] {
            let format = EntryFormat {
                unique,
                clustered,
                descending: descending.clone(),
            };
            if let Ok(entry) = format.split(key, type_bits) {
                assert!(entry.key.len() <= key.len());
            }
        }
    }
    // Not every sequence of bytes that decodes is what the writer makes of the values; but what it makes is stable.
    let Some(written) = rewritten(key, type_bits, &descending) else {
        return;
    };
    let again = rewritten(written.key(), written.type_bits(), &descending).expect("what was written decodes");
    assert_eq!((again.key(), again.type_bits()), (written.key(), written.type_bits()));
}

/// The bytes that the writer makes of the values of a key, if it decodes.
fn rewritten(key: &[u8], type_bits: &[u8], descending: &[bool]) -> Option<KeyWriter> {
    let (values, length) = decode(key, type_bits, descending).ok()?;
    assert!(length <= key.len());
    let mut writer = KeyWriter::new();
    for (value, descending) in values.iter().zip(descending) {
        writer.push(value.as_ref(), *descending);
    }
    Some(writer)
}

/// Frames of the journal, one after the other, as they are and with a header that fits; and a mark.
pub fn journal(bytes: &[u8]) {
    let _ = Mark::decode(bytes);
    read_frames(bytes);
    let mut whole = bytes.to_vec();
    whole.truncate(whole.len() / frame::ALIGN * frame::ALIGN);
    if frame::mend(&mut whole) {
        assert_eq!(read_frames(&whole), 1, "its header fits");
    }
}

/// Reads sound frames to their end. Returns how many there are.
fn read_frames(mut bytes: &[u8]) -> usize {
    let mut count = 0;
    while let Ok(frame) = Frame::read(bytes) {
        count += 1;
        let _ = (frame.durable(), frame.optime(), frame.previous());
        frame.entries().for_each(drop);
        frame.ops().for_each(drop);
        bytes = &bytes[frame.len()..];
    }
    count
}

/// An extent of the base, as a leaf and as an interior node, and as a meta page.
pub fn page(bytes: &[u8]) {
    tree::extent(bytes);
    let _ = crate::engine::recovery::Meta::decode(bytes);
}

/// What encrypted directories hold, as it is and with checksums that fit: `nestor.keys`, and a frame of the journal. Whatever the bytes
/// are, nothing was encrypted with the keys that are given.
pub fn encryption(bytes: &[u8]) {
    let master = MasterKey::new(&[7; 32]).expect("32 bytes");
    assert!(KeyFile::decode(bytes, &master).is_err());
    let mut file = bytes.to_vec();
    if keys::mend(&mut file) {
        assert!(KeyFile::decode(&file, &master).is_err());
    }
    let Some(seals) = KeyFile::new(1)
        .ok()
        .and_then(|file| Seals::new(file.into_data_keys()).ok())
    else {
        return;
    };
    let mut whole = bytes.to_vec();
    whole.truncate(whole.len() / frame::ALIGN * frame::ALIGN);
    if frame::mend_sealed(&mut whole) {
        let frame = Frame::read(&whole).expect("its header fits");
        frame.entries().for_each(drop);
        frame.ops().for_each(drop);
        assert!(frame.open(Some(&seals), &mut Vec::new()).is_err());
        assert!(frame.open(None, &mut Vec::new()).is_err());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::tree::tests::disk::Disk;
    use crate::base::tree::{Tree, TreeOptions, empty_file};
    use crate::base::{Base, Change, changes};
    use crate::{Engine, EngineOptions, TreeId};
    use nestor_model::{Decimal128, Timestamp, Value, doc};
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::{Path, PathBuf};

    /// Seeds that the writers make: name and bytes.
    type Seeds = BTreeMap<String, Vec<u8>>;

    fn folder(target: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fuzz/corpus")
            .join(target)
    }

    /// Writes the seeds if asked to (`NESTOR_BLESS`), and returns all of the corpus.
    fn seeded(target: &str, seeds: Seeds) -> Vec<Vec<u8>> {
        let dir = folder(target);
        if std::env::var_os("NESTOR_BLESS").is_some() {
            fs::create_dir_all(&dir).unwrap();
            for (name, bytes) in &seeds {
                fs::write(dir.join(name), bytes).unwrap();
            }
        }
        // The position that was durable when a frame was written depends on the moment, so its bytes may differ.
        let missing: Vec<_> = seeds.keys().filter(|name| !dir.join(name).exists()).collect();
        assert!(missing.is_empty(), "bless the seeds of {target}: {missing:?}");
        let files = fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
        files.map(|file| fs::read(file.unwrap().path()).unwrap()).collect()
    }

    /// Runs `target` with each seed, cut short at every byte, and with every byte changed in three ways.
    fn replay(target: fn(&[u8]), seeds: &[Vec<u8>]) {
        assert!(seeds.len() >= 5, "the corpus is there");
        for seed in seeds {
            target(seed);
            let mut bytes = seed.clone();
            for at in 0..seed.len().min(2000) {
                target(&seed[..at]);
                for change in [1, 0x80, 0xFF] {
                    bytes[at] ^= change;
                    target(&bytes);
                    bytes[at] ^= change;
                }
            }
        }
    }

    #[test]
    fn keys() {
        let (decimal, _) = Decimal128::parse("-0.50").unwrap();
        let values: [(&str, Vec<Value>); 8] = [
            ("numbers", vec![1.into(), (-2.5).into(), Value::Int64(1 << 60)]),
            (
                "decimals",
                vec![Value::Decimal128(decimal), 0.0.into(), f64::NAN.into()],
            ),
            ("texts", vec!["a\0b".into(), "".into(), "Été".into()]),
            (
                "documents",
                vec![Value::from(doc! { "a": vec![Value::Null, 2.into()], "b": doc! {} })],
            ),
            (
                "ends",
                vec![Value::MinKey, Value::MaxKey, Value::Missing, Value::Undefined],
            ),
            (
                "times",
                vec![Value::Timestamp(Timestamp { secs: 3, inc: 4 }), Value::DateTime(-5)],
            ),
            ("bools", vec![true.into(), false.into()]),
            (
                "nested",
                vec![Value::from(vec![Value::from(vec![Value::from(vec![1.into()])])])],
            ),
        ];
        let mut seeds = Seeds::new();
        for (name, values) in &values {
            for descending in [false, true] {
                let mut writer = KeyWriter::new();
                values.iter().for_each(|value| writer.push(value.as_ref(), descending));
                let directions = if descending { 0b11_1100 } else { 0 };
                let mut bytes = vec![directions | (values.len() as u8 - 1), writer.type_bits().len() as u8];
                bytes.extend_from_slice(writer.type_bits());
                bytes.extend_from_slice(writer.key());
                let suffix = if descending { "-descending" } else { "" };
                seeds.insert(format!("{name}{suffix}"), bytes);
            }
        }
        replay(key, &seeded("key", seeds));
    }

    /// A store on disk with a few commits of every kind: its journal and its base.
    fn files() -> (Vec<u8>, Vec<u8>, Vec<u8>) {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(dir.path(), EngineOptions::at_time(100)).unwrap();
        let ns = nestor_model::Namespace::new("d", "c");
        let mut ws = engine.begin();
        let c = ws
            .create_collection(&ns, [7; 16], nestor_model::CollectionOptions::default())
            .unwrap();
        for i in 0..40_u8 {
            ws.put(c.records, [0, i], vec![i; usize::from(i) * 3]);
        }
        ws.put(TreeId(900), b"long", vec![1; 6000]);
        ws.add_count(c.id, 40, -3);
        engine.commit(ws).unwrap();
        let mut ws = engine.begin();
        let document = doc! { "_id": 1, "text": "x".repeat(60).as_str() };
        ws.oplog(doc! { "op": "i", "ts": Timestamp::default(), "o": document.clone() }.to_raw())
            .unwrap();
        ws.put_document(c.records, [1], document.to_raw());
        ws.delete(c.records, [0, 3]);
        engine.commit(ws).unwrap();
        let mut ws = engine.begin();
        ws.drop_collection(&ns).unwrap();
        engine.commit(ws).unwrap();
        engine.close().unwrap();
        let read = |name: &str| fs::read(dir.path().join(name)).unwrap();
        (
            read("journal/0000000000000001.journal"),
            read("base.nestor"),
            read("nestor.durable"),
        )
    }

    #[test]
    fn journals() {
        let (bytes, _, mark) = files();
        let mut rest = &bytes[crate::journal::segment::HEADER_BYTES..];
        let mut seeds = Seeds::from([("mark".to_owned(), mark), ("all".to_owned(), rest.to_vec())]);
        while let Ok(frame) = Frame::read(rest) {
            seeds.insert(format!("commit-{}", frame.seq()), rest[..frame.len()].to_vec());
            rest = &rest[frame.len()..];
        }
        assert_eq!(seeds.len(), 5);
        replay(journal, &seeded("journal", seeds));
    }

    #[test]
    fn encrypted() {
        let dir = tempfile::tempdir().unwrap();
        let mut options = EngineOptions::at_time(100);
        options.master_key = MasterKey::new(&[9; 32]);
        let engine = Engine::open(dir.path(), options).unwrap();
        for len in [0, 10, 300, 3000] {
            let mut ws = engine.begin();
            ws.put(TreeId(900), b"key", vec![5; len]);
            engine.commit(ws).unwrap();
        }
        engine.close().unwrap();
        let read = |name: &str| fs::read(dir.path().join(name)).unwrap();
        let journal = read("journal/0000000000000001.journal");
        let mut rest = &journal[crate::journal::segment::HEADER_BYTES..];
        let mut seeds = Seeds::from([("keys".to_owned(), read("nestor.keys"))]);
        while let Ok(frame) = Frame::read(rest) {
            seeds.insert(format!("commit-{}", frame.seq()), rest[..frame.len()].to_vec());
            rest = &rest[frame.len()..];
        }
        assert_eq!(seeds.len(), 5);
        replay(encryption, &seeded("encryption", seeds));
    }

    #[test]
    fn pages() {
        let mut seeds = Seeds::new();
        for packs in [false, true] {
            let disk = Disk::with(empty_file(512, packs));
            let tree = Tree::open_file(Box::new(disk.clone()), Path::new("base"), TreeOptions::default()).unwrap();
            let entries: BTreeMap<Vec<u8>, Vec<u8>> = (0..300_u32)
                .map(|i| {
                    (
                        format!("key {i:05}").into_bytes(),
                        vec![i as u8; if i == 7 { 2000 } else { i as usize % 40 }],
                    )
                })
                .collect();
            let all = entries.iter().map(|(key, value)| Change {
                key,
                value: Some(value),
            });
            tree.apply(&[], &mut changes(all), b"metadata").unwrap();
            let some = entries.keys().take(250).map(|key| Change { key, value: None });
            tree.apply(&[], &mut changes(some), b"").unwrap();
            let bytes = disk.bytes();
            seeds.entry("meta".to_owned()).or_insert_with(|| bytes[..512].to_vec());
            for extent in bytes[1024..].chunks(512).filter(|extent| (2..8).contains(&extent[8])) {
                seeds
                    .entry(format!("kind-{}", extent[8]))
                    .or_insert_with(|| extent.to_vec());
            }
        }
        let (_, base, _) = files();
        seeds.insert("leaf-of-4096".to_owned(), base[2 * 4096..3 * 4096].to_vec());
        replay(page, &seeded("page", seeds));
    }
}
