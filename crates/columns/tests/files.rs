//! Columns in files: there after a restart, and never a reason for a wrong answer or an error.

mod shared;

use nestor_columns::Columns;
use nestor_model::{CollectionOptions, Namespace, RecordId, Value, doc};
use nestor_storage::base::tree::PageFile;
use nestor_storage::record::record_key;
use nestor_storage::{Engine, EngineOptions, MasterKey, TreeId, View};
use shared::{Dice, check, check_all, made};
use std::cell::Cell;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const MUCH: usize = 64 << 20;

fn name() -> Namespace {
    Namespace::new("db", "c")
}

/// A collection of documents, in the base.
fn filled(dir: &Path, options: EngineOptions, dice: &Dice) -> (Engine, TreeId) {
    let engine = Engine::open(dir, options).expect("sound");
    let mut ws = engine.begin();
    let made_now = ws.create_collection(&name(), [1; 16], CollectionOptions::default());
    let tree = made_now.expect("sound").records;
    engine.commit(ws).expect("sound");
    let mut ws = engine.begin();
    for id in 0..9000 {
        ws.put_document(tree, record_key(RecordId(id)), made(dice, id).to_raw());
    }
    engine.commit(ws).expect("sound");
    engine.checkpoint().expect("sound");
    (engine, tree)
}

fn built(engine: &Engine, tree: TreeId) -> Columns {
    let columns = Columns::new(engine.clone(), MUCH);
    columns.want(tree);
    columns.settle();
    columns
}

/// Some documents anew, and perhaps a checkpoint.
fn change(engine: &Engine, tree: TreeId, dice: &Dice, count: u64) {
    let mut ws = engine.begin();
    for _ in 0..count {
        let id = dice.below(9000);
        match dice.below(5) {
            0 => ws.delete(tree, record_key(RecordId(id))),
            _ => ws.put_document(tree, record_key(RecordId(id)), made(dice, id).to_raw()),
        }
    }
    engine.commit(ws).expect("sound");
    if dice.below(2) == 0 {
        engine.checkpoint().expect("sound");
    }
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.join("columns")).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("sound").path()).collect();
    paths.sort();
    paths
}

/// The directory as a crash would leave it now.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("sound");
    for entry in fs::read_dir(from).expect("sound") {
        let entry = entry.expect("sound");
        let to = to.join(entry.file_name());
        match entry.file_type().expect("sound").is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).expect("sound")),
        }
    }
}

#[test]
fn columns_are_there_after_a_restart() {
    for key in [None, Some([7; 32])] {
        let options = || {
            let mut options = EngineOptions::at_time(1);
            options.master_key = key.map(|bytes: [u8; 32]| MasterKey::new(&bytes).expect("a key"));
            options
        };
        let dir = tempfile::tempdir().expect("sound");
        let dice = Dice(Cell::new(3));
        let (mut engine, tree) = filled(dir.path(), options(), &dice);
        let columns = built(&engine, tree);
        let made_first = columns.figures().built;
        assert!(made_first > 0 && columns.figures().disk_bytes > 0);
        assert_eq!(files(dir.path()).len() as u64, made_first);
        drop(columns);
        for round in 0..5 {
            change(&engine, tree, &dice, 2);
            if round % 2 == 0 {
                engine.close().expect("sound");
            }
            let crashed = tempfile::tempdir().expect("sound");
            copy(dir.path(), crashed.path());
            drop(engine);
            engine = Engine::open(crashed.path(), options()).expect("sound");
            let columns = Columns::new(engine.clone(), MUCH);
            assert!(columns.has(tree));
            let (rows, elements) = check_all(&columns, &engine.snapshot(), tree);
            assert!(rows > 4500, "round {round}: {rows}");
            // In some segments an element is no document, or no array.
            assert!(elements > 4500, "round {round}: {elements}");
            let figures = columns.figures();
            assert!(
                figures.columns_read > 0 && figures.bytes_read > 0 && figures.damaged == 0,
                "{figures:?}"
            );
            columns.settle();
            drop(columns);
            engine.close().expect("sound");
            drop(engine);
            fs::remove_dir_all(dir.path()).expect("sound");
            copy(crashed.path(), dir.path());
            engine = Engine::open(dir.path(), options()).expect("sound");
        }
        drop(engine);
    }
}

