//! What of a tree is read by columns, and what document by document.

use crate::Segment;
use std::ops::Range;
use std::sync::Arc;

/// A part of a tree; the parts of a scan are in order of their keys, and together all of it.
#[derive(Debug)]
pub enum Piece {
    /// Rows of a segment, none of which was changed, and where their records are.
    Columns(Arc<Segment>, Range<usize>, Keys),
    /// Records.
    Records(Keys),
}

/// The keys from one on, up to another; to the end without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// The first, or one before it.
    pub from: Vec<u8>,
    /// The first behind them.
    pub to: Option<Vec<u8>>,
}

impl Keys {
    pub(crate) fn new(from: &[u8], to: Option<&[u8]>) -> Self {
        Self {
            from: from.to_vec(),
            to: to.map(<[u8]>::to_vec),
        }
    }

    /// Adds those of a neighbour.
    fn extend(&mut self, to: Option<&[u8]>) {
        self.to = to.map(<[u8]>::to_vec);
    }
}

/// Collects pieces; neighbours of a kind become one.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    pub(crate) all: Vec<Piece>,
    /// How many documents are in segments.
    pub(crate) rows: usize,
}

impl Pieces {
    pub(crate) fn columns(&mut self, segment: &Arc<Segment>, rows: Range<usize>, (from, to): (&[u8], Option<&[u8]>)) {
        if rows.is_empty() {
            return;
        }
        self.rows += rows.len();
        match self.all.last_mut() {
            Some(Piece::Columns(last, before, keys))
                if Arc::ptr_eq(last, segment) && before.end == rows.start && keys.to.as_deref() == Some(from) =>
            {
                before.end = rows.end;
                keys.extend(to);
            }
            _ => self
                .all
                .push(Piece::Columns(segment.clone(), rows, Keys::new(from, to))),
        }
    }

    pub(crate) fn records(&mut self, from: &[u8], to: Option<&[u8]>) {
        match self.all.last_mut() {
            Some(Piece::Records(keys)) if keys.to.as_deref() == Some(from) => keys.extend(to),
            _ => self.all.push(Piece::Records(Keys::new(from, to))),
        }
    }
}
