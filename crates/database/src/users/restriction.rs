//! From where users may log in: `authenticationRestrictions` of users and of roles.
//!
//! ```text
//! [{clientSource: ["10.0.0.0/8", ..], serverAddress: ["10.1.2.3", ..]}, ..]
//! ```
//!
//! One document of the array has to hold, and holds when the client and the server's own address are each in one of its ranges. A user
//! has to meet the user's own array and that of each role that the user has or inherits.
//!
//! Source: manual, "createUser", "Authentication Restrictions".

use nestor_model::{Result, ValueRef, bail};
use std::net::{IpAddr, SocketAddr};

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    first: IpAddr,
    /// How many of its first bits all addresses of the range share.
    bits: u32,
}

/// One document of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Restriction {
    client: Option<Vec<Range>>,
    server: Option<Vec<Range>>,
}

/// One array. An empty one restricts nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restrictions(Vec<Restriction>);

/// The two ends of a connection; `None` of an end that has no address, as on a Unix socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The client's.
    pub client: Option<IpAddr>,
    /// The server's.
    pub server: Option<IpAddr>,
}

impl Ends {
    /// The ends as `address:port`.
    pub fn parse(client: &str, server: &str) -> Self {
        let address = |text: &str| {
            text.parse::<SocketAddr>()
                .ok()
                .map(|address| address.ip().to_canonical())
        };
        Self {
            client: address(client),
            server: address(server),
        }
    }
}

impl Range {
    fn parse(text: &str) -> Result<Self> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let Ok(first) = address.parse::<IpAddr>() else {
            bail!(BadValue, "Invalid IP address in CIDR string: {text}");
        };
        let most = if first.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), str::parse::<u32>);
        match bits {
            Ok(bits) if bits <= most => Ok(Self { first, bits }),
            _ => bail!(BadValue, "Invalid length in CIDR string: {text}"),
        }
    }

    fn has(&self, address: IpAddr) -> bool {
        // Shifting by all bits is no shift for the machine.
        let differs = |a: u128, b: u128, most: u32| (a ^ b).checked_shr(most - self.bits).is_some_and(|left| left != 0);
        match (self.first.to_canonical(), address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                // A range of IPv4 addresses may be written as one of IPv6 addresses that stand for them.
                let spared = if self.first.is_ipv6() { 96 } else { 0 };
                let most = 32 + spared;
                !differs(u32::from(first).into(), u32::from(address).into(), most)
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => !differs(first.into(), address.into(), 128),
            _ => false,
        }
    }
}

impl Restrictions {
    /// Reads an array.
    ///
    /// Errors: 2 for what is none; 40415 for fields that nobody knows.
    pub fn parse(value: ValueRef<'_>) -> Result<Self> {
        let Some(documents) = value.as_array() else {
            bail!(
                UnsupportedFormat,
                "authenticationRestrictions must be an array of documents"
            );
        };
        let mut out = Vec::new();
        for document in documents.iter() {
            let Some(document) = document.as_document() else {
                bail!(
                    UnsupportedFormat,
                    "authenticationRestrictions must be an array of documents"
                );
            };
            let (mut client, mut server) = (None, None);
            for (name, value) in document.iter() {
                match name {
                    "clientSource" if client.is_none() => client = Some(ranges(name, value)?),
                    "serverAddress" if server.is_none() => server = Some(ranges(name, value)?),
                    _ => bail!(
                        40415,
                        "BSON field 'authenticationRestrictions.{name}' is an unknown field or comes twice."
                    ),
                }
            }
            if client.is_none() && server.is_none() {
                bail!(
                    CollectionIsEmpty,
                    "authenticationRestrictions must not hold empty documents"
                );
            }
            out.push(Restriction { client, server });
        }
        Ok(Self(out))
    }

    /// The restriction as stored. One that cannot be parsed lets nobody in.
    pub fn stored(value: ValueRef<'_>) -> Self {
        Self::parse(value).unwrap_or_else(|_| {
            let nobody = Restriction {
                client: Some(Vec::new()),
                server: None,
            };
            Self(vec![nobody])
        })
    }

