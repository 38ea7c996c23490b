//! Which pages of the file are free: the runs that may be written now, and those that snapshots still need.
//!
//! ```text
//! page_count         pages of the file; those beyond are made by extending it
//! runs               free and needed by no one: allocated from
//! pending[(b, f)]    born in commit b, freed by commit f: the states b, …, f − 1 use them
//! freed, allocated   the transaction under way
//! born               commits in which pages were born since the oldest state in use; others are older
//! ```
//!
//! So a state that is held for long keeps its own pages, not all that were born and freed after it.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use super::super::{BaseError, Result};

/// Runs from this length on are worth looking for: what goes into one is one write past the page cache.
const LONG_PAGES: u32 = 16;
/// Files below this length are kept as short as possible instead.
const SMALL_PAGES: u32 = 4096;
/// Up to this share of the file may be free in short runs while it grows.
const SHORT_SHARE: u32 = 4;

/// Consecutive pages: first page and number of pages.
pub(crate) type Extent = (u32, u32);

#[derive(Debug, Default)]
pub(crate) struct Space {
    page_count: u32,
    runs: BTreeMap<u32, u32>,
    by_len: BTreeSet<(u32, u32)>,
    /// Pages in `runs`.
    free_pages: u32,
    /// In this transaction no run below this page is long.
    looked_at: u32,
    /// Run that a few pages at a time are being taken from; not in `runs`.
    current: Extent,
    pending: BTreeMap<(u64, u64), Vec<Extent>>,
    /// Pages and commit by first page.
    born: BTreeMap<u32, (u32, u64)>,
    freed: Vec<Extent>,
    allocated: Vec<Extent>,
    /// `page_count` before the transaction.
    page_count_before: u32,
}

impl Space {
    /// Space of a file of `page_count` pages of which `free` are free.
    pub(crate) fn new(page_count: u32, free: impl IntoIterator<Item = Extent>) -> Space {
        let mut space = Space {
            page_count,
            page_count_before: page_count,
            ..Space::default()
        };
        for run in free {
            space.add(run);
        }
        space
    }

    pub(crate) fn page_count(&self) -> u32 {
        self.page_count
    }

    /// Makes allocatable what none of the states in use needs. `in_use` are their commits, ascending, the current last.
    pub(crate) fn release(&mut self, in_use: &[u64]) {
        self.looked_at = 0;
        let is_needed = |(born, freed): (u64, u64)| {
            let first = in_use.partition_point(|txn| *txn < born);
            in_use.get(first).is_some_and(|txn| *txn < freed)
        };
        let unneeded: Vec<_> = self.pending.keys().copied().filter(|span| !is_needed(*span)).collect();
        for span in unneeded {
            for run in self.pending.remove(&span).unwrap_or_default() {
                self.add(run);
            }
        }
        // When a page was born matters only to states older than it.
        let oldest = in_use.first().copied().unwrap_or_default();
        match in_use.len() {
            0 | 1 => self.born.clear(),
            _ => self.born.retain(|_, (_, born)| *born > oldest),
        }
    }

    /// Pages that are not in the current state and that somebody may need.
    pub(crate) fn pending_pages(&self) -> u32 {
        self.pending.values().flatten().map(|(_, pages)| pages).sum()
    }

    /// Takes `pages` consecutive pages: a few of the first long run of the file, so that what is written ends up
    /// near its beginning and in order; many of the shortest run that is long enough; the end of the file otherwise. Short
    /// runs, which scattered changes leave between what stays, wait until what surrounds them is free as well, or until
    /// there are too many.
    pub(crate) fn allocate(&mut self, pages: u32) -> Result<u32> {
        let start = if pages < LONG_PAGES {
            self.take_few(pages)
        } else {
            self.take_run(pages)
        };
        let start = match start {
            Some(start) => start,
            None => {
                let start = self.page_count;
                self.page_count =
                    start
                        .checked_add(pages)
                        .filter(|count| *count < u32::MAX)
                        .ok_or(BaseError::TooLarge {
                            what: "file",
                            len: start as usize,
                            max: u32::MAX as usize,
                        })?;
                start
            }
        };
        match self.allocated.last_mut() {
            Some((first, len)) if *first + *len == start => *len += pages,
            _ => self.allocated.push((start, pages)),
        }
        Ok(start)
    }

    fn take_few(&mut self, pages: u32) -> Option<u32> {
        if self.current.1 < pages {
            self.return_current();
            let run = self.next_run(pages)?;
            self.remove(run);
            self.current = run;
        }
        let start = self.current.0;
        self.current = (start + pages, self.current.1 - pages);
        Some(start)
    }

