//! Types of columns, as `--columnsHaveTypes` writes them behind names: `price.decimal()`, `born.date(2006-01-02)`.
//!
//! Source: the manual of the database tools, page "mongoimport", options `--columnsHaveTypes` and `--parseGrace`.

use super::dates::Layout;
use super::infer;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nestor_model::{Decimal128, RawWriter, ValueRef};
use std::str::FromStr;

/// What becomes of a field that is not of its column's type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grace {
    /// It gets the type that it looks like.
    AutoCast,
    /// It is left out.
    SkipField,
    /// Its row is left out.
    SkipRow,
    /// It ends the reading.
    #[default]
    Stop,
}

impl Grace {
    /// The words for it, as mongoimport has them.
    pub const WORDS: [&str; 4] = ["autoCast", "skipField", "skipRow", "stop"];
}

impl FromStr for Grace {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        Ok(match word {
            "autoCast" => Self::AutoCast,
            "skipField" => Self::SkipField,
            "skipRow" => Self::SkipRow,
            "stop" => Self::Stop,
            _ => return Err(format!("{word} is none of {}", Self::WORDS.join(", "))),
        })
    }
}

/// How bytes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// RFC 4648, section 4.
    Base64,
    /// RFC 4648, section 6.
    Base32,
    /// Two digits each.
    Hex,
}

/// The type of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnType {
    /// What the field looks like.
    Auto,
    /// Bytes.
    Binary(Encoding),
    /// `true`, `t`, `1` and their like.
    Boolean,
    /// A date of this layout.
    Date(Layout),
    /// Decimal128.
    Decimal,
    /// Double.
    Double,
    /// Int32.
    Int32,
    /// Int64.
    Int64,
    /// Text as it is.
    Text,
}

/// A field that is not of its column's type.
#[derive(Debug, PartialEq)]
pub struct Mismatch;

impl ColumnType {
    /// Splits `name.type(argument)`.
    pub fn split(column: &str) -> Result<(&str, Self), String> {
        let malformed = || format!("{column:?} is not of the form name.type(argument)");
        let rest = column.strip_suffix(')').ok_or_else(malformed)?;
        // The last dot that a word and a bracket follow; dots and brackets may be part of the name and of the argument.
        for (dot, _) in rest.rmatch_indices('.') {
            let (name, typed) = (&rest[..dot], &rest[dot + 1..]);
            let word = typed
                .bytes()
                .take_while(|b| b.is_ascii_alphanumeric() || *b == b'_')
                .count();
            if word > 0 && typed.as_bytes().get(word) == Some(&b'(') {
                let argument = unescape(&typed[word + 1..]).ok_or_else(malformed)?;
                let found = Self::new(&typed[..word], &argument).map_err(|e| format!("{column:?}: {e}"))?;
                return Ok((name, found));
            }
        }
        Err(malformed())
    }

    fn new(word: &str, argument: &str) -> Result<Self, String> {
        let plain = match word {
            "binary" => {
                return match argument {
                    "base64" => Ok(Self::Binary(Encoding::Base64)),
                    "base32" => Ok(Self::Binary(Encoding::Base32)),
                    "hex" => Ok(Self::Binary(Encoding::Hex)),
                    _ => Err("binary is base32, base64 or hex".into()),
                };
            }
            "date" | "date_go" => return Layout::go(argument).map(Self::Date),
            "date_ms" => return Layout::ms(argument).map(Self::Date),
            "date_oracle" => return Layout::oracle(argument).map(Self::Date),
            "auto" => Self::Auto,
            "boolean" => Self::Boolean,
            "decimal" => Self::Decimal,
            "double" => Self::Double,
            "int32" => Self::Int32,
            "int64" => Self::Int64,
            "string" => Self::Text,
            _ => return Err(format!("there is no type {word}")),
        };
        if argument.is_empty() {
            Ok(plain)
        } else {
            Err(format!("{word} takes no argument"))
        }
    }

    /// Appends a field of this type; nothing when it is none.
    pub fn append(&self, writer: &mut RawWriter, name: &str, text: &str) -> Result<(), Mismatch> {
        match self {
            Self::Auto => infer::append(writer, name, text),
            Self::Text => writer.append(name, text),
            Self::Int32 => writer.append(name, text.parse::<i32>().map_err(|_| Mismatch)?),
            Self::Int64 => writer.append(name, text.parse::<i64>().map_err(|_| Mismatch)?),
            Self::Double => writer.append(name, text.parse::<f64>().map_err(|_| Mismatch)?),
            Self::Decimal => writer.append(name, Decimal128::parse(text).ok_or(Mismatch)?.0),
            Self::Boolean => writer.append(
                name,
                match text {
                    "1" | "t" | "T" | "true" | "TRUE" | "True" => true,
                    "0" | "f" | "F" | "false" | "FALSE" | "False" => false,
                    _ => return Err(Mismatch),
                },
            ),
            Self::Date(layout) => writer.append(name, ValueRef::DateTime(layout.read(text).ok_or(Mismatch)?)),
            Self::Binary(encoding) => {
                let bytes = encoding.decode(text).ok_or(Mismatch)?;
                writer.append(
                    name,
                    ValueRef::Binary {
                        subtype: 0,
                        bytes: &bytes,
                    },
                );
            }
        }
        Ok(())
    }
}

