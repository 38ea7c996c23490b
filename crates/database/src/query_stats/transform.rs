//! `transformIdentifiers` of `$queryStats`: names of fields, collections and databases in query shapes become their HMAC-SHA-256, so that
//! statistics can be given away without telling what the data are called.
//!
//! Operators and the names of their parameters stay. Where a name may be either, it is taken for a field's: better a parameter that
//! nobody can read than a name that everybody can.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use nestor_model::{ArrayRef, DocRef, Document, Value, ValueRef};
use sha2::Sha256;

/// Hides names by a key.
pub struct Transform {
    mac: Hmac<Sha256>,
}

/// Keys are not printed.
impl std::fmt::Debug for Transform {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transform").finish_non_exhaustive()
    }
}

/// Operators and stages whose argument has parameters, and not fields, for keys.
const WITH_PARAMETERS: &[&str] = &[
    "$accumulator",
    "$bucket",
    "$bucketAuto",
    "$cond",
    "$convert",
    "$dateAdd",
    "$dateDiff",
    "$dateFromParts",
    "$dateFromString",
    "$dateSubtract",
    "$dateToParts",
    "$dateToString",
    "$dateTrunc",
    "$densify",
    "$derivative",
    "$expMovingAvg",
    "$fill",
    "$filter",
    "$firstN",
    "$function",
    "$geoNear",
    "$getField",
    "$graphLookup",
    "$integral",
    "$lastN",
    "$let",
    "$lookup",
    "$ltrim",
    "$map",
    "$maxN",
    "$median",
    "$merge",
    "$minN",
    "$out",
    "$percentile",
    "$bottom",
    "$bottomN",
    "$top",
    "$topN",
    "$reduce",
    "$regexFind",
    "$regexFindAll",
    "$regexMatch",
    "$replaceAll",
    "$replaceOne",
    "$rtrim",
    "$sample",
    "$setField",
    "$setWindowFields",
    "$shift",
    "$sortArray",
    "$switch",
    "$trim",
    "$unionWith",
    "$unsetField",
    "$unwind",
    "$zip",
    "$replaceRoot",
    "$changeStream",
    "$collStats",
];

/// Parameters of those.
const PARAMETERS: &[&str] = &[
    "accumulate",
    "accumulateArgs",
    "alpha",
    "amount",
    "args",
    "as",
    "body",
    "boundaries",
    "branches",
    "buckets",
    "case",
    "chars",
    "coll",
    "collation",
    "cond",
    "connectFromField",
    "connectToField",
    "date",
    "dateString",
    "db",
    "default",
    "defaults",
    "depthField",
    "distanceField",
    "else",
    "endDate",
    "field",
    "finalize",
    "find",
    "foreignField",
    "format",
    "from",
    "fullDocument",
    "granularity",
    "groupBy",
    "if",
    "in",
    "includeArrayIndex",
    "includeLocs",
    "init",
    "initArgs",
    "initialValue",
    "input",
    "inputs",
    "into",
    "key",
    "lang",
    "let",
    "limit",
    "localField",
    "maxDepth",
    "merge",
    "method",
    "minDistance",
    "maxDistance",
    "n",
    "near",
    "newRoot",
    "on",
    "onError",
    "onNull",
    "options",
    "output",
    "p",
    "partitionBy",
    "partitionByFields",
    "path",
    "pipeline",
    "preserveNullAndEmptyArrays",
    "query",
    "range",
    "regex",
    "replacement",
    "restrictSearchWithMatch",
    "size",
    "sortBy",
    "spherical",
    "startDate",
    "startOfWeek",
    "startWith",
    "step",
    "then",
    "timezone",
    "to",
    "unit",
    "useLongestLength",
    "value",
    "vars",
    "whenMatched",
    "whenNotMatched",
    "window",
    "documents",
    "bounds",
    "by",
    "defaults",
    "bucketMaxSpanSeconds",
    "N",
    "outputN",
];

/// Of those the ones whose argument has names that users give for keys.
const WITH_NAMES: &[&str] = &["vars", "let", "output", "sortBy", "query", "options"];

