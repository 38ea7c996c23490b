//! Encryption at rest: what lies in the data directory says nothing without the master key.
//!
//! ```text
//! master key      32 bytes, outside of the directory; whoever opens the store brings it
//!   wraps         data keys, random, in nestor.keys
//!     derive      with a random salt for each opening, the key that seals what this opening writes
//!       seals     pages of the base            pages.rs, 8,144 bytes in each 8,192
//!                 frames of the journal        ../journal/sealed.rs, all but their headers
//! scratch key     random, only in memory; seals temporary files      ../scratch.rs
//! ```
//!
//! All of it is AES-256-GCM. Why the keys are made so, and what stays plain, is in `docs/decisions/0009-encryption-at-rest.md`.
//!
//! # Seal, 32 bytes
//!
//! Behind the tag (or the tags) of what was sealed:
//!
//! | offset | size | meaning |
//! |---|---|---|
//! | 0 | 16 | salt |
//! | 16 | 8 | number of the first nonce |
//! | 24 | 4 | number of the data key |
//! | 28 | 4 | 0 |
//!
//! The sealing key is HKDF-SHA256 of the data key, expanded with `nestor seal 1` and the salt. A nonce is four zero bytes and its
//! number, which counts up from 0 with each opening.

mod cipher;
pub(crate) mod keys;
mod pages;
mod seals;

pub use keys::{MasterKey, rotate};

pub(crate) use cipher::{Cipher, Nonce, TAG_BYTES};
pub(crate) use keys::{FILE, KeyFile};
pub(crate) use pages::{PAGE_BYTES, SealedPages};
pub(crate) use seals::{SEAL_BYTES, Seal, Seals};

/// Bytes are not what was sealed in that place with that key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unsealed(pub(crate) &'static str);

/// Random bytes from the system.
pub(crate) fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes)
        .map_err(|_| std::io::Error::other("the system has no random numbers"))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
