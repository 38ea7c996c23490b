//! Writing: extents are made in place in a buffer that goes to the file when it is large or the next extent lies elsewhere.

use std::sync::Arc;

use super::super::Result;
use super::cache::NewLeaves;
use super::direct::AlignedBuffer;
use super::frame::Page;
use super::node::Resident;
use super::pack::{self, Packer};
use super::page::{HEADER, Kind, OverflowRef, get_u32, put_header, put_u32, renumber, seal};
use super::space::Space;
use super::store::Store;

/// Bytes written at a time where the space allows.
const BUFFER_BYTES: usize = 1 << 20;
/// Bytes of kept leaves for which room in memory is made at a time.
const ROOM_BYTES: usize = 512 << 10;

/// Where a leaf went.
pub(crate) struct Put {
    pub page: u32,
    pub pages: u32,
    pub crc: u32,
    /// Bytes that it takes there, without those that fill the last page.
    pub bytes: usize,
}

pub(crate) struct Out<'a> {
    pub(crate) store: &'a Store,
    first_page: u32,
    buffer: AlignedBuffer,
    /// Of what was written, what stays in memory.
    pub(crate) leaves: NewLeaves<'a>,
    /// Memory for leaves that stay.
    pub(crate) spare: Spare,
    /// Where leaves are made that are packed then.
    pub(crate) leaf: Vec<u8>,
    packer: Packer,
    /// Bytes for which [`make_room`] was called and that were not kept yet.
    room: usize,
    pub(crate) bytes_written: u64,
}

