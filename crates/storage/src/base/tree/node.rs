//! Nodes in memory. Interior nodes hold direct references to their children, so that a lookup in a warm tree searches
//! pages and follows pointers, with no table in between:
//!
//! - interior children are loaded once and stay for as long as their parent (about 0.5 % of the data of 300-byte rows);
//! - leaves belong to the [cache](super::cache); a parent holds a weak reference, which the cache empties by dropping
//!   the leaf (its head stays in memory until the parent goes).

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use super::frame::Page;
use crate::ahead;

/// Children of one interior node, or the root as the only child of its version. Filled as they are asked for.
#[derive(Debug)]
pub(crate) enum Kids {
    Leaves(Box<[Mutex<Weak<Page>>]>),
    Inners(Box<[OnceLock<Arc<Inner>>]>),
}

/// The part in memory of a child that a new node takes over.
#[derive(Debug, Clone, Default)]
pub(crate) enum Resident {
    #[default]
    Nothing,
    Leaf(Weak<Page>),
    Inner(Arc<Inner>),
}

impl Resident {
    pub(crate) fn is_something(&self) -> bool {
        match self {
            Resident::Nothing => false,
            Resident::Leaf(leaf) => leaf.strong_count() > 0,
            Resident::Inner(_) => true,
        }
    }
}

impl Kids {
    /// Places for `count` children of level `level`, none loaded.
    pub(crate) fn empty(count: usize, level: u8) -> Kids {
        Kids::taking(std::iter::repeat_n(Resident::Nothing, count), level)
    }

    /// Places for children of level `level`, of which some are in memory.
    pub(crate) fn taking(residents: impl Iterator<Item = Resident>, level: u8) -> Kids {
        if level == 0 {
            Kids::Leaves(
                residents
                    .map(|resident| match resident {
                        Resident::Leaf(leaf) => Mutex::new(leaf),
                        _ => Mutex::default(),
                    })
                    .collect(),
            )
        } else {
            Kids::Inners(
                residents
                    .map(|resident| match resident {
                        Resident::Inner(inner) => OnceLock::from(inner),
                        _ => OnceLock::new(),
                    })
                    .collect(),
            )
        }
    }

    /// Leaf `i`, if it is in memory.
    #[inline]
    pub(crate) fn leaf(&self, i: usize) -> Option<Arc<Page>> {
        match self {
            Kids::Leaves(leaves) => leaves[i].lock().unwrap_or_else(PoisonError::into_inner).upgrade(),
            Kids::Inners(_) => None,
        }
    }

    /// Asks for the memory in which it is known where leaf `i` is.
    #[inline]
    pub(crate) fn ask_for_place(&self, i: usize) {
        if let Kids::Leaves(leaves) = self {
            ahead::ask(&raw const leaves[i]);
        }
    }

    /// Asks for the head of leaf `i`.
    #[inline]
    pub(crate) fn ask_for_leaf(&self, i: usize) {
        if let Kids::Leaves(leaves) = self {
            ahead::ask(leaves[i].lock().unwrap_or_else(PoisonError::into_inner).as_ptr());
        }
    }

    /// Remembers leaf `i`.
    pub(crate) fn set_leaf(&self, i: usize, leaf: &Arc<Page>) {
        if let Kids::Leaves(leaves) = self {
            *leaves[i].lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(leaf);
        }
    }

    /// Interior child `i`, if it is in memory.
    #[inline]
    pub(crate) fn inner(&self, i: usize) -> Option<&Inner> {
        match self {
            Kids::Leaves(_) => None,
            Kids::Inners(inners) => inners[i].get().map(Arc::as_ref),
        }
    }

    /// Remembers interior child `i`, unless another thread was faster, and returns the one remembered.
    pub(crate) fn set_inner(&self, i: usize, inner: Inner) -> &Inner {
        match self {
            Kids::Inners(inners) => inners[i].get_or_init(|| Arc::new(inner)),
            Kids::Leaves(_) => unreachable!("the caller asked for an interior child by its level"),
        }
    }

    /// The part of child `i` that is in memory.
    pub(crate) fn resident(&self, i: usize) -> Resident {
        match self {
            Kids::Leaves(leaves) => Resident::Leaf(leaves[i].lock().unwrap_or_else(PoisonError::into_inner).clone()),
            Kids::Inners(inners) => inners[i]
                .get()
                .map_or(Resident::Nothing, |inner| Resident::Inner(inner.clone())),
        }
    }
}

/// An interior node in memory.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) page: Page,
    pub(crate) kids: Kids,
}

impl Inner {
    /// A node of `level` (at least 1) of which no child is loaded.
    pub(crate) fn new(page: Page, level: u8) -> Inner {
        let kids = Kids::empty(page.children(), level - 1);
        Inner { page, kids }
    }
}
