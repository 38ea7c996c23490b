//! Inserting measurements.

use super::{check_transaction, rewrite, series_of};
use crate::statement::Statement;
use crate::write::Progress;
use nestor_exec::keys::id_key;
use nestor_exec::write::Writer;
use nestor_exec::write::oplog::Statements;
use nestor_model::{Namespace, ObjectId, RawDoc, RawWriter, Result, TimeSeries, ValueRef, bail, raw};
use nestor_query::env::OpContext;
use nestor_query::timeseries::bucket::{MEASUREMENTS_MAX, has_room};
use nestor_query::timeseries::{Bucket, Header, Rows, bucket_id};
use nestor_storage::{Bytes, View, WriteSet};
use std::collections::HashMap;

/// A measurement in stored form, and which statement of a retryable write inserts it.
pub type Measurement<'d> = (RawDoc<'d>, Option<i32>);

/// A bucket that measurements go into.
struct Chosen<'d> {
    id: ObjectId,
    begins_ms: i64,
    meta: Option<ValueRef<'d>>,
    /// The bucket as it is stored, if it is not new.
    stored: Option<Stored>,
    /// Which measurements, and what they and those that are stored add up to.
    docs: Vec<RawDoc<'d>>,
    /// The `stmtId`s of those measurements, if the write is retryable.
    stmt_ids: Vec<i32>,
    rows: usize,
    bytes: usize,
}

/// A bucket that is there already.
struct Stored {
    record: Bytes,
    bytes: Bytes,
}

impl Chosen<'_> {
    fn takes(&self, time_ms: i64, bytes: usize, series: &TimeSeries) -> bool {
        let ends_ms = self.begins_ms.saturating_add(series.span_secs * 1000);
        let is_of_time = (self.begins_ms..ends_ms).contains(&time_ms);
        is_of_time && has_room(self.rows, self.bytes + bytes)
    }

    fn is_full(&self) -> bool {
        self.rows >= MEASUREMENTS_MAX
    }
}

/// Whether a document is a measurement of the series: others fail, and are better not in a group with measurements.
pub fn is_measurement(doc: RawDoc<'_>, series: &TimeSeries) -> bool {
    matches!(doc.get(&series.time_field), Some(ValueRef::DateTime(_)))
}

/// Inserts measurements into the time-series collection at `ns`, all or none.
///
/// Errors: 2 for a measurement without a date, 10334 for one that is too large, 263 within a transaction.
pub fn group(
    statement: &Statement<'_>,
    ns: &Namespace,
    op: &OpContext,
    docs: &[Measurement<'_>],
    progress: &mut Progress,
) -> Result<()> {
    check_transaction(statement, "insert into", ns)?;
    let mut written = Vec::new();
    let mut buckets_id = None;
    statement.atomically(progress, |ws| {
        let Some((_, buckets)) = super::found(ws, ns)? else {
            bail!(NamespaceNotFound, "the time-series collection {ns} is gone");
        };
        let series = series_of(&buckets)?.clone();
        buckets_id = Some(buckets.id);
        let mut sources: HashMap<Vec<u8>, Vec<Measured<'_>>> = HashMap::new();
        let mut source = Vec::new();
        for doc in docs {
            let measured = Measured::read(*doc, &series)?;
            source = source_of(measured.meta, source);
            match sources.get_mut(&source) {
                Some(of_source) => of_source.push(measured),
                None => drop(sources.insert(source.clone(), vec![measured])),
            }
        }
        let mut by_source = Vec::with_capacity(sources.len());
        for (source, mut measured) in sources {
            statement.interrupt.check()?;
            measured.sort_by_key(|measured| measured.time_ms);
            let known = statement.database.open_buckets.of(buckets.id, &source);
            let known = known
                .into_iter()
                .filter_map(|id| stored(ws, &buckets, id, &source, &series).transpose());
            let mut chosen: Vec<Chosen<'_>> = known.collect::<Result<_>>()?;
            for measured in measured {
                put(measured, &mut chosen, &series, || statement.database.random());
            }
            by_source.push((source, chosen));
        }
        written.clear();
        let origin = statement.origin(&ns.db);
        let mut writer = Writer::new(ws, buckets, op, origin)?;
        for (source, chosen) in by_source {
            for bucket in chosen.into_iter().filter(|bucket| !bucket.docs.is_empty()) {
                statement.interrupt.check()?;
                written.push((source.clone(), bucket.id, bucket.is_full()));
                write(&mut writer, &bucket, &series)?;
            }
        }
        statement.observe_keys(&writer);
        Ok(())
    })?;
    if let Some(buckets) = buckets_id {
        for (source, id, is_full) in written {
            let open = &statement.database.open_buckets;
            match is_full {
                true => open.forget(buckets, source, id),
                false => open.note(buckets, source, id),
            }
        }
    }
    Ok(())
}

fn write(writer: &mut Writer<'_>, bucket: &Chosen<'_>, series: &TimeSeries) -> Result<()> {
    let statements = match bucket.stmt_ids.as_slice() {
        [] => Statements::None,
        stmt_ids => Statements::Several(stmt_ids),
    };
    let mut added = Rows::default();
    bucket.docs.iter().for_each(|doc| added.push(*doc, series));
    let Some(Stored { record, bytes }) = &bucket.stored else {
        let new = added.into_bucket(series, bucket.id, bucket.meta, bucket.begins_ms);
        if new.as_raw().len() > raw::DOCUMENT_BYTES_MAX {
            bail!(
                BSONObjectTooLarge,
                "the bucket of a measurement is larger than {}: it has large values three times",
                raw::DOCUMENT_BYTES_MAX
            );
        }
        return writer.insert_by(new, statements).map(drop);
    };
    let new = match added.appended_to(bytes.document(), series)? {
        Some(new) => new,
        None => {
            let stored = Bucket::decode(bytes.document(), series)?;
            let mut rows = Rows::default();
            rows.extend(&stored, |_| true);
            bucket.docs.iter().for_each(|doc| rows.push(*doc, series));
            let meta = stored.meta.as_ref().map(|meta| meta.as_ref());
            rows.into_bucket(series, bucket.id, meta, bucket.begins_ms)
        }
    };
    rewrite(writer, record, bytes, new, statements)
}

/// A bucket that was written before, if it is still there, of this source.
fn stored<'d>(
    ws: &WriteSet,
    buckets: &nestor_storage::Collection,
    id: ObjectId,
    source: &[u8],
    series: &TimeSeries,
) -> Result<Option<Chosen<'d>>> {
    let record = id_key(ValueRef::ObjectId(id), None);
    let Some(bytes) = ws.get(buckets.records, &record)? else {
        return Ok(None);
    };
    let header = Header::parse(bytes.document())?;
    if source_of(header.meta, Vec::new()) != source {
        return Ok(None);
    }
    let measured_bytes = match header.bytes {
        Some(bytes) => bytes,
        None => Bucket::decode(bytes.document(), series)?.measurement_bytes(),
    };
    Ok(Some(Chosen {
        id,
        begins_ms: header.begins_ms(series)?,
        meta: None,
        rows: header.len,
        bytes: measured_bytes,
        stored: Some(Stored { record, bytes }),
        docs: Vec::new(),
        stmt_ids: Vec::new(),
    }))
}

