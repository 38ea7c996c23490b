//! Index keys back to values.

use super::number::{self, Tail};
use super::type_bits::{self, Notes};
use super::{TEXT_END, class};
use crate::{Result, StorageError};
use nestor_model::{Array, Binary, Decimal128, Document, ObjectId, Regex, Str, Timestamp, Value};

/// Nesting that a key may have; documents have less.
const DEPTH_MAX: usize = 256;

/// Reads the parts of a key: `descending[i]` says how part `i` was written. Returns the values, exactly as they were
/// given to the writer, and how many bytes of `key` they take (a record id may follow).
///
/// Errors: [`StorageError::Undecodable`].
pub fn decode(key: &[u8], type_bits: &[u8], descending: &[bool]) -> Result<(Vec<Value>, usize)> {
    let mut values = Vec::with_capacity(descending.len());
    let length = decode_onto(&mut values, key, type_bits, descending)?;
    Ok((values, length))
}

/// As [`decode`], with the values appended to `values`; returns the length.
pub fn decode_onto(values: &mut Vec<Value>, key: &[u8], type_bits: &[u8], descending: &[bool]) -> Result<usize> {
    let mut reader = Reader {
        bytes: key,
        at: 0,
        mask: 0,
        notes: Notes::new(type_bits),
    };
    for descending in descending {
        reader.mask = if *descending { 0xFF } else { 0 };
        values.push(reader.value(0)?);
    }
    Ok(reader.at)
}

/// The value of one part of a key; as [`decode`].
///
/// Errors: [`StorageError::Undecodable`].
pub fn decode_part(key: &[u8], type_bits: &[u8], descending: &[bool], part: usize) -> Result<Value> {
    let mut reader = Reader {
        bytes: key,
        at: 0,
        mask: 0,
        notes: Notes::new(type_bits),
    };
    let mut value = Value::Missing;
    for descending in descending.iter().take(part + 1) {
        reader.mask = if *descending { 0xFF } else { 0 };
        value = reader.value(0)?;
    }
    Ok(value)
}

/// How many bytes of `key` its first `parts` parts take.
///
/// Errors: [`StorageError::Undecodable`].
pub fn part_bytes(key: &[u8], descending: &[bool]) -> Result<usize> {
    // Without type bits every part reads as some value of the same length.
    Ok(decode(key, &[], descending)?.1)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// XORed on every byte: FF for a descending part.
    mask: u8,
    notes: Notes<'a>,
}

fn broken(what: &str) -> StorageError {
    StorageError::Undecodable(format!("index key: {what}"))
}

