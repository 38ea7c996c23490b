//! Tables read column by column, as far as their documents are kept so, and document by document where they are newer.

mod held;

use super::bounds::{Bound, has_range};
use super::reader::Documents;
use crate::catalog::Table;
use crate::expr::{Comparison, Expr};
use crate::types::{Type, compare};
use held::{Elements, has_all, has_nulls, is_outside, read_end, values, weight, zone};
use nestor_columns::{Keys, Piece, Places, Segment, Zone};
use nestor_exec::Batch;
use nestor_exec::relation::restrict::{Order, Restriction};
use nestor_exec::relation::{ColumnSource, Reader, Share};
use nestor_model::vector::{Builder, Vector};
use nestor_model::{Result, Value};
use nestor_planner::relation::chunk::ROWS;
use nestor_planner::relation::explain::ColumnFigures;
use nestor_planner::relation::{Chunk, Env, Scan};
use nestor_storage::{Cursor, TreeId, View, record};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The setting that says whether tables are read by columns: `auto` where that costs less, `on` wherever columns have all that is read and
/// no index gives an order, `off` never.
pub const SETTING: &str = "nestor.columns";

/// Bytes of documents that become a chunk, about.
const CHUNK_BYTES: usize = 1 << 20;

/// Reads the pieces of a table.
pub struct ByColumns {
    table: Arc<Table>,
    needed: Vec<bool>,
    bounds: Vec<Bound>,
    limits: Vec<Limit>,
    only_extremes: bool,
    left: Arc<Left>,
    /// Where several threads read, whether they go on.
    share: Option<Share>,
    /// The place of the piece that is read.
    position: usize,
    records: TreeId,
    cursor: Cursor,
    reader: Documents,
    at: At,
    figures: ColumnFigures,
}

/// The pieces that nobody reads yet, of all threads that read the table.
struct Left(Mutex<Pieces>);

/// Pieces, and the place that the first of them has among all.
struct Pieces {
    pieces: std::vec::IntoIter<Piece>,
    first: usize,
}

impl Left {
    fn pieces(&self) -> MutexGuard<'_, Pieces> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many rows of segments they have.
    fn rows(&self) -> usize {
        let rows = |piece: &Piece| match piece {
            Piece::Columns(_, rows, _) => rows.len(),
            Piece::Records(_) => 0,
        };
        self.pieces().pieces.as_slice().iter().map(rows).sum()
    }
}

/// With fewer rows for each thread than these it costs more to begin one than it takes off the others. Tests have few rows.
const SHARE_MIN: usize = if cfg!(debug_assertions) { ROWS } else { 32 * ROWS };

/// What a restriction says of the ends of a column.
#[derive(Clone)]
struct Limit {
    bound: Bound,
    /// Rows without a value are wanted.
    nulls: bool,
    /// It is of an order, and takes the place of the one before.
    is_order: bool,
}

/// Where the reading is.
enum At {
    /// Between pieces.
    Between,
    /// In a segment: the rows that are read now, and where those that are left end.
    Segment(Arc<Segment>, Range<usize>, usize),
    /// In the elements of rows of a segment.
    Elements(Elements),
    /// Documents that became a chunk, the rows of it that are read now, and where the next ones are.
    Records(Chunk, Range<usize>, Option<Keys>),
}

impl At {
    /// Before the documents of some keys.
    fn records(keys: Keys) -> Self {
        Self::Records(Chunk::default(), 0..0, Some(keys))
    }
}

impl ByColumns {
    /// Whether columns may have all that a scan looks at.
    pub fn serves(scan: &Scan<Expr>, table: &Table) -> bool {
        let has_document = scan.needed.iter().skip(table.columns.len()).any(|is_needed| *is_needed);
        // Arrays are not held as they are.
        let has_array = table.elements.is_some_and(|elements| scan.needed[elements.array]);
        !has_document && !has_array
    }

