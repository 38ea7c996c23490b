//! Packed extents: leaves and long values compressed with Zstandard.
//!
//! | offset | size | meaning |
//! |---|---|---|
//! | 0 | 28 | the header, with the kind of a packed extent and the pages that it takes |
//! | 28 | 4 | length of what is packed: all that is in use behind the header of the plain extent |
//! | 32 | 4 | bytes of the Zstandard frame |
//! | 36 | | the frame, zeros up to the end of the last page |

use super::page::{HEADER, Kind, get_u32, put_u32};
use std::cell::RefCell;
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::compress_bound;

/// Where the frame begins.
const FRAME_AT: usize = HEADER + 4;
/// Packed bytes stand for no more than so many.
const UNPACKED_MAX: usize = 64 << 20;
/// Higher ones take more time than space they spare.
const LEVEL: i32 = 1;

thread_local! {
    /// What unpacks, made once: it is larger than what it unpacks.
    static UNPACKER: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Packs what a transaction writes.
#[derive(Default)]
pub(crate) struct Packer {
    compressor: Option<Compressor<'static>>,
    frame: Vec<u8>,
}

impl Packer {
    /// What `contents` become; `None` if they cannot be packed.
    pub(crate) fn pack(&mut self, contents: &[u8]) -> Option<&[u8]> {
        let compressor = match &mut self.compressor {
            Some(compressor) => compressor,
            none => none.insert(Compressor::new(LEVEL).ok()?),
        };
        self.frame.clear();
        self.frame.reserve(compress_bound(contents.len()));
        compressor.compress_to_buffer(contents, &mut self.frame).ok()?;
        Some(&self.frame)
    }
}

/// Bytes of the extent of a frame.
pub(crate) fn extent_bytes(frame: &[u8]) -> usize {
    FRAME_AT + frame.len()
}

/// Writes the extent of a frame but for its checksum: its place, the header of the plain extent, and the length of what is packed.
pub(crate) fn fill(extent: &mut [u8], kind: Kind, place: (u32, u32), (head, len, frame): (&[u8], usize, &[u8])) {
    extent[..HEADER].copy_from_slice(head);
    extent[8] = kind as u8;
    put_u32(extent, 4, place.0);
    put_u32(extent, 12, place.1);
    put_u32(extent, 28, len as u32);
    put_u32(extent, HEADER, frame.len() as u32);
    extent[FRAME_AT..][..frame.len()].copy_from_slice(frame);
}

/// The plain extent, of `kind`, that a packed one stands for. Errors: why it is none.
pub(crate) fn unpacked(extent: &[u8], kind: Kind, page_bytes: usize) -> Result<Box<[u8]>, String> {
    let (len, frame) = (get_u32(extent, 28) as usize, get_u32(extent, HEADER) as usize);
    let frame = extent[FRAME_AT..]
        .get(..frame)
        .ok_or("the frame reaches beyond the extent")?;
    if len > UNPACKED_MAX {
        return Err(format!("{len} bytes are packed, more than any extent has"));
    }
    let pages = (HEADER + len).div_ceil(page_bytes);
    let mut bytes = vec![0; pages * page_bytes].into_boxed_slice();
    let found = UNPACKER.with_borrow_mut(|unpacker| {
        let unpacker = match unpacker {
            Some(unpacker) => unpacker,
            none => none.insert(Decompressor::new()?),
        };
        unpacker.decompress_to_buffer(frame, &mut bytes[HEADER..][..len])
    });
    let found = found.map_err(|error| error.to_string())?;
    if found != len {
        return Err(format!("{found} bytes are packed where {len} belong"));
    }
    bytes[..28].copy_from_slice(&extent[..28]);
    bytes[8] = kind as u8;
    put_u32(&mut bytes, 12, pages as u32);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked_and_damage_is_an_error() {
        let contents: Vec<u8> = (0..5000u32).flat_map(|i| (i / 7).to_le_bytes()).collect();
        let mut packer = Packer::default();
        let frame = packer.pack(&contents).expect("packed");
        assert!(extent_bytes(frame) < contents.len() / 2);
        let mut head = [0; HEADER];
        put_u32(&mut head, 24, (HEADER + contents.len()) as u32);
        let mut extent = vec![0; extent_bytes(frame).next_multiple_of(512)];
        fill(&mut extent, Kind::PackedLeaf, (7, 3), (&head, contents.len(), frame));
        let plain = unpacked(&extent, Kind::Leaf, 512).expect("it was packed");
        assert_eq!(plain[HEADER..][..contents.len()], contents);
        assert_eq!(
            (plain[8], get_u32(&plain, 12) as usize),
            (Kind::Leaf as u8, plain.len() / 512)
        );
        for (at, value) in [
            (28, 7),
            (28, u32::MAX),
            (28, contents.len() as u32 + 1),
            (32, u32::MAX),
            (32, 3),
        ] {
            let mut damaged = extent.clone();
            put_u32(&mut damaged, at, value);
            assert!(unpacked(&damaged, Kind::Leaf, 512).is_err(), "{value} at {at}");
        }
        for at in FRAME_AT..extent.len() {
            let mut damaged = extent.clone();
            damaged[at] ^= 0x55;
            let _ = unpacked(&damaged, Kind::Leaf, 512);
        }
    }
}
