//! The log in an object store: [SlateDB](https://slatedb.io) below `log/`, and beside it small objects.
//!
//! ```text
//! log/                       SlateDB: key = number of the commit, big-endian; value = its frame
//! records/<name>/<version>   versions of a record, each created only if it is not there; the newest few are kept
//! members/<name>             what members said last
//! files/...                  files of checkpoints
//! ```
//!
//! SlateDB fences writers by conditional creates and writes batches durably. Records need conditional creates too, and nothing else:
//! no conditional replacing, so that directories (`object_store`'s local file system) will do.

use crate::conflicts::Conflicts;
use crate::log::{Entry, Log, Reader, Version, Writer};
use crate::ticks::Ticks;
use crate::{LogError, Result};
use slatedb::bytes::Bytes;
use slatedb::config::{
    DbReaderOptions, DurabilityLevel, FlushOptions, FlushType, GarbageCollectorOptions, ScanOptions, Settings,
};
use slatedb::object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use slatedb::object_store::local::LocalFileSystem;
use slatedb::object_store::path::Path as ObjectPath;
use slatedb::object_store::prefix::PrefixStore;
use slatedb::object_store::{
    ClientOptions, Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, RetryConfig,
    WriteMultipart,
};
use slatedb::{
    CloseReason, Db, DbIterator, DbReader, DbReaderMode, Error, ErrorKind, IterationOrder, ValueDeletable, WalFile,
    WalReader, WriteBatch,
};
use slatedb_common::clock::SystemClock;
use std::fmt::Display;
use std::fs::File;
use std::future::Future;
use std::io::{Read, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// Where SlateDB's files are.
const LOG: &str = "log";
/// Versions of a record that are kept: more than anybody may be behind who creates the next one.
const VERSIONS_KEPT: Version = 16;
/// How long a request of a small object may take, with what is repeated of it.
const REQUEST_MAX: Duration = Duration::from_secs(4);
/// How long one may take that brings a piece of a file.
const FILE_REQUEST_MAX: Duration = Duration::from_secs(60);
/// How many times a reader finds nothing before it looks whether what it waits for is gone.
const EMPTY_LOOKS_MAX: u32 = 100;
/// Files that a reader asks for together at most, when it is behind.
const AHEAD_MAX: u64 = 16;
/// Appends after which their files are put together: whoever opens the log reads those that are not, one by one.
const APPENDS_MAX: u32 = 256;
/// How far the clock of entries goes ahead when it is behind for a reason that no entry tells, in milliseconds.
const LEAP_MS: i64 = 3_600_000;
/// Bytes of a file that are read and sent at a time.
const PIECE: usize = 8 << 20;

/// A log in an object store. Has threads of its own; calls block until these have the answer.
pub struct SlateLog {
    shared: Arc<Shared>,
}

struct Shared {
    address: String,
    store: Arc<dyn ObjectStore>,
    /// The same for files of checkpoints, whose requests take as long as their bytes.
    files: Arc<dyn ObjectStore>,
    runtime: Runtime,
    /// Whether objects can be replaced on a condition.
    replaces: bool,
}

impl Shared {
    fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }
}

impl SlateLog {
    /// The log at `s3://bucket/path` or `file:///path`. The endpoint and credentials of S3 are those of the environment
    /// (`AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ALLOW_HTTP` and so on). Nothing is
    /// asked for yet.
    pub fn open(address: &str) -> Result<Self> {
        let Stores { store, files, replaces } = stores_at(address)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("cluster-log")
            .enable_all()
            .build()
            .map_err(|e| unavailable(&e))?;
        Ok(Self {
            shared: Arc::new(Shared {
                address: address.to_owned(),
                store,
                files,
                runtime,
                replaces,
            }),
        })
    }

    fn versions(&self, name: &str) -> Result<Vec<Version>> {
        let folder = ObjectPath::from(format!("records/{name}"));
        let listed = self.shared.wait(self.shared.store.list_with_delimiter(Some(&folder)));
        let listed = listed.map_err(|e| unavailable(&e))?.objects;
        let mut versions: Vec<Version> = listed
            .iter()
            .filter_map(|object| object.location.filename()?.parse().ok())
            .collect();
        versions.sort_unstable();
        Ok(versions)
    }

