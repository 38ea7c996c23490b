//! Sorting that can be interrupted.

use crate::Result;
use crate::statement::work;
use std::cmp::Ordering;

/// Up to this many items are sorted at once.
const CHUNK: usize = 256;

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
    let mut order: Vec<usize> = (0..items.len()).collect();
    let mut merged = Vec::with_capacity(order.len());
    let mut run = CHUNK;
    while run < order.len() {
        for pair in order.chunks(2 * run) {
            let (mut left, mut right) = pair.split_at(run.min(pair.len()));
            while let ([a, left_rest @ ..], [b, right_rest @ ..]) = (left, right) {
                work(1)?;
                if compare(&items[*a], &items[*b]).is_gt() {
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
        std::mem::swap(&mut order, &mut merged);
        merged.clear();
        run *= 2;
    }
    let mut slots: Vec<Option<T>> = std::mem::take(items).into_iter().map(Some).collect();
    items.extend(order.into_iter().filter_map(|at| slots[at].take()));
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
        }
    }

    #[test]
    fn stops_when_it_is_time() {
        let kill = Arc::new(KillSwitch::default());
        let mut compared = 0;
        let sorted = statement::under(&Interrupt::new(kill.clone(), None), None, || {
            sort_by(&mut (0..1_000_000).rev().collect(), |a: &i32, b| {
                compared += 1;
                if compared == 5_000 {
                    kill.kill(ErrorCode::Interrupted);
                }
                a.cmp(b)
            })
        });
        assert_eq!(sorted.expect_err("killed").code(), ErrorCode::Interrupted);
        assert!(compared < 50_000, "{compared}");
    }
}
