//! Parts of a date as numbers: `$year`, `$dayOfMonth`, `$isoWeek` and so on.

use super::zone::{day_of_year, iso_week, weekday};
use super::{instant, zone_of};
use crate::env::{Env, Scope, Val};
use crate::expr::args::{Named, error};
use crate::expr::parse::OpDef;
use crate::expr::{EvalFn, Expr};
use nestor_model::date::Civil;
use nestor_model::{Result, Value, ValueRef};

pub(crate) const OPERATORS: &[OpDef] = &[
    OpDef::custom("$year", parse_field),
    OpDef::custom("$month", parse_field),
    OpDef::custom("$dayOfMonth", parse_field),
    OpDef::custom("$dayOfYear", parse_field),
    OpDef::custom("$dayOfWeek", parse_field),
    OpDef::custom("$hour", parse_field),
    OpDef::custom("$minute", parse_field),
    OpDef::custom("$second", parse_field),
    OpDef::custom("$millisecond", parse_field),
    OpDef::custom("$week", parse_field),
    OpDef::custom("$isoWeek", parse_field),
    OpDef::custom("$isoWeekYear", parse_field),
    OpDef::custom("$isoDayOfWeek", parse_field),
];

/// Arguments: date, time zone. Forms: an expression, an array of one, or an object of the two.
fn parse_field(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let args = match value {
        ValueRef::Document(doc) if !doc.iter().next().is_some_and(|(field, _)| field.starts_with('$')) => Named {
            not_object: 40535,
            unknown: 40535,
            fields: &[("date", Some(40539)), ("timezone", None)],
        }
        .parse(name, value, scope)?,
        ValueRef::Array(items) => {
            let mut items = items.iter();
            let (Some(item), None) = (items.next(), items.next()) else {
                return Err(error(
                    40536,
                    format!("{name} accepts exactly one argument if given an array"),
                ));
            };
            Box::new([Expr::parse(item, scope)?, Expr::ABSENT])
        }
        other => Box::new([Expr::parse(other, scope)?, Expr::ABSENT]),
    };
    Expr::call_of(name, reader(name), args)
}

/// The operator's function.
fn reader(name: &str) -> EvalFn {
    macro_rules! read {
        ($($operator:literal => $part:expr),* $(,)?) => {
            match name {
                $($operator => |args, env| read(args, env, $part),)*
                _ => |args, env| read(args, env, |_| Value::Null),
            }
        };
    }
    read! {
        "$year" => |local| (Civil::from_ms(local).year as i32).into(),
        "$month" => |local| (Civil::from_ms(local).month as i32).into(),
        "$dayOfMonth" => |local| (Civil::from_ms(local).day as i32).into(),
        "$dayOfYear" => |local| (day_of_year(&Civil::from_ms(local)) as i32).into(),
        "$dayOfWeek" => |local| (weekday(local) as i32 + 1).into(),
        "$hour" => |local| (Civil::from_ms(local).hour as i32).into(),
        "$minute" => |local| (Civil::from_ms(local).minute as i32).into(),
        "$second" => |local| (Civil::from_ms(local).second as i32).into(),
        "$millisecond" => |local| (Civil::from_ms(local).millisecond as i32).into(),
        "$week" => |local| (week(local) as i32).into(),
        "$isoWeek" => |local| (iso_week(local).1 as i32).into(),
        "$isoWeekYear" => |local| iso_week(local).0.into(),
        "$isoDayOfWeek" => |local| (iso_weekday(local) as i32).into(),
    }
}

/// Weeks start on Sundays; days before the first Sunday are in week 0.
pub(super) fn week(local: i64) -> i64 {
    (day_of_year(&Civil::from_ms(local)) + 6 - i64::from(weekday(local))) / 7
}

/// 1 for Monday to 7 for Sunday.
pub(super) fn iso_weekday(local: i64) -> u32 {
    (weekday(local) + 6) % 7 + 1
}

fn read<'a>(args: &'a [Expr], env: &mut Env<'a>, part: fn(i64) -> Value) -> Result<Val<'a>> {
    let date = args[0].eval_ref(env)?;
    let Some(zone) = zone_of(&args[1], env)? else {
        return Ok(Val::NULL);
    };
    match instant(date.as_ref()) {
        Some(ms) => Ok(part(zone.to_local(ms)).into()),
        None if date.is_nullish() => Ok(Val::NULL),
        None => Err(error(
            16006,
            format!(
                "can't convert from BSON type {} to Date",
                date.as_ref().bson_type().alias()
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use crate::expr::testing::check;

    #[test]
    fn parts_of_a_date() {
        check(
            r#"{"d": {"$date": "2024-03-10T07:30:45.123Z"}, "n": null}"#,
            &[
                (r#"{"$year": "$d"}"#, "2024"),
                (r#"{"$hour": {"date": "$d", "timezone": "America/New_York"}}"#, "3"),
                (r#"{"$dayOfYear": ["$d"]}"#, "70"),
                (r#"{"$dayOfWeek": "$d"}"#, "1"),
                (r#"{"$week": "$d"}"#, "10"),
                (r#"{"$isoWeek": "$d"}"#, "10"),
                (r#"{"$isoWeekYear": "$d"}"#, "Long(2024)"),
                (r#"{"$isoDayOfWeek": "$d"}"#, "7"),
                (r#"{"$millisecond": "$d"}"#, "123"),
                (r#"{"$month": "$n"}"#, "null"),
                (r#"{"$month": {"date": "$d", "timezone": "$n"}}"#, "null"),
                (r#"{"$month": {"date": "$d", "timezone": 5}}"#, "error 40517"),
                (r#"{"$month": {"date": "$d", "timezone": "x"}}"#, "error 40485"),
                (r#"{"$month": "x"}"#, "error 16006"),
                (r#"{"$month": {"timezone": "UTC"}}"#, "error 40539"),
                (r#"{"$month": ["$d", "$d"]}"#, "error 40536"),
                (r#"{"$year": {"$toDate": "2020-01-01"}}"#, "2020"),
            ],
        );
    }
}
