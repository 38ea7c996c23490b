//! Which of many rows may be among the first few.

/// The places of rows that may be among the first `keep`, by the ranks of their first keys; of those without one that is not known.
/// `worst`: of as many others the largest rank, if there are as many.
pub(crate) fn leading(ranks: &[Option<i64>], worst: Option<i64>, keep: usize) -> Vec<u32> {
    let worst = worst.unwrap_or(i64::MAX);
    let places = (0..)
        .zip(ranks)
        .filter(|(_, rank)| rank.is_none_or(|rank| rank <= worst));
    let mut places: Vec<u32> = places.map(|(place, _)| place).collect();
    let known: Option<Vec<i64>> = match places.len() / 2 > keep {
        true => places.iter().map(|place| ranks[*place as usize]).collect(),
        false => None,
    };
    if let Some(mut known) = known {
        // No more than these come before the last of the first of them, but for equal ones.
        let last = *known.select_nth_unstable(keep.saturating_sub(1)).1;
        places.retain(|place| ranks[*place as usize].is_some_and(|rank| rank <= last));
    }
    places
}

/// A whole number as its rank.
pub(crate) fn rank(value: i64, descending: bool) -> i64 {
    if descending { !value } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_among_them() {
        let numbers = [5, 3, 9, 3, 7, 1, 8, 3, 6, 2];
        let ranks: Vec<Option<i64>> = numbers.iter().map(|number| Some(rank(*number, false))).collect();
        assert_eq!(leading(&ranks, None, 2), [5, 9]);
        assert_eq!(
            leading(&ranks, None, 3),
            [1, 3, 5, 7, 9],
            "equal ones are told apart by others"
        );
        assert_eq!(leading(&ranks, Some(2), 20), [5, 9]);
        let back: Vec<Option<i64>> = numbers.iter().map(|number| Some(rank(*number, true))).collect();
        assert_eq!(leading(&back, None, 1), [2]);
        let mut some = ranks.clone();
        some[0] = None;
        assert_eq!(leading(&some, Some(1), 1), [0, 5]);
        assert_eq!(leading(&some, None, 1).len(), 10);
    }
}
