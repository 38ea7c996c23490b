//! `dropConnections`: closes connections to other nodes. A single node has none.

use crate::args::{Arg, At, wrong_type};
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::rights::Action;
use nestor_model::{Result, ValueRef, bail};

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection(
    "dropConnections",
    "Closes connections to other nodes; a single node has none.",
)
.flags(Flags::ADMIN)
.needs(Needs::server(Action::DropConnections))
.runs(|context, _reply| {
    DropConnections::parse(context.body, context.sequences)?;
    Ok(())
});

crate::args! {
    struct DropConnections: "dropConnections" command {
        /// Checked for its form only.
        #[allow(dead_code)]
        "hostAndPort" => hosts: Hosts,
    }
}

/// An array of strings that name a host and perhaps its port; null items are passed over.
///
/// Errors: 14 for other items, 9 for strings that name no host.
#[derive(Debug)]
struct Hosts;

impl<'a> Arg<'a> for Hosts {
    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        let array = match value {
            ValueRef::Array(array) => array,
            ValueRef::Null | ValueRef::Undefined => return Ok(None),
            other => return Err(wrong_type(at, other.bson_type(), "array")),
        };
        for (i, item) in array.iter().enumerate() {
            match item {
                ValueRef::String(host) => check_host(host)?,
                ValueRef::Null | ValueRef::Undefined => {}
                other => return Err(wrong_type(format_args!("{at}.{i}"), other.bson_type(), "string")),
            }
        }
        Ok(Some(Self))
    }
}

/// Checks `host`, `host:port`, or either with an address of IPv6 in brackets for the host.
fn check_host(text: &str) -> Result<()> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, rest)) => (host, Some(rest.strip_prefix(':').unwrap_or("no port"))),
        None => match text.rsplit_once(':') {
            Some((host, port)) if !host.contains([':', '[']) => (host, Some(port)),
            None if !text.starts_with('[') => (text, None),
            _ => bail!(
                FailedToParse,
                "'{text}' is no host and port: addresses of IPv6 stand in brackets"
            ),
        },
    };
    if host.is_empty() {
        bail!(FailedToParse, "'{text}' has no host");
    }
    // A port is written in digits alone: no sign before them.
    let is_port =
        |port: &str| port.bytes().all(|digit| digit.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0);
    match port {
        Some(port) if !is_port(port) => bail!(FailedToParse, "'{text}' has no port between 1 and 65535"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::check_host;

    #[test]
    fn hosts_and_ports() {
        for good in ["h", "h:1", "h:65535", "192.168.1.1:27017", "[::1]", "[::1]:27017"] {
            assert!(check_host(good).is_ok(), "{good}");
        }
        for bad in [
            "", ":1", "h:", "h:0", "h:65536", "h:+1", "h:x", "a:b:1", "::1", "[::1", "[]:1", "[::1]1", "[::1]:",
        ] {
            assert!(check_host(bad).is_err(), "{bad}");
        }
    }
}
