//! Buckets: documents with the measurements of one source within a span of time.
//!
//! ```text
//! {_id: ObjectId(..),                                       its seconds are those of the bucket's beginning
//!  control: {version: 2, min: {t: .., v: ..}, max: {..},    smallest and largest value of each field; min.t is the beginning
//!            count: 250,                                    measurements
//!            bytes: 31500},                                 what they take as documents, about; not there in buckets of earlier versions
//!  meta: "sensor 7",                                        not there when its measurements have no metaField
//!  data: {t: <column>, v: <column>}}                        user-defined binary data (128), see `column`
//! ```
//!
//! That is how they are stored. Who reads `system.buckets.X` gets the public form that MongoDB documents as version 1, in which a column is
//! `{"0": .., "1": ..}`; who inserts there may give either form. Measurements stand in the order of their times.

use super::column::{self, Column, Values};
use super::parts;
use nestor_model::{
    DocRef, Document, Error, ErrorCode, ObjectId, RawDoc, RawDocBuf, RawWriter, Result, Str, TimeSeries, Value,
    ValueRef, compare, order::compare_f64,
};
use std::cmp::Ordering;

/// Measurements of a bucket at most, unless it was inserted as a bucket.
pub const MEASUREMENTS_MAX: usize = 1_000;
/// Bytes of the measurements of a bucket at most, before they are compressed, once it has a few.
pub const MEASUREMENT_BYTES_MAX: usize = 128_000;
/// Measurements that a bucket has before [`MEASUREMENT_BYTES_MAX`] counts.
pub const MEASUREMENTS_MIN: usize = 10;
/// Bytes of the measurements of a bucket at most, if it has several: large values are in a bucket three times, as smallest and largest
/// ones too, and it must not become larger than documents may be.
pub const LARGE_BYTES_MAX: usize = 4 << 20;
/// Measurements of any bucket at most: more would fill memory when they are decoded.
const ROWS_MAX: usize = 1 << 16;
/// Bytes of a number.
const NUMBER_BYTES: usize = 8;
/// Version of `control` in stored buckets.
pub(super) const VERSION: i32 = 2;
/// Subtype of columns.
pub(super) const COLUMN_SUBTYPE: u8 = 128;

/// A decoded bucket.
#[derive(Clone, Debug)]
pub struct Bucket {
    /// `_id`.
    pub id: ObjectId,
    /// What its measurements have as metaField.
    pub meta: Option<Value>,
    /// The bucket's beginning, in milliseconds: no measurement is older.
    pub begins_ms: i64,
    /// How many measurements.
    pub len: usize,
    /// Fields and their columns, the time first; the metaField is not among them.
    pub columns: Vec<(Str, Column)>,
}

/// What is known of a bucket before its columns are decoded.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    /// `_id`.
    pub id: ObjectId,
    /// What its measurements have as metaField.
    pub meta: Option<ValueRef<'a>>,
    /// Smallest values by field.
    pub min: DocRef<'a>,
    /// Largest values by field.
    pub max: DocRef<'a>,
    /// How many measurements.
    pub len: usize,
    /// Bytes that its measurements take as documents, about, without their metaField; `None` in buckets of earlier versions.
    pub bytes: Option<usize>,
    pub(super) data: DocRef<'a>,
}

impl<'a> Header<'a> {
    /// Reads a stored bucket. Errors: 2 for what is none.
    pub fn parse(doc: RawDoc<'a>) -> Result<Self> {
        Self::read(doc)
            .ok_or_else(|| Error::bad_value("a document of a collection of time-series buckets is no bucket"))
    }

