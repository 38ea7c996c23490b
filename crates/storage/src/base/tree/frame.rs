//! A page in memory: immutable and verified, its checksum as well as that every offset in it stays inside, so that the
//! accessors need no error path. Only this file and [`build`](super::build) know the offsets of nodes.

use std::cmp::Ordering;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

use crate::ahead;

use super::page::{
    HEADER, NARROW_MAX, NodeRef, OverflowRef, REF_BYTES, ValueAt, checked_varint, get_u32, get_varint, head_of,
};

/// Keys of a node from which on a search begins with a guess; fewer are in one or two lines of memory.
const GUESS_MIN: u32 = 32;
/// Keys between the guess and the look after it: not far from one line of memory.
const GUESS_STEP: usize = 8;
/// Most accesses that [`Page::touch`] remembers.
const HEAT_MAX: u8 = 3;

/// Where the key directory of a node is. The prefix is behind the header, then come the slots.
#[derive(Debug, Clone, Copy, Default)]
struct Directory {
    /// Number of keys.
    count: u32,
    prefix_len: u32,
    /// Where the references to children are, in an interior node.
    refs_at: u32,
    /// Heads of the first and the last key: a search begins where the key would be if all were spread evenly.
    first: u32,
    last: u32,
    /// Bytes per slot.
    stride: u8,
}

impl Directory {
    fn slots_at(&self) -> usize {
        HEADER + self.prefix_len as usize
    }
}

/// A verified extent, or any bytes that a value handle points into.
///
/// The bytes are a piece of memory of their own: the weak reference that a parent keeps to a leaf after the cache dropped it
/// holds on to this struct, so it has to be small. (One piece would save a lookup in a large tree one access to memory, a
/// tenth of its cost.)
#[derive(Debug)]
pub(crate) struct Page {
    directory: Directory,
    /// Where the cache has the page.
    pub(crate) place: AtomicU32,
    heat: AtomicU8,
    bytes: Box<[u8]>,
}

const _: () = assert!(
    size_of::<Page>() <= 48,
    "together with its reference counts a page's head is a cache line"
);

impl Page {
    /// Bytes that are not a node.
    pub(crate) fn raw(bytes: Box<[u8]>) -> Page {
        Page {
            directory: Directory::default(),
            place: AtomicU32::new(u32::MAX),
            heat: AtomicU8::new(0),
            bytes,
        }
    }

    /// Takes the bytes of a node whose checksum, number and kind have been verified, and verifies the rest.
    pub(crate) fn node(bytes: Box<[u8]>, level: u8) -> Result<Page, String> {
        let mut page = Page::raw(bytes);
        page.read_places(level)?;
        page.check_cells(level)?;
        Ok(page)
    }

    /// Takes the bytes of a node that this process has just made, and reads only where things are.
    pub(crate) fn made(bytes: Box<[u8]>, level: u8) -> Result<Page, String> {
        let mut page = Page::raw(bytes);
        page.read_places(level)?;
        debug_assert!(page.check_cells(level).is_ok(), "what was made is as it is read");
        Ok(page)
    }

    /// This leaf with other bytes, in which nothing has moved: values were replaced by others of the same length.
    pub(crate) fn patched(&self, bytes: Box<[u8]>) -> Page {
        debug_assert_eq!(bytes.len(), self.bytes.len(), "nothing has moved");
        Page {
            directory: self.directory,
            ..Page::raw(bytes)
        }
    }

    /// The memory of the extent.
    pub(crate) fn into_bytes(self) -> Box<[u8]> {
        self.bytes
    }

    /// The bytes of the extent.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Remembers one access, for the cache.
    pub(crate) fn touch(&self) {
        let heat = self.heat.load(Relaxed);
        if heat < HEAT_MAX {
            self.heat.store(heat + 1, Relaxed);
        }
    }

    /// Forgets one access; `false` if there was none left.
    pub(crate) fn cool(&self) -> bool {
        let heat = self.heat.load(Relaxed);
        self.heat.store(heat.saturating_sub(1), Relaxed);
        heat > 0
    }