#[test]
fn files_of_other_names_are_of_no_use() {
    let dir = tempfile::tempdir().expect("sound");
    let dice = Dice(Cell::new(5));
    let (engine, tree) = filled(dir.path(), EngineOptions::at_time(1), &dice);
    drop(built(&engine, tree));
    engine.close().expect("sound");
    drop(engine);
    fs::remove_file(dir.path().join("base.births")).expect("it is there");
    let engine = Engine::open(dir.path(), EngineOptions::at_time(1)).expect("sound");
    let columns = Columns::new(engine.clone(), MUCH);
    assert!(!columns.has(tree) && files(dir.path()).is_empty());
    assert_eq!(check(&columns, &engine.snapshot(), tree), 0);
    columns.settle();
    assert!(check(&columns, &engine.snapshot(), tree) > 8000, "they were made anew");
}

#[test]
fn damaged_files_are_made_anew() {
    let dir = tempfile::tempdir().expect("sound");
    let dice = Dice(Cell::new(11));
    let (engine, tree) = filled(dir.path(), EngineOptions::at_time(1), &dice);
    drop(built(&engine, tree));
    for round in 0..15 {
        let all = files(dir.path());
        let path = &all[dice.below(all.len() as u64) as usize];
        let mut bytes = fs::read(path).expect("sound");
        let at = dice.below(bytes.len() as u64) as usize;
        let read_first = round % 2 == 0;
        let columns = Columns::new(engine.clone(), MUCH);
        if read_first {
            columns.read(&engine.snapshot(), tree).expect("sound");
        }
        match dice.below(3) {
            0 => {
                bytes[at] ^= 1 << dice.below(8);
                fs::write(path, bytes).expect("sound");
            }
            1 => fs::write(path, &bytes[..at]).expect("sound"),
            _ => fs::remove_file(path).expect("sound"),
        }
        let was_removed = !path.exists() && !read_first;
        check(&columns, &engine.snapshot(), tree);
        // A column of which nothing is asked may be damaged and nobody knows.
        check(&columns, &engine.snapshot(), tree);
        columns.settle();
        assert!(check(&columns, &engine.snapshot(), tree) > 8000, "round {round}");
        let figures = columns.figures();
        assert!(figures.damaged > 0 || was_removed || at > 0, "{figures:?}");
        drop(columns);
        // Whatever was not noticed.
        let columns = Columns::new(engine.clone(), MUCH);
        check(&columns, &engine.snapshot(), tree);
        columns.settle();
    }
}

/// A file that calls back before each write, which may fail.
struct Watched {
    file: fs::File,
    before: Arc<dyn Fn() -> io::Result<()> + Send + Sync>,
}

impl PageFile for Watched {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_at(buffer, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        (self.before)()?;
        self.file.write_at(bytes, offset)
    }
    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        PageFile::set_len(&self.file, len)
    }
    fn len(&self) -> io::Result<u64> {
        PageFile::len(&self.file)
    }
}

fn watched(before: Arc<dyn Fn() -> io::Result<()> + Send + Sync>) -> EngineOptions {
    let mut options = EngineOptions::at_time(1);
    options.beside = Arc::new(move |path, is_new| {
        let file = fs::File::options()
            .read(true)
            .write(is_new)
            .create(is_new)
            .truncate(is_new)
            .open(path)?;
        let before = before.clone();
        Ok(Box::new(Watched { file, before }))
    });
    options
}

#[test]
fn a_full_disk_costs_the_file_only() {
    let left = Arc::new(AtomicUsize::new(3));
    let own = left.clone();
    let options = watched(Arc::new(move || {
        let fits = own.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        fits.map(drop).map_err(|_| io::ErrorKind::StorageFull.into())
    }));
    let dir = tempfile::tempdir().expect("sound");
    let (engine, tree) = filled(dir.path(), options, &Dice(Cell::new(13)));
    let columns = built(&engine, tree);
    let figures = columns.figures();
    assert!(figures.not_saved > 0 && figures.disk_bytes == 0, "{figures:?}");
    assert!(files(dir.path()).is_empty(), "nothing half written is left");
    assert!(check(&columns, &engine.snapshot(), tree) > 8000, "they are in memory");
    drop(columns);
    left.store(10_000, Ordering::SeqCst);
    drop(built(&engine, tree));
    assert!(!files(dir.path()).is_empty());
}

