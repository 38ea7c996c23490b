//! `$dateDiff`: how many unit boundaries lie between two dates.

use super::unit::{Unit, parse_weekday, week_start};
use super::zone::Zone;
use super::{instant, zone_of};
use crate::env::{Env, Scope, Val};
use crate::expr::Expr;
use crate::expr::args::{Named, error};
use crate::expr::parse::OpDef;
use nestor_model::date::{Civil, DAY_MS};
use nestor_model::{Error, Result, ValueRef};

pub(crate) const OPERATORS: &[OpDef] = &[OpDef::custom("$dateDiff", parse_diff)];

/// Arguments: start, end, unit, time zone, start of week.
fn parse_diff(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let args = Named {
        not_object: 5_166_301,
        unknown: 5_166_302,
        fields: &[
            ("startDate", Some(5_166_303)),
            ("endDate", Some(5_166_304)),
            ("unit", Some(5_166_305)),
            ("timezone", None),
            ("startOfWeek", None),
        ],
    }
    .parse(name, value, scope)?;
    Expr::call_of(name, date_diff, args)
}

/// A unit given as an argument. Errors: 5439013 no string, 9 no unit.
pub(super) fn unit_of(op: &str, value: ValueRef<'_>) -> Result<Unit> {
    let ValueRef::String(name) = value else {
        return Err(error(
            5_439_013,
            format!(
                "{op} requires 'unit' to be a string, but got {}",
                value.bson_type().alias()
            ),
        ));
    };
    Unit::parse(name).ok_or_else(|| Error::failed_to_parse(format!("unknown time unit value: {name}")))
}

/// The start of the week when the unit is a week, Sunday by default; `None` for null. Errors: 5439015 no string, 5439016 no day.
pub(super) fn start_of_week<'a>(op: &str, arg: &'a Expr, unit: Unit, env: &mut Env<'a>) -> Result<Option<u32>> {
    if arg.is_absent() || unit != Unit::Week {
        return Ok(Some(0));
    }
    let value = arg.eval_ref(env)?;
    match value.as_ref() {
        ValueRef::String(name) => match parse_weekday(name) {
            Some(day) => Ok(Some(day)),
            None => Err(error(5_439_016, format!("{op}: unknown day of week value: {name}"))),
        },
        other if other.is_nullish() => Ok(None),
        other => Err(error(
            5_439_015,
            format!(
                "{op} requires 'startOfWeek' to be a string, but got {}",
                other.bson_type().alias()
            ),
        )),
    }
}

fn date_diff<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let start = args[0].eval_ref(env)?;
    let end = args[1].eval_ref(env)?;
    let unit = args[2].eval_ref(env)?;
    if start.is_nullish() || end.is_nullish() || unit.is_nullish() {
        return Ok(Val::NULL);
    }
    let zone = zone_of(&args[3], env)?;
    let Some(zone) = zone else {
        return Ok(Val::NULL);
    };
    let date = |value: &Val<'_>, which: &str| {
        instant(value.as_ref()).ok_or_else(|| {
            let kind = value.as_ref().bson_type().alias();
            error(
                5_166_307,
                format!("$dateDiff requires '{which}' to be a date, but got {kind}"),
            )
        })
    };
    let unit = unit_of("$dateDiff", unit.as_ref())?;
    let Some(first_day) = start_of_week("$dateDiff", &args[4], unit, env)? else {
        return Ok(Val::NULL);
    };
    let (start, end) = (date(&start, "startDate")?, date(&end, "endDate")?);
    match difference(start, end, unit, &zone, first_day) {
        Some(count) => Ok(count.into()),
        None => Err(error(5_166_308, "$dateDiff overflowed")),
    }
}

/// Boundaries of `unit` between two instants; negative when the end comes first.
pub(crate) fn difference(start: i64, end: i64, unit: Unit, zone: &Zone, first_day: u32) -> Option<i64> {
    if unit == Unit::Millisecond {
        return end.checked_sub(start);
    }
    if unit.is_clock() {
        // Hours begin where the local clock shows them, also in zones that are half an hour off.
        let size = unit.ms()?;
        let number = |ms: i64| zone.to_local(ms).div_euclid(size);
        // A clock that was put back in between does not count twice.
        let offsets = zone.offset_ms(end) - zone.offset_ms(start);
        return number(end).checked_sub(number(start))?.checked_sub(offsets / size);
    }
    let (start, end) = (zone.to_local(start), zone.to_local(end));
    let number = |local: i64| {
        let c = Civil::from_ms(local);
        match unit {
            Unit::Year => c.year,
            Unit::Quarter => c.year * 4 + i64::from(c.month - 1) / 3,
            Unit::Month => c.year * 12 + i64::from(c.month),
            Unit::Week => week_start(local, first_day).div_euclid(7),
            _ => local.div_euclid(DAY_MS),
        }
    };
    if unit == Unit::Week {
        return Some((week_start(end, first_day) - week_start(start, first_day)) / 7);
    }
    number(end).checked_sub(number(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::date::parse_iso;

    #[test]
    fn boundaries_are_counted() {
        let utc = "UTC";
        for (start, end, unit, zone, expected) in [
            ("2020-12-31T23:59:59Z", "2021-01-01T00:00:00Z", "year", utc, 1),
            ("2020-01-01T00:00:00Z", "2020-12-31T23:59:59Z", "year", utc, 0),
            ("2021-01-31T00:00:00Z", "2020-12-01T00:00:00Z", "month", utc, -1),
            ("2020-03-31T00:00:00Z", "2020-04-01T00:00:00Z", "quarter", utc, 1),
            ("2021-01-23T00:00:00Z", "2021-01-24T00:00:00Z", "week", utc, 1),
            ("2021-01-24T00:00:00Z", "2021-01-30T23:00:00Z", "week", utc, 0),
            (
                "2021-01-01T23:00:00Z",
                "2021-01-02T01:00:00Z",
                "day",
                "America/New_York",
                0,
            ),
            ("2021-01-01T00:59:59Z", "2021-01-01T01:00:00Z", "hour", utc, 1),
            (
                "2021-11-07T05:30:00Z",
                "2021-11-07T06:30:00Z",
                "hour",
                "America/New_York",
                1,
            ),
            ("2021-01-01T00:00:00Z", "2021-01-01T00:01:01Z", "second", utc, 61),
        ] {
            let ms = |text| parse_iso(text).expect("a date");
            let (zone, unit) = (Zone::parse(zone).expect("a zone"), Unit::parse(unit).expect("a unit"));
            assert_eq!(
                difference(ms(start), ms(end), unit, &zone, 0),
                Some(expected),
                "{start} {end} {unit:?}"
            );
        }
    }
}
