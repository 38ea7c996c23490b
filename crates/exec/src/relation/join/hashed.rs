//! Joins by equal keys: the right input is kept in a hash table, and the left one goes by, chunk by chunk.
//!
//! Where rows of the right input are wanted for rows of the left one only, and these may be few, some of the left input is read before. If that was
//! all of it, the right input is told which keys are wanted.
//!
//! Where the right input is a scan that is looked up, the table holds what an index finds for the keys of one left chunk, and is made anew for the next.
//!
//! Rows that may be pairs are found for some rows of a left chunk at a time, so that one left row with many pairs takes no more memory than many
//! with one. Of a left row whose pairs come in several such batches it is known from one to the next whether it had one.
//!
//! A right input for which there is no room goes to files with the left rows that may have a pair there ([`super::divided`]).

use super::divided::{Divided, Layout, Pair};
use super::keys::{Keys, keys_of};
use super::table::Table;
use crate::interner::Recent;
use crate::kept::Kept;
use crate::relation::restrict::{Numbers, Restriction};
use crate::relation::rows::{Append, Values};
use crate::relation::twin::{Share, Twin};
use crate::relation::{BoxRows, Drained, Rows, Run, build, drain, scan};
use nestor_model::statement::{ROW, Scope, work};
use nestor_model::vector::{Builder, NO_ROW, Vector};
use nestor_model::{Result, Value};
use nestor_planner::relation::chunk::ROWS;
use nestor_planner::relation::{Chunk, Join, JoinKind, Relation, Scalar, Scan, Tuple};
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes that the pairs of a chunk would have as rows of their own, at most. They share large values, but what is computed of these does not.
const PAIRS_BYTES_MAX: usize = 16 << 20;

/// Left rows, and their bytes, that are read before the right input, at most.
const AHEAD_ROWS_MAX: usize = 64 * ROWS;
const AHEAD_BYTES_MAX: usize = 16 << 20;

struct Hashed<S> {
    kind: JoinKind,
    /// The left input, thought to be few rows, is read first.
    left_first: bool,
    /// Left rows that have been read already, with their keys, and whether there are no others.
    ahead: VecDeque<(Chunk, Keys)>,
    left_is_over: bool,
    left: BoxRows<S>,
    right: BoxRows<S>,
    /// Keys over left rows, and over right rows behind the columns of the left.
    keys: (Vec<S>, Vec<S>),
    condition: Option<S>,
    /// Which columns of both sides the condition looks at.
    used: Vec<bool>,
    widths: (usize, usize),
    /// What the table takes, and the rows that were read ahead.
    kept: Kept,
    kept_ahead: Kept,
    /// The right input, or the part of it that is in memory; made by the first pull.
    table: Option<Arc<Table>>,
    /// Which of its rows had a pair, where that matters.
    paired: Vec<bool>,
    /// The texts that were looked for in it last.
    recent: Vec<Recent>,
    probe: Option<Probe>,
    /// Rows of the right input that have been asked whether they had a pair, once the left one is at its end.
    rest: Option<usize>,
    /// Rows that wait to be pulled one by one.
    waiting: Drained,
    /// How the right input is looked up, as long as it is, and left rows for which it was not yet.
    lookup: Option<Lookup<S>>,
    later: Option<Chunk>,
    /// The values of right rows are wanted.
    is_read: bool,
    /// What left and right rows are in files.
    layouts: (Layout, Layout),
    /// Rows that are on their way to files, the files that are joined now instead of the inputs, and those that wait.
    divided: Option<Divided>,
    pair: Option<Pair>,
    pairs: Vec<Pair>,
}

/// A right input of which indexes find the rows for the keys of some left rows.
struct Lookup<S> {
    /// Its scans, whose rows come one after the other.
    scans: Vec<Scan<S>>,
    /// The columns of each scan that are the keys.
    columns: Vec<usize>,
    /// The number of the first scan's node, and whether nodes count.
    numbering: (usize, bool),
    /// Left rows that are looked up together.
    together: usize,
}

