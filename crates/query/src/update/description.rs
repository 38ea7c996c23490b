//! What an update changed, as events of change streams tell it: from the log's difference ([`super::diff`]).
//!
//! ```text
//! {d: {a: false}, u: {b: 1}, i: {c: 2}, sx: {u: {"0": 3}}, sy: {a: true, l: 5, u2: 4}}
//!   updatedFields    {b: 1, c: 2, "x.0": 3, "y.2": 4}
//!   removedFields    ["a"]
//!   truncatedArrays  [{field: "y", newSize: 5}]
//!   disambiguatedPaths   {"x.0": ["x", "0"]}
//! ```
//!
//! A path is ambiguous when a name in it has a dot, or when a name behind the first looks like the index of an array.
//! Source: manual, "update Event".

use super::diff::{malformed, raw_container, raw_doc};
use nestor_model::raw::RawElement;
use nestor_model::{Document, RawDoc, RawWriter, Result, Value, ValueRef, bail, doc};

/// A step of a path.
#[derive(Clone, Copy)]
enum Step<'d> {
    Field(&'d str),
    Index(i32),
}

/// Collects what changed.
struct Description<'d> {
    path: Vec<Step<'d>>,
    updated: RawWriter,
    removed: Vec<Value>,
    truncated: Vec<Value>,
    ambiguous: Document,
}

/// `updateDescription` of an update that is logged as `{$v: 2, diff}`. `disambiguates`: with the paths that can be read in two
/// ways.
///
/// Errors: 9 (FailedToParse) when it is not of that form.
pub fn describe(entry: RawDoc<'_>, disambiguates: bool, out: &mut RawWriter) -> Result<()> {
    let version = entry.get("$v");
    let Some(diff) = entry
        .get("diff")
        .filter(|_| matches!(version, Some(ValueRef::Int32(2))))
        .and_then(raw_doc)
    else {
        bail!(FailedToParse, "update entry is not of the form {{$v: 2, diff: ...}}");
    };
    let mut description = Description {
        path: Vec::new(),
        updated: RawWriter::with_capacity(diff.len() + 64),
        removed: Vec::new(),
        truncated: Vec::new(),
        ambiguous: Document::new(),
    };
    description.document(diff)?;
    out.append_raw("updatedFields", description.updated.into_doc().as_raw());
    out.append("removedFields", &Value::from(description.removed));
    out.append("truncatedArrays", &Value::from(description.truncated));
    if disambiguates {
        out.append("disambiguatedPaths", &description.ambiguous);
    }
    Ok(())
}

impl<'d> Description<'d> {
    fn document(&mut self, diff: RawDoc<'d>) -> Result<()> {
        for element in diff.elements() {
            match (element.name(), raw_container(&element)) {
                ("d", Some(gone)) => {
                    for field in gone.elements() {
                        self.path.push(Step::Field(field.name()));
                        let path = self.name();
                        self.removed.push(path.into());
                        self.path.pop();
                    }
                }
                ("u" | "i", Some(values)) => {
                    for field in values.elements() {
                        self.update(Step::Field(field.name()), &field);
                    }
                }
                (name, Some(inner)) if name.starts_with('s') => {
                    self.path.push(Step::Field(&name[1..]));
                    self.nested(inner)?;
                    self.path.pop();
                }
                _ => return Err(malformed("a section is not a document")),
            }
        }
        Ok(())
    }

    fn nested(&mut self, diff: RawDoc<'d>) -> Result<()> {
        match diff.get("a") {
            Some(ValueRef::Bool(true)) => self.array(diff),
            _ => self.document(diff),
        }
    }

    fn array(&mut self, diff: RawDoc<'d>) -> Result<()> {
        for element in diff.elements() {
            match (element.name(), element.value()) {
                ("a", _) => {}
                ("l", ValueRef::Int32(length)) => {
                    let path = self.name();
                    self.truncated.push(doc! { "field": path, "newSize": length }.into());
                }
                (name, _) => {
                    let index = name.get(1..).and_then(|digits| digits.parse().ok());
                    let index = index.ok_or_else(|| malformed("array entry"))?;
                    match (name.as_bytes().first(), raw_container(&element)) {
                        (Some(b'u'), _) => self.update(Step::Index(index), &element),
                        (Some(b's'), Some(inner)) => {
                            self.path.push(Step::Index(index));
                            self.nested(inner)?;
                            self.path.pop();
                        }
                        _ => return Err(malformed("array entry")),
                    }
                }
            }
        }
        Ok(())
    }

    fn update(&mut self, step: Step<'d>, element: &RawElement<'_>) {
        self.path.push(step);
        let path = self.name();
        self.updated.append(&path, element.value());
        self.path.pop();
    }

