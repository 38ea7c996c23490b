//! The ranks of rows in the order in which they come.

use crate::row::Row;
use nestor_model::{Result, Value, ValueRef};
use nestor_query::env::DocMeta;
use nestor_query::sort::SortSpec;
use nestor_query::stage::Ties;

/// The ranks of a sequence of rows.
#[derive(Default)]
pub(super) struct Ranks {
    /// How many rows there were.
    count: u64,
    /// The rank of the last one, and by what it has it.
    last: Option<(u64, Tied)>,
}

/// By what a row is in its place.
enum Tied {
    Key(Vec<Value>),
    Score(f64),
    /// By nothing that another row may share.
    Alone,
}

impl Ranks {
    /// The rank of the next row: its place from 1 on, or that of the first of those that tie with it.
    pub(super) fn next(&mut self, ties: &Ties, row: &Row) -> Result<u64> {
        self.count += 1;
        let tied = Tied::of(ties, row)?;
        let rank = match &self.last {
            Some((rank, last)) if last.is_same(&tied, ties) => *rank,
            _ => self.count,
        };
        self.last = Some((rank, tied));
        Ok(rank)
    }
}

impl Tied {
    fn of(ties: &Ties, row: &Row) -> Result<Self> {
        let meta = row.meta.as_deref();
        Ok(match ties {
            Ties::Keys(spec) => Self::Key(key_of(spec, row)?),
            Ties::Scores => meta.and_then(DocMeta::score).map_or(Self::Alone, Self::Score),
            Ties::None => Self::Alone,
        })
    }

    fn is_same(&self, other: &Self, ties: &Ties) -> bool {
        match (self, other, ties) {
            (Self::Key(a), Self::Key(b), Ties::Keys(spec)) => spec.compare_owned(a, b).is_eq(),
            (Self::Score(a), Self::Score(b), _) => a == b,
            _ => false,
        }
    }
}

fn key_of(spec: &SortSpec, row: &Row) -> Result<Vec<Value>> {
    let mut key = Vec::new();
    spec.key(row.doc.as_doc(), row.meta.as_deref(), &mut key)?;
    Ok(key.into_iter().map(ValueRef::to_value).collect())
}
