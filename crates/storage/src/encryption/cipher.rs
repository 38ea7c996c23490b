//! AES-256-GCM with one key.
//!
//! The expanded key is in a place of its own that is cleared when it is dropped: the library does not do that. This is one of the
//! modules with `unsafe`, for that alone.

#![allow(unsafe_code)]

use super::Unsealed;
use ring::aead::{self, AES_256_GCM, Aad, LessSafeKey, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Prk};
use std::mem::{MaybeUninit, needs_drop};

/// Bytes of a tag.
pub(crate) const TAG_BYTES: usize = 16;
/// The purpose for which sealing keys are derived.
const PURPOSE: &[u8] = b"nestor seal 1";

/// Twelve bytes that must never be used twice with one key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Nonce(pub(crate) [u8; 12]);

impl Nonce {
    /// From a number that counts.
    pub(crate) fn counted(number: u64) -> Self {
        Self::of(0, number)
    }

    /// From two numbers.
    pub(crate) fn of(high: u32, low: u64) -> Self {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&high.to_le_bytes());
        bytes[4..].copy_from_slice(&low.to_le_bytes());
        Self(bytes)
    }

    fn once(self) -> aead::Nonce {
        aead::Nonce::assume_unique_for_key(self.0)
    }
}

/// A key, ready for use.
pub(crate) struct Cipher(Box<MaybeUninit<LessSafeKey>>);

impl Cipher {
    /// The key of these bytes.
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        Self::of(UnboundKey::new(&AES_256_GCM, key).expect("the key has the length of the algorithm"))
    }

    /// The key that `data_key` and `salt` give.
    pub(crate) fn derive(data_key: &[u8; 32], salt: &[u8; 16]) -> Self {
        let prk = Prk::new_less_safe(HKDF_SHA256, data_key);
        let info = [PURPOSE, salt];
        let okm = prk
            .expand(&info, &AES_256_GCM)
            .expect("a key is shorter than the longest output");
        Self::of(okm.into())
    }

    fn of(key: UnboundKey) -> Self {
        Self(Box::new(MaybeUninit::new(LessSafeKey::new(key))))
    }

    fn key(&self) -> &LessSafeKey {
        // SAFETY: it is initialized where it is made, and cleared only when nobody can have a reference any more.
        unsafe { self.0.assume_init_ref() }
    }

    /// Encrypts `bytes` in place and returns the tag, which vouches for `context` too.
    pub(crate) fn seal(&self, nonce: Nonce, context: &[u8], bytes: &mut [u8]) -> [u8; TAG_BYTES] {
        let tag = self
            .key()
            .seal_in_place_separate_tag(nonce.once(), Aad::from(context), bytes);
        let tag = tag.expect("what is sealed at once is shorter than the algorithm's limit of 64 GB");
        let mut out = [0; TAG_BYTES];
        out.copy_from_slice(tag.as_ref());
        out
    }

    /// Decrypts `bytes` in place. After an error they are of no use.
    pub(crate) fn open(
        &self,
        nonce: Nonce,
        context: &[u8],
        bytes: &mut [u8],
        tag: [u8; TAG_BYTES],
    ) -> Result<(), Unsealed> {
        let opened = self
            .key()
            .open_in_place_separate_tag(nonce.once(), Aad::from(context), tag.into(), bytes, 0..);
        opened
            .map(drop)
            .map_err(|_| Unsealed("it was changed, or is not what was encrypted for this place"))
    }
}

impl Drop for Cipher {
    fn drop(&mut self) {
        const { assert!(!needs_drop::<LessSafeKey>(), "clearing it is all that there is to do") };
        // SAFETY: the pointer is that of a live box; a `MaybeUninit` may have any bytes, and nobody reads them any more.
        unsafe { zeroize::zeroize_flat_type(self.0.as_mut_ptr().cast::<[u8; size_of::<LessSafeKey>()]>()) };
    }
}

impl std::fmt::Debug for Cipher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cipher(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test case 16 of the specification of GCM (McGrew and Viega, 2005): it says that this is that algorithm and no other.
    #[test]
    fn it_is_aes_256_gcm() {
        let bytes = |hex: &str| -> Vec<u8> {
            (0..hex.len() / 2)
                .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
                .collect()
        };
        let key = bytes("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
        let nonce = Nonce(bytes("cafebabefacedbaddecaf888").try_into().unwrap());
        let context = bytes("feedfacedeadbeeffeedfacedeadbeefabaddad2");
        let plain = bytes(
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
        );
        let cipher = Cipher::new(&key.try_into().unwrap());
        let mut text = plain.clone();
        let tag = cipher.seal(nonce, &context, &mut text);
        assert_eq!(
            text,
            bytes(
                "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
            )
        );
        assert_eq!(tag.to_vec(), bytes("76fc6ece0f4e1768cddf8853bb2d551b"));
        cipher.open(nonce, &context, &mut text, tag).unwrap();
        assert_eq!(text, plain);
    }

    #[test]
    fn what_was_changed_does_not_open() {
        let cipher = Cipher::derive(&[7; 32], &[8; 16]);
        let nonce = Nonce::counted(5);
        let mut sealed = b"some text".to_vec();
        let tag = cipher.seal(nonce, b"here", &mut sealed);
        let open = |cipher: &Cipher, nonce, context: &[u8], sealed: &[u8], tag| {
            let mut bytes = sealed.to_vec();
            cipher.open(nonce, context, &mut bytes, tag).map(|()| bytes)
        };
        assert_eq!(open(&cipher, nonce, b"here", &sealed, tag).unwrap(), b"some text");
        let mut other = sealed.clone();
        other[3] ^= 1;
        let mut other_tag = tag;
        other_tag[15] ^= 0x80;
        let strangers = [
            Cipher::derive(&[7; 32], &[9; 16]),
            Cipher::derive(&[6; 32], &[8; 16]),
            Cipher::new(&[7; 32]),
        ];
        for stranger in &strangers {
            assert!(open(stranger, nonce, b"here", &sealed, tag).is_err());
        }
        assert!(open(&cipher, Nonce::counted(6), b"here", &sealed, tag).is_err());
        assert!(open(&cipher, nonce, b"there", &sealed, tag).is_err());
        assert!(open(&cipher, nonce, b"here", &other, tag).is_err());
        assert!(open(&cipher, nonce, b"here", &sealed, other_tag).is_err());
        assert!(open(&cipher, nonce, b"here", &sealed[..8], tag).is_err());
    }

    #[test]
    fn nothing_of_a_key_is_printed() {
        assert_eq!(format!("{:?}", Cipher::new(&[7; 32])), "Cipher(..)");
    }
}
