//! `$dateFromParts`, `$dateToParts`.

use super::fields::iso_weekday;
use super::zone::{iso_week, iso_year_start};
use super::{instant, zone_of};
use crate::env::{Env, Scope, Val};
use crate::expr::Expr;
use crate::expr::args::{Named, error, whole_i32};
use crate::expr::parse::OpDef;
use nestor_model::date::{Civil, DAY_MS, days_from_civil};
use nestor_model::{Result, ValueRef, doc};

pub(crate) const OPERATORS: &[OpDef] = &[
    OpDef::custom("$dateFromParts", parse_from_parts),
    OpDef::custom("$dateToParts", parse_to_parts),
];

/// Arguments in this order; the first three are of the ISO calendar or of the civil one.
const FIELDS: &[(&str, Option<i32>)] = &[
    ("year", None),
    ("month", None),
    ("day", None),
    ("isoWeekYear", None),
    ("isoWeek", None),
    ("isoDayOfWeek", None),
    ("hour", None),
    ("minute", None),
    ("second", None),
    ("millisecond", None),
    ("timezone", None),
];

fn parse_from_parts(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let args = Named {
        not_object: 40519,
        unknown: 40518,
        fields: FIELDS,
    }
    .parse(name, value, scope)?;
    let given = |i: usize| !args[i].is_absent();
    if !given(0) && !given(3) {
        return Err(error(
            40516,
            "$dateFromParts requires either 'year' or 'isoWeekYear' to be present",
        ));
    }
    if given(0) && (given(3) || given(4) || given(5)) {
        return Err(error(
            40489,
            "$dateFromParts does not allow mixing natural dates with ISO dates",
        ));
    }
    if given(3) && (given(0) || given(1) || given(2)) {
        return Err(error(
            40525,
            "$dateFromParts does not allow mixing ISO dates with natural dates",
        ));
    }
    Expr::call_of(name, from_parts, args)
}

fn from_parts<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let iso = !args[3].is_absent();
    let mut parts = [0i64; 10];
    let mut null = false;
    for (i, part) in parts.iter_mut().enumerate() {
        if args[i].is_absent() {
            *part = i64::from(i < 6);
            continue;
        }
        let value = args[i].eval_ref(env)?;
        if value.is_nullish() {
            null = true;
            continue;
        }
        let name = FIELDS[i].0;
        // Milliseconds may be many; the others are 32-bit numbers.
        let number = if i == 9 {
            nestor_model::number::whole_number(value.as_ref())
        } else {
            whole_i32(value.as_ref()).map(i64::from)
        };
        let Some(number) = number else {
            return Err(error(
                40515,
                format!("'{name}' must evaluate to an integer, found {value:?}"),
            ));
        };
        if matches!(i, 0 | 3) && !(1..=9999).contains(&number) {
            return Err(error(
                40523,
                format!("'{name}' must evaluate to an integer in the range 1 to 9999, found {number}"),
            ));
        }
        if !matches!(i, 0 | 3 | 8 | 9) && !(-32_768..=32_767).contains(&number) {
            return Err(error(
                31034,
                format!("'{name}' must evaluate to a value in the range [-32768, 32767]; found {number}"),
            ));
        }
        *part = number;
    }
    let Some(zone) = zone_of(&args[10], env)? else {
        return Ok(Val::NULL);
    };
    if null {
        return Ok(Val::NULL);
    }
    let [year, month, day, iso_year, iso_week, iso_day, hour, minute, second, ms] = parts;
    // Values beyond their usual range carry over.
    let days = if iso {
        iso_year_start(iso_year) + (iso_week - 1) * 7 + iso_day - 1
    } else {
        let months = year * 12 + month - 1;
        days_from_civil(months.div_euclid(12), months.rem_euclid(12) as u32 + 1, 1) + day - 1
    };
    let local = (days * DAY_MS + hour * 3_600_000 + minute * 60_000 + second * 1000).checked_add(ms);
    match local.and_then(|local| zone.instant_of(local)) {
        Some(ms) => Ok(Val::Ref(ValueRef::DateTime(ms))),
        None => Err(nestor_model::Error::new(
            nestor_model::ErrorCode::DurationOverflow,
            "$dateFromParts: the date is out of range",
        )),
    }
}

