//! A client of the microbenchmarks: asks, and compares every answer with the model.

use super::ask::{Ask, By, Columns, Summary};
use super::model::{Maker, Row, fingerprint};
use super::test::{Choice, Test};
use crate::drive::{Done, Worker};
use crate::random::{Random, Zipf, mix};
use crate::rows::{Arguments, Rows};
use crate::target::Caller;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The rows that a client may ask for.
pub enum Block<'m> {
    /// All of them: nobody changes any.
    All(&'m [Row]),
    /// Those from this id on, which nobody else changes.
    Own(u64, &'m mut [Row]),
    /// All of them: whoever adds one to a row's `k` counts it here.
    Counted(&'m [Row], &'m [AtomicU32]),
}

impl Block<'_> {
    fn first(&self) -> u64 {
        match self {
            Self::All(_) | Self::Counted(..) => 1,
            Self::Own(first, _) => *first,
        }
    }

    fn rows(&self) -> &[Row] {
        match self {
            Self::All(rows) | Self::Counted(rows, _) => rows,
            Self::Own(_, rows) => rows,
        }
    }

    fn get(&self, id: u64) -> Option<Row> {
        let index = id.checked_sub(self.first())?;
        self.rows().get(index as usize).copied()
    }

    fn change(&mut self, id: u64, change: impl FnOnce(&mut Row)) {
        if let Self::Own(first, rows) = self {
            change(&mut rows[(id - *first) as usize]);
        }
    }
}

/// A table, as one client sees it.
pub struct View<'m> {
    /// What rows are made of.
    pub maker: Maker,
    /// Its rows.
    pub block: Block<'m>,
    /// Ids by `k`, for tests that ask by it.
    pub by_k: Option<&'m [(i32, u32)]>,
    /// The id that the next new row takes, and how far apart this client's are.
    pub next_new: (u64, u64),
}

/// A client.
pub struct Client<'m> {
    caller: Caller,
    test: Test,
    views: Vec<View<'m>>,
    /// By table: the number of each of the test's statements.
    prepared: Vec<Vec<usize>>,
    random: Random,
    zipf: Option<Zipf>,
    arguments: Arguments,
    rows: Rows,
    keys: Vec<u64>,
    text: Vec<u8>,
}

impl<'m> Client<'m> {
    /// Prepares the statements of `test` on the tables `names`, of which `views` are the rows.
    pub fn new(
        mut caller: Caller,
        test: &Test,
        names: &[String],
        views: Vec<View<'m>>,
        random: Random,
    ) -> Result<Self, String> {
        let mut prepared = Vec::new();
        for name in names {
            let mut known: Vec<(Ask, usize)> = Vec::new();
            let mut numbers = Vec::new();
            for &ask in &test.asks {
                let number = match known.iter().find(|(other, _)| *other == ask) {
                    Some((_, number)) => *number,
                    None => caller.prepare(&ask.statement(name))?,
                };
                known.push((ask, number));
                numbers.push(number);
            }
            prepared.push(numbers);
        }
        let rows = views.first().map_or(0, |view| view.block.rows().len()) as u64;
        let zipf = (test.choice == Choice::Zipf).then(|| Zipf::new(rows, 0.99));
        Ok(Self {
            caller,
            test: test.clone(),
            views,
            prepared,
            random,
            zipf,
            arguments: Arguments::default(),
            rows: Rows::default(),
            keys: Vec::new(),
            text: Vec::new(),
        })
    }

    fn id(&mut self, table: usize) -> u64 {
        let block = &self.views[table].block;
        let (first, count) = (block.first(), block.rows().len() as u64);
        match self.test.choice {
            Choice::One => first,
            Choice::Zipf => {
                let rank = self.zipf.as_ref().map_or(0, |zipf| zipf.rank(&mut self.random));
                // Rows that are asked for often lie apart.
                first + mix(rank) % count.max(1)
            }
            _ => first + self.random.below(count),
        }
    }

