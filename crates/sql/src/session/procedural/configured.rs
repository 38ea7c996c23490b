//! Settings that hold while a routine runs: SET clauses of functions.
//!
//! They are of the facts that the routine's statements have, of which the routine around it has its own, so that nothing is to be put back there. What the
//! thread and the statement know of settings is.

use super::Running;
use crate::catalog::routines::Routine;
use crate::settings;
use crate::{asked, current};
use nestor_database::statement::Statement;
use nestor_model::Result;
use nestor_model::statement::{Manners, mannered};
use std::time::Duration;

/// Has a lock be waited for so long.
fn wait_for_locks(statement: &Statement<'_>, most: Option<Duration>) {
    statement.lock_timeout.set(most);
    if let Some(current) = current::get() {
        current.lock_timeout.set(most);
    }
}

/// Puts back how long locks are waited for.
struct Restore<'s, 'r>(&'s Statement<'r>, Option<Duration>);

impl Drop for Restore<'_, '_> {
    fn drop(&mut self) {
        wait_for_locks(self.0, self.1);
    }
}

/// Runs a routine under its settings.
///
/// Errors: those of `run`, and of [`settings::under`].
pub(super) fn under<'s, 'r, T>(
    running: &mut Running<'s, 'r>,
    routine: &Routine,
    run: impl FnOnce(&mut Running<'s, 'r>) -> Result<T>,
) -> Result<T> {
    if routine.config.is_empty() {
        return run(running);
    }
    let facts = settings::under(&running.facts, &routine.config)?;
    let _restore = Restore(running.statement, running.statement.lock_timeout.get());
    let manners = Manners {
        operator_bytes_max: facts.switches.operator_bytes,
        has_helpers: facts.switches.has_helpers,
    };
    running.facts.settings = facts.settings;
    running.facts.switches = facts.switches;
    running.enter_settings();
    // As PostgreSQL has it: the transaction that a COMMIT in it would begin has other settings.
    running.may_end = false;
    let since = asked::mark().0;
    let ran = mannered(manners, || run(running));
    let names: Vec<&str> = routine.config.iter().map(|(name, _)| name.as_str()).collect();
    asked::end_local(since, &names);
    ran
}

impl Running<'_, '_> {
    /// Has the settings that it knows be those that the thread and the statement go by.
    pub(super) fn enter_settings(&mut self) {
        self.entered = None;
        let (zone, style) = (
            settings::zone(&self.facts.settings),
            settings::style(&self.facts.settings),
        );
        self.entered = Some((zone.enter(), style.enter()));
        wait_for_locks(self.statement, settings::time(&self.facts.settings, "lock_timeout"));
    }
}
