//! The function whose calls hold rows. No statement can name it: conditions that call it are made of FOR UPDATE and its kin.

use super::{Function, Row};
use crate::error::{fail, unsupported};
use nestor_model::{Binary, Value};
use nestor_planner::relation::Waiting;
use std::sync::LazyLock;

/// Database, collection, record, whether in common with others, and the number of [`Waiting`]; whether the row is held.
const HOLD: Row = ("hold", "!text,text,bytea,bool,int4->bool", |args, env, _| {
    let [
        Value::String(db),
        Value::String(coll),
        Value::Binary(Binary { bytes, .. }),
        Value::Bool(in_common),
        waiting,
    ] = args
    else {
        return fail("0A000", "the rows of this table cannot be held");
    };
    let Some(effects) = env.effects else {
        return unsupported("FOR UPDATE in this place");
    };
    let waiting = match waiting {
        Value::Int32(0) => Waiting::Wait,
        Value::Int32(1) => Waiting::Skip,
        _ => Waiting::Fail,
    };
    effects.hold((db, coll), bytes, *in_common, waiting).map(Value::Bool)
});

/// The function.
pub static FUNCTION: LazyLock<Function> = LazyLock::new(|| super::parse(HOLD));