    /// The path joined by dots; it is noted if that can be read in two ways.
    fn name(&mut self) -> String {
        let mut name = String::new();
        for (at, step) in self.path.iter().enumerate() {
            if at > 0 {
                name.push('.');
            }
            match step {
                Step::Field(field) => name.push_str(field),
                Step::Index(index) => name.push_str(&index.to_string()),
            }
        }
        let is_ambiguous = self.path.iter().enumerate().any(|(at, step)| match step {
            Step::Field(field) => field.contains('.') || (at > 0 && looks_like_index(field)),
            Step::Index(_) => false,
        });
        if is_ambiguous && self.ambiguous.get(&name).is_none() {
            let steps = self.path.iter().map(|step| match step {
                Step::Field(field) => Value::from(*field),
                Step::Index(index) => Value::Int32(*index),
            });
            let steps: Vec<Value> = steps.collect();
            self.ambiguous.push(name.as_str(), steps);
        }
        name
    }
}

fn looks_like_index(field: &str) -> bool {
    let digits = field.as_bytes();
    let has_leading_zero = digits.len() > 1 && digits[0] == b'0';
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) && !has_leading_zero
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::update::diff;
    use nestor_model::{RawDocBuf, extjson};

    fn parse(text: &str) -> Document {
        match extjson::parse(text).expect("valid JSON") {
            Value::Document(doc) => doc,
            other => panic!("{other:?} is no document"),
        }
    }

    fn described(before: &str, after: &str) -> RawDocBuf {
        let entry = diff::compute(parse(before).to_raw().as_raw(), parse(after).to_raw().as_raw());
        let mut out = RawWriter::new();
        describe(entry.expect("a difference").as_raw(), true, &mut out).expect("a description");
        out.into_doc()
    }

    /// The padding keeps values from being logged as a whole.
    #[test]
    fn paths_of_all_kinds() {
        let pad = "x".repeat(200);
        for (before, after, expected) in [
            (
                r#"{"_id":1,"a":1,"b":1}"#.to_owned(),
                r#"{"_id":1,"b":2,"n":{"x":5}}"#.to_owned(),
                r#"{"updatedFields":{"b":2,"n":{"x":5}},"removedFields":["a"],"truncatedArrays":[],"disambiguatedPaths":{}}"#,
            ),
            (
                format!(r#"{{"_id":1,"o":{{"p":"{pad}","q":{{"r":1,"s":"{pad}"}},"t":1}}}}"#),
                format!(r#"{{"_id":1,"o":{{"p":"{pad}","q":{{"r":2,"s":"{pad}"}}}}}}"#),
                r#"{"updatedFields":{"o.q.r":2},"removedFields":["o.t"],"truncatedArrays":[],"disambiguatedPaths":{}}"#,
            ),
            (
                format!(r#"{{"_id":1,"l":["{pad}",{{"c":"{pad}","d":1}},3,4]}}"#),
                format!(r#"{{"_id":1,"l":["{pad}",{{"c":"{pad}","d":2}}]}}"#),
                r#"{"updatedFields":{"l.1.d":2},"removedFields":[],"truncatedArrays":[{"field":"l","newSize":2}],"disambiguatedPaths":{}}"#,
            ),
            // A name with a dot, one that looks like an index, and one that does not because of its zero.
            (
                format!(r#"{{"_id":1,"h.t":1,"0":1,"l":[{{"1":1,"p":"{pad}"}}],"o":{{"p":"{pad}","01":1}}}}"#),
                format!(r#"{{"_id":1,"h.t":2,"0":2,"l":[{{"1":2,"p":"{pad}"}}],"o":{{"p":"{pad}","01":2}}}}"#),
                r#"{"updatedFields":{"h.t":2,"0":2,"l.0.1":2,"o.01":2},"removedFields":[],"truncatedArrays":[],"disambiguatedPaths":{"h.t":["h.t"],"l.0.1":["l",0,"1"]}}"#,
            ),
        ] {
            assert_eq!(
                described(&before, &after),
                parse(expected).to_raw(),
                "{before} to {after}"
            );
        }
    }

    #[test]
    fn what_is_no_difference_is_refused() {
        for bad in [
            r#"{"$v":1}"#,
            r#"{"$v":2,"diff":1}"#,
            r#"{"$v":2,"diff":{"d":1}}"#,
            r#"{"$v":2,"diff":{"sx":{"a":true,"?":1}}}"#,
        ] {
            let mut out = RawWriter::new();
            let result = describe(parse(bad).to_raw().as_raw(), true, &mut out);
            assert_eq!(result.expect_err("no difference").code().number(), 9, "{bad}");
        }
    }
}
