//! Runs the golden cases under `tests/cases/`.

use std::path::{Path, PathBuf};

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).expect("the folder of golden cases can be read");
    let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|e| e == "txt") {
            found.push(path);
        }
    }
}

#[test]
fn cases() {
    let root = Path::new("../../tests/cases");
    let mut found = Vec::new();
    files(root, &mut found);
    assert!(!found.is_empty(), "there are golden cases");
    let failures: Vec<String> = found
        .iter()
        .filter_map(|path| nestor_testkit::golden::run_file(path).err())
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
