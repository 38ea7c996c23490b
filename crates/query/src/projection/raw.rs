//! The fast path: keeping and leaving out fields by copying bytes.

use super::{Child, Mode, Node, Projection};
use nestor_model::{ArrayRef, DocRef, RawDoc, RawDocBuf, RawWriter, ValueRef};

impl Projection {
    /// Writes the projected fields of `doc` into `out`. Only for [`Projection::is_simple`] projections:
    /// computed fields are not written.
    pub fn apply_raw(&self, doc: RawDoc<'_>, out: &mut RawWriter) {
        fields(&self.root, self.mode, doc, out);
    }

    /// As [`Projection::apply_raw`], as a document of its own.
    pub fn apply_raw_to_buf(&self, doc: RawDoc<'_>) -> RawDocBuf {
        let mut out = RawWriter::with_capacity(doc.len());
        self.apply_raw(doc, &mut out);
        out.into_doc()
    }
}

fn fields(node: &Node, mode: Mode, doc: RawDoc<'_>, out: &mut RawWriter) {
    let mut wanted = node.children.len();
    for element in doc.elements() {
        let child = node.child(element.name());
        match child {
            None => {
                if mode == Mode::Exclusion {
                    out.append_element_bytes(element.as_bytes());
                }
                continue;
            }
            Some(Child::Listed) => {
                if mode == Mode::Inclusion {
                    out.append_element_bytes(element.as_bytes());
                }
            }
            Some(Child::Kept) => out.append_element_bytes(element.as_bytes()),
            Some(Child::Dropped | Child::Computed(_)) => {}
            Some(Child::Nested(inner)) => match element.value() {
                ValueRef::Document(DocRef::Raw(nested)) => {
                    out.begin_document(element.name());
                    fields(inner, mode, nested, out);
                    out.end();
                }
                ValueRef::Array(ArrayRef::Raw(items)) => {
                    out.begin_array(element.name());
                    elements(inner, mode, items, out);
                    out.end();
                }
                _ => {
                    if mode == Mode::Exclusion {
                        out.append_element_bytes(element.as_bytes());
                    }
                }
            },
        }
        // Nothing that follows the last listed field is kept by an inclusion.
        wanted -= 1;
        if wanted == 0 && mode == Mode::Inclusion {
            return;
        }
    }
}

fn elements(node: &Node, mode: Mode, items: RawDoc<'_>, out: &mut RawWriter) {
    let mut kept = 0;
    for item in ArrayRef::Raw(items) {
        match item {
            ValueRef::Document(DocRef::Raw(doc)) => {
                out.begin_document_at(kept);
                fields(node, mode, doc, out);
                out.end();
            }
            ValueRef::Array(ArrayRef::Raw(inner)) => {
                out.begin_array_at(kept);
                elements(node, mode, inner, out);
                out.end();
            }
            other => {
                if mode == Mode::Inclusion {
                    continue;
                }
                out.append_index(kept, other);
            }
        }
        kept += 1;
    }
}