/// Variables that the server has.
const VARIABLES: &[&str] = &[
    "ROOT",
    "CURRENT",
    "REMOVE",
    "NOW",
    "CLUSTER_TIME",
    "DESCEND",
    "PRUNE",
    "KEEP",
    "USER_ROLES",
    "SEARCH_META",
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    /// Names of fields, and operators.
    Fields,
    /// Names of parameters.
    Parameters,
}

impl Transform {
    /// Hides names by `key`.
    pub fn new(key: &[u8]) -> Self {
        Self {
            mac: Hmac::new_from_slice(key).expect("an HMAC takes keys of any length"),
        }
    }

    /// The key of an entry, names hidden.
    pub fn key(&self, key: DocRef<'_>) -> Document {
        key.iter()
            .map(|(name, value)| {
                let value = match (name, value) {
                    ("queryShape", ValueRef::Document(shape)) => self.shape(shape).into(),
                    ("hint", value) => self.value(value, Keys::Fields),
                    _ => value.to_value(),
                };
                (name.into(), value)
            })
            .collect()
    }

    /// A query shape, names hidden.
    fn shape(&self, shape: DocRef<'_>) -> Document {
        shape
            .iter()
            .map(|(name, value)| {
                let value = match (name, value) {
                    ("cmdNs", ValueRef::Document(ns)) => ns
                        .iter()
                        .map(|(name, value)| {
                            let hidden = value.as_str().map(|text| self.name(text));
                            (name.into(), hidden.map_or(Value::Null, Value::from))
                        })
                        .collect::<Document>()
                        .into(),
                    ("key", ValueRef::String(path)) => self.path(path).into(),
                    ("filter" | "sort" | "projection" | "pipeline" | "let", value) => self.value(value, Keys::Fields),
                    _ => value.to_value(),
                };
                (name.into(), value)
            })
            .collect()
    }

    fn value(&self, value: ValueRef<'_>, keys: Keys) -> Value {
        match value {
            ValueRef::Document(doc) => self.document(doc, keys).into(),
            ValueRef::Array(items) => self.array(items),
            ValueRef::String(text) => self.text(text).into(),
            other => other.to_value(),
        }
    }

    fn array(&self, items: ArrayRef<'_>) -> Value {
        let items: Vec<Value> = items.iter().map(|item| self.value(item, Keys::Fields)).collect();
        items.into()
    }

    fn document(&self, doc: DocRef<'_>, keys: Keys) -> Document {
        doc.iter()
            .map(|(name, value)| match name {
                // Names of types, and settings of a language, are no names of the data.
                "$type" | "collation" => (name.into(), value.to_value()),
                _ if name.starts_with('$') => {
                    let keys = match WITH_PARAMETERS.contains(&name) {
                        true => Keys::Parameters,
                        false => Keys::Fields,
                    };
                    (name.into(), self.value(value, keys))
                }
                _ if keys == Keys::Parameters && PARAMETERS.contains(&name) => {
                    // What is within a parameter has parameters of its own, such as branches and windows, or names.
                    let keys = match WITH_NAMES.contains(&name) {
                        true => Keys::Fields,
                        false => Keys::Parameters,
                    };
                    let value = match value {
                        ValueRef::Array(items) if name == "branches" => {
                            let items: Vec<Value> = items.iter().map(|item| self.value(item, keys)).collect();
                            items.into()
                        }
                        value => self.value(value, keys),
                    };
                    (name.into(), value)
                }
                _ => (self.path(name).as_str().into(), self.value(value, Keys::Fields)),
            })
            .collect()
    }

    /// A text of a shape: the type of a literal, a field path, or a name.
    fn text(&self, text: &str) -> String {
        match text {
            "[]" => text.to_owned(),
            _ if text.starts_with('?') => text.to_owned(),
            _ if text.starts_with("$$") => {
                let (variable, path) = text[2..]
                    .split_once('.')
                    .map_or((&text[2..], None), |(v, p)| (v, Some(p)));
                let variable = match VARIABLES.contains(&variable) {
                    true => variable.to_owned(),
                    false => self.name(variable),
                };
                match path {
                    Some(path) => format!("$${variable}.{}", self.path(path)),
                    None => format!("$${variable}"),
                }
            }
            _ if text.starts_with('$') => format!("${}", self.path(&text[1..])),
            _ => self.path(text),
        }
    }

