//! Knocks: datagrams by which members tell each other to look at the store now, instead of when it is their time.
//!
//! | size | meaning |
//! |---|---|
//! | 1 | `L` the log has more, `M` a member has said how far it is, `P` nothing: knocks arrive |
//! | 1 | 1 if the primary waits for members, else 0 |
//! | 8 | the knock's word, little-endian: the number `knock` of the lease ([`crate::Lease::knock`]) |
//!
//! A knock says nothing else, so nothing depends on it: whoever hears none looks at the store by its clock, as often as before there were
//! knocks. They go to the UDP port whose number is that of `--host`. The word is known to those who can read the store; whoever
//! else guesses it has members look at the store, and no more.

use super::keeper::Keeper;
use super::shipper::spawn;
use super::{MemberError, Stop};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io::ErrorKind;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes of a knock.
const BYTES: usize = 10;
/// How long the thread that hears waits before it looks whether it is to end, and whether members have moved.
const LOOK: Duration = Duration::from_millis(500);
/// Addresses of members are found anew so often.
const ADDRESSES_HOLD: Duration = Duration::from_secs(60);
/// Who has heard a knock within this may rely on hearing the next.
const RELIABLE: Duration = Duration::from_secs(2);

/// What a knock is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum About {
    /// The log has more.
    Log,
    /// A member has said how far it is.
    Members,
    /// Nothing.
    Presence,
}

/// A knock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Knock {
    pub(super) about: About,
    pub(super) is_awaiting: bool,
}

impl Knock {
    fn encode(self, word: u64) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[0] = match self.about {
            About::Log => b'L',
            About::Members => b'M',
            About::Presence => b'P',
        };
        bytes[1] = u8::from(self.is_awaiting);
        bytes[2..].copy_from_slice(&word.to_le_bytes());
        bytes
    }

    /// `None` for anything else, and for those with another word.
    fn decode(bytes: &[u8], word: u64) -> Option<Self> {
        let (head, said) = bytes.split_first_chunk::<2>()?;
        let about = match head[0] {
            b'L' => About::Log,
            b'M' => About::Members,
            b'P' => About::Presence,
            _ => return None,
        };
        let is_awaiting = head[1] == 1;
        (said == word.to_le_bytes() && word != 0).then_some(Self { about, is_awaiting })
    }
}

/// A word that nobody guesses.
pub(super) fn new_word() -> u64 {
    RandomState::new().hash_one("knock").max(1)
}

/// Knocks of a member, and those that it hears.
pub(super) struct Knocks {
    /// `None` where there is no such port: nothing is heard, and others are not knocked at.
    socket: Option<UdpSocket>,
    word: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// How many were heard of each kind, or would have been of what happens here.
    log: u64,
    members: u64,
    heard: Option<Instant>,
    awaited: Option<Instant>,
    /// The other members, and where they are.
    hosts: Vec<String>,
    found: HashMap<String, (Option<SocketAddr>, Instant)>,
}