/// Takes the backslashes off brackets and backslashes, which all need one.
fn unescape(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => plain.push(chars.next().filter(|c| matches!(c, '(' | ')' | '\\'))?),
            '(' | ')' => return None,
            _ => plain.push(c),
        }
    }
    Some(plain)
}

impl Encoding {
    fn decode(self, text: &str) -> Option<Vec<u8>> {
        match self {
            Self::Base64 => STANDARD.decode(text).ok(),
            Self::Hex => {
                let pairs = text.as_bytes().chunks(2);
                let byte = |pair: &[u8]| match pair {
                    [high, low] => Some(digit(*high, 16)? << 4 | digit(*low, 16)?),
                    _ => None,
                };
                pairs.map(byte).collect()
            }
            Self::Base32 => base32(text),
        }
    }
}

fn digit(byte: u8, radix: u32) -> Option<u8> {
    u8::try_from(char::from(byte).to_digit(radix)?).ok()
}

/// Groups of eight letters, the last one padded.
fn base32(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(8) {
        return None;
    }
    let letters = text.trim_end_matches('=');
    if text.len() - letters.len() > 6 {
        return None;
    }
    let (mut bits, mut held) = (0u32, 0u32);
    let mut bytes = Vec::with_capacity(letters.len() * 5 / 8);
    for letter in letters.bytes() {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'2'..=b'7' => letter - b'2' + 26,
            _ => return None,
        };
        bits = (bits << 5 | u32::from(value)) & 0xFFF;
        held += 5;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held & 0xFF) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(column: &str, text: &str) -> String {
        let (name, kind) = match ColumnType::split(column) {
            Ok(split) => split,
            Err(reason) => return reason,
        };
        let mut writer = RawWriter::new();
        match kind.append(&mut writer, name, text) {
            Ok(()) => format!("{:?}", writer.into_doc().as_raw()),
            Err(Mismatch) => "mismatch".into(),
        }
    }

    fn value(name: &str, value: ValueRef<'_>) -> String {
        let mut writer = RawWriter::new();
        writer.append(name, value);
        format!("{:?}", writer.into_doc().as_raw())
    }

    #[test]
    fn fields_get_the_type_of_their_column() {
        let bytes = |bytes| ValueRef::Binary { subtype: 0, bytes };
        for (column, text, expected) in [
            ("a.string()", "01234", ValueRef::String("01234")),
            ("a.auto()", "01234", ValueRef::String("01234")),
            ("a.auto()", "5", ValueRef::Int32(5)),
            ("a.int32()", "007", ValueRef::Int32(7)),
            ("a.int64()", "7", ValueRef::Int64(7)),
            ("a.double()", "7", ValueRef::Double(7.0)),
            (
                "a.decimal()",
                "1.10",
                ValueRef::Decimal128(Decimal128::parse("1.10").unwrap().0),
            ),
            ("a.boolean()", "t", ValueRef::Bool(true)),
            ("a.boolean()", "0", ValueRef::Bool(false)),
            ("a.binary(base64)", "AQI=", bytes(&[1, 2])),
            ("a.binary(base32)", "AEBA====", bytes(&[1, 2])),
            ("a.binary(hex)", "01fF", bytes(&[1, 255])),
            ("a.date(2006-01-02)", "1970-01-02", ValueRef::DateTime(86_400_000)),
            ("a.date_ms(yyyy-MM-dd)", "1970-01-02", ValueRef::DateTime(86_400_000)),
            (
                "a.date_oracle(YYYY-MM-DD)",
                "1970-01-02",
                ValueRef::DateTime(86_400_000),
            ),
            (
                r"a.date(\(2006\) 01 02)",
                "(1970) 01 02",
                ValueRef::DateTime(86_400_000),
            ),
        ] {
            assert_eq!(read(column, text), value("a", expected), "{column} {text}");
        }
        assert_eq!(
            ColumnType::split("home.price (EUR).int32()").map(|c| c.0),
            Ok("home.price (EUR)")
        );
    }

    #[test]
    fn what_is_of_another_type_is_told() {
        for (column, text) in [
            ("a.int32()", "3000000000"),
            ("a.int32()", ""),
            ("a.int64()", "1.5"),
            ("a.double()", "x"),
            ("a.decimal()", "1,1"),
            ("a.boolean()", "yes"),
            ("a.binary(hex)", "abc"),
            ("a.binary(base32)", "a"),
            ("a.date(2006)", "06"),
        ] {
            assert_eq!(read(column, text), "mismatch", "{column} {text}");
        }
        for (column, word) in [
            ("a", "form"),
            ("a.int32", "form"),
            ("a.()", "form"),
            ("a.int32(", "form"),
            ("a.int32(5)", "no argument"),
            ("a.float()", "no type float"),
            ("a.binary()", "hex"),
            ("a.date()", "date"),
        ] {
            let refused = ColumnType::split(column).unwrap_err();
            assert!(refused.contains(word), "{column}: {refused}");
        }
    }
}
