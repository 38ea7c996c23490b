//! Stages as explain prints them.

use super::merge::{WhenMatched, WhenNotMatched};
use super::{Stage, bucket, window};
use crate::Scope;
use nestor_model::{Document, Path, Result, Value, ValueRef, doc};

/// A stage as it was written. A shorthand such as `$count` is parsed into several stages, which share it.
#[derive(Clone, Debug)]
pub struct Written {
    /// Its name.
    pub name: &'static str,
    /// Its specification.
    pub value: Value,
}

impl Stage {
    /// The stage as explain prints it: shorthands as what they stand for, filters, orders and paths in their parsed
    /// form, expressions as they were written.
    pub fn serialize(&self, written: &Written) -> Document {
        let (name, value) = match self {
            Self::Match(filter) => ("$match", filter.serialize().into()),
            Self::Sort(spec) => ("$sort", doc! { "sortKey": spec.serialize() }.into()),
            Self::Limit(limit) => ("$limit", Value::Int64(*limit as i64)),
            Self::Skip(skip) => ("$skip", Value::Int64(*skip as i64)),
            Self::Unwind(unwind) => ("$unwind", unwind.serialize().into()),
            Self::Mask(masking) => ("$mask", masking.listed().clone().into()),
            Self::Unpack(unpack) => ("$_internalUnpackBucket", unpack.serialize()),
            Self::PublicBuckets(_) => ("$_internalPublicBuckets", Document::new().into()),
            Self::Out(out) => ("$out", out.serialize().into()),
            Self::Merge(merge) => ("$merge", merge.serialize(written.value.as_ref()).into()),
            _ => match self.of_shorthand(written) {
                Ok(Some(shown)) => shown,
                _ => (written.name, written.value.clone()),
            },
        };
        let mut out = Document::with_capacity(1);
        out.push(name, value);
        out
    }

    /// The stages that a shorthand stands for.
    fn of_shorthand(&self, written: &Written) -> Result<Option<(&'static str, Value)>> {
        let value = written.value.as_ref();
        Ok(Some(match (written.name, self) {
            ("$count", Self::Group(_)) => ("$group", counting(Value::Null, value.as_str().unwrap_or_default())),
            ("$count", Self::Project { name, .. }) => {
                let mut spec = Document::new();
                spec.push(value.as_str().unwrap_or_default(), true);
                spec.push("_id", false);
                (*name, spec.into())
            }
            ("$sortByCount", Self::Group(_)) => ("$group", counting(value.to_value(), "count")),
            ("$bucket", Self::Group(_)) => ("$group", bucket::as_group(value, &mut Scope::new())?.into()),
            ("$fill", Self::SetWindowFields(_)) => match window::desugar_fill(value)? {
                (Some(windows), _) => ("$_internalSetWindowFields", windows.into()),
                _ => return Ok(None),
            },
            ("$fill", Self::Project { name, .. }) => (*name, window::desugar_fill(value)?.1.into()),
            (_, Self::SetWindowFields(_)) => ("$_internalSetWindowFields", value.to_value()),
            _ => return Ok(None),
        }))
    }
}

/// `{_id: key, name: {$sum: 1}}`.
fn counting(key: Value, name: &str) -> Value {
    let mut spec = doc! { "_id": key };
    spec.push(name, doc! { "$sum": 1 });
    spec.into()
}

impl super::Unwind {
    /// The specification in its long form; options that were not given are left out.
    pub fn serialize(&self) -> Document {
        let mut out = doc! { "path": dollar(&self.path) };
        if self.preserve {
            out.push("preserveNullAndEmptyArrays", true);
        }
        if let Some(index) = &self.index {
            out.push("includeArrayIndex", index.as_str());
        }
        out
    }
}

impl super::Out {
    /// The specification in its long form.
    fn serialize(&self) -> Document {
        let mut out = doc! { "coll": self.target.coll.clone(), "db": self.target.db.clone() };
        if let Some(timeseries) = &self.timeseries {
            out.push("timeseries", timeseries.listed());
        }
        out
    }
}

impl super::Merge {
    /// The specification in its long form, with what is done when it does not say; `written` has the expressions of `let`.
    fn serialize(&self, written: ValueRef<'_>) -> Document {
        let into = doc! { "db": self.into.db.clone(), "coll": self.into.coll.clone() };
        let on = match self.on.as_deref() {
            None => "_id".into(),
            Some([path]) => path.as_str().into(),
            Some(paths) => Value::from(paths.iter().map(|path| path.as_str().into()).collect::<Vec<Value>>()),
        };
        let mut out = doc! { "into": into, "on": on };
        let when_matched = match &self.when_matched {
            WhenMatched::Merge => "merge".into(),
            WhenMatched::Replace => "replace".into(),
            WhenMatched::KeepExisting => "keepExisting".into(),
            WhenMatched::Fail => "fail".into(),
            WhenMatched::Pipeline(stages) => {
                let given = written.as_document().and_then(|spec| spec.get("let"));
                let given = given.filter(|variables| !variables.is_nullish());
                out.push(
                    "let",
                    given.map_or_else(|| doc! { "new": "$$ROOT" }.into(), ValueRef::to_value),
                );
                Value::Array(stages.clone())
            }
        };
        out.push("whenMatched", when_matched);
        out.push(
            "whenNotMatched",
            match self.when_not_matched {
                WhenNotMatched::Insert => "insert",
                WhenNotMatched::Discard => "discard",
                WhenNotMatched::Fail => "fail",
            },
        );
        out
    }
}

fn dollar(path: &Path) -> String {
    format!("${path}")
}

/// The text of a stage, if it is to be kept.
pub(super) fn note(written: &mut Vec<Written>, name: &'static str, value: ValueRef<'_>, stages: usize) {
    let of_this = Written {
        name,
        value: value.to_value(),
    };
    written.resize(stages, of_this);
}
