//! The head of an oplog entry, read from its bytes without decoding the rest.
//!
//! Frames are under a checksum, and their entries were made by this program. Still nothing here trusts a length: an entry that
//! does not read like one is left to those who validate it.

use super::{Interest, Scope};

/// The kind of a change: `op` of its oplog entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeKind {
    /// `i`
    Insert,
    /// `u`: an update or a replacement.
    Update,
    /// `d`
    Delete,
    /// `c`: `create`, `drop`, `renameCollection` and so on, but for transactions.
    Command,
    /// `n`: notes, and what findAndModify returned.
    Noop,
}

impl ChangeKind {
    fn of(op: &[u8]) -> Option<Self> {
        Some(match op {
            b"i" => Self::Insert,
            b"u" => Self::Update,
            b"d" => Self::Delete,
            b"c" => Self::Command,
            b"n" => Self::Noop,
            _ => return None,
        })
    }
}

/// A set of kinds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Kinds(u8);

impl Kinds {
    /// All but [`ChangeKind::Noop`].
    pub const CHANGES: Kinds = Kinds(0b0_1111);
    /// All.
    pub const ALL: Kinds = Kinds(0b1_1111);

    /// These.
    pub fn of(kinds: &[ChangeKind]) -> Self {
        Self(kinds.iter().fold(0, |bits, kind| bits | 1 << *kind as u8))
    }

    /// Whether `kind` is one of them.
    pub fn has(self, kind: ChangeKind) -> bool {
        self.0 >> kind as u8 & 1 == 1
    }
}

/// The head of an entry, or of an operation of a transaction.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Head<'a> {
    pub(super) kind: Option<ChangeKind>,
    pub(super) ns: &'a [u8],
    /// The document `o`.
    pub(super) o: &'a [u8],
    pub(super) lsid: Option<&'a [u8]>,
    pub(super) txn_number: Option<i64>,
    pub(super) wall_ms: i64,
}

impl<'a> Head<'a> {
    /// The head of `entry`.
    pub(super) fn read(entry: &'a [u8]) -> Self {
        let mut head = Head::default();
        for element in Elements::of(entry) {
            match (element.name, element.kind) {
                (b"op", STRING) => head.kind = ChangeKind::of(element.text()),
                (b"ns", STRING) => head.ns = element.text(),
                (b"o", DOCUMENT) => head.o = element.value,
                (b"lsid", DOCUMENT) => head.lsid = Some(element.value),
                (b"txnNumber", INT64) => head.txn_number = element.number(),
                (b"wall", DATE) => head.wall_ms = element.number().unwrap_or_default(),
                _ => {}
            }
        }
        head
    }

    /// The operations, if this is a transaction.
    pub(super) fn operations(&self) -> Option<&'a [u8]> {
        if self.kind != Some(ChangeKind::Command) {
            return None;
        }
        let first = Elements::of(self.o).next()?;
        (first.name == b"applyOps" && first.kind == ARRAY).then_some(first.value)
    }
}

/// [`Interest`] in bytes.
pub(super) struct Wanted {
    interest: Interest,
    /// `db.` or `db.collection`; empty for everything.
    ns: Vec<u8>,
    /// Length of `db.`.
    db_len: usize,
}

impl Wanted {
    pub(super) fn new(interest: Interest) -> Self {
        let (db, ns) = match &interest.scope {
            Scope::Everything => (String::new(), String::new()),
            Scope::Database(db) => (format!("{db}."), format!("{db}.")),
            Scope::Collection(ns) => (format!("{}.", ns.db), ns.to_string()),
        };
        Self {
            interest,
            ns: ns.into_bytes(),
            db_len: db.len(),
        }
    }

    pub(super) fn interest(&self) -> &Interest {
        &self.interest
    }

    /// Whether a change is wanted. What does not read like an entry is, so that somebody looks at it.
    pub(super) fn wants(&self, head: &Head<'_>) -> bool {
        let Some(kind) = head.kind else { return true };
        if !self.interest.kinds.has(kind) {
            return false;
        }
        match (&self.interest.scope, kind) {
            (Scope::Everything, _) => true,
            (Scope::Collection(_), ChangeKind::Insert | ChangeKind::Update | ChangeKind::Delete) => head.ns == self.ns,
            (_, ChangeKind::Command) => self.is_in_database(head.ns) || self.renames_into(head.o),
            _ => self.is_in_database(head.ns),
        }
    }

    fn is_in_database(&self, ns: &[u8]) -> bool {
        ns.starts_with(&self.ns[..self.db_len])
    }

    fn renames_into(&self, command: &[u8]) -> bool {
        let mut elements = Elements::of(command);
        elements.next().is_some_and(|first| first.name == b"renameCollection")
            && elements.any(|element| element.name == b"to" && self.is_in_database(element.text()))
    }
}

const DOCUMENT: u8 = 0x03;
const ARRAY: u8 = 0x04;
const STRING: u8 = 0x02;
const DATE: u8 = 0x09;
const INT64: u8 = 0x12;

