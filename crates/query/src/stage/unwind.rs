//! `$unwind`: one document per element of an array.

use super::{ParseContext, Stage};
use crate::expr::validate_path;
use nestor_model::{DocRef, Document, Error, Path, Result, Str, Value, ValueRef};
use std::sync::Arc;

/// A parsed `$unwind`.
#[derive(Debug)]
pub struct Unwind {
    /// The array's path.
    pub path: Path,
    /// Where the element's position goes.
    pub index: Option<Path>,
    /// Keep documents without elements.
    pub preserve: bool,
}

/// `"$path"` or `{path, includeArrayIndex, preserveNullAndEmptyArrays}`.
///
/// Errors: 15981, 28808 to 28812, 28818, 28822, and those of field paths.
pub(super) fn parse(
    _: &'static str,
    value: ValueRef<'_>,
    _: &mut ParseContext<'_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    let (mut path, mut index, mut preserve) = (None, None, false);
    match value {
        ValueRef::String(text) => path = Some(text),
        ValueRef::Document(doc) => {
            for (name, value) in doc {
                match (name, value) {
                    ("path", ValueRef::String(text)) => path = Some(text),
                    ("path", _) => return Err(wrong(28808, "expected a string as the path for $unwind stage", value)),
                    ("preserveNullAndEmptyArrays", ValueRef::Bool(flag)) => preserve = flag,
                    ("preserveNullAndEmptyArrays", _) => {
                        return Err(wrong(
                            28809,
                            "expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage",
                            value,
                        ));
                    }
                    ("includeArrayIndex", ValueRef::String(text)) if !text.is_empty() => {
                        if text.starts_with('$') {
                            return Err(Error::location(
                                28822,
                                format!(
                                    "includeArrayIndex option to $unwind stage should not be prefixed with a '$': {text}"
                                ),
                            ));
                        }
                        validate_path(text)?;
                        index = Some(Path::new(text));
                    }
                    ("includeArrayIndex", _) => {
                        return Err(wrong(
                            28810,
                            "expected a non-empty string for the includeArrayIndex option to $unwind stage",
                            value,
                        ));
                    }
                    _ => {
                        return Err(Error::location(
                            28811,
                            format!("unrecognized option to $unwind stage: {name}"),
                        ));
                    }
                }
            }
        }
        _ => {
            return Err(wrong(
                15981,
                "expected either a string or an object as specification for $unwind stage",
                value,
            ));
        }
    }
    let path = path
        .filter(|p| !p.is_empty())
        .ok_or_else(|| Error::location(28812, "no path specified to $unwind stage"))?;
    let Some(path) = path.strip_prefix('$') else {
        return Err(Error::location(
            28818,
            format!("path option to $unwind stage should be prefixed with a '$': {path}"),
        ));
    };
    validate_path(path)?;
    out.push(Stage::Unwind(Arc::new(Unwind {
        path: Path::new(path),
        index,
        preserve,
    })));
    Ok(())
}

fn wrong(code: i32, message: &str, value: ValueRef<'_>) -> Error {
    Error::location(code, format!("{message}, got {}", value.bson_type().alias()))
}

impl Unwind {
    /// The documents that come of `doc`, handed to `emit` in order.
    pub fn apply(&self, doc: DocRef<'_>, mut emit: impl FnMut(Document) -> Result<()>) -> Result<()> {
        match value_at(doc, &self.path) {
            ValueRef::Array(items) => {
                if items.is_empty() {
                    if self.preserve {
                        // An empty array leaves its field out.
                        emit(self.replaced(doc, Value::Missing, Value::Null))?;
                    }
                    return Ok(());
                }
                // Changing the shared copy one level deep costs less than decoding the document each time.
                for (at, item) in items.iter().enumerate() {
                    emit(self.replaced(doc, item.to_value(), Value::Int64(at as i64)))?;
                }
                Ok(())
            }
            ValueRef::Missing | ValueRef::Null | ValueRef::Undefined if !self.preserve => Ok(()),
            _ => {
                let mut out = doc.to_document();
                if let Some(index) = &self.index {
                    set_path(&mut out, index, Value::Null);
                }
                emit(out)
            }
        }
    }

