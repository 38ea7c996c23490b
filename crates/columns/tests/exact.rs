//! What is read by columns is what the records are, for every snapshot, whatever is written meanwhile.

mod shared;

use nestor_columns::{Columns, Found, Piece};
use nestor_model::{RecordId, Value, doc};
use nestor_storage::record::record_key;
use nestor_storage::{Engine, EngineOptions, Snapshot, TreeId};
use shared::{Dice, check, check_all, lines, made};
use std::cell::Cell;

const RECORDS: TreeId = TreeId(9);

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
    assert_eq!(
        check(&columns, &engine.snapshot(), RECORDS),
        0,
        "nobody asked for them before"
    );
    columns.settle();
    let mut held: Vec<Snapshot> = Vec::new();
    let (mut by_columns, mut most) = (0, 0);
    for round in 0..40 {
        let mut ws = engine.begin();
        for _ in 0..dice.below(12) {
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
        check(&columns, &ws, RECORDS);
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
        let rows = check(&columns, &engine.snapshot(), RECORDS);
        by_columns += usize::from(rows > 0);
        most = most.max(rows);
        for snapshot in &held {
            check(&columns, snapshot, RECORDS);
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
            check(&columns, &engine.snapshot(), RECORDS);
            columns.settle();
        }
    }
    assert!(by_columns > 20 && most > 8000, "{by_columns} {most}");
    assert!(columns.bytes() > 0);
}

#[test]
fn segments_are_made_of_others_and_what_was_changed() {
    let dir = tempfile::tempdir().expect("sound");
    let engine = Engine::open(dir.path(), EngineOptions::at_time(1)).expect("sound");
    let dice = Dice(Cell::new(9));
    let count = 4500;
    let plain = |id: u64| doc! { "_id": id as i64, "a": dice.below(300) as i32, "b": dice.below(5) as i64, "c": format!("text {}", id % 9), "p": format!("{:0160}", dice.below(1 << 30)), "e": doc! { "f": Value::DateTime(id as i64) } };
    let mut ws = engine.begin();
    for id in 0..count {
        ws.put_document(RECORDS, record_key(RecordId(id * 2)), plain(id * 2).to_raw());
    }
    engine.commit(ws).expect("sound");
    engine.checkpoint().expect("sound");
    let columns = Columns::new(engine.clone(), 64 << 20);
    columns.want(RECORDS);
    columns.settle();
    let built = columns.figures().built;
    let mut held = vec![engine.snapshot()];
    for round in 0..30 {
        let mut ws = engine.begin();
        for _ in 0..100 {
            // Between the records that are there, and instead of them.
            let id = dice.below(count * 2);
            let key = record_key(RecordId(id));
            let mut doc = plain(id);
            match (round, dice.below(10)) {
                (0..5, _) => {}
                (5..10, 0..3) => ws.delete(RECORDS, key),
                (10..15, 0) => doc.push("d", 0.5 * dice.below(100) as f64),
                (15..20, 0) => doc = doc! { "e": doc! { "g": 1, "f": "text" }, "b": Value::Null },
                (20..25, 0) => doc.push("g", doc! { "h": Value::Null }),
                (25..30, 0) if dice.below(50) == 0 => doc = made(&dice, id),
                _ => {}
            }
            match (round, id % 2) {
                // Only documents that are there are changed at first, in one of their fields.
                (0..5, 1) => {}
                (5..10, _) if dice.below(4) == 0 => ws.delete(RECORDS, key),
                _ => ws.put_document(RECORDS, key, doc.to_raw()),
            }
        }
        engine.commit(ws).expect("sound");
        if round % 3 > 0 {
            engine.checkpoint().expect("sound");
        }
        let snapshot = engine.snapshot();
        columns.read(&snapshot, RECORDS).expect("sound");
        columns.settle();
        let rows = check(&columns, &snapshot, RECORDS);
        assert!(round % 3 == 0 || rows as u64 * 10 > count * 9, "{round}: {rows}");
        if round % 4 == 0 {
            held.push(snapshot);
        }
        if held.len() > 3 {
            held.remove(0);
        }
        if round % 5 == 4 {
            for snapshot in &held {
                check(&columns, snapshot, RECORDS);
            }
        }
    }
    let figures = columns.figures();
    assert!(figures.merged > 15 && figures.built < built + 5, "{built} {figures:?}");
}