    /// The contents of an object; `None` if there is none.
    fn object(&self, at: &ObjectPath) -> Result<Option<Vec<u8>>> {
        self.shared.wait(object(self.shared.store.clone(), at.clone()))
    }
}

/// See [`SlateLog::object`].
async fn object(store: Arc<dyn ObjectStore>, at: ObjectPath) -> Result<Option<Vec<u8>>> {
    match store.get(&at).await {
        Ok(found) => Ok(Some(found.bytes().await.map_err(|e| unavailable(&e))?.to_vec())),
        Err(StoreError::NotFound { .. }) => Ok(None),
        Err(error) => Err(unavailable(&error)),
    }
}

/// See [`Shared`].
struct Stores {
    store: Arc<dyn ObjectStore>,
    files: Arc<dyn ObjectStore>,
    replaces: bool,
}

fn stores_at(address: &str) -> Result<Stores> {
    let wrong = |error: &dyn Display| LogError::Address(format!("{address} is no address of a log: {error}"));
    if let Some(path) = address.strip_prefix("file://") {
        if !path.starts_with('/') {
            return Err(wrong(&"the path is not absolute"));
        }
        std::fs::create_dir_all(path).map_err(|e| wrong(&e))?;
        let store = LocalFileSystem::new_with_prefix(path).map_err(|e| wrong(&e))?;
        let store: Arc<dyn ObjectStore> = Arc::new(store.with_fsync(true));
        return Ok(Stores {
            files: store.clone(),
            store,
            replaces: false,
        });
    }
    let Some((bucket, path)) = address
        .strip_prefix("s3://")
        .map(|rest| rest.split_once('/').unwrap_or((rest, "")))
    else {
        return Err(wrong(&"neither s3://bucket/path nor file:///path"));
    };
    if bucket.is_empty() || path.is_empty() {
        return Err(wrong(&"a bucket and a path in it are needed"));
    }
    let store_of = |request_max: Duration| -> Result<Arc<dyn ObjectStore>> {
        let retry = RetryConfig {
            retry_timeout: request_max,
            max_retries: 3,
            ..RetryConfig::default()
        };
        let options = ClientOptions::new().with_timeout(request_max);
        let store = AmazonS3Builder::from_env()
            .with_bucket_name(bucket)
            .with_retry(retry)
            .with_client_options(match std::env::var("AWS_ALLOW_HTTP") {
                Ok(allowed) => options.with_allow_http(allowed == "true" || allowed == "1"),
                Err(_) => options,
            });
        let store = match store.get_config_value(&AmazonS3ConfigKey::Region) {
            Some(_) => store,
            None => store.with_region("us-east-1"),
        };
        let store = store.build().map_err(|e| wrong(&e))?;
        Ok(Arc::new(PrefixStore::new(Conflicts(store), path)))
    };
    Ok(Stores {
        store: store_of(REQUEST_MAX)?,
        files: store_of(FILE_REQUEST_MAX)?,
        replaces: true,
    })
}

fn unavailable(error: &dyn Display) -> LogError {
    LogError::Unavailable(error.to_string())
}

/// An error with what caused it.
fn whole(error: &dyn std::error::Error) -> String {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        // Many repeat their cause.
        if !said.contains(&more) {
            said = format!("{said}: {more}");
        }
        cause = error.source();
    }
    said
}

fn of_slate(error: &Error) -> LogError {
    match error.kind() {
        ErrorKind::Closed(CloseReason::Fenced) => LogError::Fenced(whole(error)),
        ErrorKind::Data => LogError::Damaged(whole(error)),
        _ => unavailable(&whole(error)),
    }
}

fn key(seq: u64) -> [u8; 8] {
    seq.to_be_bytes()
}

fn entry(key: &[u8], frame: &[u8]) -> Result<Entry> {
    let seq = key.try_into().map(u64::from_be_bytes);
    Ok(Entry {
        seq: seq.map_err(|_| LogError::Damaged(format!("a key has {} bytes", key.len())))?,
        frame: frame.to_vec(),
    })
}

