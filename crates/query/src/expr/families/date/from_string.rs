//! `$dateFromString`: text into dates, by a format or by the common ways to write them.

use super::free_text::parse;
use super::pattern::{Piece, check_constant, split};
use super::reader::{Fields, Reader, failure, read_zone, within};
use super::zone::Zone;
use super::{zone_of, zone_value};
use crate::env::{Env, Scope, Val};
use crate::expr::Expr;
use crate::expr::args::{Named, error};
use crate::expr::parse::OpDef;
use nestor_model::date::month_of;
use nestor_model::{Error, ErrorCode, Result, ValueRef};

pub(crate) const OPERATORS: &[OpDef] = &[OpDef::custom("$dateFromString", parse_from_string)];

const LETTERS: &str = "dGHjLmMSuVYzZbB";

/// Arguments: text, format, time zone, value on error, value for null.
fn parse_from_string(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let args = Named {
        not_object: 40540,
        unknown: 40541,
        fields: &[
            ("dateString", Some(40542)),
            ("format", None),
            ("timezone", None),
            ("onError", None),
            ("onNull", None),
        ],
    }
    .parse(name, value, scope)?;
    check_constant(&args[1], LETTERS, format_type)?;
    Expr::call_of(name, from_string, args)
}

fn format_type(value: ValueRef<'_>) -> Error {
    error(
        40684,
        format!(
            "$dateFromString requires that 'format' be a string, found: {}",
            value.bson_type().alias()
        ),
    )
}

fn from_string<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let text = args[0].eval_ref(env)?;
    let format = args[1].eval_ref(env)?;
    let given_zone = !args[2].is_absent();
    let zone = if given_zone {
        let value = args[2].eval_ref(env)?;
        zone_value(&value)?
    } else {
        zone_of(&args[2], env)?
    };
    let parsed = match (text.as_ref(), format.as_ref()) {
        (other, _) if other.is_nullish() => {
            return if args[4].is_absent() {
                Ok(Val::NULL)
            } else {
                args[4].eval_ref(env)
            };
        }
        (_, other) if !other.is_nullish() && other.as_str().is_none() => return Err(format_type(other)),
        (ValueRef::String(text), format) => {
            let Some(zone) = zone else {
                return Ok(Val::NULL);
            };
            // UTC is as good as no zone: the text may have one of its own.
            let zone = (given_zone && !zone.is_utc()).then_some(zone);
            match format.as_str() {
                Some(format) => parse_with(text, format, zone),
                None if args[1].is_absent() => parse(text, zone),
                None => return Ok(Val::NULL),
            }
        }
        (other, _) => Err(failure(format!(
            "$dateFromString requires that 'dateString' be a string, found: {}",
            other.bson_type().alias()
        ))),
    };
    match parsed {
        Ok(ms) => Ok(Val::Ref(ValueRef::DateTime(ms))),
        Err(e) if e.code() == ErrorCode::ConversionFailure && !args[3].is_absent() => args[3].eval_ref(env),
        Err(e) => Err(e),
    }
}

/// Parses by a format. Errors: 241 the text does not fit; those of formats.
pub(crate) fn parse_with(text: &str, format: &str, zone: Option<Zone>) -> Result<i64> {
    let pieces = split(format, LETTERS)?;
    let bad = || failure(format!("error parsing date string '{text}' with format '{format}'"));
    let mut reader = Reader { rest: text };
    let mut fields = Fields::default();
    for piece in pieces {
        match piece {
            Piece::Text(part) => {
                if !reader.eat(part) {
                    return Err(bad());
                }
            }
            Piece::Field(letter) => read_field(&mut reader, letter, &mut fields).ok_or_else(bad)?,
        }
    }
    if !reader.rest.is_empty() {
        return Err(bad());
    }
    let mixed = (fields.iso_year.is_some() || fields.iso_week.is_some() || fields.iso_day.is_some())
        && (fields.year.is_some() || fields.month.is_some() || fields.day.is_some() || fields.day_of_year.is_some());
    if mixed {
        return Err(bad());
    }
    fields.check_complete(text)?;
    fields.finish(zone).ok_or_else(bad)?
}

fn read_field(reader: &mut Reader<'_>, letter: char, fields: &mut Fields) -> Option<()> {
    match letter {
        'Y' => fields.year = Some(reader.number(4, 4)?),
        'G' => fields.iso_year = Some(reader.number(4, 4)?),
        'm' => fields.month = Some(within(reader.number(1, 2)?, 1, 12)? as u32),
        'd' => fields.day = Some(within(reader.number(1, 2)?, 1, 31)? as u32),
        'H' => fields.hour = Some(within(reader.number(1, 2)?, 0, 24)?),
        'M' => fields.minute = Some(within(reader.number(1, 2)?, 0, 59)?),
        'S' => fields.second = Some(within(reader.number(1, 2)?, 0, 59)?),
        'L' => {
            let before = reader.digits().min(3);
            let value = reader.number(1, 3)?;
            fields.millisecond = Some(value * [100, 10, 1][before.clamp(1, 3) - 1]);
        }
        // MongoDB counts these from zero when it parses, though it prints them from one.
        'j' => fields.day_of_year = Some(within(reader.number(1, 3)?, 0, 366)? + 1),
        'V' => fields.iso_week = Some(within(reader.number(1, 2)?, 1, 53)?),
        'u' => fields.iso_day = Some(within(reader.number(1, 1)?, 1, 7)?),
        'b' | 'B' => fields.month = Some(month_of(reader.letters())?),
        'z' => fields.zone = Some(read_zone(reader)?),
        _ => {
            let sign = if reader.eat("-") {
                -1
            } else {
                i64::from(reader.eat("+"))
            };
            let minutes = reader.number(1, 3)?;
            if sign == 0 {
                return None;
            }
            fields.zone = Some(Zone::Fixed(sign * minutes * 60_000));
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::date::format_iso;

    fn shown(result: Result<i64>) -> String {
        result.map_or_else(|e| format!("error {}", e.code().number()), format_iso)
    }

    #[test]
    fn formats() {
        for (text, format, expected) in [
            ("06-15-2018", "%m-%d-%Y", "2018-06-15T00:00:00.000Z"),
            ("2024-W24-6", "%G-W%V-%u", "2024-06-15T00:00:00.000Z"),
            ("2024 167", "%Y %j", "2024-06-16T00:00:00.000Z"),
            ("2024-06-15 +0530", "%Y-%m-%d %z", "2024-06-14T18:30:00.000Z"),
            ("2024-06-15 -90", "%Y-%m-%d %Z", "2024-06-15T01:30:00.000Z"),
            ("jan 15 2020", "%b %d %Y", "2020-01-15T00:00:00.000Z"),
            ("2017-02-08", "%m-%d-%Y", "error 241"),
            ("2017", "%q", "error 18536"),
            ("2017-05", "%Y-%m", "error 241"),
            ("05-06", "%m-%d", "error 241"),
        ] {
            assert_eq!(shown(parse_with(text, format, None)), expected, "{text} {format}");
        }
    }
}
