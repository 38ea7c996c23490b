//! Measurements behind those of a stored bucket.
//!
//! Only what is new is encoded: each column gets one more part, and the limits are compared with those of the new measurements. So ten new
//! measurements cost the same whether the bucket has ten or nine hundred.

use super::bucket::{COLUMN_SUBTYPE, Header, MEASUREMENTS_MAX, Rows, VERSION, extremes, order};
use super::{column, parts};
use nestor_model::{RawDoc, RawDocBuf, RawWriter, Result, TimeSeries, ValueRef};
use std::borrow::Cow;
use std::cmp::Ordering;

/// A field of the bucket that results.
struct Field<'a> {
    name: &'a str,
    /// Its smallest and its largest value.
    limits: [Option<ValueRef<'a>>; 2],
    column: Cow<'a, [u8]>,
}

impl Rows<'_> {
    /// A stored bucket with these measurements behind its own; both have the same source. `None` when the bucket has to be written anew:
    /// one of these measurements is older than its last one, it becomes full, or its columns have as many parts as they may have.
    ///
    /// Errors: 2 for what is no bucket.
    pub fn appended_to(&mut self, stored: RawDoc<'_>, series: &TimeSeries) -> Result<Option<RawDocBuf>> {
        let header = Header::parse(stored)?;
        let (Some(bytes), true) = (header.bytes, header.len + self.len < MEASUREMENTS_MAX) else {
            return Ok(None);
        };
        self.sort(series);
        let last_ms = header.last_ms(series)?;
        let times = self.columns.iter().find(|(name, _)| *name == series.time_field);
        let follows = times.is_some_and(|(_, times)| match times.first() {
            Some(Some(ValueRef::DateTime(first_ms))) => *first_ms >= last_ms,
            _ => false,
        });
        if !follows {
            return Ok(None);
        }
        let Some(fields) = self.fields_behind(&header) else {
            return Ok(None);
        };
        let mut out = RawWriter::with_capacity(stored.len() + 512);
        out.append("_id", header.id);
        out.begin_document("control");
        out.append("version", VERSION);
        for (at, name) in ["min", "max"].into_iter().enumerate() {
            out.begin_document(name);
            for field in &fields {
                if let Some(value) = field.limits[at] {
                    out.append(field.name, value);
                }
            }
            out.end();
        }
        out.append("count", (header.len + self.len) as i32);
        out.append("bytes", i32::try_from(bytes + self.bytes).unwrap_or(i32::MAX));
        out.end();
        if let Some(meta) = header.meta {
            out.append("meta", meta);
        }
        out.begin_document("data");
        for field in &fields {
            let bytes = &*field.column;
            let subtype = COLUMN_SUBTYPE;
            out.append(field.name, ValueRef::Binary { subtype, bytes });
        }
        out.end();
        Ok(Some(out.into_doc()))
    }

    /// The fields of the bucket, then those that only these measurements have; `None` when a column has no room for one more part.
    fn fields_behind<'a>(&'a self, header: &Header<'a>) -> Option<Vec<Field<'a>>> {
        let absent = |rows: usize| column::encode(&vec![None; rows]);
        let mut fields = Vec::with_capacity(self.columns.len());
        for (name, stored) in header.data.iter() {
            let ValueRef::Binary { bytes: stored, .. } = stored else {
                return None;
            };
            let added = self.columns.iter().find(|(added, _)| *added == name);
            let limits = added.and_then(|(_, added)| extremes(added));
            let bytes = match added {
                Some((_, added)) => column::encode(added),
                None => absent(self.len),
            };
            fields.push(Field {
                name,
                limits: [
                    further(header.min.get(name), limits.map(|(least, _)| least), Ordering::Less),
                    further(header.max.get(name), limits.map(|(_, most)| most), Ordering::Greater),
                ],
                column: parts::append(stored, header.len, &bytes, self.len)?.into(),
            });
        }
        for (name, added) in &self.columns {
            if header.data.get(name).is_some() {
                continue;
            }
            let (least, most) = extremes(added).unzip();
            let column = parts::append(&absent(header.len), header.len, &column::encode(added), self.len)?;
            fields.push(Field {
                name,
                limits: [least, most],
                column: column.into(),
            });
        }
        Some(fields)
    }
}

