//! The durable base: a copy-on-write B+tree in one file.
//!
//! A transaction writes new pages beside those in use, syncs, and then names the new root in the meta pages; so the file
//! holds a whole tree at every moment, and readers of older roots are not disturbed. Everything read is verified first.
//!
//! # Format, versions 1 and 2
//!
//! All numbers are little-endian. The file is an array of pages of one size, a power of two from 512 to 65,536 bytes
//! (4,096 unless asked otherwise; 8,192 formerly). Consecutive pages that belong together are an *extent* with one header.
//!
//! In a file of version 1 everything is plain, and most extents are single pages: one is longer where what it holds needs it,
//! a node with a very long key, a long value, the free list. In a file of version 2 leaves and long values are packed where that
//! spares pages; a leaf is made of as much as fills up to three pages when it is packed, eight plain ones at most. A file keeps its
//! version.
//!
//! **Meta pages**: pages 0 and 1, with the same contents but for the slot number.
//!
//! | offset | size | meaning |
//! |---|---|---|
//! | 0 | 8 | `NestorBT` |
//! | 8 | 4 | format version: 1 or 2 |
//! | 12 | 4 | page size in bytes |
//! | 16 | 4 | crc32c of the rest of the page: bytes 0..16 and 20.. |
//! | 20 | 4 | slot: 0 or 1 |
//! | 24 | 8 | number of the transaction |
//! | 32 | 4 | number of pages of the file |
//! | 36 | 20 | node reference of the root; zero for the empty tree |
//! | 56 | 1 | level of the root: 0 when it is a leaf |
//! | 57 | 3 | 0 |
//! | 60 | 4 | first page of the free list |
//! | 64 | 4 | pages of the free list; 0 when nothing is free |
//! | 68 | 4 | checksum of the free list |
//! | 72 | 4 | length of the user's metadata |
//! | 76 | 52 | 0 |
//! | 128 | | the user's metadata, zeros up to the end of the page |
//!
//! Example: a file with pages of 512 bytes begins `4e 65 73 74 6f 72 42 54  01 00 00 00  00 02 00 00`.
//!
//! A commit writes page 0, syncs, writes page 1, syncs. So one sound page is enough: a crash while page 0 is written
//! leaves the old state in page 1; a bit that flips later in either leaves the other, of the same transaction.
//!
//! **Extent header**, 32 bytes, of everything else:
//!
//! | offset | size | meaning |
//! |---|---|---|
//! | 0 | 4 | crc32c of the extent from byte 4 to its end |
//! | 4 | 4 | number of its first page |
//! | 8 | 1 | kind: 2 leaf, 3 interior, 4 overflow, 5 free list; 6 packed leaf, 7 packed overflow |
//! | 9 | 1 | level of a node: 0 for leaves |
//! | 10 | 2 | 0 |
//! | 12 | 4 | pages of the extent |
//! | 16 | 4 | leaf: entries; interior: children; overflow: bytes of the value; free list: runs |
//! | 20 | 4 | nodes: length of the prefix |
//! | 24 | 4 | nodes: bytes in use |
//! | 28 | 4 | 0 |
//!
//! **Node reference**, 20 bytes:
//!
//! | offset | size | meaning |
//! |---|---|---|
//! | 0 | 4 | first page |
//! | 4 | 3 | pages |
//! | 7 | 1 | 1 if the subtree has values in overflow extents, else 0 |
//! | 8 | 4 | checksum in the node's header |
//! | 12 | 8 | entries in the subtree |
//!
//! Example: page 7, 300 pages, with overflow: `07 00 00 00  2c 01 00 01  …`. The checksum makes each tree vouch for its
//! pages: a stale page that is sound by itself (a write that never happened) is found as well as a damaged one.
//!
//! **Leaf**: header, prefix, slots, cells. **Interior node**: header, prefix, slots, node references of the children,
//! cells; key `i` separates child `i` from child `i + 1`: it is greater than all keys below the first and not greater
//! than those below the second, and as short as that allows.
//!
//! A key is the node's prefix, the first four bytes of its suffix, which are in the slot, and the rest, which is in the
//! cell. A search looks at the slots alone until four bytes don't decide.
//!
//! | slot | size | meaning |
//! |---|---|---|
//! | 0 | 4 | the first four bytes of the suffix as a big-endian number (stored little-endian as all are), padded with zeros |
//! | 4 | 2 | offset of the cell in the extent; 4 bytes in extents longer than 65,536 bytes |
//!
//! | cell | size | meaning |
//! |---|---|---|
//! | 0 | varint | length of the suffix |
//! | | length − 4, or 0 | the suffix from its fifth byte |
//! | | varint | leaves: 2 × length of the value, + 1 if it is in an overflow extent, + 2^31 if that is packed |
//! | | length, 8 or 12 | leaves: the value; or the first page and the checksum of its extent, and how many pages it has if it is packed |
//!
//! A varint has seven bits per byte, lowest first, the top bit set in all bytes but the last: 300 is `ac 02`.
//!
//! Example: a leaf with `apple` → `1` and `apricot` → `22` has prefix `ap`; slots `(70 6c 65 00 → "ple\0")` and
//! `("rico")`, cells `03 02 31` and `05 74 04 32 32`.
//!
//! **Overflow extent**: header, then the value. A value goes there when its entry would take more than half a page.
//!
//! **Packed extents** stand for plain ones: the header of the plain extent but for kind, page and pages, and what is in use behind it as
//! one Zstandard frame ([`pack`]). In memory leaves and values are plain.
//!
//! **Free list**: header, then the free runs of pages, ascending and never adjacent: first page (4), pages (4). It lists
//! all pages that neither the tree nor the free list uses.
//!
//! # Why so
//!
//! - *Page size*: the figures are in `docs/decisions/0001-base-b-tree.md`.
//! - *Packed leaves* take a third to half of the file for documents with repeated names. What packs is made larger and not smaller by
//!   it, so that what is read with one request stays about the same; more than eight pages would be more to pack again for each
//!   change. That what is in memory is plain costs reads nothing.
//! - *Long keys* get longer nodes instead of overflow cells: a rare case that leaves no trace in the code for others.
//! - *Both meta pages alike* instead of one per transaction in turn: with two different ones, a flipped bit in the newer
//!   looks like a crash during its commit, and the state before would be shown, although the journal behind it may be gone.
//! - *Counts per subtree* cost eight bytes per child and make the size of any range known for the price of a lookup, and
//!   dropped ranges counted without reading them.

