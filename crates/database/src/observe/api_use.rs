//! Which applications declare an API version and which do not, for `metrics.apiVersions`.
//!
//! Each connection notes when a command last did either. What is shown reaches back a day.
//! Source: manual, "serverStatus", `metrics.apiVersions`.

use crate::lock;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How far back is shown.
const SHOWN_SECS: u64 = 24 * 60 * 60;
/// Applications whose connections are closed that are kept at most.
const APPLICATIONS_MAX: usize = 1_000;

/// The API versions that a command may declare, as `apiVersions` shows them.
const VERSIONS: [&str; 2] = ["default", "1"];

/// When commands were last run without a version, and with version 1: seconds since the start of the service, plus one;
/// 0 is never.
type Times = [u64; VERSIONS.len()];

/// The use that one connection makes.
#[derive(Debug, Default)]
pub struct ApiUse([AtomicU64; VERSIONS.len()]);

impl ApiUse {
    /// Notes a command, so many seconds after the start of the service.
    pub fn note(&self, declares_version: bool, secs: u64) {
        self.0[usize::from(declares_version)].store(secs + 1, Relaxed);
    }

    fn times(&self) -> Times {
        [self.0[0].load(Relaxed), self.0[1].load(Relaxed)]
    }
}

/// The use that was made on connections that are closed, by application.
#[derive(Debug, Default)]
pub struct PastUse(Mutex<BTreeMap<String, Times>>);

impl PastUse {
    /// Keeps what a connection noted that is closed now.
    pub fn keep(&self, application: String, own: &ApiUse) {
        let mut past = lock(&self.0);
        let newest = own.times().into_iter().max().unwrap_or(0);
        if past.len() >= APPLICATIONS_MAX && !past.contains_key(&application) {
            past.retain(|_, times| times.iter().any(|time| is_recent(*time, newest)));
            if past.len() >= APPLICATIONS_MAX {
                return;
            }
        }
        add(&mut past, application, own.times());
    }

    /// The versions by application, so many seconds after the start of the service.
    pub fn with_open<'s>(
        &self,
        open: impl Iterator<Item = (String, &'s ApiUse)>,
        secs: u64,
    ) -> impl Iterator<Item = (String, Vec<&'static str>)> {
        let mut all = lock(&self.0).clone();
        for (name, own) in open {
            add(&mut all, name, own.times());
        }
        all.into_iter().filter_map(move |(name, times)| {
            let recent = VERSIONS
                .into_iter()
                .zip(times)
                .filter(|(_, time)| is_recent(*time, secs + 1));
            let versions: Vec<_> = recent.map(|(version, _)| version).collect();
            (!versions.is_empty()).then_some((name, versions))
        })
    }
}

fn add(all: &mut BTreeMap<String, Times>, name: String, times: Times) {
    let known = all.entry(name).or_default();
    for (known, time) in known.iter_mut().zip(times) {
        *known = time.max(*known);
    }
}

fn is_recent(time: u64, now: u64) -> bool {
    time > 0 && now.saturating_sub(time) <= SHOWN_SECS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_shown_for_a_day() {
        let past = PastUse::default();
        let (open, closed) = (ApiUse::default(), ApiUse::default());
        open.note(true, 100_000);
        closed.note(false, 10);
        past.keep("a".to_owned(), &closed);
        let at = |secs| {
            past.with_open([("a".to_owned(), &open)].into_iter(), secs)
                .collect::<Vec<_>>()
        };
        assert_eq!(at(SHOWN_SECS + 10), [("a".to_owned(), vec!["default", "1"])]);
        assert_eq!(at(SHOWN_SECS + 11), [("a".to_owned(), vec!["1"])]);
        assert_eq!(at(SHOWN_SECS + 100_001), []);
    }
}