    fn read(doc: RawDoc<'a>) -> Option<Self> {
        let (mut id, mut control, mut meta, mut data) = (None, None, None, None);
        for (name, value) in doc.iter() {
            match (name, value) {
                ("_id", ValueRef::ObjectId(value)) => id = Some(value),
                ("control", ValueRef::Document(value)) => control = Some(value),
                ("meta", value) => meta = Some(value),
                ("data", ValueRef::Document(value)) => data = Some(value),
                _ => return None,
            }
        }
        let control = control?;
        let len = match control.get("count")? {
            ValueRef::Int32(len) => usize::try_from(len).ok().filter(|len| (1..=ROWS_MAX).contains(len))?,
            _ => return None,
        };
        Some(Self {
            id: id?,
            meta,
            min: control.get("min")?.as_document()?,
            max: control.get("max")?.as_document()?,
            len,
            bytes: match control.get("bytes") {
                Some(ValueRef::Int32(bytes)) => usize::try_from(bytes).ok(),
                _ => None,
            },
            data: data?,
        })
    }

    /// The bucket's beginning, in milliseconds. Errors: 2 when there is none.
    pub fn begins_ms(&self, series: &TimeSeries) -> Result<i64> {
        date(self.min, &series.time_field)
    }

    /// The time of its last measurement, in milliseconds. Errors: 2 when there is none.
    pub fn last_ms(&self, series: &TimeSeries) -> Result<i64> {
        date(self.max, &series.time_field)
    }

    /// Names of its fields.
    pub fn fields(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.data.iter().map(|(name, _)| name)
    }

    /// The column of a field; `None` when no measurement has it. Errors: 2 for bytes that are no column.
    pub fn column(&self, name: &str) -> Result<Option<Column>> {
        self.data.get(name).map(|value| self.decode(value)).transpose()
    }

    fn decode(&self, value: ValueRef<'_>) -> Result<Column> {
        match value {
            ValueRef::Binary {
                subtype: COLUMN_SUBTYPE,
                bytes,
            } => parts::decode(bytes, self.len),
            _ => Err(Error::bad_value("a column of a time-series bucket is no column")),
        }
    }
}

fn date(of: DocRef<'_>, time_field: &str) -> Result<i64> {
    match of.get(time_field) {
        Some(ValueRef::DateTime(ms)) => Ok(ms),
        _ => Err(Error::bad_value("a time-series bucket does not tell its times")),
    }
}

impl Bucket {
    /// Decodes a stored bucket. Errors: 2 for what is none.
    pub fn decode(doc: RawDoc<'_>, series: &TimeSeries) -> Result<Self> {
        let header = Header::parse(doc)?;
        let mut columns = Vec::new();
        for (name, value) in header.data.iter() {
            let column = (Str::from(name), header.decode(value)?);
            match name == series.time_field {
                true => columns.insert(0, column),
                false => columns.push(column),
            }
        }
        if columns.first().is_none_or(|(name, _)| *name != series.time_field) {
            return Err(Error::bad_value("a time-series bucket has no times"));
        }
        Ok(Self {
            id: header.id,
            meta: header.meta.map(ValueRef::to_value),
            begins_ms: header.begins_ms(series)?,
            len: header.len,
            columns,
        })
    }

    /// Bytes that it takes in memory, about.
    pub fn memory(&self) -> usize {
        self.columns.len() * self.len * 16
    }

    /// Bytes that its measurements take as documents, about, without their metaField.
    pub fn measurement_bytes(&self) -> usize {
        let of_column = |(name, column): &(Str, Column)| {
            let present = || (0..self.len).filter_map(|row| column.get(row));
            let values = match &column.values {
                Values::Any { .. } | Values::ByType { .. } => present().map(size).sum(),
                _ if column.is_full() => self.len * NUMBER_BYTES,
                _ => present().count() * NUMBER_BYTES,
            };
            let names = if column.is_full() { self.len } else { present().count() };
            values + names * (name.len() + 2)
        };
        self.columns.iter().map(of_column).sum()
    }

    /// Writes the fields of a measurement.
    pub fn write_row(&self, row: usize, series: &TimeSeries, out: &mut RawWriter) {
        for (at, (name, column)) in self.columns.iter().enumerate() {
            if at == 1 {
                self.write_meta(series, out);
            }
            if let Some(value) = column.get(row) {
                out.append(name, value);
            }
        }
        if self.columns.len() == 1 {
            self.write_meta(series, out);
        }
    }

