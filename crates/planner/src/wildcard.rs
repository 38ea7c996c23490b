//! Wildcard indexes: every scalar below a path, under the path it has.
//!
//! A key has the path of the value before the value, so that entries of one path lie together. Index
//! `{a: 1, "$**": 1}` with `wildcardProjection: {a: 0}`:
//!
//! ```text
//! {a: 1, b: {c: 2}, d: [3, 4]}   →   (1, "b.c", 2) (1, "d", 3) (1, "d", 4)
//! {a: 1}                         →   (1, MinKey, MinKey)
//! ```
//!
//! A query uses such an index as if it were one on the path of a condition. Only what scalars decide can use it:
//! objects have no keys of their own, and documents without a path have no key for it.
//! Source: manual, "Wildcard Indexes", "Compound Wildcard Indexes".

use crate::interval::{Interval, IntervalList};
use nestor_model::{BsonType, DocRef, Value, ValueRef};
use nestor_query::matcher::Predicate;

/// What explain calls the part of the key that holds the path.
pub const PATH_PART: &str = "$_path";

/// Which paths a wildcard index is about.
#[derive(Clone, Debug)]
pub struct Wildcard {
    /// Position of the wildcard in the key pattern; of the path in keys, the value is behind it.
    pub at: usize,
    /// Only paths at or below this one.
    root: Option<String>,
    /// Fields named by the projection, without `_id`.
    fields: Vec<String>,
    /// These fields are left out, not kept.
    excludes: bool,
    /// `_id` is in.
    id: bool,
}

impl Wildcard {
    /// From a key pattern and `wildcardProjection`; `None` when no part is a wildcard.
    pub fn of(key: DocRef<'_>, projection: Option<DocRef<'_>>) -> Option<Self> {
        let (at, root) = key.iter().enumerate().find_map(|(at, (path, _))| match path {
            "$**" => Some((at, None)),
            _ => Some((at, Some(path.strip_suffix(".$**")?.to_owned()))),
        })?;
        let mut out = Self {
            at,
            id: root.as_deref().is_some_and(|root| is_at_or_below("_id", root)),
            root,
            fields: Vec::new(),
            excludes: true,
        };
        if let Some(projection) = projection {
            out.read("", projection);
        }
        Some(out)
    }

    fn read(&mut self, prefix: &str, projection: DocRef<'_>) {
        for (name, value) in projection.iter() {
            let path = format!("{prefix}{name}");
            match value {
                ValueRef::Document(inner) => self.read(&format!("{path}."), inner),
                kept if path == "_id" => self.id = kept.truthy(),
                kept => {
                    self.excludes = !kept.truthy();
                    self.fields.push(path);
                }
            }
        }
    }

    /// Whether scalars at `path` have keys.
    pub fn covers(&self, path: &str) -> bool {
        if self.root.as_deref().is_some_and(|root| !is_at_or_below(root, path)) {
            return false;
        }
        if is_at_or_below("_id", path) {
            return self.id;
        }
        self.fields.iter().any(|field| is_at_or_below(field, path)) != self.excludes
    }

    /// Whether everything at and below `path` has keys.
    pub fn covers_all(&self, path: &str) -> bool {
        self.covers(path) && !(self.excludes && self.fields.iter().any(|field| is_at_or_below(path, field)))
    }
}

/// Whether `path` is `of` or a field below it.
fn is_at_or_below(of: &str, path: &str) -> bool {
    path.strip_prefix(of)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The paths whose keys tell of a condition on `path`: the path itself, and for existence what is below it too.
pub fn path_bounds(path: &str, below_too: bool) -> IntervalList {
    let mut intervals = vec![Interval::point(Value::from(path))];
    if below_too {
        // "/" is the character behind ".".
        let (low, high) = (format!("{path}."), format!("{path}/"));
        intervals.push(Interval::new(low.as_str().into(), true, high.as_str().into(), false));
    }
    IntervalList::union_of(intervals)
}

/// Whether the keys of scalars can answer a test.
pub fn can_answer(predicate: &Predicate) -> bool {
    match predicate {
        Predicate::Compare { value, .. } => is_scalar(value),
        Predicate::In(set) => set.values().iter().all(is_scalar),
        Predicate::Type(types) => types.all().all(|kind| {
            !matches!(
                kind,
                BsonType::Array | BsonType::Object | BsonType::Null | BsonType::Undefined | BsonType::Missing
            )
        }),
        Predicate::Regex(_) | Predicate::Exists | Predicate::Mod(_) => true,
        _ => false,
    }
}

fn is_scalar(value: &Value) -> bool {
    let kind = value.bson_type();
    !value.is_nullish()
        && !matches!(
            kind,
            BsonType::Array | BsonType::Object | BsonType::MinKey | BsonType::MaxKey
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::extjson;

    fn covered(key: &str, projection: &str) -> String {
        let parse = |text: &str| extjson::parse_document(text).expect("valid JSON");
        let (key, projection) = (parse(key), parse(projection));
        let wildcard = Wildcard::of(key.as_ref(), Some(projection.as_ref())).expect("a wildcard");
        let paths = ["_id", "a", "a.b", "a.b.c", "ab", "x"];
        let kept: Vec<&str> = paths.into_iter().filter(|path| wildcard.covers(path)).collect();
        kept.join(" ")
    }

    #[test]
    fn projections_choose_paths() {
        for (key, projection, expected) in [
            (r#"{"$**":1}"#, "{}", "a a.b a.b.c ab x"),
            (r#"{"$**":1}"#, r#"{"_id":1}"#, "_id a a.b a.b.c ab x"),
            (r#"{"$**":1}"#, r#"{"a.b":1}"#, "a.b a.b.c"),
            (r#"{"$**":1}"#, r#"{"a":{"b":0},"_id":1}"#, "_id a ab x"),
            (r#"{"a.$**":1}"#, "{}", "a a.b a.b.c"),
            (r#"{"x":1,"$**":1}"#, r#"{"x":0}"#, "a a.b a.b.c ab"),
        ] {
            assert_eq!(covered(key, projection), expected, "{key} {projection}");
        }
    }
}
