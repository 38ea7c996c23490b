//! Patterns over texts that rows share: each text is matched once, and a piece is looked for in all of them at a time.

use super::Matcher;
use memchr::memmem::Finder;
use nestor_model::Result;
use nestor_model::statement::work;
use nestor_model::vector::{NO_ROW, Pool, Texts};
use nestor_planner::relation::chunk::ROWS;
use std::sync::{Arc, Weak};

/// A chunk with so many rows is one of a whole column: then all texts of the pool are looked through.
const ROWS_MANY: usize = ROWS / 3;

/// Bytes that are looked through in a unit of work.
const BYTES_PER_UNIT: usize = 4096;

/// What is known of a text.
#[derive(Clone, Copy, PartialEq)]
enum Known {
    Nothing,
    Matches,
    Differs,
}

/// Which texts of a pool match a pattern, as far as it was asked.
pub(super) struct Pooled {
    pool: Weak<Pool>,
    matcher: Arc<Matcher>,
    known: Vec<Known>,
}

impl Pooled {
    pub(super) fn new(pool: &Arc<Pool>, matcher: Arc<Matcher>) -> Self {
        Self {
            pool: Arc::downgrade(pool),
            matcher,
            known: Vec::new(),
        }
    }

    /// Whether it is of this pool and pattern.
    pub(super) fn is_of(&self, pool: &Arc<Pool>, matcher: &Arc<Matcher>) -> bool {
        // A pool cannot be another at the same place as long as somebody knows of it.
        std::ptr::eq(self.pool.as_ptr(), Arc::as_ptr(pool)) && Arc::ptr_eq(&self.matcher, matcher)
    }

    /// Whether each row's text matches, or differs if that is asked; of null rows anything.
    ///
    /// Errors: 2201B, and those of the interrupt.
    pub(super) fn of(
        &mut self,
        pool: &Pool,
        numbers: &[u32],
        nulls: Option<&[bool]>,
        negated: bool,
    ) -> Result<Vec<bool>> {
        if self.known.is_empty() {
            self.known = match only_piece(&self.matcher).filter(|_| numbers.len() >= ROWS_MANY) {
                Some(piece) => with_piece(pool, piece)?,
                None => vec![Known::Nothing; pool.len()],
            };
        }
        let mut found = Vec::with_capacity(numbers.len());
        for (row, number) in numbers.iter().enumerate() {
            let known = self.known.get(*number as usize).copied().unwrap_or(Known::Nothing);
            let matches = match known {
                Known::Nothing if nulls.is_some_and(|nulls| nulls[row]) => false,
                Known::Nothing => {
                    work(1)?;
                    let matches = self.matcher.matches(pool.get(*number))?;
                    if *number != NO_ROW {
                        self.known[*number as usize] = if matches { Known::Matches } else { Known::Differs };
                    }
                    matches
                }
                known => known == Known::Matches,
            };
            found.push(matches != negated);
        }
        Ok(found)
    }
}

/// The piece that a text has to have anywhere to match, if that is all that is asked.
fn only_piece(matcher: &Matcher) -> Option<&Finder<'static>> {
    match matcher {
        Matcher::Pieces(begin, middle, end) if begin.is_empty() && end.is_empty() => match middle.as_slice() {
            [piece] => Some(piece),
            _ => None,
        },
        _ => None,
    }
}

/// Which texts have a piece that is not empty.
fn with_piece(pool: &Pool, piece: &Finder<'_>) -> Result<Vec<Known>> {
    work(1 + pool.all().len() / BYTES_PER_UNIT)?;
    let mut known = vec![Known::Differs; pool.len()];
    let (all, begins) = (pool.all().as_bytes(), pool.begins());
    let (mut from, mut text) = (0, 0);
    while let Some(at) = piece.find(&all[from..]) {
        let at = from + at;
        while begins[text + 1] as usize <= at {
            text += 1;
        }
        let end = begins[text + 1] as usize;
        from = if at + piece.needle().len() <= end {
            known[text] = Known::Matches;
            end
        } else {
            // It reaches into the next text.
            at + 1
        };
    }
    Ok(known)
}

/// Whether each row's text matches, or differs if that is asked; of null rows anything.
///
/// Errors: 2201B, and those of the interrupt.
pub(super) fn each(texts: &Texts, nulls: Option<&[bool]>, matcher: &Matcher, negated: bool) -> Result<Vec<bool>> {
    if let (Some(piece), Some(own)) = (only_piece(matcher), texts.own()) {
        work(texts.len())?;
        let known = with_piece(own, piece)?;
        return Ok(known
            .iter()
            .map(|known| (*known == Known::Matches) != negated)
            .collect());
    }
    let mut found = Vec::with_capacity(texts.len());
    for row in 0..texts.len() {
        work(1)?;
        let is_null = nulls.is_some_and(|nulls| nulls[row]);
        found.push(!is_null && matcher.matches(texts.get(row))? != negated);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::like::pieces;

    #[test]
    fn texts_of_a_pool_match_as_each_does() {
        let texts = [
            "",
            "go",
            "ogle",
            "google",
            "goo",
            "gle",
            "ggoogle",
            "é",
            "agooglegoogle",
            "goog",
            "legoogl",
        ];
        let mut pool = Texts::default();
        texts.iter().for_each(|text| assert!(pool.push(text)));
        for pattern in ["%google%", "%g%", "%o%e%", "google", "g%", "%é%", "%%", "%gg%"] {
            let matcher = Arc::new(pieces(pattern, None).expect("no other signs"));
            let singly = texts.map(|text| !matcher.matches(text).expect("no error"));
            let own = each(&pool, None, &matcher, true).expect("no error");
            assert_eq!(own, singly, "{pattern}");
            for times in [1, 100] {
                let numbers: Vec<u32> = (0..texts.len() as u32)
                    .rev()
                    .cycle()
                    .take(texts.len() * times)
                    .chain([NO_ROW])
                    .collect();
                let rows = pool.picked(numbers);
                let (pool, numbers) = rows.shared().expect("a pool");
                let mut known = Pooled::new(pool, matcher.clone());
                for _ in 0..2 {
                    let found = known.of(pool, numbers, None, false).expect("no error");
                    assert_eq!(
                        found,
                        each(&rows, None, &matcher, false).expect("no error"),
                        "{pattern}"
                    );
                }
                let nulls = vec![true; numbers.len()];
                assert!(known.of(pool, numbers, Some(&nulls), true).is_ok());
                assert!(known.is_of(pool, &matcher));
            }
        }
    }
}