#[test]
fn a_crash_at_each_step_harms_nothing() {
    let dir = tempfile::tempdir().expect("sound");
    let crashes = tempfile::tempdir().expect("sound");
    let copies: Arc<Mutex<Vec<PathBuf>>> = Arc::default();
    let (from, to, all) = (dir.path().to_owned(), crashes.path().to_owned(), copies.clone());
    let options = watched(Arc::new(move || {
        let mut all = all.lock().expect("sound");
        let to = to.join(all.len().to_string());
        copy(&from, &to);
        all.push(to);
        Ok(())
    }));
    let dice = Dice(Cell::new(17));
    let (engine, tree) = filled(dir.path(), options, &dice);
    // Made, made anew after a checkpoint that took most of them away, and dropped with the collection.
    let columns = built(&engine, tree);
    change(&engine, tree, &dice, 12_000);
    engine.checkpoint().expect("sound");
    columns.want(tree);
    columns.settle();
    assert!(columns.figures().built > 1);
    let mut ws = engine.begin();
    ws.drop_collection(&name()).expect("sound");
    engine.commit(ws).expect("sound");
    let before_drop = crashes.path().join("drop");
    copy(dir.path(), &before_drop);
    columns.tidy();
    assert_eq!(
        files(dir.path()),
        [] as [PathBuf; 0],
        "of what is dropped nothing stays"
    );
    drop(columns);
    drop(engine);
    let mut copies = copies.lock().expect("sound").clone();
    assert!(copies.len() > 15, "{}", copies.len());
    copies.push(before_drop);
    copies.push(dir.path().to_owned());
    for path in copies {
        let engine = Engine::open(&path, EngineOptions::at_time(1)).expect("sound");
        let columns = Columns::new(engine.clone(), MUCH);
        let unfinished = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "new");
        assert!(!files(&path).iter().any(unfinished), "{}", path.display());
        let exists = engine.snapshot().catalog().get(&name()).is_some();
        assert!(exists || files(&path).is_empty(), "{}", path.display());
        if exists {
            check(&columns, &engine.snapshot(), tree);
            columns.settle();
            assert!(check(&columns, &engine.snapshot(), tree) > 7000, "{}", path.display());
        }
        assert_eq!(columns.figures().damaged, 0);
    }
}

#[test]
fn memory_is_bounded_by_reading_again() {
    let dir = tempfile::tempdir().expect("sound");
    let dice = Dice(Cell::new(19));
    let (engine, tree) = filled(dir.path(), EngineOptions::at_time(1), &dice);
    let whole = built(&engine, tree);
    check(&whole, &engine.snapshot(), tree);
    let all = whole.bytes();
    drop(whole);
    let bytes_max = all / 2;
    let columns = Columns::new(engine.clone(), bytes_max);
    for _ in 0..4 {
        assert!(check(&columns, &engine.snapshot(), tree) > 8000);
        assert!(columns.bytes() <= bytes_max, "{} of {bytes_max}", columns.bytes());
    }
    assert!(columns.figures().columns_read > 0);
}

/// As many letters as that, of sixteen.
fn letters(dice: &Dice, count: usize) -> String {
    (0..count).map(|_| char::from(b'a' + dice.below(16) as u8)).collect()
}

/// Events in the shape of JSONBench's: most of their bytes are random letters.
#[test]
fn columns_of_events_take_a_quarter_of_the_documents() {
    let dir = tempfile::tempdir().expect("sound");
    let dice = Dice(Cell::new(23));
    let (engine, tree) = filled(dir.path(), EngineOptions::at_time(1), &dice);
    let users: Vec<String> = (0..2000).map(|_| format!("did:plc:{}", letters(&dice, 24))).collect();
    let kinds = [
        "app.feed.like",
        "app.feed.post",
        "app.user.join",
        "app.feed.link",
        "app.user.mute",
    ];
    let mut ws = engine.begin();
    let mut bytes = 0;
    for id in 0..20_000 {
        let event = doc! {
            "_id": id as i64, "did": users[dice.below(2000) as usize].as_str(), "time_us": 1_700_000_000_000_000 + id as i64 * 12_960_000 + dice.below(12_960_000) as i64,
            "kind": "commit", "commit": doc! {
                "rev": 1, "operation": if dice.below(8) == 0 { "delete" } else { "create" }, "collection": kinds[dice.below(5).min(dice.below(5)) as usize],
                "rkey": letters(&dice, 13), "record": doc! { "text": letters(&dice, 80), "langs": vec![Value::from("en")] },
            },
        };
        let event = event.to_raw();
        bytes += event.as_bytes().len() as u64;
        ws.put_document(tree, record_key(RecordId(id)), event);
    }
    engine.commit(ws).expect("sound");
    engine.checkpoint().expect("sound");
    let figures = built(&engine, tree).figures();
    assert!(
        figures.not_saved == 0 && figures.disk_bytes * 4 < bytes,
        "{} of {bytes}",
        figures.disk_bytes
    );
}
