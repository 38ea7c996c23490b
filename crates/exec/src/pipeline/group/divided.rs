//! Many groups that several threads make: rows are divided by the values at a path of the key, and the groups of each part are in one place, which one thread
//! at a time adds to. So nothing has to become one in the end.

use super::numbered::{Numbered, hash_of};
use crate::columns::ColumnRows;
use crate::columns::fields::column;
use crate::helper;
use nestor_columns::{Column, Places};
use nestor_model::vector::Seed;
use nestor_model::{Result, Str};
use nestor_query::env::OpContext;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// With so many groups of a thread rows are divided. Tests have few rows.
pub(super) const MANY: usize = if cfg!(debug_assertions) { 64 } else { 32 * 1024 };

/// Parts, more than threads: one that somebody is at is left for later.
const PARTS: usize = 8;

/// Rows that wait for a part are added when there are so many; with many more it is waited for.
const WAITING: usize = if cfg!(debug_assertions) { 16 } else { 2048 };
const WAITING_MAX: usize = 16 * WAITING;

/// No part is known yet.
const NONE: u8 = u8::MAX;

/// Rows, and the number of what they came with.
pub(super) type Given = (u32, ColumnRows);

/// Such groups.
pub(super) struct Divided {
    /// Which part of the key, and its path.
    leaf: usize,
    path: Str,
    seed: Seed,
    parts: Vec<Mutex<Numbered>>,
    /// Bytes of all of them.
    bytes: AtomicUsize,
}

impl Divided {
    /// No groups, divided by what divides these; `None` when nothing does.
    pub(super) fn of(groups: &Numbered) -> Option<Self> {
        let leaf = groups.dividing()?;
        let parts = (0..PARTS).map(|_| groups.empty().map(Mutex::new));
        Some(Self {
            leaf,
            path: groups.path(leaf)?.into(),
            seed: Seed::default(),
            parts: parts.collect::<Option<_>>()?,
            bytes: AtomicUsize::new(0),
        })
    }

    /// Bytes of the groups.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    fn part_of(hash: u64) -> u8 {
        (hash >> 40) as u8 % PARTS as u8
    }

    /// Divides rows among those that wait for parts.
    pub(super) fn divide(&self, (number, rows): &Given, waiting: &mut Vec<Vec<Given>>) {
        waiting.resize_with(PARTS, Vec::new);
        let room = rows.len() / PARTS * 2;
        let mut divided: Vec<Vec<u32>> = (0..PARTS).map(|_| Vec::with_capacity(room)).collect();
        let mut known = Vec::new();
        let column = column(&rows.segment, &self.path);
        for places in rows.chunks() {
            let parts = self.parts_of(column, &places, &mut known);
            let mut parts = parts.into_iter();
            places.each(|row| {
                if let Some(part) = parts.next() {
                    divided[usize::from(part)].push((row - rows.rows.start) as u32);
                }
            });
        }
        for (waiting, picked) in waiting.iter_mut().zip(divided) {
            if !picked.is_empty() {
                let rows = ColumnRows {
                    segment: rows.segment.clone(),
                    rows: rows.rows.clone(),
                    picked: Some(picked),
                };
                waiting.push((*number, rows));
            }
        }
    }

    /// The part that each row belongs to; `known`: of a column with few values those of these.
    fn parts_of(&self, column: Option<&Column>, places: &Places<'_>, known: &mut Vec<u8>) -> Vec<u8> {
        let Some(column) = column else {
            return vec![Self::part_of(0); places.len()];
        };
        let of_row = |row: usize| Self::part_of(hash_of(column.value(row), &self.seed));
        let Some((count, numbers)) = column.numbers(places) else {
            return places.map(of_row);
        };
        known.resize(count, NONE);
        let mut numbers = numbers.into_iter();
        places.map(|row| {
            let number = numbers.next().unwrap_or_default() as usize;
            if known[number] == NONE {
                known[number] = of_row(row);
            }
            known[number]
        })
    }

    /// Adds the rows that wait to their parts, those of which there are enough, or all. What cannot be told apart is left.
    ///
    /// Errors: those of expressions, and of the interrupt.
    pub(super) fn add(
        &self,
        waiting: &mut [Vec<Given>],
        left: &mut Vec<Given>,
        all: bool,
        op: &OpContext,
    ) -> Result<()> {
        for is_last in [false, true] {
            for (part, waiting) in self.parts.iter().zip(waiting.iter_mut()) {
                let rows: usize = waiting.iter().map(|(_, rows)| rows.len()).sum();
                if rows == 0 || !all && rows < WAITING {
                    continue;
                }
                let is_urgent = is_last && (all || rows >= WAITING_MAX);
                let Some(mut groups) = helper::lock(part, is_urgent) else {
                    continue;
                };
                let before = groups.bytes();
                for (number, rows) in waiting.drain(..) {
                    if let Some(chunks) = groups.add(&rows, number, op)? {
                        left.push((number, rows.without(chunks)));
                    }
                }
                self.bytes.fetch_add(groups.bytes().saturating_sub(before), Relaxed);
            }
        }
        Ok(())
    }

    /// Takes groups over; gives back which of them cannot be told apart from others.
    ///
    /// Errors: those of the interrupt.
    pub(super) fn merge(&self, groups: &Numbered) -> Result<Vec<u32>> {
        let mut places: Vec<Vec<u32>> = vec![Vec::new(); PARTS];
        for (group, hash) in (0..).zip(groups.hashes(self.leaf, &self.seed)) {
            places[usize::from(Self::part_of(hash))].push(group);
        }
        let keys = groups.keys();
        let mut apart = Vec::new();
        for (part, places) in self.parts.iter().zip(&places).filter(|(_, places)| !places.is_empty()) {
            let Some(mut own) = helper::lock(part, true) else {
                continue;
            };
            let before = own.bytes();
            if !own.merge(groups, &keys, places)? {
                apart.extend_from_slice(places);
            }
            self.bytes.fetch_add(own.bytes().saturating_sub(before), Relaxed);
        }
        Ok(apart)
    }

    /// Takes the groups out.
    pub(super) fn take(&self) -> Vec<Numbered> {
        let parts = self.parts.iter().filter_map(|part| helper::lock(part, true)?.take());
        parts.collect()
    }
}
