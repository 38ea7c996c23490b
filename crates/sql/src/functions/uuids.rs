//! UUIDs that are made: at random, by names, and the constants of the extension `uuid-ossp`, which is built in. Versions are those of RFC 9562.

use super::Row;
use super::text::{bytes, md5_bytes, str};
use nestor_model::{Binary, Value};
use nestor_query::env::OpContext;
use sha1::{Digest, Sha1};

/// A UUID of a version out of 16 bytes, of which six bits say what it is.
fn made(mut bytes: [u8; 16], version: u8) -> Value {
    bytes[6] = bytes[6] & 0x0F | version << 4;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    plain(u128::from_be_bytes(bytes))
}

fn plain(number: u128) -> Value {
    Value::Binary(Binary {
        subtype: 4,
        bytes: number.to_be_bytes().as_slice().into(),
    })
}

fn random(op: &OpContext) -> Value {
    let number = u128::from(op.random_u64()) << 64 | u128::from(op.random_u64());
    made(number.to_be_bytes(), 4)
}

/// Version 1: the time, and a node that is made up anew each time, as one whose address is nobody's may be.
fn of_time(op: &OpContext) -> Value {
    /// Steps of 100 ns from the Gregorian calendar's begin to 1970.
    const BEFORE_1970: u64 = 0x01B2_1DD2_1381_4000;
    let since = u64::try_from(op.now_ms).unwrap_or(0).saturating_mul(10_000);
    let time = BEFORE_1970.saturating_add(since);
    let multicast = 1 << 40;
    let mut out = [0; 16];
    out[..4].copy_from_slice(&((time & 0xFFFF_FFFF) as u32).to_be_bytes());
    out[4..6].copy_from_slice(&((time >> 32 & 0xFFFF) as u16).to_be_bytes());
    out[6..8].copy_from_slice(&((time >> 48) as u16).to_be_bytes());
    out[8..].copy_from_slice(&(op.random_u64() | multicast).to_be_bytes());
    made(out, 1)
}

/// The bytes whose digest names a UUID within a namespace.
fn named(namespace: &Value, name: &Value) -> Vec<u8> {
    [bytes(namespace), str(name).as_bytes()].concat()
}

pub(super) const ROWS: &[Row] = &[
    ("gen_random_uuid", "!->uuid", |_, env, _| Ok(random(env.op))),
    ("uuid_generate_v4", "!->uuid", |_, env, _| Ok(random(env.op))),
    ("uuid_generate_v1", "!->uuid", |_, env, _| Ok(of_time(env.op))),
    ("uuid_generate_v1mc", "!->uuid", |_, env, _| Ok(of_time(env.op))),
    ("uuid_generate_v3", "uuid,text->uuid", |a, _, _| {
        Ok(made(md5_bytes(&named(&a[0], &a[1])), 3))
    }),
    ("uuid_generate_v5", "uuid,text->uuid", |a, _, _| {
        let digest: [u8; 20] = Sha1::digest(named(&a[0], &a[1])).into();
        let mut first = [0; 16];
        first.copy_from_slice(&digest[..16]);
        Ok(made(first, 5))
    }),
    ("uuid_nil", "->uuid", |_, _, _| Ok(plain(0))),
    ("uuid_ns_dns", "->uuid", |_, _, _| {
        Ok(plain(0x6ba7_b810_9dad_11d1_80b4_00c0_4fd4_30c8))
    }),
    ("uuid_ns_url", "->uuid", |_, _, _| {
        Ok(plain(0x6ba7_b811_9dad_11d1_80b4_00c0_4fd4_30c8))
    }),
    ("uuid_ns_oid", "->uuid", |_, _, _| {
        Ok(plain(0x6ba7_b812_9dad_11d1_80b4_00c0_4fd4_30c8))
    }),
    ("uuid_ns_x500", "->uuid", |_, _, _| {
        Ok(plain(0x6ba7_b814_9dad_11d1_80b4_00c0_4fd4_30c8))
    }),
];
