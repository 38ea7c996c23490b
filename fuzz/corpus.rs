//! The corpus of the fuzz targets, for tests that replay it. Crates take this file in by its path: none of them is below all of those.

use std::path::Path;

/// The files of a target's corpus. Cargo runs tests in their crate's folder.
pub fn corpus(target: &str) -> Vec<Vec<u8>> {
    let dir = Path::new("../../fuzz/corpus").join(target);
    let files = std::fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let read = |file: std::io::Result<std::fs::DirEntry>| file.and_then(|file| std::fs::read(file.path()));
    let files: Vec<_> = files.map(|file| read(file).expect("it can be read")).collect();
    assert!(files.len() >= 3, "the corpus is there");
    files
}
