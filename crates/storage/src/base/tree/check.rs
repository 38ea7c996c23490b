//! Reading everything: every page of the file is used exactly once or free, and everything in it is as it should be.

use super::super::{BaseError, CheckReport, Result};
use super::frame::Page;
use super::meta::{Meta, Slot};
use super::page::{HEADER, Kind, NodeRef, ValueAt};
use super::space::Extent;
use super::store::Store;

/// Pages before the first that can hold anything but metadata.
pub(crate) const META_PAGES: u32 = 2;

struct Checker<'a> {
    store: &'a Store,
    page_count: u32,
    /// One bit per page of the file.
    used: Vec<u64>,
    report: CheckReport,
    /// Key of the entry before.
    previous: Option<Vec<u8>>,
    fault: &'a mut dyn FnMut(BaseError),
}

/// Verifies the meta pages, the tree of `meta` and the free list, from the file. Each fault is told to `fault`; what cannot
/// be read is left out of the report.
pub(crate) fn check(store: &Store, meta: &Meta, fault: &mut dyn FnMut(BaseError)) -> CheckReport {
    let mut checker = Checker {
        store,
        page_count: meta.page_count,
        used: vec![0; (meta.page_count as usize).div_ceil(64)],
        report: CheckReport {
            page_bytes: store.page_bytes as u32,
            pages: u64::from(meta.page_count),
            ..CheckReport::default()
        },
        previous: None,
        fault,
    };
    checker.meta_pages(meta);
    let mut whole = checker.mark(0, META_PAGES, 0);
    if let Some((root, level)) = meta.root {
        checker.report.depth = u32::from(level) + 1;
        whole &= checker.node(root, level, None, None, 0);
    }
    whole &= checker.free_list(meta);
    // Pages below one that cannot be read are not known to be in use.
    let lost = (0..meta.page_count).filter(|page| !checker.is_used(*page));
    if whole && let (count, Some(first)) = (lost.clone().count(), lost.clone().next()) {
        let others = if count > 1 {
            format!(", as {} others", count - 1)
        } else {
            String::new()
        };
        (checker.fault)(store.corrupt(first, format!("the page is neither used nor free{others}")));
    }
    checker.report
}

/// The free runs, ascending, that the file lists.
pub(crate) fn free_list(store: &Store, meta: &Meta) -> Result<Vec<Extent>> {
    let Some((page, pages, crc)) = meta.free_list else {
        return Ok(Vec::new());
    };
    let bytes = store.read_extent(page, pages, [Kind::FreeList; 2], crc)?;
    let count = super::page::get_u32(&bytes, 16) as usize;
    if count > (bytes.len() - HEADER) / 8 {
        return Err(store.corrupt(page, format!("free list of {count} runs does not fit its extent")));
    }
    let mut runs = Vec::with_capacity(count);
    let mut end = META_PAGES;
    for i in 0..count {
        let start = super::page::get_u32(&bytes, HEADER + 8 * i);
        let len = super::page::get_u32(&bytes, HEADER + 8 * i + 4);
        let next = start
            .checked_add(len)
            .filter(|next| *next <= meta.page_count && len > 0 && start >= end);
        end = next.ok_or_else(|| store.corrupt(page, format!("free run {i} is out of order or beyond the file")))?;
        runs.push((start, len));
    }
    Ok(runs)
}