/// Rows that are found for left rows together, about.
const FOUND_TOGETHER: usize = 16 * ROWS;

impl<S: Scalar> Lookup<S> {
    fn of(plan: &Join<S>, numbering: (usize, bool)) -> Option<Self> {
        let (first, counts) = numbering;
        let (scans, first) = match &plan.right {
            Relation::Scan(scan) => (vec![scan.clone()], first),
            Relation::Append { inputs } => {
                let scans = inputs.iter().map(|input| match input {
                    Relation::Scan(scan) => Some(scan.clone()),
                    _ => None,
                });
                (scans.collect::<Option<Vec<_>>>()?, first + 1)
            }
            _ => return None,
        };
        let width = plan.left.width();
        let columns = plan.keys.iter().map(|(_, key)| key.place()?.checked_sub(width));
        let are_asked = !scans.is_empty() && scans.iter().all(|scan| scan.looked_up);
        let columns = columns.collect::<Option<Vec<usize>>>().filter(|_| are_asked)?;
        Some(Self {
            scans,
            columns,
            numbering: (first, counts),
            together: ROWS,
        })
    }

    /// The rows that the indexes have for keys; `None` where one of them cannot find them.
    fn found(&self, keys: &[Arc<Vector>], run: &Run<'_, '_, S>) -> Result<Option<Vec<BoxRows<S>>>> {
        let (first, counts) = self.numbering;
        let nodes = run.shared.counts.nodes.as_ref();
        let mut out = Vec::with_capacity(self.scans.len());
        for (number, scan) in (first..).zip(&self.scans) {
            let above = nodes.map(|nodes| nodes.current.replace(number));
            let found = run.sources.look_up(scan, &self.columns, keys, run.batch);
            let found = found.map(|found| {
                let wanted = self.columns.iter().zip(keys).filter_map(|(column, values)| {
                    let numbers = Numbers::of_vector(values)?;
                    Some((*column, Restriction::Among(Arc::new(numbers))))
                });
                found.map(|found| scan::opened(scan, found, wanted, run))
            });
            if let (Some(nodes), Some(above)) = (nodes, above) {
                nodes.current.set(above);
            }
            match found? {
                Some(found) => out.push(build::counted(found, number, counts)),
                None => return Ok(None),
            }
        }
        Ok(Some(out))
    }

    /// All rows of the scans.
    fn whole(&self) -> Vec<BoxRows<S>> {
        let (first, counts) = self.numbering;
        let each = (first..).zip(&self.scans);
        each.map(|(number, scan)| build::counted(scan::scan(scan), number, counts))
            .collect()
    }
}

/// The rows of inputs, one after the other.
fn appended<S: Scalar>(mut inputs: Vec<BoxRows<S>>) -> BoxRows<S> {
    match (inputs.len(), inputs.pop()) {
        (1, Some(only)) => only,
        (_, last) => {
            inputs.extend(last);
            Box::new(Append { inputs, at: 0 })
        }
    }
}

/// A chunk of the left input on its way.
struct Probe {
    chunk: Chunk,
    /// The number of its first row in the file that it comes from.
    number: u64,
    /// Bytes of its largest row.
    heaviest: usize,
    /// The first row of each row's chain.
    firsts: Vec<u32>,
    /// The row whose pairs are next, which of the chain is, and whether it had a pair before.
    row: usize,
    next: u32,
    paired: bool,
}

pub(super) fn join<S: Scalar>(
    plan: &Join<S>,
    left: BoxRows<S>,
    right: BoxRows<S>,
    numbering: (usize, bool),
) -> BoxRows<S> {
    let widths = (plan.left.width(), plan.right.width());
    let keys = plan.keys.iter().cloned().unzip();
    Box::new(Hashed {
        left_first: plan.left_first,
        lookup: Lookup::of(plan, numbering),
        ..Hashed::new(plan.kind, (left, right), keys, plan.condition.clone(), widths)
    })
}

