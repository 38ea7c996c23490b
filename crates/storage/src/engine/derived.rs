//! What those need who keep something that is derived of parts of trees.

use super::Engine;
use crate::beside::Beside;

impl Engine {
    /// Files of what is derived of parts of trees ([`crate::View::blocks`]); `None` for a store that lives in memory.
    pub fn beside(&self) -> Option<&Beside> {
        self.inner.store.as_ref().map(|store| &store.beside)
    }

    /// Keeps the names of parts of trees across restarts, from now on. Where names have the number that is the answer, parts of one name are
    /// the same in every process; `None` where they cannot be kept.
    pub fn keep_names(&self) -> Option<u64> {
        self.inner.store.as_ref()?.base.keep_names()
    }

    /// The number of the names that are kept by now.
    pub fn names_kept(&self) -> Option<u64> {
        self.inner.store.as_ref()?.base.names_kept()
    }

    /// A number that grows when commits reach the parts of trees.
    pub fn applied(&self) -> u64 {
        self.inner.store.as_ref().map_or(0, |store| store.base.applied())
    }
}
