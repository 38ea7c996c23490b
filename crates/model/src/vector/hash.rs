//! Hashes of values for tables that live as long as a statement.
//!
//! Numbers and texts are folded with products of 128 bits, which takes a nanosecond for eight bytes; secrets of each table keep clients from
//! choosing values that meet. Equal values have equal hashes whatever their types are.

use crate::number::Num;
use crate::{Value, hash_value};
use std::hash::{BuildHasher, Hasher, RandomState};

/// What the hashes of one table depend on.
#[derive(Clone, Debug)]
pub struct Seed {
    state: RandomState,
    secrets: [u64; 2],
}

impl Default for Seed {
    /// A new one, which is like no other.
    fn default() -> Self {
        let state = RandomState::new();
        Self {
            secrets: [state.hash_one(1), state.hash_one(2) | 1],
            state,
        }
    }
}

fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

impl Seed {
    /// The hash of a whole number.
    #[inline]
    pub fn whole(&self, n: i64) -> u64 {
        folded(n as u64 ^ self.secrets[0], self.secrets[1])
    }

    /// The hash of a text.
    pub fn text(&self, text: &str) -> u64 {
        let mut hash = text.len() as u64 ^ self.secrets[1];
        let (words, rest) = text.as_bytes().as_chunks::<8>();
        for word in words {
            hash = folded(hash ^ u64::from_le_bytes(*word), self.secrets[0] | 1);
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        folded(hash ^ u64::from_le_bytes(last), self.secrets[1])
    }

    /// The hash of a value.
    pub fn value(&self, value: &Value) -> u64 {
        match value {
            Value::Int32(n) => self.whole(i64::from(*n)),
            Value::Int64(n) => self.whole(*n),
            Value::String(text) => self.text(text),
            // Numbers of other types may be equal to whole ones.
            value => match Num::from_ref(value.as_ref()).and_then(Num::to_i64_exact) {
                Some(n) => self.whole(n),
                None => {
                    let mut hasher = self.state.build_hasher();
                    hash_value(value, &mut hasher);
                    hasher.finish()
                }
            },
        }
    }

    /// The hash of several values of which `hash` is that of those before.
    #[inline]
    pub fn mixed(&self, before: u64, hash: u64) -> u64 {
        folded(before ^ self.secrets[0], self.secrets[1]) ^ hash
    }
}