    /// Reads a scan of pieces of a table, with the records as a view has them.
    ///
    /// Errors: those of the values that columns are compared with.
    pub fn new(
        scan: &Scan<Expr>,
        table: &Arc<Table>,
        pieces: Vec<Piece>,
        (view, records): (&dyn View, TreeId),
        env: &Env<'_>,
    ) -> Result<Self> {
        Ok(Self {
            table: table.clone(),
            needed: scan.needed.clone(),
            bounds: Bound::all(&scan.conditions, env)?,
            limits: Vec::new(),
            only_extremes: false,
            left: Arc::new(Left(Mutex::new(Pieces {
                pieces: pieces.into_iter(),
                first: 0,
            }))),
            share: None,
            position: 0,
            records,
            cursor: view.cursor(records),
            reader: Documents::new(table, &scan.needed),
            at: At::Between,
            figures: ColumnFigures::default(),
        })
    }

    /// Bytes of the columns that are needed, of some rows of a segment.
    fn weight(&self, segment: &Segment, rows: &Range<usize>) -> u64 {
        weight(&self.table, &self.needed, segment, rows)
    }

    /// Whether no row of a segment meets all conditions and restrictions.
    fn has_none(&self, segment: &Segment) -> bool {
        let is_out = |bound: &Bound| {
            match zone(&self.table, segment, bound.column) {
                // Nothing compares with null.
                Zone::Nothing => true,
                Zone::Between((least, most)) => is_outside(&self.table, bound, least, most),
                Zone::Unknown => false,
            }
        };
        let has_nulls = |limit: &Limit| has_nulls(&self.table, segment, limit.bound.column);
        let mut limits = self.limits.iter();
        self.bounds.iter().any(is_out) || limits.any(|limit| !(limit.nulls && has_nulls(limit)) && is_out(&limit.bound))
    }

    /// Two rows of the least and the largest values of a segment, where only these matter and they are known without reading it.
    fn extremes(&self, segment: &Segment, rows: &Range<usize>) -> Option<Chunk> {
        if !self.only_extremes
            || self.table.elements.is_some()
            || *rows != (0..segment.rows())
            || !segment.has_exact_zones()
        {
            return None;
        }
        let mut columns = Vec::with_capacity(self.needed.len());
        for (at, is_needed) in self.needed.iter().enumerate() {
            let mut builder = Builder::default();
            let column = self.table.columns.get(at).filter(|_| *is_needed);
            match column.map(|column| (column, zone(&self.table, segment, at))) {
                None | Some((_, Zone::Nothing)) => (0..2).for_each(|_| builder.push_null()),
                Some((column, Zone::Between((least, most)))) => {
                    let is_text = matches!(least, Value::String(_));
                    if is_text != column.ty.is_text() || !has_range(&column.ty) {
                        return None;
                    }
                    for end in [least, most] {
                        builder.push(read_end(&self.table, at, end)?);
                    }
                }
                Some((_, Zone::Unknown)) => return None,
            }
            columns.push(builder);
        }
        Some(Chunk::of(columns, 2))
    }

