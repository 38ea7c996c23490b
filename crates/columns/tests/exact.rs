//! What is read by columns is what the records are, for every snapshot, whatever is written meanwhile.

use nestor_columns::{Columns, Found, Piece};
use nestor_model::{Document, RecordId, Value, doc};
use nestor_storage::record::{document, record_key};
use nestor_storage::{Engine, EngineOptions, Snapshot, TreeId, View};
use std::cell::Cell;

const RECORDS: TreeId = TreeId(9);
const PATHS: [&[&str]; 6] = [&["a"], &["b"], &["c"], &["d"], &["e", "f"], &["nothing"]];

struct Dice(Cell<u64>);

impl Dice {
    fn below(&self, n: u64) -> u64 {
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
fn made(dice: &Dice, id: u64) -> Document {
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
fn by_records(view: &dyn View, from: &[u8], to: Option<&[u8]>) -> Vec<Vec<String>> {
    let mut cursor = view.cursor(RECORDS);
    let mut rows = Vec::new();
    let mut more = cursor.seek(from).expect("sound");
    while more && to.is_none_or(|to| cursor.key() < to) {
        let doc = document(cursor.value().expect("sound")).as_doc().to_document();
        rows.push(PATHS.iter().map(|path| follow(&doc, path)).collect());
        more = cursor.next().expect("sound");
    }
    rows
}

/// How many rows were read by columns.
fn check(columns: &Columns, view: &dyn View) -> usize {
    let all = by_records(view, &[], None);
    let Some(reading) = columns.read(view, RECORDS).expect("sound") else {
        return 0;
    };
    let (mut rows, mut held) = (Vec::new(), 0);
    for piece in &reading.pieces {
        match piece {
            Piece::Records(keys) => rows.extend(by_records(view, &keys.from, keys.to.as_deref())),
            Piece::Columns(segment, range, keys) => {
                let own = &all[rows.len()..][..range.len()];
                assert!(
                    by_records(view, &keys.from, keys.to.as_deref()) == own,
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
                assert!(matches!(segment.find(["a"]), Found::Column(_)));
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

#[test]
fn columns_are_exact_for_every_snapshot() {
    let dir = tempfile::tempdir().expect("sound");
    let engine = Engine::open(dir.path(), EngineOptions::at_time(1)).expect("sound");
    let dice = Dice(Cell::new(7));
    let mut next = 0;
    let mut ws = engine.begin();
    while next < 9000 {
        ws.put_document(RECORDS, record_key(RecordId(next)), made(&dice, next).to_raw());
        next += 1;
    }
    engine.commit(ws).expect("sound");
    engine.checkpoint().expect("sound");
    let columns = Columns::new(engine.clone(), 64 << 20);
    assert_eq!(check(&columns, &engine.snapshot()), 0, "nobody asked for them before");
    columns.settle();
    let mut held: Vec<Snapshot> = Vec::new();
    let (mut by_columns, mut most) = (0, 0);
    for round in 0..40 {
        let mut ws = engine.begin();
        for _ in 0..dice.below(60) {
            match dice.below(4) {
                0 => {
                    ws.put_document(RECORDS, record_key(RecordId(next)), made(&dice, next).to_raw());
                    next += 1;
                }
                1 => ws.delete(RECORDS, record_key(RecordId(dice.below(next)))),
                _ => {
                    let id = dice.below(next);
                    ws.put_document(RECORDS, record_key(RecordId(id)), made(&dice, id).to_raw());
                }
            }
        }
        // Its own changes show to a write set.
        check(&columns, &ws);
        engine.commit(ws).expect("sound");
        if round % 4 == 0 {
            held.push(engine.snapshot());
        }
        if dice.below(3) == 0 {
            engine.checkpoint().expect("sound");
        }
        if dice.below(3) == 0 {
            columns.settle();
        }
        let rows = check(&columns, &engine.snapshot());
        by_columns += usize::from(rows > 0);
        most = most.max(rows);
        for snapshot in &held {
            check(&columns, snapshot);
        }
        if held.len() > 4 {
            held.remove(0);
        }
    }
    // Without snapshots that hold them, pages are used again for other records.
    drop(held);
    for round in 1..=40 {
        let mut ws = engine.begin();
        for _ in 0..20 {
            let id = dice.below(next);
            ws.put_document(RECORDS, record_key(RecordId(id)), made(&dice, id).to_raw());
        }
        engine.commit(ws).expect("sound");
        engine.checkpoint().expect("sound");
        if round % 8 == 0 {
            check(&columns, &engine.snapshot());
            columns.settle();
        }
    }
    assert!(by_columns > 20 && most > 8000, "{by_columns} {most}");
    assert!(columns.bytes() > 0);
}

#[test]
fn columns_of_documents_that_have_little_in_common_are_small() {
    let dir = tempfile::tempdir().expect("sound");
    let engine = Engine::open(dir.path(), EngineOptions::at_time(1)).expect("sound");
    let mut ws = engine.begin();
    for id in 0..40_000u64 {
        let mut doc = doc! { "a": id as i64, "b": "x" };
        doc.push(format!("own {id}"), 1);
        doc.push("c", "long text ".repeat(if id < 20 { 1 << 19 } else { 1 }));
        ws.put_document(RECORDS, record_key(RecordId(id)), doc.to_raw());
    }
    engine.commit(ws).expect("sound");
    engine.checkpoint().expect("sound");
    let columns = Columns::new(engine.clone(), 64 << 20);
    columns.want(RECORDS);
    columns.settle();
    assert!(columns.bytes() > 0 && columns.bytes() < 1 << 20, "{}", columns.bytes());
    let snapshot = engine.snapshot();
    let reading = columns.read(&snapshot, RECORDS).expect("sound").expect("columns");
    let (mut held, mut unknown) = (0, 0);
    for piece in &reading.pieces {
        let Piece::Columns(segment, rows, _) = piece else {
            continue;
        };
        match segment.find(["a"]) {
            Found::Column(_) => held += rows.len(),
            // Its documents are too large.
            _ => unknown += rows.len(),
        }
        assert!(!matches!(segment.find(["own 5000"]), Found::Nothing), "somebody has it");
    }
    assert!(held > 0 && unknown > 0 && held + unknown == 40_000, "{held} {unknown}");
}

#[test]
fn of_two_fields_with_one_name_the_first_counts() {
    let dir = tempfile::tempdir().expect("sound");
    let engine = Engine::open(dir.path(), EngineOptions::at_time(1)).expect("sound");
    let mut ws = engine.begin();
    for id in 0..5000u64 {
        let mut doc = doc! { "a": 1, "e": doc! { "f": 2 } };
        if id == 4000 {
            doc.push("e", doc! { "g": 3 });
        }
        ws.put_document(RECORDS, record_key(RecordId(id)), doc.to_raw());
    }
    engine.commit(ws).expect("sound");
    engine.checkpoint().expect("sound");
    let columns = Columns::new(engine.clone(), 64 << 20);
    columns.want(RECORDS);
    columns.settle();
    let reading = columns
        .read(&engine.snapshot(), RECORDS)
        .expect("sound")
        .expect("columns");
    let Some(Piece::Columns(segment, ..)) = reading.pieces.last() else {
        panic!("no segment");
    };
    assert!(matches!(segment.find(["a"]), Found::Column(_)));
    assert!(matches!(segment.find(["e", "f"]), Found::Unknown));
    assert!(matches!(segment.find(["e", "g"]), Found::Unknown));
}
