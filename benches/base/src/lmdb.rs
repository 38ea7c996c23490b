//! The base on LMDB through `heed`. Keys longer than its limit (511 bytes) are refused.
//!
//! heed has no cursor that is sought again; each seek makes a range, which opens an LMDB cursor.

use std::ops::Bound::{Excluded, Included, Unbounded};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use heed::types::Bytes;
use heed::{Database, Env, EnvOpenOptions, RoRange, RoRevRange, RoTxn, WithoutTls};
use nestor_storage::base::{
    ApplyStats, Base, BaseBytes, BaseCursor, BaseError, BaseSnapshot, ChangeSource, CheckReport, KeyRange, Result,
};

use crate::redb::failed;

type Rows = Database<Bytes, Bytes>;

pub struct LmdbBase {
    env: Env<WithoutTls>,
    rows: Rows,
    meta: Rows,
    file: PathBuf,
}

impl LmdbBase {
    pub fn open(dir: &Path) -> Result<LmdbBase> {
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.map_size(16 << 30).max_dbs(2);
        // SAFETY: nothing else opens this directory, and no one changes its files.
        let env = unsafe { options.open(dir) }.map_err(failed)?;
        let mut transaction = env.write_txn().map_err(failed)?;
        let rows = env.create_database(&mut transaction, Some("rows")).map_err(failed)?;
        let meta = env.create_database(&mut transaction, Some("meta")).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        Ok(LmdbBase {
            env,
            rows,
            meta,
            file: dir.join("data.mdb"),
        })
    }
}

impl Base for LmdbBase {
    fn snapshot(&self) -> Arc<dyn BaseSnapshot> {
        let transaction = self.env.clone().static_read_txn().expect("a read transaction");
        let meta = self
            .meta
            .get(&transaction, b"meta")
            .expect("readable")
            .unwrap_or_default()
            .to_vec();
        Arc::new(Snapshot {
            transaction,
            rows: self.rows,
            meta,
        })
    }

    fn apply(&self, deletions: &[KeyRange<'_>], changes: &mut dyn ChangeSource, meta: &[u8]) -> Result<ApplyStats> {
        let mut transaction = self.env.write_txn().map_err(failed)?;
        for range in deletions {
            let bounds = (Included(range.start), range.end.map_or(Unbounded, Excluded));
            self.rows.delete_range(&mut transaction, &bounds).map_err(failed)?;
        }
        while let Some(change) = changes.current() {
            let max = self.env.max_key_size();
            if change.key.len() > max {
                return Err(BaseError::TooLarge {
                    what: "key",
                    len: change.key.len(),
                    max,
                });
            }
            match change.value {
                Some(value) => self.rows.put(&mut transaction, change.key, value).map_err(failed)?,
                None => drop(self.rows.delete(&mut transaction, change.key).map_err(failed)?),
            }
            changes.advance();
        }
        self.meta.put(&mut transaction, b"meta", meta).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        Ok(ApplyStats::default())
    }

    fn file_bytes(&self) -> u64 {
        std::fs::metadata(&self.file).map_or(0, |file| file.len())
    }

    fn check(&self) -> Result<CheckReport> {
        Err(failed("not part of the measurement"))
    }
}

struct Snapshot {
    transaction: RoTxn<'static, WithoutTls>,
    rows: Rows,
    meta: Vec<u8>,
}

// SAFETY: LMDB's read transactions may be used from one thread at a time; this program has one.
unsafe impl Sync for Snapshot {}

impl BaseSnapshot for Snapshot {
    fn get(&self, key: &[u8]) -> Result<Option<BaseBytes>> {
        Ok(self
            .rows
            .get(&self.transaction, key)
            .map_err(failed)?
            .map(|value| value.to_vec().into()))
    }

    fn cursor(self: Arc<Self>) -> Box<dyn BaseCursor> {
        // SAFETY: the cursor's ranges and rows, which borrow from this, are dropped before the snapshot it owns.
        let snapshot: &'static Snapshot = unsafe { &*Arc::as_ptr(&self) };
        Box::new(Cursor {
            range: None,
            at: None,
            snapshot,
            _owned: self,
        })
    }

    fn meta(&self) -> &[u8] {
        &self.meta
    }

    fn entries(&self) -> u64 {
        self.rows.len(&self.transaction).unwrap_or(0)
    }

    fn rank(&self, key: &[u8]) -> Result<u64> {
        Ok(self
            .rows
            .range(&self.transaction, &(Unbounded, Excluded(key)))
            .map_err(failed)?
            .count() as u64)
    }
}

enum Rest {
    Forward(RoRange<'static, Bytes, Bytes>),
    Backward(RoRevRange<'static, Bytes, Bytes>),
}

struct Cursor {
    range: Option<Rest>,
    at: Option<(&'static [u8], &'static [u8])>,
    snapshot: &'static Snapshot,
    _owned: Arc<Snapshot>,
}

// SAFETY: as for the snapshot.
unsafe impl Send for Cursor {}

impl Cursor {
    fn step(&mut self) -> Result<bool> {
        self.at = match &mut self.range {
            Some(Rest::Forward(range)) => range.next().transpose().map_err(failed)?,
            Some(Rest::Backward(range)) => range.next().transpose().map_err(failed)?,
            None => None,
        };
        Ok(self.at.is_some())
    }

    fn go(&mut self, forward: bool) -> Result<bool> {
        let Some((key, _)) = self.at else { return Ok(false) };
        if matches!(self.range, Some(Rest::Forward(_))) != forward {
            if forward {
                self.seek(key)?
            } else {
                self.seek_back(key)?
            };
        }
        self.step()
    }
}

impl BaseCursor for Cursor {
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.range = None;
        let range = self
            .snapshot
            .rows
            .range(&self.snapshot.transaction, &(Included(key), Unbounded))
            .map_err(failed)?;
        self.range = Some(Rest::Forward(range));
        self.step()
    }

    fn seek_back(&mut self, key: &[u8]) -> Result<bool> {
        self.range = None;
        let range = self
            .snapshot
            .rows
            .rev_range(&self.snapshot.transaction, &(Unbounded, Included(key)))
            .map_err(failed)?;
        self.range = Some(Rest::Backward(range));
        self.step()
    }

    fn first(&mut self) -> Result<bool> {
        self.seek(&[0])
    }

    fn last(&mut self) -> Result<bool> {
        self.seek_back(&[0xff; 500])
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
        self.at.map_or(&[], |(key, _)| key)
    }

    fn value(&self) -> Result<&[u8]> {
        Ok(self.at.map_or(&[], |(_, value)| value))
    }

    fn value_bytes(&self) -> Result<BaseBytes> {
        Ok(self.value()?.to_vec().into())
    }

    fn value_len(&self) -> usize {
        self.at.map_or(0, |(_, value)| value.len())
    }
}
