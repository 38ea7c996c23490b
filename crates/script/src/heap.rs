//! The memory of an interpreter: counted, limited, and part of what its statement holds.
#![allow(unsafe_code)]

use nestor_model::memory::Held;
use rquickjs::allocator::{Allocator, RustAllocator};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// What an interpreter's heap may take, in bytes.
pub const HEAP_BYTES_MAX: usize = 100 * 1024 * 1024;

/// How much an interpreter's heap takes.
pub(crate) struct Heap {
    bytes: Cell<usize>,
    held: RefCell<Held>,
    refused: Cell<bool>,
}

impl Heap {
    /// An empty heap of the statement that runs on this thread.
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self {
            bytes: Cell::new(0),
            held: RefCell::new(Held::by_this_statement()),
            refused: Cell::new(false),
        })
    }

    /// Lets others see how much it takes.
    pub(crate) fn publish(&self) {
        self.held.borrow_mut().set(self.bytes.get());
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
}

/// Takes memory from Rust's allocator as long as the heap has room; the interpreter then throws "out of memory".
pub(crate) struct Limited(pub(crate) Rc<Heap>);

// SAFETY: every piece comes from, is resized by and goes back to `RustAllocator`, which fulfils the contract. What is added
// only refuses, with a null pointer, which the contract allows.
unsafe impl Allocator for Limited {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        if !self.0.take(size) {
            return std::ptr::null_mut();
        }
        let piece = RustAllocator.alloc(size);
        self.settle(piece, size)
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        let Some(bytes) = count.checked_mul(size).filter(|bytes| self.0.take(*bytes)) else {
            return std::ptr::null_mut();
        };
        let piece = RustAllocator.calloc(count, size);
        self.settle(piece, bytes)
    }

    unsafe fn dealloc(&mut self, ptr: *mut u8) {
        if ptr.is_null() {
            return;
        }
        // SAFETY: the caller's promise is the same as here; the piece is not null.
        unsafe {
            self.0.give_back(RustAllocator::usable_size(ptr));
            RustAllocator.dealloc(ptr);
        }
    }

    unsafe fn realloc(&mut self, ptr: *mut u8, new_size: usize) -> *mut u8 {
        if ptr.is_null() {
            return self.alloc(new_size);
        }
        // SAFETY: the caller's promise is the same as here; the piece is not null.
        unsafe {
            let before = RustAllocator::usable_size(ptr);
            if !self.0.take(new_size.saturating_sub(before)) {
                return std::ptr::null_mut();
            }
            let piece = RustAllocator.realloc(ptr, new_size);
            if piece.is_null() {
                self.0.give_back(new_size.saturating_sub(before));
                return piece;
            }
            // What was taken above is `max(new_size, before)`; what there is now is what the piece says.
            self.0.give_back(new_size.max(before));
            self.0.bytes.set(self.0.bytes.get() + RustAllocator::usable_size(piece));
            piece
        }
    }

    unsafe fn usable_size(ptr: *mut u8) -> usize {
        // SAFETY: the caller's promise is the same as here.
        unsafe { RustAllocator::usable_size(ptr) }
    }
}

impl Limited {
    /// Counts a fresh piece by the size it really has instead of the one that was asked for.
    fn settle(&self, piece: *mut u8, asked: usize) -> *mut u8 {
        self.0.give_back(asked);
        if !piece.is_null() {
            // SAFETY: the piece is fresh, and of `RustAllocator`.
            let bytes = unsafe { RustAllocator::usable_size(piece) };
            self.0.bytes.set(self.0.bytes.get() + bytes);
        }
        piece
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