    /// A dotted path, each part of which is hidden.
    fn path(&self, path: &str) -> String {
        let parts: Vec<String> = path.split('.').map(|part| self.name(part)).collect();
        parts.join(".")
    }

    fn name(&self, name: &str) -> String {
        let mut mac = self.mac.clone();
        mac.update(name.as_bytes());
        STANDARD.encode(mac.finalize().into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::{doc, extjson};

    /// What is left readable of a shape: hidden names are shown as `#`.
    fn left(shape: &str) -> String {
        let transform = Transform::new(b"key");
        let shape = extjson::parse_document(shape).expect("valid JSON");
        let hidden = transform.key(doc! { "queryShape": shape }.as_ref());
        let text = extjson::to_string(&hidden, extjson::Form::Relaxed);
        let mut out = String::new();
        let mut rest = text.as_str();
        while let Some(end) = rest.find('=') {
            // 32 bytes are 43 digits and one sign of padding.
            let begin = end.saturating_sub(43);
            out.push_str(&rest[..begin]);
            out.push('#');
            rest = &rest[end + 1..];
        }
        out.push_str(rest);
        out
    }

    #[test]
    fn names_become_their_hmac() {
        // RFC 4231, test case 2, in base64.
        let transform = Transform::new(b"Jefe");
        let name = transform.name("what do ya want for nothing?");
        assert_eq!(name, "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM=");
    }

    #[test]
    fn names_are_hidden_and_operators_are_not() {
        assert_eq!(
            left(
                r#"{"cmdNs":{"db":"d","coll":"c"},"command":"find","filter":{"$and":[{"a.b":{"$gt":"?number"}},{"a":{"$type":["int"]}}]},"sort":{"a":1},"limit":"?number"}"#
            ),
            r##"{"queryShape":{"cmdNs":{"db":"#","coll":"#"},"command":"find","filter":{"$and":[{"#.#":{"$gt":"?number"}},{"#":{"$type":["int"]}}]},"sort":{"#":1},"limit":"?number"}}"##
        );
        assert_eq!(
            left(
                r#"{"command":"aggregate","pipeline":[{"$match":{"input":{"$eq":"?string"}}},{"$group":{"_id":"$x.y","input":{"$sum":{"$filter":{"input":"$list","as":"?string","cond":{"$eq":["$$this.z","$$NOW"]}}}}}},{"$sort":{"input":"?number"}}]}"#
            ),
            r##"{"queryShape":{"command":"aggregate","pipeline":[{"$match":{"#":{"$eq":"?string"}}},{"$group":{"#":"$#.#","#":{"$sum":{"$filter":{"input":"$#","as":"?string","cond":{"$eq":["$$#.#","$$NOW"]}}}}}},{"$sort":{"#":"?number"}}]}}"##
        );
        assert_eq!(
            left(
                r#"{"command":"aggregate","pipeline":[{"$lookup":{"from":"?string","let":{"v":"$a"},"pipeline":[{"$match":{"q":"?number"}}]}},{"$project":{"r":{"$switch":{"branches":[{"case":"$b","then":"?number"}]}},"s":{"t":"$u"}}}]}"#
            ),
            r##"{"queryShape":{"command":"aggregate","pipeline":[{"$lookup":{"from":"?string","let":{"#":"$#"},"pipeline":[{"$match":{"#":"?number"}}]}},{"$project":{"#":{"$switch":{"branches":[{"case":"$#","then":"?number"}]}},"#":{"#":"$#"}}}]}}"##
        );
        assert_eq!(
            left(r#"{"command":"distinct","key":"a.b","collation":{"locale":"de"}}"#),
            r##"{"queryShape":{"command":"distinct","key":"#.#","collation":{"locale":"de"}}}"##
        );
    }
}
