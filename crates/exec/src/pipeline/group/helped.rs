//! A thread that numbers groups of rows beside the statement's own, as long as a processor is idle.

use super::numbered::Numbered;
use crate::columns::ColumnRows;
use crate::helper::Permit;
use nestor_columns::nice::come_last;
use nestor_model::{Result, statement};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

/// Rows of segments that wait for the helper.
const WAITING_MAX: usize = 4;

/// Rows that are grouped before it is thought of a helper: a thread costs as much as some thousand of them. Tests have few rows.
pub(super) const ALONE: usize = if cfg!(debug_assertions) { 512 } else { 32 * 1024 };

/// Such a thread. It ends when it has done what it was given and nobody can give it more.
pub(super) struct Helper {
    give: SyncSender<ColumnRows>,
    bytes: Arc<AtomicUsize>,
    thread: JoinHandle<Result<Helped>>,
}

/// What it has done.
pub(super) struct Helped {
    pub(super) groups: Numbered,
    /// Rows that could not be told apart.
    pub(super) left: Vec<ColumnRows>,
    looks: u64,
}

impl Helper {
    /// One that begins with no groups; `None` without a thread.
    pub(super) fn start(permit: Permit, mut groups: Numbered) -> Option<Self> {
        let (give, take) = sync_channel::<ColumnRows>(WAITING_MAX);
        let bytes = Arc::<AtomicUsize>::default();
        let (known, interrupt) = (bytes.clone(), statement::interrupt());
        let help = move || -> Result<Helped> {
            let _permit = permit;
            come_last();
            let mut left = Vec::new();
            while let Ok(rows) = take.recv() {
                let refused = groups.add(&rows)?;
                left.extend(refused.map(|chunks| rows.without(chunks)));
                known.store(groups.bytes(), Ordering::Relaxed);
            }
            let looks = statement::looks();
            Ok(Helped { groups, left, looks })
        };
        let named = std::thread::Builder::new().name("nestor-helper".to_owned());
        let thread = named.spawn(move || statement::under(&interrupt, None, help)).ok()?;
        Some(Self { give, bytes, thread })
    }

    /// Gives it rows, if it has time for them and did not end with an error.
    pub(super) fn takes(&self, rows: &ColumnRows) -> bool {
        match self.give.try_send(rows.clone()) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        }
    }

    /// Bytes of its groups.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Waits until it has done what it was given.
    ///
    /// Errors: those of the interrupt.
    pub(super) fn finish(self) -> Result<Helped> {
        drop(self.give);
        let helped = match self.thread.join() {
            Ok(helped) => helped?,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        statement::add_looks(helped.looks);
        Ok(helped)
    }
}
