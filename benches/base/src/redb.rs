//! The base on `redb`, as it would be used: durable commits with `quick_repair`, so that reopening after a crash does not
//! walk the file.

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::sync::Arc;

use nestor_storage::base::{
    ApplyStats, Base, BaseBytes, BaseCursor, BaseError, BaseSnapshot, ChangeSource, CheckReport, KeyRange, Result,
};
use redb::{AccessGuard, Database, Range, ReadOnlyTable, ReadableDatabase, ReadableTableMetadata, TableDefinition};

const ROWS: TableDefinition<'static, &'static [u8], &'static [u8]> = TableDefinition::new("rows");
const META: TableDefinition<'static, (), &'static [u8]> = TableDefinition::new("meta");

type Row = (AccessGuard<'static, &'static [u8]>, AccessGuard<'static, &'static [u8]>);

pub fn failed(error: impl Display) -> BaseError {
    BaseError::Io {
        file: Path::new("base").into(),
        operation: "use",
        source: io::Error::other(error.to_string()),
    }
}

pub struct RedbBase {
    database: Database,
    file: std::path::PathBuf,
}

impl RedbBase {
    pub fn open(path: &Path, cache_bytes: usize) -> Result<RedbBase> {
        let database = Database::builder()
            .set_cache_size(cache_bytes)
            .create(path)
            .map_err(failed)?;
        let base = RedbBase {
            database,
            file: path.into(),
        };
        base.apply(&[], &mut nestor_storage::base::changes([]), b"")?;
        Ok(base)
    }
}

impl Base for RedbBase {
    fn snapshot(&self) -> Arc<dyn BaseSnapshot> {
        let transaction = self.database.begin_read().expect("a read transaction");
        let meta = transaction.open_table(META).expect("made at open");
        Arc::new(Snapshot {
            rows: transaction.open_table(ROWS).expect("made at open"),
            meta: meta
                .get(())
                .expect("readable")
                .map(|meta| meta.value().to_vec())
                .unwrap_or_default(),
        })
    }

    fn apply(&self, deletions: &[KeyRange<'_>], changes: &mut dyn ChangeSource, meta: &[u8]) -> Result<ApplyStats> {
        let mut transaction = self.database.begin_write().map_err(failed)?;
        transaction.set_quick_repair(true);
        let mut stats = ApplyStats::default();
        {
            let mut rows = transaction.open_table(ROWS).map_err(failed)?;
            for range in deletions {
                match range.end {
                    Some(end) => rows.retain_in(range.start..end, |_, _| false).map_err(failed)?,
                    None => rows.retain_in(range.start.., |_, _| false).map_err(failed)?,
                };
            }
            while let Some(change) = changes.current() {
                let was_there = match change.value {
                    Some(value) => rows.insert(change.key, value).map_err(failed)?.is_some(),
                    None => rows.remove(change.key).map_err(failed)?.is_some(),
                };
                stats.inserted += u64::from(!was_there && change.value.is_some());
                stats.replaced += u64::from(was_there && change.value.is_some());
                stats.removed += u64::from(was_there && change.value.is_none());
                changes.advance();
            }
            let mut table = transaction.open_table(META).map_err(failed)?;
            table.insert((), meta).map_err(failed)?;
        }
        transaction.commit().map_err(failed)?;
        Ok(stats)
    }

    fn file_bytes(&self) -> u64 {
        std::fs::metadata(&self.file).map_or(0, |file| file.len())
    }

    fn check(&self) -> Result<CheckReport> {
        Err(failed("not part of the measurement"))
    }
}

struct Snapshot {
    rows: ReadOnlyTable<&'static [u8], &'static [u8]>,
    meta: Vec<u8>,
}

impl BaseSnapshot for Snapshot {
    fn get(&self, key: &[u8]) -> Result<Option<BaseBytes>> {
        Ok(self
            .rows
            .get(key)
            .map_err(failed)?
            .map(|value| value.value().to_vec().into()))
    }

    fn cursor(self: Arc<Self>) -> Box<dyn BaseCursor> {
        Box::new(Cursor {
            range: None,
            forward: true,
            at: None,
            snapshot: self,
        })
    }

    fn meta(&self) -> &[u8] {
        &self.meta
    }

    fn entries(&self) -> u64 {
        self.rows.len().unwrap_or(0)
    }

    fn rank(&self, key: &[u8]) -> Result<u64> {
        Ok(self.rows.range(..key).map_err(failed)?.count() as u64)
    }
}

struct Cursor {
    range: Option<Range<'static, &'static [u8], &'static [u8]>>,
    forward: bool,
    at: Option<Row>,
    snapshot: Arc<Snapshot>,
}

impl Cursor {
    fn start(&mut self, range: Range<'static, &'static [u8], &'static [u8]>, forward: bool) -> Result<bool> {
        (self.range, self.forward) = (Some(range), forward);
        self.step()
    }

    fn step(&mut self) -> Result<bool> {
        let Some(range) = &mut self.range else { return Ok(false) };
        let row = if self.forward { range.next() } else { range.next_back() };
        self.at = row.transpose().map_err(failed)?;
        Ok(self.at.is_some())
    }

    /// redb's ranges have one direction; turning round means a new one.
    fn go(&mut self, forward: bool) -> Result<bool> {
        if self.forward == forward {
            return if self.at.is_some() { self.step() } else { Ok(false) };
        }
        let Some((key, _)) = self.at.take() else {
            return Ok(false);
        };
        let key = key.value().to_vec();
        if forward {
            self.seek(&key)?
        } else {
            self.seek_back(&key)?
        };
        self.step()
    }
}

impl BaseCursor for Cursor {
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        let range = self.snapshot.rows.range(key..).map_err(failed)?;
        self.start(range, true)
    }

    fn seek_back(&mut self, key: &[u8]) -> Result<bool> {
        let range = self.snapshot.rows.range(..=key).map_err(failed)?;
        self.start(range, false)
    }

    fn first(&mut self) -> Result<bool> {
        self.seek(&[])
    }

    fn last(&mut self) -> Result<bool> {
        let range = self.snapshot.rows.range::<&[u8]>(..).map_err(failed)?;
        self.start(range, false)
    }

    fn next(&mut self) -> Result<bool> {
        self.go(true)
    }

    fn prev(&mut self) -> Result<bool> {
        self.go(false)
    }

    fn is_valid(&self) -> bool {
        self.at.is_some()
    }

    fn key(&self) -> &[u8] {
        self.at.as_ref().map_or(&[], |(key, _)| key.value())
    }

    fn value(&self) -> Result<&[u8]> {
        Ok(self.at.as_ref().map_or(&[], |(_, value)| value.value()))
    }

    fn value_bytes(&self) -> Result<BaseBytes> {
        Ok(self.value()?.to_vec().into())
    }

    fn value_len(&self) -> usize {
        self.value().map_or(0, <[u8]>::len)
    }
}