/// So many rows of nulls.
fn nulls(columns: usize, rows: usize) -> Vec<Arc<Vector>> {
    let null = Arc::new(Vector::same(Value::Null, rows));
    (0..columns).map(|_| null.clone()).collect()
}

impl<S: Scalar> Hashed<S> {
    /// A join of two inputs, with keys over rows of each and the columns that each has.
    fn new(
        kind: JoinKind,
        (left, right): (BoxRows<S>, BoxRows<S>),
        keys: (Vec<S>, Vec<S>),
        condition: Option<S>,
        widths: (usize, usize),
    ) -> Self {
        let is_read = condition.is_some() || !matches!(kind, JoinKind::Semi | JoinKind::Anti);
        let columns = |condition: &S| condition.columns(widths.0 + widths.1);
        Self {
            kind,
            left_first: false,
            ahead: VecDeque::new(),
            left_is_over: false,
            left,
            right,
            layouts: (Layout::new(&keys.0, 0, true), Layout::new(&keys.1, widths.0, is_read)),
            keys,
            used: condition.as_ref().map_or_else(Vec::new, columns),
            condition,
            widths,
            kept: Kept::default(),
            kept_ahead: Kept::default(),
            table: None,
            paired: Vec::new(),
            recent: Vec::new(),
            probe: None,
            rest: None,
            waiting: Drained::default(),
            lookup: None,
            later: None,
            is_read,
            divided: None,
            pair: None,
            pairs: Vec::new(),
        }
    }

    /// Reads some of the left input, and tells the right one which keys are wanted if that is all of it.
    fn read_ahead(&mut self, run: &Run<'_, '_, S>) -> Result<()> {
        let (mut rows, mut bytes) = (0, 0);
        let bytes_max = run
            .batch
            .room()
            .map_or(AHEAD_BYTES_MAX, |room| AHEAD_BYTES_MAX.min(room / 2));
        while rows < AHEAD_ROWS_MAX && bytes < bytes_max {
            let Some(chunk) = self.left.next_chunk(run)? else {
                self.left_is_over = true;
                self.restrict_right();
                break;
            };
            let weight = chunk.weight();
            (rows, bytes) = (rows + chunk.rows, bytes + weight);
            let _values = Scope::begin();
            let keys = keys_of(&self.keys.0, &chunk, run)?;
            let of_keys: usize = keys.parts.iter().map(|part| part.weight()).sum();
            self.kept_ahead.grow_spilling(weight + of_keys)?;
            self.ahead.push_back((chunk, keys));
        }
        Ok(())
    }

    /// Tells the right input which keys the left one has, of which all has been read.
    fn restrict_right(&mut self) {
        for (at, key) in self.keys.1.iter().enumerate() {
            let place = key.place().and_then(|place| place.checked_sub(self.widths.0));
            let values = self.ahead.iter().map(|(_, keys)| &*keys.parts[at]);
            if let Some(place) = place
                && let Some(numbers) = Numbers::of_vectors(values)
            {
                self.right.restrict(place, &Restriction::Among(Arc::new(numbers)));
            }
        }
    }

    fn keeps_right(&self) -> bool {
        matches!(self.kind, JoinKind::Right | JoinKind::Full)
    }

    /// The keys of rows of the right input.
    fn keys_of_right(&self, chunk: &Chunk, run: &Run<'_, '_, S>) -> Result<Keys> {
        let mut wide = nulls(self.widths.0, chunk.rows);
        wide.extend(chunk.columns.iter().cloned());
        let wide = Chunk {
            columns: wide,
            rows: chunk.rows,
        };
        let _values = Scope::begin();
        keys_of(&self.keys.1, &wide, run)
    }

