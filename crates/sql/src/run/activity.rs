//! What the connections of the server are at, as `pg_stat_activity` shows it.

use super::tables::Reading;
use crate::catalog::Catalog;
use crate::catalog::system::Activity;
use nestor_model::RawDoc;
use std::sync::PoisonError;

impl Reading<'_, '_> {
    /// The connections that have run statements, of those whose work the user may see.
    pub(super) fn all_activities(&self) -> Vec<Activity> {
        let own = i64::from(self.session.pid);
        let seen = self.connections().into_iter().filter(|(_, may)| *may);
        let all = seen.filter_map(|(slot, _)| {
            let operation = slot.operation.lock().unwrap_or_else(PoisonError::into_inner);
            if operation.command != "sql" && slot.id != own {
                return None;
            }
            let shown = RawDoc::validate(&operation.body).ok();
            let shown = |name: &str| {
                let found = shown.as_ref()?.get(name)?;
                found.as_str().map(str::to_owned)
            };
            let user = slot.user.lock().unwrap_or_else(PoisonError::into_inner);
            let user = user.as_ref().map(|user| user.user.to_string());
            let is_own = slot.id == own;
            let ago = operation.started.map(|started| started.elapsed());
            let ago_us = ago.and_then(|ago| i64::try_from(ago.as_micros()).ok());
            Some(Activity {
                pid: i32::try_from(slot.id).unwrap_or(0),
                user: user.or_else(|| is_own.then(|| self.session.user.clone())),
                database: shown("$db"),
                application: match is_own {
                    true => self.session.settings.get("application_name").cloned(),
                    false => slot.application(),
                },
                peer: slot.peer.to_string(),
                query: shown("sql"),
                since_us: ago_us.map(|ago| self.op.now_ms * 1000 - ago),
                runs: operation.opid != 0,
            })
        });
        all.collect()
    }
}
