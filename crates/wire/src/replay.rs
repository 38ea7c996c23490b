//! Replays the fuzz corpus (`fuzz/corpus/`) through what the fuzz targets call: no input may panic.

use std::fs;
use std::path::{Path, PathBuf};

fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let dir = Path::new("../../fuzz/corpus").join(target);
    let mut files: Vec<_> = fs::read_dir(&dir)
        .unwrap_or_else(|e| panic!("{}: {e}", dir.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect()
}

#[test]
fn frames() {
    let files = corpus("frame");
    assert!(files.len() >= 10, "the corpus is there");
    let mut understood = 0;
    for (path, bytes) in files {
        let mut scratch = Vec::new();
        let good = crate::parse(&bytes, &mut scratch).is_ok();
        understood += usize::from(good);
        // Seeds are named for what is expected of them.
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if let Some(expected) = name
            .strip_prefix("good-")
            .map(|_| true)
            .or(name.strip_prefix("bad-").map(|_| false))
        {
            assert_eq!(good, expected, "{name}");
        }
    }
    assert!(understood > 0);
}

#[test]
fn bson() {
    let files = corpus("bson");
    assert!(files.len() >= 10, "the corpus is there");
    for (path, bytes) in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let doc = nestor_model::RawDoc::validate(&bytes);
        if let Some(expected) = name
            .strip_prefix("good-")
            .map(|_| true)
            .or(name.strip_prefix("bad-").map(|_| false))
        {
            assert_eq!(doc.is_ok(), expected, "{name}: {doc:?}");
        }
        if let Ok(doc) = doc {
            // Whatever validation accepted is read to the end and written back as it was.
            let mut copy = nestor_model::RawWriter::new();
            for (name, value) in doc {
                copy.append(name, value.to_value().as_ref());
            }
            assert_eq!(copy.finish(), bytes, "{name}");
        }
    }
}