    /// Number of keys: entries of a leaf, separators of an interior node.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.directory.count as usize
    }

    /// Number of children of an interior node.
    pub(crate) fn children(&self) -> usize {
        self.count() + 1
    }

    /// Reference to child `i` of an interior node.
    pub(crate) fn child(&self, i: usize) -> NodeRef {
        NodeRef::decode(&self.bytes()[self.directory.refs_at as usize + i * REF_BYTES..][..REF_BYTES])
    }

    /// Entries in the subtree of child `i`.
    pub(crate) fn child_entries(&self, i: usize) -> u64 {
        self.child(i).entries
    }

    /// Bytes in use.
    pub(crate) fn used(&self) -> usize {
        get_u32(self.bytes(), 24) as usize
    }

    /// The prefix of all keys of the node.
    #[inline]
    pub(crate) fn prefix(&self) -> &[u8] {
        &self.bytes()[HEADER..][..self.directory.prefix_len as usize]
    }

    #[inline]
    fn head(&self, i: usize) -> u32 {
        get_u32(
            self.bytes(),
            self.directory.slots_at() + i * self.directory.stride as usize,
        )
    }

    #[inline]
    fn cell(&self, i: usize) -> usize {
        let at = self.directory.slots_at() + i * self.directory.stride as usize + 4;
        if self.directory.stride == 6 {
            usize::from(u16::from_le_bytes([self.bytes()[at], self.bytes()[at + 1]]))
        } else {
            get_u32(self.bytes(), at) as usize
        }
    }

    /// Length of the suffix of key `i` and the rest of it behind its head.
    #[inline]
    fn suffix(&self, i: usize) -> (usize, &[u8]) {
        let (len, at) = get_varint(self.bytes(), self.cell(i));
        (len as usize, &self.bytes()[at..][..(len as usize).saturating_sub(4)])
    }

    /// Replaces what `key` holds behind the prefix by the suffix of key `i`. `key` begins with the prefix.
    #[inline]
    pub(crate) fn suffix_into(&self, i: usize, key: &mut Vec<u8>) {
        let (len, rest) = self.suffix(i);
        key.truncate(self.directory.prefix_len as usize);
        let head = self.head(i).to_be_bytes();
        key.extend_from_slice(&head[..len.min(4)]);
        key.extend_from_slice(rest);
    }

    /// Replaces `key` by key `i`.
    pub(crate) fn key_into(&self, i: usize, key: &mut Vec<u8>) {
        key.clear();
        key.extend_from_slice(self.prefix());
        self.suffix_into(i, key);
    }

    /// Where the value of entry `i` of a leaf is.
    #[inline]
    pub(crate) fn value(&self, i: usize) -> ValueAt {
        let (suffix, at) = get_varint(self.bytes(), self.cell(i));
        let (word, at) = get_varint(self.bytes(), at + (suffix as usize).saturating_sub(4));
        if word & 1 == 0 {
            let len = word >> 1;
            ValueAt::Inline { start: at as u32, len }
        } else {
            ValueAt::Overflow(OverflowRef::decode(self.bytes(), at, word))
        }
    }

    /// Index of the first key `>= key`, and whether it is equal.
    #[inline]
    pub(crate) fn search(&self, key: &[u8]) -> (usize, bool) {
        let count = self.count();
        let prefix = self.prefix();
        let Some(suffix) = key.strip_prefix(prefix) else {
            return if key < prefix { (0, false) } else { (count, false) };
        };
        let head = head_of(suffix);
        let rest = suffix.get(4..).unwrap_or(&[]);
        let stride = usize::from(self.directory.stride);
        let slots = &self.bytes()[self.directory.slots_at()..][..count * stride];
        let (mut low, mut high) = (0, count);
        let mut middle = self.guess(head);
        // Steps away from the guess, each four times as long as the one before, until halving is shorter.
        let mut step = GUESS_STEP;
        while low < high {
            let at = get_u32(slots, middle * stride);
            let order = match at.cmp(&head) {
                Ordering::Equal => {
                    let (len, at_rest) = self.suffix(middle);
                    at_rest.cmp(rest).then(len.cmp(&suffix.len()))
                }
                order => order,
            };
            match order {
                Ordering::Less => {
                    low = middle + 1;
                    middle = ((low + high) / 2).min(low + step);
                }
                Ordering::Equal => return (middle, true),
                Ordering::Greater => {
                    high = middle;
                    middle = ((low + high) / 2).max(high.saturating_sub(step + 1));
                }
            }
            step *= 4;
        }
        (low, false)
    }

    /// Asks for the memory that [`Page::search`] for this key looks at first.
    #[inline]
    pub(crate) fn ask_for_slot(&self, key: &[u8]) {
        let bytes = self.bytes();
        ahead::ask(bytes[HEADER.min(bytes.len())..].as_ptr());
        if let Some(slot) = self.first_look(key) {
            ahead::ask(bytes[slot.min(bytes.len())..].as_ptr());
        }
    }

    /// Asks for the memory where the key and its value are, if they are where [`Page::search`] looks first.
    #[inline]
    pub(crate) fn ask_for_cell(&self, key: &[u8]) {
        let bytes = self.bytes();
        let (Some(slot), true) = (self.first_look(key), self.count() > 0) else {
            return;
        };
        let at = self.cell((slot - self.directory.slots_at()) / self.directory.stride as usize);
        let end = bytes.len().min(at + 4 * ahead::LINE_BYTES);
        ahead::ask_bytes(&bytes[at.min(end)..end]);
    }

    /// Where the slot is that [`Page::search`] looks at first; the prefix is taken for granted.
    #[inline]
    fn first_look(&self, key: &[u8]) -> Option<usize> {
        let suffix = key.get(self.directory.prefix_len as usize..)?;
        Some(self.directory.slots_at() + self.guess(head_of(suffix)) * self.directory.stride as usize)
    }

    /// Where among the keys one with this head may be: each look elsewhere is a line of memory more to wait for.
    #[inline]
    fn guess(&self, head: u32) -> usize {
        let Directory { first, last, count, .. } = self.directory;
        if count < GUESS_MIN || last <= first {
            return count as usize / 2;
        }
        let head = head.clamp(first, last);
        (u64::from(head - first) * u64::from(count - 1) / u64::from(last - first)) as usize
    }

    /// Index of the child of an interior node whose range holds `key`.
    #[inline]
    pub(crate) fn child_of(&self, key: &[u8]) -> usize {
        let (at, exact) = self.search(key);
        at + usize::from(exact)
    }

    /// Reads where things are, and verifies that the directory is inside.
    fn read_places(&mut self, level: u8) -> Result<(), String> {
        let bytes = self.bytes();
        if bytes[9] != level {
            return Err(format!("node of level {} where level {level} belongs", bytes[9]));
        }
        let stride = if bytes.len() > NARROW_MAX { 8 } else { 6 };
        let items = get_u32(bytes, 16);
        if items == 0 {
            return Err("node without entries".into());
        }
        let (count, refs) = if level == 0 {
            (items, 0)
        } else {
            (items - 1, items as usize)
        };
        let prefix_len = get_u32(bytes, 20);
        let slots_at = HEADER.saturating_add(prefix_len as usize);
        let refs_at = slots_at.saturating_add((count as usize).saturating_mul(stride));
        let used = get_u32(bytes, 24) as usize;
        if used > bytes.len() || refs_at.saturating_add(refs.saturating_mul(REF_BYTES)) > used {
            return Err("key directory reaches beyond the node".into());
        }
        self.directory = Directory {
            count,
            prefix_len,
            refs_at: refs_at as u32,
            stride: stride as u8,
            ..Directory::default()
        };
        if let Some(last) = self.count().checked_sub(1) {
            (self.directory.first, self.directory.last) = (self.head(0), self.head(last));
        }
        Ok(())
    }

    /// Verifies that every cell is inside.
    fn check_cells(&self, level: u8) -> Result<(), String> {
        let used = self.used();
        match (0..self.count()).find(|i| !self.cell_is_inside(*i, level, used)) {
            Some(i) => Err(format!("cell {i} reaches beyond the node")),
            None => Ok(()),
        }
    }

    fn cell_is_inside(&self, i: usize, level: u8, used: usize) -> bool {
        let inside = || -> Option<bool> {
            let (suffix, at) = checked_varint(&self.bytes()[..used], self.cell(i))?;
            let at = at.checked_add((suffix as usize).saturating_sub(4))?;
            if level > 0 {
                return Some(at <= used);
            }
            let (word, at) = checked_varint(&self.bytes()[..used], at)?;
            let len = match word & 1 {
                0 => (word >> 1) as usize,
                _ => OverflowRef::bytes(word),
            };
            Some(at.checked_add(len)? <= used)
        };
        inside().unwrap_or(false)
    }
}