    fn write_meta(&self, series: &TimeSeries, out: &mut RawWriter) {
        if let (Some(name), Some(meta)) = (series.source_field(), &self.meta) {
            out.append(name, meta);
        }
    }

    /// A measurement as a document.
    pub fn row(&self, row: usize, series: &TimeSeries) -> RawDocBuf {
        let mut out = RawWriter::with_capacity(128);
        self.write_row(row, series, &mut out);
        out.into_doc()
    }

    /// The bucket in its public form.
    pub fn to_public(&self, stored: RawDoc<'_>) -> Result<Document> {
        let header = Header::parse(stored)?;
        let mut data = Document::with_capacity(self.columns.len());
        for (name, column) in &self.columns {
            let rows = (0..self.len).filter_map(|row| column.get(row).map(|value| (row, value)));
            let values: Document = rows
                .map(|(row, value)| (Str::from(row.to_string()), value.to_value()))
                .collect();
            data.push(name.clone(), values);
        }
        let mut control = Document::with_capacity(3);
        control.push("version", 1);
        control.push("min", header.min.to_document());
        control.push("max", header.max.to_document());
        let mut out = Document::with_capacity(4);
        out.push("_id", self.id);
        out.push("control", control);
        if let Some(meta) = &self.meta {
            out.push("meta", meta.clone());
        }
        out.push("data", data);
        Ok(out)
    }
}

/// Whether a bucket of `len` measurements takes one more, with which they have `bytes` bytes.
pub fn has_room(len: usize, bytes: usize) -> bool {
    match len {
        0 => true,
        1..MEASUREMENTS_MIN => bytes <= LARGE_BYTES_MAX,
        MEASUREMENTS_MIN..MEASUREMENTS_MAX => bytes <= MEASUREMENT_BYTES_MAX,
        _ => false,
    }
}

/// Measurements on their way into a bucket, by field.
#[derive(Default)]
pub struct Rows<'a> {
    pub(super) columns: Vec<(&'a str, Vec<Option<ValueRef<'a>>>)>,
    pub(super) len: usize,
    pub(super) bytes: usize,
}