    /// Puts the pieces that are left in an order in which those come early whose rows may be the first of it.
    fn put_in_order(&mut self, at: usize, order: &Order) {
        let column = &self.table.columns[at];
        // Of pieces of which it is not known all rows are looked at in any case.
        let first = |piece: &Piece| -> Option<Value> {
            let Piece::Columns(segment, ..) = piece else {
                return None;
            };
            let Zone::Between((least, most)) = zone(&self.table, segment, at) else {
                return None;
            };
            let end = if order.descending { most } else { least };
            let is_known = matches!(end, Value::String(_)) == column.ty.is_text();
            let is_known = is_known && !(order.nulls && has_nulls(&self.table, segment, at));
            read_end(&self.table, at, end).filter(|_| is_known)
        };
        let mut left = self.left.pieces();
        let pieces = std::mem::take(&mut left.pieces);
        let mut keyed: Vec<(Option<Value>, Piece)> = pieces.map(|piece| (first(&piece), piece)).collect();
        keyed.sort_by(|(a, _), (b, _)| match (a, b) {
            (Some(a), Some(b)) if order.descending => compare::compare(&column.ty, b, a),
            (Some(a), Some(b)) => compare::compare(&column.ty, a, b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        });
        let pieces: Vec<Piece> = keyed.into_iter().map(|(_, piece)| piece).collect();
        left.pieces = pieces.into_iter();
    }

    /// The next piece, if there is one and this thread is to begin it.
    fn next_piece(&mut self) -> Option<Piece> {
        let mut left = self.left.pieces();
        let position = left.first;
        if !self.share.as_ref().is_none_or(|share| share.begins(position)) {
            return None;
        }
        let piece = left.pieces.next()?;
        left.first += 1;
        self.position = position;
        Some(piece)
    }

    /// Reads the next documents of some keys; the keys that are left, and the chunk.
    fn records(&mut self, keys: Keys) -> Result<(Chunk, Option<Keys>)> {
        let mut columns: Vec<Builder> = self.needed.iter().map(|_| Builder::default()).collect();
        let (mut rows, mut bytes) = (0, 0);
        let is_inside = |key: &[u8]| keys.to.as_deref().is_none_or(|to| key < to);
        let mut more = self.cursor.seek(&keys.from)?;
        while more && is_inside(self.cursor.key()) {
            if rows >= ROWS || bytes >= CHUNK_BYTES {
                let rest = Keys {
                    from: self.cursor.key().to_vec(),
                    to: keys.to,
                };
                return Ok((Chunk::of(columns, rows), Some(rest)));
            }
            let value = self.cursor.value()?;
            bytes += value.len();
            self.figures.documents += 1;
            self.figures.document_bytes += value.len() as u64;
            rows += self.reader.read_into(record::document(value).as_doc(), &mut columns)?;
            more = self.cursor.next()?;
        }
        Ok((Chunk::of(columns, rows), None))
    }
}

impl ColumnSource for ByColumns {
    fn advance(&mut self) -> Result<Option<usize>> {
        loop {
            match std::mem::replace(&mut self.at, At::Between) {
                At::Segment(segment, rows, end) if rows.end < end => {
                    let next = rows.end..end.min(rows.end + ROWS);
                    let count = next.len();
                    self.figures.rows += count as u64;
                    self.at = At::Segment(segment, next, end);
                    return Ok(Some(count));
                }
                At::Elements(mut elements) => {
                    if let Some(count) = elements.advance() {
                        self.figures.rows += count as u64;
                        self.at = At::Elements(elements);
                        return Ok(Some(count));
                    }
                }
                // Of a document there may be more rows than go into a chunk.
                At::Records(chunk, rows, rest) if rows.end < chunk.rows => {
                    let next = rows.end..chunk.rows.min(rows.end + ROWS);
                    let count = next.len();
                    self.at = At::Records(chunk, next, rest);
                    return Ok(Some(count));
                }
                At::Records(_, _, Some(keys)) => {
                    let (chunk, rest) = self.records(keys)?;
                    self.at = At::Records(chunk, 0..0, rest);
                }
                _ => match self.next_piece() {
                    None => return Ok(None),
                    Some(Piece::Columns(segment, rows, keys)) => {
                        if self.has_none(&segment) {
                            self.figures.skipped += 1;
                            self.figures.bytes_skipped += self.weight(&segment, &rows);
                        } else if let Some(extremes) = self.extremes(&segment, &rows) {
                            self.figures.skipped += 1;
                            self.figures.bytes_skipped += self.weight(&segment, &rows);
                            self.at = At::Records(extremes, 0..0, None);
                        } else if has_all(&self.table, &self.needed, &segment, &rows) {
                            self.figures.segments += 1;
                            self.figures.bytes += self.weight(&segment, &rows);
                            self.at = match self.table.elements {
                                Some(own) => {
                                    At::Elements(Elements::new(&self.table.columns[own.array].path, segment, rows))
                                }
                                None => At::Segment(segment, rows.start..rows.start, rows.end),
                            };
                        } else {
                            self.at = At::records(keys);
                        }
                    }
                    Some(Piece::Records(keys)) => self.at = At::records(keys),
                },
            }
        }
    }