mod births;
mod build;
mod cache;
mod check;
mod cursor;
pub(crate) mod direct;
mod file;
pub(crate) mod frame;
pub(crate) mod fuzz;
mod merge;
mod meta;
mod node;
mod out;
mod pack;
mod page;
mod space;
mod store;
mod transaction;
mod version;

#[cfg(test)]
pub(crate) mod tests;

use crate::encryption::{self, SealedPages, Seals};
use crate::files;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

pub use file::PageFile;

use self::births::{Births, State};
use self::cache::Cache;
use self::direct::DirectFile;
use self::meta::{Meta, PAGE_BYTES, Slot, VERSION};
use self::node::Kids;
use self::space::Space;
use self::store::Store;
use self::version::Version;
use super::{ApplyStats, Base, BaseError, BaseSnapshot, ChangeSource, CheckReport, KeyRange, Packing, Result};

/// More levels than any tree has: with at least two children per node and 2^32 pages there are at most 32.
pub(crate) const DEPTH_MAX: usize = 33;

/// How to open a [`Tree`].
#[derive(Debug, Clone, Copy)]
pub struct TreeOptions {
    /// Bytes of leaves and long values to keep in memory. They come in as they are read, and as they are
    /// written while there is room. Interior nodes and the heads
    /// of leaves, about 1.5 % of what has been read (with rows of 300 bytes), come on top.
    pub cache_bytes_max: usize,
    /// Open for reading only: nothing is created or repaired, `apply` is refused.
    pub read_only: bool,
    /// Page size in bytes of a file to be created: a power of two from 512 to 65,536. Existing files keep theirs, and encrypted ones
    /// have a size of their own.
    pub page_bytes: usize,
    /// Whether leaves and long values of a file to be created may be packed; which ones are is what [`Base::set_packing`] says.
    pub packs: bool,
}

impl Default for TreeOptions {
    fn default() -> TreeOptions {
        TreeOptions {
            cache_bytes_max: 256 << 20,
            read_only: false,
            page_bytes: 4096,
            packs: true,
        }
    }
}

/// A durable [`Base`] in one file. It is not protected against being opened twice: the engine locks its directory.
pub struct Tree {
    store: Arc<Store>,
    current: RwLock<Arc<Version>>,
    writer: Mutex<Writer>,
    file_bytes: AtomicU64,
    held_bytes: AtomicU64,
    read_only: bool,
}

/// The state that only `apply` and `check` use.
struct Writer {
    /// The committed state, as it is in the file.
    meta: Meta,
    /// Read from the free list at the first `apply`.
    space: Option<Space>,
    /// Pages that only older states than the one before the last `apply` had.
    held_pages: u32,
    /// Versions that may still be in use, oldest first.
    versions: Vec<(u64, Weak<Version>)>,
    /// Whether one of the meta pages may name another state.
    meta_is_stale: bool,
    /// Leaves in memory that the state just committed does not have.
    stale: merge::StaleLeaves,
    /// Memory of those of the state before it.
    spare: out::Spare,
    /// See [`Base::set_packing`].
    packing: Packing,
}

