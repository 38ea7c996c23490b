//! All counters at once, before and after a test.

use super::host::Host;
use super::process::{Processes, Usage, own};
use std::time::Instant;

/// The counters at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    at: Instant,
    server: Option<Usage>,
    client: Usage,
    host: Host,
}

/// What was used between two readings.
#[derive(Clone, Copy, Debug)]
pub struct Spent {
    /// Seconds between them.
    pub seconds: f64,
    /// By the server, if its process is known.
    pub server: Option<Usage>,
    /// By the load generator.
    pub client: Usage,
    /// By the whole machine.
    pub host: Host,
}

/// Reads the counters; `server` are the processes to count.
pub fn read(server: Option<&Processes>) -> Reading {
    Reading {
        at: Instant::now(),
        server: server.map(Processes::usage),
        client: own(),
        host: Host::now(),
    }
}

impl Reading {
    /// What was used since `before`.
    pub fn since(&self, before: &Self) -> Spent {
        let server = self.server.zip(before.server);
        Spent {
            seconds: (self.at - before.at).as_secs_f64(),
            server: server.map(|(now, then)| now.since(then)),
            client: self.client.since(before.client),
            host: self.host.since(before.host),
        }
    }
}
