//! The keys a document has for a list of paths: what an index stores and what a sort compares.
//!
//! Arrays give one key per element. Example, paths `a.b` and `c`:
//!
//! ```text
//! {a: {b: 1}, c: 2}                  →  (1, 2)
//! {a: [{b: 1}, {b: [5, 6]}], c: 2}   →  (1, 2) (5, 2) (6, 2)
//! {a: [], c: []}                     →  error 171: two different arrays cannot be combined
//! {a: []}                            →  (missing, missing)        [a.b below an empty array]
//! {c: []}                            →  (missing, undefined)      [c is the empty array itself]
//! ```
//!
//! Several paths may run through the same array; then each element gives its keys for all of them
//! together. A numeric component selects an element (`a.0.b`) where the array has one there.
//! Source: manual, "Multikey Indexes"; "Sort/Order, arrays".

use nestor_model::statement::work;
use nestor_model::{ArrayRef, DocRef, Error, ErrorCode, Path, PathPart, Result, ValueRef};

/// Most fields an index or a sort may have.
pub const KEY_FIELDS_MAX: usize = 32;

/// Paths whose values make up a key.
#[derive(Clone, Debug)]
pub struct KeyPaths {
    paths: Box<[Path]>,
    /// For each path whether an array at its end is a value as it is, because an array is what such values are.
    whole: Box<[bool]>,
}

/// Which components of which path ran through arrays: `components[i]` has bit `k` set when component `k`
/// of path `i` held an array that was expanded. Components from 64 on share the last bit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MultikeyPaths {
    /// By path.
    pub components: Vec<u64>,
}

impl MultikeyPaths {
    /// True when any path ran through an array.
    pub fn is_multikey(&self) -> bool {
        self.components.iter().any(|c| *c != 0)
    }

    /// Adds what `other` found.
    pub fn merge(&mut self, other: &MultikeyPaths) {
        self.components
            .resize(self.components.len().max(other.components.len()), 0);
        for (mine, theirs) in self.components.iter_mut().zip(&other.components) {
            *mine |= theirs;
        }
    }
}

/// Where the walk along one path ended.
enum End<'d> {
    Value(ValueRef<'d>),
    /// At an array that has to be expanded; `at` is the component that holds it.
    Array {
        items: ArrayRef<'d>,
        at: usize,
    },
}

