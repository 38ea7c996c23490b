//! How many edits terms are apart.

/// Compares terms with one of them.
pub(super) struct Distance {
    term: Vec<char>,
    most: usize,
    /// The last three rows of the table of distances of beginnings.
    rows: [Vec<usize>; 3],
    other: Vec<char>,
}

impl Distance {
    /// Of terms that are at most so many edits away.
    pub(super) fn new(term: &str, most: usize) -> Self {
        Self {
            term: term.chars().collect(),
            most,
            rows: Default::default(),
            other: Vec::new(),
        }
    }

    /// Characters of the term.
    pub(super) fn len(&self) -> usize {
        self.term.len()
    }

    /// The edits between the term and another; none if they are too many. An edit inserts, deletes or replaces a character, or swaps two
    /// that are neighbours.
    pub(super) fn to(&mut self, other: &str) -> Option<usize> {
        self.other.clear();
        self.other.extend(other.chars());
        let (term, other) = (&self.term, &self.other);
        if term.len().abs_diff(other.len()) > self.most {
            return None;
        }
        let [before, last, now] = &mut self.rows;
        last.clear();
        last.extend(0..=other.len());
        for i in 1..=term.len() {
            now.clear();
            now.resize(other.len() + 1, self.most + 1);
            now[0] = i;
            // Farther from the diagonal there are too many edits anyway.
            let (low, high) = (i.saturating_sub(self.most).max(1), (i + self.most).min(other.len()));
            let mut least = now[0];
            for j in low..=high {
                let same = term[i - 1] == other[j - 1];
                let mut edits = (last[j - 1] + usize::from(!same)).min(last[j] + 1).min(now[j - 1] + 1);
                if i > 1 && j > 1 && term[i - 1] == other[j - 2] && term[i - 2] == other[j - 1] {
                    edits = edits.min(before[j - 2] + 1);
                }
                now[j] = edits;
                least = least.min(edits);
            }
            if least > self.most {
                return None;
            }
            std::mem::swap(before, last);
            std::mem::swap(last, now);
        }
        Some(last[other.len()]).filter(|edits| *edits <= self.most)
    }
}
