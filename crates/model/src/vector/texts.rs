//! Texts side by side in one string.

use super::NO_ROW;
use std::sync::Arc;

/// Texts of rows, as places in one string that vectors of picked rows share.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    all: Arc<String>,
    /// Where each begins and ends.
    places: Vec<(u32, u32)>,
}

impl Texts {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The text of a row.
    pub fn get(&self, row: usize) -> &str {
        let (from, to) = self.places[row];
        self.all.get(from as usize..to as usize).unwrap_or_default()
    }

    /// Adds a text; `false`, and nothing is added, when there is no more room.
    pub fn push(&mut self, text: &str) -> bool {
        let from = self.all.len();
        let (Ok(begin), Ok(end)) = (u32::try_from(from), u32::try_from(from + text.len())) else {
            return false;
        };
        Arc::make_mut(&mut self.all).push_str(text);
        self.places.push((begin, end));
        true
    }

    /// The texts at `places`, an empty one for [`NO_ROW`].
    pub fn gather(&self, places: &[u32]) -> Self {
        let pick = |at: &u32| match *at {
            NO_ROW => (0, 0),
            at => self.places[at as usize],
        };
        Self {
            all: self.all.clone(),
            places: places.iter().map(pick).collect(),
        }
    }

    /// Bytes of the texts, and of where they are.
    pub fn weight(&self) -> usize {
        let bytes = self.places.iter().map(|(from, to)| (to - from) as usize);
        bytes.sum::<usize>() + self.places.len() * size_of::<(u32, u32)>()
    }
}
