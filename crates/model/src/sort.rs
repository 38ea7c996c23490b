//! Sorting that can be interrupted.

use crate::Result;
use crate::statement::work;
use std::cmp::Ordering;

/// Up to this many items are sorted at once.
const CHUNK: usize = 256;
/// The same for items whose comparison is known to be cheap.
const CHEAP_CHUNK: usize = 2048;

/// Sorts; items that compare equal keep their order. Looks at the interrupt of the statement while it does.
///
/// Chunks are sorted by the standard library and then merged by pairs, as indexes: comparing is what costs here.
pub fn sort_by<T>(items: &mut Vec<T>, mut compare: impl FnMut(&T, &T) -> Ordering) -> Result<()> {
    for chunk in items.chunks_mut(CHUNK) {
        work(8 * chunk.len())?;
        chunk.sort_by(&mut compare);
    }
    if items.len() <= CHUNK {
        return Ok(());
    }
    let order = merged_order(items, CHUNK, compare)?;
    let mut slots: Vec<Option<T>> = std::mem::take(items).into_iter().map(Some).collect();
    items.extend(order.into_iter().filter_map(|at| slots[at].take()));
    Ok(())
}

/// The positions of the items in their order; equal ones are in any. Moves each item at most `chunk` places, and looks at the
/// interrupt of the statement after every `chunk` items that it sorts at once.
pub fn order_unstable_by<T>(
    items: &mut [T],
    chunk: usize,
    mut compare: impl FnMut(&T, &T) -> Ordering,
) -> Result<Vec<usize>> {
    let chunk = chunk.max(1);
    for chunk in items.chunks_mut(chunk) {
        work(8 * chunk.len())?;
        chunk.sort_unstable_by(&mut compare);
    }
    merged_order(items, chunk, compare)
}

/// Sorts small items, which are moved rather than pointed at; equal ones are in any order. Looks at the interrupt of the
/// statement while it does. Fast when they are in order already.
pub fn sort_copies_by<T: Copy>(items: &mut Vec<T>, mut compare: impl FnMut(&T, &T) -> Ordering) -> Result<()> {
    for chunk in items.chunks_mut(CHEAP_CHUNK) {
        work(2 * chunk.len())?;
        chunk.sort_unstable_by(&mut compare);
    }
    merge(items, CHEAP_CHUNK, compare)
}

/// The order of items of which each `run` neighbours are in order.
fn merged_order<T>(items: &[T], run: usize, mut compare: impl FnMut(&T, &T) -> Ordering) -> Result<Vec<usize>> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    merge(&mut order, run, |a, b| compare(&items[*a], &items[*b]))?;
    Ok(order)
}

/// Merges items of which each `run` neighbours are in order; equal ones keep theirs.
fn merge<T: Copy>(items: &mut Vec<T>, mut run: usize, mut compare: impl FnMut(&T, &T) -> Ordering) -> Result<()> {
    let mut merged = Vec::new();
    while run < items.len() {
        merged.reserve(items.len());
        for pair in items.chunks(2 * run) {
            let (mut left, mut right) = pair.split_at(run.min(pair.len()));
            let is_ordered = match (left.last(), right.first()) {
                (Some(last), Some(first)) => compare(last, first).is_le(),
                _ => true,
            };
            work(1 + pair.len() / 64)?;
            while let ([a, left_rest @ ..], [b, right_rest @ ..], false) = (left, right, is_ordered) {
                work(1)?;
                if compare(a, b).is_gt() {
                    merged.push(*b);
                    right = right_rest;
                } else {
                    merged.push(*a);
                    left = left_rest;
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        std::mem::swap(items, &mut merged);
        merged.clear();
        run *= 2;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;
    use crate::interrupt::{Interrupt, KillSwitch};
    use crate::statement;
    use std::sync::Arc;

    #[test]
    fn sorts_as_the_standard_library_does() {
        for length in [0, 1, 2, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK + 7, 20_000] {
            let mut random = 7_u64;
            let mut items: Vec<(u64, usize)> = (0..length)
                .map(|at| {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    (random >> 54, at)
                })
                .collect();
            let mut expected = items.clone();
            expected.sort_by_key(|item| item.0);
            sort_by(&mut items, |a, b| a.0.cmp(&b.0)).expect("nobody interrupts it");
            assert_eq!(items, expected, "{length} items, equal ones in their order");
            items.reverse();
            for chunk in [1, 3, 1000, usize::MAX / 4] {
                let order = order_unstable_by(&mut items, chunk, Ord::cmp).expect("nobody interrupts it");
                assert!(order.iter().map(|at| items[*at]).eq(expected.iter().copied()));
            }
            for _already in 0..2 {
                sort_copies_by(&mut items, Ord::cmp).expect("nobody interrupts it");
                assert_eq!(items, expected);
            }
        }
    }

    #[test]
    fn stops_when_it_is_time() {
        let kill = Arc::new(KillSwitch::default());
        let mut compared = 0;
        let sorted = statement::under(&Interrupt::new(kill.clone(), None), None, || {
            let mut compare = |a: &i32, b: &i32| {
                compared += 1;
                if compared % 5_000 == 0 {
                    kill.kill(ErrorCode::Interrupted);
                }
                // Of no order that a sort of the standard library would find by itself.
                (a % 1009, a).cmp(&(b % 1009, b))
            };
            let items = || (0..1_000_000).rev().collect::<Vec<i32>>();
            let stable = sort_by(&mut items(), &mut compare);
            kill.reset();
            let order = order_unstable_by(&mut items(), 512, &mut compare).map(drop);
            kill.reset();
            [stable, order, sort_copies_by(&mut items(), &mut compare)]
        });
        for sorted in sorted {
            assert_eq!(sorted.expect_err("killed").code(), ErrorCode::Interrupted);
        }
        assert!(compared < 150_000, "{compared}");
    }
}
