//! What is left of a scan by columns.

use super::Pieces;
use crate::batch::Batch;
use crate::columns::ColumnRows;
use nestor_columns::{Keys, Piece};
use nestor_model::Result;
use nestor_storage::TreeId;
use std::collections::VecDeque;

/// Rows of a segment for which the condition holds, some of which may have been handed over.
pub(super) struct Picked {
    pub(super) rows: ColumnRows,
    /// How many were.
    pub(super) next: usize,
}

impl Picked {
    pub(super) fn new(rows: ColumnRows) -> Self {
        Self { rows, next: 0 }
    }

    /// How many are left.
    pub(super) fn left(&self) -> usize {
        self.rows.len() - self.next
    }

    /// One of them, as a row of the segment.
    pub(super) fn row(&self, at: usize) -> usize {
        let from = self.rows.rows.start;
        match &self.rows.picked {
            Some(picked) => from + picked[at] as usize,
            None => from + at,
        }
    }

    /// The key of the next one's record.
    pub(super) fn key(&self) -> Option<Vec<u8>> {
        let record = self.rows.segment.records()?;
        Some(record(self.row(self.next)).to_vec())
    }

    /// Those that are left.
    pub(super) fn rest(mut self) -> ColumnRows {
        if self.next > 0 {
            match &mut self.rows.picked {
                Some(picked) => drop(picked.drain(..self.next)),
                None => self.rows.rows.start += self.next,
            }
        }
        self.rows
    }
}

impl Pieces {
    /// The key of the next row, or one before it; `None` at the end.
    pub(super) fn position(&self) -> Option<Vec<u8>> {
        let own = self.picked.as_ref().and_then(Picked::key);
        own.or_else(|| match self.left.front()? {
            Piece::Columns(_, _, keys) | Piece::Records(keys) => Some(keys.from.clone()),
        })
    }
}

/// The pieces of a collection from a key on; `None` when there are no columns.
pub(super) fn from(from: &[u8], records: TreeId, batch: &Batch<'_>) -> Result<Option<VecDeque<Piece>>> {
    let Some(columns) = batch.columns else {
        return Ok(None);
    };
    let Some(reading) = columns.read(batch.view, records)? else {
        return Ok(None);
    };
    let mut pieces = VecDeque::from(reading.pieces);
    while let Some(first) = pieces.front() {
        let (Piece::Columns(_, _, keys) | Piece::Records(keys)) = first;
        if keys.to.as_deref().is_some_and(|to| to <= from) {
            pieces.pop_front();
            continue;
        }
        if keys.from.as_slice() < from {
            let keys = Keys {
                from: from.to_vec(),
                to: keys.to.clone(),
            };
            pieces[0] = match first {
                Piece::Columns(segment, rows, _) => match segment.row_from(from) {
                    Some(row) => Piece::Columns(segment.clone(), row.clamp(rows.start, rows.end)..rows.end, keys),
                    None => Piece::Records(keys),
                },
                Piece::Records(_) => Piece::Records(keys),
            };
        }
        break;
    }
    Ok(Some(pieces))
}
