//! Reading: from the file, verified, and from memory where a page is there.

use std::sync::Arc;
use std::{io, path::Path};

use super::super::{BaseBytes, BaseError, Result};
use super::births::Births;
use super::cache::Cache;
use super::file::PageFile;
use super::frame::Page;
use super::node::{Inner, Kids};
use super::pack;
use super::page::{HEADER, Kind, NodeRef, OverflowRef, ValueAt, get_u32, verify};

/// The file, and what of it is in memory.
pub(crate) struct Store {
    pub(crate) file: Box<dyn PageFile>,
    pub(crate) path: Arc<Path>,
    pub(crate) page_bytes: usize,
    /// Whether leaves and values may be packed.
    pub(crate) packs: bool,
    pub(crate) cache: Cache,
    pub(crate) births: Births,
}

impl Store {
    pub(crate) fn offset(&self, page: u32) -> u64 {
        u64::from(page) * self.page_bytes as u64
    }

    pub(crate) fn corrupt(&self, page: u32, reason: impl Into<String>) -> BaseError {
        BaseError::Corrupt {
            file: self.path.clone(),
            offset: self.file.place(self.offset(page)),
            reason: reason.into(),
        }
    }

    pub(crate) fn io(&self, operation: &'static str) -> impl FnOnce(io::Error) -> BaseError {
        move |source| BaseError::Io {
            file: self.path.clone(),
            operation,
            source,
        }
    }

    pub(crate) fn sync(&self) -> Result<()> {
        self.file.sync().map_err(|source| BaseError::Sync {
            file: self.path.clone(),
            source,
        })
    }

    /// Reads an extent and verifies checksum, number and kind, which is one of two.
    pub(crate) fn read_extent(&self, page: u32, pages: u32, kinds: [Kind; 2], crc: u32) -> Result<Box<[u8]>> {
        let mut bytes = vec![0; pages as usize * self.page_bytes].into_boxed_slice();
        self.file
            .read_at(&mut bytes, self.offset(page))
            .map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => self.corrupt(page, "the file ends before this page does"),
                io::ErrorKind::InvalidData => self.corrupt(page, error.to_string()),
                _ => self.io("read")(error),
            })?;
        verify(&bytes, page, kinds, crc).map_err(|reason| self.corrupt(page, reason))?;
        if get_u32(&bytes, 12) != pages {
            return Err(self.corrupt(
                page,
                format!("extent of {} pages where {pages} belong", get_u32(&bytes, 12)),
            ));
        }
        Ok(bytes)
    }

    /// Reads a node of `level`, 0 for a leaf.
    pub(crate) fn read_node(&self, node: NodeRef, level: u8) -> Result<Page> {
        let kinds = match level {
            0 => [Kind::Leaf, Kind::PackedLeaf],
            _ => [Kind::Interior; 2],
        };
        let mut bytes = self.read_extent(node.page, node.pages, kinds, node.crc)?;
        let corrupt = |reason: String| self.corrupt(node.page, reason);
        if bytes[8] == Kind::PackedLeaf as u8 {
            bytes = pack::unpacked(&bytes, Kind::Leaf, self.page_bytes).map_err(corrupt)?;
        }
        Page::node(bytes, level).map_err(corrupt)
    }

    /// Interior child `i` of `kids`, which `node` refers to. `level` is the child's, at least 1.
    #[inline]
    pub(crate) fn inner<'a>(
        &self,
        kids: &'a Kids,
        i: usize,
        level: u8,
        node: impl FnOnce() -> NodeRef,
    ) -> Result<&'a Inner> {
        match kids.inner(i) {
            Some(inner) => Ok(inner),
            None => Ok(kids.set_inner(i, Inner::new(self.read_node(node(), level)?, level))),
        }
    }

    /// Leaf `i` of `kids`, which `node` refers to.
    #[inline]
    pub(crate) fn leaf(&self, kids: &Kids, i: usize, node: impl FnOnce() -> NodeRef) -> Result<Arc<Page>> {
        if let Some(leaf) = kids.leaf(i) {
            leaf.touch();
            return Ok(leaf);
        }
        let node = node();
        let leaf = Arc::new(self.read_node(node, 0)?);
        self.cache.hold_leaf(node.page, leaf.clone());
        kids.set_leaf(i, &leaf);
        Ok(leaf)
    }

    /// The value at `at`.
    pub(crate) fn overflow(&self, at: &OverflowRef) -> Result<BaseBytes> {
        let page = match self.cache.value(at) {
            Some(page) => page,
            None => {
                let page = Arc::new(Page::raw(self.read_overflow(at)?));
                self.cache.hold_value(at, &page);
                page
            }
        };
        Ok(BaseBytes::new(page, HEADER as u32, at.len))
    }

    /// The extent of the value at `at`; the value begins behind the header.
    pub(crate) fn read_overflow(&self, at: &OverflowRef) -> Result<Box<[u8]>> {
        let kind = if at.packed > 0 {
            Kind::PackedOverflow
        } else {
            Kind::Overflow
        };
        let mut bytes = self.read_extent(at.page, at.pages(self.page_bytes), [kind; 2], at.crc)?;
        if at.packed > 0 {
            let unpacked = pack::unpacked(&bytes, Kind::Overflow, self.page_bytes);
            bytes = unpacked.map_err(|reason| self.corrupt(at.page, reason))?;
        }
        if get_u32(&bytes, 16) != at.len {
            return Err(self.corrupt(
                at.page,
                format!("value of {} bytes where {} belong", get_u32(&bytes, 16), at.len),
            ));
        }
        Ok(bytes)
    }

    /// Value `i` of a leaf.
    #[inline]
    pub(crate) fn value(&self, leaf: &Arc<Page>, i: usize) -> Result<BaseBytes> {
        match leaf.value(i) {
            ValueAt::Inline { start, len } => Ok(BaseBytes::new(leaf.clone(), start, len)),
            ValueAt::Overflow(at) => self.overflow(&at),
        }
    }
}