    fn column(&mut self, at: usize, places: Option<&[u32]>) -> Result<Arc<Vector>> {
        match &self.at {
            At::Between => Ok(Arc::default()),
            At::Records(chunk, rows, _) => Ok(match places {
                None if *rows == (0..chunk.rows) => chunk.columns[at].clone(),
                None => {
                    let places: Vec<u32> = (rows.start as u32..rows.end as u32).collect();
                    Arc::new(chunk.columns[at].gather(&places))
                }
                Some(places) if rows.start == 0 => Arc::new(chunk.columns[at].gather(places)),
                Some(places) => {
                    let places: Vec<u32> = places.iter().map(|place| rows.start as u32 + place).collect();
                    Arc::new(chunk.columns[at].gather(&places))
                }
            }),
            At::Segment(segment, rows, _) => {
                let places = match places {
                    None => Places::Range(rows.clone()),
                    Some(places) => Places::At(rows.start, places),
                };
                values(&self.table.columns[at], segment, &places).map(Arc::new)
            }
            At::Elements(elements) => elements.column(&self.table, at, places).map(Arc::new),
        }
    }

    fn figures(&self) -> ColumnFigures {
        self.figures
    }

    fn keep_extremes(&mut self) {
        self.only_extremes = true;
    }

    fn position(&self) -> usize {
        self.position
    }

    fn twin(&mut self, batch: &Batch<'_>, share: &Share) -> Option<Box<dyn ColumnSource + Send>> {
        // All threads that read the table have the list.
        let threads = Arc::strong_count(&self.left) + 1;
        if self.only_extremes || self.left.rows() / threads < SHARE_MIN {
            return None;
        }
        Some(Box::new(Self {
            table: self.table.clone(),
            needed: self.needed.clone(),
            bounds: self.bounds.clone(),
            limits: self.limits.clone(),
            only_extremes: false,
            left: self.left.clone(),
            share: Some(share.clone()),
            position: 0,
            records: self.records,
            cursor: batch.view.cursor(self.records),
            reader: Documents::new(&self.table, &self.needed),
            at: At::Between,
            figures: ColumnFigures::default(),
        }))
    }

    fn restrict(&mut self, at: usize, to: &Restriction) {
        let ty = self.table.columns[at].ty.clone();
        let limit = |op: Comparison, with: Value, (nulls, is_order): (bool, bool)| {
            let bound = Bound::of(at, &ty, op, with)?;
            Some(Limit { bound, nulls, is_order })
        };
        match to {
            Restriction::Among(numbers) => {
                let value = |number: i64| match ty {
                    Type::Int2 | Type::Int4 | Type::Date => i32::try_from(number).ok().map(Value::Int32),
                    Type::Int8 | Type::Timestamp | Type::Timestamptz => Some(Value::Int64(number)),
                    _ => None,
                };
                if let (Some(least), Some(most)) = (value(numbers.ends.0), value(numbers.ends.1)) {
                    let ends = [(Comparison::GreaterEqual, least), (Comparison::LessEqual, most)];
                    self.limits
                        .extend(ends.into_iter().filter_map(|(op, end)| limit(op, end, (false, false))));
                }
            }
            Restriction::Order(order) => match &order.last {
                None => self.put_in_order(at, order),
                Some(last) => {
                    let op = match order.descending {
                        true => Comparison::GreaterEqual,
                        false => Comparison::LessEqual,
                    };
                    self.limits.retain(|limit| !limit.is_order);
                    self.limits.extend(limit(op, last.clone(), (order.nulls, true)));
                }
            },
        }
    }
}