/// Arguments: date, time zone, ISO calendar.
fn parse_to_parts(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let args = Named {
        not_object: 40524,
        unknown: 40520,
        fields: &[("date", Some(40522)), ("timezone", None), ("iso8601", None)],
    }
    .parse(name, value, scope)?;
    Expr::call_of(name, to_parts, args)
}

fn to_parts<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let date = args[0].eval_ref(env)?;
    let Some(zone) = zone_of(&args[1], env)? else {
        return Ok(Val::NULL);
    };
    let iso = args[2].eval_ref(env)?;
    let iso = match iso.as_ref() {
        ValueRef::Bool(iso) => iso,
        _ if args[2].is_absent() => false,
        other if other.is_nullish() => return Ok(Val::NULL),
        other => {
            return Err(error(
                40521,
                format!("iso8601 must evaluate to a bool, found {}", other.bson_type().alias()),
            ));
        }
    };
    let ms = match instant(date.as_ref()) {
        Some(ms) => ms,
        None if date.is_nullish() => return Ok(Val::NULL),
        None => {
            return Err(error(
                16006,
                format!(
                    "can't convert from BSON type {} to Date",
                    date.as_ref().bson_type().alias()
                ),
            ));
        }
    };
    let local = zone.to_local(ms);
    let c = Civil::from_ms(local);
    let mut parts = if iso {
        let (year, week) = iso_week(local);
        doc! { "isoWeekYear": year as i32, "isoWeek": week as i32, "isoDayOfWeek": iso_weekday(local) as i32 }
    } else {
        doc! { "year": c.year as i32, "month": c.month as i32, "day": c.day as i32 }
    };
    parts.push("hour", c.hour as i32);
    parts.push("minute", c.minute as i32);
    parts.push("second", c.second as i32);
    parts.push("millisecond", c.millisecond as i32);
    Ok(parts.into())
}

#[cfg(test)]
mod tests {
    use crate::expr::testing::check;

    #[test]
    fn parts() {
        check(
            r#"{"d": {"$date": "2024-03-10T07:30:45.123Z"}, "n": null}"#,
            &[
                (
                    r#"{"$dateToParts": {"date": "$d", "timezone": "-08:00"}}"#,
                    r#"{"year": 2024, "month": 3, "day": 9, "hour": 23, "minute": 30, "second": 45, "millisecond": 123}"#,
                ),
                (
                    r#"{"$dateToParts": {"date": "$d", "iso8601": true}}"#,
                    r#"{"isoWeekYear": 2024, "isoWeek": 10, "isoDayOfWeek": 7, "hour": 7, "minute": 30, "second": 45, "millisecond": 123}"#,
                ),
                (
                    r#"{"$eq": [{"$dateFromParts": {"year": 2024, "month": 14, "day": 0}}, {"$toDate": "2025-01-31"}]}"#,
                    "true",
                ),
                (
                    r#"{"$eq": [{"$dateFromParts": {"isoWeekYear": 2020}}, {"$toDate": "2019-12-30"}]}"#,
                    "true",
                ),
                (r#"{"$dateFromParts": {"year": 0}}"#, "error 40523"),
                (r#"{"$dateFromParts": {"year": 2000, "isoWeek": 1}}"#, "error 40489"),
                (r#"{"$dateFromParts": {"month": 1}}"#, "error 40516"),
                (r#"{"$dateFromParts": {"year": "$n"}}"#, "null"),
                (r#"{"$dateFromParts": {"year": 1.5}}"#, "error 40515"),
            ],
        );
    }
}