/// Takes entries until they have about `bytes_max` bytes.
async fn take(mut rows: DbIterator, bytes_max: usize) -> Result<Vec<Entry>> {
    let (mut entries, mut bytes) = (Vec::new(), 0);
    while bytes < bytes_max {
        let Some(row) = rows.next().await.map_err(|e| of_slate(&e))? else {
            break;
        };
        bytes += row.value.len();
        entries.push(entry(&row.key, &row.value)?);
    }
    Ok(entries)
}

fn scan_options() -> ScanOptions {
    ScanOptions::default()
        .with_durability_filter(DurabilityLevel::Remote)
        .with_read_ahead_bytes(1 << 20)
}

impl Log for SlateLog {
    fn open_writer(&self) -> Result<Box<dyn Writer>> {
        let settings = Settings {
            flush_interval: Some(Duration::from_millis(20)),
            l0_sst_size_bytes: 16 << 20,
            max_unflushed_bytes: 256 << 20,
            garbage_collector_options: Some(GarbageCollectorOptions {
                boundary_files_enabled: self.shared.replaces,
                ..GarbageCollectorOptions::default()
            }),
            ..Settings::default()
        };
        let ticks = Arc::<Ticks>::default();
        let db = self.shared.wait(
            Db::builder(LOG, self.shared.store.clone())
                .with_settings(settings)
                .with_system_clock(ticks.clone())
                .with_db_cache_disabled()
                .build(),
        );
        let db = db.map_err(|e| of_slate(&e))?;
        ticks.begin_at(self.shared.wait(last_tick(&db))?);
        Ok(Box::new(SlateWriter {
            epoch: db.manifest().writer_epoch(),
            db,
            ticks,
            appends: 0,
            gathering: None,
            shared: self.shared.clone(),
        }))
    }

    fn open_reader(&self) -> Result<Box<dyn Reader>> {
        Ok(Box::new(SlateReader {
            wal: WalReader::new(LOG, self.shared.store.clone()),
            place: Place::Unknown,
            shared: self.shared.clone(),
        }))
    }