impl Checker<'_> {
    fn is_used(&self, page: u32) -> bool {
        self.used[page as usize / 64] & 1 << (page % 64) != 0
    }

    fn fault(&mut self, page: u32, reason: impl Into<String>) {
        (self.fault)(self.store.corrupt(page, reason));
    }

    /// The meta pages, of which one sound one is enough to open the file.
    fn meta_pages(&mut self, meta: &Meta) {
        let end = self.store.offset(meta.page_count);
        self.report.bytes_behind = self.store.file.len().map_or(0, |len| len.saturating_sub(end));
        for slot in 0..META_PAGES {
            let mut bytes = vec![0; self.store.page_bytes];
            if let Err(error) = self.store.file.read_at(&mut bytes, self.store.offset(slot)) {
                match error.kind() {
                    // Of an encrypted page all bytes change with each write, so power loss may cut it short. The tree was opened, so the
                    // other one is sound.
                    std::io::ErrorKind::InvalidData => self.report.stale_meta = true,
                    _ => (self.fault)(self.store.io("read")(error)),
                }
                continue;
            }
            match Meta::decode(&bytes, slot) {
                Slot::Sound(found) => self.report.stale_meta |= found != *meta,
                // No write that power loss cut short: the fields are in the first 512 bytes, which disks write as a
                // whole, and zeros follow.
                Slot::Damaged(reason) => self.fault(slot, reason),
                Slot::Newer(version) => self.fault(slot, format!("meta page of format version {version}")),
            }
        }
    }

    /// Notes that pages are in use; `by` is the page that says so. False if they are not there or used already.
    fn mark(&mut self, start: u32, len: u32, by: u32) -> bool {
        if start.checked_add(len).is_none_or(|end| end > self.page_count) {
            self.fault(by, format!("it refers to page {start}, which the file does not have"));
            return false;
        }
        if let Some(page) = (start..start + len).find(|page| self.is_used(*page)) {
            self.fault(page, format!("the page is used twice, the second time by page {by}"));
            return false;
        }
        for page in start..start + len {
            self.used[page as usize / 64] |= 1 << (page % 64);
        }
        true
    }

    /// Notes the pages of the free list and those in it. False if not all of them are known now.
    fn free_list(&mut self, meta: &Meta) -> bool {
        let mut whole = meta.free_list.is_none_or(|(page, pages, _)| self.mark(page, pages, 0));
        match free_list(self.store, meta) {
            Ok(runs) => {
                for (start, len) in runs {
                    whole &= self.mark(start, len, 0);
                    self.report.free_pages += u64::from(len);
                }
                whole
            }
            Err(error) => {
                (self.fault)(error);
                false
            }
        }
    }

    /// Verifies a subtree whose keys are to be in `low..high`. False if it could not be read to the end.
    fn node(&mut self, node: NodeRef, level: u8, low: Option<&[u8]>, high: Option<&[u8]>, by: u32) -> bool {
        if !self.mark(node.page, node.pages, by) {
            return false;
        }
        let page = match self.store.read_node(node, level) {
            Ok(page) => page,
            Err(error) => {
                (self.fault)(error);
                return false;
            }
        };
        let (entries_before, values_before) = (self.report.entries, self.report.overflow_values);
        let whole = if level == 0 {
            self.leaf(node, &page, low, high)
        } else {
            self.interior(node, level, &page, low, high)
        };
        let entries = self.report.entries - entries_before;
        if whole && entries != node.entries {
            self.fault(
                node.page,
                format!("{entries} entries where {} are counted", node.entries),
            );
        }
        if whole && (self.report.overflow_values > values_before) != node.overflow {
            self.fault(node.page, "the mark for values outside the leaves is wrong");
        }
        whole
    }

    fn interior(&mut self, node: NodeRef, level: u8, page: &Page, low: Option<&[u8]>, high: Option<&[u8]>) -> bool {
        self.report.interiors += 1;
        let separators: Vec<Vec<u8>> = (0..page.count())
            .map(|i| {
                let mut key = Vec::new();
                page.key_into(i, &mut key);
                key
            })
            .collect();
        let mut whole = true;
        for i in 0..page.children() {
            let low = if i == 0 { low } else { Some(&separators[i - 1][..]) };
            let high = separators.get(i).map(Vec::as_slice).or(high);
            if low.zip(high).is_some_and(|(low, high)| low >= high) {
                self.fault(node.page, format!("separator {i} is out of order"));
            }
            whole &= self.node(page.child(i), level - 1, low, high, node.page);
        }
        whole
    }

    fn leaf(&mut self, node: NodeRef, page: &Page, low: Option<&[u8]>, high: Option<&[u8]>) -> bool {
        self.report.leaves += 1;
        self.report.leaf_bytes_used += page.used() as u64;
        self.report.leaf_bytes += page.bytes().len() as u64;
        self.report.leaf_pages += u64::from(node.pages);
        let mut whole = true;
        let mut key = Vec::new();
        for i in 0..page.count() {
            page.key_into(i, &mut key);
            let ascends = self.previous.as_ref().is_none_or(|previous| *previous < key);
            if !ascends || low.is_some_and(|low| key[..] < *low) || high.is_some_and(|high| key[..] >= *high) {
                self.fault(node.page, format!("key {i} is out of order"));
            }
            match &mut self.previous {
                Some(previous) => previous.clone_from(&key),
                None => self.previous = Some(key.clone()),
            }
            self.report.entries += 1;
            self.report.key_bytes += key.len() as u64;
            match page.value(i) {
                ValueAt::Inline { len, .. } => self.report.value_bytes += u64::from(len),
                ValueAt::Overflow(at) => {
                    self.report.overflow_values += 1;
                    self.report.value_bytes += u64::from(at.len);
                    whole &= self.mark(at.page, at.pages(self.store.page_bytes), node.page);
                    if let Err(error) = self.store.read_overflow(&at) {
                        (self.fault)(error);
                    }
                }
            }
        }
        whole
    }
}
