//! What the server sends.

use crate::error;
use crate::run::query::Field;
use crate::types::{Type, encoding, output};
use nestor_model::vector::Data;
use nestor_model::{Error, Result, Value};
use nestor_planner::relation::Chunk;
use std::io::Write;

/// Appends a message whose body `body` writes.
pub fn message(out: &mut Vec<u8>, tag: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    let length = (out.len() - at) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

fn text(out: &mut Vec<u8>, text: &str) {
    let at = out.len();
    encoding::put_about(text, out);
    // A zero byte would end it.
    if text.contains('\0') {
        let own = out.split_off(at);
        out.extend(own.into_iter().filter(|byte| *byte != 0));
    }
    out.push(0);
}

/// AuthenticationOk.
pub fn authenticated(out: &mut Vec<u8>) {
    message(out, b'R', |out| out.extend_from_slice(&0i32.to_be_bytes()));
}

/// A message of a login: AuthenticationSASL (10), AuthenticationSASLContinue (11), AuthenticationSASLFinal (12).
pub fn login(out: &mut Vec<u8>, kind: i32, body: &[u8]) {
    message(out, b'R', |out| {
        out.extend_from_slice(&kind.to_be_bytes());
        out.extend_from_slice(body);
    });
}

/// ParameterStatus.
pub fn parameter(out: &mut Vec<u8>, name: &str, value: &str) {
    message(out, b'S', |out| {
        text(out, name);
        text(out, value);
    });
}

/// BackendKeyData.
pub fn key(out: &mut Vec<u8>, pid: i32, secret: i32) {
    message(out, b'K', |out| {
        out.extend_from_slice(&pid.to_be_bytes());
        out.extend_from_slice(&secret.to_be_bytes());
    });
}

/// ReadyForQuery: `I`, `T` or `E`.
pub fn ready(out: &mut Vec<u8>, status: u8) {
    message(out, b'Z', |out| out.push(status));
}

/// A message without a body.
pub fn empty(out: &mut Vec<u8>, tag: u8) {
    message(out, tag, |_| {});
}

/// RowDescription. Columns behind the last format have the only one, or text.
pub fn row_description(out: &mut Vec<u8>, fields: &[Field], formats: &[i16]) {
    message(out, b'T', |out| {
        out.extend_from_slice(&(fields.len() as u16).to_be_bytes());
        for (i, field) in fields.iter().enumerate() {
            text(out, &field.name);
            let (table, number) = field.origin;
            out.extend_from_slice(&table.to_be_bytes());
            out.extend_from_slice(&number.to_be_bytes());
            out.extend_from_slice(&field.ty.oid().to_be_bytes());
            out.extend_from_slice(&field.ty.length().to_be_bytes());
            out.extend_from_slice(&field.modifier.to_be_bytes());
            out.extend_from_slice(&format(formats, i).to_be_bytes());
        }
    });
}

/// The format of column `i`.
pub fn format(formats: &[i16], i: usize) -> i16 {
    match formats {
        [] => 0,
        [only] => *only,
        all => all.get(i).copied().unwrap_or(0),
    }
}

/// What the values of a row may weigh to be sent, in bytes, and what they may become when they are written out: 16 of the longest strings
/// of documents, or as many as fit one reply of commands twice over.
pub const ROW_BYTES_MAX: usize = 256 << 20;

/// Refuses a row that is too large to be sent: values that many columns share are written out for each of them.
///
/// Errors: 54000.
pub fn check_size(bytes: usize) -> Result<()> {
    match bytes > ROW_BYTES_MAX {
        true => error::fail(
            "54000",
            format!("a row of more than {ROW_BYTES_MAX} bytes cannot be sent"),
        ),
        false => Ok(()),
    }
}

/// DataRow. After an error nothing of it is there.
///
/// Errors: those of [`check_size`] and [`encoding::lost`].
pub fn data_row(out: &mut Vec<u8>, fields: &[Field], row: &[Value], formats: &[i16]) -> Result<()> {
    check_size(row.iter().map(Value::weight).sum())?;
    whole_row(out, fields.len(), |out, i| match &row[i] {
        Value::Null => false,
        value => {
            written(&fields[i].ty, value, format(formats, i), out);
            true
        }
    })
}

/// The DataRow of a row of a chunk.
///
/// Errors: those of [`check_size`].
pub fn data_row_of(out: &mut Vec<u8>, fields: &[Field], (chunk, row): (&Chunk, usize), formats: &[i16]) -> Result<()> {
    whole_row(out, fields.len(), |out, i| {
        let (column, ty, format) = (&chunk.columns[i], &fields[i].ty, format(formats, i));
        if column.is_null(row) {
            return false;
        }
        match (&column.data, ty, format) {
            (Data::Text(texts), Type::Text | Type::Varchar | Type::Bpchar | Type::Citext, _) => {
                encoding::put(texts.get(row), out);
            }
            (Data::Int32(numbers), Type::Int2 | Type::Int4 | Type::Int8, 0) => whole(numbers[row].into(), out),
            (Data::Int64(numbers), Type::Int2 | Type::Int4 | Type::Int8, 0) => whole(numbers[row], out),
            (Data::Values(values), ..) => written(ty, &values[row], format, out),
            _ => written(ty, &column.value(row), format, out),
        }
        true
    })
}

/// A DataRow of so many values, which `value` appends unless it is null: then it returns `false`.
fn whole_row(out: &mut Vec<u8>, width: usize, mut value: impl FnMut(&mut Vec<u8>, usize) -> bool) -> Result<()> {
    let begin = out.len();
    let mut size = Ok(());
    message(out, b'D', |out| {
        out.extend_from_slice(&(width as u16).to_be_bytes());
        for i in 0..width {
            let at = out.len();
            out.extend_from_slice(&[0; 4]);
            let length = match value(out, i) {
                true => (out.len() - at - 4) as u32,
                // -1
                false => u32::MAX,
            };
            out[at..at + 4].copy_from_slice(&length.to_be_bytes());
            size = encoding::lost().and_then(|()| check_size(out.len() - begin));
            if size.is_err() {
                return;
            }
        }
    });
    if size.is_err() {
        out.truncate(begin);
    }
    size
}

fn written(ty: &Type, value: &Value, format: i16, out: &mut Vec<u8>) {
    match (format, value) {
        (1, value) => output::binary(ty, value, out),
        (_, Value::String(text)) if *ty != Type::Jsonb => encoding::put(text, out),
        (_, value) => encoding::put(&output::text(ty, value), out),
    }
}

fn whole(number: i64, out: &mut Vec<u8>) {
    // Writing to memory cannot fail.
    let _ = write!(out, "{number}");
}

/// CopyInResponse (`G`) or CopyOutResponse (`H`) of so many columns.
pub fn copy(out: &mut Vec<u8>, tag: u8, is_binary: bool, columns: usize) {
    message(out, tag, |out| {
        out.push(u8::from(is_binary));
        out.extend_from_slice(&(columns as u16).to_be_bytes());
        for _ in 0..columns {
            out.extend_from_slice(&i16::from(is_binary).to_be_bytes());
        }
    });
}

/// CommandComplete.
pub fn complete(out: &mut Vec<u8>, tag: &str) {
    message(out, b'C', |out| text(out, tag));
}

/// ParameterDescription.
pub fn parameters(out: &mut Vec<u8>, oids: &[u32]) {
    message(out, b't', |out| {
        out.extend_from_slice(&(oids.len() as u16).to_be_bytes());
        for oid in oids {
            out.extend_from_slice(&oid.to_be_bytes());
        }
    });
}

/// ErrorResponse.
pub fn error(out: &mut Vec<u8>, severity: &str, error: &Error) {
    said(out, b'E', severity, error);
}

/// NotificationResponse.
pub fn notification(out: &mut Vec<u8>, pid: i32, channel: &str, payload: &str) {
    message(out, b'A', |out| {
        out.extend_from_slice(&pid.to_be_bytes());
        text(out, channel);
        text(out, payload);
    });
}

/// NoticeResponse.
pub fn notice(out: &mut Vec<u8>, severity: &str, told: &Error) {
    said(out, b'N', severity, told);
}

fn said(out: &mut Vec<u8>, tag: u8, severity: &str, error: &Error) {
    message(out, tag, |out| {
        for (field, value) in [
            (b'S', severity),
            (b'V', severity),
            (b'C', &error::state(error)),
            (b'M', error::shown(error)),
        ] {
            out.push(field);
            text(out, value);
        }
        for (field, value) in error::fields(error) {
            out.push(field.letter());
            text(out, value);
        }
        if let Some(at) = error::position(error) {
            out.push(b'P');
            text(out, &at.to_string());
        }
        out.push(0);
    });
}
