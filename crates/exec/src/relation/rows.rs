//! Values, functions, filters, projections, limits: operators that keep no rows.

use super::restrict::Restriction;
use super::twin::{Share, Twin};
use super::{BoxRows, Drained, Rows, Run, row_done};
use nestor_model::statement::Scope;
use nestor_model::{Result, Value, bail};
use nestor_planner::relation::{Chunk, Scalar, SortKey, TableFunction, Tuple};
use std::cmp::Ordering;
use std::mem::replace;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Rows that the statement has.
pub(super) struct Values<S> {
    pub rows: Vec<Vec<S>>,
    pub next: usize,
}

impl<S: Scalar> Values<S> {
    /// No rows.
    pub fn none() -> BoxRows<S> {
        Box::new(Self {
            rows: Vec::new(),
            next: 0,
        })
    }
}

impl<S: Scalar> Rows<S> for Values<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        let Some(row) = self.rows.get(self.next) else {
            return Ok(None);
        };
        self.next += 1;
        row_done()?;
        let _values = Scope::begin();
        row.iter()
            .map(|value| value.value(&[], &run.env))
            .collect::<Result<_>>()
            .map(Some)
    }
}

/// Rows that a function gives.
pub(super) struct Function<S> {
    pub call: Arc<dyn TableFunction>,
    pub args: Vec<S>,
    pub rows: Option<Box<dyn Iterator<Item = Result<Tuple>> + Send>>,
}

impl<S: Scalar> Rows<S> for Function<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        if self.rows.is_none() {
            let args: Vec<Value> = self
                .args
                .iter()
                .map(|arg| arg.value(&[], &run.env))
                .collect::<Result<_>>()?;
            self.rows = Some(self.call.rows(&args, &run.env)?);
        }
        row_done()?;
        let _values = Scope::begin();
        self.rows.as_mut().and_then(Iterator::next).transpose()
    }
}

/// The rows of an operator, in chunks of one, for expressions whose values may be large ([`Scalar::may_grow`]).
struct Singly<S> {
    input: BoxRows<S>,
    waiting: Drained,
}

/// What an operator pulls that computes `expressions`.
pub(super) fn small_enough<'e, S: Scalar>(
    input: BoxRows<S>,
    mut expressions: impl Iterator<Item = &'e S>,
) -> BoxRows<S> {
    match expressions.any(S::may_grow) {
        true => Box::new(Singly {
            input,
            waiting: Drained::default(),
        }),
        false => input,
    }
}

impl<S: Scalar> Rows<S> for Singly<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        self.input.next(run)
    }

    fn next_chunk(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Chunk>> {
        let row = self.waiting.next(|| self.input.next_chunk(run))?;
        Ok(row.map(|row| {
            let width = row.len();
            Chunk::of_rows(vec![row], width)
        }))
    }

    fn in_order(&mut self, run: &Run<'_, '_, S>) -> Result<bool> {
        self.input.in_order(run)
    }

    fn restrict(&mut self, place: usize, to: &Restriction) {
        self.input.restrict(place, to);
    }

    fn twin(&mut self, run: &Run<'_, '_, S>, share: &Share) -> Result<Option<Twin<S>>> {
        let twin = self.input.twin(run, share)?;
        Ok(twin.map(|input| -> Twin<S> {
            Box::new(move || {
                Box::new(Singly {
                    input: input(),
                    waiting: Drained::default(),
                })
            })
        }))
    }

    fn position(&self) -> usize {
        self.input.position()
    }
}

/// Rows for which a condition holds.
pub(super) struct Filter<S> {
    pub input: BoxRows<S>,
    pub condition: S,
}