    fn replaced(&self, doc: DocRef<'_>, item: Value, index: Value) -> Document {
        let mut out = doc.to_document();
        set_path(&mut out, &self.path, item);
        if let Some(path) = &self.index {
            set_path(&mut out, path, index);
        }
        out
    }
}

/// The value at a path that does not go through arrays.
fn value_at<'d>(doc: DocRef<'d>, path: &Path) -> ValueRef<'d> {
    let mut value = ValueRef::Document(doc);
    for part in path.parts() {
        value = match value {
            ValueRef::Document(doc) => doc.get(&part.name).unwrap_or(ValueRef::Missing),
            _ => return ValueRef::Missing,
        };
    }
    value
}

/// Sets (or with a missing value removes) the field at a path, making documents on the way; anything else
/// in the way is replaced by a document.
fn set_path(doc: &mut Document, path: &Path, value: Value) {
    fn go(doc: &mut Document, parts: &[nestor_model::PathPart], value: Value) {
        let name: &Str = &parts[0].name;
        if parts.len() == 1 {
            doc.set(name, value);
            return;
        }
        let fields = doc.fields_mut();
        let at = fields.iter().position(|(n, _)| n == name);
        let slot = match at {
            Some(at) => &mut fields[at].1,
            None if value.is_missing() => return,
            None => {
                fields.push((name.clone(), Value::Document(Document::new())));
                let last = fields.len() - 1;
                &mut fields[last].1
            }
        };
        if !matches!(slot, Value::Document(_)) {
            if value.is_missing() {
                return;
            }
            *slot = Value::Document(Document::new());
        }
        if let Value::Document(inner) = slot {
            go(inner, &parts[1..], value);
        }
    }
    go(doc, path.parts(), value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::extjson::{self, Form};

    fn run(unwind: &Unwind, doc: &str) -> Vec<String> {
        let doc = extjson::parse_document(doc).expect("valid JSON");
        let mut out = Vec::new();
        unwind
            .apply(doc.as_ref(), |d| {
                out.push(extjson::to_string(&d, Form::Relaxed));
                Ok(())
            })
            .expect("unwinding does not fail");
        out
    }

    #[test]
    fn elements_replace_their_array_in_place() {
        let unwind = Unwind {
            path: Path::new("a.b"),
            index: Some(Path::new("i.n")),
            preserve: false,
        };
        assert_eq!(
            run(&unwind, r#"{"a":{"b":[1,{"c":2}],"x":0},"z":9}"#),
            [
                r#"{"a":{"b":1,"x":0},"z":9,"i":{"n":0}}"#,
                r#"{"a":{"b":{"c":2},"x":0},"z":9,"i":{"n":1}}"#
            ]
        );
        assert_eq!(run(&unwind, r#"{"a":{"b":7}}"#), [r#"{"a":{"b":7},"i":{"n":null}}"#]);
        for nothing in [r#"{"a":{"b":[]}}"#, r#"{"a":{"b":null}}"#, r#"{"a":[{"b":[1]}]}"#, "{}"] {
            assert!(run(&unwind, nothing).is_empty(), "{nothing}");
        }
    }

    #[test]
    fn preserving_keeps_documents_without_elements() {
        let unwind = Unwind {
            path: Path::new("a"),
            index: None,
            preserve: true,
        };
        assert_eq!(run(&unwind, r#"{"_id":1,"a":[]}"#), [r#"{"_id":1}"#]);
        assert_eq!(run(&unwind, r#"{"_id":1,"a":null}"#), [r#"{"_id":1,"a":null}"#]);
        assert_eq!(run(&unwind, r#"{"_id":1}"#), [r#"{"_id":1}"#]);
    }
}