/// The limit that is further out; of equal ones that of the bucket, whose measurements are earlier.
fn further<'a>(stored: Option<ValueRef<'a>>, added: Option<ValueRef<'a>>, wanted: Ordering) -> Option<ValueRef<'a>> {
    match (stored, added) {
        (Some(stored), Some(added)) if order(added, stored) != wanted => Some(stored),
        (stored, added) => added.or(stored),
    }
}

#[cfg(test)]
mod tests {
    use crate::timeseries::{Bucket, Header, Rows, bucket_id, fault};
    use nestor_model::timeseries::Bucketing;
    use nestor_model::{RawDocBuf, TimeSeries, Value, ValueRef, doc};

    fn series() -> TimeSeries {
        TimeSeries::new("t", Some("m"), Bucketing::default()).expect("valid options")
    }

    fn rows(docs: &[RawDocBuf]) -> Rows<'_> {
        let mut rows = Rows::default();
        docs.iter().for_each(|doc| rows.push(doc.as_raw(), &series()));
        rows
    }

    fn shown(bucket: &Bucket) -> Vec<String> {
        (0..bucket.len)
            .map(|row| format!("{:?}", bucket.row(row, &series())))
            .collect()
    }

    #[test]
    fn an_appended_bucket_has_what_one_written_anew_has() {
        let mut batches: Vec<Vec<RawDocBuf>> = Vec::new();
        for batch in 0..6i64 {
            let docs = (0..20i64).map(|i| {
                let mut doc = doc! { "_id": batch * 20 + i, "t": Value::DateTime(60_000 + batch * 1000 + i), "m": "s" };
                doc.push("v", Value::Double(((batch * 7 + i * 3) % 11) as f64 / 10.0));
                match batch {
                    1 => doc.push("w", "text"),
                    3 if i % 2 == 0 => doc.push("w", Value::Null),
                    4 => doc.push("v2", f64::NAN),
                    _ => {}
                }
                doc.to_raw()
            });
            batches.push(docs.collect());
        }
        let id = bucket_id(60_000, 7);
        let mut stored = rows(&batches[0]).into_bucket(&series(), id, Some(ValueRef::String("s")), 60_000);
        for (at, batch) in batches.iter().enumerate().skip(1) {
            stored = rows(batch)
                .appended_to(stored.as_raw(), &series())
                .expect("a bucket")
                .expect("room");
            assert_eq!(fault(stored.as_raw(), &series()), None, "after batch {at}");
            let all = batches[..=at].concat();
            let anew = rows(&all).into_bucket(&series(), id, Some(ValueRef::String("s")), 60_000);
            let (bucket, expected) = (
                Bucket::decode(stored.as_raw(), &series()).expect("a bucket"),
                Bucket::decode(anew.as_raw(), &series()).expect("a bucket"),
            );
            assert_eq!(shown(&bucket), shown(&expected));
            let (header, expected) = (
                Header::parse(stored.as_raw()).expect("a bucket"),
                Header::parse(anew.as_raw()).expect("a bucket"),
            );
            assert_eq!(
                format!("{:?} {:?} {:?}", header.min, header.max, header.bytes),
                format!("{:?} {:?} {:?}", expected.min, expected.max, expected.bytes)
            );
        }
    }

    #[test]
    fn what_does_not_follow_or_fills_the_bucket_is_not_appended() {
        let at = |ms: i64| doc! { "_id": 1, "t": Value::DateTime(ms), "m": "s" }.to_raw();
        let first: Vec<RawDocBuf> = (0..990).map(|i| at(61_000 + i)).collect();
        let stored = rows(&first).into_bucket(&series(), bucket_id(60_000, 7), None, 60_000);
        let append = |docs: &[RawDocBuf]| rows(docs).appended_to(stored.as_raw(), &series()).expect("a bucket");
        assert!(append(&[at(61_989)]).is_some(), "the same time as the last one");
        assert!(append(&[at(61_988)]).is_none(), "an older one");
        assert!(
            append(&vec![at(62_000); 10]).is_none(),
            "the thousandth: written anew, in one part"
        );
    }
}
