//! `$dateAdd`, `$dateSubtract`.

use super::unit::{Unit, add};
use super::{instant, zone_of};
use crate::env::{Env, Scope, Val};
use crate::expr::Expr;
use crate::expr::args::{Named, error};
use crate::expr::parse::OpDef;
use nestor_model::number::whole_number;
use nestor_model::{Error, Result, ValueRef};

pub(crate) const OPERATORS: &[OpDef] = &[
    OpDef::custom("$dateAdd", parse_add),
    OpDef::custom("$dateSubtract", parse_add),
];

/// Arguments: start date, unit, amount, time zone.
fn parse_add(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let args = Named {
        not_object: 5_166_400,
        unknown: 5_166_401,
        fields: &[
            ("startDate", Some(5_166_402)),
            ("unit", Some(5_166_402)),
            ("amount", Some(5_166_402)),
            ("timezone", None),
        ],
    }
    .parse(name, value, scope)?;
    let subtract = name == "$dateSubtract";
    if let Some(amount) = args[2].constant()
        && subtract
        && whole_number(amount.as_ref()) == Some(i64::MIN)
    {
        return Err(error(
            6_045_000,
            format!("invalid {name} 'amount' parameter value: it cannot be negated"),
        ));
    }
    Expr::call_of(
        name,
        if subtract {
            |args, env| date_add(args, env, "$dateSubtract", true)
        } else {
            |args, env| date_add(args, env, "$dateAdd", false)
        },
        args,
    )
}

fn date_add<'a>(args: &'a [Expr], env: &mut Env<'a>, op: &str, subtract: bool) -> Result<Val<'a>> {
    let start = args[0].eval_ref(env)?;
    let unit = args[1].eval_ref(env)?;
    let amount = args[2].eval_ref(env)?;
    if start.is_nullish() || unit.is_nullish() || amount.is_nullish() {
        return Ok(Val::NULL);
    }
    let Some(zone) = zone_of(&args[3], env)? else {
        return Ok(Val::NULL);
    };
    let Some(start) = instant(start.as_ref()) else {
        return Err(error(
            5_166_403,
            format!(
                "{op} requires startDate to be convertible to a date, found {}",
                start.as_ref().bson_type().alias()
            ),
        ));
    };
    let ValueRef::String(name) = unit.as_ref() else {
        return Err(error(
            5_439_013,
            format!(
                "{op} requires 'unit' to be a string, but got {}",
                unit.as_ref().bson_type().alias()
            ),
        ));
    };
    let Some(unit) = Unit::parse(name) else {
        return Err(Error::failed_to_parse(format!("unknown time unit value: {name}")));
    };
    let Some(amount) = whole_number(amount.as_ref()) else {
        return Err(error(5_166_405, format!("{op} expects integer amount of time units")));
    };
    let amount = match (subtract, amount.checked_neg()) {
        (false, _) => amount,
        (true, Some(amount)) => amount,
        (true, None) => {
            return Err(error(
                6_045_000,
                format!("invalid {op} 'amount' parameter value: {amount}"),
            ));
        }
    };
    // More units than the range of dates has are refused before the sum is made.
    let limit = match unit.months() {
        Some(months) => 584_554_531 * 12 / months,
        None => i64::MAX / unit.ms().unwrap_or(1),
    };
    if amount > limit || amount < -limit {
        return Err(error(
            5_976_500,
            format!("invalid {op} 'amount' parameter value: {amount} {name}"),
        ));
    }
    match add(start, unit, amount, &zone) {
        Some(ms) => Ok(Val::Ref(ValueRef::DateTime(ms))),
        None => Err(error(5_166_406, format!("{op} overflowed"))),
    }
}

#[cfg(test)]
mod tests {
    use crate::expr::testing::check;

    #[test]
    fn sums() {
        check(
            r#"{"d": {"$date": "2024-01-31T12:00:00Z"}, "n": null}"#,
            &[
                (
                    r#"{"$eq": [{"$dateAdd": {"startDate": "$d", "unit": "month", "amount": 1}}, {"$toDate": "2024-02-29T12:00:00Z"}]}"#,
                    "true",
                ),
                (
                    // A day of 23 hours.
                    r#"{"$eq": [{"$dateAdd": {"startDate": {"$toDate": "2024-03-09T17:00:00Z"}, "unit": "day", "amount": 1,
                        "timezone": "America/New_York"}}, {"$toDate": "2024-03-10T16:00:00Z"}]}"#,
                    "true",
                ),
                (
                    r#"{"$eq": [{"$dateSubtract": {"startDate": "$d", "unit": "hour", "amount": 12}}, {"$toDate": "2024-01-31"}]}"#,
                    "true",
                ),
                (
                    r#"{"$dateAdd": {"startDate": "$d", "unit": "$n", "amount": 1}}"#,
                    "null",
                ),
                (
                    r#"{"$dateAdd": {"startDate": "$d", "unit": "fortnight", "amount": 1}}"#,
                    "error 9",
                ),
                (
                    r#"{"$dateAdd": {"startDate": "$d", "unit": "day", "amount": 1.5}}"#,
                    "error 5166405",
                ),
                (
                    r#"{"$dateAdd": {"startDate": 1, "unit": "day", "amount": 1}}"#,
                    "error 5166403",
                ),
                (r#"{"$dateAdd": {"startDate": "$d", "unit": "day"}}"#, "error 5166402"),
            ],
        );
    }
}
