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
use nestor_model::{Namespace, RawDocBuf, Result, TimeSeries, bail};
use nestor_planner::FindQuery;
use nestor_planner::timeseries::bucket_filter;
use nestor_query::env::OpContext;
use nestor_query::matcher::MatchExpr;
use nestor_query::timeseries::{Bucket, Rows};
use nestor_storage::{Bytes, View};
use std::sync::Arc;

/// Deletes the selected measurements of the time-series collection at `ns`, or the first of them.
///
/// Errors: 72 for an order, 263 within a transaction, those of the filter.
pub fn run(
    statement: &Statement<'_>,
    ns: &Namespace,
    delete: &Prepared<'_>,
    op: &OpContext,
    progress: &mut Progress,
) -> Result<Written> {
    check_transaction(statement, "delete measurements of", ns)?;
    if delete.selection.query.sort.is_some() {
        bail!(
            InvalidOptions,
            "Cannot perform a delete with a sort on a time-series collection: {ns}"
        );
    }
    let read = statement.current_view();
    let Some((_, buckets)) = found(read.view(), ns)? else {
        return Ok(Written::default());
    };
    let series = series_of(&buckets)?.clone();
    drop(read);
    let selection = of_buckets(&delete.selection, &series);
    let filter = &*delete.selection.query.filter;
    if !delete.multi {
        return one(
            statement,
            &buckets.ns,
            (&selection, filter),
            (op, delete.images, delete.retryable),
            progress,
        );
    }
    let written = in_groups(statement, &buckets.ns, &selection, op, progress, |writer, met| {
        let mut written = Written::default();
        while let Some((record, now)) = met.next(writer)? {
            statement.interrupt.check()?;
            written.matched += take(writer, record, &now, &series, filter, &Taken::ALL)?.0;
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

fn one(
    statement: &Statement<'_>,
    buckets: &Namespace,
    (selection, filter): (&Selection<'_>, &MatchExpr),
    (op, wants_image, retryable): (&OpContext, bool, Option<Retryable>),
    progress: &mut Progress,
) -> Result<Written> {
    statement.atomically(progress, |ws| {
        let Some(collection) = ws.catalog().get(buckets).cloned() else {
            return Ok(Written::default());
        };
        let series = series_of(&collection)?.clone();
        let mut root = selection.plan(statement, &collection, None)?;
        statement.note_plan(&*root);
        let mut found = None;
        {
            let mut batch = read::batch(statement, ws, op, true);
            while let Some((record, bytes)) = target::next(&mut root, &mut batch)? {
                if first(&bytes, &series, filter, op)?.is_some() {
                    found = Some((record, bytes));
                    break;
                }
            }
        }
        statement.observe(&*root);
        let Some((record, bytes)) = found else {
            return Ok(Written::default());
        };
        let mut writer = Writer::new(ws, collection, op, statement.origin(&buckets.db))?;
        let (matched, old) = take(
            &mut writer,
            &record,
            &bytes,
            &series,
            filter,
            &Taken { most: 1, retryable },
        )?;
        statement.observe_keys(&writer);
        Ok(Written {
            matched,
            old: old.filter(|_| wants_image),
            ..Written::default()
        })
    })
}

/// The first measurement of a bucket that satisfies the filter.
fn first(bytes: &Bytes, series: &TimeSeries, filter: &MatchExpr, op: &OpContext) -> Result<Option<usize>> {
    let bucket = Bucket::decode(bytes.document(), series)?;
    for row in 0..bucket.len {
        if filter.matches(bucket.row(row, series).as_raw().as_doc(), op)? {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

/// What is taken out of a bucket.
struct Taken {
    /// So many measurements at most.
    most: usize,
    /// Which statement of a retryable write takes them.
    retryable: Option<Retryable>,
}

impl Taken {
    const ALL: Self = Self {
        most: usize::MAX,
        retryable: None,
    };
}

/// Takes those measurements out of a bucket that satisfy the filter: how many those were, and the last of them.
fn take(
    writer: &mut Writer<'_>,
    record: &Bytes,
    bytes: &Bytes,
    series: &TimeSeries,
    filter: &MatchExpr,
    taken_by: &Taken,
) -> Result<(i64, Option<RawDocBuf>)> {
    let bucket = Bucket::decode(bytes.document(), series)?;
    let (mut keeps, mut taken, mut last) = (Vec::with_capacity(bucket.len), 0, None);
    for row in 0..bucket.len {
        let document = bucket.row(row, series);
        let goes = taken < taken_by.most && filter.matches(document.as_raw().as_doc(), writer.op)?;
        keeps.push(!goes);
        if goes {
            taken += 1;
            last = Some(document);
        }
    }
    // The image that findAndModify returns is the measurement; that of the writer would be its bucket.
    let statement = taken_by.retryable.filter(|_| taken > 0);
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