/// What tells sources apart, written into the memory of another that is of no more use.
fn source_of(meta: Option<ValueRef<'_>>, mut memory: Vec<u8>) -> Vec<u8> {
    memory.clear();
    let mut out = RawWriter::onto(memory);
    if let Some(meta) = meta {
        out.append("", meta);
    }
    out.finish()
}

/// A measurement, with what decides on its bucket.
struct Measured<'d> {
    doc: RawDoc<'d>,
    stmt_id: Option<i32>,
    time_ms: i64,
    meta: Option<ValueRef<'d>>,
}

impl<'d> Measured<'d> {
    fn read((doc, stmt_id): Measurement<'d>, series: &TimeSeries) -> Result<Self> {
        let (mut time, mut meta) = (None, None);
        for (name, value) in doc.iter() {
            if name == series.time_field && time.is_none() {
                time = Some(value);
            } else if series.source_field() == Some(name) && meta.is_none() {
                meta = Some(value);
            }
        }
        match time {
            Some(ValueRef::DateTime(time_ms)) => Ok(Self {
                doc,
                stmt_id,
                time_ms,
                meta,
            }),
            _ => bail!(
                BadValue,
                "'{}' must be present and contain a valid BSON UTC datetime value",
                series.time_field
            ),
        }
    }
}

/// Chooses a bucket of its source for a measurement, a new one if none takes it.
fn put<'d>(measured: Measured<'d>, chosen: &mut Vec<Chosen<'d>>, series: &TimeSeries, random: impl Fn() -> u64) {
    let Measured {
        doc,
        stmt_id,
        time_ms,
        meta,
    } = measured;
    let found = chosen
        .iter()
        .rposition(|bucket| bucket.takes(time_ms, doc.len(), series));
    let at = found.unwrap_or_else(|| {
        let begins_ms = series.round(time_ms);
        chosen.push(Chosen {
            id: bucket_id(begins_ms, random()),
            begins_ms,
            meta,
            stored: None,
            docs: Vec::new(),
            stmt_ids: Vec::new(),
            rows: 0,
            bytes: 0,
        });
        chosen.len() - 1
    });
    let bucket = &mut chosen[at];
    bucket.rows += 1;
    bucket.bytes += doc.len();
    bucket.docs.push(doc);
    bucket.stmt_ids.extend(stmt_id);
}