    /// Different ids, into `keys`.
    fn ids(&mut self, table: usize, count: usize) {
        self.keys.clear();
        let block = &self.views[table].block;
        let (first, rows) = (block.first(), block.rows().len() as u64);
        if self.test.choice == Choice::Hot {
            self.keys
                .extend((0..count as u64).map(|i| first + i * (rows / count as u64)));
            return;
        }
        // From a random row on with a random stride that comes round to no row twice: quick, and spread over all of them.
        let start = self.random.below(rows);
        let step = 1 + self.random.below((rows / count as u64).max(1));
        self.keys
            .extend((0..count as u64).map(|i| first + (start + i * step) % rows));
    }

    /// The first of `count` neighbours.
    fn range(&mut self, table: usize, count: u64) -> u64 {
        let block = &self.views[table].block;
        let (first, rows) = (block.first(), block.rows().len() as u64);
        first + self.random.below((rows + 1).saturating_sub(count).max(1))
    }

    fn call(&mut self, table: usize, index: usize) -> Result<(), String> {
        let number = self.prepared[table][index];
        self.caller.call(number, &self.arguments, &mut self.rows)
    }

    fn perform(&mut self, table: usize, index: usize, deleted: &mut Option<u64>) -> Result<u64, String> {
        let ask = self.test.asks[index];
        self.arguments.clear();
        match ask {
            Ask::Points(By::Primary, columns, count) => {
                match count {
                    1 => {
                        let id = self.id(table);
                        self.keys.clear();
                        self.keys.push(id);
                    }
                    _ => self.ids(table, count),
                }
                for &id in &self.keys {
                    self.arguments.int(id as i64);
                }
                self.call(table, index)?;
                let mut expected = Expected::default();
                for &id in &self.keys {
                    expected.add(&self.views[table], id);
                }
                self.check_rows(table, columns, &expected)?;
            }
            Ask::Points(By::Secondary, columns, count) => {
                self.ids(table, count);
                for at in 0..self.keys.len() {
                    let k = self.views[table].block.get(self.keys[at]).map_or(0, |row| row.k);
                    self.keys[at] = k as u64;
                    self.arguments.int(i64::from(k));
                }
                self.call(table, index)?;
                // Several rows may have the same k, and a list may have a k twice; each row is returned once.
                self.keys.sort_unstable();
                self.keys.dedup();
                let mut expected = Expected::default();
                for &k in &self.keys {
                    expected.add_k(&self.views[table], k as i32, k as i32);
                }
                self.check_by_k(table, columns, &expected)?;
            }
            Ask::Range(By::Primary, columns, count) => {
                let from = self.range(table, count);
                self.arguments.int(from as i64).int((from + count - 1) as i64);
                self.call(table, index)?;
                let mut expected = Expected::default();
                (from..from + count).for_each(|id| expected.add(&self.views[table], id));
                self.check_rows(table, columns, &expected)?;
            }
            Ask::Range(By::Secondary, columns, count) => {
                let rows = self.views[table].block.rows().len() as u64;
                let from = self.random.below((rows + 1).saturating_sub(count).max(1)) as i32;
                let to = from + count as i32 - 1;
                self.arguments.int(i64::from(from)).int(i64::from(to));
                self.call(table, index)?;
                let mut expected = Expected::default();
                expected.add_k(&self.views[table], from, to);
                self.check_by_k(table, columns, &expected)?;
            }
            Ask::Summarize(summary, count) => {
                let from = self.range(table, count);
                self.arguments.int(from as i64).int((from + count - 1) as i64);
                self.call(table, index)?;
                self.check_summary(table, summary, from..from + count)?;
            }
            Ask::Scan => {
                self.call(table, index)?;
                if !self.rows.is_empty() {
                    return Err(format!("a scan returned {} rows in place of none", self.rows.len()));
                }
                return Ok(self.views[table].block.rows().len() as u64);
            }
            _ => self.write(ask, table, index, deleted)?,
        }
        Ok(1)
    }

