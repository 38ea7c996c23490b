//! `$unwind`: one document per element of an array.

use super::{ParseContext, Stage};
use crate::field_names::validate_path;
use nestor_model::raw::RawElement;
use nestor_model::{
    ArrayRef, DocRef, Document, Error, Path, RawDoc, RawDocBuf, RawWriter, Result, Str, Value, ValueRef,
};
use std::ops::Range;
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
    if path.contains('\0') {
        return Err(Error::location(
            16419,
            "field path must not contain embedded null bytes",
        ));
    }
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

/// The rows that one document is still to give.
#[derive(Debug)]
pub struct Unwound {
    /// The document with something small in place of the array, so that the copies for its elements share the rest.
    base: Option<Document>,
    items: std::iter::Enumerate<std::vec::IntoIter<Value>>,
    splice: Option<(RawDocBuf, Splice)>,
}

/// Documents whose bytes beside the array are no more than these are copied for each element, which costs less than
/// taking them apart.
const SPLICED_BYTES_MAX: usize = 1024;

/// A place in a document that is bytes, in which elements take the place of their array.
#[derive(Debug)]
pub struct Splice {
    /// Where the array's field lies.
    field: Range<usize>,
    /// Where the next element begins in the bytes of the array.
    next: usize,
    array_bytes: usize,
}

impl Splice {
    /// In a document that has few bytes beside the array at `path`, which has elements.
    fn new(doc: RawDoc<'_>, path: &Path) -> Option<Self> {
        let [part] = path.parts() else {
            return None;
        };
        let element = doc.elements().find(|element| element.name() == part.name.as_str())?;
        let ValueRef::Array(ArrayRef::Raw(items)) = element.value() else {
            return None;
        };
        if items.is_empty() || doc.len() - items.len() > SPLICED_BYTES_MAX {
            return None;
        }
        let field = element.offset()..element.offset() + element.as_bytes().len();
        Some(Self {
            array_bytes: items.len(),
            field,
            next: HEADER_BYTES,
        })
    }

    /// True when there are no more elements.
    pub fn is_done(&self) -> bool {
        // The array's last byte ends it.
        self.next + 1 >= self.array_bytes
    }

    /// Passes by an element of `doc`, which it was made of, and gives it; `None` when there are no more.
    fn pass<'d>(&mut self, doc: RawDoc<'d>) -> Option<RawElement<'d>> {
        let field = doc.elements_from(self.field.start).next()?;
        let ValueRef::Array(ArrayRef::Raw(items)) = field.value() else {
            return None;
        };
        let item = items.elements_from(self.next).next()?;
        self.next += item.as_bytes().len();
        Some(item)
    }

    /// Writes the fields of the next document that comes of `doc`, which it was made of.
    pub fn write(&mut self, doc: RawDoc<'_>, out: &mut RawWriter) {
        let Some(item) = self.pass(doc) else {
            return;
        };
        let bytes = doc.as_bytes();
        let (before, behind) = (
            &bytes[HEADER_BYTES..self.field.start],
            &bytes[self.field.end..bytes.len() - 1],
        );
        // Type and name are those of the array's field but for the type.
        let name = self.field.start + 1..self.field.end - self.array_bytes;
        out.append_element_bytes(before);
        out.append_element_bytes(&item.as_bytes()[..1]);
        out.append_element_bytes(&bytes[name]);
        out.append_element_bytes(item.value_bytes());
        out.append_element_bytes(behind);
    }

    /// Passes by the next document that comes of `doc`, which it was made of.
    pub fn skip(&mut self, doc: RawDoc<'_>) {
        self.pass(doc);
    }
}

/// The length in front of a document's fields.
const HEADER_BYTES: usize = 4;

impl Unwound {
    /// True when [`Unwind::next`] will give no more.
    pub fn is_done(&self) -> bool {
        self.base.is_none() && self.splice.as_ref().is_none_or(|(_, splice)| splice.is_done())
    }
}

impl Unwind {
    /// The array.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where positions go.
    pub fn index(&self) -> Option<&Path> {
        self.index.as_ref()
    }

