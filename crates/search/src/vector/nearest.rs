//! The search itself: which documents are the nearest.
//!
//! Filters go first, over the columns of all entries; distances are taken of what passes. Every vector that passes is compared.

use super::bits::Bits;
use super::definition::{Definition, Level, Similarity, VectorField};
use super::distance::{dot, dot_int8, hamming, squared, squared_int8};
use super::filter::Filter;
use super::query::{Nearest, ScoreMode};
use super::segment::{Matrix, Segment, prepare};
use super::values::{Elements, work_on};
use crate::dead::Dead;
use crate::found::{Found, Hit};
use nestor_model::statement::{charge, work};
use nestor_model::{Result, bail};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The first `limit` of an exact search that MongoDB cannot serve.
const EXACT_LIMIT: u32 = 2_147_483_631;

/// A query, checked against the definition of the index.
pub struct Prepared<'d> {
    definition: &'d Definition,
    /// Which of the vector fields it asks for.
    at: usize,
    field: &'d VectorField,
    vector: Elements,
    limit: usize,
    /// Of entries of the field's level.
    filter: Option<Filter>,
    /// Of documents.
    parent_filter: Option<Filter>,
    mode: ScoreMode,
}

impl<'d> Prepared<'d> {
    /// Checks all that is known without looking at vectors.
    ///
    /// Errors: 8.
    pub fn new(definition: &'d Definition, nearest: &Nearest) -> Result<Self> {
        check_explain(nearest)?;
        let mut vector = nearest.vector.clone();
        match &vector {
            Elements::Bits(_, unused) if *unused != 0 => {
                bail!(UnknownError, "a \"queryVector\" of bits must have no padding")
            }
            Elements::Float(numbers) if !numbers.iter().all(|number| number.is_finite()) => {
                bail!(UnknownError, "the numbers of \"queryVector\" must be finite as floats")
            }
            _ => {}
        }
        let mut fields = definition.vectors.iter().enumerate();
        let Some((at, field)) = fields.find(|(_, field)| field.path == nearest.path) else {
            bail!(UnknownError, "path '{}' needs to be indexed as vector", nearest.path);
        };
        if vector.dimensions() != field.dimensions {
            bail!(
                UnknownError,
                "vector field '{}' is indexed with {} dimensions but queried with {}",
                field.path,
                field.dimensions,
                vector.dimensions()
            );
        }
        let is_comparable = match &mut vector {
            Elements::Float(numbers) => prepare(numbers, field.similarity),
            Elements::Int8(numbers) => {
                field.similarity != Similarity::Cosine || numbers.iter().any(|number| *number != 0)
            }
            Elements::Bits(..) if field.similarity != Similarity::Euclidean => {
                bail!(
                    UnknownError,
                    "vectors of bits need similarity euclidean, which '{}' has not",
                    field.path
                )
            }
            Elements::Bits(..) => true,
        };
        if !is_comparable {
            bail!(UnknownError, "a \"queryVector\" of zeros has no cosine");
        }
        if nearest.score_mode.is_some() && field.level != Level::Elements {
            bail!(
                UnknownError,
                "\"nestedOptions\" needs an index whose \"nestedRoot\" '{}' is below",
                field.path
            );
        }
        if nearest.returns_stored_source && !definition.stores_source {
            bail!(UnknownError, "\"storedSource\" is not configured for this index");
        }
        if nearest.is_exact && nearest.limit >= EXACT_LIMIT {
            bail!(
                UnknownError,
                "\"limit\" of an exact search must be less than {EXACT_LIMIT}"
            );
        }
        let filter = |filter: &Option<nestor_model::Document>| {
            let filter = filter.as_ref().filter(|filter| !filter.is_empty());
            filter
                .map(|filter| Filter::new(filter.as_ref(), definition))
                .transpose()
        };
        Ok(Self {
            definition,
            at,
            field,
            vector,
            limit: nearest.limit as usize,
            filter: filter(&nearest.filter)?,
            parent_filter: filter(&nearest.parent_filter)?,
            mode: nearest.score_mode.unwrap_or(ScoreMode::Max),
        })
    }

    /// The nearest documents of some segments, without those that are dead of each.
    ///
    /// Errors: those of the statement's interrupt and memory.
    pub fn find<'s>(&self, segments: impl Iterator<Item = (&'s Segment, &'s Dead)>) -> Result<Found> {
        let mut best = Best {
            limit: self.limit,
            kept: BinaryHeap::new(),
        };
        for (segment, dead) in segments {
            self.scan(segment, dead, &mut best)?;
        }
        best.found()
    }

    fn scan<'s>(&self, segment: &'s Segment, dead: &'s Dead, best: &mut Best<'s>) -> Result<()> {
        let level = self.field.level;
        let passing = |filter: &Option<Filter>, level| {
            let count = segment.entries(level);
            let filter = filter.as_ref();
            filter
                .map(|filter| filter.passing(level, self.definition, segment.columns(), count))
                .transpose()
        };
        let scan = Scan {
            segment,
            level,
            dead,
            documents: passing(&self.parent_filter, Level::Documents)?,
            entries: passing(&self.filter, level)?,
            mode: self.mode,
        };
        let rows = &segment.rows()[self.at];
        match (&self.vector, self.field.similarity) {
            (Elements::Float(query), Similarity::Cosine) => {
                scan.each(&rows.float, |row| ((1.0 + dot(query, row)) / 2.0).clamp(0.0, 1.0), best)
            }
            (Elements::Float(query), Similarity::DotProduct) => {
                scan.each(&rows.float, |row| ((1.0 + dot(query, row)) / 2.0).max(0.0), best)
            }
            (Elements::Float(query), Similarity::Euclidean) => {
                scan.each(&rows.float, |row| 1.0 / (1.0 + squared(query, row)), best)
            }
            (Elements::Int8(query), Similarity::Cosine) => {
                let own = f64::from(dot_int8(query, query));
                let cosine =
                    |row: &[i8]| f64::from(dot_int8(query, row)) / (own * f64::from(dot_int8(row, row))).sqrt();
                scan.each(
                    &rows.int8,
                    |row| ((1.0 + cosine(row)) / 2.0).clamp(0.0, 1.0) as f32,
                    best,
                )
            }
            (Elements::Int8(query), Similarity::DotProduct) => {
                // The greatest product of two numbers of 8 bits makes this one half.
                let scale = query.len() as f32 * 32768.0;
                scan.each(&rows.int8, |row| 0.5 + dot_int8(query, row) as f32 / scale, best)
            }
            (Elements::Int8(query), Similarity::Euclidean) => {
                scan.each(&rows.int8, |row| 1.0 / (1.0 + squared_int8(query, row) as f32), best)
            }
            (Elements::Bits(query, _), _) => {
                let bits = (query.len() * 8) as f32;
                scan.each(&rows.bits, |row| (bits - hamming(query, row) as f32) / bits, best)
            }
        }
    }
}

