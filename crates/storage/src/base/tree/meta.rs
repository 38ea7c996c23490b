//! The two meta pages: which tree of the file is the committed one.

use super::page::{NodeRef, REF_BYTES, get_u32, put_u32};

/// First bytes of the file.
pub(crate) const MAGIC: &[u8; 8] = b"NestorBT";
/// The newest version of the format, of files whose leaves and values may be packed.
pub(crate) const VERSION: u32 = 2;
/// The version of files that are plain throughout.
pub(crate) const PLAIN_VERSION: u32 = 1;
/// Where the user's metadata begins in a meta page.
pub(crate) const USER_META_AT: usize = 128;
/// Page sizes that a file may have, in bytes.
pub(crate) const PAGE_BYTES: [usize; 8] = [512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536];

/// Contents of a meta page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Meta {
    pub page_bytes: usize,
    /// Whether leaves and values may be packed: the version of the file.
    pub packs: bool,
    pub txn: u64,
    pub page_count: u32,
    /// Root node and its level; `None` for the empty tree.
    pub root: Option<(NodeRef, u8)>,
    /// First page, pages and checksum of the free list; `None` when nothing is free.
    pub free_list: Option<(u32, u32, u32)>,
    pub user: Vec<u8>,
}

/// The state of a meta page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    Sound(Meta),
    /// Sound as far as can be told, but of this later version.
    Newer(u32),
    Damaged(String),
}

impl Meta {
    /// The bytes of meta page `slot` (0 or 1).
    pub(crate) fn encode(&self, slot: u32) -> Vec<u8> {
        let mut bytes = vec![0; self.page_bytes];
        bytes[..8].copy_from_slice(MAGIC);
        let version = if self.packs { VERSION } else { PLAIN_VERSION };
        put_u32(&mut bytes, 8, version);
        put_u32(&mut bytes, 12, self.page_bytes as u32);
        put_u32(&mut bytes, 20, slot);
        bytes[24..32].copy_from_slice(&self.txn.to_le_bytes());
        put_u32(&mut bytes, 32, self.page_count);
        if let Some((root, level)) = &self.root {
            root.encode(&mut bytes[36..36 + REF_BYTES]);
            bytes[56] = *level;
        }
        if let Some((page, pages, crc)) = self.free_list {
            put_u32(&mut bytes, 60, page);
            put_u32(&mut bytes, 64, pages);
            put_u32(&mut bytes, 68, crc);
        }
        put_u32(&mut bytes, 72, self.user.len() as u32);
        bytes[USER_META_AT..][..self.user.len()].copy_from_slice(&self.user);
        let crc = checksum(&bytes);
        put_u32(&mut bytes, 16, crc);
        bytes
    }

    /// Reads meta page `slot` from the bytes of a page; their number is the page size they would have to be of.
    pub(crate) fn decode(bytes: &[u8], slot: u32) -> Slot {
        if &bytes[..8] != MAGIC {
            return Slot::Damaged("not a base of Nestor, or its first bytes are damaged".into());
        }
        let (version, page_bytes, stored) = (get_u32(bytes, 8), get_u32(bytes, 12), get_u32(bytes, 16));
        if page_bytes as usize != bytes.len() {
            return Slot::Damaged(format!("page size is {page_bytes}"));
        }
        let computed = checksum(bytes);
        if stored != computed {
            return Slot::Damaged(format!(
                "meta page has checksum {stored:08x}, contents have {computed:08x}"
            ));
        }
        if version > VERSION {
            return Slot::Newer(version);
        }
        if get_u32(bytes, 20) != slot {
            return Slot::Damaged(format!("meta page {} where {slot} belongs", get_u32(bytes, 20)));
        }
        let (level, user_len) = (bytes[56], get_u32(bytes, 72) as usize);
        let Some(user) = bytes[USER_META_AT..].get(..user_len) else {
            return Slot::Damaged("metadata reaches beyond the meta page".into());
        };
        if usize::from(level) >= super::DEPTH_MAX {
            return Slot::Damaged(format!("root of level {level}"));
        }
        let root = NodeRef::decode(&bytes[36..36 + REF_BYTES]);
        let (free_page, free_pages) = (get_u32(bytes, 60), get_u32(bytes, 64));
        Slot::Sound(Meta {
            page_bytes: bytes.len(),
            packs: version > PLAIN_VERSION,
            txn: u64::from(get_u32(bytes, 24)) | u64::from(get_u32(bytes, 28)) << 32,
            page_count: get_u32(bytes, 32),
            root: (root.pages > 0).then_some((root, level)),
            free_list: (free_pages > 0).then(|| (free_page, free_pages, get_u32(bytes, 68))),
            user: user.to_vec(),
        })
    }
}

/// Makes these bytes a meta page as far as their beginning says, for fuzzing.
pub(crate) fn mend(bytes: &mut [u8], slot: u32) {
    bytes[..8].copy_from_slice(MAGIC);
    put_u32(bytes, 8, VERSION);
    let page_bytes = bytes.len() as u32;
    put_u32(bytes, 12, page_bytes);
    put_u32(bytes, 20, slot);
    let crc = checksum(bytes);
    put_u32(bytes, 16, crc);
}

/// Checksum of all of a meta page but the field that holds it.
fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..16]), &bytes[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Meta {
        Meta {
            page_bytes: 512,
            packs: false,
            txn: 9,
            page_count: 40,
            root: Some((
                NodeRef {
                    page: 5,
                    pages: 1,
                    overflow: true,
                    crc: 77,
                    entries: 1234,
                },
                2,
            )),
            free_list: Some((30, 1, 88)),
            user: b"checkpoint 17".to_vec(),
        }
    }

    #[test]
    fn meta_pages_round_trip_and_know_their_slot() {
        for slot in [0, 1] {
            let bytes = example().encode(slot);
            assert_eq!(Meta::decode(&bytes, slot), Slot::Sound(example()));
            assert!(matches!(Meta::decode(&bytes, 1 - slot), Slot::Damaged(_)));
        }
        let packed = Meta {
            packs: true,
            ..example()
        };
        assert_eq!(Meta::decode(&packed.encode(1), 1), Slot::Sound(packed));
        assert_eq!(
            example().encode(0)[..16],
            *b"NestorBT\x01\0\0\0\0\x02\0\0",
            "the example of the format"
        );
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let bytes = example().encode(0);
        for i in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[i / 8] ^= 1 << (i % 8);
            assert!(matches!(Meta::decode(&bytes, 0), Slot::Damaged(_)), "bit {i}");
        }
    }
}
