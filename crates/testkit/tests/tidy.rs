//! Tidy checks: rules about the repository that the compiler does not know.

use nestor_testkit::imports::Imports;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Longest source file; at this length there is a seam to split at.
const LINES_MAX: usize = 1000;

/// The crates whose files may use each other in circles only within one folder.
const CRATES: [&str; 6] = ["query", "planner", "database", "exec", "command", "sql"];

/// The repository. Cargo runs tests in their crate's folder; a path compiled in would be that of the
/// checkout that built the test, which may be another one with the same target folder.
fn root() -> PathBuf {
    Path::new("../..").canonicalize().expect("the root of the repository")
}

/// Every source file of ours below `folder`.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            if !matches!(name.as_str(), "target" | "node_modules" | "corpus" | "artifacts") && !name.starts_with('.') {
                sources(&path, found);
            }
        } else if [".rs", ".py", ".js"].iter().any(|end| name.ends_with(end)) {
            found.push(path);
        }
    }
}

fn all_sources() -> Vec<(String, String)> {
    let root = root();
    let mut paths = Vec::new();
    for folder in ["crates", "tests", "fuzz", "benches", "scripts"] {
        sources(&root.join(folder), &mut paths);
    }
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let text =
                fs::read_to_string(&path).unwrap_or_else(|e| panic!("{} is not readable text: {e}", path.display()));
            let name = path.strip_prefix(&root).expect("found below the root");
            (name.display().to_string(), text)
        })
        .collect()
}

/// The words between single back-ticks, outside of indented blocks.
fn quoted_words(markdown: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for line in markdown.lines().filter(|line| !line.starts_with("    ")) {
        words.extend(line.split('`').skip(1).step_by(2));
    }
    words
}

/// Whether a quoted word of ARCHITECTURE.md claims to be a path of the repository.
fn is_path(word: &str) -> bool {
    let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
    let first = word.split('/').next().unwrap_or_default();
    let ours = ["crates", "tests", "docs", "scripts", "fuzz", "benches", ".ci"];
    plain && word.contains('/') && ours.contains(&first)
}

#[test]
fn every_path_architecture_names_exists() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let missing: Vec<_> = quoted_words(&text)
        .into_iter()
        .filter(|word| is_path(word) && !root().join(word).exists())
        .collect();
    assert!(
        missing.is_empty(),
        "ARCHITECTURE.md names what is not there: {missing:?}"
    );
}

#[test]
fn architecture_names_every_crate() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let words = quoted_words(&text);
    for entry in fs::read_dir(root().join("crates")).expect("crates").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("crates/{name}");
        let named = words
            .iter()
            .any(|word| *word == name || word.trim_end_matches('/') == path || word.starts_with(&(path.clone() + "/")));
        assert!(named, "ARCHITECTURE.md does not name `{path}`");
    }
}

#[test]
fn no_file_is_too_long() {
    let long: Vec<_> = all_sources()
        .into_iter()
        .map(|(name, text)| (name, text.lines().count()))
        .filter(|(_, lines)| *lines > LINES_MAX)
        .collect();
    assert!(long.is_empty(), "split these, over {LINES_MAX} lines: {long:?}");
}

#[test]
fn modules_stand_one_above_the_other() {
    for name in CRATES {
        let imports = Imports::read(&root().join("crates").join(name).join("src")).expect("the crate's files");
        let circles = imports.of_root_modules().circles();
        assert!(circles.is_empty(), "{name}: these modules use each other: {circles:#?}");
    }
}

