//! Deleting measurements.

use super::{check_transaction, found, rewrite, series_of};
use crate::read;
use crate::statement::Statement;
use crate::write::groups::in_groups;
use crate::write::prepared::Prepared;
use crate::write::target::{self, Selection};
use crate::write::{Progress, Written};
use nestor_exec::write::Writer;
use nestor_exec::write::oplog::{Image, Retryable};
use nestor_model::{DocRef, Namespace, RawDocBuf, Result, TimeSeries, Value, ValueRef};
use nestor_planner::FindQuery;
use nestor_planner::timeseries::bucket_filter;
use nestor_query::env::OpContext;
use nestor_query::matcher::MatchExpr;
use nestor_query::sort::SortSpec;
use nestor_query::timeseries::{Bucket, Rows};
use nestor_storage::{Bytes, View};
use std::sync::Arc;

/// Deletes the selected measurements of the time-series collection at `ns`, or the first of them in the order of the selection.
///
/// Errors: 263 within a transaction, those of the filter and of the order.
pub fn run(
    statement: &Statement<'_>,
    ns: &Namespace,
    delete: &Prepared<'_>,
    op: &OpContext,
    progress: &mut Progress,
) -> Result<Written> {
    check_transaction(statement, "delete measurements of", ns)?;
    let read = statement.current_view();
    let Some((_, buckets)) = found(read.view(), ns)? else {
        return Ok(Written::default());
    };
    let series = series_of(&buckets)?.clone();
    drop(read);
    let selection = of_buckets(&delete.selection, &series);
    let filter = &*delete.selection.query.filter;
    if !delete.multi {
        let wanted = Wanted {
            buckets: &selection,
            filter,
            sort: sort_of(&delete.selection, op)?,
            image: delete.images,
            retryable: delete.retryable,
        };
        return one(statement, &buckets.ns, &wanted, op, progress);
    }
    let written = in_groups(statement, &buckets.ns, &selection, op, progress, |writer, met| {
        let mut written = Written::default();
        while let Some((record, now)) = met.next(writer)? {
            statement.interrupt.check()?;
            written.matched += take(writer, record, &now, &series, &Taken::All(filter))?.0;
        }
        Ok(written)
    })?;
    Ok(written.unwrap_or_default())
}

/// The selection of buckets that may have selected measurements.
pub(super) fn of_buckets<'a>(selection: &Selection<'_>, series: &TimeSeries) -> Selection<'a> {
    let mut query = FindQuery::all(Arc::new(bucket_filter(&selection.query.filter, series)));
    query.hint = selection.query.hint.clone();
    query.natural = selection.query.natural;
    query.collation = selection.query.collation.clone();
    Selection {
        query,
        may_insert: false,
        words: None,
    }
}

/// Of which buckets which measurement is taken, and for whom.
struct Wanted<'a> {
    buckets: &'a Selection<'a>,
    filter: &'a MatchExpr,
    sort: Option<Arc<SortSpec>>,
    /// Whether the measurement is returned.
    image: bool,
    /// Which statement of a retryable write takes it.
    retryable: Option<Retryable>,
}

/// The order of measurements. That of a selection of one `_id` was left out, but several measurements may have it.
fn sort_of(selection: &Selection<'_>, op: &OpContext) -> Result<Option<Arc<SortSpec>>> {
    let sort = selection
        .words
        .and_then(|words| words.sort)
        .filter(|sort| !sort.is_empty());
    match (&selection.query.sort, sort) {
        (None, Some(sort)) => Ok(Some(Arc::new(
            SortSpec::parse(DocRef::Raw(sort))?.under(op.collator.as_ref()),
        ))),
        (sort, _) => Ok(sort.clone()),
    }
}

fn one(
    statement: &Statement<'_>,
    buckets: &Namespace,
    wanted: &Wanted<'_>,
    op: &OpContext,
    progress: &mut Progress,
) -> Result<Written> {
    statement.atomically(progress, |ws| {
        let Some(collection) = ws.catalog().get(buckets).cloned() else {
            return Ok(Written::default());
        };
        let series = series_of(&collection)?.clone();
        let mut root = wanted.buckets.plan(statement, &collection, None)?;
        statement.note_plan(&*root);
        let mut found: Option<First> = None;
        {
            let mut batch = read::batch(statement, ws, op, true);
            while let Some((record, bytes)) = target::next(&mut root, &mut batch)? {
                statement.interrupt.check()?;
                let before = found.as_ref().map(|found| &*found.key);
                if let Some((row, key)) = first(&bytes, &series, wanted, before, op)? {
                    found = Some(First {
                        record,
                        bytes,
                        row,
                        key,
                    });
                    if wanted.sort.is_none() {
                        break;
                    }
                }
            }
        }
        statement.observe(&*root);
        let Some(found) = found else {
            return Ok(Written::default());
        };
        let mut writer = Writer::new(ws, collection, op, statement.origin(&buckets.db))?;
        let taken = Taken::Row(found.row, wanted.retryable);
        let (matched, old) = take(&mut writer, &found.record, &found.bytes, &series, &taken)?;
        statement.observe_keys(&writer);
        Ok(Written {
            matched,
            old: old.filter(|_| wanted.image),
            ..Written::default()
        })
    })
}

