//! Encrypted frames.
//!
//! The header stays plain, so that frames are found, ordered and told from torn ones without a key; the checksum is over what is
//! on the disk. Sequence number, optime and the numbers and sizes of entries and operations are therefore known to who has the
//! file. All else is sealed in pieces, so that a long frame can be read in pieces:
//!
//! | offset | size | meaning |
//! |---|---|---|
//! | 0 | 48 | header, which begins with `NJX1` |
//! | 48 | n | encrypted: oplog entries, operations, zeros, as in a plain [`super::frame`]; in pieces of 65,536 bytes, the last one shorter |
//! | | 16 for each piece | their tags |
//! | | 32 | [seal](crate::encryption) |
//!
//! The context of each piece is bytes 8 to 48 of the header: a frame is bound to its number and, by the checksum of the frame
//! before, to its place in this journal. Pieces have consecutive nonces, so they cannot change places either.

use super::frame::{self, HEADER_BYTES, Unsound};
use crate::encryption::{SEAL_BYTES, Seal, Seals, TAG_BYTES, Unsealed};

/// First bytes of an encrypted frame. The checksum does not cover them: one flipped bit must not make a plain frame of it, or the
/// reverse.
pub(crate) const MAGIC: &[u8; 4] = b"NJX1";
/// Bytes encrypted at a time.
const PIECE: usize = 64 << 10;
/// Bytes of the header that checksum and magic are not in.
const CONTEXT: std::ops::Range<usize> = 8..HEADER_BYTES;

/// Bytes that a frame with so many behind its header needs for tags and seal.
pub(crate) fn overhead(body: usize) -> usize {
    pieces(body) * TAG_BYTES + SEAL_BYTES
}

fn pieces(body: usize) -> usize {
    body.div_ceil(PIECE).max(1)
}

/// Whether the frame with this header is encrypted.
pub(crate) fn is_sealed(header: &[u8]) -> bool {
    header.starts_with(MAGIC)
}

/// The layout of an encrypted frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    pieces: usize,
    /// Where the encrypted bytes end and the tags begin.
    pub(crate) body_end: usize,
}

impl Layout {
    /// The layout of a frame of so many bytes.
    pub(crate) fn of(length: usize) -> Result<Self, Unsound> {
        const SHORT: Unsound = Unsound("an encrypted frame is shorter than its seal");
        let rest = length.checked_sub(HEADER_BYTES + SEAL_BYTES).ok_or(SHORT)?;
        let count = rest.div_ceil(PIECE + TAG_BYTES).max(1);
        let body = rest
            .checked_sub(count * TAG_BYTES)
            .filter(|body| pieces(*body) == count)
            .ok_or(SHORT)?;
        Ok(Self {
            pieces: count,
            body_end: HEADER_BYTES + body,
        })
    }
}

/// Encrypts a frame whose header is complete but for the checksum, and which ends with room for tags and seal.
pub(crate) fn seal(bytes: &mut [u8], seals: &Seals) {
    let Ok(layout) = Layout::of(bytes.len()) else {
        unreachable!("it was prepared with room for its seal")
    };
    let (header, rest) = bytes.split_at_mut(HEADER_BYTES);
    let (body, end) = rest.split_at_mut(layout.body_end - HEADER_BYTES);
    let (seal, cipher) = seals.begin(layout.pieces as u64);
    for i in 0..layout.pieces {
        let piece = &mut body[i * PIECE..];
        let len = piece.len().min(PIECE);
        let tag = cipher.seal(seal.nonce(i as u64), &header[CONTEXT], &mut piece[..len]);
        end[i * TAG_BYTES..][..TAG_BYTES].copy_from_slice(&tag);
    }
    end[layout.pieces * TAG_BYTES..].copy_from_slice(&seal.encode());
}

