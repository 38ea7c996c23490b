//! Keys and values as cheap owned handles.

use crate::ahead;
use crate::base::BaseBytes;
use nestor_model::{RawDoc, RawDocBuf};
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// Longest byte string kept without an allocation. With the length and the variant this makes 32 bytes, the size the
/// other variants need anyway; record ids, index keys of one or two short values and most type bits fit.
const INLINE_MAX: usize = 30;

/// An immutable byte string: a key or a value. Cloning copies at most 30 bytes or adds one reference.
/// Ordered, compared and hashed as the bytes it holds.
#[derive(Clone)]
pub struct Bytes(Repr);

#[derive(Clone)]
enum Repr {
    Inline {
        len: u8,
        bytes: [u8; INLINE_MAX],
    },
    Shared(Arc<[u8]>),
    /// Keeps a page of the base in memory.
    Page(BaseBytes),
}

impl Bytes {
    /// No bytes.
    pub const EMPTY: Bytes = Bytes(Repr::Inline {
        len: 0,
        bytes: [0; INLINE_MAX],
    });

    /// A copy of `bytes` if it needs no allocation.
    #[inline]
    pub(crate) fn short(bytes: &[u8]) -> Option<Self> {
        (bytes.len() <= INLINE_MAX).then(|| Self::copy_from(bytes))
    }

    /// A copy of `bytes`.
    pub fn copy_from(bytes: &[u8]) -> Self {
        if bytes.len() <= INLINE_MAX {
            let mut inline = [0; INLINE_MAX];
            inline[..bytes.len()].copy_from_slice(bytes);
            Self(Repr::Inline {
                len: bytes.len() as u8,
                bytes: inline,
            })
        } else {
            Self(Repr::Shared(bytes.into()))
        }
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Repr::Shared(bytes) => bytes,
            Repr::Page(bytes) => bytes.as_slice(),
        }
    }

    /// The same bytes without a page behind them: for what is kept for long.
    pub(crate) fn detached(self) -> Self {
        match &self.0 {
            Repr::Page(bytes) => Self::copy_from(bytes),
            _ => self,
        }
    }

    /// The value of a record tree as the document it is. See [`crate::record`] for why nothing is checked again.
    pub fn document(&self) -> RawDoc<'_> {
        crate::record::document(self.as_slice())
    }

    /// Asks for the memory of bytes with an allocation of their own, and of the references to it.
    #[inline]
    pub(crate) fn ask(&self) {
        if let Repr::Shared(bytes) = &self.0 {
            ahead::ask(bytes.as_ptr().wrapping_sub(size_of::<[usize; 2]>()));
            ahead::ask_bytes(bytes);
        }
    }

    /// Memory this takes, in bytes, handle included.
    pub(crate) fn footprint(&self) -> usize {
        size_of::<Self>()
            + match &self.0 {
                Repr::Inline { .. } => 0,
                Repr::Shared(bytes) => bytes.len() + 16,
                Repr::Page(_) => 0,
            }
    }
}

impl Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl Borrow<[u8]> for Bytes {
    fn borrow(&self) -> &[u8] {
        self.as_slice()
    }
}

impl PartialEq for Bytes {
    /// As in [`Bytes::cmp`], short ones without a call.
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (
                Repr::Inline { len, bytes },
                Repr::Inline {
                    len: others,
                    bytes: other,
                },
            ) => len == others && bytes == other,
            _ => self.as_slice() == other.as_slice(),
        }
    }
}
impl Eq for Bytes {}

impl PartialOrd for Bytes {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Bytes {
    /// Two short ones, as most keys are, compare without a call: padded with zeros as they are, they order like the
    /// bytes they hold unless one is the other and more zeros; then the shorter is less.
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (
                Repr::Inline { len, bytes },
                Repr::Inline {
                    len: others,
                    bytes: other,
                },
            ) => {
                for at in WORDS {
                    let (own, other) = (word(bytes, at), word(other, at));
                    if own != other {
                        return own.cmp(&other);
                    }
                }
                len.cmp(others)
            }
            _ => self.as_slice().cmp(other.as_slice()),
        }
    }
}

/// Offsets of words of eight bytes that cover a short byte string; the last two overlap.
const WORDS: [usize; 4] = [0, 8, 16, INLINE_MAX - 8];

/// The eight bytes at `at` as a number that orders as they do.
#[inline]
fn word(bytes: &[u8; INLINE_MAX], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_be_bytes(word)
}

impl Hash for Bytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        Self::copy_from(bytes)
    }
}

impl<const N: usize> From<[u8; N]> for Bytes {
    fn from(bytes: [u8; N]) -> Self {
        Self::copy_from(&bytes)
    }
}

impl<const N: usize> From<&[u8; N]> for Bytes {
    fn from(bytes: &[u8; N]) -> Self {
        Self::copy_from(bytes)
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        if bytes.len() <= INLINE_MAX {
            Self::copy_from(&bytes)
        } else {
            Self(Repr::Shared(bytes.into()))
        }
    }
}

impl From<BaseBytes> for Bytes {
    fn from(bytes: BaseBytes) -> Self {
        Self(Repr::Page(bytes))
    }
}

impl From<Arc<[u8]>> for Bytes {
    fn from(bytes: Arc<[u8]>) -> Self {
        Self(Repr::Shared(bytes))
    }
}

impl From<RawDocBuf> for Bytes {
    fn from(doc: RawDocBuf) -> Self {
        Self(Repr::Shared(doc.into_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_look_alike() {
        assert_eq!(size_of::<Bytes>(), 32);
        assert_eq!(size_of::<Option<Bytes>>(), 32);
        for len in [0, 1, 30, 31, 500] {
            let plain: Vec<u8> = (0..len).map(|i| i as u8).collect();
            for bytes in [
                Bytes::from(plain.clone()),
                Bytes::copy_from(&plain),
                Arc::<[u8]>::from(plain.clone()).into(),
            ] {
                assert_eq!(&*bytes, plain.as_slice());
            }
        }
        assert!(Bytes::from([2u8; 30]) > Bytes::from([1u8]));
    }

    #[test]
    fn they_order_as_their_bytes_do() {
        let mut all: Vec<Vec<u8>> = vec![Vec::new()];
        for len in [1, 7, 8, 9, 16, 22, 23, 24, 29, 30, 31, 40] {
            for last in [0, 1, 255] {
                for first in [0, 1] {
                    let mut bytes = vec![0; len];
                    bytes[0] = first;
                    bytes[len - 1] = last;
                    all.push(bytes);
                }
            }
        }
        for a in &all {
            for b in &all {
                let (x, y) = (Bytes::copy_from(a), Bytes::copy_from(b));
                assert_eq!(x.cmp(&y), a.cmp(b), "{a:?} {b:?}");
                assert_eq!(x == y, a == b);
            }
        }
    }
}
