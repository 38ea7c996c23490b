//! Collations: the order of strings by the rules of a language.
//!
//! [`Collation`] is the specification as data, [`Collator`] what compares by it. No collator (`None` in
//! `Option<Collator>`, what `{locale: "simple"}` means) is the order by bytes. Strings are collated wherever
//! they are inside a value; names of fields never are.
//!
//! [`compare`], [`equal`], [`hash`] and [`Key`] are the collated forms of the functions of the same names in
//! `nestor_model`, and fall back on them without a collator. For one collator all of them, and
//! [`Collator::sort_key`], agree.
//!
//! Source: manual, "Collation"; UTS #10 (Unicode Collation Algorithm) and CLDR's tailorings, from `icu_collator`.

mod locale;
mod provider;
mod spec;
mod stored;
#[cfg(test)]
mod tests;

pub use spec::{CaseFirst, Collation};
pub use stored::{sort_key_text, stored};

use icu_collator::CollatorBorrowed;
use nestor_model::order::canonical_class;
use nestor_model::{DocRef, Result, Value, ValueRef, bail, compare as compare_binary, hash_value};
use std::cell::RefCell;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Compares strings under a [`Collation`]. Cheap to clone.
#[derive(Clone)]
pub struct Collator(Arc<Compiled>);

struct Compiled {
    collation: Collation,
    strings: Strings,
}

enum Strings {
    /// Straight on the data in the binary.
    Borrowed(CollatorBorrowed<'static>),
    /// With the direction of accents changed.
    Owned(Box<icu_collator::Collator>),
}

impl Collator {
    /// Compiles a specification. Takes microseconds: once per operation, not per document.
    ///
    /// Errors: 2 for a specification that [`Collation::parse`] would not return.
    pub fn new(collation: Collation) -> Result<Self> {
        let compiled = collation.settings().and_then(|(language, options)| {
            if collation.backwards {
                let owned = icu_collator::Collator::try_new_unstable(&provider::Backwards, language, options);
                Some(Strings::Owned(Box::new(owned.ok()?)))
            } else {
                Some(Strings::Borrowed(CollatorBorrowed::try_new(language, options).ok()?))
            }
        });
        match compiled {
            Some(strings) => Ok(Self(Arc::new(Compiled { collation, strings }))),
            None => bail!(BadValue, "there is no order for the locale \"{}\"", collation.locale),
        }
    }

    /// Reads and compiles a specification; `None` is the simple collation. Errors as [`Collation::parse`].
    pub fn parse(spec: DocRef<'_>) -> Result<Option<Self>> {
        Collation::parse(spec)?.map(Self::new).transpose()
    }

    /// The specification this was compiled from.
    pub fn collation(&self) -> &Collation {
        &self.0.collation
    }

    /// Compares two strings. Does not allocate for strings of usual form.
    pub fn compare(&self, a: &str, b: &str) -> Ordering {
        match &self.0.strings {
            Strings::Borrowed(collator) => collator.compare(a, b),
            Strings::Owned(collator) => collator.as_borrowed().compare(a, b),
        }
    }

    /// Appends the sort key of `text`: byte by byte, sort keys compare as [`Collator::compare`] does, and
    /// no byte of them is zero. Dearer than one comparison, cheaper than a few.
    pub fn sort_key(&self, text: &str, out: &mut Vec<u8>) {
        let Ok(()) = match &self.0.strings {
            Strings::Borrowed(collator) => collator.write_sort_key_to(text, out),
            Strings::Owned(collator) => collator.as_borrowed().write_sort_key_to(text, out),
        };
    }