impl<S: Scalar> Rows<S> for Filter<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        while let Some(row) = self.input.next(run)? {
            let _values = Scope::begin();
            if self.condition.holds(&row, &run.env)? {
                return Ok(Some(row));
            }
            row_done()?;
        }
        Ok(None)
    }

    fn next_chunk(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Chunk>> {
        while let Some(chunk) = self.input.next_chunk(run)? {
            let _values = Scope::begin();
            match self.condition.places(&chunk, &run.env)? {
                None => return Ok(Some(chunk)),
                Some(places) if places.is_empty() => {}
                Some(places) => return Ok(Some(chunk.gather(&places))),
            }
        }
        Ok(None)
    }

    fn in_order(&mut self, run: &Run<'_, '_, S>) -> Result<bool> {
        self.input.in_order(run)
    }

    fn restrict(&mut self, place: usize, to: &Restriction) {
        self.input.restrict(place, to);
    }

    fn twin(&mut self, run: &Run<'_, '_, S>, share: &Share) -> Result<Option<Twin<S>>> {
        if !self.condition.is_portable() {
            return Ok(None);
        }
        let (twin, condition) = (self.input.twin(run, share)?, self.condition.clone());
        Ok(twin.map(|input| -> Twin<S> {
            Box::new(move || {
                Box::new(Filter {
                    input: input(),
                    condition,
                })
            })
        }))
    }

    fn position(&self) -> usize {
        self.input.position()
    }
}

/// Rows of other columns.
pub(super) struct Project<S> {
    input: BoxRows<S>,
    columns: Vec<S>,
    /// Where each column is in a row, if all of them are columns of it that come once, or literals.
    places: Option<Vec<Option<usize>>>,
}

pub(super) fn project<S: Scalar>(input: BoxRows<S>, columns: &[S]) -> BoxRows<S> {
    let mut places: Vec<Option<usize>> = Vec::with_capacity(columns.len());
    let moves = columns.iter().all(|column| {
        let place = column.place();
        let is_again = place.is_some() && places.contains(&place);
        places.push(place);
        !is_again && (place.is_some() || column.is_literal())
    });
    Box::new(Project {
        input,
        columns: columns.to_vec(),
        places: moves.then_some(places),
    })
}

impl<S: Scalar> Rows<S> for Project<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        let Some(mut row) = self.input.next(run)? else {
            return Ok(None);
        };
        row_done()?;
        if let Some(places) = &self.places {
            let moved = places.iter().zip(&self.columns).map(|(place, column)| match place {
                Some(place) => Ok(row
                    .get_mut(*place)
                    .map_or(Value::Null, |value| std::mem::replace(value, Value::Null))),
                None => column.value(&[], &run.env),
            });
            return moved.collect::<Result<_>>().map(Some);
        }
        let _values = Scope::begin();
        let columns = self.columns.iter().map(|column| column.value(&row, &run.env));
        columns.collect::<Result<_>>().map(Some)
    }

    fn next_chunk(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Chunk>> {
        let Some(chunk) = self.input.next_chunk(run)? else {
            return Ok(None);
        };
        let _values = Scope::begin();
        let columns = self.columns.iter().map(|column| column.vector(&chunk, &run.env));
        Ok(Some(Chunk {
            columns: columns.collect::<Result<_>>()?,
            rows: chunk.rows,
        }))
    }

    fn in_order(&mut self, run: &Run<'_, '_, S>) -> Result<bool> {
        self.input.in_order(run)
    }

    fn restrict(&mut self, place: usize, to: &Restriction) {
        if let Some(place) = self.columns.get(place).and_then(Scalar::place) {
            self.input.restrict(place, to);
        }
    }

    fn keep_extremes(&mut self) {
        if self
            .columns
            .iter()
            .all(|column| column.place().is_some() || column.is_literal())
        {
            self.input.keep_extremes();
        }
    }

    fn twin(&mut self, run: &Run<'_, '_, S>, share: &Share) -> Result<Option<Twin<S>>> {
        if !self.columns.iter().all(Scalar::is_portable) {
            return Ok(None);
        }
        let (twin, columns) = (self.input.twin(run, share)?, self.columns.clone());
        Ok(twin.map(|input| -> Twin<S> { Box::new(move || project(input(), &columns)) }))
    }

    fn position(&self) -> usize {
        self.input.position()
    }
}

