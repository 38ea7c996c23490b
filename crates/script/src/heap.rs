//! The memory of an interpreter: counted, limited, part of what its statement holds, and put back to what it was.
//!
//! Everything that the interpreter is lies in pieces that it takes from here: its objects, its tables, the interpreter itself. Once the
//! prelude has run, [`Heap::keep`] copies them all; [`Heap::restore`] writes the copies back to where they were and frees every piece
//! that came later. No variable, prototype or counter can differ from then on from what it was, whatever a script has done and wherever it was
//! stopped, and this takes some microseconds, a new interpreter 0.4 ms.
#![allow(unsafe_code)]

use nestor_model::memory::Held;
use nestor_model::statement::{BYTES_PER_UNIT, work};
use rquickjs::allocator::Allocator;
use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, realloc};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// What an interpreter's heap may take, in bytes.
pub const HEAP_BYTES_MAX: usize = 100 * 1024 * 1024;

/// How much an interpreter's heap takes, and where it lies.
pub(crate) struct Heap {
    bytes: Cell<usize>,
    held: RefCell<Held>,
    refused: Cell<bool>,
    /// Pieces in use, without those that are kept: `pieces[i]` has `i` as its place.
    pieces: RefCell<Vec<*mut Head>>,
    image: RefCell<Image>,
}

/// What stands before each piece.
#[repr(C, align(16))]
struct Head {
    /// Bytes behind it.
    size: usize,
    /// Where it stands among the pieces in use; [`KEPT`] for those that are kept.
    place: usize,
}

/// The place of pieces that are kept: they are not freed when the interpreter frees them, since they are written again.
const KEPT: usize = usize::MAX;

/// The pieces as they were when they were kept.
#[derive(Default)]
struct Image {
    pieces: Vec<*mut Head>,
    /// What was in them, one behind the other.
    content: Vec<u8>,
    /// How much the heap took.
    bytes: usize,
}

impl Heap {
    /// An empty heap of the statement that runs on this thread.
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self {
            bytes: Cell::new(0),
            held: RefCell::new(Held::by_this_statement()),
            refused: Cell::new(false),
            pieces: RefCell::default(),
            image: RefCell::default(),
        })
    }

    /// Lets others see how much it takes.
    pub(crate) fn publish(&self) {
        self.held.borrow_mut().set(self.bytes.get());
    }

    /// Belongs to the statement that runs on this thread, from now on.
    pub(crate) fn wake(&self) {
        self.held.replace(Held::by_this_statement());
        self.publish();
    }

    /// Takes so much, if there is room.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let after = self.bytes.get().saturating_add(bytes);
        let fits = after <= HEAP_BYTES_MAX;
        #[cfg(test)]
        let fits = fits && !refusals::is_next();
        if fits {
            self.bytes.set(after);
        } else {
            self.refused.set(true);
        }
        fits
    }

    /// Whether memory was refused since this was asked last.
    pub(crate) fn was_refused(&self) -> bool {
        self.refused.take()
    }

    /// What was taken is free again.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.bytes.set(self.bytes.get().saturating_sub(bytes));
    }

    /// All that is there now is what [`Self::restore`] comes back to.
    pub(crate) fn keep(&self) {
        let mut image = self.image.borrow_mut();
        let pieces = self.pieces.take();
        image.bytes = self.bytes.get();
        for piece in &pieces {
            // SAFETY: the pieces in use are alive, and as long as they say; nobody writes into them meanwhile.
            unsafe {
                (**piece).place = KEPT;
                let content = std::slice::from_raw_parts(piece.add(1).cast::<u8>(), (**piece).size);
                image.content.extend_from_slice(content);
            }
        }
        image.pieces = pieces;
    }

    /// Is again what it was when it was kept, and belongs to no statement until it is woken.
    ///
    /// # Safety
    /// The interpreter does not run, and nobody outside it holds what it did not hold when the heap was kept.
    pub(crate) unsafe fn restore(&self) {
        for piece in self.pieces.take() {
            // SAFETY: the piece is in use until here; who could still look at it is restored to when it was not there.
            unsafe { free(piece) };
        }
        let image = self.image.borrow();
        let mut content = &image.content[..];
        for piece in &image.pieces {
            // SAFETY: pieces that are kept are never freed and keep their size; the content is that of all of them in this order.
            unsafe {
                let (before, behind) = content.split_at((**piece).size);
                std::ptr::copy_nonoverlapping(before.as_ptr(), piece.add(1).cast::<u8>(), before.len());
                content = behind;
            }
        }
        self.bytes.set(image.bytes);
        self.refused.set(false);
        let mut held = self.held.borrow_mut();
        held.set(image.bytes + image.content.len());
        held.rest();
    }

    /// No piece is kept any more: the interpreter frees them all, since it ends.
    pub(crate) fn release(&self) {
        let image = self.image.take();
        for piece in image.pieces {
            self.enlist(piece);
        }
    }

    /// How many bytes of its piece are behind a place; none for what is no place in the heap.
    pub(crate) fn behind(&self, place: *const u8) -> usize {
        let pieces = self.pieces.borrow();
        let behind = |piece: &*mut Head| {
            // SAFETY: pieces in the list are alive.
            let (begin, size) = unsafe { (piece.add(1) as usize, (**piece).size) };
            (begin + size)
                .checked_sub(place as usize)
                .filter(|behind| *behind <= size)
        };
        pieces.iter().find_map(behind).unwrap_or(0)
    }

    fn enlist(&self, piece: *mut Head) {
        let mut pieces = self.pieces.borrow_mut();
        // SAFETY: the piece is alive.
        unsafe { (*piece).place = pieces.len() };
        pieces.push(piece);
    }

    /// Takes a piece out of the list of those in use.
    fn delist(&self, piece: *mut Head) {
        let mut pieces = self.pieces.borrow_mut();
        // SAFETY: pieces in the list are alive, and the piece is one of them.
        unsafe {
            let place = (*piece).place;
            pieces.swap_remove(place);
            if let Some(moved) = pieces.get(place) {
                (**moved).place = place;
            }
        }
    }
}