fn check_explain(nearest: &Nearest) -> Result<()> {
    match nearest.explain {
        None => Ok(()),
        Some(_) if !nearest.is_explained => bail!(UnknownError, "\"explainOptions\" can be given in an explain only"),
        Some(explain) if !explain.has_ids => {
            bail!(
                UnknownError,
                "\"explainOptions\" needs \"traceDocumentIds\", none of which is null"
            )
        }
        Some(_) => Ok(()),
    }
}

/// What of a segment is compared.
struct Scan<'s> {
    segment: &'s Segment,
    level: Level,
    /// The documents that are not there any more.
    dead: &'s Dead,
    /// The documents that pass; all without a filter.
    documents: Option<Bits>,
    /// The entries that pass; all without a filter.
    entries: Option<Bits>,
    mode: ScoreMode,
}

impl<'s> Scan<'s> {
    fn each<T: Copy>(&self, matrix: &Matrix<T>, score: impl Fn(&[T]) -> f32, best: &mut Best<'s>) -> Result<()> {
        let width = matrix.width();
        let mut open: Option<Open> = None;
        for (entry, row) in matrix.entries.iter().zip(matrix.values.chunks_exact(width.max(1))) {
            let document = self.segment.document(self.level, *entry);
            let passes = |set: &Option<Bits>, at| set.as_ref().is_none_or(|set| set.has(at));
            if !passes(&self.entries, *entry as usize)
                || !passes(&self.documents, document)
                || self.dead.has(document as u32)
            {
                work(1)?;
                continue;
            }
            work_on(width)?;
            let score = score(row);
            // Infinite numbers less infinite ones.
            let score = if score.is_nan() { 0.0 } else { score };
            match &mut open {
                Some(open) if open.document == document => open.add(score, self.mode),
                _ => {
                    self.close(open.take(), best)?;
                    open = Some(Open {
                        document,
                        score,
                        count: 1,
                    });
                }
            }
        }
        self.close(open, best)
    }

    fn close(&self, open: Option<Open>, best: &mut Best<'s>) -> Result<()> {
        let Some(open) = open else { return Ok(()) };
        best.offer(Candidate {
            score: match self.mode {
                ScoreMode::Max => open.score,
                ScoreMode::Average => open.score / open.count as f32,
            },
            key: self.segment.key(open.document),
        })
    }
}

/// A document whose entries are being gone through.
struct Open {
    document: usize,
    /// The greatest score so far, or the sum of all.
    score: f32,
    count: u32,
}

impl Open {
    fn add(&mut self, score: f32, mode: ScoreMode) {
        self.count += 1;
        match mode {
            ScoreMode::Max => self.score = self.score.max(score),
            ScoreMode::Average => self.score += score,
        }
    }
}

/// A document with its score. The greatest is the worst.
struct Candidate<'s> {
    score: f32,
    key: &'s [u8],
}

impl Ord for Candidate<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then_with(|| self.key.cmp(other.key))
    }
}

impl PartialOrd for Candidate<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Candidate<'_> {}

/// The best candidates so far, the worst of them on top.
struct Best<'s> {
    limit: usize,
    kept: BinaryHeap<Candidate<'s>>,
}

impl<'s> Best<'s> {
    fn offer(&mut self, candidate: Candidate<'s>) -> Result<()> {
        if self.kept.len() < self.limit {
            charge(size_of::<Candidate<'_>>() + size_of::<Hit>() + candidate.key.len())?;
            self.kept.push(candidate);
        } else if let Some(mut worst) = self.kept.peek_mut()
            && candidate < *worst
        {
            *worst = candidate;
        }
        Ok(())
    }

    fn found(self) -> Result<Found> {
        work(self.kept.len())?;
        let hit = |candidate: Candidate<'_>| Hit {
            key: candidate.key.into(),
            score: f64::from(candidate.score),
            highlights: None,
            details: None,
            token: None,
            stored: None,
        };
        Ok(Found {
            hits: self
                .kept
                .into_sorted_vec()
                .into_iter()
                .map(hit)
                .collect::<Vec<_>>()
                .into(),
            meta: None,
        })
    }
}
