//! Documents, and how columns of them are compared with the records.

use nestor_columns::{Columns, Found, Piece};
use nestor_model::{Document, Value, doc};
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
    let mut here = nestor_model::ValueRef::Document(doc.as_ref());
    for name in path {
        here = match here {
            nestor_model::ValueRef::Document(doc) => doc.get(name).unwrap_or(nestor_model::ValueRef::Missing),
            _ => nestor_model::ValueRef::Missing,
        };
    }
    format!("{here:?}")
}

/// All values, as they are in the records.
fn by_records((view, tree): (&dyn View, TreeId), from: &[u8], to: Option<&[u8]>) -> Vec<Vec<String>> {
    let mut cursor = view.cursor(tree);
    let mut rows = Vec::new();
    let mut more = cursor.seek(from).expect("sound");
    while more && to.is_none_or(|to| cursor.key() < to) {
        let doc = document(cursor.value().expect("sound")).as_doc().to_document();
        rows.push(PATHS.iter().map(|path| follow(&doc, path)).collect());
        more = cursor.next().expect("sound");
    }
    rows
}

/// Compares a tree by columns with its records; how many rows were read by columns.
pub fn check(columns: &Columns, view: &dyn View, tree: TreeId) -> usize {
    let all = by_records((view, tree), &[], None);
    let Some(reading) = columns.read(view, tree).expect("sound") else {
        return 0;
    };
    let (mut rows, mut held) = (Vec::new(), 0);
    for piece in &reading.pieces {
        match piece {
            Piece::Records(keys) => rows.extend(by_records((view, tree), &keys.from, keys.to.as_deref())),
            Piece::Columns(segment, range, keys) => {
                let own = &all[rows.len()..][..range.len()];
                assert!(
                    by_records((view, tree), &keys.from, keys.to.as_deref()) == own,
                    "records of other rows"
                );
                let begin = rows.len();
                rows.resize(begin + range.len(), Vec::new());
                held += range.len();
                for path in PATHS {
                    for (at, row) in range.clone().enumerate() {
                        let expected = &all[begin + at][rows[begin + at].len()];
                        let found = match segment.find(path.iter().copied()) {
                            Found::Column(column) => format!("{:?}", column.value(row)),
                            Found::Nothing => format!("{:?}", nestor_model::ValueRef::Missing),
                            // Whoever asks for it reads the documents.
                            Found::Unknown => expected.clone(),
                        };
                        rows[begin + at].push(found);
                    }
                }
                assert!(matches!(segment.find(["nothing"]), Found::Nothing));
            }
        }
    }
    assert_eq!(rows.len(), all.len());
    let differs = rows.iter().zip(&all).position(|(row, expected)| row != expected);
    assert_eq!(differs.map(|at| (at, &rows[at], &all[at])), None);
    assert_eq!(held, reading.rows);
    held
}
