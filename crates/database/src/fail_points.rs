//! Fail points: faults that a test asks for. Here is which of them are on and when they fire, and what two of them do to any
//! statement; what the others do, those know who have them configured.
//!
//! Source: driver specification "Transactions", section "Fail Point".

use nestor_model::number::safe_i64;
use nestor_model::value::DocRef;
use nestor_model::{Document, Error, ErrorCode};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The fail point by which operations that have a time limit exceed it.
pub const TIMES_OUT: &str = "maxTimeAlwaysTimeOut";

/// The fail point by which operations do not exceed the time limit that they have.
pub const NEVER_TIMES_OUT: &str = "maxTimeNeverTimeOut";

/// The fail point of commits of retryable writes.
pub const ON_RETRYABLE_WRITE: &str = "onPrimaryTransactionalWrite";

/// How often a fail point fires.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// Never.
    Off,
    /// Always.
    AlwaysOn,
    /// This often, then never.
    Times(i64),
    /// Not for this often, then always.
    Skip(i64),
    /// With this probability each time.
    Probability(f64),
}

#[derive(Debug)]
struct FailPoint {
    mode: Mode,
    data: Document,
    /// State of the generator behind [`Mode::Probability`].
    random: u64,
}

/// The fail points that are on, and how often each was entered.
#[derive(Debug, Default)]
pub struct FailPoints {
    on: Mutex<BTreeMap<&'static str, FailPoint>>,
    entered: Mutex<BTreeMap<&'static str, i64>>,
}

impl FailPoints {
    /// True when one is on.
    pub fn any(&self) -> bool {
        !crate::lock(&self.on).is_empty()
    }

    /// Turns a fail point on or off; returns how often it was entered so far.
    pub fn configure(&self, name: &'static str, mode: Mode, data: Document) -> i64 {
        let mut on = crate::lock(&self.on);
        if mode == Mode::Off {
            on.remove(name);
        } else {
            let random = 0x9E37_79B9_7F4A_7C15;
            on.insert(name, FailPoint { mode, data, random });
        }
        crate::lock(&self.entered).get(name).copied().unwrap_or(0)
    }

    /// Whether an operation that has a time limit is to exceed it.
    pub fn times_out(&self) -> bool {
        self.fires(TIMES_OUT).is_some()
    }

    /// Whether the time limit of an operation that has one is to be passed over.
    pub fn never_times_out(&self) -> bool {
        self.fires(NEVER_TIMES_OUT).is_some()
    }

    /// [`ON_RETRYABLE_WRITE`]: whether the connection is to be closed after the commit of a statement of a retryable
    /// write, and the error with which that commit is to fail.
    pub fn on_retryable_write(&self) -> (bool, Option<Error>) {
        let Some(data) = self.fires(ON_RETRYABLE_WRITE) else {
            return (false, None);
        };
        let code = data.get("failBeforeCommitExceptionCode").and_then(safe_i64);
        let error = code.map(|code| {
            let code = ErrorCode::location(code.clamp(0, i32::MAX.into()) as i32);
            Error::new(code, "onPrimaryTransactionalWrite fail point enabled")
        });
        let closes = data.get("closeConnection").is_none_or(|value| value.truthy());
        (closes, error)
    }

    /// The data of a fail point that is on and fires.
    fn fires(&self, name: &'static str) -> Option<Document> {
        self.first(|on, _| on == name).map(|(_, data)| data)
    }

    /// The first fail point that is on, applies, and fires, with its data.
    pub fn first(&self, applies: impl Fn(&'static str, DocRef<'_>) -> bool) -> Option<(&'static str, Document)> {
        let mut on = crate::lock(&self.on);
        let mut candidates = on.iter_mut().filter(|(name, point)| applies(name, point.data.as_ref()));
        let (name, point) = candidates.find_map(|(name, point)| point.fires().then_some((*name, point)))?;
        *crate::lock(&self.entered).entry(name).or_default() += 1;
        Some((name, point.data.clone()))
    }
}

impl FailPoint {
    fn fires(&mut self) -> bool {
        match &mut self.mode {
            Mode::Off => false,
            Mode::AlwaysOn => true,
            Mode::Times(left) if *left > 0 => {
                *left -= 1;
                true
            }
            Mode::Times(_) => false,
            Mode::Skip(left) if *left > 0 => {
                *left -= 1;
                false
            }
            Mode::Skip(_) => true,
            Mode::Probability(p) => {
                // xorshift: good enough to fail some commands and not others.
                self.random ^= self.random << 13;
                self.random ^= self.random >> 7;
                self.random ^= self.random << 17;
                ((self.random >> 11) as f64) < *p * (1u64 << 53) as f64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn firing() {
        let fired = |mode: Mode| {
            let mut point = FailPoint {
                mode,
                data: Document::new(),
                random: 1,
            };
            (0..5)
                .map(|_| if point.fires() { 'x' } else { '.' })
                .collect::<String>()
        };
        assert_eq!(fired(Mode::AlwaysOn), "xxxxx");
        assert_eq!(fired(Mode::Times(2)), "xx...");
        assert_eq!(fired(Mode::Skip(2)), "..xxx");
        assert_eq!(fired(Mode::Probability(0.0)), ".....");
        assert_eq!(fired(Mode::Probability(1.0)), "xxxxx");
    }
}
