//! Bad days of the disk: full, or failing to write and to sync.

use super::recovery_tests::{keys, oplog, options, put, segments};
use super::*;
use crate::Guarantee;
use crate::View;
use crate::base::tree::PageFile;
use crate::journal::JournalOptions;
use crate::journal::segment::HEADER_BYTES;
use nestor_model::{CollectionOptions, ErrorCode, Namespace, doc};
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::time::Duration;
use std::{fs, io};

/// A segment file on a disk that can be full or broken.
struct Faulty {
    file: fs::File,
    disk: Arc<Disk>,
}

#[derive(Default)]
struct Disk {
    /// Bytes that still fit.
    free: AtomicI64,
    broken_writes: AtomicBool,
    broken_syncs: AtomicBool,
    syncs: AtomicU64,
}

impl PageFile for Faulty {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        PageFile::read_at(&self.file, buffer, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if self.disk.broken_writes.load(Ordering::SeqCst) {
            return Err(io::Error::other("the disk is broken"));
        }
        let free = self.disk.free.fetch_sub(bytes.len() as i64, Ordering::SeqCst);
        if free < bytes.len() as i64 {
            // A full disk takes the first part.
            let fits = usize::try_from(free).unwrap_or(0).min(bytes.len());
            self.disk.free.store(0, Ordering::SeqCst);
            PageFile::write_at(&self.file, &bytes[..fits], offset)?;
            return Err(io::ErrorKind::StorageFull.into());
        }
        PageFile::write_at(&self.file, bytes, offset)
    }
    fn sync(&self) -> io::Result<()> {
        self.disk.syncs.fetch_add(1, Ordering::SeqCst);
        if self.disk.broken_syncs.load(Ordering::SeqCst) {
            return Err(io::Error::other("the disk is broken"));
        }
        PageFile::sync(&self.file)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        PageFile::set_len(&self.file, len)
    }
    fn len(&self) -> io::Result<u64> {
        PageFile::len(&self.file)
    }
}

fn faulty(free: i64) -> (Arc<Disk>, EngineOptions) {
    let disk = Arc::new(Disk::default());
    disk.free.store(free, Ordering::SeqCst);
    let mut options = options();
    let shared = disk.clone();
    options.journal = JournalOptions {
        open: Arc::new(move |path, create| {
            let file = fs::File::options()
                .read(true)
                .write(true)
                .create(create)
                .truncate(create)
                .open(path)?;
            let disk = shared.clone();
            Ok(Box::new(Faulty { file, disk }))
        }),
        ..JournalOptions::new()
    };
    (disk, options)
}

#[test]
fn a_full_disk_fails_commits_cleanly_until_there_is_space() {
    let dir = tempfile::tempdir().unwrap();
    let (disk, options) = faulty(600);
    let engine = Engine::open(dir.path(), options.clone()).unwrap();
    let mut done = String::new();
    for key in ["a", "b", "c", "d", "e", "f"] {
        match put(&engine, key) {
            Ok(_) => done.push_str(key),
            Err(error) => assert_eq!(error.code(), ErrorCode::OutOfDiskSpace),
        }
    }
    assert!(!done.is_empty() && done.len() < 6, "{done}");
    assert_eq!(keys(&engine), done);
    disk.free.store(1_000_000, Ordering::SeqCst);
    let commit = put(&engine, "g").unwrap();
    assert_eq!(commit.lsn.0, done.len() as u64 + 1, "no number is lost");
    engine.wait_durable(commit.lsn).unwrap();
    done.push('g');
    assert_eq!(oplog(&engine, Timestamp::default()), done);
    engine.crash();
    let engine = Engine::open(dir.path(), options).unwrap();
    assert_eq!(
        (keys(&engine), oplog(&engine, Timestamp::default())),
        (done.clone(), done)
    );
}

#[test]
fn a_full_disk_opens_with_what_a_build_left() {
    let dir = tempfile::tempdir().unwrap();
    let (disk, options) = faulty(1_000_000);
    let engine = Engine::open(dir.path(), options.clone()).unwrap();
    let mut ws = engine.begin();
    let made = ws
        .create_collection(&Namespace::new("db", "c"), [1; 16], CollectionOptions::default())
        .unwrap();
    let spec = doc! { "v": 2, "key": doc! { "a": 1 }, "name": "a" };
    ws.start_index(made.id, nestor_model::IndexSpec::parse(spec.to_raw()).unwrap())
        .unwrap();
    engine.commit(ws).unwrap();
    engine.crash();
    for free in [0, 1_000_000] {
        disk.free.store(free, Ordering::SeqCst);
        let engine = Engine::open(dir.path(), options.clone()).unwrap();
        let found = engine.snapshot().catalog().by_id(made.id).unwrap().clone();
        assert_eq!(found.building.len(), usize::from(free == 0));
        engine.crash();
    }
}

