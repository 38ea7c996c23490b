//! Which records of a segment are dead: gone, or replaced in a later segment.

use std::sync::Arc;

const WORDS: usize = 64;
const RECORDS: usize = WORDS * 64;

/// The dead records of a segment. States share what they have in common of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dead {
    /// A bit for each record; none where all are alive.
    pieces: Vec<Option<Arc<[u64; WORDS]>>>,
    count: usize,
}

impl Dead {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn has(&self, record: u32) -> bool {
        let record = record as usize;
        let piece = self.pieces.get(record / RECORDS).and_then(Option::as_ref);
        piece.is_some_and(|piece| piece[record % RECORDS / 64] & 1 << (record % 64) != 0)
    }

    /// A record is dead from now on.
    pub(crate) fn add(&mut self, record: u32) {
        let record = record as usize;
        if self.pieces.len() <= record / RECORDS {
            self.pieces.resize(record / RECORDS + 1, None);
        }
        let piece = self.pieces[record / RECORDS].get_or_insert_with(|| Arc::new([0; WORDS]));
        let word = &mut Arc::make_mut(piece)[record % RECORDS / 64];
        self.count += usize::from(*word & 1 << (record % 64) == 0);
        *word |= 1 << (record % 64);
    }

    /// About how many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        let pieces = self.pieces.iter().flatten().count();
        self.pieces.len() * 8 + pieces * WORDS * 8
    }
}