    /// Makes the table of the right rows, or of those for which there is room.
    fn read_right(&mut self, run: &Run<'_, '_, S>) -> Result<Table> {
        let mut table = Table::new(self.widths.1, self.keys.1.len());
        let mut rows = 0;
        if self.pair.is_some() {
            while let Some((chunk, keys)) = self.right_of_pair(run)? {
                if !self.take_right(&mut table, (&chunk, &keys), &mut rows, run)? {
                    break;
                }
            }
        } else {
            // This operator is asked what becomes of the rows while they are read.
            let mut right = std::mem::replace(&mut self.right, Values::none());
            let drained = drain(&mut right, run, &mut |chunk| {
                let keys = self.keys_of_right(&chunk, run)?;
                self.take_right(&mut table, (&chunk, &keys), &mut rows, run).map(drop)
            });
            self.right = right;
            drained?;
        }
        if let Some(divided) = &mut self.divided {
            divided.right_rows = rows;
            divided.right_is_over(run)?;
        }
        if self.keeps_right() {
            self.paired = vec![false; table.next.len()];
        }
        Ok(table)
    }

    /// The next right rows of the files that are joined.
    fn right_of_pair(&mut self, run: &Run<'_, '_, S>) -> Result<Option<(Chunk, Keys)>> {
        let Some(pair) = &mut self.pair else { return Ok(None) };
        let chunk = Rows::<S>::next_chunk(&mut pair.right, run)?;
        Ok(chunk.map(|chunk| self.layouts.1.read(chunk)))
    }

    /// Adds right rows to a table, so many of which have been read, and makes room where there is none; `false` where no others fit and the rest
    /// has to wait.
    fn take_right(
        &mut self,
        table: &mut Table,
        (chunk, keys): (&Chunk, &Keys),
        rows: &mut u64,
        run: &Run<'_, '_, S>,
    ) -> Result<bool> {
        work(ROW / 2 * chunk.rows)?;
        *rows += chunk.rows as u64;
        self.add_right(table, chunk, keys, run)?;
        let room = run.batch.room();
        let in_blocks = self.pair.as_ref().is_some_and(|pair| pair.in_blocks);
        while room.is_some_and(|room| self.kept.bytes() > room) {
            if in_blocks {
                return Ok(false);
            }
            if table.next.is_empty() {
                break;
            }
            let none = Table::new(self.widths.1, self.keys.1.len());
            *table = self.halved(std::mem::replace(table, none), *rows, run)?;
        }
        Ok(true)
    }

    /// Adds right rows to a table, but for those that go to files.
    fn add_right(&mut self, table: &mut Table, chunk: &Chunk, keys: &Keys, run: &Run<'_, '_, S>) -> Result<()> {
        // A row without a key has no pair.
        let mut places: Option<Vec<u32>> = (keys.may_be_null() && !self.keeps_right()).then(|| {
            let rows = 0..chunk.rows as u32;
            rows.filter(|row| !keys.is_null(*row as usize)).collect()
        });
        if let Some(divided) = &mut self.divided {
            places = Some(divided.put_right((chunk, keys), places, &self.layouts.1, run)?);
        }
        table.heaviest = table.heaviest.max(chunk.heaviest());
        let is_null = |row: usize| keys.is_null(row);
        let mut bytes = table.add((chunk, &keys.parts), places.as_deref(), &is_null, self.is_read);
        let rows = places.as_ref().map_or(chunk.rows, Vec::len);
        if self.is_read {
            bytes += chunk.weight() / chunk.rows.max(1) * rows;
        }
        self.kept.grow_within(run.batch.room(), bytes)
    }

