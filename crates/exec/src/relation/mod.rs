//! Operators over rows of values: [`nestor_planner::relation`] run.
//!
//! Reading order: this file (the contract), [`mod@build`] (from a plan to operators), [`key`] (rows as keys of tables), then the operators:
//! [`scan`], [`rows`] (values, functions, filters, projections, limits), [`join`], [`apply`], [`aggregate`], [`distinct`], [`set`], [`sort`],
//! [`window`], [`recursive`]; and [`restrict`], what operators can do without, [`spilled`], [`apart`] and [`store`], where they put what does not fit into memory, and
//! [`twin`] and [`ordered`], how several threads read one input.
//!
//! The contract is that of [`crate::operator`] without pauses: a tree is pulled to its end, or dropped, within one statement over one view. What
//! operators keep is counted (`Kept`), and each row that is pulled counts as work, so that a statement can be stopped
//! anywhere.
//!
//! What expressions count while they are computed (`Scope`) is given back when the row or chunk has its values: of all rows together only what
//! is kept counts. Expressions whose values may be much larger than their rows are computed for one row at a time ([`rows`], `small_enough`).
//!
//! Operators that see all of their input pull it by chunks ([`Rows::next_chunk`]): scans, filters and projections compute these column by
//! column; of what has only rows chunks are made.

pub mod aggregate;
mod apart;
pub mod apply;
mod build;
pub mod distinct;
pub(crate) mod groups;
pub mod join;
pub mod key;
mod ordered;
pub mod recursive;
pub mod restrict;
pub mod rows;
pub mod scan;
pub mod set;
pub mod sort;
mod spilled;
mod store;
mod twin;
pub mod window;

pub use build::build;
use ordered::drain;
pub use ordered::drain_shared;
pub use scan::{ColumnSource, Opened, Reader, Sources};
pub use twin::{Abroad, Share, Twin};

use crate::Batch;
use crate::spill::Spilled;
use crate::summary::Totals;
use nestor_model::statement::{ROW, work};
use nestor_model::{Result, Value};
use nestor_planner::relation::chunk::ROWS;
use nestor_planner::relation::explain::Ran;
use nestor_planner::relation::{Chunk, Env, Tuple};
use restrict::Restriction;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::mem::take;
use std::rc::Rc;
use store::Store;

/// What operators see while they run.
pub struct Run<'r, 'v, S> {
    /// The state that is read, limits, and where to spill.
    pub batch: &'r Batch<'v>,
    /// What expressions see.
    pub env: Env<'r>,
    /// Opens tables.
    pub sources: &'r dyn Sources<S>,
    /// Rows that several operators read.
    pub shared: &'r Shared,
}

impl<S> Clone for Run<'_, '_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Run<'_, '_, S> {}

/// Rows that several operators of a statement read, by their numbers.
#[derive(Default)]
pub struct Shared {
    tables: RefCell<HashMap<usize, Rc<Store>>>,
    /// What is counted.
    pub counts: Rc<Counts>,
}

/// What operators did.
#[derive(Default)]
pub struct Counts {
    /// The keys and documents that scans read, of those that have ended or were dropped.
    pub read: RefCell<Totals>,
    /// What each node did; `None` unless they are told apart.
    pub nodes: Option<Nodes>,
}

/// What each node of a plan did, for EXPLAIN ANALYZE.
#[derive(Default)]
pub struct Nodes {
    /// By the number of the node in the order of `explain`.
    pub ran: RefCell<Vec<Ran>>,
    /// The node that is asked for a row.
    pub current: Cell<usize>,
    /// With times.
    pub timed: bool,
}

impl Nodes {
    /// Notes that the node that is asked for a row wrote temporary files.
    pub(crate) fn note_spilled(&self, figures: Spilled) {
        self.note(self.current.get(), |ran| {
            ran.spilled = true;
            ran.spilled_bytes += figures.bytes;
        });
    }

    /// Notes what the node with this number did.
    pub(crate) fn note(&self, number: usize, what: impl FnOnce(&mut Ran)) {
        let mut ran = self.ran.borrow_mut();
        if ran.len() <= number {
            ran.resize(number + 1, Ran::default());
        }
        what(&mut ran[number]);
    }
}

impl Shared {
    /// With nodes told apart, and timed if that is wanted.
    pub fn counting(timed: bool) -> Self {
        let nodes = Nodes {
            timed,
            ..Nodes::default()
        };
        let counts = Counts {
            nodes: Some(nodes),
            ..Counts::default()
        };
        Self {
            counts: Rc::new(counts),
            ..Self::default()
        }
    }

