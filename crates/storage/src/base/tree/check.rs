//! Reading everything: every page of the file is used exactly once or free, and everything in it is as it should be.

use super::super::{CheckReport, Result};
use super::frame::Page;
use super::meta::Meta;
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
}

/// Verifies the tree of `meta` and the free list, from the file.
pub(crate) fn check(store: &Store, meta: &Meta) -> Result<CheckReport> {
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
    };
    checker.mark(0, META_PAGES, 0)?;
    if let Some((root, level)) = meta.root {
        checker.report.depth = u32::from(level) + 1;
        checker.node(root, level, None, None, 0)?;
    }
    if let Some((page, pages, _)) = meta.free_list {
        checker.mark(page, pages, 0)?;
    }
    for (start, len) in free_list(store, meta)? {
        checker.mark(start, len, 0)?;
        checker.report.free_pages += u64::from(len);
    }
    if let Some(lost) = (0..meta.page_count).find(|page| !checker.is_used(*page)) {
        return Err(store.corrupt(lost, "the page is neither used nor free"));
    }
    Ok(checker.report)
}

/// The free runs, ascending, that the file lists.
pub(crate) fn free_list(store: &Store, meta: &Meta) -> Result<Vec<Extent>> {
    let Some((page, pages, crc)) = meta.free_list else {
        return Ok(Vec::new());
    };
    let bytes = store.read_extent(page, pages, Kind::FreeList, crc)?;
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

    /// Notes that pages are in use; `by` is the page that says so.
    fn mark(&mut self, start: u32, len: u32, by: u32) -> Result<()> {
        if start.checked_add(len).is_none_or(|end| end > self.page_count) {
            return Err(self
                .store
                .corrupt(by, format!("it refers to page {start}, which the file does not have")));
        }
        for page in start..start + len {
            if self.is_used(page) {
                return Err(self
                    .store
                    .corrupt(page, format!("the page is used twice, the second time by page {by}")));
            }
            self.used[page as usize / 64] |= 1 << (page % 64);
        }
        Ok(())
    }

    /// Verifies a subtree whose keys are to be in `low..high`.
    fn node(&mut self, node: NodeRef, level: u8, low: Option<&[u8]>, high: Option<&[u8]>, by: u32) -> Result<()> {
        self.mark(node.page, node.pages, by)?;
        let page = self.store.read_node(node, level)?;
        let (entries_before, values_before) = (self.report.entries, self.report.overflow_values);
        if level == 0 {
            self.leaf(node, &page, low, high)?;
        } else {
            self.interior(node, level, &page, low, high)?;
        }
        let wrong = |reason: String| Err(self.store.corrupt(node.page, reason));
        let entries = self.report.entries - entries_before;
        if entries != node.entries {
            return wrong(format!("{entries} entries where {} are counted", node.entries));
        }
        if (self.report.overflow_values > values_before) != node.overflow {
            return wrong("the mark for values outside the leaves is wrong".into());
        }
        Ok(())
    }

    fn interior(
        &mut self,
        node: NodeRef,
        level: u8,
        page: &Page,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
    ) -> Result<()> {
        self.report.interiors += 1;
        let separators: Vec<Vec<u8>> = (0..page.count())
            .map(|i| {
                let mut key = Vec::new();
                page.key_into(i, &mut key);
                key
            })
            .collect();
        for i in 0..page.children() {
            let low = if i == 0 { low } else { Some(&separators[i - 1][..]) };
            let high = separators.get(i).map(Vec::as_slice).or(high);
            if low.zip(high).is_some_and(|(low, high)| low >= high) {
                return Err(self.store.corrupt(node.page, format!("separator {i} is out of order")));
            }
            self.node(page.child(i), level - 1, low, high, node.page)?;
        }
        Ok(())
    }

    fn leaf(&mut self, node: NodeRef, page: &Page, low: Option<&[u8]>, high: Option<&[u8]>) -> Result<()> {
        self.report.leaves += 1;
        self.report.leaf_bytes_used += page.used() as u64;
        let mut key = Vec::new();
        for i in 0..page.count() {
            page.key_into(i, &mut key);
            let ascends = self.previous.as_ref().is_none_or(|previous| *previous < key);
            if !ascends || low.is_some_and(|low| key[..] < *low) || high.is_some_and(|high| key[..] >= *high) {
                return Err(self.store.corrupt(node.page, format!("key {i} is out of order")));
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
                    self.mark(at.page, at.pages(self.store.page_bytes), node.page)?;
                    self.store.read_overflow(&at)?;
                    self.report.overflow_values += 1;
                    self.report.value_bytes += u64::from(at.len);
                }
            }
        }
        Ok(())
    }
}