    /// What is left of a table when half of what is in memory goes to files. So many rows of the right input have been read.
    fn halved(&mut self, table: Table, rows: u64, run: &Run<'_, '_, S>) -> Result<Table> {
        match &mut self.divided {
            Some(divided) => divided.halve(),
            none => {
                let level = self.pair.as_ref().map_or(0, |pair| pair.level);
                none.insert(Divided::new(level, rows)?).halve();
            }
        }
        let before = self.kept.bytes();
        let mut left = Table::new(self.widths.1, self.keys.1.len());
        let (all, keys) = table.into_rows();
        let keys = Keys::of(keys);
        let places: Vec<u32> = (0..all.rows as u32).collect();
        for places in places.chunks(ROWS) {
            work(ROW / 2 * places.len())?;
            self.add_right(&mut left, &all.gather(places), &keys.gather(places), run)?;
        }
        self.kept.shrink(before);
        Ok(left)
    }

    /// Tells the left input which keys there are, if its rows are wanted for pairs only.
    fn restrict_left(&mut self, table: &Table) {
        let is_filter = matches!(self.kind, JoinKind::Inner | JoinKind::Semi | JoinKind::Right);
        // Of rows in files nobody knows the keys.
        if !is_filter || self.divided.is_some() || self.pair.is_some() {
            return;
        }
        for (at, key) in self.keys.0.iter().enumerate() {
            if let (Some(place), Some(numbers)) = (key.place(), table.numbers(at)) {
                self.left.restrict(place, &Restriction::Among(Arc::new(numbers)));
            }
        }
    }

    /// The next rows of the left input, or of the file in its place.
    fn left_chunk(&mut self, run: &Run<'_, '_, S>) -> Result<Option<(Chunk, Keys)>> {
        if let Some(pair) = &mut self.pair {
            let Some(left) = &mut pair.left else { return Ok(None) };
            let chunk = Rows::<S>::next_chunk(left, run)?;
            return Ok(chunk.map(|chunk| self.layouts.0.read(chunk)));
        }
        if let Some((chunk, keys)) = self.ahead.pop_front() {
            self.kept_ahead.shrink_by_one_of(self.ahead.len() + 1);
            return Ok(Some((chunk, keys)));
        }
        // What was found for some left rows, and went to files, is joined before the next are looked up.
        if self.left_is_over || self.lookup.is_some() && self.divided.is_some() {
            return Ok(None);
        }
        let chunk = match self.later.take() {
            None => self.left.next_chunk(run)?,
            later => later,
        };
        let Some(mut chunk) = chunk else {
            self.left_is_over = true;
            return Ok(None);
        };
        let together = self.lookup.as_ref().map_or(usize::MAX, |lookup| lookup.together);
        if chunk.rows > together {
            let places: Vec<u32> = (0..chunk.rows as u32).collect();
            let (now, later) = places.split_at(together);
            self.later = Some(chunk.gather(later));
            chunk = chunk.gather(now);
        }
        let _values = Scope::begin();
        let keys = keys_of(&self.keys.0, &chunk, run)?;
        Ok(Some((chunk, keys)))
    }

