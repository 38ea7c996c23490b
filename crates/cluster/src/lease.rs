//! The lease: which member may try to be primary.
//!
//! A record of the log that the primary replaces again and again. Whoever sees the same version of it for the lease's length, by its
//! own clock, takes it, opens a writer and is primary. Two members that both think they have it shut each other out by their writers:
//! the later one wins, and what the earlier one is not told to be durable it does not acknowledge. So a wrong clock costs an election and
//! never a write.

use crate::Version;
use nestor_model::{RawDoc, RawWriter, ValueRef};
use std::time::Duration;

/// The name of the record.
pub const RECORD: &str = "lease";

/// What the record says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lease {
    /// `host:port` of the member that has it; empty if it was given up.
    pub holder: String,
    /// The epoch of its writer; 0 while it has not opened one.
    pub epoch: u64,
    /// For whom it was given up; empty for anybody.
    pub heir: String,
    /// The member that gave it up last, for [`Lease::barred_ms`].
    pub barred: String,
    /// For how long, after it was given up, that member does not take it again.
    pub barred_ms: u64,
    /// The primary waits for members: they say at once how far they are.
    pub is_awaiting: bool,
    /// The word of its knocks, by which members tell them from others' datagrams; 0 if it has none.
    pub knock: u64,
}

impl Lease {
    /// As bytes of the record.
    pub fn encode(&self) -> Vec<u8> {
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let mut out = RawWriter::onto(Vec::new());
        out.append("holder", self.holder.as_str());
        out.append("epoch", number(self.epoch));
        out.append("heir", self.heir.as_str());
        out.append("barred", self.barred.as_str());
        out.append("barredMS", number(self.barred_ms));
        out.append("awaiting", self.is_awaiting);
        out.append("knock", self.knock.cast_signed());
        out.finish()
    }

    /// Of bytes of the record; `None` if they are of something else.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let document = RawDoc::validate(bytes).ok()?;
        let text = |name| match document.get(name) {
            Some(ValueRef::String(text)) => Some(text.to_owned()),
            _ => None,
        };
        let number = |name| match document.get(name) {
            Some(ValueRef::Int64(number)) => u64::try_from(number).ok(),
            _ => None,
        };
        Some(Self {
            holder: text("holder")?,
            epoch: number("epoch")?,
            heir: text("heir")?,
            barred: text("barred")?,
            barred_ms: number("barredMS")?,
            is_awaiting: document.get("awaiting").is_some_and(|awaiting| awaiting.truthy()),
            knock: match document.get("knock") {
                Some(ValueRef::Int64(word)) => word.cast_unsigned(),
                _ => 0,
            },
        })
    }
}

/// What a member makes of the lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// Somebody else has it.
    Held,
    /// It may be taken, as the version after that one.
    Free(Version),
    /// This member has it.
    Own(Version),
}

/// A member's look at the lease, from one time to the next.
#[derive(Clone, Debug)]
pub struct LeaseWatch {
    own: String,
    length: Duration,
    /// How long it lets others go first that are wanted more.
    deference: Duration,
    /// The version seen last, and when it was seen first.
    seen: Option<(Version, Duration)>,
}

impl LeaseWatch {
    /// The look of the member `own` at a lease of that length.
    pub fn new(own: &str, length: Duration) -> Self {
        Self {
            own: own.to_owned(),
            length,
            deference: Duration::ZERO,
            seen: None,
        }
    }

    /// From now on it lets others go first for so long when the lease may be taken.
    pub fn defer(&mut self, deference: Duration) {
        self.deference = deference;
    }