/// How a piece of so many bytes lies in memory, its head before it.
fn layout(size: usize) -> Option<Layout> {
    Layout::from_size_align(size.checked_add(size_of::<Head>())?, align_of::<Head>()).ok()
}

/// # Safety
/// The piece is one of [`Limited`]'s, alive, and nobody uses it any more.
unsafe fn free(piece: *mut Head) {
    // SAFETY: the piece was allocated with this layout, as its size says.
    unsafe {
        if let Some(layout) = layout((*piece).size) {
            dealloc(piece.cast(), layout);
        }
    }
}

/// Takes memory as long as the heap has room and the statement time; the interpreter then throws "out of memory". Its own functions that look at
/// long arrays and texts in one step are stopped by this when they take memory on the way.
pub(crate) struct Limited(pub(crate) Rc<Heap>);

impl Limited {
    fn piece(&self, size: usize, allocate: unsafe fn(Layout) -> *mut u8) -> *mut u8 {
        let room = work(1 + size / BYTES_PER_UNIT).is_ok() && self.0.take(size);
        let Some(layout) = layout(size).filter(|_| room) else {
            return std::ptr::null_mut();
        };
        // SAFETY: the layout has at least the size of the head.
        let piece = unsafe { allocate(layout) }.cast::<Head>();
        if piece.is_null() {
            self.0.give_back(size);
            return std::ptr::null_mut();
        }
        // SAFETY: the piece is fresh, aligned for its head and longer.
        unsafe {
            piece.write(Head { size, place: 0 });
            self.0.enlist(piece);
            piece.add(1).cast()
        }
    }
}

// SAFETY: every piece comes from Rust's allocator, has the size that its head says and the alignment of the head, and is alive until
// it is freed. Memory is refused with a null pointer, which the contract allows.
unsafe impl Allocator for Limited {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        self.piece(size, alloc)
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        match count.checked_mul(size) {
            Some(bytes) => self.piece(bytes, alloc_zeroed),
            None => std::ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&mut self, ptr: *mut u8) {
        if ptr.is_null() {
            return;
        }
        // SAFETY: by the caller's promise the piece is ours and alive, and its head stands before it.
        unsafe {
            let piece = ptr.cast::<Head>().sub(1);
            self.0.give_back((*piece).size);
            if (*piece).place != KEPT {
                self.0.delist(piece);
                free(piece);
            }
        }
    }

    unsafe fn realloc(&mut self, ptr: *mut u8, new_size: usize) -> *mut u8 {
        if ptr.is_null() {
            return self.alloc(new_size);
        }
        // SAFETY: by the caller's promise the piece is ours and alive, and its head stands before it.
        unsafe {
            let piece = ptr.cast::<Head>().sub(1);
            let before = (*piece).size;
            if (*piece).place == KEPT {
                let moved = self.alloc(new_size);
                if !moved.is_null() {
                    std::ptr::copy_nonoverlapping(ptr, moved, before.min(new_size));
                    self.dealloc(ptr);
                }
                return moved;
            }
            let grows = new_size.saturating_sub(before);
            if work(1 + new_size / BYTES_PER_UNIT).is_err() || !self.0.take(grows) {
                return std::ptr::null_mut();
            }
            let moved = match (layout(before), layout(new_size)) {
                (Some(was), Some(is)) => realloc(piece.cast(), was, is.size()).cast::<Head>(),
                _ => std::ptr::null_mut(),
            };
            if moved.is_null() {
                self.0.give_back(grows);
                return std::ptr::null_mut();
            }
            self.0.give_back(before.saturating_sub(new_size));
            (*moved).size = new_size;
            self.0.pieces.borrow_mut()[(*moved).place] = moved;
            moved.add(1).cast()
        }
    }

    unsafe fn usable_size(ptr: *mut u8) -> usize {
        // SAFETY: by the caller's promise the piece is ours and alive, and its head stands before it.
        unsafe { (*ptr.cast::<Head>().sub(1)).size }
    }
}

/// Refusals of memory, for tests of what becomes of them.
#[cfg(test)]
pub(crate) mod refusals {
    use std::cell::Cell;

    thread_local! {
        /// How often memory is given before it is refused, from then on for good; none for always.
        static GIVEN: Cell<Option<usize>> = const { Cell::new(None) };
    }

    /// Refuses memory after it was given so often.
    pub(crate) fn after(times: Option<usize>) {
        GIVEN.set(times);
    }

    pub(super) fn is_next() -> bool {
        match GIVEN.get() {
            Some(0) => true,
            Some(left) => {
                GIVEN.set(Some(left - 1));
                false
            }
            None => false,
        }
    }
}
