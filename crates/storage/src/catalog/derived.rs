//! Values that layers above compute from a catalog entry, kept with the version of the entry that they are computed from.
//!
//! Storage knows neither queries nor collations, so it keeps them behind `dyn Any`. What each type is computed from is
//! fixed by its [`Derive`] implementation: there is one value of a type for each version of an entry, whoever asks
//! first. A changed entry is a new [`Collection`] and starts without.

use super::Collection;
use std::any::Any;
use std::fmt;
use std::sync::OnceLock;

/// A type of which there is one value for each version of a collection's catalog entry.
pub trait Derive: Any + Send + Sync + Sized {
    /// Why there can be no value.
    type Error;

    /// Computes the value. Called once for each version, or a few times by threads that ask at the same time.
    fn derive(collection: &Collection) -> Result<Self, Self::Error>;
}

/// The derived values of one version of an entry: a list, one value for each type.
#[derive(Default)]
pub(crate) struct DerivedValues(OnceLock<Box<Node>>);

struct Node {
    value: Box<dyn Any + Send + Sync>,
    next: DerivedValues,
}

impl DerivedValues {
    /// The value of type `T`, computed now if there is none yet. An error is not kept.
    pub(super) fn get<T: Derive>(&self, collection: &Collection) -> Result<&T, T::Error> {
        let mut at = self;
        while let Some(node) = at.0.get() {
            if let Some(value) = node.value.downcast_ref() {
                return Ok(value);
            }
            at = &node.next;
        }
        let mut new = Box::new(Node {
            value: Box::new(T::derive(collection)?),
            next: Self::default(),
        });
        // Another thread may have been faster: with this type, whose value then counts, or with another one.
        loop {
            let refused = at.0.set(new).err();
            let node = at.0.get().expect("it was set, here or before");
            if let Some(value) = node.value.downcast_ref() {
                return Ok(value);
            }
            new = refused.expect("only the value of another thread is of another type");
            at = &node.next;
        }
    }
}

impl Clone for DerivedValues {
    /// The copy is about to become another version, so it starts without values.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl fmt::Debug for DerivedValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DerivedValues")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, EngineOptions};
    use nestor_model::{CollectionOptions, Namespace, Str, doc};
    use std::sync::atomic::{AtomicUsize, Ordering};

    static COMPUTED: AtomicUsize = AtomicUsize::new(0);

    struct Name(Str);

    impl Derive for Name {
        type Error = ();
        fn derive(collection: &Collection) -> Result<Self, ()> {
            COMPUTED.fetch_add(1, Ordering::Relaxed);
            Ok(Self(collection.ns.coll.clone()))
        }
    }

    struct CappedBytes(i64);

    impl Derive for CappedBytes {
        type Error = &'static str;
        fn derive(collection: &Collection) -> Result<Self, &'static str> {
            let capped = collection.options.capped.ok_or("not capped")?;
            Ok(Self(capped.bytes_max))
        }
    }

    #[test]
    fn a_value_of_each_type_for_each_version() {
        let engine = Engine::ephemeral(EngineOptions::at_time(1));
        let mut ws = engine.begin();
        let ns = Namespace::new("db", "c");
        let first = ws
            .create_collection(&ns, [1; 16], CollectionOptions::default())
            .unwrap();
        assert!(first.derived::<CappedBytes>().is_err());
        assert_eq!(first.derived::<Name>().unwrap().0, "c");
        assert_eq!(first.derived::<Name>().unwrap().0, "c");
        assert_eq!(COMPUTED.load(Ordering::Relaxed), 1);
        assert!(first.derived::<CappedBytes>().is_err(), "an error is not kept");
        let capped = CollectionOptions::parse(doc! { "capped": true, "size": 256 }).unwrap();
        let second = ws.set_options(first.id, capped).unwrap();
        assert_eq!(second.derived::<CappedBytes>().unwrap().0, 256);
        assert_eq!(second.derived::<Name>().unwrap().0, "c");
        assert_eq!(COMPUTED.load(Ordering::Relaxed), 2);
    }
}