    /// The next chunk of the left input, with the chains of its rows.
    fn read_left(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Probe>> {
        while let Some((mut chunk, mut keys)) = self.left_chunk(run)? {
            work(ROW / 2 * chunk.rows)?;
            let _values = Scope::begin();
            if self.lookup.is_some() && self.pair.is_none() {
                self.look_up(&keys.parts, chunk.rows, run)?;
            }
            if let Some(divided) = &mut self.divided {
                let stay = divided.put_left(&chunk, &keys, &self.layouts.0, run)?;
                if stay.is_empty() {
                    continue;
                }
                if stay.len() < chunk.rows {
                    (chunk, keys) = (chunk.gather(&stay), keys.gather(&stay));
                }
            }
            let Some(table) = &self.table else { return Ok(None) };
            let is_null = |row: usize| keys.is_null(row);
            let mut firsts = table.firsts(&keys.parts, chunk.rows, &is_null, &mut self.recent);
            let mut number = 0;
            if let Some(pair) = &mut self.pair {
                number = pair.seen.row;
                pair.seen.row += chunk.rows as u64;
                if matches!(self.kind, JoinKind::Semi | JoinKind::Anti) {
                    let rows = firsts.iter_mut().zip(number..);
                    let had_pair = rows.filter(|(_, row)| pair.seen.has(*row));
                    had_pair.for_each(|(first, _)| *first = NO_ROW);
                }
            }
            return Ok(Some(Probe {
                next: firsts.first().copied().unwrap_or(NO_ROW),
                heaviest: chunk.heaviest(),
                number,
                chunk,
                firsts,
                row: 0,
                paired: false,
            }));
        }
        Ok(None)
    }

    /// Makes the table of the right rows that have these keys, or of all if no index finds them.
    fn look_up(&mut self, keys: &[Arc<Vector>], rows: usize, run: &Run<'_, '_, S>) -> Result<()> {
        let Some(lookup) = &mut self.lookup else { return Ok(()) };
        let found = lookup.found(keys, run);
        self.table = None;
        self.recent.clear();
        self.kept.clear();
        match found? {
            Some(found) => {
                self.right = appended(found);
                let table = self.read_right(run)?;
                if let Some(lookup) = &mut self.lookup {
                    let each = table.next.len().div_ceil(rows.max(1)).max(1);
                    lookup.together = (FOUND_TOGETHER / each).clamp(1, ROWS);
                }
                self.table = Some(Arc::new(table));
            }
            None => {
                self.right = appended(lookup.whole());
                // All left rows from here on are paired with all of the table.
                self.lookup = None;
                self.table = Some(Arc::new(self.read_right(run)?));
            }
        }
        Ok(())
    }

    /// The rows of the left chunk that have a pair, or that have none, where only that is asked.
    fn filtered(&mut self, probe: &Probe) -> Result<Chunk> {
        let has_pair = self.kind == JoinKind::Semi;
        let rows = (0u32..).zip(&probe.firsts);
        let places: Vec<u32> = match self.pair.as_mut().filter(|pair| pair.in_blocks) {
            None => rows
                .filter(|(_, first)| (**first != NO_ROW) == has_pair)
                .map(|(row, _)| row)
                .collect(),
            Some(pair) => {
                let mut places = Vec::new();
                for (row, first) in rows {
                    let (number, is_paired) = (probe.number + u64::from(row), *first != NO_ROW);
                    if is_paired {
                        pair.seen.add(number)?;
                    }
                    if is_paired && has_pair || !has_pair && pair.is_last() && !pair.seen.has(number) {
                        places.push(row);
                    }
                }
                places
            }
        };
        Ok(match places.len() == probe.chunk.rows {
            true => probe.chunk.clone(),
            false => probe.chunk.gather(&places),
        })
    }

    /// The next pairs of a left chunk, about as many as a chunk has rows, and what becomes of rows without any.
    fn pairs(&mut self, probe: &mut Probe, run: &Run<'_, '_, S>) -> Result<Chunk> {
        let Some(table) = &self.table else {
            return Ok(Chunk::default());
        };
        // Which rows of both sides are candidates.
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let (from, had_pair) = (probe.row, probe.paired);
        let rows_max = ROWS
            .min(PAIRS_BYTES_MAX / (probe.heaviest + table.heaviest).max(1))
            .max(1);
        while probe.row < probe.firsts.len() && left.len() < rows_max {
            match probe.next {
                NO_ROW => {
                    probe.row += 1;
                    probe.next = probe.firsts.get(probe.row).copied().unwrap_or(NO_ROW);
                }
                next => {
                    left.push(probe.row as u32);
                    right.push(next);
                    probe.next = table.next[next as usize];
                }
            }
        }
        work(ROW * left.len())?;
        let _values = Scope::begin();
        let side = |of: &Builder, places: &[u32]| Arc::new(of.so_far().gather(places));
        let places = match &self.condition {
            None => None,
            Some(condition) => {
                let is_used = |column: usize| self.used[column];
                let mut candidates = probe.chunk.gather_used(&left, &is_used);
                let null = Arc::new(Vector::same(Value::Null, left.len()));
                let columns = table.columns.iter().enumerate();
                let columns = columns.map(|(at, column)| match is_used(self.widths.0 + at) {
                    true => side(column, &right),
                    false => null.clone(),
                });
                candidates.columns.extend(columns);
                condition.places(&candidates, &run.env)?
            }
        };
        if let Some(places) = places {
            let pick = |of: &[u32]| places.iter().map(|at| of[*at as usize]).collect();
            (left, right) = (pick(&left), pick(&right));
        }
        if !self.paired.is_empty() {
            right.iter().for_each(|row| self.paired[*row as usize] = true);
        }
        let keeps_unpaired = matches!(self.kind, JoinKind::Left | JoinKind::Full);
        let is_filter = matches!(self.kind, JoinKind::Semi | JoinKind::Anti);
        if keeps_unpaired || is_filter {
            // Rows whose pairs have all been looked at, in their order; the one behind them may have more.
            let (mut rows, mut others, mut at) = (Vec::new(), Vec::new(), 0);
            for row in from..=probe.row.min(probe.firsts.len().saturating_sub(1)) {
                let begin = at;
                while left.get(at) == Some(&(row as u32)) {
                    at += 1;
                }
                let is_paired = at > begin || row == from && had_pair;
                let is_over = row < probe.row;
                // Of a file that is read block by block the others are not known yet.
                let mut has_none = is_over && !is_paired;
                if let Some(pair) = self.pair.as_mut().filter(|pair| pair.in_blocks) {
                    let number = probe.number + row as u64;
                    if is_over && is_paired {
                        pair.seen.add(number)?;
                    }
                    has_none &= pair.is_last() && !pair.seen.has(number);
                }
                match (is_filter, is_over) {
                    (true, true) if self.kind == JoinKind::Semi && is_paired => rows.push(row as u32),
                    (true, true) if self.kind == JoinKind::Anti && has_none => rows.push(row as u32),
                    (false, _) => {
                        rows.resize(rows.len() + at - begin, row as u32);
                        others.extend_from_slice(&right[begin..at]);
                        if has_none {
                            rows.push(row as u32);
                            others.push(NO_ROW);
                        }
                    }
                    _ => {}
                }
                probe.paired = !is_over && is_paired;
            }
            (left, right) = (rows, others);
        }
        let is_all = left.len() == probe.chunk.rows && (0..).zip(&left).all(|(at, place)| at == *place);
        let mut out = match is_all {
            true => probe.chunk.clone(),
            false => probe.chunk.gather(&left),
        };
        if !is_filter {
            out.columns
                .extend(table.columns.iter().map(|column| side(column, &right)));
        }
        Ok(out)
    }

    /// Has the table, if there is to be one for all left rows; whether there is something to join with it.
    fn begin(&mut self, run: &Run<'_, '_, S>) -> Result<bool> {
        if self.table.is_some() || self.lookup.is_some() && self.pair.is_none() {
            return Ok(true);
        }
        if self.pair.is_none() {
            if self.left_first && !self.left_is_over {
                self.read_ahead(run)?;
            }
            if self.left_is_over && self.ahead.is_empty() {
                return Ok(false);
            }
        }
        let table = self.read_right(run)?;
        self.restrict_left(&table);
        self.table = Some(Arc::new(table));
        Ok(true)
    }

    /// Goes on to the next block, to the next files, or to left rows for which the right ones are looked up; `false` when all have been joined.
    fn go_on(&mut self, run: &Run<'_, '_, S>) -> Result<bool> {
        match self.pair.as_mut().filter(|pair| pair.in_blocks && !pair.is_last()) {
            Some(pair) => pair.again()?,
            None => {
                if let Some(divided) = self.divided.take() {
                    self.pairs.extend(divided.finish(self.keeps_right(), run)?);
                }
                self.pair = self.pairs.pop();
                if self.pair.is_none() && self.left_is_over {
                    return Ok(false);
                }
            }
        }
        (self.table, self.rest) = (None, None);
        self.recent.clear();
        self.kept.clear();
        Ok(true)
    }

    /// The next rows of the right input that had no pair, beside nulls.
    fn unpaired(&mut self) -> Option<Chunk> {
        let (table, from) = (self.table.as_ref()?, self.rest.get_or_insert(0));
        let mut places = Vec::new();
        while places.len() < ROWS && *from < self.paired.len() {
            if !self.paired[*from] {
                places.push(*from as u32);
            }
            *from += 1;
        }
        let mut columns = nulls(self.widths.0, places.len());
        columns.extend(
            table
                .columns
                .iter()
                .map(|column| Arc::new(column.so_far().gather(&places))),
        );
        (!places.is_empty()).then_some(Chunk {
            columns,
            rows: places.len(),
        })
    }
}

impl<S: Scalar> Rows<S> for Hashed<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        let mut waiting = std::mem::take(&mut self.waiting);
        let row = waiting.next(|| self.next_chunk(run));
        self.waiting = waiting;
        row
    }

    fn next_chunk(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Chunk>> {
        if let Some(rest) = self.waiting.rest() {
            return Ok(Some(rest));
        }
        loop {
            if !self.begin(run)? {
                return Ok(None);
            }
            while self.rest.is_none() {
                let found = match self.probe.take() {
                    None => {
                        self.probe = self.read_left(run)?;
                        if self.probe.is_none() {
                            self.rest = Some(0);
                        }
                        continue;
                    }
                    Some(probe) if self.condition.is_none() && matches!(self.kind, JoinKind::Semi | JoinKind::Anti) => {
                        self.filtered(&probe)?
                    }
                    Some(mut probe) => {
                        let found = self.pairs(&mut probe, run)?;
                        self.probe = (probe.row < probe.firsts.len()).then_some(probe);
                        found
                    }
                };
                if found.rows > 0 {
                    return Ok(Some(found));
                }
            }
            if let Some(rest) = self.unpaired() {
                return Ok(Some(rest));
            }
            if !self.go_on(run)? {
                return Ok(None);
            }
        }
    }

    /// Of the left input each thread has its share, and all of them the table, unless it says which of its rows had a pair.
    fn twin(&mut self, run: &Run<'_, '_, S>, share: &Share) -> Result<Option<Twin<S>>> {
        let is_portable = self.keys.0.iter().chain(&self.condition).all(Scalar::is_portable);
        if self.keeps_right() || !is_portable || self.lookup.is_some() || !self.begin(run)? || self.left_is_over {
            return Ok(None);
        }
        // Left rows whose pairs are in files go there as well.
        if self.divided.is_some() || self.pair.is_some() {
            return Ok(None);
        }
        let Some(input) = self.left.twin(run, share)? else {
            return Ok(None);
        };
        let (kind, keys, widths) = (self.kind, self.keys.clone(), self.widths);
        let (condition, table) = (self.condition.clone(), self.table.clone());
        Ok(Some(Box::new(move || {
            // The right input has been read.
            let inputs = (input(), Values::none());
            Box::new(Self {
                table,
                ..Self::new(kind, inputs, keys, condition, widths)
            })
        })))
    }

    fn position(&self) -> usize {
        self.left.position()
    }

    fn restrict(&mut self, place: usize, to: &Restriction) {
        // Of a side whose rows are given also without a pair all are needed to find the pairs of the other one.
        let takes_left = !matches!(self.kind, JoinKind::Right | JoinKind::Full);
        let takes_right = matches!(self.kind, JoinKind::Inner | JoinKind::Right) && self.table.is_none();
        match place.checked_sub(self.widths.0) {
            None if takes_left => self.left.restrict(place, to),
            Some(place) if takes_right => self.right.restrict(place, to),
            _ => {}
        }
    }
}
