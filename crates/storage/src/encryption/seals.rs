//! Sealing and opening: the key of this opening of the store, and those of earlier ones as they are met.

use super::cipher::{Cipher, Nonce, TAG_BYTES};
use super::keys::DataKey;
use super::{Unsealed, random};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

/// Bytes of a seal.
pub(crate) const SEAL_BYTES: usize = 32;
/// Keys of earlier openings that are kept ready. Whoever can write the files can invent more.
const READY_MAX: usize = 4096;

/// Which key sealed something, and with which nonces. The layout is in [`crate::encryption`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Seal {
    origin: Origin,
    first_nonce: u64,
}

/// An opening of the store, of this or another copy of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Origin {
    data_key: u32,
    salt: [u8; 16],
}

impl Seal {
    pub(crate) fn encode(&self) -> [u8; SEAL_BYTES] {
        let mut out = [0; SEAL_BYTES];
        out[..16].copy_from_slice(&self.origin.salt);
        out[16..24].copy_from_slice(&self.first_nonce.to_le_bytes());
        out[24..28].copy_from_slice(&self.origin.data_key.to_le_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8; SEAL_BYTES]) -> Self {
        let (mut salt, mut number, mut data_key) = ([0; 16], [0; 8], [0; 4]);
        salt.copy_from_slice(&bytes[..16]);
        number.copy_from_slice(&bytes[16..24]);
        data_key.copy_from_slice(&bytes[24..28]);
        Self {
            origin: Origin {
                data_key: u32::from_le_bytes(data_key),
                salt,
            },
            first_nonce: u64::from_le_bytes(number),
        }
    }
}

/// Seals what an open store writes, and opens what it and earlier ones wrote.
pub(crate) struct Seals {
    data_keys: Vec<DataKey>,
    /// Of this opening.
    own: Origin,
    cipher: Cipher,
    next_nonce: AtomicU64,
    /// Of others.
    ready: RwLock<HashMap<Origin, Arc<Cipher>>>,
}

impl Seals {
    /// The seals of one opening of a store. It seals with the last of these keys and a salt of its own, so that no nonce comes
    /// twice, whatever happened to the numbers of an earlier opening, and whether or not somebody else has opened a copy.
    pub(crate) fn new(data_keys: Vec<DataKey>) -> io::Result<Self> {
        let salt = random()?;
        let last = data_keys.last().ok_or(io::ErrorKind::InvalidData)?;
        let own = Origin {
            data_key: last.number,
            salt,
        };
        Ok(Self {
            cipher: Cipher::derive(&last.bytes, &salt),
            own,
            next_nonce: AtomicU64::new(0),
            ready: RwLock::default(),
            data_keys,
        })
    }

    /// How many data keys there are.
    pub(crate) fn data_keys(&self) -> usize {
        self.data_keys.len()
    }

    /// A seal for `count` pieces, and what seals them: piece `i` from 0 with [`Seal::nonce`].
    pub(crate) fn begin(&self, count: u64) -> (Seal, &Cipher) {
        let seal = Seal {
            origin: self.own,
            first_nonce: self.next_nonce.fetch_add(count, Ordering::Relaxed),
        };
        (seal, &self.cipher)
    }

    /// Encrypts one piece in place.
    pub(crate) fn seal(&self, context: &[u8], bytes: &mut [u8]) -> ([u8; TAG_BYTES], Seal) {
        let (seal, cipher) = self.begin(1);
        (cipher.seal(seal.nonce(0), context, bytes), seal)
    }

    /// Decrypts in place piece `i` of what was sealed.
    pub(crate) fn open(
        &self,
        seal: &Seal,
        i: u64,
        context: &[u8],
        bytes: &mut [u8],
        tag: [u8; TAG_BYTES],
    ) -> Result<(), Unsealed> {
        if seal.origin == self.own {
            return self.cipher.open(seal.nonce(i), context, bytes, tag);
        }
        let known = self
            .ready
            .read()
            .expect("no holder of the lock panics")
            .get(&seal.origin)
            .cloned();
        if let Some(cipher) = known {
            return cipher.open(seal.nonce(i), context, bytes, tag);
        }
        let Some(data_key) = self.data_keys.iter().find(|key| key.number == seal.origin.data_key) else {
            return Err(Unsealed(
                "it is encrypted with a data key that nestor.keys does not have",
            ));
        };
        let cipher = Arc::new(Cipher::derive(&data_key.bytes, &seal.origin.salt));
        cipher.open(seal.nonce(i), context, bytes, tag)?;
        let mut ready = self.ready.write().expect("no holder of the lock panics");
        if ready.len() >= READY_MAX {
            ready.clear();
        }
        ready.insert(seal.origin, cipher);
        Ok(())
    }
}

impl Seal {
    pub(crate) fn nonce(&self, i: u64) -> Nonce {
        Nonce::counted(self.first_nonce.wrapping_add(i))
    }
}

impl std::fmt::Debug for Seals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seals")
            .field("data_keys", &self.data_keys.len())
            .finish()
    }
}
