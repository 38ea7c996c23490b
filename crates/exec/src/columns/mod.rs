//! Documents that are read column by column: what the operators of pipelines share that can do with columns.
//!
//! A consumer that looks at few paths takes rows of segments in the place of documents
//! ([`RowBatch::take_columns`](crate::row_batch::RowBatch::take_columns)). [`filter`] is the condition of a scan over columns, [`fields`] makes
//! small documents of the paths that an expression reads, where it is evaluated row by row, [`made`] those that a consumer of documents looks at, [`projected`] makes rows of columns of others, `spread` leads paths through arrays.

pub(crate) mod computed;
pub(crate) mod fields;
pub(crate) mod filter;
pub(crate) mod made;
pub(crate) mod projected;
mod spread;

use nestor_columns::{Places, Segment};
use std::ops::Range;
use std::sync::Arc;

/// Rows of a segment.
#[derive(Clone, Debug)]
pub struct ColumnRows {
    /// The segment.
    pub segment: Arc<Segment>,
    /// Its rows.
    pub rows: Range<usize>,
    /// Which of these, counted from the first of them; `None` for all.
    pub picked: Option<Vec<u32>>,
}

/// Rows that are computed with at a time.
const CHUNK: usize = 1024;

impl ColumnRows {
    /// How many.
    pub fn len(&self) -> usize {
        self.picked.as_ref().map_or(self.rows.len(), Vec::len)
    }

    /// The first of them, as a row of the segment.
    pub(crate) fn first(&self) -> usize {
        let place = self.picked.as_ref().and_then(|picked| picked.first());
        self.rows.start + place.map_or(0, |place| *place as usize)
    }

    /// Bytes that it takes beside the segment.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.picked.as_ref().map_or(0, |picked| picked.len() * size_of::<u32>())
    }

    /// The rows without the first chunks of them.
    pub(crate) fn without(&self, chunks: usize) -> Self {
        let from = self.len().min(chunks * CHUNK);
        match &self.picked {
            None => Self {
                rows: self.rows.start + from..self.rows.end,
                ..self.clone()
            },
            Some(picked) => Self {
                segment: self.segment.clone(),
                rows: self.rows.clone(),
                picked: Some(picked[from..].to_vec()),
            },
        }
    }

    /// The rows, some at a time.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = Places<'_>> {
        let len = self.len();
        (0..len).step_by(CHUNK).map(move |from| {
            let to = len.min(from + CHUNK);
            match &self.picked {
                None => Places::Range(self.rows.start + from..self.rows.start + to),
                Some(picked) => Places::At(self.rows.start, &picked[from..to]),
            }
        })
    }
}
