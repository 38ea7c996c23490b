//! Computed fields among those that are kept: bytes are copied, and what is computed is written where it belongs.

use super::apply::first_match;
use super::{Child, Compute, Mode, Node, Projection, raw};
use crate::env::Env;
use nestor_model::raw::{EMPTY, RawElement};
use nestor_model::statement::{charge, mark, work};
use nestor_model::{ArrayRef, DocRef, RawDoc, RawWriter, Result, ValueRef};

impl Projection {
    /// Writes what it makes of `doc`, the bytes of `env.root`, into `out`. Only for [`Projection::is_written`] projections. After an error
    /// `out` has a part of it, with documents that are open.
    ///
    /// # Errors
    /// Those of expressions, and of memory.
    pub fn write<'a>(&'a self, doc: RawDoc<'_>, env: &mut Env<'a>, out: &mut RawWriter) -> Result<()> {
        let (mark, before) = (mark(), out.len());
        let mode = self.mode;
        Writing {
            mode,
            env,
            out: &mut *out,
        }
        .fields(&self.root, doc)?;
        mark.settle(out.len() - before)
    }
}

/// Which children of a node have been written.
#[derive(Default)]
struct Placed {
    first: u64,
    others: Vec<u64>,
}

impl Placed {
    /// Notes that a child is written; whether it was before.
    fn place(&mut self, at: usize) -> bool {
        let bit = 1 << (at % 64);
        let word = match (at / 64).checked_sub(1) {
            None => &mut self.first,
            Some(word) => {
                if self.others.len() <= word {
                    self.others.resize(word + 1, 0);
                }
                &mut self.others[word]
            }
        };
        let was = *word & bit != 0;
        *word |= bit;
        was
    }
}

struct Writing<'w, 'e, 'a> {
    mode: Mode,
    env: &'e mut Env<'a>,
    out: &'w mut RawWriter,
}

impl<'a> Writing<'_, '_, 'a> {
    fn fields(&mut self, node: &'a Node, doc: RawDoc<'_>) -> Result<()> {
        let mut placed = Placed::default();
        for element in doc.elements() {
            let keeps_others = self.mode == Mode::Exclusion;
            let Some(at) = node.position(element.name()) else {
                if keeps_others {
                    self.out.append_element_bytes(element.as_bytes());
                }
                continue;
            };
            let keeps = match &node.children[at].1 {
                Child::Listed => !keeps_others,
                Child::Kept => true,
                Child::Dropped => false,
                // An exclusion leaves the field where it stood; a second one of its name stays.
                Child::Computed(compute) if keeps_others => match placed.place(at) {
                    false => self.computed(element.name(), compute).map(|()| false)?,
                    true => true,
                },
                Child::Computed(_) => false,
                Child::Nested(inner) if inner.has_computed && !placed.place(at) => {
                    self.nested(inner, element)?;
                    false
                }
                Child::Nested(inner) if inner.has_plain => {
                    self.plain(inner, element);
                    false
                }
                Child::Nested(_) => true,
            };
            if keeps {
                self.out.append_element_bytes(element.as_bytes());
            }
        }
        // What the document does not have comes behind, in the order of the specification.
        for (at, (name, child)) in node.children.iter().enumerate() {
            match child {
                Child::Computed(compute) if !placed.place(at) => self.computed(name, compute)?,
                Child::Nested(inner) if inner.has_computed && !placed.place(at) => {
                    self.out.begin_document(name);
                    self.fields(inner, EMPTY)?;
                    self.out.end();
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A field below which some are computed.
    fn nested(&mut self, node: &'a Node, element: RawElement<'_>) -> Result<()> {
        match element.value() {
            ValueRef::Array(ArrayRef::Raw(items)) => {
                self.out.begin_array(element.name());
                self.items(node, items)?;
            }
            value => {
                self.out.begin_document(element.name());
                self.fields(node, document_of(value))?;
            }
        }
        self.out.end();
        Ok(())
    }

    fn items(&mut self, node: &'a Node, items: RawDoc<'_>) -> Result<()> {
        for (at, item) in ArrayRef::Raw(items).iter().enumerate() {
            work(1)?;
            match item {
                ValueRef::Array(ArrayRef::Raw(inner)) => {
                    self.out.begin_array_at(at);
                    self.items(node, inner)?;
                }
                item => {
                    self.out.begin_document_at(at);
                    self.fields(node, document_of(item))?;
                }
            }
            self.out.end();
        }
        Ok(())
    }

    /// A field below which some are kept or left out, and none is computed.
    fn plain(&mut self, node: &Node, element: RawElement<'_>) {
        match element.value() {
            ValueRef::Document(DocRef::Raw(doc)) => {
                self.out.begin_document(element.name());
                raw::fields(node, self.mode, doc, self.out);
                self.out.end();
            }
            ValueRef::Array(ArrayRef::Raw(items)) => {
                self.out.begin_array(element.name());
                raw::elements(node, self.mode, items, self.out);
                self.out.end();
            }
            _ if self.mode == Mode::Exclusion => self.out.append_element_bytes(element.as_bytes()),
            _ => {}
        }
    }

    /// A computed field, if it has a value.
    fn computed(&mut self, name: &str, compute: &'a Compute) -> Result<()> {
        work(1)?;
        let before = self.out.len();
        match compute {
            Compute::Expr(expr) => {
                let value = expr.eval_ref(self.env)?;
                self.out.append(name, value.as_ref());
            }
            Compute::ElemMatch { field, predicate } => {
                let found = first_match(self.env.root, field, predicate, self.env.op)?;
                self.out.append(name, found.as_ref());
            }
        }
        charge(self.out.len() - before)
    }
}

/// The document that computed fields are put into: anything else gives way to a new one.
fn document_of(value: ValueRef<'_>) -> RawDoc<'_> {
    match value {
        ValueRef::Document(DocRef::Raw(doc)) => doc,
        _ => EMPTY,
    }
}