    /// Whether whoever comes over that connection may log in.
    pub fn allow(&self, ends: Ends) -> bool {
        let is_in = |ranges: &Option<Vec<Range>>, address: Option<IpAddr>| match (ranges, address) {
            (None, _) => true,
            (Some(ranges), Some(address)) => ranges.iter().any(|range| range.has(address)),
            (Some(_), None) => false,
        };
        let holds = |one: &Restriction| is_in(&one.client, ends.client) && is_in(&one.server, ends.server);
        self.0.is_empty() || self.0.iter().any(holds)
    }
}

fn ranges(name: &str, value: ValueRef<'_>) -> Result<Vec<Range>> {
    let Some(texts) = value.as_array() else {
        bail!(
            UnsupportedFormat,
            "{name} must be an array of addresses or of ranges of them"
        );
    };
    let mut out = Vec::new();
    for text in texts.iter() {
        match text.as_str() {
            Some(text) => out.push(Range::parse(text)?),
            None => bail!(
                UnsupportedFormat,
                "{name} must hold strings, not {}",
                text.bson_type().alias()
            ),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::{Document, Value, doc};

    fn array(documents: Vec<Document>) -> Value {
        documents.into_iter().map(Value::from).collect::<Vec<_>>().into()
    }

    fn texts(texts: &[&str]) -> Vec<Value> {
        texts.iter().map(|text| (*text).into()).collect()
    }

    fn allows(restrictions: &Value, client: &str, server: &str) -> bool {
        Restrictions::stored(restrictions.as_ref()).allow(Ends::parse(client, server))
    }

    #[test]
    fn ranges_of_addresses() {
        for (range, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("10.1.2.3", "10.1.2.3", "10.1.2.4"),
            ("0.0.0.0/0", "1.2.3.4", "::1"),
            ("10.1.2.0/31", "10.1.2.1", "10.1.2.2"),
            ("::/0", "2001:db8::1", "1.2.3.4"),
            ("2001:db8::/32", "2001:db8:1::", "2001:db9::"),
            ("::ffff:10.0.0.0/104", "10.1.1.1", "11.1.1.1"),
        ] {
            let range = Range::parse(range).expect("it is a range");
            let has = |address: &str| range.has(address.parse::<IpAddr>().expect("it is an address").to_canonical());
            assert!(has(inside) && !has(outside), "{range:?}");
        }
        for wrong in [
            "",
            "10.0.0.0/33",
            "10.0.0.0/",
            "10.0.0/8",
            "localhost",
            "::/129",
            "1.2.3.4/-1",
        ] {
            assert!(Range::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn one_document_has_to_hold_and_in_it_all_fields() {
        let near = doc! { "clientSource": texts(&["127.0.0.1", "10.0.0.0/8"]), "serverAddress": texts(&["127.0.0.1"]) };
        let far = doc! { "clientSource": texts(&["192.168.0.0/16"]) };
        let both = array(vec![near, far]);
        assert!(allows(&both, "127.0.0.1:5", "127.0.0.1:27017"));
        assert!(!allows(&both, "127.0.0.1:5", "10.0.0.1:27017"));
        assert!(allows(&both, "192.168.7.7:5", "10.0.0.1:27017"));
        assert!(!allows(&both, "8.8.8.8:5", "127.0.0.1:27017"));
        assert!(!allows(&both, "anonymous unix socket", ""));
        assert!(allows(&array(Vec::new()), "anonymous unix socket", ""));
    }

    #[test]
    fn what_cannot_be_read_lets_nobody_in() {
        for wrong in [
            Value::from(1),
            array(vec![doc! {}]),
            array(vec![doc! { "clientSource": "127.0.0.1" }]),
            array(vec![doc! { "clientSource": texts(&["nowhere"]) }]),
            array(vec![doc! { "from": texts(&["127.0.0.1"]) }]),
        ] {
            assert!(Restrictions::parse(wrong.as_ref()).is_err(), "{wrong:?}");
            assert!(!allows(&wrong, "127.0.0.1:5", "127.0.0.1:27017"), "{wrong:?}");
        }
    }
}