impl<'a> Rows<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that they take as documents, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether one more of `bytes` bytes goes into the same bucket.
    pub fn has_room(&self, bytes: usize) -> bool {
        has_room(self.len, self.bytes + bytes)
    }

    /// Adds a measurement. Its metaField is left out.
    pub fn push(&mut self, doc: RawDoc<'a>, series: &TimeSeries) {
        let mut at = 0;
        for (name, value) in doc.iter() {
            if series.source_field() == Some(name) {
                continue;
            }
            self.set(&mut at, name, value);
            self.bytes += name.len() + 2 + size(value);
        }
        self.end_row();
    }

    /// Adds those measurements of a bucket that are `wanted`.
    pub fn extend(&mut self, bucket: &'a Bucket, mut wanted: impl FnMut(usize) -> bool) {
        for row in (0..bucket.len).filter(|row| wanted(*row)) {
            let mut at = 0;
            for (name, column) in &bucket.columns {
                if let Some(value) = column.get(row) {
                    self.set(&mut at, name, value);
                    self.bytes += name.len() + 2 + size(value);
                }
            }
            self.end_row();
        }
    }

    /// The value of a field of the row that is being added; `at` is where its column is, if the fields come in the order of
    /// the row before.
    fn set(&mut self, at: &mut usize, name: &'a str, value: ValueRef<'a>) {
        let here = match self.columns.get(*at) {
            Some((column, _)) if *column == name => *at,
            _ => match self.columns.iter().position(|(column, _)| *column == name) {
                Some(here) => here,
                None => {
                    self.columns.push((name, vec![None; self.len]));
                    self.columns.len() - 1
                }
            },
        };
        let column = &mut self.columns[here].1;
        if column.len() == self.len {
            column.push(Some(value));
        }
        *at = here + 1;
    }

    fn end_row(&mut self) {
        self.len += 1;
        for (_, column) in &mut self.columns {
            if column.len() < self.len {
                column.push(None);
            }
        }
    }

    /// The bucket of these measurements, stored. `begins_ms`: none of them is older.
    pub fn into_bucket(
        mut self,
        series: &TimeSeries,
        id: ObjectId,
        meta: Option<ValueRef<'_>>,
        begins_ms: i64,
    ) -> RawDocBuf {
        self.sort(series);
        let time = self.columns.iter().position(|(name, _)| *name == series.time_field);
        if let Some(time) = time {
            self.columns[..=time].rotate_right(1);
        }
        let mut out = RawWriter::with_capacity(1024);
        out.append("_id", id);
        out.begin_document("control");
        out.append("version", VERSION);
        let limits: Vec<_> = self.columns.iter().map(|(_, column)| extremes(column)).collect();
        out.begin_document("min");
        for ((field, _), limits) in self.columns.iter().zip(&limits) {
            match limits {
                Some(_) if *field == series.time_field => out.append(field, ValueRef::DateTime(begins_ms)),
                Some((least, _)) => out.append(field, *least),
                None => {}
            }
        }
        out.end();
        out.begin_document("max");
        for ((field, _), limits) in self.columns.iter().zip(&limits) {
            if let Some((_, most)) = limits {
                out.append(field, *most);
            }
        }
        out.end();
        out.append("count", self.len as i32);
        out.append("bytes", i32::try_from(self.bytes).unwrap_or(i32::MAX));
        out.end();
        if let Some(meta) = meta {
            out.append("meta", meta);
        }
        out.begin_document("data");
        for (field, column) in &self.columns {
            let bytes = column::encode(column);
            out.append(
                field,
                ValueRef::Binary {
                    subtype: COLUMN_SUBTYPE,
                    bytes: &bytes,
                },
            );
        }
        out.end();
        out.into_doc()
    }

    /// Brings the measurements into the order of their times.
    pub(super) fn sort(&mut self, series: &TimeSeries) {
        let Some((_, times)) = self.columns.iter().find(|(name, _)| *name == series.time_field) else {
            return;
        };
        let time = |row: &usize| match times[*row] {
            Some(ValueRef::DateTime(ms)) => ms,
            _ => i64::MIN,
        };
        let mut order: Vec<usize> = (0..self.len).collect();
        if order.is_sorted_by_key(time) {
            return;
        }
        order.sort_by_key(time);
        for (_, column) in &mut self.columns {
            *column = order.iter().map(|row| column[*row]).collect();
        }
    }
}

fn size(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::String(text) => text.len() + 5,
        ValueRef::Binary { bytes, .. } => bytes.len() + 5,
        ValueRef::Document(DocRef::Raw(doc)) => doc.len(),
        ValueRef::Document(_) | ValueRef::Array(_) => value.to_value().weight(),
        _ => NUMBER_BYTES,
    }
}

/// The smallest and the largest value. Of equal ones that of the earlier measurement.
pub(super) fn extremes<'a>(column: &[Option<ValueRef<'a>>]) -> Option<(ValueRef<'a>, ValueRef<'a>)> {
    let mut values = column.iter().copied().flatten();
    let first = values.next()?;
    Some(values.fold((first, first), |(least, most), value| {
        if order(value, least) == Ordering::Less {
            (value, most)
        } else if order(value, most) == Ordering::Greater {
            (least, value)
        } else {
            (least, most)
        }
    }))
}

/// [`compare`], with a short way for the values that measurements usually have.
#[inline]
pub(super) fn order(a: ValueRef<'_>, b: ValueRef<'_>) -> Ordering {
    match (a, b) {
        (ValueRef::DateTime(a), ValueRef::DateTime(b)) | (ValueRef::Int64(a), ValueRef::Int64(b)) => a.cmp(&b),
        (ValueRef::Int32(a), ValueRef::Int32(b)) => a.cmp(&b),
        (ValueRef::Double(a), ValueRef::Double(b)) => compare_f64(a, b),
        (ValueRef::ObjectId(a), ValueRef::ObjectId(b)) => a.0.cmp(&b.0),
        _ => compare(a, b),
    }
}

