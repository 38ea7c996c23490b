//! Which files of a crate use which others, read from their imports, and the circles among them.
//!
//! What counts are paths that begin with `crate`, `self` or `super`, in `use` and elsewhere. Names that `lib.rs` exports again
//! stand for the file that they come from. Tests do not count, and neither do methods that one file adds to another's type.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fs, io};

/// Modules by path, `write/insert` for `write/insert.rs` and `write` for `write/mod.rs`, with the modules that each uses.
#[derive(Debug, Default)]
pub struct Imports {
    uses: BTreeMap<String, BTreeSet<String>>,
}

impl Imports {
    /// Reads the files below `src`.
    ///
    /// Errors: those of reading.
    pub fn read(src: &Path) -> io::Result<Self> {
        let mut files = Vec::new();
        collect(src, "", &mut files)?;
        Ok(Self::of(&files))
    }

    /// Of modules with their texts; the root is called `lib`.
    pub fn of(files: &[(String, String)]) -> Self {
        let names: BTreeSet<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        let mut exported = BTreeMap::new();
        if let Some((_, root)) = files.iter().find(|(name, _)| name == "lib") {
            for path in paths(&without_comments(root)) {
                let parts: Vec<&str> = path
                    .split("::")
                    .filter(|part| !matches!(*part, "crate" | "self"))
                    .collect();
                if let [module, .., name] = parts.as_slice() {
                    if names.contains(module) {
                        exported.insert((*name).to_owned(), parts[..parts.len() - 1].join("/"));
                    }
                }
            }
        }
        let mut uses = BTreeMap::new();
        for (name, text) in files.iter().filter(|(name, _)| name != "lib") {
            let mut used = BTreeSet::new();
            for path in paths(&without_tests(&without_comments(text))) {
                if let Some(module) = resolve(name, &path, &names, &exported) {
                    if module != *name {
                        used.insert(module);
                    }
                }
            }
            uses.insert(name.clone(), used);
        }
        Self { uses }
    }

    /// The same with each module of the crate's root and all below it as one.
    pub fn of_root_modules(&self) -> Self {
        let root = |name: &str| name.split('/').next().unwrap_or_default().to_owned();
        let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (name, used) in &self.uses {
            let module = root(name);
            let others = used.iter().map(|used| root(used)).filter(|used| *used != module);
            uses.entry(module.clone()).or_default().extend(others);
        }
        Self { uses }
    }

    /// The largest sets of modules that all lead to each other, of two or more.
    pub fn circles(&self) -> Vec<BTreeSet<String>> {
        let reach: BTreeMap<&str, BTreeSet<&str>> = self
            .uses
            .keys()
            .map(|name| (name.as_str(), self.reachable(name)))
            .collect();
        let mut circles: Vec<BTreeSet<String>> = Vec::new();
        for (name, reached) in &reach {
            let both = |other: &&&str| reach.get(**other).is_some_and(|back| back.contains(name));
            let circle: BTreeSet<String> = reached.iter().filter(both).map(|other| (*other).to_owned()).collect();
            if circle.len() > 1 && !circles.contains(&circle) {
                circles.push(circle);
            }
        }
        circles
    }

    fn reachable(&self, from: &str) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        let mut left: Vec<&str> = self.uses.get(from).into_iter().flatten().map(String::as_str).collect();
        while let Some(next) = left.pop() {
            if found.insert(next) {
                left.extend(self.uses.get(next).into_iter().flatten().map(String::as_str));
            }
        }
        found
    }

    /// The folder that all modules of a circle are in, empty for the crate's own.
    pub fn folder_of(&self, circle: &BTreeSet<String>) -> String {
        let mut common: Option<Vec<&str>> = None;
        for name in circle {
            let has_children = self.uses.keys().any(|other| other.starts_with(&format!("{name}/")));
            let mut folder: Vec<&str> = name.split('/').collect();
            if !has_children {
                folder.pop();
            }
            common = Some(match common {
                None => folder,
                Some(common) => common
                    .into_iter()
                    .zip(folder)
                    .take_while(|(a, b)| a == b)
                    .map(|(a, _)| a)
                    .collect(),
            });
        }
        common.unwrap_or_default().join("/")
    }
}

