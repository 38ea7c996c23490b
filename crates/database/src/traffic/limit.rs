//! A limit: whom it is for, what it allows, and what became of those who met it.

use super::gauge::{Bound, Bounds, Gauge, Met};
use crate::lock;
use crate::observe::counters::Counter;
use crate::turns::Priority;
use crate::users::UserName;
use nestor_model::order::Key;
use nestor_model::{Document, Error, ErrorCode, Str, Value, ValueRef, doc};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Whose operations a limit is for: those that all of what is given fits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subject {
    /// Hash of the query shape.
    pub shape: Option<Str>,
    /// The application's name, as the client gave it.
    pub app_name: Option<Str>,
    /// Who is logged in.
    pub user: Option<UserName>,
    /// The operation's comment.
    pub comment: Option<Key>,
}

/// What is known of an operation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Marks<'a> {
    /// Hash of the query shape.
    pub shape: Option<&'a str>,
    /// The application's name.
    pub app_name: Option<&'a str>,
    /// Who is logged in.
    pub user: Option<&'a UserName>,
    /// The operation's comment.
    pub comment: Option<ValueRef<'a>>,
}

impl Subject {
    /// Whether an operation is one that this is about.
    pub fn covers(&self, marks: &Marks<'_>) -> bool {
        let same_text = |wanted: &Option<Str>, got: Option<&str>| match wanted {
            Some(wanted) => got == Some(wanted.as_str()),
            None => true,
        };
        same_text(&self.shape, marks.shape)
            && same_text(&self.app_name, marks.app_name)
            && self.user.as_ref().is_none_or(|user| marks.user == Some(user))
            && self.comment.as_ref().is_none_or(|wanted| {
                let is_same = |got| nestor_model::order::compare(&wanted.0, got).is_eq();
                marks.comment.is_some_and(is_same)
            })
    }
}

/// A limit as it was set.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// Its name, which no other has.
    pub name: Str,
    /// Whom it is for.
    pub subject: Subject,
    /// What it allows.
    pub bounds: Bounds,
    /// Before or behind whom they come when long operations take turns.
    pub priority: Option<Priority>,
}

/// A limit in force.
#[derive(Debug)]
pub struct Limit {
    /// As it was set.
    pub definition: Definition,
    gauge: Mutex<Gauge>,
    admitted: Counter,
    refused: [Counter; Bound::ALL.len()],
    cpu_nanos: Counter,
    paused_micros: Counter,
}

impl Limit {
    pub(super) fn new(definition: Definition, now: Instant) -> Self {
        Self {
            gauge: Mutex::new(Gauge::new(&definition.bounds, now)),
            definition,
            admitted: Counter::default(),
            refused: Default::default(),
            cpu_nanos: Counter::default(),
            paused_micros: Counter::default(),
        }
    }

    /// Lets an operation in, or says which bound it meets. One that `has_to` go on is let in whatever is left.
    ///
    /// Errors: [`Met`].
    pub fn enter(&self, begins: bool, has_to: bool, now: Instant) -> Result<(), Met> {
        let mut gauge = lock(&self.gauge);
        match gauge.check(&self.definition.bounds, now) {
            // What only goes on is no further operation.
            Err(met) if !has_to && (begins || met.bound != Bound::OperationsPerSecond) => {
                self.refused[met.bound as usize].add(1);
                return Err(met);
            }
            _ => gauge.enter(begins),
        }
        if begins {
            self.admitted.add(1);
        }
        Ok(())
    }

    /// An operation that was let in is over.
    pub fn leave(&self) {
        lock(&self.gauge).leave();
    }

    /// An operation has used so much of the processor. Returns how long it has to pause, if it goes on.
    pub fn charge(&self, used: Duration, now: Instant) -> Option<Duration> {
        // Whoever looks often uses little in between.
        self.cpu_nanos.add(u64::try_from(used.as_nanos()).unwrap_or(u64::MAX));
        lock(&self.gauge).charge(&self.definition.bounds, used, now)
    }