type Emit<'e, 'd> = dyn FnMut(&[ValueRef<'d>]) -> Result<()> + 'e;

impl KeyPaths {
    /// These paths, in key order.
    pub fn new(paths: impl IntoIterator<Item = Path>) -> Self {
        let paths: Box<[Path]> = paths.into_iter().collect();
        Self {
            whole: vec![false; paths.len()].into(),
            paths,
        }
    }

    /// The same, but arrays at the end of the paths for which `whole` says so are values as they are.
    #[must_use]
    pub fn with_whole(mut self, whole: impl Fn(usize) -> bool) -> Self {
        self.whole = (0..self.paths.len()).map(whole).collect();
        self
    }

    /// The paths.
    pub fn paths(&self) -> &[Path] {
        &self.paths
    }

    /// Calls `emit` with each key of the document, at least one, duplicates included. `key[i]` belongs to
    /// path `i`; an absent value is [`ValueRef::Missing`], an empty array [`ValueRef::Undefined`].
    ///
    /// Errors: 171 for two paths through different arrays, 16746 for a numeric component that is both an
    /// element and a field name, and whatever `emit` returns.
    pub fn for_each_key<'d>(&self, doc: DocRef<'d>, emit: &mut Emit<'_, 'd>) -> Result<MultikeyPaths> {
        let mut key = vec![ValueRef::Missing; self.paths.len()];
        let mut multikey = MultikeyPaths {
            components: vec![0; self.paths.len()],
        };
        let open: Vec<(usize, usize)> = (0..self.paths.len()).map(|path| (path, 0)).collect();
        self.expand(doc, &open, &mut key, &mut multikey, emit)?;
        Ok(multikey)
    }

    /// Walks the `open` paths (path, component to start at) from `doc`, then expands the one array they
    /// may have met.
    fn expand<'d>(
        &self,
        doc: DocRef<'d>,
        open: &[(usize, usize)],
        key: &mut [ValueRef<'d>],
        multikey: &mut MultikeyPaths,
        emit: &mut Emit<'_, 'd>,
    ) -> Result<()> {
        let mut array: Option<(ArrayRef<'d>, usize, usize)> = None;
        let mut inside = Vec::new();
        for &(path, from) in open {
            let parts = self.paths[path].parts();
            match walk(doc, parts, from, self.whole[path])? {
                End::Value(value) => key[path] = value,
                End::Array { items, at } => {
                    if let Some((_, other, other_at)) = array {
                        let same = at == other_at && self.paths[other].parts()[..=at] == parts[..=at];
                        if !same {
                            return Err(parallel_arrays(&self.paths[path], at, &self.paths[other], other_at));
                        }
                    }
                    array = Some((items, path, at));
                    inside.push(path);
                }
            }
        }
        let Some((items, _, at)) = array else {
            return emit(key);
        };
        for &path in &inside {
            multikey.components[path] |= 1 << at.min(63);
        }
        self.expand_array(items, at, &inside, key, multikey, emit)
    }

    fn expand_array<'d>(
        &self,
        items: ArrayRef<'d>,
        at: usize,
        inside: &[usize],
        key: &mut [ValueRef<'d>],
        multikey: &mut MultikeyPaths,
        emit: &mut Emit<'_, 'd>,
    ) -> Result<()> {
        let (ending, going_on): (Vec<usize>, Vec<usize>) = inside
            .iter()
            .partition(|path| self.paths[**path].parts().len() == at + 1);
        if items.is_empty() {
            ending.iter().for_each(|path| key[*path] = ValueRef::Undefined);
            going_on.iter().for_each(|path| key[*path] = ValueRef::Missing);
            return emit(key);
        }
        let open: Vec<(usize, usize)> = going_on.iter().map(|path| (*path, at + 1)).collect();
        for item in items {
            work(1 + inside.len())?;
            ending.iter().for_each(|path| key[*path] = item);
            match item {
                ValueRef::Document(doc) if !open.is_empty() => self.expand(doc, &open, key, multikey, emit)?,
                _ => {
                    going_on.iter().for_each(|path| key[*path] = ValueRef::Missing);
                    emit(key)?;
                }
            }
        }
        Ok(())
    }
}

fn parallel_arrays(a: &Path, a_at: usize, b: &Path, b_at: usize) -> Error {
    let prefix = |path: &Path, at: usize| path.parts()[at].name.clone();
    Error::new(
        ErrorCode::CannotIndexParallelArrays,
        format!(
            "cannot index parallel arrays [{}] [{}]",
            prefix(a, a_at),
            prefix(b, b_at)
        ),
    )
}

/// Follows `parts[from..]` from `doc` until the path ends or an array has to be expanded.
fn walk<'d>(doc: DocRef<'d>, parts: &[PathPart], from: usize, whole: bool) -> Result<End<'d>> {
    let mut doc = doc;
    let mut at = from;
    loop {
        let mut value = match doc.get(&parts[at].name) {
            Some(value) => value,
            None => return Ok(End::Value(ValueRef::Missing)),
        };
        // An array is expanded, unless the next component picks one of its elements.
        while let ValueRef::Array(items) = value {
            match parts.get(at + 1).and_then(|next| Some((next, next.index?))) {
                Some((next, index)) => match items.get(index as usize) {
                    Some(element) => {
                        check_unambiguous(items, &next.name)?;
                        value = element;
                        at += 1;
                    }
                    None => return Ok(End::Array { items, at }),
                },
                None if whole && at + 1 == parts.len() => return Ok(End::Value(value)),
                None => return Ok(End::Array { items, at }),
            }
        }
        if at + 1 == parts.len() {
            return Ok(End::Value(value));
        }
        match value {
            ValueRef::Document(inner) => {
                doc = inner;
                at += 1;
            }
            _ => return Ok(End::Value(ValueRef::Missing)),
        }
    }
}

