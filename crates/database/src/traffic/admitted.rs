//! The limits that have let an operation in.

use super::limit::Limit;
use super::pace;
use std::sync::Arc;

/// The limits that have let an operation in; it leaves them when this is dropped, on the thread that it ran on.
#[derive(Debug, Default)]
pub struct Admitted {
    limits: Vec<Arc<Limit>>,
}

impl Admitted {
    /// The operation has entered a limit.
    pub(crate) fn add(&mut self, limit: Arc<Limit>) {
        if limit.definition.bounds.cpu_millis_per_second.is_some() {
            pace::begin(&limit);
        }
        self.limits.push(limit);
    }

    /// The limits.
    pub fn limits(&self) -> &[Arc<Limit>] {
        &self.limits
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if !self.limits.is_empty() {
            pace::end();
            self.limits.iter().for_each(|limit| limit.leave());
        }
    }
}
