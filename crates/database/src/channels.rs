//! Channels on which sessions of SQL tell each other something: LISTEN and NOTIFY.
//!
//! They are of one database of one process. Whoever listens has a [`Mailbox`], in which what others say waits until the session is
//! between two transactions. What waits in it is bounded: nobody may say more on a channel whose listeners do not read.

use nestor_model::{Result, bail};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

/// Bytes that wait in one mailbox before nobody may say more to it.
pub const WAITING_BYTES_MAX: usize = 16 << 20;
/// Channels that one session listens on at most.
const CHANNELS_MAX: usize = 10_000;
/// What a notification takes beside its texts, in bytes, about.
const NOTIFICATION_BYTES: usize = 64;

/// Something that a session has said.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Notification {
    /// The number of the connection that said it.
    pub pid: i32,
    /// On which channel.
    pub channel: Arc<str>,
    /// What.
    pub payload: Arc<str>,
}

impl Notification {
    /// The memory that it takes, in bytes.
    pub fn weight(&self) -> usize {
        NOTIFICATION_BYTES + self.channel.len() + self.payload.len()
    }
}

#[derive(Debug, Default)]
struct Waiting {
    all: VecDeque<Notification>,
    bytes: usize,
    waker: Option<Waker>,
}

/// What a session has not been told yet.
#[derive(Debug, Default)]
pub struct Mailbox(Mutex<Waiting>);

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn put(&self, notification: Notification) {
        let mut waiting = self.lock();
        waiting.bytes += notification.weight();
        waiting.all.push_back(notification);
        if let Some(waker) = waiting.waker.take() {
            waker.wake();
        }
    }

    /// What waits, in the order in which it was said; nothing of it waits any more.
    pub fn take(&self) -> VecDeque<Notification> {
        let mut waiting = self.lock();
        waiting.bytes = 0;
        std::mem::take(&mut waiting.all)
    }

    /// Ready when something waits. Only the last who asked is woken.
    pub fn poll_waiting(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut waiting = self.lock();
        if !waiting.all.is_empty() {
            return Poll::Ready(());
        }
        waiting.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// The listeners of a channel, by the numbers of their connections.
type Listeners = BTreeMap<i64, Arc<Mailbox>>;

/// All channels on which somebody listens, by database and name.
#[derive(Debug, Default)]
pub struct Channels(Mutex<HashMap<String, HashMap<Arc<str>, Listeners>>>);

impl Channels {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, HashMap<Arc<str>, Listeners>>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// What is said on a channel comes into a mailbox from now on.
    ///
    /// Errors: 146 for a session that listens on too many.
    pub fn listen(&self, (db, channel): (&str, &str), session: i64, mailbox: &Arc<Mailbox>) -> Result<()> {
        let mut all = self.lock();
        let of_database = all.entry(db.to_owned()).or_default();
        let listened = of_database
            .values()
            .filter(|listeners| listeners.contains_key(&session));
        if listened.count() >= CHANNELS_MAX {
            bail!(
                ExceededMemoryLimit,
                "a session listens on {CHANNELS_MAX} channels at most"
            );
        }
        let listeners = of_database.entry(channel.into()).or_default();
        listeners.insert(session, mailbox.clone());
        Ok(())
    }

    /// A session listens on a channel no more, or on none for `None`.
    pub fn unlisten(&self, db: &str, channel: Option<&str>, session: i64) {
        let mut all = self.lock();
        let Some(of_database) = all.get_mut(db) else { return };
        of_database.retain(|name, listeners| {
            if channel.is_none_or(|channel| channel == &**name) {
                listeners.remove(&session);
            }
            !listeners.is_empty()
        });
        if of_database.is_empty() {
            all.remove(db);
        }
    }

    /// The channels on which a session listens, by name.
    pub fn of(&self, db: &str, session: i64) -> Vec<String> {
        let all = self.lock();
        let own = all.get(db).into_iter().flatten();
        let own = own.filter(|(_, listeners)| listeners.contains_key(&session));
        let mut names: Vec<String> = own.map(|(name, _)| name.to_string()).collect();
        names.sort();
        names
    }

    /// Whether a channel takes something of so many bytes: no mailbox of its listeners is full.
    pub fn has_room(&self, (db, channel): (&str, &str), bytes: usize) -> bool {
        let all = self.lock();
        let listeners = all.get(db).and_then(|of_database| of_database.get(channel));
        listeners.is_none_or(|listeners| {
            listeners
                .values()
                .all(|mailbox| mailbox.lock().bytes.saturating_add(bytes) <= WAITING_BYTES_MAX)
        })
    }

    /// Tells all who listen.
    pub fn notify(&self, db: &str, said: Vec<Notification>) {
        let all = self.lock();
        let Some(of_database) = all.get(db) else { return };
        for notification in said {
            for mailbox in of_database
                .get(&notification.channel)
                .into_iter()
                .flat_map(BTreeMap::values)
            {
                mailbox.put(notification.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_who_listen_are_told_and_mailboxes_have_bounds() {
        let (channels, own) = (Channels::default(), Arc::new(Mailbox::default()));
        let said = |payload: &str| Notification {
            pid: 1,
            channel: "c".into(),
            payload: payload.into(),
        };
        channels.notify("db", vec![said("nobody")]);
        channels.listen(("db", "c"), 7, &own).unwrap();
        channels.listen(("other", "c"), 7, &own).unwrap();
        channels.notify("db", vec![said("a"), said("b")]);
        assert_eq!(channels.of("db", 7), ["c"]);
        assert!(own.poll_waiting(&mut Context::from_waker(Waker::noop())).is_ready());
        let heard: Vec<String> = own.take().iter().map(|own| own.payload.to_string()).collect();
        assert_eq!(heard, ["a", "b"]);
        assert!(own.poll_waiting(&mut Context::from_waker(Waker::noop())).is_pending());
        let long = "x".repeat(WAITING_BYTES_MAX - 1000);
        assert!(channels.has_room(("db", "c"), long.len()));
        channels.notify("db", vec![said(&long)]);
        assert!(!channels.has_room(("db", "c"), 1000));
        assert!(channels.has_room(("db", "d"), 1000));
        channels.unlisten("db", None, 7);
        assert_eq!(channels.of("db", 7), Vec::<String>::new());
        assert_eq!(channels.of("other", 7), ["c"]);
    }
}
