//! The log in a directory, by SlateDB, keeps the contract that the log in memory keeps.
#![cfg(feature = "cluster")]
// All of it is a test.
#![allow(clippy::unwrap_used)]

use nestor_cluster::{Entry, Log, LogError, MemoryLog, SlateLog};
use std::path::Path;

fn entries(range: std::ops::RangeInclusive<u64>, by: &str) -> Vec<Entry> {
    range
        .map(|seq| Entry {
            seq,
            frame: format!("{by} {seq}").into_bytes(),
        })
        .collect()
}

fn seqs(entries: &[Entry]) -> Vec<u64> {
    entries.iter().map(|entry| entry.seq).collect()
}

/// What every log does.
fn keeps_the_contract(log: &dyn Log, scratch: &Path) {
    log.verify("a:1").unwrap();
    let mut early = log.open_reader().unwrap();
    assert_eq!(early.read(0, 1_000).unwrap(), []);
    let mut first = log.open_writer().unwrap();
    assert_eq!(first.last().unwrap(), 0);
    first.append(&entries(1..=3, "first")).unwrap();
    first.append(&entries(4..=4, "first")).unwrap();
    first.append(&entries(4..=5, "first")).unwrap();
    assert_eq!(seqs(&early.read(0, 1_000).unwrap()), [1, 2, 3, 4, 5]);
    assert_eq!(seqs(&first.read(1, 1).unwrap()), [2]);
    let mut second = log.open_writer().unwrap();
    assert!(second.epoch() > first.epoch());
    assert_eq!(second.last().unwrap(), 5);
    let fenced = first.append(&entries(6..=6, "first")).unwrap_err();
    assert!(matches!(fenced, LogError::Fenced(_)), "{fenced}");
    second.append(&entries(6..=7, "second")).unwrap();
    assert_eq!(early.read(5, 1_000).unwrap(), entries(6..=7, "second"));
    let mut late = log.open_reader().unwrap();
    // In any order, also behind the end.
    for seq in [8, 3, 9, 1, 7, 0] {
        let found = late.entry(seq).unwrap().map(|entry| entry.seq);
        assert_eq!(found, (1..=7).contains(&seq).then_some(seq));
    }
    assert_eq!(late.read(4, 1_000).unwrap().len(), 3);
    assert_eq!(late.read(7, 1_000).unwrap(), []);
    second.append(&entries(8..=8, "second")).unwrap();
    assert_eq!(seqs(&late.read(7, 1_000).unwrap()), [8]);
    second.trim(5).unwrap();
    let trimmed = log.open_reader().unwrap().read(2, 1_000).unwrap_err();
    assert_eq!(trimmed, LogError::Trimmed { wanted: 3, first: 5 });
    assert_eq!(seqs(&log.open_reader().unwrap().read(4, 1_000).unwrap()), [5, 6, 7, 8]);

    assert_eq!(log.record("lease").unwrap(), None);
    assert!(!log.replace_record("lease", 1, b"x").unwrap());
    for version in 0..40 {
        assert!(
            log.replace_record("lease", version, format!("{version}").as_bytes())
                .unwrap()
        );
        assert!(!log.replace_record("lease", version, b"late").unwrap());
    }
    assert_eq!(log.record("lease").unwrap(), Some((40, b"39".to_vec())));
    log.announce("b:1", b"1").unwrap();
    log.announce("a:1", b"2").unwrap();
    log.announce("b:1", b"3").unwrap();
    let said = [("a:1".to_owned(), b"2".to_vec()), ("b:1".to_owned(), b"3".to_vec())];
    assert_eq!(log.announcements().unwrap(), said);

    let (from, to) = (scratch.join("from"), scratch.join("to"));
    std::fs::write(&from, vec![7; 20 << 20]).unwrap();
    log.upload("checkpoints/8/base", &from).unwrap();
    log.download("checkpoints/8/base", &to).unwrap();
    assert_eq!(log.files("checkpoints/8").unwrap(), ["checkpoints/8/base"]);
    assert!(std::fs::read(&to).unwrap() == std::fs::read(&from).unwrap());
    log.put("checkpoints/8/below/small", b"0123456789").unwrap();
    assert_eq!(log.contents("checkpoints/8/below/small").unwrap(), b"0123456789");
    assert_eq!(log.get("checkpoints/8/below/small", 2..5).unwrap(), b"234");
    assert_eq!(log.get("checkpoints/8/below/small", 8..50).unwrap(), b"89");
    assert!(log.contents("checkpoints/8/none").is_err());
    assert_eq!(
        log.files("checkpoints").unwrap(),
        ["checkpoints/8/base", "checkpoints/8/below/small"]
    );
    log.remove("checkpoints/8/base").unwrap();
    log.remove("checkpoints/8/base").unwrap();
    assert_eq!(log.files("checkpoints/8").unwrap(), ["checkpoints/8/below/small"]);
}

#[test]
fn in_memory() {
    let scratch = tempfile::tempdir().unwrap();
    keeps_the_contract(&MemoryLog::new(), scratch.path());
}

#[test]
fn in_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    let address = format!("file://{}/log", dir.path().display());
    keeps_the_contract(&SlateLog::open(&address).unwrap(), dir.path());
}

#[test]
fn a_reader_that_is_behind_tells_what_it_has() {
    let dir = tempfile::tempdir().unwrap();
    let log = SlateLog::open(&format!("file://{}", dir.path().display())).unwrap();
    let mut writer = log.open_writer().unwrap();
    let mut reader = log.open_reader().unwrap();
    assert_eq!(reader.read(0, usize::MAX).unwrap(), []);
    for seq in 1..=100 {
        writer.append(&entries(seq..=seq, "a")).unwrap();
    }
    // A writer that is faster would have it read for ever.
    let mut read = Vec::new();
    while read.len() < 100 {
        let more = reader.read(read.len() as u64, usize::MAX).unwrap();
        assert!((1..=16).contains(&more.len()), "{} of {}", more.len(), read.len());
        read.extend(more);
    }
    assert_eq!(read, entries(1..=100, "a"));
    assert_eq!(reader.read(100, usize::MAX).unwrap(), []);
}

/// `NESTOR_TEST_LOG=s3://bucket/path` and the credentials in the environment; the path has to be a new one.
#[test]
fn in_a_store_that_is_named() {
    let Ok(address) = std::env::var("NESTOR_TEST_LOG") else {
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    keeps_the_contract(&SlateLog::open(&address).unwrap(), scratch.path());
}

#[test]
fn addresses_that_hold_no_log_are_refused() {
    for address in ["s3://bucket", "s3:///x", "file://x", "/tmp/x", "http://a/b"] {
        let refused = SlateLog::open(address).err().expect(address);
        assert!(matches!(refused, LogError::Address(_)), "{refused}");
    }
}
