//! `$dateTrunc`: the start of the bin of time that a date lies in. Bins are counted from 2000-01-01 (weeks from the
//! first start of a week after it) on the local calendar.

use super::diff::{start_of_week, unit_of};
use super::unit::{Unit, week_start};
use super::zone::Zone;
use super::{instant, zone_of};
use crate::env::{Env, Scope, Val};
use crate::expr::Expr;
use crate::expr::args::{Named, error};
use crate::expr::parse::OpDef;
use nestor_model::date::{Civil, DAY_MS, days_from_civil};
use nestor_model::number::whole_number;
use nestor_model::{Result, ValueRef};

pub(crate) const OPERATORS: &[OpDef] = &[OpDef::custom("$dateTrunc", parse_trunc)];

/// Arguments: date, unit, bin size, time zone, start of week.
fn parse_trunc(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let args = Named {
        not_object: 5_439_007,
        unknown: 5_439_008,
        fields: &[
            ("date", Some(5_439_009)),
            ("unit", Some(5_439_010)),
            ("binSize", None),
            ("timezone", None),
            ("startOfWeek", None),
        ],
    }
    .parse(name, value, scope)?;
    Expr::call_of(name, date_trunc, args)
}

fn date_trunc<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let date = args[0].eval_ref(env)?;
    let unit = args[1].eval_ref(env)?;
    if date.is_nullish() || unit.is_nullish() {
        return Ok(Val::NULL);
    }
    let size = if args[2].is_absent() {
        None
    } else {
        let size = args[2].eval_ref(env)?;
        if size.is_nullish() {
            return Ok(Val::NULL);
        }
        Some(size)
    };
    let Some(zone) = zone_of(&args[3], env)? else {
        return Ok(Val::NULL);
    };
    let Some(ms) = instant(date.as_ref()) else {
        return Err(error(
            5_166_307,
            format!(
                "$dateTrunc requires 'date' to be a date, but got {}",
                date.as_ref().bson_type().alias()
            ),
        ));
    };
    let unit = unit_of("$dateTrunc", unit.as_ref())?;
    let size = match size {
        None => 1,
        Some(size) => match whole_number(size.as_ref()) {
            None => {
                return Err(error(
                    5_439_017,
                    format!("$dateTrunc requires 'binSize' to be a whole number, got {size:?}"),
                ));
            }
            Some(size) if size <= 0 => {
                return Err(error(
                    5_439_018,
                    format!("$dateTrunc requires 'binSize' to be above 0, but got {size}"),
                ));
            }
            Some(size) => size,
        },
    };
    let Some(first_day) = start_of_week("$dateTrunc", &args[4], unit, env)? else {
        return Ok(Val::NULL);
    };
    // MongoDB lets a null start of week count for any unit unless the date is constant.
    if unit != Unit::Week && args[0].constant().is_none() && !args[4].is_absent() && args[4].eval_ref(env)?.is_nullish()
    {
        return Ok(Val::NULL);
    }
    truncate(ms, unit, size, &zone, first_day).map(|ms| Val::Ref(ValueRef::DateTime(ms)))
}

const REFERENCE_YEAR: i64 = 2000;

