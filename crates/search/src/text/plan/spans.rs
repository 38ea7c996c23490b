//! Where spans of a text are that follow from others.

use super::node::SpanTree;
use nestor_model::Result;
use nestor_model::statement::work;

/// Spans of one text that are kept at most.
const SPANS_MAX: usize = 100_000;

/// A piece of a text: from a position until before another; and how many positions in it are of no term.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Place {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) gap: u32,
}

impl Place {
    fn overlaps(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// The spans of a tree, ascending; `positions` gives where a term is.
pub(super) fn places<'t>(tree: &SpanTree, positions: &mut dyn FnMut(&str) -> &'t [u32]) -> Result<Vec<Place>> {
    let mut found = match tree {
        SpanTree::Terms(terms) => {
            let mut found = Vec::new();
            for term in terms {
                found.extend(positions(term).iter().map(|at| Place {
                    start: *at,
                    end: at + 1,
                    gap: 0,
                }));
            }
            found
        }
        SpanTree::First(of, end) => {
            let mut found = places(of, positions)?;
            found.retain(|place| place.end <= *end);
            found
        }
        SpanTree::Or(of) => {
            let mut found = Vec::new();
            for tree in of {
                found.extend(places(tree, positions)?);
            }
            found
        }
        SpanTree::Subtract(include, exclude) => {
            let mut found = places(include, positions)?;
            let others = places(exclude, positions)?;
            work(1 + found.len() * others.len() / 64)?;
            found.retain(|place| !others.iter().any(|other| place.overlaps(*other)));
            found
        }
        SpanTree::Contains { big, little, inner } => {
            let (mut big, mut little) = (places(big, positions)?, places(little, positions)?);
            work(1 + big.len() * little.len() / 64)?;
            match inner {
                true => {
                    little.retain(|little| big.iter().any(|big| big.contains(*little)));
                    little
                }
                false => {
                    big.retain(|big| little.iter().any(|little| big.contains(*little)));
                    big
                }
            }
        }
        SpanTree::Near { of, slop, in_order } => {
            let mut all = Vec::with_capacity(of.len());
            for tree in of {
                all.push(places(tree, positions)?);
            }
            match in_order {
                true => ordered(&all, *slop)?,
                false => unordered(&all, *slop)?,
            }
        }
    };
    found.sort_unstable();
    found.dedup();
    found.truncate(SPANS_MAX);
    work(1 + found.len() / 16)?;
    Ok(found)
}

/// Spans one behind the other.
fn ordered(all: &[Vec<Place>], slop: u32) -> Result<Vec<Place>> {
    let Some((first, others)) = all.split_first() else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    'first: for begin in first {
        work(all.len())?;
        let mut last = *begin;
        let mut gap = 0;
        for own in others {
            let next = own[own.partition_point(|place| place.start < last.end)..].first();
            let Some(next) = next else {
                continue 'first;
            };
            gap += next.start - last.end;
            last = *next;
        }
        if gap <= slop {
            found.push(Place {
                start: begin.start,
                end: last.end,
                gap,
            });
        }
    }
    Ok(found)
}

/// Spans near each other in any order.
fn unordered(all: &[Vec<Place>], slop: u32) -> Result<Vec<Place>> {
    if all.is_empty() || all.iter().any(Vec::is_empty) {
        return Ok(Vec::new());
    }
    let mut numbers = vec![0; all.len()];
    let mut found = Vec::new();
    loop {
        work(all.len())?;
        let own = || all.iter().zip(&numbers).map(|(places, number)| places[*number]);
        let start = own().map(|place| place.start).min().unwrap_or(0);
        let end = own().map(|place| place.end).max().unwrap_or(0);
        let length: u32 = own().map(|place| place.end - place.start).sum();
        let gap = (end - start).saturating_sub(length);
        let mut sorted: Vec<Place> = own().collect();
        sorted.sort_unstable();
        let is_distinct = sorted.windows(2).all(|pair| pair[0] != pair[1]);
        if gap <= slop && is_distinct {
            found.push(Place { start, end, gap });
        }
        let lowest = (0..all.len()).min_by_key(|at| all[*at][numbers[*at]]).unwrap_or(0);
        numbers[lowest] += 1;
        if numbers[lowest] == all[lowest].len() {
            return Ok(found);
        }
    }
}