    fn write(&mut self, ask: Ask, table: usize, index: usize, deleted: &mut Option<u64>) -> Result<(), String> {
        let mut affected = 1;
        match ask {
            Ask::UpdateKs(count) => {
                self.ids(table, count);
                for &id in &self.keys {
                    self.arguments.int(id as i64);
                }
                self.call(table, index)?;
                affected = count as u64;
                for &id in &self.keys {
                    self.views[table].block.change(id, |row| row.k += 1);
                }
            }
            Ask::UpdateC => {
                let id = self.id(table);
                let view = &mut self.views[table];
                let version = view.block.get(id).map_or(0, |row| row.version).wrapping_add(1);
                self.arguments.text(|out| view.maker.c(id, version, out)).int(id as i64);
                view.block.change(id, |row| row.version = version);
                self.call(table, index)?;
            }
            Ask::Delete => {
                let id = self.id(table);
                self.arguments.int(id as i64);
                self.call(table, index)?;
                let view = &mut self.views[table];
                affected = u64::from(view.block.get(id).is_some_and(|row| row.is_present));
                view.block.change(id, |row| row.is_present = false);
                *deleted = Some(id);
            }
            Ask::Insert(_) => {
                let view = &mut self.views[table];
                let (id, version) = match deleted.take() {
                    Some(id) => (id, view.block.get(id).map_or(0, |row| row.version).wrapping_add(1)),
                    None => {
                        let (next, step) = view.next_new;
                        view.next_new.0 += step;
                        (next, 0)
                    }
                };
                let k = view.maker.k(id);
                self.arguments.int(id as i64).int(i64::from(k));
                self.arguments.text(|out| view.maker.c(id, version, out));
                self.arguments.text(|out| view.maker.pad(id, out));
                if view.block.get(id).is_some() {
                    view.block.change(id, |row| {
                        *row = Row {
                            k,
                            version,
                            is_present: true,
                        };
                    });
                }
                self.call(table, index)?;
            }
            _ => {
                let id = self.id(table);
                self.arguments.int(id as i64);
                self.call(table, index)?;
                match &mut self.views[table].block {
                    Block::Counted(_, added) => {
                        added[(id - 1) as usize].fetch_add(1, Relaxed);
                    }
                    block => block.change(id, |row| row.k += 1),
                }
            }
        }
        match self.rows.affected {
            found if found == affected => Ok(()),
            found => Err(format!(
                "a wrong answer: {ask:?} changed {found} rows in place of {affected}"
            )),
        }
    }

    /// Rows that have an id first, or are one.
    fn check_rows(&mut self, table: usize, columns: Columns, expected: &Expected) -> Result<(), String> {
        let view = &self.views[table];
        let mut found = Expected::default();
        for row in 0..self.rows.len() {
            let id = self.rows.int(row, 0)? as u64;
            found.count += 1;
            found.ids = found.ids.wrapping_add(mix(id));
            let model = view
                .block
                .get(id)
                .ok_or_else(|| format!("a wrong answer: there is no row {id}"))?;
            let c_at = match columns {
                Columns::Covered => continue,
                Columns::NotCovered => 1,
                Columns::All => 2,
            };
            self.text.clear();
            view.maker.c(id, model.version, &mut self.text);
            let mut is_right = self.rows.bytes(row, c_at)? == self.text;
            if columns == Columns::All {
                self.text.clear();
                view.maker.pad(id, &mut self.text);
                is_right &= self.rows.bytes(row, 3)? == self.text && self.rows.int(row, 1)? == i64::from(model.k);
            }
            if !is_right {
                return Err(format!("a wrong answer: row {id} is not what was written"));
            }
        }
        expected.compare(&found)
    }