/// The start of the bin of `size` units. Errors: 5439002 and 5439006 a bin beyond the range of dates.
pub(crate) fn truncate(ms: i64, unit: Unit, size: i64, zone: &Zone, first_day: u32) -> Result<i64> {
    let too_large = |code: i32| move || error(code, "$dateTrunc: 'binSize' is too large");
    if unit.is_clock() {
        let bin = unit
            .ms()
            .unwrap_or(1)
            .checked_mul(size)
            .ok_or_else(too_large(5_439_002))?;
        // Bins begin at the local start of 2000.
        let reference = days_from_civil(REFERENCE_YEAR, 1, 1) * DAY_MS;
        let reference = zone.instant_of(reference).unwrap_or(reference);
        let distance = ms.checked_sub(reference).ok_or_else(too_large(5_439_002))?;
        return distance
            .div_euclid(bin)
            .checked_mul(bin)
            .and_then(|start| start.checked_add(reference))
            .ok_or_else(too_large(5_439_002));
    }
    let local = zone.to_local(ms);
    if let Some(months) = unit.months() {
        let bin = months
            .checked_mul(size)
            .filter(|n| *n <= 12 * 600_000_000)
            .ok_or_else(too_large(5_439_006))?;
        let c = Civil::from_ms(local);
        let number = (c.year - REFERENCE_YEAR) * 12 + i64::from(c.month) - 1;
        let start = number.div_euclid(bin) * bin;
        let first = Civil {
            year: REFERENCE_YEAR + start.div_euclid(12),
            month: start.rem_euclid(12) as u32 + 1,
            day: 1,
            hour: 0,
            minute: 0,
            second: 0,
            millisecond: 0,
        };
        return first
            .to_ms()
            .and_then(|local| zone.instant_of(local))
            .ok_or_else(too_large(5_439_006));
    }
    let (day, reference, bin) = if unit == Unit::Week {
        // The first start of a week on or after the reference day.
        let reference = week_start((days_from_civil(REFERENCE_YEAR, 1, 1) + 6) * DAY_MS, first_day);
        (local.div_euclid(DAY_MS), reference, size.checked_mul(7))
    } else {
        (
            local.div_euclid(DAY_MS),
            days_from_civil(REFERENCE_YEAR, 1, 1),
            Some(size),
        )
    };
    let bin = bin.ok_or_else(too_large(5_439_005))?;
    (day - reference)
        .div_euclid(bin)
        .checked_mul(bin)
        .and_then(|start| start.checked_add(reference))
        .and_then(|day| day.checked_mul(DAY_MS))
        .and_then(|local| zone.instant_of(local))
        .ok_or_else(too_large(5_439_005))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::date::{format_iso, parse_iso};

    #[test]
    fn bins() {
        for (date, unit, size, zone, first_day, expected) in [
            ("2021-03-20T11:30:05Z", "month", 1, "UTC", 0, "2021-03-01T00:00:00.000Z"),
            ("2021-03-20T11:30:05Z", "month", 2, "UTC", 0, "2021-03-01T00:00:00.000Z"),
            ("2021-04-20T11:30:05Z", "month", 2, "UTC", 0, "2021-03-01T00:00:00.000Z"),
            ("2021-03-20T11:30:05Z", "year", 5, "UTC", 0, "2020-01-01T00:00:00.000Z"),
            ("1999-03-20T11:30:05Z", "year", 5, "UTC", 0, "1995-01-01T00:00:00.000Z"),
            ("2021-03-20T11:30:05Z", "week", 1, "UTC", 0, "2021-03-14T00:00:00.000Z"),
            (
                "2021-03-20T11:30:05Z",
                "week",
                2,
                "America/Los_Angeles",
                1,
                "2021-03-15T07:00:00.000Z",
            ),
            (
                "2021-03-20T11:30:05Z",
                "day",
                1,
                "Asia/Kolkata",
                0,
                "2021-03-19T18:30:00.000Z",
            ),
            ("2021-03-20T11:30:05Z", "hour", 2, "UTC", 0, "2021-03-20T10:00:00.000Z"),
            (
                "2021-03-20T11:30:05Z",
                "hour",
                1,
                "Asia/Kolkata",
                0,
                "2021-03-20T11:30:00.000Z",
            ),
            (
                "2021-03-20T11:30:05Z",
                "second",
                10,
                "UTC",
                0,
                "2021-03-20T11:30:00.000Z",
            ),
        ] {
            let (zone, unit) = (Zone::parse(zone).expect("a zone"), Unit::parse(unit).expect("a unit"));
            let start = truncate(parse_iso(date).expect("a date"), unit, size, &zone, first_day).expect("in range");
            assert_eq!(format_iso(start), expected, "{date} {unit:?} {size}");
        }
    }
}