/// The id of a bucket that begins at `begins_ms`; what follows the seconds is `random`. Times before 1970 and after 2106 have the first
/// and the last seconds there are, so that ids never descend where beginnings ascend.
pub fn bucket_id(begins_ms: i64, random: u64) -> ObjectId {
    let seconds = begins_ms.div_euclid(1000).clamp(0, i64::from(u32::MAX)) as u32;
    let mut id = [0; 12];
    id[..4].copy_from_slice(&seconds.to_be_bytes());
    id[4..].copy_from_slice(&random.to_be_bytes());
    ObjectId(id)
}

/// The stored form of a bucket that a client wrote, public or stored already.
///
/// Errors: 121 for what is no bucket of the collection.
pub fn from_client(doc: RawDoc<'_>, series: &TimeSeries) -> Result<RawDocBuf> {
    let invalid = |why: &str| {
        Error::new(
            ErrorCode::DocumentValidationFailure,
            format!("Document failed validation: a bucket of a time-series collection {why}"),
        )
    };
    if Header::read(doc).is_some() {
        let bucket = Bucket::decode(doc, series).map_err(|_| invalid("has columns that cannot be decoded"))?;
        check_times(&bucket, series).ok_or_else(|| invalid("has measurements without a time, or beyond its limits"))?;
        // Conditions on buckets and `$min` and `$max` of whole ones rely on the limits.
        return match fault(doc, series) {
            Some(fault) => Err(invalid(&format!("is none: {fault}"))),
            None => Ok(doc.to_buf()),
        };
    }
    let mut parts = (None, None, None, None);
    for (name, value) in doc.iter() {
        match (name, value) {
            ("_id", ValueRef::ObjectId(id)) => parts.0 = Some(id),
            ("control", ValueRef::Document(control)) => parts.1 = Some(control),
            ("data", ValueRef::Document(data)) => parts.2 = Some(data),
            ("meta", meta) => parts.3 = Some(meta),
            _ => return Err(invalid(&format!("has '{name}', or it has another type"))),
        }
    }
    let (Some(id), Some(control), Some(data), meta) = parts else {
        return Err(invalid("needs an ObjectId as _id, control and data"));
    };
    match control.get("version").and_then(nestor_model::number::safe_i64) {
        Some(1) => {}
        Some(version @ (2 | 3)) => {
            return Err(invalid(&format!(
                "has control.version {version}, whose columns MongoDB has compressed: copy the measurements instead of the buckets"
            )));
        }
        _ => return Err(invalid("has no control.version that is known")),
    }
    let limits = ["min", "max"].map(|limit| control.get(limit).and_then(ValueRef::as_document));
    let [Some(min), Some(max)] = limits else {
        return Err(invalid("needs control.min and control.max"));
    };
    let times = [min, max].map(|limit| date(limit, &series.time_field));
    let [Ok(begins_ms), Ok(_)] = times else {
        return Err(invalid("needs dates in control.min and control.max"));
    };
    let rows = rows_of(data, &series.time_field).map_err(|why| invalid(&why))?;
    let documents: Vec<RawDocBuf> = rows.into_iter().map(|row| row.to_raw()).collect();
    // Fields keep their order, whichever measurements have them.
    let mut out = Rows {
        columns: data.iter().map(|(name, _)| (name, Vec::new())).collect(),
        ..Rows::default()
    };
    // Fields of the name of the metaField cannot come back from a bucket.
    if data.iter().any(|(name, _)| series.source_field() == Some(name)) {
        return Err(invalid("has its metaField among its data"));
    }
    documents.iter().for_each(|row| out.push(row.as_raw(), series));
    let stored = out.into_bucket(series, id, meta, begins_ms);
    let bucket = Bucket::decode(stored.as_raw(), series).map_err(|_| invalid("has no measurements"))?;
    check_times(&bucket, series).ok_or_else(|| invalid("has measurements without a time, or beyond its limits"))?;
    Ok(stored)
}

