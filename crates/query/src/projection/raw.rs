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

pub(super) fn fields(node: &Node, mode: Mode, doc: RawDoc<'_>, out: &mut RawWriter) {
    let mut unseen = all_of(node.children.len());
    for element in doc.elements() {
        let Some(at) = node.position(element.name()) else {
            if mode == Mode::Exclusion {
                out.append_element_bytes(element.as_bytes());
            }
            continue;
        };
        match &node.children[at].1 {
            Child::Listed => {
                if mode == Mode::Inclusion {
                    out.append_element_bytes(element.as_bytes());
                }
            }
            Child::Kept => out.append_element_bytes(element.as_bytes()),
            Child::Dropped | Child::Computed(_) => {}
            Child::Nested(inner) => match element.value() {
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
        // Nothing that follows the last listed field is kept by an inclusion. A name may come twice.
        if at < 63 {
            unseen &= !(1 << at);
        }
        if unseen == 0 && mode == Mode::Inclusion {
            return;
        }
    }
}

/// One bit for each of `count` children. Beyond 63 the last bit stands for all others and stays.
fn all_of(count: usize) -> u64 {
    match count {
        0..64 => (1 << count) - 1,
        _ => u64::MAX,
    }
}

pub(super) fn elements(node: &Node, mode: Mode, items: RawDoc<'_>, out: &mut RawWriter) {
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