    fn verify(&self, member: &str) -> Result<()> {
        let at = ObjectPath::from(format!("probes/{member}"));
        let store = &self.shared.store;
        let create = |contents: &'static [u8]| {
            let options = PutOptions::from(PutMode::Create);
            store.put_opts(&at, PutPayload::from_static(contents), options)
        };
        let found = self.shared.wait(async {
            match store.delete(&at).await {
                Ok(()) | Err(StoreError::NotFound { .. }) => {}
                Err(error) => return Err(unavailable(&error)),
            }
            let mut created = [false; 2];
            for (is_created, contents) in created.iter_mut().zip([&b"first"[..], b"second"]) {
                *is_created = match create(contents).await {
                    Ok(_) => true,
                    // That of a request that was repeated is as good.
                    Err(StoreError::AlreadyExists { .. } | StoreError::Precondition { .. }) => false,
                    Err(error) => return Err(unavailable(&error)),
                };
            }
            let found = store.get(&at).await.map_err(|e| unavailable(&e))?;
            let found = found.bytes().await.map_err(|e| unavailable(&e))?;
            Ok((created[1], found == b"first"[..]))
        })?;
        // What is left is in nobody's way.
        let _ = self.shared.wait(store.delete(&at));
        match found {
            (false, true) => Ok(()),
            _ => Err(LogError::Address(format!(
                "the store at {} creates an object that is there already (it ignores If-None-Match: *), so it cannot hold a log: two members \
                 could write at the same place",
                self.shared.address
            ))),
        }
    }

    fn record(&self, name: &str) -> Result<Option<(Version, Vec<u8>)>> {
        // The newest one may be removed between the two requests, when newer ones are there.
        for _ in 0..3 {
            let Some(version) = self.versions(name)?.last().copied() else {
                return Ok(None);
            };
            if let Some(contents) = self.object(&version_path(name, version))? {
                return Ok(Some((version, contents)));
            }
        }
        Err(unavailable(&format!("record {name} changes too often")))
    }

    fn replace_record(&self, name: &str, expected: Version, contents: &[u8]) -> Result<bool> {
        let versions = self.versions(name)?;
        if versions.last().copied().unwrap_or(0) != expected {
            return Ok(false);
        }
        let at = version_path(name, expected + 1);
        let payload = PutPayload::from(contents.to_vec());
        let options = PutOptions::from(PutMode::Create);
        match self.shared.wait(self.shared.store.put_opts(&at, payload, options)) {
            Ok(_) => {}
            // A request that was repeated meets its own object.
            Err(StoreError::AlreadyExists { .. } | StoreError::Precondition { .. }) => {
                return Ok(self.object(&at)?.as_deref() == Some(contents));
            }
            Err(error) => return Err(unavailable(&error)),
        }
        for old in versions.iter().filter(|version| **version + VERSIONS_KEPT < expected) {
            // What is left is removed the next time.
            let _ = self.shared.wait(self.shared.store.delete(&version_path(name, *old)));
        }
        Ok(true)
    }

    fn announce(&self, member: &str, contents: &[u8]) -> Result<()> {
        let at = ObjectPath::from(format!("members/{member}"));
        let payload = PutPayload::from(contents.to_vec());
        let put = self.shared.wait(self.shared.store.put(&at, payload));
        put.map(|_| ()).map_err(|e| unavailable(&e))
    }

    fn announcements(&self) -> Result<Vec<(String, Vec<u8>)>> {
        let folder = ObjectPath::from("members");
        let listed = self.shared.wait(self.shared.store.list_with_delimiter(Some(&folder)));
        // All at once: whoever waits for members waits for this.
        let asked = listed
            .map_err(|e| unavailable(&e))?
            .objects
            .into_iter()
            .filter_map(|at| {
                let name = at.location.filename()?.to_owned();
                let said = object(self.shared.store.clone(), at.location);
                Some((name, self.shared.runtime.spawn(said)))
            });
        let mut found = Vec::new();
        for (name, said) in asked.collect::<Vec<_>>() {
            if let Some(said) = self.shared.wait(said).map_err(|e| unavailable(&e))?? {
                found.push((name, said));
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    fn upload(&self, name: &str, from: &Path) -> Result<()> {
        let local = |e: std::io::Error| LogError::Damaged(format!("{}: {e}", from.display()));
        let mut file = File::open(from).map_err(local)?;
        let at = ObjectPath::from(format!("files/{name}"));
        let upload = self.shared.wait(self.shared.files.put_multipart(&at));
        let mut upload = WriteMultipart::new_with_chunk_size(upload.map_err(|e| unavailable(&e))?, PIECE);
        let mut piece = vec![0; PIECE];
        loop {
            let length = file.read(&mut piece).map_err(local)?;
            if length == 0 {
                break;
            }
            self.shared.wait(async {
                upload.wait_for_capacity(4).await.map_err(|e| unavailable(&e))?;
                upload.write(&piece[..length]);
                Ok::<_, LogError>(())
            })?;
        }
        let finished = self.shared.wait(upload.finish());
        finished.map(|_| ()).map_err(|e| unavailable(&e))
    }

    fn download(&self, name: &str, to: &Path) -> Result<()> {
        let local = |e: std::io::Error| LogError::Damaged(format!("{}: {e}", to.display()));
        let at = ObjectPath::from(format!("files/{name}"));
        let found = self
            .shared
            .wait(self.shared.files.head(&at))
            .map_err(|e| unavailable(&e))?;
        let mut file = File::create_new(to).map_err(local)?;
        let mut offset = 0;
        while offset < found.size {
            let end = (offset + PIECE as u64).min(found.size);
            let piece = self.shared.wait(self.shared.files.get_range(&at, offset..end));
            file.write_all(&piece.map_err(|e| unavailable(&e))?).map_err(local)?;
            offset = end;
        }
        file.sync_all().map_err(local)
    }

    fn remove(&self, name: &str) -> Result<()> {
        let at = ObjectPath::from(format!("files/{name}"));
        match self.shared.wait(self.shared.files.delete(&at)) {
            Ok(()) | Err(StoreError::NotFound { .. }) => Ok(()),
            Err(error) => Err(unavailable(&error)),
        }
    }

    fn put(&self, name: &str, contents: &[u8]) -> Result<()> {
        let at = ObjectPath::from(format!("files/{name}"));
        let payload = PutPayload::from(contents.to_vec());
        let put = self.shared.wait(self.shared.files.put(&at, payload));
        put.map(|_| ()).map_err(|e| unavailable(&e))
    }

    fn contents(&self, name: &str) -> Result<Vec<u8>> {
        let found = self.shared.wait(object(
            self.shared.files.clone(),
            ObjectPath::from(format!("files/{name}")),
        ))?;
        found.ok_or_else(|| LogError::Damaged(format!("{name} is missing")))
    }

    fn get(&self, name: &str, part: Range<u64>) -> Result<Vec<u8>> {
        let at = ObjectPath::from(format!("files/{name}"));
        let found = self.shared.wait(self.shared.files.get_range(&at, part));
        Ok(found.map_err(|e| unavailable(&e))?.to_vec())
    }

    fn files(&self, folder: &str) -> Result<Vec<String>> {
        let mut folders = vec![ObjectPath::from(format!("files/{folder}"))];
        let mut names = Vec::new();
        while let Some(below) = folders.pop() {
            let listed = self.shared.wait(self.shared.files.list_with_delimiter(Some(&below)));
            let listed = listed.map_err(|e| unavailable(&e))?;
            let name = |at: &ObjectPath| at.as_ref().strip_prefix("files/").map(str::to_owned);
            names.extend(listed.objects.iter().filter_map(|object| name(&object.location)));
            folders.extend(listed.common_prefixes);
        }
        names.sort_unstable();
        Ok(names)
    }

    fn address(&self) -> &str {
        &self.shared.address
    }

    fn elsewhere(&self, address: &str) -> Result<Arc<dyn Log>> {
        Ok(Arc::new(Self::open(address)?))
    }
}

/// The time of the last entry; 0 for an empty log.
async fn last_tick(db: &Db) -> Result<i64> {
    let options = scan_options().with_order(IterationOrder::Descending);
    let rows = db.scan_with_options::<std::ops::RangeFull>(.., &options).await;
    let last = rows.map_err(|e| of_slate(&e))?.next().await.map_err(|e| of_slate(&e))?;
    Ok(last.map_or(0, |row| row.create_ts))
}

fn version_path(name: &str, version: Version) -> ObjectPath {
    ObjectPath::from(format!("records/{name}/{version:020}"))
}

struct SlateWriter {
    db: Db,
    epoch: u64,
    ticks: Arc<Ticks>,
    /// Since files were put together last.
    appends: u32,
    gathering: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
}

impl SlateWriter {
    /// Puts the files of appends together now and then. Nobody waits for it.
    fn gather(&mut self) {
        self.appends += 1;
        let is_under_way = self.gathering.as_ref().is_some_and(|work| !work.is_finished());
        if self.appends < APPENDS_MAX || is_under_way {
            return;
        }
        self.appends = 0;
        let db = self.db.clone();
        self.gathering = Some(self.shared.runtime.spawn(async move {
            let flush_type = FlushType::MemTable;
            if let Err(error) = db.flush_with_options(FlushOptions { flush_type }).await {
                tracing::warn!(why = whole(&error), "the files of the log are not put together");
            }
        }));
    }
}

impl Writer for SlateWriter {
    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn last(&mut self) -> Result<u64> {
        self.shared.wait(async {
            let options = scan_options().with_order(IterationOrder::Descending);
            let rows = self.db.scan_with_options::<std::ops::RangeFull>(.., &options).await;
            let last = take(rows.map_err(|e| of_slate(&e))?, 1).await?;
            Ok(last.first().map_or(0, |entry| entry.seq))
        })
    }

    fn append(&mut self, entries: &[Entry]) -> Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        let mut batch = WriteBatch::new();
        for Entry { seq, frame } in entries {
            batch.put_bytes(Bytes::copy_from_slice(&key(*seq)), Bytes::copy_from_slice(frame));
        }
        let is_late = |error: &Error| error.to_string().contains("invalid clock tick");
        self.shared.wait(async {
            let written = match self.db.write(batch).await {
                // What came after the last entry had a later time, and is no entry any more.
                Err(error) if is_late(&error) => {
                    self.ticks
                        .begin_at(self.ticks.now().timestamp_millis().saturating_add(LEAP_MS));
                    return Err(of_slate(&error));
                }
                written => written.map_err(|e| of_slate(&e))?,
            };
            let flush = FlushOptions {
                flush_type: FlushType::Wal,
            };
            self.db.flush_with_options(flush).await.map_err(|e| of_slate(&e))?;
            written.await_durable().await.map_err(|e| of_slate(&e))
        })?;
        self.gather();
        Ok(())
    }

    fn read(&mut self, after: u64, bytes_max: usize) -> Result<Vec<Entry>> {
        self.shared.wait(async {
            let rows = self.db.scan_with_options(key(after + 1).., &scan_options()).await;
            in_order(after, take(rows.map_err(|e| of_slate(&e))?, bytes_max.max(1)).await?)
        })
    }

    fn trim(&mut self, below: u64) -> Result<()> {
        const AT_ONCE: u64 = 10_000;
        self.shared.wait(async {
            // Numbers follow each other, so what goes need not be read.
            let options = ScanOptions::default().with_durability_filter(DurabilityLevel::Remote);
            let rows = self.db.scan_with_options(..key(below), &options).await;
            let first = take(rows.map_err(|e| of_slate(&e))?, 1).await?;
            let mut first = first.first().map_or(below, |first| first.seq);
            while first < below {
                let end = below.min(first + AT_ONCE);
                let mut batch = WriteBatch::new();
                (first..end).for_each(|seq| batch.delete(key(seq)));
                self.db.write(batch).await.map_err(|e| of_slate(&e))?;
                self.db.flush().await.map_err(|e| of_slate(&e))?;
                first = end;
            }
            Ok(())
        })
    }
}

impl Drop for SlateWriter {
    fn drop(&mut self) {
        // Whoever is fenced has nothing to close.
        let _ = self.shared.wait(self.db.close());
    }
}

/// Checks that entries read behind `after` follow it.
fn in_order(after: u64, entries: Vec<Entry>) -> Result<Vec<Entry>> {
    match entries.first() {
        Some(first) if first.seq > after + 1 => Err(LogError::Trimmed {
            wanted: after + 1,
            first: first.seq,
        }),
        _ => Ok(entries),
    }
}

/// Reads what is far behind from a view of the whole log, and what is near the end from the files that the writer adds for each
/// append, in their order.
struct SlateReader {
    wal: WalReader,
    place: Place,
    shared: Arc<Shared>,
}

enum Place {
    Unknown,
    /// In a view of the log, which has all files before that number.
    View {
        view: Box<DbReader>,
        next_file: u64,
    },
    /// Before a file that the writer may add.
    File {
        next: u64,
        /// So many are asked for together: more and more of them while all are there.
        ahead: u64,
        empty_looks: u32,
    },
}

impl Reader for SlateReader {
    fn entry(&mut self, seq: u64) -> Result<Option<Entry>> {
        let shared = self.shared.clone();
        shared.wait(async {
            if let Place::Unknown | Place::File { .. } = self.place {
                self.look().await?;
            }
            let Place::View { view, .. } = &self.place else {
                return Ok(None);
            };
            let rows = view.scan_with_options(key(seq)..=key(seq), &scan_options()).await;
            Ok(take(rows.map_err(|e| of_slate(&e))?, 1).await?.pop())
        })
    }

    fn read(&mut self, after: u64, bytes_max: usize) -> Result<Vec<Entry>> {
        let shared = self.shared.clone();
        shared.wait(self.read_on(after, bytes_max))
    }
}

impl SlateReader {
    async fn read_on(&mut self, after: u64, bytes_max: usize) -> Result<Vec<Entry>> {
        if let Place::Unknown = self.place {
            self.look().await?;
        }
        if let Place::View { view, next_file } = &self.place {
            let rows = view.scan_with_options(key(after + 1).., &scan_options()).await;
            let entries = in_order(after, take(rows.map_err(|e| of_slate(&e))?, bytes_max.max(1)).await?)?;
            if !entries.is_empty() {
                return Ok(entries);
            }
            let next = *next_file;
            let _ = view.close().await;
            self.place = Place::File {
                next,
                ahead: 1,
                empty_looks: 0,
            };
        }
        self.read_files(after, bytes_max).await
    }

    /// Takes a view of the log, if there is one.
    async fn look(&mut self) -> Result<()> {
        self.place = match self.view().await? {
            Some((view, next_file)) => Place::View {
                view: Box::new(view),
                next_file,
            },
            None => Place::Unknown,
        };
        Ok(())
    }

    /// A view of the log as it is now, and the number of the first file that it may not have; `None` before the first writer.
    async fn view(&self) -> Result<Option<(DbReader, u64)>> {
        let files = self.wal.list(..).await.map_err(|e| of_slate(&e))?;
        let options = DbReaderOptions {
            manifest_poll_interval: Duration::from_secs(60),
            checkpoint_lifetime: Duration::from_secs(600),
            ..DbReaderOptions::default()
        };
        let view = DbReader::builder(LOG, self.shared.store.clone())
            .with_reader_mode(DbReaderMode::FollowLatest)
            .with_options(options)
            .with_db_cache_disabled()
            .build()
            .await;
        let view = match view {
            Ok(view) => view,
            Err(_) if files.is_empty() => return Ok(None),
            Err(error) => return Err(of_slate(&error)),
        };
        let next = files
            .last()
            .map_or(view.manifest().next_wal_sst_id(), |last| last.next_id());
        Ok(Some((view, next)))
    }

    async fn read_files(&mut self, after: u64, bytes_max: usize) -> Result<Vec<Entry>> {
        let (mut entries, mut bytes, mut upto) = (Vec::new(), 0, after);
        // What there is is told before the next files are asked for: whoever writes may be faster than this reader.
        while entries.is_empty() {
            let Place::File {
                next,
                ahead,
                empty_looks,
            } = &mut self.place
            else {
                break;
            };
            let first = *next;
            let files: Vec<_> = (first..first + *ahead)
                .map(|number| self.shared.runtime.spawn(contents(self.wal.get(number))))
                .collect();
            for file in files {
                let rows = match file.await.map_err(|e| unavailable(&e))? {
                    Ok(Some(rows)) => rows,
                    Err(error) if entries.is_empty() => return Err(error),
                    // Not there, or to be asked for again, behind what has been read.
                    Ok(None) | Err(_) => break,
                };
                for row in rows {
                    if row.seq <= upto {
                        continue;
                    }
                    if row.seq > upto + 1 {
                        // Some of it is not in the files any more.
                        self.place = Place::Unknown;
                        return Ok(entries);
                    }
                    (upto, bytes) = (row.seq, bytes + row.frame.len());
                    entries.push(row);
                }
                *next += 1;
                if bytes >= bytes_max {
                    break;
                }
            }
            if *next == first {
                *ahead = 1;
                *empty_looks += 1;
                if *empty_looks > EMPTY_LOOKS_MAX {
                    *empty_looks = 0;
                    let later = self.wal.list(first + 1..).await.map_err(|e| of_slate(&e))?;
                    if !later.is_empty() {
                        self.place = Place::Unknown;
                    }
                }
                break;
            }
            *ahead = match *next - first == *ahead {
                true => (*ahead * 2).min(AHEAD_MAX),
                false => 1,
            };
            *empty_looks = 0;
        }
        Ok(entries)
    }
}

/// The entries of a file of the log; `None` if it is not there yet, or not any more.
async fn contents(file: WalFile) -> Result<Option<Vec<Entry>>> {
    let Ok(mut rows) = file.iterator().await else {
        return Ok(None);
    };
    let mut entries = Vec::new();
    while let Some(row) = rows.next().await.map_err(|e| of_slate(&e))? {
        if let ValueDeletable::Value(frame) = &row.value {
            entries.push(entry(&row.key, frame)?);
        }
    }
    Ok(Some(entries))
}
