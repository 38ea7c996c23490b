//! `$dateToString`.

use super::fields::{iso_weekday, week};
use super::pattern::{Piece, check_constant, split};
use super::zone::{Zone, day_of_year, iso_week, weekday};
use super::{instant, zone_of};
use crate::env::{Env, Scope, Val};
use crate::expr::Expr;
use crate::expr::args::{Named, error};
use crate::expr::parse::OpDef;
use nestor_model::date::{Civil, MONTHS};
use nestor_model::{Result, ValueRef};
use std::fmt::Write as _;

pub(crate) const OPERATORS: &[OpDef] = &[OpDef::custom("$dateToString", parse_to_string)];

const LETTERS: &str = "dGHjLmMSuUVwYzZbB";

/// Arguments: date, format, time zone, value for null.
fn parse_to_string(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let args = Named {
        not_object: 18629,
        unknown: 18534,
        fields: &[
            ("date", Some(18628)),
            ("format", None),
            ("timezone", None),
            ("onNull", None),
        ],
    }
    .parse(name, value, scope)?;
    check_constant(&args[1], LETTERS, format_type)?;
    Expr::call_of(name, to_string, args)
}

fn format_type(value: ValueRef<'_>) -> nestor_model::Error {
    error(
        18533,
        format!(
            "$dateToString requires that 'format' be a string, found: {}",
            value.bson_type().alias()
        ),
    )
}

fn to_string<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let format = args[1].eval_ref(env)?;
    let zone = zone_of(&args[2], env)?;
    let date = args[0].eval_ref(env)?;
    if date.is_nullish() {
        return if args[3].is_absent() {
            Ok(Val::NULL)
        } else {
            args[3].eval_ref(env)
        };
    }
    let Some(zone) = zone else {
        return Ok(Val::NULL);
    };
    let format = match format.as_ref() {
        ValueRef::String(format) => format,
        _ if args[1].is_absent() && zone.is_utc() => "%Y-%m-%dT%H:%M:%S.%LZ",
        _ if args[1].is_absent() => "%Y-%m-%dT%H:%M:%S.%L",
        other if other.is_nullish() => return Ok(Val::NULL),
        other => return Err(format_type(other)),
    };
    let Some(ms) = instant(date.as_ref()) else {
        return Err(error(
            16006,
            format!(
                "can't convert from BSON type {} to Date",
                date.as_ref().bson_type().alias()
            ),
        ));
    };
    print(ms, &zone, format).map(Val::from)
}

/// Prints. Errors: those of the format; 18537 a year outside 0 to 9999.
pub(crate) fn print(ms: i64, zone: &Zone, format: &str) -> Result<String> {
    let pieces = split(format, LETTERS)?;
    let local = zone.to_local(ms);
    let c = Civil::from_ms(local);
    let mut out = String::with_capacity(format.len() + 16);
    let four = |year: i64, out: &mut String| {
        if !(0..=9999).contains(&year) {
            return Err(error(
                18537,
                format!("$dateToString is only defined on year 0-9999, tried to use year {year}"),
            ));
        }
        let _ = write!(out, "{year:04}");
        Ok(())
    };
    for piece in pieces {
        let letter = match piece {
            Piece::Text(text) => {
                out.push_str(text);
                continue;
            }
            Piece::Field(letter) => letter,
        };
        // Writing to a string cannot fail.
        let _ = match letter {
            'Y' => four(c.year, &mut out).map(|()| Ok(()))?,
            'G' => four(iso_week(local).0, &mut out).map(|()| Ok(()))?,
            'm' => write!(out, "{:02}", c.month),
            'd' => write!(out, "{:02}", c.day),
            'H' => write!(out, "{:02}", c.hour),
            'M' => write!(out, "{:02}", c.minute),
            'S' => write!(out, "{:02}", c.second),
            'L' => write!(out, "{:03}", c.millisecond),
            'j' => write!(out, "{:03}", day_of_year(&c)),
            'U' => write!(out, "{:02}", week(local)),
            'V' => write!(out, "{:02}", iso_week(local).1),
            'u' => write!(out, "{}", iso_weekday(local)),
            'w' => write!(out, "{}", weekday(local) + 1),
            'b' => write!(out, "{}", &MONTHS[(c.month as usize - 1) % 12][..3]),
            'B' => write!(out, "{}", MONTHS[(c.month as usize - 1) % 12]),
            'z' => {
                let minutes = zone.offset_ms(ms) / 60_000;
                let sign = if minutes < 0 { '-' } else { '+' };
                write!(out, "{sign}{:02}{:02}", minutes.abs() / 60, minutes.abs() % 60)
            }
            _ => match zone.offset_ms(ms) / 60_000 {
                // No offset has no sign.
                0 => write!(out, "0"),
                minutes => write!(out, "{minutes:+}"),
            },
        };
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use crate::expr::testing::check;

    #[test]
    fn formats() {
        check(
            r#"{"d": {"$date": "2024-03-10T07:30:45.123Z"}, "n": null, "f": "%Y"}"#,
            &[
                (r#"{"$dateToString": {"date": "$d"}}"#, r#""2024-03-10T07:30:45.123Z""#),
                (
                    r#"{"$dateToString": {"date": "$d", "timezone": "America/New_York"}}"#,
                    r#""2024-03-10T03:30:45.123""#,
                ),
                (
                    r#"{"$dateToString": {"date": "$d", "format": "%d.%m.%G %j %U %V %u %w %b %B %z %Z %%", "timezone": "+05:30"}}"#,
                    r#""10.03.2024 070 10 10 7 1 Mar March +0530 +330 %""#,
                ),
                (r#"{"$dateToString": {"date": "$d", "format": "$f"}}"#, r#""2024""#),
                (r#"{"$dateToString": {"date": "$n", "onNull": 1}}"#, "1"),
                (r#"{"$dateToString": {"date": "$d", "format": "%q"}}"#, "error 18536"),
                (r#"{"$dateToString": {"date": "$d", "format": 5}}"#, "error 18533"),
                (r#"{"$dateToString": {"date": 5}}"#, "error 16006"),
                (r#"{"$dateToString": {"format": "%Y"}}"#, "error 18628"),
            ],
        );
    }
}