    /// An operation has paused for so long.
    pub fn note_pause(&self, pause: Duration) {
        self.paused_micros.add(micros(pause));
    }

    /// What an operation that met this limit is told: nothing was done, and later it may be.
    pub fn refusal(&self, met: Met) -> Error {
        let name = &self.definition.name;
        let bound = met.bound.name();
        let value = self.definition.bounds.get(met.bound).unwrap_or(Value::Null);
        let message = format!("limit '{name}' of trafficControl is reached, {bound}: {value:?}; nothing was done");
        let mut info = doc! { "limit": name.clone(), "bound": bound, "value": value };
        if let Some(after) = met.after {
            let millis = after.as_micros().div_ceil(1_000);
            info.push("retryAfterMillis", i64::try_from(millis).unwrap_or(i64::MAX));
        }
        // Labels of what drivers may send again after a pause.
        ["SystemOverloadedError", "RetryableError", "NoWritesPerformed"]
            .into_iter()
            .fold(
                Error::new(ErrorCode::IngressRequestRateLimitExceeded, message),
                Error::with_label,
            )
            .with_extra(doc! { "errInfo": info })
    }

    /// As `serverStatus` shows it.
    pub fn to_document(&self) -> Document {
        let mut refused = Document::new();
        for bound in Bound::ALL {
            refused.push(bound.name(), self.refused[bound as usize].get());
        }
        doc! {
            "name": self.definition.name.clone(),
            "running": i64::from(lock(&self.gauge).running()),
            "admitted": self.admitted.get(),
            "refused": refused,
            "cpuMicros": self.cpu_nanos.get() / 1_000,
            "pausedMicros": self.paused_micros.get(),
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_given_has_to_fit() {
        let user = UserName::new("reporter", "admin");
        let subject = Subject {
            shape: None,
            app_name: Some("reports".into()),
            user: Some(user.clone()),
            comment: Some(Key(1.into())),
        };
        let marks = Marks {
            shape: None,
            app_name: Some("reports"),
            user: Some(&user),
            comment: Some(ValueRef::Double(1.0)),
        };
        assert!(subject.covers(&marks));
        assert!(Subject::default().covers(&Marks::default()));
        let other = UserName::new("reporter", "test");
        for marks in [
            Marks {
                app_name: None,
                ..marks
            },
            Marks {
                app_name: Some("Reports"),
                ..marks
            },
            Marks {
                user: Some(&other),
                ..marks
            },
            Marks { user: None, ..marks },
            Marks {
                comment: Some(ValueRef::Int32(2)),
                ..marks
            },
            Marks { comment: None, ..marks },
        ] {
            assert!(!subject.covers(&marks), "{marks:?}");
        }
    }

    #[test]
    fn what_is_told_names_the_limit_and_may_be_sent_again() {
        let definition = Definition {
            name: "reports".into(),
            subject: Subject::default(),
            bounds: Bounds {
                concurrent: Some(1),
                ..Bounds::default()
            },
            priority: None,
        };
        let now = Instant::now();
        let limit = Limit::new(definition, now);
        limit.enter(true, false, now).expect("the first");
        let met = limit.enter(true, false, now).expect_err("the second");
        let error = limit.refusal(met);
        assert_eq!(error.code().number(), 462);
        assert_eq!(
            error.message(),
            "limit 'reports' of trafficControl is reached, concurrent: 1; nothing was done"
        );
        assert!(error.labels().contains(&"RetryableError"));
        limit.enter(false, true, now).expect("it has to go on");
        limit.leave();
        limit.leave();
        let shown = limit.to_document();
        assert_eq!(
            format!("{shown:?}"),
            r#"{"name": "reports", "running": Long(0), "admitted": Long(1), "refused": {"operationsPerSecond": Long(0), "concurrent": Long(1), "cpuMillisPerSecond": Long(0)}, "cpuMicros": Long(0), "pausedMicros": Long(0)}"#
        );
    }
}
