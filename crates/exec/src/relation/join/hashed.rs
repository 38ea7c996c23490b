//! Joins by equal keys: the right input is kept in a hash table, and the left one goes by, chunk by chunk.
//!
//! Where rows of the right input are wanted for rows of the left one only, and these may be few, some of the left input is read before. If that was
//! all of it, the right input is told which keys are wanted.
//!
//! Where the right input is a scan that is looked up, the table holds what an index finds for the keys of one left chunk, and is made anew for the next.
//!
//! Rows that may be pairs are found for some rows of a left chunk at a time, so that one left row with many pairs takes no more memory than many
//! with one. Of a left row whose pairs come in several such batches it is known from one to the next whether it had one.

use super::table::Table;
use crate::kept::Kept;
use crate::relation::restrict::{Numbers, Restriction};
use crate::relation::{BoxRows, Drained, Rows, Run, build, key, scan};
use nestor_model::statement::{ROW, Scope, work};
use nestor_model::vector::{Builder, NO_ROW, Vector};
use nestor_model::{Result, Value};
use nestor_planner::relation::chunk::ROWS;
use nestor_planner::relation::{Chunk, Join, JoinKind, Relation, Scalar, Scan, Tuple};
use std::collections::VecDeque;
use std::rc::Rc;
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
    kept: Kept,
    /// The right input; made by the first pull.
    table: Option<Table>,
    probe: Option<Probe>,
    /// Rows of the right input that have been asked whether they had a pair, once the left one is at its end.
    rest: Option<usize>,
    /// Rows that wait to be pulled one by one.
    waiting: Drained,
    /// How the right input is looked up, as long as it is, and left rows for which it was not yet.
    lookup: Option<Lookup<S>>,
    later: Option<Chunk>,
}

/// A right input of which an index finds the rows for the keys of some left rows.
struct Lookup<S> {
    scan: Scan<S>,
    /// The columns of the scan that are the keys.
    columns: Vec<usize>,
    /// The number of the scan's node, and whether nodes count.
    numbering: (usize, bool),
    /// Left rows that are looked up together.
    together: usize,
}

/// Rows that are found for left rows together, about.
const FOUND_TOGETHER: usize = 16 * ROWS;

impl<S: Scalar> Lookup<S> {
    fn of(plan: &Join<S>, numbering: (usize, bool)) -> Option<Self> {
        let Relation::Scan(scan) = &plan.right else { return None };
        let width = plan.left.width();
        let columns = plan.keys.iter().map(|(_, key)| key.place()?.checked_sub(width));
        let columns = columns.collect::<Option<Vec<usize>>>().filter(|_| scan.looked_up)?;
        Some(Self {
            scan: scan.clone(),
            columns,
            numbering,
            together: ROWS,
        })
    }
}

/// A chunk of the left input on its way.
struct Probe {
    chunk: Chunk,
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
    Box::new(Hashed {
        kind: plan.kind,
        left_first: plan.left_first,
        ahead: VecDeque::new(),
        left_is_over: false,
        left,
        right,
        keys: plan.keys.iter().cloned().unzip(),
        used: plan
            .condition
            .as_ref()
            .map_or_else(Vec::new, |condition| condition.columns(widths.0 + widths.1)),
        condition: plan.condition.clone(),
        widths,
        kept: Kept::default(),
        table: None,
        probe: None,
        rest: None,
        waiting: Drained::default(),
        lookup: Lookup::of(plan, numbering),
        later: None,
    })
}

/// So many rows of nulls.
fn nulls(columns: usize, rows: usize) -> Vec<Arc<Vector>> {
    let null = Arc::new(Vector::same(Value::Null, rows));
    (0..columns).map(|_| null.clone()).collect()
}

/// What rows are found by.
struct Keys {
    parts: Vec<Arc<Vector>>,
    /// Which rows have a null among them, if one may.
    has_null: Option<Vec<bool>>,
}