    /// Compares two values in the canonical order, the strings in them by this collation.
    pub fn compare_values(&self, a: ValueRef<'_>, b: ValueRef<'_>) -> Ordering {
        match (a, b) {
            (ValueRef::String(x) | ValueRef::Symbol(x), ValueRef::String(y) | ValueRef::Symbol(y)) => {
                self.compare(x, y)
            }
            (ValueRef::Document(x), ValueRef::Document(y)) => self.compare_documents(x, y),
            (ValueRef::Array(x), ValueRef::Array(y)) => {
                let (mut left, mut right) = (x.iter(), y.iter());
                loop {
                    match (left.next(), right.next()) {
                        (Some(x), Some(y)) => match self.compare_values(x, y) {
                            Ordering::Equal => {}
                            order => return order,
                        },
                        (left, right) => return left.is_some().cmp(&right.is_some()),
                    }
                }
            }
            _ => compare_binary(a, b),
        }
    }

    fn compare_documents(&self, a: DocRef<'_>, b: DocRef<'_>) -> Ordering {
        let (mut left, mut right) = (a.iter(), b.iter());
        loop {
            match (left.next(), right.next()) {
                (Some((name_a, x)), Some((name_b, y))) => {
                    let order = canonical_class(x.bson_type())
                        .cmp(&canonical_class(y.bson_type()))
                        .then_with(|| name_a.cmp(name_b))
                        .then_with(|| self.compare_values(x, y));
                    if order.is_ne() {
                        return order;
                    }
                }
                (left, right) => return left.is_some().cmp(&right.is_some()),
            }
        }
    }

    /// Hashes so that values that [`Collator::compare_values`] finds equal hash alike.
    pub fn hash_values<H: Hasher>(&self, value: ValueRef<'_>, state: &mut H) {
        match value {
            ValueRef::String(text) | ValueRef::Symbol(text) => {
                with_sort_key(self, text, |key| key.hash(state));
            }
            ValueRef::Document(doc) => {
                for (name, value) in doc {
                    name.hash(state);
                    self.hash_values(value, state);
                }
                state.write_u8(0);
            }
            ValueRef::Array(items) => {
                for item in items {
                    self.hash_values(item, state);
                }
                state.write_u8(1);
            }
            other => hash_value(other, state),
        }
    }
}

/// Calls `f` with the sort key of `text` without allocating.
fn with_sort_key<T>(collator: &Collator, text: &str, f: impl FnOnce(&[u8]) -> T) -> T {
    thread_local!(static SORT_KEY: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) });
    SORT_KEY.with_borrow_mut(|key| {
        key.clear();
        collator.sort_key(text, key);
        f(key)
    })
}

impl PartialEq for Collator {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.collation == other.0.collation
    }
}

impl Eq for Collator {}

impl fmt::Debug for Collator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Collator").field(self.collation()).finish()
    }
}

/// The canonical order, the strings by `collator` if there is one.
pub fn compare(a: ValueRef<'_>, b: ValueRef<'_>, collator: Option<&Collator>) -> Ordering {
    match collator {
        None => compare_binary(a, b),
        Some(collator) => collator.compare_values(a, b),
    }
}

/// [`compare`] is `Equal`.
pub fn equal(a: ValueRef<'_>, b: ValueRef<'_>, collator: Option<&Collator>) -> bool {
    compare(a, b, collator).is_eq()
}

/// Hashes so that values that are [`equal`] under `collator` hash alike.
pub fn hash<H: Hasher>(value: ValueRef<'_>, collator: Option<&Collator>, state: &mut H) {
    match collator {
        None => hash_value(value, state),
        Some(collator) => collator.hash_values(value, state),
    }
}

/// A value as a key of hash maps and ordered maps, by [`equal`] and [`compare`]. All keys of one map carry
/// the same collator.
#[derive(Clone, Debug)]
pub struct Key {
    /// The value as it was.
    pub value: Value,
    collator: Option<Collator>,
}

impl Key {
    /// A key under `collator`.
    pub fn new(value: Value, collator: Option<&Collator>) -> Self {
        Self {
            value,
            collator: collator.cloned(),
        }
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Key {}
impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(self.value.as_ref(), other.value.as_ref(), self.collator.as_ref())
    }
}
impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash(self.value.as_ref(), self.collator.as_ref(), state);
    }
}