/// `a.0` may mean the first element of `a` or the field `0` of each element, not both.
fn check_unambiguous(items: ArrayRef<'_>, name: &str) -> Result<()> {
    let is_field = items
        .iter()
        .any(|item| matches!(item, ValueRef::Document(doc) if doc.get(name).is_some()));
    if is_field {
        return Err(Error::location(
            16746,
            format!(
                "ambiguous field name found in array (do not use numeric field names in embedded elements in an array), field: '{name}'"
            ),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::{Value, extjson};

    fn keys(paths: &[&str], doc: &str) -> String {
        let paths = KeyPaths::new(paths.iter().map(|p| Path::new(p)));
        let doc = extjson::parse_document(doc).expect("valid JSON").to_raw();
        let mut out = Vec::new();
        let result = paths.for_each_key(doc.as_raw().as_doc(), &mut |key| {
            let key: Vec<Value> = key.iter().map(|v| v.to_value()).collect();
            out.push(format!("{key:?}"));
            Ok(())
        });
        match result {
            Ok(multikey) => format!("{} {:?}", out.join(" "), multikey.components),
            Err(error) => format!("error {}", error.code().number()),
        }
    }

    #[test]
    fn one_key_per_element() {
        for (paths, doc, expected) in [
            (vec!["a.b", "c"], r#"{"a":{"b":1},"c":2}"#, "[1, 2] [0, 0]"),
            (
                vec!["a.b", "c"],
                r#"{"a":[{"b":1},{"b":[5,6]}],"c":2}"#,
                "[1, 2] [5, 2] [6, 2] [3, 0]",
            ),
            (vec!["a"], r#"{"a":[]}"#, "[undefined] [1]"),
            (vec!["a.b"], r#"{"a":[]}"#, "[missing] [1]"),
            (vec!["a"], r#"{"a":[[1,2],3]}"#, "[[1, 2]] [3] [1]"),
            (
                vec!["a.b"],
                r#"{"a":[[{"b":1}],3,{"b":2}]}"#,
                "[missing] [missing] [2] [1]",
            ),
            (
                vec!["a.b", "a.c"],
                r#"{"a":[{"b":1,"c":2},{"b":3}]}"#,
                "[1, 2] [3, missing] [1, 1]",
            ),
            (
                vec!["a", "a.c"],
                r#"{"a":[{"c":2},7]}"#,
                r#"[{"c": 2}, 2] [7, missing] [1, 1]"#,
            ),
            (vec!["a", "b"], r#"{}"#, "[missing, missing] [0, 0]"),
            (vec!["a.0"], r#"{"a":[4,5]}"#, "[4] [0]"),
            (vec!["a.1.b"], r#"{"a":[{"b":1},{"b":[2,3]}]}"#, "[2] [3] [4]"),
            (vec!["a.0.0"], r#"{"a":[[7,8]]}"#, "[7] [0]"),
            (vec!["a.2"], r#"{"a":[4,{"2":6}]}"#, "[missing] [6] [1]"),
            (vec!["a.b"], r#"{"a":5}"#, "[missing] [0]"),
        ] {
            assert_eq!(keys(&paths, doc), expected, "{paths:?} of {doc}");
        }
    }

    #[test]
    fn impossible_keys_are_errors() {
        assert_eq!(keys(&["a", "b"], r#"{"a":[1],"b":[2]}"#), "error 171");
        assert_eq!(keys(&["a.b", "a.c"], r#"{"a":[{"b":[1],"c":[2]}]}"#), "error 171");
        assert_eq!(keys(&["a.b", "a.c"], r#"{"a":{"b":[1],"c":[2]}}"#), "error 171");
        assert_eq!(keys(&["a.0"], r#"{"a":[{"0":1}]}"#), "error 16746");
    }
}