/// Some rows of all.
pub(super) struct Limit<S> {
    pub input: BoxRows<S>,
    pub limit: Option<S>,
    pub offset: Option<S>,
    pub ties: Vec<SortKey<S>>,
    /// What is left to skip and to give; set by the first pull.
    pub left: Option<(u64, u64)>,
    pub last: Option<Vec<Value>>,
}

/// The value of LIMIT or OFFSET; null is none.
/// How many rows are wanted of an input of which so many are skipped before; `None` for all.
///
/// Errors: those of [`count`].
pub(super) fn wanted<S: Scalar>(limit: Option<&(Option<S>, S)>, run: &Run<'_, '_, S>) -> Result<Option<usize>> {
    let Some((skip, limit)) = limit else { return Ok(None) };
    let skip = count(skip.as_ref(), run, "OFFSET")?.unwrap_or(0);
    let limit = count(Some(limit), run, "LIMIT")?.map(|limit| limit.saturating_add(skip));
    Ok(limit.and_then(|n| usize::try_from(n).ok()))
}

pub(super) fn count<S: Scalar>(expr: Option<&S>, run: &Run<'_, '_, S>, word: &str) -> Result<Option<u64>> {
    let Some(expr) = expr else { return Ok(None) };
    let value = match expr.value(&[], &run.env)? {
        Value::Null => return Ok(None),
        Value::Int32(n) => i64::from(n),
        Value::Int64(n) => n,
        _ => bail!(BadValue, "argument of {word} must be a number"),
    };
    match u64::try_from(value) {
        Ok(count) => Ok(Some(count)),
        Err(_) => Err(nestor_model::Error::bad_value(format!("{word} must not be negative"))
            .with_extra(nestor_model::doc! { "sqlState": if word == "LIMIT" { "2201W" } else { "2201X" } })),
    }
}

impl<S: Scalar> Rows<S> for Limit<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        let (mut skip, mut give) = match self.left {
            Some(left) => left,
            None => {
                let offset = count(self.offset.as_ref(), run, "OFFSET")?.unwrap_or(0);
                (offset, count(self.limit.as_ref(), run, "LIMIT")?.unwrap_or(u64::MAX))
            }
        };
        while skip > 0 {
            skip -= 1;
            if self.input.next(run)?.is_none() {
                (skip, give) = (0, 0);
                self.ties.clear();
            }
        }
        if give == 0 {
            self.left = Some((0, 0));
            if self.ties.is_empty() {
                return Ok(None);
            }
            let Some(row) = self.input.next(run)? else {
                self.ties.clear();
                return Ok(None);
            };
            let now = self.tie_values(&row, run)?;
            let ties = &self.ties;
            let same = self.last.as_ref().is_some_and(|last| {
                ties.iter()
                    .zip(last.iter().zip(&now))
                    .all(|(key, (a, b))| match (a, b) {
                        (Value::Null, Value::Null) => true,
                        (Value::Null, _) | (_, Value::Null) => false,
                        (a, b) => key.by.compare(a, b) == Ordering::Equal,
                    })
            });
            if same {
                return Ok(Some(row));
            }
            self.ties.clear();
            return Ok(None);
        }
        let row = self.input.next(run)?;
        self.left = Some((0, if row.is_some() { give - 1 } else { 0 }));
        if let Some(row) = &row
            && !self.ties.is_empty()
        {
            self.last = Some(self.tie_values(row, run)?);
        }
        Ok(row)
    }
}

impl<S: Scalar> Limit<S> {
    fn tie_values(&self, row: &[Value], run: &Run<'_, '_, S>) -> Result<Vec<Value>> {
        self.ties.iter().map(|key| key.by.value(row, &run.env)).collect()
    }
}