    /// The run to take so few pages from.
    fn next_run(&mut self, pages: u32) -> Option<Extent> {
        let first = match pages {
            1 => self.runs.first_key_value().map(|(start, len)| (*start, *len)),
            _ => self
                .by_len
                .range((pages, 0)..)
                .next()
                .map(|(len, start)| (*start, *len)),
        };
        if self.page_count < SMALL_PAGES {
            return first;
        }
        let mut later = self.runs.range(self.looked_at..).map(|(start, len)| (*start, *len));
        let long = later.find(|(_, len)| *len >= LONG_PAGES);
        self.looked_at = long.map_or(self.page_count, |(start, _)| start);
        let are_few = || self.free_pages < self.page_count / SHORT_SHARE;
        long.or_else(|| if are_few() { None } else { first })
    }

    fn take_run(&mut self, pages: u32) -> Option<u32> {
        let &(len, start) = self.by_len.range((pages, 0)..).next()?;
        self.remove((start, len));
        if len > pages {
            self.insert((start + pages, len - pages));
        }
        Some(start)
    }

    /// Notes that the new state does not use these pages.
    pub(crate) fn free(&mut self, start: u32, pages: u32) {
        match self.freed.last_mut() {
            Some((first, len)) if *first + *len == start => *len += pages,
            _ => self.freed.push((start, pages)),
        }
    }

    /// Gives back the free pages at the end of the file that no one needs.
    pub(crate) fn trim(&mut self) {
        self.return_current();
        while let Some((&start, &len)) = self.runs.last_key_value()
            && start + len == self.page_count
        {
            self.remove((start, len));
            self.page_count = start;
        }
    }

    /// Number of runs that [`all_free`](Space::all_free) will return at most.
    pub(crate) fn runs_max(&self) -> usize {
        self.runs.len() + 1 + self.freed.len() + self.pending.values().map(Vec::len).sum::<usize>()
    }

    /// All that is free once the transaction under way is committed, ascending, neighbours joined.
    pub(crate) fn all_free(&self) -> Vec<Extent> {
        let mut all: Vec<Extent> = self.runs.iter().map(|(start, len)| (*start, *len)).collect();
        all.extend(self.pending.values().flatten());
        all.extend(&self.freed);
        all.extend((self.current.1 > 0).then_some(self.current));
        all.sort_unstable();
        all.dedup_by(|next, run| {
            let joins = run.0 + run.1 == next.0;
            if joins {
                run.1 += next.1;
            }
            joins
        });
        all
    }

    /// The transaction `txn` is committed.
    pub(crate) fn commit(&mut self, txn: u64) {
        self.return_current();
        self.page_count_before = self.page_count;
        for run in mem::take(&mut self.freed) {
            self.retire(run, txn);
        }
        for (start, len) in mem::take(&mut self.allocated) {
            self.born.insert(start, (len, txn));
        }
    }

    /// Moves pages that commit `freed` freed to `pending`, by when they were born.
    fn retire(&mut self, (mut start, len): Extent, freed: u64) {
        let end = start + len;
        while start < end {
            let known = self
                .born
                .range(..=start)
                .next_back()
                .map(|(first, (len, txn))| (*first, first + len, *txn));
            let (next, born) = match known {
                Some((first, born_end, txn)) if start < born_end => {
                    self.born.remove(&first);
                    let next = born_end.min(end);
                    if first < start {
                        self.born.insert(first, (start - first, txn));
                    }
                    if next < born_end {
                        self.born.insert(next, (born_end - next, txn));
                    }
                    (next, txn)
                }
                _ => (self.born.range(start..end).next().map_or(end, |(first, _)| *first), 0),
            };
            self.pending
                .entry((born, freed))
                .or_default()
                .push((start, next - start));
            start = next;
        }
    }

    /// The transaction failed: its pages are free again.
    pub(crate) fn roll_back(&mut self) {
        self.return_current();
        self.freed.clear();
        self.take_back_trimmed();
        for run in mem::take(&mut self.allocated) {
            self.add_within(run);
        }
        self.page_count = self.page_count_before;
    }

    /// Adds the pages of the former end that the transaction trimmed and did not allocate again.
    fn take_back_trimmed(&mut self) {
        if self.page_count < self.page_count_before {
            self.add((self.page_count, self.page_count_before - self.page_count));
            self.page_count = self.page_count_before;
        }
    }

    fn add_within(&mut self, (start, len): Extent) {
        // Allocation may have trimmed and extended: what lies beyond the former end does not exist any more, and what was
        // trimmed has been given back already.
        let end = (start + len).min(self.page_count_before);
        for page in start..end {
            if !self.is_free(page) {
                self.add((page, 1));
            }
        }
    }

