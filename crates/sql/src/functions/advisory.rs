//! The `pg_advisory_lock` family.

use super::Row;
use crate::current;
use crate::error::fail;
use crate::types::integer;
use nestor_database::advisory::{Key, Mode};
use nestor_model::{Result, Value};

/// What one of these functions does.
#[derive(Clone, Copy)]
enum Act {
    Take,
    TryTake,
    GiveUp,
}

const fn mode(is_exclusive: bool, of_transaction: bool) -> Mode {
    Mode {
        is_exclusive,
        of_transaction,
    }
}

fn act(args: &[Value], act: Act, mode: Mode) -> Result<Value> {
    let numbers: Vec<i64> = args.iter().filter_map(integer).collect();
    let (is_pair, number) = match numbers.as_slice() {
        [number] => (false, *number),
        [high, low] => (true, high << 32 | low & 0xFFFF_FFFF),
        _ => return fail("XX000", "a lock has one number or two"),
    };
    let Some(session) = current::get() else {
        return fail("0A000", "advisory locks are of connections that speak SQL");
    };
    let key = Key {
        db: session.db.clone(),
        is_pair,
        number,
    };
    Ok(match act {
        Act::Take => {
            session.wait_for(&key, mode)?;
            Value::String("".into())
        }
        Act::TryTake => Value::Bool(session.locks.try_take(session.id, &key, mode)?),
        Act::GiveUp => Value::Bool(session.locks.give_up(session.id, &key, mode.is_exclusive)),
    })
}

pub(super) const ROWS: &[Row] = &[
    ("pg_advisory_lock", "!int8->void", |a, _, _| {
        act(a, Act::Take, mode(true, false))
    }),
    ("pg_advisory_lock", "!int4,int4->void", |a, _, _| {
        act(a, Act::Take, mode(true, false))
    }),
    ("pg_advisory_lock_shared", "!int8->void", |a, _, _| {
        act(a, Act::Take, mode(false, false))
    }),
    ("pg_advisory_lock_shared", "!int4,int4->void", |a, _, _| {
        act(a, Act::Take, mode(false, false))
    }),
    ("pg_advisory_xact_lock", "!int8->void", |a, _, _| {
        act(a, Act::Take, mode(true, true))
    }),
    ("pg_advisory_xact_lock", "!int4,int4->void", |a, _, _| {
        act(a, Act::Take, mode(true, true))
    }),
    ("pg_advisory_xact_lock_shared", "!int8->void", |a, _, _| {
        act(a, Act::Take, mode(false, true))
    }),
    ("pg_advisory_xact_lock_shared", "!int4,int4->void", |a, _, _| {
        act(a, Act::Take, mode(false, true))
    }),
    ("pg_try_advisory_lock", "!int8->bool", |a, _, _| {
        act(a, Act::TryTake, mode(true, false))
    }),
    ("pg_try_advisory_lock", "!int4,int4->bool", |a, _, _| {
        act(a, Act::TryTake, mode(true, false))
    }),
    ("pg_try_advisory_lock_shared", "!int8->bool", |a, _, _| {
        act(a, Act::TryTake, mode(false, false))
    }),
    ("pg_try_advisory_lock_shared", "!int4,int4->bool", |a, _, _| {
        act(a, Act::TryTake, mode(false, false))
    }),
    ("pg_try_advisory_xact_lock", "!int8->bool", |a, _, _| {
        act(a, Act::TryTake, mode(true, true))
    }),
    ("pg_try_advisory_xact_lock", "!int4,int4->bool", |a, _, _| {
        act(a, Act::TryTake, mode(true, true))
    }),
    ("pg_try_advisory_xact_lock_shared", "!int8->bool", |a, _, _| {
        act(a, Act::TryTake, mode(false, true))
    }),
    ("pg_try_advisory_xact_lock_shared", "!int4,int4->bool", |a, _, _| {
        act(a, Act::TryTake, mode(false, true))
    }),
    ("pg_advisory_unlock", "!int8->bool", |a, _, _| {
        act(a, Act::GiveUp, mode(true, false))
    }),
    ("pg_advisory_unlock", "!int4,int4->bool", |a, _, _| {
        act(a, Act::GiveUp, mode(true, false))
    }),
    ("pg_advisory_unlock_shared", "!int8->bool", |a, _, _| {
        act(a, Act::GiveUp, mode(false, false))
    }),
    ("pg_advisory_unlock_shared", "!int4,int4->bool", |a, _, _| {
        act(a, Act::GiveUp, mode(false, false))
    }),
    ("pg_advisory_unlock_all", "!->void", |_, _, _| {
        if let Some(session) = current::get() {
            session.locks.give_up_all(session.id);
        }
        Ok(Value::String("".into()))
    }),
];
