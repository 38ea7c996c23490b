//! Groups of many rows by two threads: the statement's own reads, and gives what it read to a helper as long as that has time; what the helper
//! has not is grouped here. In the end both parts become one.

use super::part::{Part, Prepared, Shape};
use crate::helper::Permit;
use nestor_columns::nice::come_last;
use nestor_model::{Result, statement};
use nestor_planner::relation::Scalar;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{TrySendError, sync_channel};

/// Chunks that wait for the helper.
const WAITING_MAX: usize = 4;

/// Groups all that `next` gives, with what `own` has already. `grow` is told by how many bytes the groups of both grow.
///
/// Errors: those of `next` and `grow`, of the functions, and of the interrupt.
pub(super) fn read<S: Scalar>(
    shape: &Shape<S>,
    own: &mut Part<S>,
    _permit: Permit,
    mut next: impl FnMut() -> Result<Option<Prepared>>,
    mut grow: impl FnMut(usize) -> Result<()>,
) -> Result<()> {
    let grown = &AtomicUsize::new(0);
    let (give, take) = sync_channel::<Prepared>(WAITING_MAX);
    let interrupt = statement::interrupt();
    let help = move || -> Result<(Part<S>, u64)> {
        come_last();
        let mut part = Part::new(shape);
        while let Ok(chunk) = take.recv() {
            grown.fetch_add(part.add(shape, &chunk)?, Ordering::Relaxed);
        }
        Ok((part, statement::looks()))
    };
    std::thread::scope(|scope| {
        let named = std::thread::Builder::new().name("nestor-helper".to_owned());
        let helper = named.spawn_scoped(scope, move || statement::under(&interrupt, None, help));
        // It ends when nobody can give it anything more, which is so when this closure ends.
        let give = give;
        let Ok(helper) = helper else {
            while let Some(chunk) = next()? {
                grow(own.add(shape, &chunk)?)?;
            }
            return Ok(());
        };
        let mut waits = 0;
        while let Some(chunk) = next()? {
            // So many wait at a time, and are counted as long as the groups are.
            let all = chunk.bytes() * (WAITING_MAX + 1);
            if all > waits {
                grow(all - waits)?;
                waits = all;
            }
            match give.try_send(chunk) {
                Ok(()) => {}
                Err(TrySendError::Full(chunk)) => grow(own.add(shape, &chunk)?)?,
                // It ended with an error.
                Err(TrySendError::Disconnected(_)) => break,
            }
            grow(grown.swap(0, Ordering::Relaxed))?;
        }
        drop(give);
        let (part, looks) = match helper.join() {
            Ok(helped) => helped?,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        statement::add_looks(looks);
        grow(grown.swap(0, Ordering::Relaxed))?;
        grow(own.merge(shape, part)?)
    })
}