    /// Whether documents without elements stay.
    pub fn preserves_empty(&self) -> bool {
        self.preserve
    }

    /// Puts an element and its position into a document that has something else in its place.
    pub fn put(&self, doc: &mut Document, item: Value, at: i64) {
        set_path(doc, &self.path, item);
        if let Some(index) = &self.index {
            set_path(doc, index, Value::Int64(at));
        }
    }

    /// Where elements take the place of their array in a document that is bytes, if that can be done by copying few of them.
    pub fn splice(&self, doc: RawDoc<'_>) -> Option<Splice> {
        match self.index {
            None => Splice::new(doc, &self.path),
            Some(_) => None,
        }
    }

    /// Begins with a document; [`Unwind::next`] gives the documents that come of it.
    pub fn start(&self, mut doc: Document) -> Unwound {
        if let DocRef::Raw(raw) = doc.as_ref()
            && let Some(splice) = self.splice(raw)
        {
            return Unwound {
                base: None,
                items: Vec::new().into_iter().enumerate(),
                splice: Some((doc.to_raw(), splice)),
            };
        }
        let found = match value_at(doc.as_ref(), &self.path) {
            ValueRef::Array(items) if items.is_empty() => {
                // An empty array leaves its field out.
                set_path(&mut doc, &self.path, Value::Missing);
                false
            }
            ValueRef::Array(items) => {
                let items: Vec<Value> = items.iter().map(ValueRef::to_value).collect();
                set_path(&mut doc, &self.path, Value::Null);
                return Unwound {
                    base: Some(doc),
                    items: items.into_iter().enumerate(),
                    splice: None,
                };
            }
            ValueRef::Missing | ValueRef::Null | ValueRef::Undefined => false,
            // A scalar stays as it is, as an element without a position.
            _ => true,
        };
        let kept = found || self.preserve;
        if let (true, Some(index)) = (kept, &self.index) {
            set_path(&mut doc, index, Value::Null);
        }
        Unwound {
            base: kept.then_some(doc),
            items: Vec::new().into_iter().enumerate(),
            splice: None,
        }
    }

    /// The next document, if there is one.
    pub fn next(&self, unwound: &mut Unwound) -> Option<Document> {
        if let Some((doc, splice)) = &mut unwound.splice {
            if splice.is_done() {
                return None;
            }
            let doc = doc.as_raw();
            let mut writer = RawWriter::with_capacity(doc.len());
            splice.write(doc, &mut writer);
            return Some(writer.into_doc().into());
        }
        let Some((at, item)) = unwound.items.next() else {
            return unwound.base.take();
        };
        // The last one needs no copy.
        let mut doc = match unwound.items.len() {
            0 => unwound.base.take()?,
            _ => unwound.base.clone()?,
        };
        self.put(&mut doc, item, at as i64);
        Some(doc)
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
        let mut unwound = unwind.start(doc);
        while let Some(doc) = unwind.next(&mut unwound) {
            out.push(extjson::to_string(&doc, Form::Relaxed));
        }
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

    /// Bytes are spliced where fields of an owned document are set.
    #[test]
    fn bytes_and_fields_unwind_alike() {
        let unwind = Unwind {
            path: Path::new("a"),
            index: None,
            preserve: false,
        };
        for doc in [
            r#"{"_id":1,"a":[1,"x",{"b":[2,3]},null,[]],"z":true}"#,
            r#"{"a":[7]}"#,
            r#"{"z":{"a":[0]},"a":[{"a":1},{}]}"#,
            r#"{"a":[]}"#,
            r#"{"a":4,"b":5}"#,
        ] {
            let owned = extjson::parse_document(doc).expect("valid JSON");
            let raw = Document::from(owned.to_raw());
            let all = |doc: Document| {
                let mut unwound = unwind.start(doc);
                let mut out = Vec::new();
                while !unwound.is_done() {
                    out.extend(
                        unwind
                            .next(&mut unwound)
                            .map(|doc| extjson::to_string(&doc, Form::Canonical)),
                    );
                }
                assert!(unwind.next(&mut unwound).is_none());
                out
            };
            assert_eq!(all(raw), all(owned), "{doc}");
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