impl Reader<'_> {
    fn byte(&mut self) -> Result<u8> {
        let byte = self.bytes.get(self.at).ok_or_else(|| broken("cut off"))?;
        self.at += 1;
        Ok(byte ^ self.mask)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        for byte in &mut out {
            *byte = self.byte()?;
        }
        Ok(out)
    }

    fn run(&mut self, len: usize) -> Result<Vec<u8>> {
        let end = self.at.checked_add(len).ok_or_else(|| broken("cut off"))?;
        let bytes = self.bytes.get(self.at..end).ok_or_else(|| broken("cut off"))?;
        self.at = end;
        Ok(bytes.iter().map(|b| b ^ self.mask).collect())
    }

    fn text(&mut self) -> Result<Str> {
        let mut out = Vec::new();
        loop {
            match self.byte()? {
                0 => match self.byte()? {
                    TEXT_END => break,
                    _ => out.push(0),
                },
                byte => out.push(byte),
            }
        }
        String::from_utf8(out)
            .map(Str::from)
            .map_err(|_| broken("text is not UTF-8"))
    }

    fn value(&mut self, depth: usize) -> Result<Value> {
        if depth > DEPTH_MAX {
            return Err(broken("nested too deep"));
        }
        let class = self.byte()?;
        self.body(class, depth)
    }

    fn body(&mut self, class: u8, depth: usize) -> Result<Value> {
        Ok(match class {
            class::MIN_KEY => Value::MinKey,
            class::MISSING => Value::Missing,
            class::UNDEFINED => Value::Undefined,
            class::NULL => Value::Null,
            class::NAN => self.nan()?,
            class::ZERO => self.zero()?,
            class::NEGATIVE => self.number(true)?,
            class::POSITIVE => self.number(false)?,
            class::STRING => {
                let symbol = match self.notes.kind() {
                    Some(type_bits::SYMBOL) => {
                        self.notes.done();
                        true
                    }
                    Some(_) => return Err(broken("type bits of a number on a string")),
                    None => false,
                };
                let text = self.text()?;
                if symbol {
                    Value::Symbol(text)
                } else {
                    Value::String(text)
                }
            }
            class::OBJECT => Value::Document(self.object(depth)?),
            class::ARRAY => {
                let mut items = Vec::new();
                loop {
                    match self.byte()? {
                        class::END => break,
                        class => items.push(self.body_checked(class, depth + 1)?),
                    }
                }
                Value::Array(Array::new(items))
            }
            class::BINARY => {
                let len = match self.byte()? {
                    0xFF => u32::from_be_bytes(self.take()?) as usize,
                    len => usize::from(len),
                };
                let subtype = self.byte()?;
                Value::Binary(Binary {
                    subtype,
                    bytes: self.run(len)?.into(),
                })
            }
            class::OBJECT_ID => Value::ObjectId(ObjectId(self.take()?)),
            class::FALSE => Value::Bool(false),
            class::TRUE => Value::Bool(true),
            class::DATE => Value::DateTime((u64::from_be_bytes(self.take()?) ^ (1 << 63)) as i64),
            class::TIMESTAMP => Value::Timestamp(Timestamp::from_u64(u64::from_be_bytes(self.take()?))),
            class::REGEX => Value::Regex(Box::new(Regex {
                pattern: self.text()?,
                options: self.text()?,
            })),
            class::DB_POINTER => {
                let len = u32::from_be_bytes(self.take()?) as usize;
                let namespace = String::from_utf8(self.run(len)?).map_err(|_| broken("text is not UTF-8"))?;
                Value::DbPointer(Box::new((namespace.into(), ObjectId(self.take()?))))
            }
            class::CODE => Value::Code(self.text()?),
            class::CODE_WITH_SCOPE => {
                let code = self.text()?;
                Value::CodeWithScope(Box::new((code, self.object(depth)?)))
            }
            class::MAX_KEY => Value::MaxKey,
            _ => return Err(broken("unknown class")),
        })
    }

    fn body_checked(&mut self, class: u8, depth: usize) -> Result<Value> {
        if depth > DEPTH_MAX {
            return Err(broken("nested too deep"));
        }
        self.body(class, depth)
    }

    fn object(&mut self, depth: usize) -> Result<Document> {
        let mut doc = Document::new();
        while self.byte()? != class::END {
            let name = self.text()?;
            doc.push(name, self.value(depth + 1)?);
        }
        Ok(doc)
    }

    fn nan(&mut self) -> Result<Value> {
        let value = match self.notes.kind() {
            None => return Ok(Value::Double(f64::from_bits(type_bits::PLAIN_NAN))),
            Some(type_bits::DOUBLE_NAN) => self.notes.take().map(|b| Value::Double(f64::from_le_bytes(b))),
            Some(type_bits::DECIMAL_RAW) => self.raw_decimal(),
            Some(_) => None,
        };
        self.noted(value)
    }

    fn zero(&mut self) -> Result<Value> {
        let value = match self.notes.kind() {
            None => return Ok(Value::Int32(0)),
            Some(type_bits::INT64) => Some(Value::Int64(0)),
            Some(type_bits::DOUBLE) => Some(Value::Double(0.0)),
            Some(type_bits::MINUS_ZERO) => Some(Value::Double(-0.0)),
            Some(type_bits::DECIMAL_RAW) => self.raw_decimal(),
            Some(_) => None,
        };
        self.noted(value)
    }

    fn raw_decimal(&mut self) -> Option<Value> {
        self.notes.take().map(|b| Value::Decimal128(Decimal128::from_bytes(b)))
    }

    fn noted(&mut self, value: Option<Value>) -> Result<Value> {
        self.notes.done();
        value.ok_or_else(|| broken("type bits do not fit the number"))
    }

    fn number(&mut self, negative: bool) -> Result<Value> {
        if negative {
            self.mask ^= 0xFF;
        }
        let magnitude = self.magnitude();
        if negative {
            self.mask ^= 0xFF;
        }
        let (bits, tail) = magnitude?;
        let double = f64::from_bits(bits);
        let signed = if negative { -double } else { double };
        // The value if it is whole and fits a long.
        let whole = match tail {
            None if number::suggests_integer(signed) => Some(signed as i64),
            None => None,
            Some(tail) => tail.at_exponent(0).and_then(|v| {
                let v = i128::try_from(v).ok()?;
                i64::try_from(if negative { -v } else { v }).ok()
            }),
        };
        let value = match self.notes.kind() {
            None => {
                return match (whole, tail) {
                    (Some(v), _) => Ok(i32::try_from(v).map_or(Value::Int64(v), Value::Int32)),
                    (None, None) => Ok(Value::Double(signed)),
                    // Only decimals are left, and they always have a note; a reader that skips has none.
                    (None, Some(_)) => Ok(Value::Double(signed)),
                };
            }
            Some(type_bits::INT64) => whole.map(Value::Int64),
            Some(type_bits::DOUBLE) => tail.is_none().then_some(Value::Double(signed)),
            Some(type_bits::DECIMAL) => self.notes.take().and_then(|exponent| {
                let exponent = i32::from(i16::from_le_bytes(exponent));
                let tail = match tail {
                    Some(tail) => tail,
                    None => match number::parts(Decimal128::from_f64_exact(double)) {
                        number::Parts::Finite {
                            coefficient, exponent, ..
                        } if coefficient != 0 => Tail::new(coefficient, exponent),
                        _ => return None,
                    },
                };
                number::assemble(negative, tail.at_exponent(exponent)?, exponent).map(Value::Decimal128)
            }),
            Some(type_bits::DECIMAL_RAW) => self.raw_decimal(),
            Some(_) => None,
        };
        self.noted(value)
    }

    /// The double's bits, and the tail if there is one.
    fn magnitude(&mut self) -> Result<(u64, Option<Tail>)> {
        let mut bits = 0;
        for shift in (0..9).map(|i| 56 - 7 * i) {
            let byte = self.byte()?;
            bits |= u64::from(byte >> 1) << shift;
            if byte & 1 == 0 {
                return Ok((bits, None));
            }
        }
        Ok((bits, Some(Tail::from_bytes(self.take()?))))
    }
}