fn keys_of<S: Scalar>(by: &[S], chunk: &Chunk, run: &Run<'_, '_, S>) -> Result<Keys> {
    let mut has_null: Option<Vec<bool>> = None;
    let mut parts = Vec::with_capacity(by.len());
    for part in by {
        let values = part.vector(chunk, &run.env)?;
        if values.may_be_null() {
            let all = has_null.get_or_insert_with(|| vec![false; chunk.rows]);
            all.iter_mut()
                .enumerate()
                .for_each(|(row, null)| *null |= values.is_null(row));
        }
        parts.push(key::of_vector(part, &values)?);
    }
    Ok(Keys { parts, has_null })
}

impl<S: Scalar> Hashed<S> {
    /// Reads some of the left input, and tells the right one which keys are wanted if that is all of it.
    fn read_ahead(&mut self, run: &Run<'_, '_, S>) -> Result<()> {
        let (mut rows, mut bytes) = (0, 0);
        while rows < AHEAD_ROWS_MAX && bytes < AHEAD_BYTES_MAX {
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
            self.kept.grow(weight + of_keys)?;
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
                self.right.restrict(place, &Restriction::Among(Rc::new(numbers)));
            }
        }
    }

    fn read_right(&mut self, run: &Run<'_, '_, S>) -> Result<Table> {
        let keeps_all = matches!(self.kind, JoinKind::Right | JoinKind::Full);
        let is_read = self.condition.is_some() || !matches!(self.kind, JoinKind::Semi | JoinKind::Anti);
        let mut table = Table::new(self.widths.1, self.keys.1.len());
        while let Some(chunk) = self.right.next_chunk(run)? {
            let mut wide = nulls(self.widths.0, chunk.rows);
            wide.extend(chunk.columns.iter().cloned());
            let wide = Chunk {
                columns: wide,
                rows: chunk.rows,
            };
            work(ROW / 2 * chunk.rows)?;
            let _values = Scope::begin();
            let Keys { parts: keys, has_null } = keys_of(&self.keys.1, &wide, run)?;
            // A row without a key has no pair.
            let is_null = |row: usize| has_null.as_ref().is_some_and(|nulls| nulls[row]);
            let all: Option<Vec<u32>> = (has_null.is_some() && !keeps_all).then(|| {
                let rows = 0..chunk.rows as u32;
                rows.filter(|row| !is_null(*row as usize)).collect()
            });
            table.heaviest = table.heaviest.max(chunk.heaviest());
            let bytes = table.add((&chunk, &keys), all.as_deref(), &is_null, is_read);
            self.kept.grow(chunk.weight() + bytes)?;
        }
        if keeps_all {
            table.paired = vec![false; table.next.len()];
        }
        Ok(table)
    }

    /// Tells the left input which keys there are, if its rows are wanted for pairs only.
    fn restrict_left(&mut self, table: &Table) {
        if !matches!(self.kind, JoinKind::Inner | JoinKind::Semi | JoinKind::Right) {
            return;
        }
        for (at, key) in self.keys.0.iter().enumerate() {
            if let (Some(place), Some(numbers)) = (key.place(), table.numbers(at)) {
                self.left.restrict(place, &Restriction::Among(Rc::new(numbers)));
            }
        }
    }

    /// The next chunk of the left input, with the chains of its rows.
    fn read_left(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Probe>> {
        let (chunk, Keys { parts: keys, has_null }) = match self.ahead.pop_front() {
            Some(ahead) => ahead,
            None => {
                let chunk = match self.later.take() {
                    None if self.left_is_over => None,
                    None => self.left.next_chunk(run)?,
                    later => later,
                };
                let Some(mut chunk) = chunk else { return Ok(None) };
                let together = self.lookup.as_ref().map_or(usize::MAX, |lookup| lookup.together);
                if chunk.rows > together {
                    let places: Vec<u32> = (0..chunk.rows as u32).collect();
                    let (now, later) = places.split_at(together);
                    self.later = Some(chunk.gather(later));
                    chunk = chunk.gather(now);
                }
                let _values = Scope::begin();
                let keys = keys_of(&self.keys.0, &chunk, run)?;
                (chunk, keys)
            }
        };
        work(ROW / 2 * chunk.rows)?;
        let _values = Scope::begin();
        if self.lookup.is_some() {
            self.look_up(&keys, chunk.rows, run)?;
        }
        let Some(table) = &mut self.table else { return Ok(None) };
        let is_null = |row: usize| has_null.as_ref().is_some_and(|nulls| nulls[row]);
        let firsts = table.firsts(&keys, chunk.rows, &is_null);
        Ok(Some(Probe {
            next: firsts.first().copied().unwrap_or(NO_ROW),
            heaviest: chunk.heaviest(),
            chunk,
            firsts,
            row: 0,
            paired: false,
        }))
    }

    /// Makes the table of the right rows that have these keys, or of all if no index finds them.
    fn look_up(&mut self, keys: &[Arc<Vector>], rows: usize, run: &Run<'_, '_, S>) -> Result<()> {
        let Some(lookup) = &mut self.lookup else { return Ok(()) };
        let (number, counts) = lookup.numbering;
        let nodes = run.shared.counts.nodes.as_ref();
        let above = nodes.map(|nodes| nodes.current.replace(number));
        let found = run.sources.look_up(&lookup.scan, &lookup.columns, keys, run.batch);
        let found = found.map(|found| {
            let wanted = lookup.columns.iter().zip(keys).filter_map(|(column, values)| {
                let numbers = Numbers::of_vector(values)?;
                Some((*column, Restriction::Among(Rc::new(numbers))))
            });
            found.map(|found| scan::opened(&lookup.scan, found, wanted, run))
        });
        if let (Some(nodes), Some(above)) = (nodes, above) {
            nodes.current.set(above);
        }
        self.table = None;
        self.kept.clear();
        match found? {
            Some(found) => {
                self.right = build::counted(found, number, counts);
                let table = self.read_right(run)?;
                if let Some(lookup) = &mut self.lookup {
                    let each = table.next.len().div_ceil(rows.max(1)).max(1);
                    lookup.together = (FOUND_TOGETHER / each).clamp(1, ROWS);
                }
                self.table = Some(table);
            }
            None => {
                self.right = build::counted(scan::scan(&lookup.scan), number, counts);
                // All left rows from here on are paired with all of the table.
                self.lookup = None;
                self.table = Some(self.read_right(run)?);
            }
        }
        Ok(())
    }

    /// The rows of the left chunk that have a pair, or that have none, where only that is asked.
    fn filtered(&self, probe: &Probe) -> Chunk {
        let has_pair = self.kind == JoinKind::Semi;
        let places: Vec<u32> = (0u32..)
            .zip(&probe.firsts)
            .filter(|(_, first)| (**first != NO_ROW) == has_pair)
            .map(|(row, _)| row)
            .collect();
        match places.len() == probe.chunk.rows {
            true => probe.chunk.clone(),
            false => probe.chunk.gather(&places),
        }
    }

    /// The next pairs of a left chunk, about as many as a chunk has rows, and what becomes of rows without any.
    fn pairs(&mut self, probe: &mut Probe, run: &Run<'_, '_, S>) -> Result<Chunk> {
        let Some(table) = &mut self.table else {
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
        if !table.paired.is_empty() {
            right.iter().for_each(|row| table.paired[*row as usize] = true);
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
                match (is_filter, is_over) {
                    (true, true) if is_paired == (self.kind == JoinKind::Semi) => rows.push(row as u32),
                    (false, _) => {
                        rows.resize(rows.len() + at - begin, row as u32);
                        others.extend_from_slice(&right[begin..at]);
                        if is_over && !is_paired {
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

    /// The next rows of the right input that had no pair, beside nulls.
    fn unpaired(&mut self) -> Option<Chunk> {
        let (table, from) = (self.table.as_ref()?, self.rest.get_or_insert(0));
        let mut places = Vec::new();
        while places.len() < ROWS && *from < table.paired.len() {
            if !table.paired[*from] {
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
        if self.table.is_none() && self.lookup.is_none() {
            if self.left_first && !self.left_is_over {
                self.read_ahead(run)?;
            }
            if self.left_is_over && self.ahead.is_empty() {
                return Ok(None);
            }
            let table = self.read_right(run)?;
            self.restrict_left(&table);
            self.table = Some(table);
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
                    self.filtered(&probe)
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
        Ok(self.unpaired())
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