impl<'a> Out<'a> {
    pub(crate) fn new(store: &'a Store, spare: Spare) -> Out<'a> {
        Out {
            store,
            first_page: 0,
            buffer: AlignedBuffer::default(),
            leaves: NewLeaves::new(&store.cache),
            spare,
            leaf: Vec::new(),
            packer: Packer::default(),
            room: 0,
            bytes_written: 0,
        }
    }

    /// Zeroed bytes for the extent at `page`, which will be written when they have been filled.
    pub(crate) fn extent(&mut self, page: u32, pages: u32) -> Result<&mut [u8]> {
        Ok(self.extent_and_spare(page, pages)?.0)
    }

    /// As [`Out::extent`], with what a copy of it can be made of.
    pub(crate) fn extent_and_spare(&mut self, page: u32, pages: u32) -> Result<(&mut [u8], &mut Spare)> {
        self.go_to(page)?;
        let bytes = self.buffer.grow(pages as usize * self.store.page_bytes);
        Ok((bytes, &mut self.spare))
    }

    /// Writes a leaf that has everything but its place, packed if it may be and that spares pages.
    pub(crate) fn leaf(&mut self, space: &mut Space, bytes: &mut [u8], packs: bool) -> Result<Put> {
        let page_bytes = self.store.page_bytes;
        let pages = (bytes.len() / page_bytes) as u32;
        if self.store.packs && packs && pages > 1 {
            let used = get_u32(bytes, 24) as usize;
            let (head, contents) = bytes[..used].split_at(HEADER);
            if let Some(put) = self.put_packed(space, Kind::PackedLeaf, (head, contents), pages)? {
                return Ok(put);
            }
        }
        let page = space.allocate(pages)?;
        let crc = renumber(bytes, page);
        self.go_to(page)?;
        self.buffer.append(bytes);
        Ok(Put {
            page,
            pages,
            crc,
            bytes: bytes.len(),
        })
    }

    /// Writes an extent of `pages` pages packed, of which header and contents are given; `None` if that would spare none.
    fn put_packed(
        &mut self,
        space: &mut Space,
        kind: Kind,
        (head, contents): (&[u8], &[u8]),
        pages: u32,
    ) -> Result<Option<Put>> {
        let mut packer = std::mem::take(&mut self.packer);
        let put = match packer.pack(contents) {
            Some(frame) => self.put_frame(space, kind, (head, contents.len(), frame), pages),
            None => Ok(None),
        };
        self.packer = packer;
        put
    }

    fn put_frame(
        &mut self,
        space: &mut Space,
        kind: Kind,
        (head, len, frame): (&[u8], usize, &[u8]),
        pages: u32,
    ) -> Result<Option<Put>> {
        let bytes = pack::extent_bytes(frame);
        let fewer = bytes.div_ceil(self.store.page_bytes) as u32;
        if fewer >= pages {
            return Ok(None);
        }
        let page = space.allocate(fewer)?;
        let extent = self.extent(page, fewer)?;
        pack::fill(extent, kind, (page, fewer), (head, len, frame));
        Ok(Some(Put {
            page,
            pages: fewer,
            crc: seal(extent),
            bytes,
        }))
    }

    /// The next extent is at `page`.
    fn go_to(&mut self, page: u32) -> Result<()> {
        let page_bytes = self.store.page_bytes;
        let next = u64::from(self.first_page) + (self.buffer.len() / page_bytes) as u64;
        if next != u64::from(page) || self.buffer.len() >= BUFFER_BYTES {
            self.flush()?;
            self.first_page = page;
        }
        Ok(())
    }

    /// Keeps a leaf that was written to `page` in memory.
    pub(crate) fn keep_leaf(&mut self, page: u32, leaf: Page) -> Resident {
        match self.room.checked_sub(leaf.bytes().len()) {
            Some(room) => self.room = room,
            None => {
                make_room();
                self.room = ROOM_BYTES;
            }
        }
        let leaf = Arc::new(leaf);
        let resident = Resident::Leaf(Arc::downgrade(&leaf));
        self.leaves.hold(page, leaf);
        resident
    }

    /// Writes what is buffered.
    pub(crate) fn flush(&mut self) -> Result<()> {
        if self.buffer.len() > 0 {
            let offset = self.store.offset(self.first_page);
            let pages = self.buffer.len() / self.store.page_bytes;
            self.store.births.wrote(self.first_page, pages);
            self.store
                .file
                .write_at(self.buffer.bytes(), offset)
                .map_err(self.store.io("write"))?;
            self.bytes_written += self.buffer.len() as u64;
            self.buffer.clear(2 * BUFFER_BYTES);
        }
        Ok(())
    }

    /// Stores a value in an extent of its own, packed if it may be and that spares pages.
    pub(crate) fn overflow(&mut self, space: &mut Space, value: &[u8], packs: bool) -> Result<OverflowRef> {
        let mut at = OverflowRef {
            page: 0,
            crc: 0,
            len: value.len() as u32,
            packed: 0,
        };
        let pages = at.pages(self.store.page_bytes);
        let mut head = [0; HEADER];
        put_header(&mut head, 0, Kind::Overflow, 0, pages, at.len);
        put_u32(&mut head, 24, (HEADER + value.len()) as u32);
        if packs
            && pages > 1
            && let Some(put) = self.put_packed(space, Kind::PackedOverflow, (&head, value), pages)?
        {
            (at.page, at.crc, at.packed) = (put.page, put.crc, put.pages);
            return Ok(at);
        }
        at.page = space.allocate(pages)?;
        let bytes = self.extent(at.page, pages)?;
        bytes[..HEADER].copy_from_slice(&head);
        put_u32(bytes, 4, at.page);
        bytes[HEADER..][..value.len()].copy_from_slice(value);
        at.crc = seal(bytes);
        Ok(at)
    }
}

/// Memory of leaves that are no more, for those that will be: taking new memory for each, the system would clear it first,
/// which costs as much as everything else about a leaf in which values were replaced.
#[derive(Debug, Default)]
pub(crate) struct Spare {
    pages: Vec<Box<[u8]>>,
    /// How many were asked for since the last [`Spare::trim`].
    wanted: usize,
}

/// Most bytes kept as [`Spare`].
const SPARE_BYTES_MAX: usize = 32 << 20;

impl Spare {
    /// A copy of `bytes`.
    pub(crate) fn copy_of(&mut self, bytes: &[u8]) -> Box<[u8]> {
        self.wanted += 1;
        match self.pages.pop() {
            Some(mut page) if page.len() == bytes.len() => {
                page.copy_from_slice(bytes);
                page
            }
            _ => bytes.into(),
        }
    }

    /// Takes the memory of a page, if nobody else holds it.
    pub(crate) fn take(&mut self, page: Arc<Page>) {
        let bytes = page.bytes().len();
        if self.pages.len() < self.wanted.min(SPARE_BYTES_MAX / bytes.max(1))
            && let Some(page) = Arc::into_inner(page)
        {
            self.pages.push(page.into_bytes());
        }
    }

    /// Lets go of more than what was asked for since the last time.
    pub(crate) fn trim(&mut self) {
        self.pages.truncate(std::mem::take(&mut self.wanted));
        self.pages.shrink_to_fit();
    }
}

/// Extends this thread's heap by room for many leaves. The system's allocator extends the heap of a thread by what an
/// allocation lacks, with a system call that locks the memory of the whole process: once for each leaf, unless a large
/// piece was taken and given back before.
fn make_room() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(ROOM_BYTES)));
}