/// The measurements of `{t: {"0": .., "1": ..}, ..}`.
fn rows_of(data: DocRef<'_>, time_field: &str) -> std::result::Result<Vec<Document>, String> {
    let mut rows: Vec<Document> = Vec::new();
    let Some(times) = data.get(time_field).and_then(ValueRef::as_document) else {
        return Err("has no times in its data".to_owned());
    };
    for (name, _) in times.iter() {
        if name.parse() != Ok(rows.len()) || rows.len() >= ROWS_MAX {
            return Err("has measurements that are not numbered from 0 on".to_owned());
        }
        rows.push(Document::new());
    }
    for (field, column) in data.iter() {
        let Some(column) = column.as_document() else {
            return Err(format!("has '{field}' among its data, which is no object"));
        };
        for (number, value) in column.iter() {
            match number.parse::<usize>().ok().and_then(|number| rows.get_mut(number)) {
                Some(row) => row.push(field, value),
                None => {
                    return Err(format!(
                        "has a value of '{field}' for a measurement that it does not have"
                    ));
                }
            }
        }
    }
    Ok(rows)
}

/// Whether each measurement has a time within the limits of the bucket and its span.
fn check_times(bucket: &Bucket, series: &TimeSeries) -> Option<()> {
    let (name, times) = bucket.columns.first()?;
    debug_assert_eq!(*name, series.time_field, "decoded buckets have the time first");
    let ends_ms = bucket.begins_ms.checked_add(series.span_secs * 1000)?;
    (0..bucket.len).try_for_each(|row| match times.get(row) {
        Some(ValueRef::DateTime(ms)) if (bucket.begins_ms..=ends_ms).contains(&ms) => Some(()),
        _ => None,
    })
}