/// Decrypts a whole frame in place, and makes it a plain one but for its checksum. What was tags and seal is left behind
/// the operations.
pub(crate) fn open(bytes: &mut [u8], seals: &Seals) -> Result<(), Unsound> {
    let layout = Layout::of(bytes.len())?;
    let key = Key::read(bytes, &bytes[layout.body_end..], layout)?;
    key.open(0, &mut bytes[HEADER_BYTES..layout.body_end], seals)?;
    frame::make_plain(bytes);
    Ok(())
}

/// The keys and lengths to decrypt pieces of one frame.
pub(crate) struct Key {
    header: [u8; HEADER_BYTES],
    layout: Layout,
    tags: Vec<u8>,
    seal: Seal,
}

impl Key {
    /// From the frame's header and what is behind its body.
    pub(crate) fn read(header: &[u8], end: &[u8], layout: Layout) -> Result<Self, Unsound> {
        const CUT: Unsound = Unsound("an encrypted frame is cut off");
        let (tags, seal) = end.split_at_checked(layout.pieces * TAG_BYTES).ok_or(CUT)?;
        Ok(Self {
            header: *header.first_chunk().ok_or(CUT)?,
            layout,
            tags: tags.to_vec(),
            seal: Seal::decode(seal.first_chunk().ok_or(CUT)?),
        })
    }

    /// Where the encrypted bytes end.
    pub(crate) fn body_end(&self) -> usize {
        self.layout.body_end
    }

    /// The whole pieces in which these bytes of the frame lie, as bytes of the frame, and the number of the first one.
    pub(crate) fn pieces_of(&self, at: usize, len: usize) -> Result<(std::ops::Range<usize>, usize), Unsound> {
        let end = at
            .checked_add(len)
            .filter(|end| at >= HEADER_BYTES && *end <= self.layout.body_end);
        let end = end.ok_or(Unsound("it refers to bytes outside of the frame"))?;
        let first = (at - HEADER_BYTES) / PIECE;
        let behind = (end - HEADER_BYTES).div_ceil(PIECE).max(first + 1);
        let place = |piece: usize| (HEADER_BYTES + piece * PIECE).min(self.layout.body_end);
        Ok((place(first)..place(behind), first))
    }

    /// Decrypts in place whole pieces from number `first` on.
    pub(crate) fn open(&self, first: usize, bytes: &mut [u8], seals: &Seals) -> Result<(), Unsound> {
        let count = pieces(bytes.len());
        for i in 0..count {
            let piece = &mut bytes[i * PIECE..];
            let len = piece.len().min(PIECE);
            let number = first + i;
            let mut tag = [0; TAG_BYTES];
            let tag_bytes = self.tags.get(number * TAG_BYTES..(number + 1) * TAG_BYTES);
            tag.copy_from_slice(tag_bytes.ok_or(Unsound("an encrypted frame has too few tags"))?);
            seals
                .open(&self.seal, number as u64, &self.header[CONTEXT], &mut piece[..len], tag)
                .map_err(|Unsealed(reason)| Unsound(reason))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_frame_tells_what_is_where() {
        for body in [
            0,
            8,
            48,
            PIECE - 8,
            PIECE,
            PIECE + 8,
            3 * PIECE - 8,
            3 * PIECE,
            3 * PIECE + 8,
            1000 * PIECE,
        ] {
            let layout = Layout::of(HEADER_BYTES + body + overhead(body)).unwrap();
            assert_eq!(
                (layout.body_end, layout.pieces),
                (HEADER_BYTES + body, pieces(body)),
                "{body}"
            );
        }
        for length in [
            0,
            HEADER_BYTES,
            HEADER_BYTES + SEAL_BYTES,
            HEADER_BYTES + SEAL_BYTES + TAG_BYTES - 8,
        ] {
            assert!(Layout::of(length).is_err(), "{length}");
        }
        // One piece more than there are bytes for.
        assert!(Layout::of(HEADER_BYTES + PIECE + overhead(PIECE) + 8).is_err());
    }
}
