//! Deliberate faults, which show that the checker of histories finds faults (`tests/histories/README.md`).
//!
//! They are compiled in by the feature `deliberate-faults` only, which no build for users has. One of them is chosen when the
//! process starts, by the environment variable `NESTOR_FAULT`: `NAME:N` makes it strike every N-th time.

#[cfg(feature = "deliberate-faults")]
use std::sync::OnceLock;
#[cfg(feature = "deliberate-faults")]
use std::sync::atomic::{AtomicU64, Ordering};

/// The kind of fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// `conflict`: that a key was committed after the snapshot of a commit or claim goes unnoticed.
    MissedConflict,
    /// `snapshot`: after a statement of a transaction, its later ones read a newer snapshot.
    NewerSnapshot,
    /// `validation`: that a key was committed which a serializable transaction has read goes unnoticed.
    MissedRead,
    /// `journal`: the changes of a commit are left out of its journal frame, so that a crash loses them.
    EmptyFrame,
}

/// Whether `fault` happens now. Never, and at no cost, without the feature.
#[cfg(not(feature = "deliberate-faults"))]
#[inline]
pub(crate) const fn strikes(_: Fault) -> bool {
    false
}

/// Whether `fault` happens now.
#[cfg(feature = "deliberate-faults")]
pub(crate) fn strikes(fault: Fault) -> bool {
    static CHOSEN: OnceLock<Option<(Fault, u64)>> = OnceLock::new();
    static TIMES: AtomicU64 = AtomicU64::new(0);
    let chosen = CHOSEN.get_or_init(|| {
        let value = std::env::var("NESTOR_FAULT").ok()?;
        let chosen = parse(&value).expect("NESTOR_FAULT is conflict:N, snapshot:N, validation:N or journal:N");
        tracing::warn!(fault = value, "this server does wrong deliberately");
        Some(chosen)
    });
    chosen.is_some_and(|(which, every)| which == fault && TIMES.fetch_add(1, Ordering::Relaxed).is_multiple_of(every))
}

#[cfg(feature = "deliberate-faults")]
fn parse(value: &str) -> Option<(Fault, u64)> {
    let (name, every) = value.split_once(':')?;
    let fault = match name {
        "conflict" => Fault::MissedConflict,
        "snapshot" => Fault::NewerSnapshot,
        "validation" => Fault::MissedRead,
        "journal" => Fault::EmptyFrame,
        _ => return None,
    };
    Some((fault, every.parse().ok().filter(|every| *every > 0)?))
}