#[test]
fn a_checkpoint_does_not_rely_on_a_segment_without_commits() {
    let dir = tempfile::tempdir().unwrap();
    let (disk, mut options) = faulty(1_000_000);
    options.journal.segment_bytes = 100;
    let engine = Engine::open(dir.path(), options.clone()).unwrap();
    let commit = put(&engine, "a").unwrap();
    engine.wait_durable(commit.lsn).unwrap();
    // The next segment finds room, the commit in it does not.
    disk.free.store(HEADER_BYTES as i64 + 10, Ordering::SeqCst);
    assert_eq!(put(&engine, "b").unwrap_err().code(), ErrorCode::OutOfDiskSpace);
    engine.checkpoint().unwrap();
    engine.crash();
    // No sync said that it is there for good.
    let made = segments(dir.path());
    assert_eq!(made.len(), 2);
    fs::remove_file(&made[1]).unwrap();
    disk.free.store(1_000_000, Ordering::SeqCst);
    let engine = Engine::open(dir.path(), options).unwrap();
    put(&engine, "c").unwrap();
    assert_eq!(
        (keys(&engine), oplog(&engine, Timestamp::default())),
        ("ac".into(), "ac".into())
    );
}

#[test]
fn after_a_failed_write_or_sync_only_reads_go_on() {
    for sync in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let (disk, options) = faulty(1_000_000);
        let engine = Engine::open(dir.path(), options).unwrap();
        let commit = put(&engine, "a").unwrap();
        engine.wait_durable(commit.lsn).unwrap();
        if sync {
            disk.broken_syncs.store(true, Ordering::SeqCst);
            let commit = put(&engine, "b").unwrap();
            let (send, receive) = std::sync::mpsc::channel();
            engine.on_reached(commit.lsn, Guarantee::Durable, move |result| send.send(result).unwrap());
            let waited = engine.wait_durable(commit.lsn);
            assert!(matches!(waited, Err(StorageError::ReadOnlyAfterFailure(_))));
            assert!(receive.recv_timeout(Duration::from_secs(60)).unwrap().is_err());
        } else {
            disk.broken_writes.store(true, Ordering::SeqCst);
        }
        disk.broken_writes.store(!sync, Ordering::SeqCst);
        for _ in 0..2 {
            let refused = put(&engine, "c");
            assert!(
                matches!(refused, Err(StorageError::ReadOnlyAfterFailure(_))),
                "{refused:?}"
            );
            disk.broken_writes.store(false, Ordering::SeqCst);
            disk.broken_syncs.store(false, Ordering::SeqCst);
        }
        assert_eq!(keys(&engine), if sync { "ab" } else { "a" });
        assert!(engine.has_reached(commit.lsn, &Guarantee::Durable));
        assert!(engine.checkpoint().is_err() == sync);
    }
}

#[test]
fn waiters_share_syncs_and_nobody_is_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let (disk, options) = faulty(i64::MAX);
    let engine = Engine::open(dir.path(), options).unwrap();
    let before = disk.syncs.load(Ordering::SeqCst);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let engine = &engine;
            scope.spawn(move || {
                for i in 0..20 {
                    let commit = put(engine, &format!("{thread}-{i} ")).unwrap();
                    engine.wait_durable(commit.lsn).unwrap();
                    assert!(engine.has_reached(commit.lsn, &Guarantee::Durable));
                }
            });
        }
    });
    let syncs = disk.syncs.load(Ordering::SeqCst) - before;
    assert!((1..=160).contains(&syncs), "{syncs}");
    // Without anyone waiting, the thread syncs by itself.
    let commit = put(&engine, "x").unwrap();
    let (send, receive) = std::sync::mpsc::channel();
    engine.on_reached(commit.lsn, Guarantee::Durable, move |result| send.send(result).unwrap());
    receive.recv_timeout(Duration::from_secs(60)).unwrap().unwrap();
    let commit = put(&engine, "y").unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !engine.has_reached(commit.lsn, &Guarantee::Durable) {
        assert!(Instant::now() < deadline);
        thread::yield_now();
    }
    assert_eq!(engine.durable_optime(), commit.optime);
}

#[test]
fn a_key_that_is_written_again_and_again_does_not_fill_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options();
    options.memtable_bytes_max = 20_000;
    options.oplog_bytes_max = 20_000;
    options.journal.segment_bytes = 5_000;
    let engine = Engine::open(dir.path(), options).unwrap();
    // The memtable never gets near its size. Each round waits for the checkpoint that the journal's growth asks for.
    for _ in 0..3 {
        for _ in 0..700 {
            put(&engine, "k").unwrap();
        }
        assert!(engine.stats().memtable_bytes < 20_000);
        let deadline = Instant::now() + Duration::from_secs(60);
        while engine.stats().journal_bytes > 60_000 {
            assert!(
                Instant::now() < deadline,
                "{} bytes of journal",
                engine.stats().journal_bytes
            );
            put(&engine, "k").unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