/// What is wrong with a stored bucket; `None` for nothing. It is what `nestor check` asks.
pub fn fault(doc: RawDoc<'_>, series: &TimeSeries) -> Option<String> {
    let bucket = match Bucket::decode(doc, series) {
        Ok(bucket) => bucket,
        Err(error) => return Some(error.message().to_owned()),
    };
    if check_times(&bucket, series).is_none() {
        return Some("it has measurements without a time, or beyond its limits".to_owned());
    }
    let header = Header::parse(doc).ok()?;
    if header.bytes.is_some_and(|bytes| bytes != bucket.measurement_bytes()) {
        return Some("its control has not the bytes of its measurements".to_owned());
    }
    for (name, column) in &bucket.columns {
        let values: Vec<_> = (0..bucket.len).map(|row| column.get(row)).collect();
        let (least, most) = extremes(&values).unzip();
        for (extreme, limits, wanted, what) in [
            (least, header.min, Ordering::Less, "smallest"),
            (most, header.max, Ordering::Greater, "largest"),
        ] {
            let beyond = match (extreme, limits.get(name)) {
                (Some(value), Some(limit)) => compare(value, limit) == wanted,
                (None, None) => false,
                _ => true,
            };
            if beyond {
                return Some(format!("its control has not the {what} value of '{name}'"));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::doc;
    use nestor_model::timeseries::Bucketing;

    fn series() -> TimeSeries {
        TimeSeries::new("t", Some("m"), Bucketing::default()).expect("valid options")
    }

    fn stored(docs: &[RawDocBuf]) -> RawDocBuf {
        let mut rows = Rows::default();
        docs.iter().for_each(|doc| rows.push(doc.as_raw(), &series()));
        rows.into_bucket(&series(), bucket_id(60_000, 7), Some(ValueRef::String("s")), 60_000)
    }

    #[test]
    fn measurements_come_back_in_the_order_of_their_times() {
        let docs = [
            doc! { "_id": 1, "t": Value::DateTime(62_000), "m": "s", "v": 1.5 }.to_raw(),
            doc! { "_id": 2, "t": Value::DateTime(61_000), "m": "s", "w": "x" }.to_raw(),
        ];
        let bytes = stored(&docs);
        let bucket = Bucket::decode(bytes.as_raw(), &series()).expect("a bucket");
        assert_eq!(fault(bytes.as_raw(), &series()), None);
        let rows: Vec<_> = (0..2).map(|row| format!("{:?}", bucket.row(row, &series()))).collect();
        assert_eq!(rows[0], r#"{"t": Date(61000), "m": "s", "_id": 2, "w": "x"}"#);
        assert_eq!(rows[1], r#"{"t": Date(62000), "m": "s", "_id": 1, "v": 1.5}"#);
        // The public form is another form of the same bucket.
        let public = bucket.to_public(bytes.as_raw()).expect("the public form").to_raw();
        let back = from_client(public.as_raw(), &series()).expect("a bucket");
        assert_eq!(back.as_bytes(), bytes.as_bytes());
    }

    #[test]
    fn usual_sensor_data_take_a_fifth_of_their_documents() {
        let docs: Vec<RawDocBuf> = (0..1000i64)
            .map(|i| {
                let mut id = [3; 12];
                id[9..].copy_from_slice(&(i as u32).to_be_bytes()[1..]);
                doc! {
                    "_id": ObjectId(id), "t": Value::DateTime(60_000 + i * 1000 + i % 3), "m": "s",
                    "temperature": (200 + (i * 7 % 13)) as f64 / 10.0, "humidity": (40 + i % 5) as i32,
                }
                .to_raw()
            })
            .collect();
        let plain: usize = docs.iter().map(|doc| doc.as_bytes().len()).sum();
        let bucket = stored(&docs).as_bytes().len();
        assert!(bucket * 20 < plain, "{bucket} of {plain} bytes");
    }

    #[test]
    fn what_is_no_bucket_is_refused() {
        let time = || doc! { "0": Value::DateTime(61_000) };
        let limits = || doc! { "t": Value::DateTime(60_000) };
        let control = || doc! { "version": 1, "min": limits(), "max": limits() };
        let id = || bucket_id(60_000, 7);
        for bad in [
            doc! {},
            doc! { "_id": 1, "control": control(), "data": doc! { "t": time() } },
            doc! { "_id": id(), "control": control(), "data": doc! {} },
            doc! { "_id": id(), "control": control(), "data": doc! { "t": 5 } },
            doc! { "_id": id(), "control": control(), "data": doc! { "t": doc! { "1": Value::DateTime(61_000) } } },
            doc! { "_id": id(), "control": control(), "data": doc! { "t": doc! { "0": 5 } } },
            doc! { "_id": id(), "control": control(), "data": doc! { "t": doc! { "0": Value::DateTime(0) } } },
            doc! { "_id": id(), "control": control(), "data": doc! { "t": time(), "v": doc! { "1": 1 } } },
            doc! { "_id": id(), "control": doc! { "version": 1 }, "data": doc! { "t": time() } },
            doc! { "_id": id(), "control": control(), "data": doc! { "t": time() }, "more": 1 },
            doc! { "_id": id(), "control": doc! { "version": 3, "min": limits(), "max": limits() }, "data": doc! { "t": time() } },
        ] {
            let raw = bad.to_raw();
            let error = from_client(raw.as_raw(), &series()).expect_err("refused");
            assert_eq!(error.code().number(), 121, "{bad:?}");
        }
        // Limits that do not hold are refused in the stored form, too; the public form is given new ones.
        let docs = [doc! { "_id": 1, "t": Value::DateTime(62_000), "m": "s", "v": 2 }.to_raw()];
        let mut wrong = stored(&docs).as_raw().as_doc().to_document();
        let Some(Value::Document(mut wrong_control)) = wrong.remove("control") else {
            panic!("no control in {wrong:?}");
        };
        wrong_control.set("max", doc! { "_id": 1, "t": Value::DateTime(62_000), "v": 1 });
        wrong.set("control", wrong_control);
        let error = from_client(wrong.to_raw().as_raw(), &series()).expect_err("refused");
        assert!(error.message().contains("largest value of 'v'"), "{error:?}");
        let good = doc! { "_id": id(), "control": control(), "data": doc! { "t": time() } }.to_raw();
        assert!(from_client(good.as_raw(), &series()).is_ok());
    }
}