impl Tree {
    /// Opens the tree in the file at `path`, or creates one there.
    pub fn open(path: &Path, options: TreeOptions) -> Result<Tree> {
        Tree::open_sealed(path, options, None)
    }

    /// As [`Tree::open`], of a file that is encrypted with what is given.
    pub(crate) fn open_sealed(path: &Path, options: TreeOptions, seals: Option<&Arc<Seals>>) -> Result<Tree> {
        let name: Arc<Path> = path.into();
        let io = |operation| {
            let file = name.clone();
            move |source| BaseError::Io {
                file,
                operation,
                source,
            }
        };
        let exists = path.try_exists().map_err(io("open"))?;
        if !exists && !options.read_only {
            create(path, options, seals).map_err(io("create"))?;
        }
        let file = DirectFile::open(path, options.read_only).map_err(io("open"))?;
        let file: Box<dyn PageFile> = match seals {
            Some(seals) => Box::new(SealedPages::new(Box::new(file), seals.clone())),
            None => Box::new(file),
        };
        Tree::open_named(file, &name, options, Some(Births::path_of(path)))
    }

    /// Opens the tree in `file`, which [`empty_file`] began. `name` is for messages.
    pub fn open_file(file: Box<dyn PageFile>, name: &Path, options: TreeOptions) -> Result<Tree> {
        Tree::open_named(file, name, options, None)
    }

    fn open_named(file: Box<dyn PageFile>, name: &Path, options: TreeOptions, births: Option<PathBuf>) -> Result<Tree> {
        let mut store = Store {
            file,
            path: name.into(),
            page_bytes: options.page_bytes,
            packs: options.packs,
            cache: Cache::new(options.cache_bytes_max),
            births: Births::default(),
        };
        let len = store.file.len().map_err(store.io("open"))?;
        let (meta, meta_is_stale) = read_meta(&store, len)?;
        (store.page_bytes, store.packs) = (meta.page_bytes, meta.packs);
        if len < store.offset(meta.page_count) {
            let reason = format!(
                "the file has {len} bytes, {} were written",
                store.offset(meta.page_count)
            );
            return Err(BaseError::Corrupt {
                file: store.path,
                offset: len,
                reason,
            });
        }
        let state = State::new(meta.txn, meta.root);
        store.births = match births {
            Some(path) => Births::open(path, state, options.read_only),
            None => Births::new(state),
        };
        let store = Arc::new(store);
        let level = meta.root.map_or(0, |(_, level)| level);
        let version = Arc::new(Version {
            store: store.clone(),
            txn: meta.txn,
            root: meta.root,
            kids: Kids::empty(1, level),
            meta: meta.user.clone(),
        });
        let mut writer = Writer {
            held_pages: 0,
            meta,
            space: None,
            versions: vec![(version.txn, Arc::downgrade(&version))],
            meta_is_stale,
            stale: Vec::new(),
            spare: out::Spare::default(),
            packing: Packing::default(),
        };
        if !options.read_only {
            writer.mend_meta(&store)?;
            // Read back, both were alike. Whether both are on the disk is unknown: a sync may have failed before the process
            // ended. The first transaction writes them again before it changes anything else.
            writer.meta_is_stale = true;
        }
        Ok(Tree {
            store,
            current: RwLock::new(version),
            writer: Mutex::new(writer),
            file_bytes: AtomicU64::new(len),
            held_bytes: AtomicU64::new(0),
            read_only: options.read_only,
        })
    }

    /// As [`Base::check`], but goes on behind a fault: tells each of them, and reports what could be read.
    pub(crate) fn verify(&self, fault: &mut dyn FnMut(BaseError)) -> CheckReport {
        let writer = self.writer();
        check::check(&self.store, &writer.meta, fault)
    }

    fn current(&self) -> Arc<Version> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        // A transaction that panicked is rolled back by the next one, so what it left is usable.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Base for Tree {
    fn snapshot(&self) -> Arc<dyn BaseSnapshot> {
        self.current()
    }

    fn set_packing(&self, packing: Packing) {
        self.writer().packing = packing;
    }