impl Knocks {
    /// Those of the member that others know as `host`.
    pub(super) fn open(host: &str) -> Self {
        let socket = host
            .to_socket_addrs()
            .ok()
            .and_then(|mut at| at.next())
            .map(UdpSocket::bind);
        let socket = match socket {
            Some(Ok(socket)) => socket.set_read_timeout(Some(LOOK)).ok().map(|()| socket),
            Some(Err(error)) => {
                tracing::info!(%error, host, "members cannot knock here: this one looks at the store by its clock");
                None
            }
            None => None,
        };
        Self {
            socket,
            word: AtomicU64::new(0),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on this is the word.
    pub(super) fn set_word(&self, word: u64) {
        self.word.store(word, Ordering::Relaxed);
    }

    /// The other members are these.
    pub(super) fn set_hosts(&self, hosts: Vec<String>) {
        self.state().hosts = hosts;
    }

    /// Knocks at all other members whose address is known.
    pub(super) fn knock(&self, knock: Knock) {
        let Some(socket) = &self.socket else { return };
        let bytes = knock.encode(self.word.load(Ordering::Relaxed));
        let state = self.state();
        let addresses = state.hosts.iter().filter_map(|host| state.found.get(host)?.0);
        for address in addresses {
            // Whoever is not there hears it later from the store.
            let _ = socket.send_to(&bytes, address);
        }
    }

    /// As if somebody had knocked: something has happened here.
    pub(super) fn notice(&self, about: About) {
        let mut state = self.state();
        match about {
            About::Log => state.log += 1,
            About::Members => state.members += 1,
            About::Presence => {}
        }
        drop(state);
        self.changed.notify_all();
    }

    /// How many have been heard that are about this.
    pub(super) fn heard(&self, about: About) -> u64 {
        self.state().heard(about)
    }

    /// Waits until more than so many were heard that are about this.
    pub(super) fn wait(&self, about: About, seen: u64, at_most: Duration) {
        let state = self.state();
        let waited = self
            .changed
            .wait_timeout_while(state, at_most, |state| state.heard(about) <= seen);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Whether knocks arrive.
    pub(super) fn arrive(&self) -> bool {
        self.state().heard.is_some_and(|at| at.elapsed() < RELIABLE)
    }

    /// Whether a knock within that time said that the primary waits for members.
    pub(super) fn awaited_within(&self, time: Duration) -> bool {
        self.state().awaited.is_some_and(|at| at.elapsed() < time)
    }

    /// Hears knocks until it is time to end.
    pub(super) fn run(keeper: Arc<Keeper>, stop: Arc<Stop>) -> Result<JoinHandle<()>, MemberError> {
        spawn("cluster-knocks", move || {
            let knocks = keeper.knocks();
            while !stop.is_set() {
                knocks.find();
                let Some(socket) = &knocks.socket else { return };
                let mut bytes = [0; BYTES + 1];
                let length = match socket.recv_from(&mut bytes) {
                    Ok((length, _)) => length,
                    Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
                    Err(_) => {
                        stop.wait(LOOK);
                        continue;
                    }
                };
                let word = knocks.word.load(Ordering::Relaxed);
                if let Some(knock) = bytes.get(..length).and_then(|bytes| Knock::decode(bytes, word)) {
                    knocks.hear(knock);
                }
            }
        })
    }

    fn hear(&self, knock: Knock) {
        let mut state = self.state();
        let now = Instant::now();
        state.heard = Some(now);
        if knock.is_awaiting {
            state.awaited = Some(now);
        }
        drop(state);
        self.notice(knock.about);
    }

    /// Finds the addresses of members that are not known, or have not been for long.
    fn find(&self) {
        let state = self.state();
        let is_due = |host: &&String| {
            let found = state.found.get(*host);
            found.is_none_or(|(_, at)| at.elapsed() >= ADDRESSES_HOLD)
        };
        let due: Vec<String> = state.hosts.iter().filter(is_due).cloned().collect();
        drop(state);
        for host in due {
            // This may take as long as the resolver likes.
            let at = host.to_socket_addrs().ok().and_then(|mut at| at.next());
            self.state().found.insert(host, (at, Instant::now()));
        }
    }
}

impl State {
    fn heard(&self, about: About) -> u64 {
        match about {
            About::Log => self.log,
            About::Members => self.members,
            About::Presence => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_knock_has_the_word_or_is_none() {
        for about in [About::Log, About::Members, About::Presence] {
            for is_awaiting in [false, true] {
                let knock = Knock { about, is_awaiting };
                let bytes = knock.encode(77);
                assert_eq!(Knock::decode(&bytes, 77), Some(knock));
                assert_eq!(Knock::decode(&bytes, 78), None);
                assert_eq!(Knock::decode(&bytes[..9], 77), None);
            }
        }
        let silent = Knock {
            about: About::Log,
            is_awaiting: false,
        };
        assert_eq!(Knock::decode(&silent.encode(0), 0), None, "before the word is known");
        assert_eq!(Knock::decode(b"X\0aaaaaaaa", u64::from_le_bytes(*b"aaaaaaaa")), None);
        assert_eq!(Knock::decode(b"", 77), None);
    }
}
