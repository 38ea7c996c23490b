//! Building arrays out of elements that are bytes already.

use super::Existing;
use crate::update::operand::{Encoded, close, index_name, open, push_element};
use nestor_model::raw::RawElement;
use nestor_model::statement::{note, work};
use nestor_model::{ArrayRef, RawDoc, Result, ValueRef};

/// The array an operator stands on, if it is one.
pub(super) fn elements<'u>(at: &Existing<'u>) -> Option<RawDoc<'u>> {
    match at.value {
        ValueRef::Array(ArrayRef::Raw(raw)) => Some(raw),
        _ => None,
    }
}

/// One item of an array in the making.
#[derive(Clone, Copy)]
pub(super) struct Item<'i> {
    pub kind: u8,
    pub bytes: &'i [u8],
    pub value: ValueRef<'i>,
    /// Levels of nesting inside, when they are not known to fit already.
    pub depth: usize,
}

impl<'i> From<RawElement<'i>> for Item<'i> {
    fn from(element: RawElement<'i>) -> Self {
        Self {
            kind: element.kind(),
            bytes: element.value_bytes(),
            value: element.value(),
            depth: 0,
        }
    }
}

/// An array of these items, numbered anew.
pub(super) fn build<'i>(items: impl IntoIterator<Item = Item<'i>>) -> Encoded<'static> {
    let mut bytes = Vec::new();
    let start = open(&mut bytes);
    let mut depth = 0;
    for (i, item) in items.into_iter().enumerate() {
        note(1);
        push_element(&mut bytes, item.kind, &index_name(i), item.bytes);
        depth = depth.max(item.depth);
    }
    close(&mut bytes, start);
    Encoded::container(0x04, depth + 1, bytes)
}

/// The array without the elements that `remove` picks; `None` when it picks none.
pub(super) fn without(
    array: RawDoc<'_>,
    mut remove: impl FnMut(usize, &RawElement<'_>) -> Result<bool>,
) -> Result<Option<Encoded<'static>>> {
    let mut kept = Vec::new();
    let mut removed = false;
    for (i, element) in array.elements().enumerate() {
        work(1)?;
        if remove(i, &element)? {
            removed = true;
        } else {
            kept.push(Item::from(element));
        }
    }
    Ok(removed.then(|| build(kept)))
}

impl<'i> From<&'i crate::update::operand::Operand> for Item<'i> {
    fn from(operand: &'i crate::update::operand::Operand) -> Self {
        Self {
            kind: operand.kind(),
            bytes: operand.bytes(),
            value: operand.value(),
            depth: operand.depth(),
        }
    }
}
