//! Which paths a wildcard index is about, and which conditions its keys can answer.

use crate::interval::{Interval, IntervalList};
use nestor_model::index_spec::IndexSpec;
use nestor_model::{BsonType, DocRef, Value, ValueRef};
use nestor_query::matcher::Predicate;

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
    /// From a specification with a wildcard in its key.
    pub fn new(spec: &IndexSpec) -> Self {
        let at = spec.key.iter().position(|part| part.is_wildcard()).unwrap_or(0);
        let root = spec.key.get(at).and_then(|part| part.path.strip_suffix(".$**"));
        let root = root.map(str::to_owned);
        let projection = spec.option("wildcardProjection").and_then(ValueRef::as_document);
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
        out
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
    use nestor_model::{doc, extjson};

    fn covered(key: &str, projection: &str) -> String {
        let parse = |text: &str| extjson::parse_document(text).expect("valid JSON");
        let spec = doc! { "key": parse(key), "name": "w", "wildcardProjection": parse(projection) };
        let wildcard = Wildcard::new(&IndexSpec::parse(spec.to_raw()).expect("a specification"));
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
