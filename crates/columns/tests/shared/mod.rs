//! Documents, and how columns of them are compared with the records.

use nestor_columns::{Columns, Found, Piece, elements};
use nestor_model::{Document, Value, ValueRef, doc};
use nestor_storage::record::document;
use nestor_storage::{TreeId, View};
use std::cell::Cell;
use std::ops::Range;

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
    match dice.below(20) {
        0 => doc.push("l", Value::Null),
        1 => {}
        _ => doc.push("l", lines(dice)),
    }
    match dice.below(4000) {
        0 => doc.push("t", "no array"),
        _ => {
            let tags = (0..dice.below(4)).map(|_| Value::from(format!("tag {}", dice.below(9))));
            doc.push("t", tags.collect::<Vec<_>>());
        }
    }
    doc
}

/// Elements with fields of one type and of several, some of them with arrays of their own; seldom one is no document.
pub fn lines(dice: &Dice) -> Vec<Value> {
    let line = |at: u64| {
        let mut line = doc! { "no": at as i32, "price": dice.below(1000) as f64 / 100.0 };
        match dice.below(4) {
            0 => line.push("part", Value::Null),
            1 => line.push("part", format!("part {}", dice.below(9))),
            2 => line.push("part", dice.below(9) as i64),
            _ => {}
        }
        if dice.below(3) == 0 {
            line.push(
                "m",
                (0..dice.below(3)).map(|at| Value::Int64(at as i64)).collect::<Vec<_>>(),
            );
        }
        Value::from(line)
    };
    let mut lines: Vec<Value> = (0..dice.below(5)).map(line).collect();
    match dice.below(3000) {
        0 => lines.push(7.into()),
        1 => lines.push(vec![Value::from(1)].into()),
        _ => {}
    }
    lines
}

/// Paths of arrays, and those of their elements that are compared: none is that of the element itself.
const ARRAYS: [(&str, &[&[&str]]); 4] = [
    ("l", &[&[], &["no"], &["price"], &["part"], &["nothing"]]),
    ("t", &[&[], &["x"]]),
    ("a", &[]),
    ("nothing", &[]),
];

/// Compares the elements of some rows with those of the documents; how many there were.
fn check_elements(segment: &nestor_columns::Segment, rows: Range<usize>, docs: &[Document]) -> usize {
    let mut seen = 0;
    for (array, paths) in ARRAYS {
        let wanted: Vec<Vec<ValueRef<'_>>> = docs.iter().map(|doc| elements(doc, array)).collect();
        let found = match segment.elements([array]) {
            elements::Found::Elements(found) => found,
            elements::Found::Nothing => {
                assert!(
                    docs.iter()
                        .all(|doc| doc.get(array).is_none_or(|value| value.is_nullish()))
                );
                continue;
            }
            elements::Found::Unknown => continue,
        };
        let all: Vec<(usize, ValueRef<'_>)> = wanted
            .iter()
            .enumerate()
            .flat_map(|(row, items)| items.iter().map(move |item| (row, *item)))
            .collect();
        let own = found.of_rows(&rows);
        assert_eq!(own.len(), all.len(), "elements of {array}");
        assert_eq!(found.has_gaps(&rows), wanted.iter().any(Vec::is_empty));
        let parents = found.rows_of(&own, rows.start);
        assert!(parents.iter().zip(&all).all(|(row, (own, _))| *row as usize == *own));
        seen += all.len();
        for (element, (row, _)) in own.clone().zip(&all) {
            assert_eq!(found.row_of(element, &rows), rows.start + row);
        }
        for path in paths {
            let column = match found.segment().find(path.iter().copied()) {
                Found::Column(column) => Some(column),
                Found::Nothing => None,
                Found::Unknown => continue,
            };
            for (element, (_, item)) in own.clone().zip(&all) {
                let value = column.map_or(ValueRef::Missing, |column| column.value(element));
                assert_eq!(format!("{value:?}"), follow(*item, path), "{path:?} of {array}");
            }
        }
    }
    seen
}

fn elements<'d>(doc: &'d Document, array: &str) -> Vec<ValueRef<'d>> {
    match doc.get(array) {
        Some(ValueRef::Array(items)) => items.iter().collect(),
        _ => Vec::new(),
    }
}

fn follow(from: ValueRef<'_>, path: &[&str]) -> String {
    let mut here = from;
    for name in path {
        here = match here {
            ValueRef::Document(doc) => doc.get(name).unwrap_or(ValueRef::Missing),
            _ => ValueRef::Missing,
        };
    }
    format!("{here:?}")
}

/// The keys of all records, and their values.
fn by_records(view: &dyn View, tree: TreeId) -> (Vec<Vec<u8>>, Vec<Document>) {
    let mut cursor = view.cursor(tree);
    let (mut keys, mut rows) = (Vec::new(), Vec::new());
    let mut more = cursor.seek(&[]).expect("sound");
    while more {
        let doc = document(cursor.value().expect("sound")).as_doc().to_document();
        keys.push(cursor.key().to_vec());
        rows.push(doc);
        more = cursor.next().expect("sound");
    }
    (keys, rows)
}

/// Compares a tree by columns with its records; how many rows were read by columns.
pub fn check(columns: &Columns, view: &dyn View, tree: TreeId) -> usize {
    check_all(columns, view, tree).0
}

/// As [`check`], and how many elements of arrays were.
pub fn check_all(columns: &Columns, view: &dyn View, tree: TreeId) -> (usize, usize) {
    let Some(reading) = columns.read(view, tree).expect("sound") else {
        return (0, 0);
    };
    let (keys, all) = by_records(view, tree);
    let place = |key: &[u8]| keys.partition_point(|own| own.as_slice() < key);
    let (mut next, mut held, mut elements) = (0, 0, 0);
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
        elements += check_elements(segment, range.clone(), &all[places.clone()]);
        for path in PATHS {
            let column = match segment.find(path.iter().copied()) {
                Found::Column(column) => Some(column),
                Found::Nothing => None,
                // Whoever asks for it reads the documents.
                Found::Unknown => continue,
            };
            for (row, place) in range.clone().zip(places.clone()) {
                let value = column.map_or(ValueRef::Missing, |column| column.value(row));
                let wanted = follow(ValueRef::Document(all[place].as_ref()), path);
                assert_eq!(format!("{value:?}"), wanted, "{path:?} of row {place}");
            }
        }
        assert!(matches!(segment.find(["nothing"]), Found::Nothing));
    }
    assert_eq!(next, all.len());
    assert_eq!(held, reading.rows);
    (held, elements)
}