    fn apply(&self, deletions: &[KeyRange<'_>], changes: &mut dyn ChangeSource, meta: &[u8]) -> Result<ApplyStats> {
        if self.read_only {
            return Err(BaseError::ReadOnly {
                file: self.store.path.clone(),
            });
        }
        let mut writer = self.writer();
        let (version, mut stats) = writer.apply(&self.store, &self.current(), (deletions, changes, meta))?;
        let old = std::mem::replace(
            &mut *self.current.write().unwrap_or_else(PoisonError::into_inner),
            version,
        );
        writer.settle(&self.store);
        self.file_bytes.store(self.store.file.len().unwrap_or(0), Relaxed);
        let held = u64::from(writer.held_pages) * self.store.page_bytes as u64;
        self.held_bytes.store(held, Relaxed);
        drop(writer);
        // Taking an old version apart takes a while and is nobody's business but ours.
        drop(old);
        stats.bytes_freed = stats.pages_freed * self.store.page_bytes as u64;
        Ok(stats)
    }

    fn file_bytes(&self) -> u64 {
        self.file_bytes.load(Relaxed)
    }

    fn keep_names(&self) -> Option<u64> {
        let writer = self.writer();
        let state = State::new(writer.meta.txn, writer.meta.root);
        self.store.births.keep(state)
    }

    fn names_kept(&self) -> Option<u64> {
        self.store.births.line()
    }

    fn applied(&self) -> u64 {
        self.current().txn
    }

    fn held_bytes(&self) -> u64 {
        self.held_bytes.load(Relaxed)
    }

    fn check(&self) -> Result<CheckReport> {
        let mut first = None;
        let report = self.verify(&mut |fault| {
            first.get_or_insert(fault);
        });
        first.map_or(Ok(report), Err)
    }
}

/// The file of an empty tree with pages of `page_bytes`: a power of two from 512 to 65,536. What it will hold `packs` or is plain.
pub fn empty_file(page_bytes: usize, packs: bool) -> Vec<u8> {
    let is_known = PAGE_BYTES.contains(&page_bytes) || page_bytes == encryption::PAGE_BYTES;
    assert!(is_known, "a page size of the format");
    let meta = Meta {
        page_bytes,
        packs,
        txn: 0,
        page_count: check::META_PAGES,
        root: None,
        free_list: None,
        user: Vec::new(),
    };
    [meta.encode(0), meta.encode(1)].concat()
}

/// Makes an empty tree at `path` such that the file is either whole or not there.
fn create(path: &Path, options: TreeOptions, seals: Option<&Arc<Seals>>) -> io::Result<()> {
    let bytes = match seals {
        Some(seals) => SealedPages::encode(&empty_file(encryption::PAGE_BYTES, options.packs), seals),
        None => empty_file(options.page_bytes, options.packs),
    };
    files::replace(path, &bytes)
}

/// The committed state of a file of `len` bytes, and whether a meta page has to be written again.
fn read_meta(store: &Store, len: u64) -> Result<(Meta, bool)> {
    let corrupt = |offset, reason: &str| BaseError::Corrupt {
        file: store.path.clone(),
        offset,
        reason: reason.into(),
    };
    let read = |page_bytes: usize, slot: u32| -> Result<Slot> {
        let mut bytes = vec![0; page_bytes];
        match store.file.read_at(&mut bytes, page_bytes as u64 * u64::from(slot)) {
            Ok(()) => Ok(Meta::decode(&bytes, slot)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Ok(Slot::Damaged("the file ends in it".into()))
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(Slot::Damaged(error.to_string())),
            Err(error) => Err(store.io("read")(error)),
        }
    };
    let mut reason = None;
    let mut found: Vec<Meta> = Vec::new();
    let own = store.file.page_bytes();
    let sizes = own.as_ref().map_or(&PAGE_BYTES[..], std::slice::from_ref);
    for &page_bytes in sizes {
        for slot in [0, 1] {
            if u64::from(slot) * page_bytes as u64 >= len {
                continue;
            }
            match read(page_bytes, slot)? {
                Slot::Sound(meta) => found.push(meta),
                Slot::Newer(found) => {
                    return Err(BaseError::NewerFormat {
                        file: store.path.clone(),
                        found,
                        supported: VERSION,
                    });
                }
                // Of all page sizes tried, what is wrong with the one that the file names tells most.
                Slot::Damaged(why) if slot == 0 && !why.starts_with("page size") => reason = reason.or(Some(why)),
                Slot::Damaged(_) => {}
            }
        }
        if !found.is_empty() {
            break;
        }
    }
    let stale = found.len() < 2 || found[0] != found[1];
    match found.into_iter().max_by_key(|meta| meta.txn) {
        Some(meta) => Ok((meta, stale)),
        None => Err(corrupt(
            0,
            &reason.unwrap_or_else(|| "both meta pages are damaged".into()),
        )),
    }
}
