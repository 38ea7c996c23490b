//! UUIDs that are made: at random, by time, by names, and the constants of the extension `uuid-ossp`, which is built in. Versions are
//! those of RFC 9562. What is random in them comes from the operating system, as tokens and links that nobody may guess are made of them.

use super::Row;
use super::text::{bytes, md5_bytes, str};
use crate::error::error;
use nestor_database::login::secret_bytes;
use nestor_model::{Binary, Result, Value};
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

/// Bytes that nobody can guess, from what was made before least of all.
///
/// Errors: XX000 for a system that has none to give.
fn unguessed<const N: usize>() -> Result<[u8; N]> {
    secret_bytes().map_err(|_| error("XX000", "could not generate random values"))
}

fn random() -> Result<Value> {
    Ok(made(unguessed()?, 4))
}

/// Version 1: the time, and a node that is made up anew each time, as one whose address is nobody's may be.
fn of_time(op: &OpContext) -> Result<Value> {
    /// Steps of 100 ns from the Gregorian calendar's begin to 1970.
    const BEFORE_1970: u64 = 0x01B2_1DD2_1381_4000;
    let since = u64::try_from(op.now_ms).unwrap_or(0).saturating_mul(10_000);
    let time = BEFORE_1970.saturating_add(since);
    let multicast = 1 << 40;
    let mut out = [0; 16];
    out[..4].copy_from_slice(&((time & 0xFFFF_FFFF) as u32).to_be_bytes());
    out[4..6].copy_from_slice(&((time >> 32 & 0xFFFF) as u16).to_be_bytes());
    out[6..8].copy_from_slice(&((time >> 48) as u16).to_be_bytes());
    out[8..].copy_from_slice(&(u64::from_be_bytes(unguessed()?) | multicast).to_be_bytes());
    Ok(made(out, 1))
}

/// Version 7: milliseconds since 1970, and 74 random bits.
///
/// Errors: XX000 for a system without randomness.
pub fn uuid_v7(op: &OpContext) -> Result<Value> {
    let mut out = unguessed::<16>()?;
    let ms = u64::try_from(op.now_ms).unwrap_or(0);
    out[..6].copy_from_slice(&(ms << 16).to_be_bytes()[..6]);
    Ok(made(out, 7))
}

/// The bytes whose digest names a UUID within a namespace.
fn named(namespace: &Value, name: &Value) -> Vec<u8> {
    [bytes(namespace), str(name).as_bytes()].concat()
}

pub(super) const ROWS: &[Row] = &[
    ("gen_random_uuid", "!->uuid", |_, _, _| random()),
    ("uuid_generate_v4", "!->uuid", |_, _, _| random()),
    ("uuid_generate_v1", "!->uuid", |_, env, _| of_time(env.op)),
    ("uuid_generate_v1mc", "!->uuid", |_, env, _| of_time(env.op)),
    ("uuidv7", "!->uuid", |_, env, _| uuid_v7(env.op)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::Timestamp;

    /// What an operation's own generator gives next is computed from what it gave last, so no bit of a UUID may come from it: two
    /// operations that begin alike would make the same ones.
    #[test]
    fn uuids_do_not_follow_from_the_operation() {
        let op = || OpContext::new(1_700_000_000_000, Timestamp::default(), 7);
        for make in [|_: &OpContext| random(), of_time, uuid_v7] {
            assert!(!make(&op()).unwrap().identical(&make(&op()).unwrap()));
        }
    }

    #[test]
    fn version_7_begins_with_the_milliseconds() {
        let op = OpContext::new(0x0123_4567_89AB, Timestamp::default(), 0);
        let Value::Binary(Binary { bytes, subtype: 4 }) = uuid_v7(&op).unwrap() else {
            panic!("a UUID is binary of the subtype 4");
        };
        let made: &[u8] = &bytes;
        assert_eq!(made[..6], [0x01, 0x23, 0x45, 0x67, 0x89, 0xAB]);
        assert_eq!((made[6] >> 4, made[8] >> 6), (7, 0b10));
    }
}
