//! What is left of a scan by columns.

use super::Pieces;
use crate::batch::Batch;
use crate::columns::ColumnRows;
use crate::row_order::RowOrder;
use nestor_columns::{Keys, Piece};
use nestor_model::Result;
use nestor_storage::TreeId;
use std::collections::VecDeque;

/// Rows of a segment for which the condition holds, some of which may have been handed over.
pub(super) struct Picked {
    pub(super) rows: ColumnRows,
    /// How many were.
    pub(super) next: usize,
}

impl Picked {
    pub(super) fn new(rows: ColumnRows) -> Self {
        Self { rows, next: 0 }
    }

    /// How many are left.
    pub(super) fn left(&self) -> usize {
        self.rows.len() - self.next
    }

    /// One of them, as a row of the segment.
    pub(super) fn row(&self, at: usize) -> usize {
        let from = self.rows.rows.start;
        match &self.rows.picked {
            Some(picked) => from + picked[at] as usize,
            None => from + at,
        }
    }

    /// The key of the next one's record.
    pub(super) fn key(&self) -> Option<Vec<u8>> {
        let record = self.rows.segment.records()?;
        Some(record(self.row(self.next)).to_vec())
    }

    /// Those that are left.
    pub(super) fn rest(mut self) -> ColumnRows {
        if self.next > 0 {
            match &mut self.rows.picked {
                Some(picked) => drop(picked.drain(..self.next)),
                None => self.rows.rows.start += self.next,
            }
        }
        self.rows
    }
}

impl Pieces {
    /// These.
    pub(super) fn of(left: VecDeque<Piece>) -> Self {
        let rows = |piece: &Piece| match piece {
            Piece::Columns(_, rows, _) => rows.len(),
            Piece::Records(_) => 0,
        };
        Self {
            rows: left.iter().map(rows).sum(),
            left,
            ..Self::default()
        }
    }

    /// The key of the next row, or one before it; `None` at the end.
    pub(super) fn position(&self) -> Option<Vec<u8>> {
        let own = self.picked.as_ref().and_then(Picked::key);
        own.or_else(|| match self.left.front()? {
            Piece::Columns(_, _, keys) | Piece::Records(keys) => Some(keys.from.clone()),
        })
    }

    /// Puts the parts in an order in which those come early whose rows may be the first of it; before them those of which that is not known.
    pub(super) fn put_in_order(&mut self, order: &RowOrder) {
        let first = |piece: &Piece| match piece {
            Piece::Columns(segment, ..) => order.first(segment),
            Piece::Records(_) => None,
        };
        // One that has been begun stays where it is.
        let begun = self.cursor.is_some() || self.picked.is_some();
        let head = if begun { self.left.pop_front() } else { None };
        let mut keyed: Vec<(Option<Vec<u8>>, Piece)> =
            self.left.drain(..).map(|piece| (first(&piece), piece)).collect();
        keyed.sort_by(|(a, _), (b, _)| a.cmp(b));
        self.left = head
            .into_iter()
            .chain(keyed.into_iter().map(|(_, piece)| piece))
            .collect();
        self.are_in_order = true;
    }

    /// The keys of what is left, in order; not where picked rows are left, which who wants an order takes at once.
    pub(super) fn keys(&self) -> Vec<Keys> {
        let of = |piece: &Piece| match piece {
            Piece::Columns(_, _, keys) | Piece::Records(keys) => keys.clone(),
        };
        debug_assert!(self.picked.is_none(), "picked rows would be lost");
        let mut all: Vec<Keys> = self.left.iter().map(of).collect();
        all.sort_by(|a, b| a.from.cmp(&b.from));
        all
    }
}

/// What of the pieces of a collection lies within some keys; both are in order.
pub(super) fn within(pieces: VecDeque<Piece>, keys: &[Keys]) -> VecDeque<Piece> {
    let mut out = VecDeque::new();
    let mut left = keys.iter().peekable();
    for piece in pieces {
        let (Piece::Columns(_, _, own) | Piece::Records(own)) = &piece;
        let is_behind = |keys: &Keys, from: &[u8]| keys.to.as_deref().is_some_and(|to| to <= from);
        while left.next_if(|keys| is_behind(keys, &own.from)).is_some() {}
        for keys in left.clone() {
            if own.to.as_deref().is_some_and(|to| to <= keys.from.as_slice()) {
                break;
            }
            out.extend(part(&piece, keys));
        }
    }
    out
}