    /// `now` is the member's clock, which never goes back; `found` the newest record.
    pub fn look(&mut self, now: Duration, found: Option<(Version, &Lease)>) -> Standing {
        let Some((version, lease)) = found else {
            return Standing::Free(0);
        };
        let since = match self.seen {
            Some((seen, since)) if seen == version => since,
            _ => {
                self.seen = Some((version, now));
                now
            }
        };
        let age = now.saturating_sub(since);
        let is_over = age >= self.length + self.deference;
        if lease.holder == self.own {
            return Standing::Own(version);
        }
        if lease.holder.is_empty() {
            let is_barred = lease.barred == self.own && age < Duration::from_millis(lease.barred_ms);
            let is_for_another = !lease.heir.is_empty() && lease.heir != self.own && !is_over;
            // Others see at the same time that it is free.
            let defers = lease.heir != self.own && age < self.deference;
            return match is_barred || is_for_another || defers {
                true => Standing::Held,
                false => Standing::Free(version),
            };
        }
        match is_over {
            true => Standing::Free(version),
            false => Standing::Held,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Duration = Duration::from_secs(2);

    fn lease(holder: &str) -> Lease {
        Lease {
            holder: holder.into(),
            ..Lease::default()
        }
    }

    #[test]
    fn a_lease_is_over_when_it_was_not_renewed_for_its_length() {
        let mut watch = LeaseWatch::new("b", LENGTH);
        let at = Duration::from_millis;
        assert_eq!(watch.look(at(0), None), Standing::Free(0));
        let held = lease("a");
        assert_eq!(watch.look(at(100), Some((1, &held))), Standing::Held);
        assert_eq!(watch.look(at(2_000), Some((1, &held))), Standing::Held);
        assert_eq!(watch.look(at(2_050), Some((2, &held))), Standing::Held, "renewed");
        assert_eq!(watch.look(at(4_049), Some((2, &held))), Standing::Held);
        assert_eq!(watch.look(at(4_050), Some((2, &held))), Standing::Free(2));
        assert_eq!(watch.look(at(9_000), Some((3, &lease("b")))), Standing::Own(3));
    }

    #[test]
    fn a_lease_that_was_given_up_is_free_at_once_but_not_for_who_gave_it_up() {
        let given_up = Lease {
            barred: "a".into(),
            barred_ms: 5_000,
            ..Lease::default()
        };
        let at = Duration::from_millis;
        assert_eq!(
            LeaseWatch::new("b", LENGTH).look(at(7), Some((4, &given_up))),
            Standing::Free(4)
        );
        let mut own = LeaseWatch::new("a", LENGTH);
        assert_eq!(own.look(at(7), Some((4, &given_up))), Standing::Held);
        assert_eq!(own.look(at(5_006), Some((4, &given_up))), Standing::Held);
        assert_eq!(own.look(at(5_007), Some((4, &given_up))), Standing::Free(4));
        let for_c = Lease {
            heir: "c".into(),
            ..Lease::default()
        };
        let mut other = LeaseWatch::new("b", LENGTH);
        assert_eq!(other.look(at(0), Some((5, &for_c))), Standing::Held);
        assert_eq!(other.look(at(2_000), Some((5, &for_c))), Standing::Free(5));
        assert_eq!(
            LeaseWatch::new("c", LENGTH).look(at(0), Some((5, &for_c))),
            Standing::Free(5)
        );
    }

    #[test]
    fn who_is_wanted_less_lets_others_go_first() {
        let at = Duration::from_millis;
        let mut watch = LeaseWatch::new("b", LENGTH);
        watch.defer(at(500));
        let held = lease("a");
        assert_eq!(watch.look(at(0), Some((1, &held))), Standing::Held);
        assert_eq!(watch.look(at(2_499), Some((1, &held))), Standing::Held);
        assert_eq!(watch.look(at(2_500), Some((1, &held))), Standing::Free(1));
        assert_eq!(watch.look(at(3_000), Some((2, &lease("")))), Standing::Held);
        assert_eq!(watch.look(at(3_500), Some((2, &lease("")))), Standing::Free(2));
    }

    #[test]
    fn records_round_trip() {
        let lease = Lease {
            holder: "a:1".into(),
            epoch: 7,
            heir: "b:1".into(),
            barred: "c:1".into(),
            barred_ms: 60_000,
            is_awaiting: true,
            knock: u64::MAX - 6,
        };
        assert_eq!(Lease::decode(&lease.encode()), Some(lease));
        assert_eq!(Lease::decode(&[5, 0, 0, 0, 0]), None);
        assert_eq!(Lease::decode(b"x"), None);
    }
}