    /// Puts rows there, which somebody else counts.
    pub fn set(&self, id: usize, rows: Vec<Tuple>) {
        self.put(id, Rc::new(Store::of(rows)));
    }

    /// The rows with this number.
    fn get(&self, id: usize) -> Option<Rc<Store>> {
        self.tables.borrow().get(&id).cloned()
    }

    /// Puts rows there.
    fn put(&self, id: usize, rows: Rc<Store>) {
        self.tables.borrow_mut().insert(id, rows);
    }

    /// Removes them.
    fn remove(&self, id: usize) {
        self.tables.borrow_mut().remove(&id);
    }
}

/// Bytes of the rows that become a chunk, without those of the last one.
pub(crate) const CHUNK_BYTES_MAX: usize = 1 << 20;

/// An operator over rows of values.
pub trait Rows<S> {
    /// The next row; `None` at the end, and ever after.
    ///
    /// Errors: those of expressions, of storage, of too little memory, and those of the interrupt.
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>>;

    /// The next rows as a chunk that is not empty; `None` at the end, and ever after. Whoever reads from an operator does so by chunks from
    /// the first row or a later one on, and then to the end.
    ///
    /// Errors: those of [`Rows::next`], for any of the rows.
    fn next_chunk(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Chunk>> {
        chunk_of_rows(self, run)
    }

    /// Whether its rows come in the order that the scan below it, with nothing between but filters and projections, was asked for.
    /// Asked before the first row.
    ///
    /// Errors: those of opening the scan.
    fn in_order(&mut self, _run: &Run<'_, '_, S>) -> Result<bool> {
        Ok(false)
    }

    /// From now on only those of its rows are wanted that meet a restriction of their column at a place. It may give others.
    fn restrict(&mut self, _place: usize, _to: &Restriction) {}

    /// Only the least and the largest value of each column matter: rows may be left out, and rows made of values of several, as long as these stay.
    fn keep_extremes(&mut self) {}

    /// Makes an operator of another thread over a share of the rows that are left, each of which comes from one of them, in no order; `None` where
    /// rows come from this thread only, or there are too few. Whoever asks for one reads by chunks.
    ///
    /// Errors: those of opening the scan.
    fn twin(&mut self, _run: &Run<'_, '_, S>, _share: &Share) -> Result<Option<Twin<S>>> {
        Ok(None)
    }

    /// Of an operator that has a twin: the place of the piece that its last chunk is of, or a later one that nothing has come of yet, among all pieces of the input
    /// that is shared. Its chunks come in the order of their pieces, and those of a twin do.
    fn position(&self) -> usize {
        0
    }
}

/// The next rows of an operator, as a chunk.
fn chunk_of_rows<S>(input: &mut (impl Rows<S> + ?Sized), run: &Run<'_, '_, S>) -> Result<Option<Chunk>> {
    let (mut rows, mut bytes) = (Vec::new(), 0);
    while rows.len() < ROWS && bytes < CHUNK_BYTES_MAX {
        let Some(row) = input.next(run)? else { break };
        bytes += weight(&row);
        rows.push(row);
    }
    let width = rows.first().map(Vec::len);
    Ok(width.map(|width| Chunk::of_rows(rows, width)))
}

/// Rows of an input that is pulled by chunks, one by one: for who sees all of them.
#[derive(Default)]
struct Drained {
    chunk: Chunk,
    at: usize,
}

impl Drained {
    /// The next row of what `pull` gives.
    fn next(&mut self, mut pull: impl FnMut() -> Result<Option<Chunk>>) -> Result<Option<Tuple>> {
        while self.at >= self.chunk.rows {
            match pull()? {
                Some(chunk) => *self = Self { chunk, at: 0 },
                None => return Ok(None),
            }
        }
        self.at += 1;
        Ok(Some(self.chunk.row(self.at - 1)))
    }

    /// What is left of the chunk that was pulled last.
    fn rest(&mut self) -> Option<Chunk> {
        let Self { chunk, at } = take(self);
        if at == 0 || at >= chunk.rows {
            return (at < chunk.rows).then_some(chunk);
        }
        let places: Vec<u32> = (at as u32..chunk.rows as u32).collect();
        Some(chunk.gather(&places))
    }
}

/// An operator in a tree.
pub type BoxRows<S> = Box<dyn Rows<S>>;

/// Counts a row as work.
pub(crate) fn row_done() -> Result<()> {
    work(ROW)
}

/// Bytes of a row in memory.
pub(crate) fn weight(row: &[Value]) -> usize {
    size_of::<Tuple>() + row.iter().map(Value::weight).sum::<usize>()
}
