//! Functions of the extension `pgcrypto`, as far as they are built in: digests, with a key or without, and random bytes.

use super::Row;
use super::args::int;
use super::text::{binary, bytes, str};
use crate::error::{error, fail};
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use nestor_database::login::secret_bytes;
use nestor_model::{Result, Value};
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

/// Bytes that are made at random at most.
const RANDOM_BYTES_MAX: i64 = 1024;

fn unknown<T>(name: &str) -> Result<T> {
    fail("22023", format!("Cannot use \"{name}\": No such hash algorithm"))
}

/// The digest of an algorithm, whose name may be in any letters.
///
/// Errors: 22023.
fn digest(of: &[u8], name: &str) -> Result<Value> {
    binary(match name.to_ascii_lowercase().as_str() {
        "md5" => Md5::digest(of).to_vec(),
        "sha1" => Sha1::digest(of).to_vec(),
        "sha224" => Sha224::digest(of).to_vec(),
        "sha256" => Sha256::digest(of).to_vec(),
        "sha384" => Sha384::digest(of).to_vec(),
        "sha512" => Sha512::digest(of).to_vec(),
        _ => return unknown(name),
    })
}

/// The same with a key of any length.
fn keyed<M: Mac + KeyInit>(of: &[u8], key: &[u8]) -> Result<Vec<u8>> {
    let mut mac = <M as KeyInit>::new_from_slice(key).map_err(|_| error("22023", "the key has no place"))?;
    mac.update(of);
    Ok(mac.finalize().into_bytes().to_vec())
}

fn hmac(of: &[u8], key: &[u8], name: &str) -> Result<Value> {
    binary(match name.to_ascii_lowercase().as_str() {
        "md5" => keyed::<Hmac<Md5>>(of, key)?,
        "sha1" => keyed::<Hmac<Sha1>>(of, key)?,
        "sha224" => keyed::<Hmac<Sha224>>(of, key)?,
        "sha256" => keyed::<Hmac<Sha256>>(of, key)?,
        "sha384" => keyed::<Hmac<Sha384>>(of, key)?,
        "sha512" => keyed::<Hmac<Sha512>>(of, key)?,
        _ => return unknown(name),
    })
}

/// Bytes of the system's source of randomness, as secrets need them.
///
/// Errors: 39000 for more than 1,024, 58000 for a system that has none.
fn random(count: i64) -> Result<Value> {
    if !(1..=RANDOM_BYTES_MAX).contains(&count) {
        return fail("39000", "Length not in range");
    }
    let bytes = secret_bytes::<1024>().map_err(|_| error("58000", "could not generate a random number"))?;
    binary(bytes.into_iter().take(usize::try_from(count).unwrap_or(0)).collect())
}

pub(super) const ROWS: &[Row] = &[
    ("digest", "text,text->bytea", |a, _, _| {
        digest(str(&a[0]).as_bytes(), str(&a[1]))
    }),
    ("digest", "bytea,text->bytea", |a, _, _| {
        digest(bytes(&a[0]), str(&a[1]))
    }),
    ("hmac", "text,text,text->bytea", |a, _, _| {
        hmac(str(&a[0]).as_bytes(), str(&a[1]).as_bytes(), str(&a[2]))
    }),
    ("hmac", "bytea,bytea,text->bytea", |a, _, _| {
        hmac(bytes(&a[0]), bytes(&a[1]), str(&a[2]))
    }),
    ("gen_random_bytes", "!int4->bytea", |a, _, _| random(int(&a[0]))),
];
