//! Measures bases behind the trait: what one operation costs in CPU time and on the clock.
//!
//!     cargo run --release -- [--rows N]... [--base tree|tree4|tree16|redb|lmdb]... [--dir DIR] [--cache-mb N]
//!
//! Rows have keys of 12 bytes and values of 300. They are loaded in key order in transactions of 64 MB, read with warm
//! caches by one thread, then changed at random places in one transaction.

mod lmdb;
mod redb;

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nestor_storage::base::tree::{Tree, TreeOptions};
use nestor_storage::base::{Base, Change, ChangeSource};

const VALUE_BYTES: usize = 300;
const LOAD_ROWS: u64 = 200_000;
const CHANGES: u64 = 100_000;

/// Record `number` of a collection: its keys leave room for one new key behind each.
fn key(number: u64) -> [u8; 12] {
    let mut key = [0; 12];
    key[3] = 7;
    key[4..].copy_from_slice(&number.to_be_bytes());
    key
}

/// A value that differs by row and generation and does not compress away.
fn fill(value: &mut [u8; VALUE_BYTES], number: u64, generation: u64) {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ generation;
    for chunk in value.chunks_mut(8) {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        chunk.copy_from_slice(&state.to_le_bytes()[..chunk.len()]);
    }
}

/// Rows `next..end` with a step.
struct Rows<I> {
    numbers: I,
    generation: u64,
    key: [u8; 12],
    value: [u8; VALUE_BYTES],
    /// Every so many changes remove their key.
    remove_every: u64,
    at: Option<u64>,
    count: u64,
}

impl<I: Iterator<Item = u64>> Rows<I> {
    fn new(numbers: I, generation: u64, remove_every: u64) -> Rows<I> {
        let mut rows = Rows {
            numbers,
            generation,
            key: [0; 12],
            value: [0; VALUE_BYTES],
            remove_every,
            at: Some(0),
            count: 0,
        };
        rows.advance();
        rows
    }
}

impl<I: Iterator<Item = u64>> ChangeSource for Rows<I> {
    fn current(&self) -> Option<Change<'_>> {
        self.at?;
        let removed = self.remove_every > 0 && self.count.is_multiple_of(self.remove_every);
        Some(Change {
            key: &self.key,
            value: (!removed).then_some(&self.value[..]),
        })
    }

    fn advance(&mut self) {
        self.at = self.numbers.next();
        if let Some(number) = self.at {
            self.key = key(number);
            fill(&mut self.value, number, self.generation);
            self.count += 1;
        }
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

fn cpu() -> Duration {
    // SAFETY: getrusage fills the struct it is given.
    let usage = unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1_000);
    time(usage.ru_utime) + time(usage.ru_stime)
}

/// Resident memory of this process that is not a mapped file.
fn resident_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status
        .lines()
        .find(|line| line.starts_with("RssAnon"))
        .expect("Linux 4.5");
    let kib: f64 = line
        .split_whitespace()
        .nth(1)
        .and_then(|kib| kib.parse().ok())
        .expect("a number");
    kib / 1024.0
}

/// Runs `work` and prints microseconds per operation.
fn measure(base: &str, rows: u64, what: &str, operations: u64, work: impl FnOnce()) {
    let (wall, cpu_before) = (Instant::now(), cpu());
    work();
    let (wall, cpu) = (wall.elapsed(), cpu() - cpu_before);
    let each = |time: Duration| time.as_secs_f64() * 1e6 / operations as f64;
    println!("{base:8} {rows:>9} {what:34} {:>9.3} {:>9.3}", each(cpu), each(wall));
}