fn collect(folder: &Path, prefix: &str, files: &mut Vec<(String, String)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            collect(&path, &format!("{prefix}{name}/"), files)?;
        } else if let Some(module) = name.strip_suffix(".rs").filter(|module| *module != "tests") {
            let module = match module {
                "mod" => prefix.trim_end_matches('/').to_owned(),
                other => format!("{prefix}{other}"),
            };
            files.push((module, fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

fn without_comments(text: &str) -> String {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    code.collect::<Vec<_>>().join("\n")
}

/// The text up to its tests, which stand at the end.
fn without_tests(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod tests");
    text[..end.unwrap_or(text.len())].to_owned()
}

/// All paths that are used, trees of `use` spread out.
fn paths(code: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = code;
    let mut elsewhere = String::new();
    while let Some(at) = rest.find("use ") {
        let is_word = rest[..at].chars().next_back().is_none_or(|c| c.is_whitespace());
        elsewhere.push_str(&rest[..at]);
        let after = &rest[at + 4..];
        match (is_word, after.find(';')) {
            (true, Some(end)) => {
                spread("", &after[..end], &mut out);
                rest = &after[end..];
            }
            _ => rest = after,
        }
    }
    elsewhere.push_str(rest);
    for start in ["crate::", "super::"] {
        for (at, _) in elsewhere.match_indices(start) {
            let path: String = elsewhere[at..]
                .chars()
                .take_while(|c| c.is_alphanumeric() || matches!(c, '_' | ':'))
                .collect();
            out.push(path.trim_end_matches(':').to_owned());
        }
    }
    out
}

/// `a::{b, c::d}` as `a::b` and `a::c::d`.
fn spread(prefix: &str, tree: &str, out: &mut Vec<String>) {
    let tree = tree.trim();
    let Some((before, inner)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default().trim();
        out.push(format!("{prefix}{path}"));
        return;
    };
    let prefix = format!("{prefix}{}", before.trim());
    let inner = inner.trim_end().strip_suffix('}').unwrap_or(inner);
    let (mut depth, mut start) = (0, 0);
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                spread(&prefix, &inner[start..at], out);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !inner[start..].trim().is_empty() {
        spread(&prefix, &inner[start..], out);
    }
}

/// The module that `path` leads to from within `module`; `None` for other crates and for the root itself.
fn resolve(module: &str, path: &str, names: &BTreeSet<&str>, exported: &BTreeMap<String, String>) -> Option<String> {
    let mut parts: Vec<&str> = path.split("::").map(str::trim).collect();
    let mut at: Vec<&str> = Vec::new();
    match *parts.first()? {
        "crate" => drop(parts.remove(0)),
        "self" => {
            at = module.split('/').collect();
            parts.remove(0);
        }
        "super" => {
            at = module.split('/').collect();
            while parts.first() == Some(&"super") {
                at.pop();
                parts.remove(0);
            }
        }
        _ => return None,
    }
    if at.is_empty() {
        if let Some(module) = parts.first().and_then(|name| exported.get(*name)) {
            return Some(module.clone());
        }
    }
    at.append(&mut parts);
    while !at.is_empty() {
        let name = at.join("/");
        if names.contains(name.as_str()) {
            return Some(name);
        }
        at.pop();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(files: &[(&str, &str)]) -> Imports {
        let files: Vec<_> = files
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect();
        Imports::of(&files)
    }

    #[test]
    fn circles_are_found_through_trees_of_use_and_names_exported_again() {
        let found = imports(&[
            ("lib", "pub mod a;\npub use c::Thing;"),
            ("a", "use crate::{b::{self, X}, d};"),
            ("b", "fn f() -> crate::Thing { super::d::g() }"),
            ("c", "use std::fmt;\nuse super::a::Y as Z;"),
            ("d", "// use crate::a;\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}"),
        ]);
        let circles: Vec<Vec<String>> = found
            .circles()
            .into_iter()
            .map(|circle| circle.into_iter().collect())
            .collect();
        assert_eq!(circles, [["a", "b", "c"]]);
    }

    #[test]
    fn folders_are_one_with_what_is_in_them() {
        let found = imports(&[
            ("lib", ""),
            ("a", "pub mod one;\npub mod two;"),
            ("a/one", "use crate::b::B;"),
            ("a/two", "fn f() {}"),
            ("b", "use crate::a::two::f;"),
        ]);
        assert!(found.circles().is_empty(), "no file leads to itself");
        let circles = found.of_root_modules().circles();
        assert_eq!(circles, [BTreeSet::from(["a".to_owned(), "b".to_owned()])]);
    }

    #[test]
    fn a_circle_is_in_the_folder_that_all_of_it_is_in() {
        let found = imports(&[
            ("lib", ""),
            ("w", "pub use self::one::One;"),
            ("w/one", "use super::two::Two;"),
            ("w/two", "use crate::w::One;"),
            ("x", "use crate::y;"),
            ("y", "use crate::x;"),
        ]);
        let folders: Vec<String> = found.circles().iter().map(|circle| found.folder_of(circle)).collect();
        assert_eq!(folders, ["w", ""]);
    }
}
