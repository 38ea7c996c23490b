//! Texts that rows share: what depends on a text alone is computed once for each different one of a chunk.

use nestor_model::vector::{Data, NO_ROW, Vector};

/// A pool with more times as many texts than a chunk has rows is not looked through.
const POOL_PART: usize = 16;

/// Rows of which others have the same text, and of each row the one among them that has its text.
pub(super) struct Distinct {
    /// The first rows of the different texts, and of null.
    pub first: Vec<u32>,
    /// Places in `first`.
    pub of_rows: Vec<u32>,
}

/// The different texts of a vector; `None` where fewer than every eighth row has the text of another one.
pub(super) fn distinct(vector: &Vector) -> Option<Distinct> {
    let Data::Text(texts) = &vector.data else {
        return None;
    };
    let (pool, numbers) = texts.shared()?;
    let rows = numbers.len();
    if pool.len() / POOL_PART > rows {
        return None;
    }
    // Behind those of the pool: null, and the empty text that is of no pool.
    let mut seen = vec![NO_ROW; pool.len() + 2];
    let (mut first, mut of_rows) = (Vec::new(), Vec::with_capacity(rows));
    for (row, number) in numbers.iter().enumerate() {
        let at = match vector.is_null(row) {
            true => pool.len(),
            false => (*number as usize).min(pool.len() + 1),
        };
        if seen[at] == NO_ROW {
            seen[at] = first.len() as u32;
            first.push(row as u32);
            if first.len() * 8 > rows * 7 {
                return None;
            }
        }
        of_rows.push(seen[at]);
    }
    Some(Distinct { first, of_rows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::vector::Texts;

    #[test]
    fn rows_with_the_same_text_share_the_first_of_them() {
        let mut pool = Texts::default();
        ["", "a", "b"].iter().for_each(|text| assert!(pool.push(text)));
        let of = |numbers: &[u32], nulls: Option<Vec<bool>>| Vector {
            data: Data::Text(pool.picked(numbers.to_vec())),
            nulls,
        };
        let found = distinct(&of(&[1, 1, 0, 1, 0, NO_ROW, NO_ROW, 1], None)).expect("shared texts");
        assert_eq!(
            (found.first, found.of_rows),
            (vec![0, 2, 5], vec![0, 0, 1, 0, 1, 2, 2, 0])
        );
        // A null is no text, whatever its number is.
        let nulls = vec![false, true, false, true];
        let found = distinct(&of(&[1, 1, 1, 0], Some(nulls))).expect("shared texts");
        assert_eq!((found.first, found.of_rows), (vec![0, 1], vec![0, 1, 0, 1]));
        assert!(distinct(&of(&[0, 1, 2], None)).is_none());
    }
}