/// An element of a document.
pub(super) struct Element<'a> {
    kind: u8,
    name: &'a [u8],
    pub(super) value: &'a [u8],
}

impl<'a> Element<'a> {
    /// Bytes of a string.
    fn text(&self) -> &'a [u8] {
        match self.kind {
            STRING => self
                .value
                .get(4..self.value.len().saturating_sub(1))
                .unwrap_or_default(),
            _ => &[],
        }
    }

    fn number(&self) -> Option<i64> {
        Some(i64::from_le_bytes(self.value.try_into().ok()?))
    }
}

/// The elements of a document up to its end, or to where it does not read like one.
pub(super) struct Elements<'a>(&'a [u8]);

impl<'a> Elements<'a> {
    pub(super) fn of(document: &'a [u8]) -> Self {
        Self(document.get(4..).unwrap_or_default())
    }

    /// The first of these bytes of elements, and how many it takes.
    pub(super) fn first(bytes: &'a [u8]) -> Option<(Element<'a>, usize)> {
        let mut elements = Self(bytes);
        let first = elements.next()?;
        Some((first, bytes.len() - elements.0.len()))
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        let rest = std::mem::take(&mut self.0);
        let (&kind, rest) = rest.split_first()?;
        let name_len = rest.iter().position(|byte| *byte == 0)?;
        let (name, rest) = rest.split_at(name_len);
        let rest = &rest[1..];
        let prefixed = |more: usize| {
            let len = u32::from_le_bytes(rest.get(..4)?.try_into().ok()?) as usize;
            len.checked_add(more)
        };
        let len = match kind {
            0x01 | DATE | 0x11 | INT64 => 8,
            STRING | 0x0D | 0x0E => prefixed(4)?,
            DOCUMENT | ARRAY | 0x0F => prefixed(0)?,
            0x05 => prefixed(5)?,
            0x07 => 12,
            0x08 => 1,
            0x10 => 4,
            0x13 => 16,
            0x06 | 0x0A | 0x7F | 0xFF => 0,
            // Regular expressions, and the end of the document.
            _ => return None,
        };
        let (value, rest) = rest.split_at_checked(len)?;
        self.0 = rest;
        Some(Element { kind, name, value })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Upto;
    use super::*;
    use nestor_model::{Namespace, doc};

    fn wanted(scope: Scope, kinds: Kinds) -> Wanted {
        Wanted::new(Interest::new(scope, kinds, Upto::Accepted))
    }

    #[test]
    fn what_is_wanted_is_told_by_kind_and_namespace() {
        let insert = |ns: &str| doc! { "op": "i", "ns": ns, "o": doc! { "_id": 1 } }.to_raw();
        let rename = |from: &str, to: &str| {
            let ns = format!("{}.$cmd", from.split('.').next().unwrap());
            let o = doc! { "renameCollection": from, "to": to, "stayTemp": false };
            doc! { "op": "c", "ns": ns, "o": o }.to_raw()
        };
        let one = wanted(Scope::Collection(Namespace::new("d", "c")), Kinds::CHANGES);
        let db = wanted(Scope::Database("d".into()), Kinds::CHANGES);
        let all = wanted(Scope::Everything, Kinds::of(&[ChangeKind::Insert]));
        for (entry, expected) in [
            (insert("d.c"), [true, true, true]),
            (insert("d.c2"), [false, true, true]),
            (insert("d2.c"), [false, false, true]),
            (rename("d.x", "d.y"), [true, true, false]),
            (rename("e.x", "d.c"), [true, true, false]),
            (rename("e.x", "f.c"), [false, false, false]),
            (
                doc! { "op": "n", "ns": "d.c", "o": doc! {} }.to_raw(),
                [false, false, false],
            ),
        ] {
            let head = Head::read(entry.as_bytes());
            let found = [one.wants(&head), db.wants(&head), all.wants(&head)];
            assert_eq!(found, expected, "{entry:?}");
        }
    }

    #[test]
    fn heads_of_cut_and_changed_bytes_do_no_harm() {
        let entry = doc! {
            "lsid": doc! { "id": 1 }, "txnNumber": 3i64, "op": "c", "ns": "admin.$cmd",
            "o": doc! { "applyOps": vec![doc! { "op": "i", "ns": "d.c" }.into()] }, "wall": nestor_model::Value::DateTime(7),
        };
        let bytes = entry.to_raw().as_bytes().to_vec();
        let head = Head::read(&bytes);
        assert_eq!((head.txn_number, head.wall_ms), (Some(3), 7));
        assert_eq!(Elements::of(head.operations().unwrap()).count(), 1);
        for at in 0..bytes.len() {
            let _ = Head::read(&bytes[..at]).operations();
            for change in [0x01, 0x80, 0xFF] {
                let mut bad = bytes.clone();
                bad[at] ^= change;
                if let Some(operations) = Head::read(&bad).operations() {
                    Elements::of(operations).for_each(drop);
                }
            }
        }
    }
}
