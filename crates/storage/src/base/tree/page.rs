//! Pages as bytes: header, references, numbers. The layout is specified in the [module documentation](super).

/// Bytes of the header of every extent but the meta pages.
pub(crate) const HEADER: usize = 32;
/// Bytes of a [`NodeRef`].
pub(crate) const REF_BYTES: usize = 20;
/// Extents longer than this have wide slots, because an offset in them may not fit 16 bits.
pub(crate) const NARROW_MAX: usize = 1 << 16;

/// The kind of contents of an extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Leaf = 2,
    Interior = 3,
    Overflow = 4,
    FreeList = 5,
    PackedLeaf = 6,
    PackedOverflow = 7,
}

/// Reference to a node, as its parent stores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct NodeRef {
    /// First page of the extent. Never 0 or 1, which are the meta pages.
    pub page: u32,
    /// Pages of the extent, less than 2^24.
    pub pages: u32,
    /// Whether a value below is stored outside its leaf.
    pub overflow: bool,
    /// Checksum in the header of the extent. A page is what its parent says it is: a write that never reached the disk
    /// leaves an old page that is sound by itself, and is found by this.
    pub crc: u32,
    /// Entries in the subtree.
    pub entries: u64,
}

impl NodeRef {
    pub(crate) fn encode(&self, out: &mut [u8]) {
        debug_assert!(self.pages < 1 << 24, "no node is longer than 2^24 pages");
        put_u32(out, 0, self.page);
        put_u32(out, 4, self.pages | u32::from(self.overflow) << 24);
        put_u32(out, 8, self.crc);
        out[12..20].copy_from_slice(&self.entries.to_le_bytes());
    }

    pub(crate) fn decode(bytes: &[u8]) -> NodeRef {
        let pages = get_u32(bytes, 4);
        NodeRef {
            page: get_u32(bytes, 0),
            pages: pages & 0xff_ffff,
            overflow: pages >> 24 != 0,
            crc: get_u32(bytes, 8),
            entries: u64::from(get_u32(bytes, 12)) | u64::from(get_u32(bytes, 16)) << 32,
        }
    }
}

/// A value outside its leaf, as the leaf's cell stores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OverflowRef {
    /// First page of the extent.
    pub page: u32,
    /// Checksum in the header of the extent.
    pub crc: u32,
    /// Length of the value in bytes.
    pub len: u32,
    /// Pages of the extent if it is packed, else 0.
    pub packed: u32,
}

/// In the word of a cell: the value is in a packed extent.
const PACKED_BIT: u32 = 1 << 31;

impl OverflowRef {
    /// Pages of the extent.
    pub(crate) fn pages(&self, page_bytes: usize) -> u32 {
        match self.packed {
            0 => (HEADER + self.len as usize).div_ceil(page_bytes) as u32,
            packed => packed,
        }
    }

    /// The word before the reference in a cell.
    pub(crate) fn word(&self) -> u32 {
        let packed = if self.packed > 0 { PACKED_BIT } else { 0 };
        packed | (2 * self.len + 1)
    }

    /// Bytes of the reference behind a word that says that there is one.
    pub(crate) fn bytes(word: u32) -> usize {
        if word & PACKED_BIT == 0 { 8 } else { 12 }
    }

    /// The reference, of which [`OverflowRef::bytes`] bytes count.
    pub(crate) fn encode(&self) -> [u8; 12] {
        let mut out = [0; 12];
        put_u32(&mut out, 0, self.page);
        put_u32(&mut out, 4, self.crc);
        put_u32(&mut out, 8, self.packed);
        out
    }

    /// The reference at `at` behind `word`.
    pub(crate) fn decode(bytes: &[u8], at: usize, word: u32) -> OverflowRef {
        OverflowRef {
            page: get_u32(bytes, at),
            crc: get_u32(bytes, at + 4),
            len: (word & !PACKED_BIT) >> 1,
            packed: if word & PACKED_BIT == 0 {
                0
            } else {
                get_u32(bytes, at + 8)
            },
        }
    }
}

/// Where a value is: bytes of the page, or an extent of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ValueAt {
    Inline { start: u32, len: u32 },
    Overflow(OverflowRef),
}

/// First four bytes of a suffix as a number that orders like them; missing bytes count as zero.
#[inline]
pub(crate) fn head_of(suffix: &[u8]) -> u32 {
    match suffix.first_chunk::<4>() {
        Some(head) => u32::from_be_bytes(*head),
        None => {
            let mut head = [0; 4];
            head[..suffix.len()].copy_from_slice(suffix);
            u32::from_be_bytes(head)
        }
    }
}