/// The part of a piece that lies within some keys, if there is one.
fn part(piece: &Piece, keys: &Keys) -> Option<Piece> {
    let (Piece::Columns(_, _, own) | Piece::Records(own)) = piece;
    let to = match (&own.to, &keys.to) {
        (Some(own), Some(other)) => Some(own.min(other).clone()),
        (own, other) => own.as_ref().or(other.as_ref()).cloned(),
    };
    let both = Keys {
        from: own.from.clone().max(keys.from.clone()),
        to,
    };
    if both.to.as_ref().is_some_and(|to| *to <= both.from) {
        return None;
    }
    if both == *own {
        return Some(match piece {
            Piece::Columns(segment, rows, keys) => Piece::Columns(segment.clone(), rows.clone(), keys.clone()),
            Piece::Records(keys) => Piece::Records(keys.clone()),
        });
    }
    let Piece::Columns(segment, rows, _) = piece else {
        return Some(Piece::Records(both));
    };
    let row = |key: &[u8]| segment.row_from(key).map(|row| row.clamp(rows.start, rows.end));
    let end = match &both.to {
        Some(to) => row(to),
        None => Some(rows.end),
    };
    Some(match row(&both.from).zip(end) {
        Some((from, to)) => Piece::Columns(segment.clone(), from..to, both),
        None => Piece::Records(both),
    })
}

/// The pieces of a collection from a key on; `None` when there are no columns.
pub(super) fn from(from: &[u8], records: TreeId, batch: &Batch<'_>) -> Result<Option<VecDeque<Piece>>> {
    let Some(columns) = batch.columns else {
        return Ok(None);
    };
    let Some(reading) = columns.read(batch.view, records)? else {
        return Ok(None);
    };
    let mut pieces = VecDeque::from(reading.pieces);
    while let Some(first) = pieces.front() {
        let (Piece::Columns(_, _, keys) | Piece::Records(keys)) = first;
        if keys.to.as_deref().is_some_and(|to| to <= from) {
            pieces.pop_front();
            continue;
        }
        if keys.from.as_slice() < from {
            let keys = Keys {
                from: from.to_vec(),
                to: keys.to.clone(),
            };
            pieces[0] = match first {
                Piece::Columns(segment, rows, _) => match segment.row_from(from) {
                    Some(row) => Piece::Columns(segment.clone(), row.clamp(rows.start, rows.end)..rows.end, keys),
                    None => Piece::Records(keys),
                },
                Piece::Records(_) => Piece::Records(keys),
            };
        }
        break;
    }
    Ok(Some(pieces))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(from: &str, to: &str) -> Keys {
        Keys {
            from: from.into(),
            to: (!to.is_empty()).then(|| to.into()),
        }
    }

    #[test]
    fn what_is_left_is_cut_out_of_pieces() {
        let cut = |pieces: &[(&str, &str)], left: &[(&str, &str)]| -> Vec<(String, String)> {
            let pieces = pieces.iter().map(|(from, to)| Piece::Records(keys(from, to)));
            let left: Vec<Keys> = left.iter().map(|(from, to)| keys(from, to)).collect();
            let text = |key: Vec<u8>| String::from_utf8(key).expect("letters");
            let found = within(pieces.collect(), &left).into_iter().map(|piece| match piece {
                Piece::Records(keys) => (text(keys.from), text(keys.to.unwrap_or_default())),
                Piece::Columns(..) => panic!("there are no segments"),
            });
            found.collect()
        };
        let of = |parts: &[(&str, &str)]| -> Vec<(String, String)> {
            parts
                .iter()
                .map(|(from, to)| ((*from).to_owned(), (*to).to_owned()))
                .collect()
        };
        let all = [("", "d"), ("d", "m"), ("m", "")];
        assert_eq!(cut(&all, &all), of(&all), "all of it");
        assert_eq!(cut(&all, &[]), of(&[]));
        // Pieces have other ends by now.
        let left = [("b", "c"), ("c", "f"), ("k", "")];
        assert_eq!(
            cut(&all, &left),
            of(&[("b", "c"), ("c", "d"), ("d", "f"), ("k", "m"), ("m", "")])
        );
        assert_eq!(cut(&[("", "")], &left), of(&left));
        assert_eq!(cut(&all, &[("d", "m")]), of(&[("d", "m")]));
        assert_eq!(cut(&[("", "b"), ("x", "")], &left), of(&[("x", "")]));
    }
}
