//! Encryption of connections, as far as commands show or change it. The server does it; a library user has none.

use crate::observe::counters::Counter;
use std::fmt::Debug;
use std::sync::OnceLock;

/// A version of TLS that connections are encrypted with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersion {
    /// 1.2.
    V1_2,
    /// 1.3.
    V1_3,
    /// Another one.
    Unknown,
}

/// The part of the process that encrypts connections.
pub trait Encryption: Debug + Send + Sync {
    /// Reads certificates anew, for connections made from now on. On an error, which is for people to read, nothing changes.
    fn reload(&self) -> Result<(), String>;
    /// The server's own certificate.
    fn certificate(&self) -> Certificate;
}

/// The facts about the server's certificate that are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Its subject as RFC 4514 prints it.
    pub subject: String,
    /// The end of its life, in milliseconds since the Unix epoch.
    pub not_after_ms: i64,
    /// Clients' certificates are verified.
    pub has_authority: bool,
}

/// Encryption of a process's connections.
#[derive(Debug, Default)]
pub struct Transport {
    encryption: OnceLock<Box<dyn Encryption>>,
    v1_2: Counter,
    v1_3: Counter,
    unknown: Counter,
}

impl Transport {
    /// Connections are encrypted by `encryption`. Only the first call of this counts.
    pub fn encrypted_by(&self, encryption: Box<dyn Encryption>) {
        self.encryption.get_or_init(|| encryption);
    }

    /// The part of the process that encrypts connections; `None` without TLS.
    pub fn encryption(&self) -> Option<&dyn Encryption> {
        self.encryption.get().map(Box::as_ref)
    }

    /// Connections that were made with `version`.
    pub fn connections(&self, version: TlsVersion) -> &Counter {
        match version {
            TlsVersion::V1_2 => &self.v1_2,
            TlsVersion::V1_3 => &self.v1_3,
            TlsVersion::Unknown => &self.unknown,
        }
    }
}
