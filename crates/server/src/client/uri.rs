//! `mongodb://` connection strings, as far as a tool on the same machine needs them.

use super::{ClientError, Result};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// Name or address, and port.
    Tcp(String, u16),
    /// Path of a Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(name, port) if name.contains(':') => write!(f, "[{name}]:{port}"),
            Self::Tcp(name, port) => write!(f, "{name}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A parsed connection string. Options that change nothing for one connection to one server are accepted;
/// every other one is refused by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uri {
    /// Never empty.
    pub hosts: Vec<Host>,
}

/// Options about choosing among servers and about retrying: nothing to do on a single connection.
const WITHOUT_EFFECT: [&str; 7] = [
    "directconnection",
    "replicaset",
    "appname",
    "retrywrites",
    "retryreads",
    "readpreference",
    "serverselectiontimeoutms",
];

impl FromStr for Uri {
    type Err = ClientError;

    fn from_str(text: &str) -> Result<Self> {
        let refuse = |reason: &str| Err(ClientError::Uri(format!("{text}: {reason}")));
        let Some(rest) = text.strip_prefix("mongodb://") else {
            return refuse("a URI begins with mongodb://");
        };
        let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (hosts, _database) = rest.split_once('/').unwrap_or((rest, ""));
        if hosts.contains('@') {
            return refuse("this tool cannot log in yet: leave user and password out");
        }
        for option in options.split('&').filter(|o| !o.is_empty()) {
            let name = option.split('=').next().unwrap_or_default();
            if !WITHOUT_EFFECT.contains(&name.to_ascii_lowercase().as_str()) {
                return refuse(&format!("this tool does not support the option {name}"));
            }
        }
        let hosts = hosts.split(',').map(host).collect::<Option<Vec<_>>>();
        match hosts {
            Some(hosts) => Ok(Self { hosts }),
            None => refuse("a host is written name:port, [address]:port or as the percent-encoded path of a socket"),
        }
    }
}

fn host(text: &str) -> Option<Host> {
    let text = percent_decoded(text)?;
    if text.ends_with(".sock") {
        return Some(Host::Unix(text.into()));
    }
    let (name, port) = if let Some(rest) = text.strip_prefix('[') {
        let (address, port) = rest.split_once(']')?;
        (address, port.strip_prefix(':').or(port.is_empty().then_some("27017"))?)
    } else {
        text.split_once(':').unwrap_or((&text, "27017"))
    };
    if name.is_empty() {
        return None;
    }
    Some(Host::Tcp(name.to_owned(), port.parse().ok()?))
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(text: &str) -> String {
        match text.parse::<Uri>() {
            Ok(uri) => uri.hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
            Err(_) => "refused".into(),
        }
    }

    #[test]
    fn hosts_and_ports() {
        for (text, expected) in [
            ("mongodb://127.0.0.1:5", "127.0.0.1:5"),
            ("mongodb://localhost/db?directConnection=true", "localhost:27017"),
            ("mongodb://a:1,b:2/?replicaSet=rs0&appName=x", "a:1 b:2"),
            ("mongodb://[::1]:7/", "[::1]:7"),
            ("mongodb://[::1]", "[::1]:27017"),
            (
                "mongodb://%2Ftmp%2Fmongodb-1.sock/?directConnection=true",
                "/tmp/mongodb-1.sock",
            ),
            ("http://localhost", "refused"),
            ("mongodb://", "refused"),
            ("mongodb://a:b", "refused"),
            ("mongodb://a:99999", "refused"),
            ("mongodb://user:secret@a", "refused"),
            ("mongodb://a/?tls=true", "refused"),
            ("mongodb://a%zz", "refused"),
        ] {
            assert_eq!(hosts(text), expected, "{text}");
        }
    }
}