#[test]
fn elements_of_arrays_are_exact_for_every_snapshot() {
    let dir = tempfile::tempdir().expect("sound");
    let engine = Engine::open(dir.path(), EngineOptions::at_time(1)).expect("sound");
    let dice = Dice(Cell::new(11));
    let count = 6000;
    let plain = |id: u64| {
        let tags: Vec<Value> = (0..dice.below(4))
            .map(|_| format!("tag {}", dice.below(9)).into())
            .collect();
        doc! { "_id": id as i64, "a": dice.below(300) as i32, "p": format!("{:0160}", dice.below(1 << 30)), "l": lines(&dice), "t": tags }
    };
    let mut docs: Vec<_> = (0..count).map(plain).collect();
    let mut ws = engine.begin();
    for (id, doc) in docs.iter().enumerate() {
        ws.put_document(RECORDS, record_key(RecordId(id as u64)), doc.to_raw());
    }
    engine.commit(ws).expect("sound");
    engine.checkpoint().expect("sound");
    let columns = Columns::new(engine.clone(), 64 << 20);
    columns.want(RECORDS);
    columns.settle();
    let (_, all) = check_all(&columns, &engine.snapshot(), RECORDS);
    assert!(all as u64 > count * 2, "{all}");
    for round in 0..24 {
        let mut ws = engine.begin();
        for _ in 0..60 {
            let id = dice.below(count);
            let doc = &mut docs[id as usize];
            match (round, dice.below(6)) {
                // Elements stay as they are, and then as many.
                (0..6, _) => doc.set("a", 7),
                (6..12, _) => {
                    if let Some(Value::Array(items)) = doc.get("l").map(|value| value.to_value()) {
                        let items: Vec<Value> = items.iter().map(|_| doc! { "no": 5, "price": 1.25 }.into()).collect();
                        doc.set("l", items);
                    }
                }
                (12..18, 0) => doc.set("l", Value::Null),
                (18..24, 0) if dice.below(40) == 0 => doc.set("t", 1),
                _ => *doc = plain(id),
            }
            ws.put_document(RECORDS, record_key(RecordId(id)), docs[id as usize].to_raw());
        }
        engine.commit(ws).expect("sound");
        engine.checkpoint().expect("sound");
        let snapshot = engine.snapshot();
        columns.read(&snapshot, RECORDS).expect("sound");
        columns.settle();
        let (_, seen) = check_all(&columns, &snapshot, RECORDS);
        assert!(round >= 18 || seen * 10 > all * 8, "{round}: {seen} of {all}");
    }
    assert!(columns.figures().merged > 20, "{:?}", columns.figures());
}

#[test]
fn columns_of_documents_that_have_little_in_common_are_small() {
    let dir = tempfile::tempdir().expect("sound");
    let engine = Engine::open(dir.path(), EngineOptions::at_time(1)).expect("sound");
    let dice = Dice(Cell::new(8));
    let mut ws = engine.begin();
    for id in 0..40_000u64 {
        let mut doc = doc! { "a": id as i64, "b": "x" };
        doc.push(format!("own {id}"), 1);
        // So that the documents take several groups of blocks, however well they pack.
        let noise = (0..8).map(|_| nestor_model::Value::from(dice.below(1 << 30) as i64));
        doc.push("d", noise.collect::<Vec<_>>());
        doc.push("c", "long text ".repeat(if id < 20 { 1 << 19 } else { 1 }));
        ws.put_document(RECORDS, record_key(RecordId(id)), doc.to_raw());
    }
    engine.commit(ws).expect("sound");
    engine.checkpoint().expect("sound");
    let columns = Columns::new(engine.clone(), 64 << 20);
    columns.want(RECORDS);
    columns.settle();
    assert!(columns.bytes() > 0 && columns.bytes() < 2 << 20, "{}", columns.bytes());
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