    /// Rows found by `k`, of which covered ones have nothing else.
    fn check_by_k(&mut self, table: usize, columns: Columns, expected: &Expected) -> Result<(), String> {
        if columns != Columns::Covered {
            let by_id = Expected {
                count: expected.count,
                ids: expected.ids,
                ..Expected::default()
            };
            return self.check_rows(table, columns, &by_id);
        }
        let mut found = Expected::default();
        for row in 0..self.rows.len() {
            found.count += 1;
            found.ks = found.ks.wrapping_add(mix(self.rows.int(row, 0)? as u64));
        }
        let by_k = Expected {
            count: expected.count,
            ks: expected.ks,
            ..Expected::default()
        };
        by_k.compare(&found)
    }

    fn check_summary(&mut self, table: usize, summary: Summary, ids: std::ops::Range<u64>) -> Result<(), String> {
        let view = &self.views[table];
        let present = || {
            ids.clone()
                .filter_map(|id| Some((id, view.block.get(id)?)))
                .filter(|(_, row)| row.is_present)
        };
        if matches!(summary, Summary::Count | Summary::Sum) {
            let expected = match summary {
                Summary::Count => present().count() as i64,
                _ => present().map(|(_, row)| i64::from(row.k)).sum(),
            };
            let found = self.rows.int(0, 0)?;
            return match found == expected {
                true => Ok(()),
                false => Err(format!(
                    "a wrong answer: {summary:?} of {ids:?} is {found} in place of {expected}"
                )),
            };
        }
        let (mut count, mut sum) = (0, 0u64);
        for (id, row) in present() {
            self.text.clear();
            view.maker.c(id, row.version, &mut self.text);
            count += 1;
            sum = sum.wrapping_add(fingerprint(&self.text));
        }
        let mut found = 0u64;
        for row in 0..self.rows.len() {
            let text = self.rows.bytes(row, 0)?;
            found = found.wrapping_add(fingerprint(text));
            let is_sorted = summary == Summary::Simple || row == 0 || self.rows.bytes(row - 1, 0)? <= text;
            if !is_sorted {
                return Err(format!("a wrong answer: {summary:?} of {ids:?} is out of order"));
            }
        }
        if self.rows.len() != count || sum != found {
            return Err(format!(
                "a wrong answer: {summary:?} of {ids:?} has {} texts in place of {count}, or others",
                self.rows.len()
            ));
        }
        Ok(())
    }
}

impl Worker for Client<'_> {
    fn step(&mut self) -> Result<Option<Done>, String> {
        let table = self.random.below(self.views.len() as u64) as usize;
        self.caller.begin_operation();
        if self.test.is_transaction {
            self.caller.begin()?;
        }
        let (mut work, mut deleted) = (1, None);
        for index in 0..self.test.asks.len() {
            work = self.perform(table, index, &mut deleted)?;
        }
        if self.test.is_transaction {
            self.caller.commit()?;
        }
        Ok(Some(Done {
            busy: self.caller.busy,
            last: self.caller.last,
            work,
        }))
    }
}

/// What tells one set of rows from another, in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Expected {
    count: u64,
    ids: u64,
    ks: u64,
}

impl Expected {
    fn add(&mut self, view: &View<'_>, id: u64) {
        if view.block.get(id).is_some_and(|row| row.is_present) {
            self.count += 1;
            self.ids = self.ids.wrapping_add(mix(id));
        }
    }

    /// The rows whose `k` lies between `from` and `to`.
    fn add_k(&mut self, view: &View<'_>, from: i32, to: i32) {
        let by_k = view.by_k.unwrap_or_default();
        let begin = by_k.partition_point(|(k, _)| *k < from);
        for &(k, id) in by_k[begin..].iter().take_while(|(k, _)| *k <= to) {
            self.count += 1;
            self.ids = self.ids.wrapping_add(mix(u64::from(id)));
            self.ks = self.ks.wrapping_add(mix(k as u64));
        }
    }

    fn compare(&self, found: &Self) -> Result<(), String> {
        match self == found {
            true => Ok(()),
            false => Err(format!(
                "a wrong answer: {} rows in place of {}, or others than those asked for",
                found.count, self.count
            )),
        }
    }
}
