//! Binary values: text forms, numbers as bytes.

use super::convert::Target;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use nestor_model::{Binary, Error, ErrorCode, Result, Value, ValueRef};
use std::fmt::Write as _;

/// How bytes are written as text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// UUID for subtype 4 of 16 bytes, base64 otherwise; only towards text.
    Auto,
    Base64,
    Base64Url,
    Utf8,
    Hex,
    Uuid,
}

impl Format {
    /// By its name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "auto" => Format::Auto,
            "base64" => Format::Base64,
            "base64url" => Format::Base64Url,
            "utf8" => Format::Utf8,
            "hex" => Format::Hex,
            "uuid" => Format::Uuid,
            _ => return None,
        })
    }
}

fn failed(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::ConversionFailure, message)
}

/// Bytes as text.
pub(crate) fn to_text(binary: &Binary, format: Format) -> Result<String> {
    let is_uuid = binary.subtype == 4 && binary.bytes.len() == 16;
    Ok(match format {
        Format::Auto if is_uuid => uuid_text(&binary.bytes),
        Format::Auto | Format::Base64 => STANDARD.encode(&binary.bytes),
        Format::Base64Url => URL_SAFE_NO_PAD.encode(&binary.bytes),
        Format::Utf8 => std::str::from_utf8(&binary.bytes)
            .map_err(|_| failed("BinData is no valid UTF-8 in $convert"))?
            .to_owned(),
        Format::Hex => hex(&binary.bytes),
        Format::Uuid if is_uuid => uuid_text(&binary.bytes),
        Format::Uuid => return Err(failed("only BinData of subtype 4 with 16 bytes has the form of a UUID")),
    })
}

/// Upper-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, b| {
        // Writing to a string cannot fail.
        let _ = write!(out, "{b:02X}");
        out
    })
}

fn uuid_text(bytes: &[u8]) -> String {
    let digits = hex(bytes).to_ascii_lowercase();
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or("");
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}

fn parse_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    (0..text.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(text.get(i..i + 2)?, 16).ok())
        .collect()
}

fn parse_uuid(text: &str) -> Option<Vec<u8>> {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    if lengths != [8, 4, 4, 4, 12] {
        return None;
    }
    parse_hex(&text.replace('-', ""))
}

/// Converts to binary: text by the format, numbers as their bytes, binary of the same subtype as it is.
pub(crate) fn to_binary(value: ValueRef<'_>, target: &Target) -> Result<Value> {
    let subtype = target.subtype;
    let bytes = match value {
        ValueRef::Binary { subtype: own, bytes } if own == subtype => bytes.to_vec(),
        ValueRef::Binary { .. } => {
            return Err(failed(
                "conversions between different BinData subtypes are not supported",
            ));
        }
        ValueRef::String(text) => return from_text(text, target),
        ValueRef::Int32(v) => ordered(v.to_le_bytes(), target),
        ValueRef::Int64(v) => ordered(v.to_le_bytes(), target),
        ValueRef::Double(v) => ordered(v.to_le_bytes(), target),
        other => {
            return Err(failed(format!(
                "unsupported conversion from {} to binData in $convert",
                other.bson_type().alias()
            )));
        }
    };
    Ok(Binary {
        subtype,
        bytes: bytes.into(),
    }
    .into())
}

fn ordered<const N: usize>(mut bytes: [u8; N], target: &Target) -> Vec<u8> {
    if target.big_endian {
        bytes.reverse();
    }
    bytes.to_vec()
}

fn from_text(text: &str, target: &Target) -> Result<Value> {
    let format = target.format.unwrap_or(Format::Auto);
    if (target.subtype == 4) != (format == Format::Uuid) {
        return Err(failed(
            "the format 'uuid' and the BinData subtype 4 only go together in $convert",
        ));
    }
    let bytes = match format {
        Format::Base64 => STANDARD.decode(text).ok(),
        Format::Base64Url => URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok(),
        Format::Utf8 => Some(text.as_bytes().to_vec()),
        Format::Hex => parse_hex(text),
        Format::Uuid => parse_uuid(text),
        Format::Auto => None,
    };
    match bytes {
        Some(bytes) => Ok(Binary {
            subtype: target.subtype,
            bytes: bytes.into(),
        }
        .into()),
        None => Err(failed(format!(
            "input string is not in the format {format:?} in $convert"
        ))),
    }
}

/// A whole number of 1, 2, 4 or 8 bytes, at most `widest`.
pub(crate) fn to_whole(bytes: &[u8], big_endian: bool, widest: usize) -> Result<i64> {
    if !matches!(bytes.len(), 1 | 2 | 4 | 8) || bytes.len() > widest {
        return Err(failed(format!(
            "BinData of {} bytes is no whole number of the target type",
            bytes.len()
        )));
    }
    let mut wide = [0u8; 8];
    for (i, slot) in wide.iter_mut().enumerate() {
        let at = if big_endian { bytes.len().wrapping_sub(1 + i) } else { i };
        if let Some(byte) = bytes.get(at) {
            *slot = *byte;
        }
    }
    let unused = 64 - 8 * bytes.len() as u32;
    // Shifting up and back extends the sign.
    Ok((i64::from_le_bytes(wide) << unused) >> unused)
}

/// A float of 4 or a double of 8 bytes.
pub(crate) fn to_double(bytes: &[u8], big_endian: bool) -> Result<f64> {
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        return Ok(f64::from(if big_endian {
            f32::from_be_bytes(bytes)
        } else {
            f32::from_le_bytes(bytes)
        }));
    }
    match <[u8; 8]>::try_from(bytes) {
        Ok(bytes) if big_endian => Ok(f64::from_be_bytes(bytes)),
        Ok(bytes) => Ok(f64::from_le_bytes(bytes)),
        Err(_) => Err(failed(format!("BinData of {} bytes is no double", bytes.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_forms() {
        let uuid = Binary {
            subtype: 4,
            bytes: (1..=16).collect::<Vec<u8>>().into(),
        };
        let text = "01020304-0506-0708-090a-0b0c0d0e0f10";
        assert_eq!(to_text(&uuid, Format::Auto).expect("a uuid"), text);
        assert_eq!(parse_uuid(text).expect("a uuid"), uuid.bytes.to_vec());
        assert_eq!(parse_hex("0aF"), None);
        let plain = Binary {
            subtype: 0,
            bytes: b">>>>".as_slice().into(),
        };
        assert_eq!(to_text(&plain, Format::Base64Url).expect("bytes"), "Pj4-Pg");
        assert!(to_text(&plain, Format::Uuid).is_err());
    }

    #[test]
    fn numbers() {
        assert_eq!(to_whole(&[0xFF], false, 8).expect("1 byte"), -1);
        assert_eq!(to_whole(&[0x01, 0x00], true, 8).expect("2 bytes"), 256);
        assert!(to_whole(&[0; 3], false, 8).is_err());
        assert!(to_whole(&[0; 8], false, 4).is_err());
        assert_eq!(to_double(&1.5f32.to_le_bytes(), false).expect("4 bytes"), 1.5);
    }
}
