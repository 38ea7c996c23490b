//! Rows as the bytes of a file.

use super::{Format, Options, SIGNATURE};
use crate::run::query::Field;
use crate::types::{encoding, output};
use nestor_model::Value;

/// What stands before the rows.
pub fn head(options: &Options, fields: &[Field], out: &mut Vec<u8>) {
    match options.format {
        Format::Binary => {
            out.extend_from_slice(SIGNATURE);
            out.extend_from_slice(&[0; 8]);
        }
        Format::Text | Format::Csv if options.header => {
            let begin = out.len();
            for (i, field) in fields.iter().enumerate() {
                separate(options, i, out);
                match options.format {
                    Format::Csv => quoted(options, &field.name, false, out),
                    _ => escaped(options, &field.name, out),
                }
            }
            out.push(b'\n');
            encoding::recode(out, begin);
        }
        Format::Text | Format::Csv | Format::Parquet | Format::Arrow => {}
    }
}

/// A row. What the client's encoding does not have is told by [`encoding::lost`].
pub fn row(options: &Options, fields: &[Field], row: &[Value], out: &mut Vec<u8>) {
    let begin = out.len();
    if options.format == Format::Binary {
        out.extend_from_slice(&(fields.len() as u16).to_be_bytes());
    }
    for (i, (field, value)) in fields.iter().zip(row).enumerate() {
        match (options.format, value) {
            (Format::Binary, Value::Null) => out.extend_from_slice(&(-1i32).to_be_bytes()),
            (Format::Binary, value) => {
                let at = out.len();
                out.extend_from_slice(&[0; 4]);
                output::binary(&field.ty, value, out);
                let length = (out.len() - at - 4) as u32;
                out[at..at + 4].copy_from_slice(&length.to_be_bytes());
            }
            (format, value) => {
                separate(options, i, out);
                match (format, value) {
                    (_, Value::Null) => out.extend_from_slice(options.null.as_bytes()),
                    (Format::Csv, value) => {
                        let is_forced = options.force_quote.has(&field.name);
                        quoted(options, &output::text(&field.ty, value), is_forced, out);
                    }
                    (_, value) => escaped(options, &output::text(&field.ty, value), out),
                }
            }
        }
    }
    if options.format != Format::Binary {
        out.push(b'\n');
        encoding::recode(out, begin);
    }
}

/// What stands behind the rows.
pub fn foot(options: &Options, out: &mut Vec<u8>) {
    if options.format == Format::Binary {
        out.extend_from_slice(&(-1i16).to_be_bytes());
    }
}

fn separate(options: &Options, i: usize, out: &mut Vec<u8>) {
    if i > 0 {
        out.push(options.delimiter);
    }
}

fn escaped(options: &Options, text: &str, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        let letter = match byte {
            b'\\' => b'\\',
            8 => b'b',
            12 => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            11 => b'v',
            byte if byte == options.delimiter => byte,
            byte => {
                out.push(byte);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', letter]);
    }
}

fn quoted(options: &Options, text: &str, is_forced: bool, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    let needs = |byte: &u8| matches!(byte, b'\n' | b'\r') || *byte == options.delimiter || *byte == options.quote;
    // What would be read as null or as the end has to be quoted too.
    if !is_forced && text != options.null && text != "\\." && !bytes.iter().any(needs) {
        out.extend_from_slice(bytes);
        return;
    }
    out.push(options.quote);
    for byte in bytes {
        if *byte == options.quote || *byte == options.escape {
            out.push(options.escape);
        }
        out.push(*byte);
    }
    out.push(options.quote);
}