    fn is_free(&self, page: u32) -> bool {
        self.runs
            .range(..=page)
            .next_back()
            .is_some_and(|(start, len)| page < start + len)
    }

    fn return_current(&mut self) {
        let current = mem::take(&mut self.current);
        if current.1 > 0 {
            self.add(current);
        }
    }

    /// Adds a run, joined with its neighbours.
    fn add(&mut self, (mut start, mut len): Extent) {
        if len == 0 {
            return;
        }
        if let Some((&before, &before_len)) = self.runs.range(..start).next_back() {
            debug_assert!(before + before_len <= start, "no page is freed twice");
            if before + before_len == start {
                self.remove((before, before_len));
                start = before;
                len += before_len;
            }
        }
        if let Some((&after, &after_len)) = self.runs.range(start..).next() {
            debug_assert!(start + len <= after, "no page is freed twice");
            if start + len == after {
                self.remove((after, after_len));
                len += after_len;
            }
        }
        self.insert((start, len));
    }

    fn insert(&mut self, (start, len): Extent) {
        self.free_pages += len;
        self.runs.insert(start, len);
        self.by_len.insert((len, start));
    }

    fn remove(&mut self, (start, len): Extent) {
        self.free_pages -= len;
        self.runs.remove(&start);
        self.by_len.remove(&(len, start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_pages_come_from_the_front_and_runs_from_the_best_fit() {
        let mut space = Space::new(30, [(5, 2), (10, 8), (20, 3)]);
        assert_eq!(space.allocate(1).ok(), Some(5));
        assert_eq!(space.allocate(3).ok(), Some(20));
        assert_eq!(space.allocate(1).ok(), Some(6));
        assert_eq!(space.allocate(1).ok(), Some(10));
        assert_eq!(
            space.allocate(9).ok(),
            Some(30),
            "no run is long enough: the file grows"
        );
        assert_eq!(space.page_count(), 39);
    }

    #[test]
    fn large_files_take_long_runs_first_and_short_ones_when_they_are_many() {
        let holes = |count: u32| (0..count).map(|i| (2 * i, 1));
        let mut space = Space::new(10_000, holes(1_000).chain([(5_000, 15), (6_000, 16), (7_000, 40)]));
        let mut take = |count: usize| -> Vec<u32> { (0..count).map(|_| space.allocate(1).unwrap()).collect() };
        assert_eq!(take(16), (6_000..6_016).collect::<Vec<_>>());
        assert_eq!(take(40), (7_000..7_040).collect::<Vec<_>>());
        assert_eq!(take(3), [10_000, 10_001, 10_002], "short runs are left alone");
        space.commit(1);
        for page in (2_001..4_999).step_by(2) {
            space.free(page, 1);
        }
        space.commit(2);
        space.release(&[2]);
        assert_eq!(space.allocate(1).ok(), Some(0), "a quarter of the file is free");
    }

    #[test]
    fn what_a_commit_freed_waits_for_older_snapshots() {
        let mut space = Space::new(10, []);
        space.free(4, 2);
        space.commit(7);
        space.release(&[6, 7]);
        assert_eq!(space.allocate(1).ok(), Some(10), "a state before 7 is still in use");
        space.commit(8);
        space.release(&[7, 8]);
        assert_eq!(space.allocate(2).ok(), Some(4));
    }

    #[test]
    fn what_was_born_after_a_held_snapshot_does_not_wait_for_it() {
        let mut space = Space::new(10, []);
        space.release(&[3, 4]);
        assert_eq!(space.allocate(4).ok(), Some(10));
        space.commit(5);
        space.free(8, 5);
        space.commit(6);
        space.release(&[3, 6]);
        assert_eq!(space.allocate(4).ok(), Some(14), "state 3 has pages 8 and 9");
        assert_eq!(space.allocate(3).ok(), Some(10), "but none of those born in 5");
        space.commit(7);
        space.release(&[7]);
        assert_eq!(space.allocate(2).ok(), Some(8));
    }

    #[test]
    fn a_failed_transaction_leaves_everything_as_it_was() {
        let before = || Space::new(30, [(5, 2), (27, 3)]);
        let mut space = before();
        space.free(9, 1);
        for pages in [1, 1, 1, 2] {
            assert!(space.allocate(pages).is_ok());
        }
        space.trim();
        assert!(space.allocate(6).is_ok());
        space.roll_back();
        assert_eq!(space.all_free(), before().all_free());
        assert_eq!(space.page_count(), 30);
    }

    #[test]
    fn trimming_gives_back_the_free_tail() {
        let mut space = Space::new(30, [(5, 2), (27, 3)]);
        space.trim();
        assert_eq!((space.page_count(), space.all_free()), (27, vec![(5, 2)]));
    }
}
