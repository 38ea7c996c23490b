//! Runs the golden cases under `tests/cases/`.

use std::path::{Path, PathBuf};

const CASES: &str = "../../tests/cases";

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
    let mut found = Vec::new();
    files(Path::new(CASES), &mut found);
    assert!(!found.is_empty(), "there are golden cases");
    let failures: Vec<String> = found
        .iter()
        .filter_map(|path| nestor_testkit::golden::run_file(path).err())
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// What only mapReduce itself uses.
const REFUSED: [&str; 1] = ["$_internalJsEmit"];

#[test]
fn every_operator_of_expressions_has_a_case() {
    let mut found = Vec::new();
    files(Path::new(CASES), &mut found);
    let read = |path: &PathBuf| std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let text: String = found.iter().map(read).collect();
    let mut without: Vec<&str> = nestor_query::Expr::operators()
        .filter(|name| !REFUSED.contains(name) && !text.contains(&format!("{{{name}: ")))
        .collect();
    without.sort_unstable();
    assert!(without.is_empty(), "no golden case uses {without:?}");
}