/// The first measurement of those seen.
struct First {
    /// The record key of its bucket, and the bucket.
    record: Bytes,
    bytes: Bytes,
    row: usize,
    /// By what it is sorted; nothing where there is no order.
    key: Vec<Value>,
}

/// The row and key of the first measurement of a bucket that satisfies the filter and comes before the key `before`, if there is one.
fn first(
    bytes: &Bytes,
    series: &TimeSeries,
    wanted: &Wanted<'_>,
    before: Option<&[Value]>,
    op: &OpContext,
) -> Result<Option<(usize, Vec<Value>)>> {
    let bucket = Bucket::decode(bytes.document(), series)?;
    let mut found: Option<(usize, Vec<Value>)> = None;
    for row in 0..bucket.len {
        let measurement = bucket.row(row, series);
        if !wanted.filter.matches(measurement.as_raw().as_doc(), op)? {
            continue;
        }
        let Some(sort) = &wanted.sort else {
            return Ok(Some((row, Vec::new())));
        };
        let mut key = Vec::new();
        sort.key(measurement.as_raw().as_doc(), None, &mut key)?;
        let key: Vec<Value> = key.into_iter().map(ValueRef::to_value).collect();
        let least = found.as_ref().map(|(_, key)| &**key).or(before);
        if least.is_none_or(|least| sort.compare_owned(&key, least).is_lt()) {
            found = Some((row, key));
        }
    }
    Ok(found)
}

/// What is taken out of a bucket.
enum Taken<'a> {
    /// All measurements that satisfy a filter.
    All(&'a MatchExpr),
    /// That of a row, by a statement of a retryable write.
    Row(usize, Option<Retryable>),
}

/// Takes measurements out of a bucket: how many those were, and the last of them.
fn take(
    writer: &mut Writer<'_>,
    record: &Bytes,
    bytes: &Bytes,
    series: &TimeSeries,
    which: &Taken<'_>,
) -> Result<(i64, Option<RawDocBuf>)> {
    let bucket = Bucket::decode(bytes.document(), series)?;
    let (mut keeps, mut taken, mut last) = (Vec::with_capacity(bucket.len), 0, None);
    for row in 0..bucket.len {
        let goes = match which {
            Taken::Row(wanted, _) if row != *wanted => None,
            Taken::Row(..) => Some(bucket.row(row, series)),
            Taken::All(filter) => {
                let measurement = bucket.row(row, series);
                let goes = filter.matches(measurement.as_raw().as_doc(), writer.op)?;
                goes.then_some(measurement)
            }
        };
        keeps.push(goes.is_none());
        if goes.is_some() {
            taken += 1;
            last = goes;
        }
    }
    let retryable = match which {
        Taken::All(_) => None,
        Taken::Row(_, retryable) => *retryable,
    };
    // The image that findAndModify returns is the measurement; that of the writer would be its bucket.
    let statement = retryable.filter(|_| taken > 0);
    if let (Some(statement), Some(origin), Some(last)) = (statement, &writer.origin, &last)
        && statement.image != Image::None
    {
        origin.log_image(
            writer.ws,
            &writer.collection,
            last.as_raw(),
            statement,
            writer.op.now_ms,
        )?;
    }
    let statement = statement.map(|statement| Retryable {
        image: Image::None,
        ..statement
    });
    if taken == bucket.len {
        writer.delete(record, bytes.document(), statement)?;
    } else if taken > 0 {
        let mut rows = Rows::default();
        rows.extend(&bucket, |row| keeps[row]);
        let meta = bucket.meta.as_ref().map(|meta| meta.as_ref());
        let new = rows.into_bucket(series, bucket.id, meta, bucket.begins_ms);
        rewrite(writer, record, bytes, new, statement.into())?;
    }
    Ok((taken as i64, last))
}