fn run(name: &str, base: &dyn Base, rows: u64) {
    measure(name, rows, "bulk load, per row", rows, || {
        for start in (0..rows).step_by(LOAD_ROWS as usize) {
            let numbers = (start..rows.min(start + LOAD_ROWS)).map(|number| 2 * number);
            base.apply(&[], &mut Rows::new(numbers, 0, 0), b"load").expect("loaded");
        }
    });
    let loaded_bytes = base.file_bytes();
    let snapshot = base.snapshot();
    let mut random = Random(88_172_645_463_325_252);
    // Everything that fits the cache is in it afterwards.
    for _ in 0..2 {
        let mut cursor = snapshot.clone().cursor();
        let mut more = cursor.first().expect("sound");
        while more {
            black_box(cursor.value().expect("sound"));
            more = cursor.next().expect("sound");
        }
    }
    measure(name, rows, "point get, one snapshot", 1_000_000, || {
        for _ in 0..1_000_000 {
            let value = snapshot.get(&key(2 * random.below(rows))).expect("sound");
            black_box(value.expect("there")[8]);
        }
    });
    measure(name, rows, "point get, own snapshot", 300_000, || {
        for _ in 0..300_000 {
            let value = base.snapshot().get(&key(2 * random.below(rows))).expect("sound");
            black_box(value.expect("there")[8]);
        }
    });
    measure(name, rows, "range of 100, new cursor", 30_000, || {
        for _ in 0..30_000 {
            let mut cursor = snapshot.clone().cursor();
            let mut more = cursor.seek(&key(random.below(2 * (rows - 100)))).expect("sound");
            let mut left = 100;
            while more && left > 0 {
                black_box((cursor.key()[11], cursor.value().expect("sound")[8]));
                more = cursor.next().expect("sound");
                left -= 1;
            }
        }
    });
    let scans = (4_000_000 / rows).max(1);
    measure(name, rows, "full scan, per row", rows * scans, || {
        for _ in 0..scans {
            let mut cursor = snapshot.clone().cursor();
            let mut more = cursor.first().expect("sound");
            while more {
                black_box((cursor.key()[11], cursor.value().expect("sound")[8]));
                more = cursor.next().expect("sound");
            }
        }
    });
    let mut cursor = snapshot.clone().cursor();
    measure(name, rows, "seek, cursor reused", 500_000, || {
        for _ in 0..500_000 {
            let found = cursor.seek(&key(random.below(2 * rows - 1))).expect("sound");
            black_box((found, cursor.key()[11]));
        }
    });
    measure(name, rows, "seek ahead by 10 rows, reused", 500_000, || {
        let mut at = 0;
        for _ in 0..500_000 {
            at = (at + 20) % (2 * rows - 20);
            let found = cursor.seek(&key(at + 1)).expect("sound");
            black_box((found, cursor.key()[11]));
        }
    });
    drop(cursor);
    drop(snapshot);
    println!("{name:8} {rows:>9} {:34} {:>9.1}", "resident memory, MB", resident_mb());
    // Once into fresh space; later transactions find space that earlier ones freed.
    for what in [
        "apply 100k random, first",
        "apply 100k random, second",
        "apply 100k random, third",
    ] {
        let mut numbers: Vec<u64> = (0..CHANGES).map(|_| random.below(2 * rows)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let count = numbers.len() as u64;
        let mut written = 0;
        measure(name, rows, what, count, || {
            let changes = &mut Rows::new(numbers.iter().copied(), 1, 10);
            written = base.apply(&[], changes, b"changes").expect("applied").bytes_written;
        });
        if written > 0 {
            println!(
                "{name:8} {rows:>9} {:34} {:>9.1}",
                "written by it, MB",
                written as f64 / 1e6
            );
        }
    }
    let numbers = (0..CHANGES).map(|number| 2 * (rows + number));
    measure(name, rows, "apply 100k at the end, per change", CHANGES, || {
        base.apply(&[], &mut Rows::new(numbers, 1, 0), b"changes")
            .expect("applied");
    });
    let (loaded, after) = (loaded_bytes as f64 / 1e6, base.file_bytes() as f64 / 1e6);
    println!(
        "{name:8} {rows:>9} {:34} {loaded:>9.1} {after:>9.1}",
        "file, MB: loaded, after changes"
    );
}

fn tree(path: &Path, page_bytes: usize, cache_bytes_max: usize) -> Box<dyn Base> {
    let options = TreeOptions {
        cache_bytes_max,
        page_bytes,
        ..TreeOptions::default()
    };
    Box::new(Tree::open(&path.join("base"), options).expect("opened"))
}

fn main() {
    let (mut rows, mut bases, mut dir) = (Vec::new(), Vec::new(), PathBuf::from("."));
    let mut cache = 4 << 30;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().expect("each flag has a value");
        match argument.as_str() {
            "--rows" => rows.push(value.parse().expect("a number")),
            "--base" => bases.push(value),
            "--dir" => dir = value.into(),
            "--cache-mb" => cache = value.parse::<usize>().expect("a number") << 20,
            _ => panic!("unknown flag {argument}"),
        }
    }
    if rows.is_empty() {
        rows = vec![50_000, 2_000_000];
    }
    if bases.is_empty() {
        bases = ["tree", "redb", "lmdb"].map(String::from).to_vec();
    }
    println!(
        "{:8} {:>9} {:34} {:>9} {:>9}",
        "base", "rows", "microseconds each", "CPU", "wall"
    );
    for rows in rows {
        for name in &bases {
            let place = tempfile::tempdir_in(&dir).expect("a directory");
            let base: Box<dyn Base> = match name.as_str() {
                "tree" => tree(place.path(), 8192, cache),
                "tree4" => tree(place.path(), 4096, cache),
                "tree16" => tree(place.path(), 16_384, cache),
                "redb" => Box::new(redb::RedbBase::open(&place.path().join("base"), cache).expect("opened")),
                "lmdb" => Box::new(lmdb::LmdbBase::open(place.path()).expect("opened")),
                _ => panic!("unknown base {name}"),
            };
            run(name, &*base, rows);
        }
    }
}
