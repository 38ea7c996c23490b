//! Documents, and how columns of them are compared with the records.

use nestor_columns::{Columns, Found, Piece};
use nestor_model::{Document, Value, ValueRef, doc};
use nestor_storage::record::document;
use nestor_storage::{TreeId, View};
use std::cell::Cell;

const PATHS: [&[&str]; 6] = [&["a"], &["b"], &["c"], &["d"], &["e", "f"], &["nothing"]];

/// Numbers that are the same in every run.
pub struct Dice(pub Cell<u64>);

impl Dice {
    /// A number below `n`.
    pub fn below(&self, n: u64) -> u64 {
        // Numbers of Numerical Recipes' linear congruential generator.
        let next = self
            .0
            .get()
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0.set(next);
        (next >> 33) % n
    }
}

/// A document whose fields are of one type, of many, texts, dates, and nested; some are missing or null.
pub fn made(dice: &Dice, id: u64) -> Document {
    let mut doc = doc! { "_id": id as i64, "a": dice.below(300) as i32 };
    match dice.below(8) {
        0 => doc.push("b", Value::Null),
        1 => {}
        2 => doc.push("b", Value::DateTime(dice.below(1 << 40) as i64)),
        3 => doc.push("b", 0.25 * dice.below(9) as f64),
        _ => doc.push("b", dice.below(5) as i64 - 2),
    }
    match dice.below(3000) {
        // Too long to be held.
        0 => doc.push("c", "long ".repeat(1000)),
        _ => doc.push("c", format!("text {}", dice.below(20))),
    }
    if dice.below(3) > 0 {
        doc.push("d", dice.below(10_000) as f64 / 100.0);
    }
    if dice.below(4000) > 0 {
        doc.push(
            "e",
            doc! { "f": Value::DateTime(1_700_000_000_000 + dice.below(1000) as i64) },
        );
    } else {
        doc.push("e", vec![Value::from(doc! { "f": 1 })]);
    }
    doc
}

fn follow(doc: &Document, path: &[&str]) -> String {
    let mut here = ValueRef::Document(doc.as_ref());
    for name in path {
        here = match here {
            ValueRef::Document(doc) => doc.get(name).unwrap_or(ValueRef::Missing),
            _ => ValueRef::Missing,
        };
    }
    format!("{here:?}")
}

/// The keys of all records, and their values.
fn by_records(view: &dyn View, tree: TreeId) -> (Vec<Vec<u8>>, Vec<Vec<String>>) {
    let mut cursor = view.cursor(tree);
    let (mut keys, mut rows) = (Vec::new(), Vec::new());
    let mut more = cursor.seek(&[]).expect("sound");
    while more {
        let doc = document(cursor.value().expect("sound")).as_doc().to_document();
        keys.push(cursor.key().to_vec());
        rows.push(PATHS.iter().map(|path| follow(&doc, path)).collect());
        more = cursor.next().expect("sound");
    }
    (keys, rows)
}

/// Compares a tree by columns with its records; how many rows were read by columns.
pub fn check(columns: &Columns, view: &dyn View, tree: TreeId) -> usize {
    let Some(reading) = columns.read(view, tree).expect("sound") else {
        return 0;
    };
    let (keys, all) = by_records(view, tree);
    let place = |key: &[u8]| keys.partition_point(|own| own.as_slice() < key);
    let (mut next, mut held) = (0, 0);
    for piece in &reading.pieces {
        let (Piece::Records(of) | Piece::Columns(_, _, of)) = piece;
        let places = place(&of.from)..of.to.as_deref().map_or(keys.len(), place);
        assert_eq!(places.start, next, "pieces lie one behind the other");
        next = places.end;
        let Piece::Columns(segment, range, _) = piece else {
            continue;
        };
        assert_eq!(places.len(), range.len(), "records of other rows");
        held += range.len();
        for (at, path) in PATHS.iter().enumerate() {
            let column = match segment.find(path.iter().copied()) {
                Found::Column(column) => Some(column),
                Found::Nothing => None,
                // Whoever asks for it reads the documents.
                Found::Unknown => continue,
            };
            for (row, place) in range.clone().zip(places.clone()) {
                let value = column.map_or(ValueRef::Missing, |column| column.value(row));
                assert_eq!(format!("{value:?}"), all[place][at], "{path:?} of row {place}");
            }
        }
        assert!(matches!(segment.find(["nothing"]), Found::Nothing));
    }
    assert_eq!(next, all.len());
    assert_eq!(held, reading.rows);
    held
}
