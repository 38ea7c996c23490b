//! Dates: reading parts, building, printing, parsing, arithmetic. Dates are milliseconds since the epoch; a
//! timestamp or an object id counts as the date it carries wherever a date is read.

use crate::env::{Env, Val};
use crate::expr::Expr;
use crate::expr::parse::OpDef;
use nestor_model::{ObjectId, Result, ValueRef};

mod add;
mod diff;
mod fields;
mod format;
pub(crate) mod free_text;
mod from_string;
mod parts;
pub(crate) mod pattern;
mod reader;
mod trunc;
pub(crate) mod unit;
pub(crate) mod zone;

pub use unit::Unit;
pub(crate) use zone::Zone;

/// The tables of the family's files.
pub(crate) const TABLES: [&[OpDef]; 7] = [
    add::OPERATORS,
    diff::OPERATORS,
    fields::OPERATORS,
    format::OPERATORS,
    from_string::OPERATORS,
    parts::OPERATORS,
    trunc::OPERATORS,
];

/// The instant of a date, timestamp or object id.
pub(crate) fn instant(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::DateTime(ms) => Some(ms),
        ValueRef::Timestamp(ts) => Some(i64::from(ts.secs) * 1000),
        ValueRef::ObjectId(id) => Some(object_id_ms(id)),
        _ => None,
    }
}

/// The date of an object id, whose seconds are signed here.
pub(crate) fn object_id_ms(id: ObjectId) -> i64 {
    i64::from(id.timestamp_secs() as i32) * 1000
}

/// The zone that an optional argument gives; `None` for null. Errors: 40517 no string, 40485 no zone.
pub(crate) fn zone_of<'a>(arg: &'a Expr, env: &mut Env<'a>) -> Result<Option<Zone>> {
    if arg.is_absent() {
        return Ok(Some(Zone::UTC));
    }
    let value = arg.eval_ref(env)?;
    zone_value(&value)
}

fn zone_value(value: &Val<'_>) -> Result<Option<Zone>> {
    match value.as_ref() {
        ValueRef::String(name) => Zone::parse(name).map(Some),
        other if other.is_nullish() => Ok(None),
        other => Err(crate::expr::args::error(
            40517,
            format!(
                "timezone must evaluate to a string, found {}",
                other.bson_type().alias()
            ),
        )),
    }
}