#[test]
fn nothing_is_left_undone_or_ignored() {
    // Put together here so that this file does not find itself.
    let forbidden = [
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
        concat!("#[ign", "ore"),
        concat!("pytest.mark.", "xfail"),
    ];
    let mut found = Vec::new();
    for (name, text) in all_sources() {
        for (number, line) in text.lines().enumerate() {
            if forbidden.iter().any(|word| line.contains(word)) {
                found.push(format!("{name}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn files_form_no_circles_beyond_their_folder() {
    let mut found = Vec::new();
    for name in CRATES {
        let src = root().join("crates").join(name).join("src");
        let imports = Imports::read(&src).expect("the crate's files");
        let circles: Vec<_> = imports
            .circles()
            .into_iter()
            .filter(|circle| imports.folder_of(circle).is_empty())
            .collect();
        found.extend(circles.iter().map(|circle| format!("{name}: {circle:?}")));
    }
    assert!(
        found.is_empty(),
        "these files use each other, which makes them one: {found:#?}"
    );
}

/// A circle is named by its folder, between single back-ticks.
#[test]
fn architecture_names_every_circle() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let (_, after) = text.split_once("## Circles").expect("a section on circles");
    let section = after.split("\n## ").next().unwrap_or_default();
    let named: BTreeSet<&str> = quoted_words(section).into_iter().filter(|word| is_path(word)).collect();
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(root().join("crates")).expect("crates").flatten() {
        let src = entry.path().join("src");
        let imports = Imports::read(&src).expect("the crate's files");
        let name = entry.file_name().to_string_lossy().into_owned();
        for circle in imports.circles() {
            let folder = format!("crates/{name}/src/{}", imports.folder_of(&circle));
            found.insert(folder.trim_end_matches('/').to_owned());
        }
    }
    let found: BTreeSet<&str> = found.iter().map(String::as_str).collect();
    let unnamed: Vec<_> = found.difference(&named).collect();
    assert!(
        unnamed.is_empty(),
        "ARCHITECTURE.md does not name these circles: {unnamed:#?}"
    );
    let gone: Vec<_> = named.difference(&found).collect();
    assert!(
        gone.is_empty(),
        "ARCHITECTURE.md names circles that there are no more: {gone:#?}"
    );
}

/// Names of commands of several words. Those of one word (`insert`) name operations as well.
fn names_of_commands() -> Vec<String> {
    let is_command = |file: &str| file.starts_with("crates/command/src/commands/");
    let mut names = Vec::new();
    for (_, text) in all_sources().iter().filter(|(file, _)| is_command(file)) {
        for rest in text.split("Facts::").skip(1) {
            // `Facts::collection("findAndModify", ..)`
            let arguments = rest.split_once('(').map_or("", |(_, arguments)| arguments).trim_start();
            let name = arguments.strip_prefix('"').and_then(|name| name.split('"').next());
            names.extend(name.filter(|name| name.contains(char::is_uppercase)).map(str::to_owned));
        }
    }
    names
}

/// Whoever treats commands differently asks their rows of the table of commands: neither the statement service nor what all
/// commands go through knows one by its name.
#[test]
fn nothing_but_its_own_file_knows_a_command_by_its_name() {
    // What these names stand for there is no command.
    let exceptions = [
        ("crates/command/src/audit.rs", "actions in the audit log"),
        ("crates/command/src/audited.rs", "actions in the audit log"),
        ("crates/database/src/rights/action.rs", "privileges"),
        ("crates/database/src/observe/op_kind.rs", "what operations count as"),
        ("crates/database/src/index_build.rs", "entries of the oplog"),
        ("crates/database/src/write/catalog.rs", "entries of the oplog"),
        ("crates/database/src/write/out.rs", "entries of the oplog"),
        (
            "crates/database/src/write/timeseries/replace.rs",
            "entries of the oplog",
        ),
    ];
    let names = names_of_commands();
    assert!(names.len() > 50, "too few names were found: {names:?}");
    let mut found = Vec::new();
    for (file, text) in all_sources() {
        let is_shared = ["crates/database/src/", "crates/command/src/"]
            .iter()
            .any(|part| file.starts_with(part));
        let is_own = file.starts_with("crates/command/src/commands/");
        let is_test = file.starts_with("crates/command/src/tests");
        if !is_shared || is_own || is_test || exceptions.iter().any(|(excepted, _)| *excepted == file) {
            continue;
        }
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            if names.iter().any(|name| line.contains(&format!("\"{name}\""))) {
                found.push(format!("{file}: {}", line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Each fuzz target is declared, has seeds, and is replayed by a test.
#[test]
fn fuzz_targets_are_replayed() {
    let fuzz = root().join("fuzz");
    let manifest = fs::read_to_string(fuzz.join("Cargo.toml")).expect("fuzz/Cargo.toml");
    let tests: Vec<String> = all_sources()
        .into_iter()
        .filter(|(file, text)| !file.ends_with("tidy.rs") && text.contains("fuzz/corpus"))
        .map(|(_, text)| text)
        .collect();
    let mut targets = 0;
    for entry in fs::read_dir(fuzz.join("fuzz_targets")).expect("targets").flatten() {
        let name = entry.file_name().to_string_lossy().replace(".rs", "");
        assert!(
            manifest.contains(&format!("name = \"{name}\"")),
            "{name} is not declared"
        );
        let seeds = fs::read_dir(fuzz.join("corpus").join(&name)).map_or(0, Iterator::count);
        assert!(seeds >= 3, "{name} has {seeds} seeds");
        let is_replayed =
            |text: &String| text.contains(&format!("\"{name}\"")) || text.contains(&format!("fuzz/corpus/{name}\""));
        assert!(tests.iter().any(is_replayed), "no test replays {name}");
        targets += 1;
    }
    assert!(targets > 10, "{targets} targets");
}