/// The rows of all inputs.
pub(super) struct Append<S> {
    pub inputs: Vec<BoxRows<S>>,
    pub at: usize,
}

impl<S> Rows<S> for Append<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        while let Some(input) = self.inputs.get_mut(self.at) {
            if let Some(row) = input.next(run)? {
                return Ok(Some(row));
            }
            self.at += 1;
        }
        Ok(None)
    }

    fn next_chunk(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Chunk>> {
        while let Some(input) = self.inputs.get_mut(self.at) {
            if let Some(chunk) = input.next_chunk(run)? {
                return Ok(Some(chunk));
            }
            self.at += 1;
        }
        Ok(None)
    }

    fn restrict(&mut self, place: usize, to: &Restriction) {
        self.inputs.iter_mut().for_each(|input| input.restrict(place, to));
    }

    fn keep_extremes(&mut self) {
        self.inputs.iter_mut().for_each(|input| input.keep_extremes());
    }
}

/// Counts what a node does.
pub(super) struct Counted<S> {
    pub input: BoxRows<S>,
    pub number: usize,
    /// It has given a row, or has ended, and nothing is the first row any more.
    pub begun: bool,
}

impl<S> Counted<S> {
    /// Pulls from the input, and counts the rows of what came.
    fn counted<T>(
        &mut self,
        run: &Run<'_, '_, S>,
        pull: impl FnOnce(&mut BoxRows<S>) -> Result<Option<T>>,
        rows: impl FnOnce(&T) -> usize,
    ) -> Result<Option<T>> {
        let Some(nodes) = &run.shared.counts.nodes else {
            return pull(&mut self.input);
        };
        let above = nodes.current.replace(self.number);
        let begin = nodes.timed.then(Instant::now);
        let pulled = pull(&mut self.input);
        let took = begin.map_or(Duration::ZERO, |begin| begin.elapsed());
        nodes.current.set(above);
        let is_first = !replace(&mut self.begun, true);
        let gave = pulled.as_ref().ok().and_then(Option::as_ref).map_or(0, rows);
        nodes.note(self.number, |ran| {
            ran.total += took;
            ran.rows += gave as u64;
            if is_first {
                ran.loops += 1;
                ran.startup += took;
            }
        });
        pulled
    }

    /// Asks the input for something that may open the scan, which belongs to its node.
    fn as_node<T>(&mut self, run: &Run<'_, '_, S>, ask: impl FnOnce(&mut BoxRows<S>) -> T) -> T {
        let nodes = run.shared.counts.nodes.as_ref();
        let above = nodes.map(|nodes| (nodes, nodes.current.replace(self.number)));
        let answer = ask(&mut self.input);
        if let Some((nodes, above)) = above {
            nodes.current.set(above);
        }
        answer
    }
}

impl<S: 'static> Rows<S> for Counted<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        self.counted(run, |input| input.next(run), |_| 1)
    }

    fn next_chunk(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Chunk>> {
        self.counted(run, |input| input.next_chunk(run), |chunk| chunk.rows)
    }

    fn in_order(&mut self, run: &Run<'_, '_, S>) -> Result<bool> {
        self.as_node(run, |input| input.in_order(run))
    }

    fn restrict(&mut self, place: usize, to: &Restriction) {
        self.input.restrict(place, to);
    }

    fn keep_extremes(&mut self) {
        self.input.keep_extremes();
    }

    fn twin(&mut self, run: &Run<'_, '_, S>, share: &Share) -> Result<Option<Twin<S>>> {
        let (number, twin) = (self.number, self.as_node(run, |input| input.twin(run, share))?);
        Ok(twin.map(|input| -> Twin<S> {
            Box::new(move || {
                Box::new(Counted {
                    input: input(),
                    number,
                    begun: false,
                })
            })
        }))
    }

    fn position(&self) -> usize {
        self.input.position()
    }
}
