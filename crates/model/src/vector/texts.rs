//! Texts of rows, each of which is one of a pool.

use super::NO_ROW;
use std::sync::Arc;

/// Texts side by side in one string, by number.
#[derive(Clone, Debug)]
pub struct Pool {
    all: String,
    /// Where each begins; and where the last one ends.
    begins: Vec<u32>,
}

/// Texts of rows: places in a pool that vectors of picked rows share.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    pool: Arc<Pool>,
    /// Which of the pool each row has, [`NO_ROW`] for an empty one; without it each row has the one of its own number.
    numbers: Option<Vec<u32>>,
}

impl Default for Pool {
    /// No texts.
    fn default() -> Self {
        Self {
            all: String::new(),
            begins: vec![0],
        }
    }
}

impl Pool {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.begins.len() - 1
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where a text lies in [`Pool::all`].
    fn bounds(&self, number: usize) -> (usize, usize) {
        match self.begins.get(number..) {
            Some([from, to, ..]) => (*from as usize, *to as usize),
            _ => (0, 0),
        }
    }

    /// The text of a number; empty for [`NO_ROW`].
    #[inline]
    pub fn get(&self, number: u32) -> &str {
        let (from, to) = self.bounds(number as usize);
        self.all.get(from..to).unwrap_or_default()
    }

    /// Bytes of the text of a number.
    #[inline]
    pub fn bytes_of(&self, number: u32) -> usize {
        let (from, to) = self.bounds(number as usize);
        to - from
    }

    /// All of them, one behind the other.
    pub fn all(&self) -> &str {
        &self.all
    }

    /// Where each begins in [`Pool::all`], and where the last one ends.
    pub fn begins(&self) -> &[u32] {
        &self.begins
    }

    fn push(&mut self, text: &str) -> bool {
        let Ok(end) = u32::try_from(self.all.len() + text.len()) else {
            return false;
        };
        self.all.push_str(text);
        self.begins.push(end);
        true
    }
}

impl Texts {
    /// All texts of a pool, each with its own number.
    pub fn of_pool(pool: Arc<Pool>) -> Self {
        Self { pool, numbers: None }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.numbers.as_ref().map_or_else(|| self.pool.len(), Vec::len)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The text of a row.
    #[inline]
    pub fn get(&self, row: usize) -> &str {
        self.pool.get(self.number(row))
    }

    /// Which of the pool a row has.
    #[inline]
    fn number(&self, row: usize) -> u32 {
        self.numbers.as_ref().map_or(row as u32, |numbers| numbers[row])
    }

    /// The texts that rows share, and which of these each row has, [`NO_ROW`] for an empty text; `None` where each row has its own. Texts of
    /// different numbers may be equal.
    pub fn shared(&self) -> Option<(&Arc<Pool>, &[u32])> {
        self.numbers.as_deref().map(|numbers| (&self.pool, numbers))
    }

    /// The texts, where each row has its own: that of its number.
    pub fn own(&self) -> Option<&Pool> {
        self.numbers.is_none().then_some(&*self.pool)
    }

    /// Adds a text; `false`, and nothing is added, when there is no more room.
    pub fn push(&mut self, text: &str) -> bool {
        let pool = Arc::make_mut(&mut self.pool);
        let is_added = pool.push(text);
        if let Some(numbers) = self.numbers.as_mut().filter(|_| is_added) {
            numbers.push(pool.len() as u32 - 1);
        }
        is_added
    }

    /// The texts at `places`, an empty one for [`NO_ROW`].
    pub fn gather(&self, places: &[u32]) -> Self {
        self.picked(match &self.numbers {
            None => places.to_vec(),
            Some(numbers) => {
                let pick = |at: &u32| numbers.get(*at as usize).copied().unwrap_or(NO_ROW);
                places.iter().map(pick).collect()
            }
        })
    }

    /// Those of the pool with these numbers.
    pub fn picked(&self, numbers: Vec<u32>) -> Self {
        Self {
            pool: self.pool.clone(),
            numbers: Some(numbers),
        }
    }

    /// Bytes of the texts, and of where they are.
    pub fn weight(&self) -> usize {
        match &self.numbers {
            None => self.pool.all.len() + self.pool.begins.len() * size_of::<u32>(),
            Some(numbers) => {
                let bytes = numbers.iter().map(|number| self.pool.bytes_of(*number));
                bytes.sum::<usize>() + numbers.len() * size_of::<u32>()
            }
        }
    }
}