/// Writes the header of an extent but for its checksum, which [`seal`] writes last.
pub(crate) fn put_header(bytes: &mut [u8], page: u32, kind: Kind, level: u8, pages: u32, items: u32) {
    put_u32(bytes, 4, page);
    bytes[8] = kind as u8;
    bytes[9] = level;
    put_u32(bytes, 12, pages);
    put_u32(bytes, 16, items);
}

/// Computes the checksum of a finished extent, writes it and returns it.
pub(crate) fn seal(bytes: &mut [u8]) -> u32 {
    let crc = crc32c::crc32c(&bytes[4..]);
    put_u32(bytes, 0, crc);
    crc
}

/// Gives a finished extent another place: writes the number of its first page and the checksum, and returns that.
pub(crate) fn renumber(bytes: &mut [u8], page: u32) -> u32 {
    put_u32(bytes, 4, page);
    seal(bytes)
}

/// Verifies the checksum and the header of an extent, which is of one of two kinds.
pub(crate) fn verify(bytes: &[u8], page: u32, kinds: [Kind; 2], crc: u32) -> Result<(), String> {
    let stored = get_u32(bytes, 0);
    let computed = crc32c::crc32c(&bytes[4..]);
    if stored != computed {
        return Err(format!("checksum is {stored:08x}, contents have {computed:08x}"));
    }
    let number = get_u32(bytes, 4);
    if number != page {
        return Err(format!("page {number} where page {page} belongs"));
    }
    if kinds.iter().all(|kind| bytes[8] != *kind as u8) {
        let kind = kinds[0];
        return Err(format!(
            "page of kind {} where kind {} ({kind:?}) belongs",
            bytes[8], kind as u8
        ));
    }
    if stored != crc {
        return Err(format!(
            "page has checksum {stored:08x}, what refers to it expects {crc:08x}: an earlier write"
        ));
    }
    Ok(())
}

#[inline]
pub(crate) fn get_u32(bytes: &[u8], at: usize) -> u32 {
    let bytes = &bytes[at..at + 4];
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

pub(crate) fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// A number in groups of seven bits, lowest first; all groups but the last have the top bit set.
#[inline]
pub(crate) fn get_varint(bytes: &[u8], mut at: usize) -> (u32, usize) {
    let mut value = u32::from(bytes[at]);
    at += 1;
    if value < 0x80 {
        return (value, at);
    }
    value &= 0x7f;
    let mut shift = 7;
    loop {
        let byte = bytes[at];
        at += 1;
        value |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return (value, at);
        }
        shift += 7;
    }
}

/// Like [`get_varint`], for bytes that are not known to hold one.
pub(crate) fn checked_varint(bytes: &[u8], at: usize) -> Option<(u32, usize)> {
    let end = (0..5).find(|i| bytes.get(at + i).is_some_and(|byte| *byte < 0x80))?;
    Some(get_varint(&bytes[..at + end + 1], at))
}

/// Bytes of `value` as a varint.
pub(crate) fn varint_len(value: u32) -> usize {
    (38 - (value | 1).leading_zeros() as usize) / 7
}

/// Writes `value` as a varint at `at` and returns where it ends.
pub(crate) fn put_varint(bytes: &mut [u8], mut at: usize, mut value: u32) -> usize {
    while value >= 0x80 {
        bytes[at] = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    bytes[at] = value as u8;
    at + 1
}

/// Number of bytes with which both begin.
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip_with_the_length_promised() {
        for value in [
            0,
            1,
            127,
            128,
            300,
            16_383,
            16_384,
            2_097_151,
            2_097_152,
            268_435_455,
            268_435_456,
            u32::MAX,
        ] {
            let mut bytes = vec![0; 5];
            let len = put_varint(&mut bytes, 0, value);
            bytes.truncate(len);
            assert_eq!(len, varint_len(value), "{value}");
            assert_eq!(get_varint(&bytes, 0), (value, bytes.len()));
            assert_eq!(checked_varint(&bytes, 0), Some((value, bytes.len())));
            assert_eq!(checked_varint(&bytes[..bytes.len() - 1], 0), None, "cut short");
        }
    }

    #[test]
    fn references_round_trip() {
        let node = NodeRef {
            page: 7,
            pages: 300,
            overflow: true,
            crc: 0xdead_beef,
            entries: 1 << 40,
        };
        let mut bytes = [0; REF_BYTES];
        node.encode(&mut bytes);
        assert_eq!(bytes[..8], [7, 0, 0, 0, 44, 1, 0, 1], "the example of the format");
        assert_eq!(NodeRef::decode(&bytes), node);
    }

    #[test]
    fn heads_order_like_suffixes_up_to_padding() {
        assert_eq!(head_of(b"ab"), 0x6162_0000);
        assert_eq!(head_of(b"abcdef"), 0x6162_6364);
        assert!(head_of(b"ab") < head_of(b"ac"));
    }
}
