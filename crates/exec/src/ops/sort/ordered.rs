//! Rows in memory that are in order.

use super::Sortable;
use nestor_model::Result;
use nestor_model::sort::order_unstable_by;
use nestor_model::statement::{BYTES_PER_UNIT, note};

/// Rows sorted at once, and bytes of their keys: less than a millisecond of comparing.
const CHUNK_ROWS: usize = 1024;
const CHUNK_KEY_BYTES: usize = 256 << 10;
/// Keys from which on comparing two takes longer than a unit of work.
const LONG_KEY_BYTES: usize = 4 * BYTES_PER_UNIT;

/// Rows to be given out in order. They stay where they are: a row is large.
#[derive(Default)]
pub(super) struct Ordered {
    rows: Vec<Option<Sortable>>,
    /// Positions, the next one last.
    order: Vec<usize>,
}

impl Ordered {
    /// Brings rows in order. Looks at the interrupt while it does.
    pub(super) fn new(mut rows: Vec<Sortable>) -> Result<Self> {
        let key_bytes: usize = rows.iter().map(|row| row.key.len()).sum();
        let mean = key_bytes / rows.len().max(1);
        let chunk = (CHUNK_KEY_BYTES / mean.max(1)).min(CHUNK_ROWS);
        let mut order = order_unstable_by(&mut rows, chunk, |a, b| {
            if mean > LONG_KEY_BYTES {
                note(a.key.len().min(b.key.len()) / BYTES_PER_UNIT);
            }
            a.cmp(b)
        })?;
        order.reverse();
        let rows = rows.into_iter().map(Some).collect();
        Ok(Self { rows, order })
    }

    /// The number of rows.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// The next row.
    pub(super) fn pop(&mut self) -> Option<Sortable> {
        let at = self.order.pop()?;
        self.rows[at].take()
    }
}
