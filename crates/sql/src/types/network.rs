//! Addresses of networks: `inet`, `cidr` and `macaddr`.
//!
//! An address is held as bytes whose order is that of the type: the family (4 or 6), the address without the bits that are none of its
//! network, how many bits are, and the whole address. So networks come before what is in them, and addresses by their bits.
//!
//! | text | bytes |
//! |---|---|
//! | `10.1.2.3/8` | `04` `0a 00 00 00` `08` `0a 01 02 03` |
//! | `10.0.0.0/8` | `04` `0a 00 00 00` `08` `0a 00 00 00` |
//! | `::1` | `06`, 15 of `00`, `01`, `80`, 15 of `00`, `01` |
//!
//! Documents have the texts, each address one. A `macaddr` is its six bytes.

use super::{INET_SUBTYPE, MAC_SUBTYPE, Type};
use crate::error::{self, Field, error, fail};
use nestor_model::value::Binary;
use nestor_model::{Result, Value};
use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

/// An address with the length of its network's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inet {
    /// It has 128 bits, and not 32.
    pub is_v6: bool,
    /// Its bits; those of one of 32 are the last ones.
    pub address: u128,
    /// The bits of the network's part.
    pub bits: u32,
}

impl Inet {
    /// An address of a host.
    pub fn host(is_v6: bool, address: u128) -> Self {
        let mut own = Self {
            is_v6,
            address,
            bits: 0,
        };
        own.bits = own.width();
        own
    }

    /// How many bits an address of its family has.
    pub fn width(self) -> u32 {
        if self.is_v6 { 128 } else { 32 }
    }

    /// The bits of the network's part, set.
    pub fn mask(self) -> u128 {
        self.all() & !self.rest()
    }

    /// The bits behind the network's part, set.
    pub fn rest(self) -> u128 {
        match self.width() - self.bits {
            0 => 0,
            left => u128::MAX >> (128 - left),
        }
    }

    /// All bits of its family, set.
    pub fn all(self) -> u128 {
        u128::MAX >> (128 - self.width())
    }

    /// The network that it is in.
    pub fn network(self) -> Self {
        Self {
            address: self.address & self.mask(),
            ..self
        }
    }

    /// Whether an address or network is in this one.
    pub fn contains(self, other: Self) -> bool {
        self.is_v6 == other.is_v6 && self.bits <= other.bits && (self.address ^ other.address) & self.mask() == 0
    }

    fn bytes_of(self, address: u128) -> Vec<u8> {
        let all = address.to_be_bytes();
        all[all.len() - self.width() as usize / 8..].to_vec()
    }

    /// As a value.
    pub fn to_value(self) -> Value {
        let mut bytes = vec![if self.is_v6 { 6 } else { 4 }];
        bytes.extend(self.bytes_of(self.network().address));
        bytes.push(self.bits as u8);
        bytes.extend(self.bytes_of(self.address));
        Value::Binary(Binary {
            subtype: INET_SUBTYPE,
            bytes: bytes.as_slice().into(),
        })
    }

    /// The address that a value is.
    pub fn of(value: &Value) -> Self {
        let none = Self::host(false, 0);
        let Value::Binary(binary) = value else { return none };
        let is_v6 = binary.bytes.first() == Some(&6);
        let width = if is_v6 { 16 } else { 4 };
        match (binary.bytes.get(1 + width), binary.bytes.get(2 + width..)) {
            (Some(bits), Some(address)) => Self {
                is_v6,
                address: address.iter().fold(0, |all, byte| all << 8 | u128::from(*byte)),
                bits: u32::from(*bits),
            },
            _ => none,
        }
    }

    /// The address alone, as text.
    pub fn shown_host(self) -> String {
        if !self.is_v6 {
            return Ipv4Addr::from(self.address as u32).to_string();
        }
        // What has 96 zeros before it is shown as an address of 32 bits, unless it is a small number.
        match self.address >> 32 {
            0 if self.address > 0xFFFF => format!("::{}", Ipv4Addr::from(self.address as u32)),
            _ => Ipv6Addr::from(self.address).to_string(),
        }
    }

    /// Its text, with the bits of its network where they are not all.
    pub fn format(self) -> String {
        match self.bits == self.width() {
            true => self.shown_host(),
            false => self.format_whole(),
        }
    }

    /// Its text, always with the bits of its network.
    pub fn format_whole(self) -> String {
        format!("{}/{}", self.shown_host(), self.bits)
    }

    /// In binary format: family, bits, whether it is a `cidr`, length, address.
    pub fn to_binary(self, ty: &Type, out: &mut Vec<u8>) {
        let bytes = self.bytes_of(self.address);
        let family = if self.is_v6 { 3 } else { 2 };
        out.extend([family, self.bits as u8, u8::from(*ty == Type::Cidr), bytes.len() as u8]);
        out.extend(bytes);
    }

    /// From binary format; `None` for what is no address.
    pub fn of_binary(ty: &Type, bytes: &[u8]) -> Option<Self> {
        let [family @ (2 | 3), bits, _, length, address @ ..] = bytes else {
            return None;
        };
        let is_v6 = *family == 3;
        let own = Self {
            is_v6,
            address: address.iter().fold(0, |all, byte| all << 8 | u128::from(*byte)),
            bits: u32::from(*bits),
        };
        let fits = address.len() == usize::from(*length) && address.len() * 8 == own.width() as usize;
        (fits && own.bits <= own.width() && (*ty != Type::Cidr || own.address & own.rest() == 0)).then_some(own)
    }
}

/// The value of a text.
///
/// Errors: 22P02.
pub fn parse(ty: &Type, text: &str) -> Result<Value> {
    let wrong = || fail("22P02", format!("invalid input syntax for type {ty}: \"{text}\""));
    if *ty == Type::Macaddr {
        return match mac(text.trim()) {
            Some(bytes) => Ok(mac_value(bytes)),
            None => wrong(),
        };
    }
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) if !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit()) => {
            (address, Some(bits.parse::<u32>().unwrap_or(u32::MAX)))
        }
        Some(_) => return wrong(),
        None => (text, None),
    };
    let found = match address.contains(':') {
        true => {
            let plain = address.parse::<Ipv6Addr>().ok();
            plain.map(|address| Inet::host(true, u128::from(address)))
        }
        false => v4(address, *ty == Type::Cidr),
    };
    let Some(mut found) = found else { return wrong() };
    if let Some(bits) = bits {
        if bits > found.width() {
            return wrong();
        }
        found.bits = bits;
    }
    if *ty == Type::Cidr && found.address & found.rest() != 0 {
        let error = error("22P02", format!("invalid cidr value: \"{text}\""));
        return Err(error::with(
            error,
            &[(Field::Detail, "Value has bits set to right of mask.")],
        ));
    }
    Ok(found.to_value())
}

/// An address of four numbers; of a network the last ones may be missing, and its class says how many bits count.
fn v4(text: &str, is_network: bool) -> Option<Inet> {
    let mut address: u32 = 0;
    let mut count: u32 = 0;
    for part in text.split('.') {
        let is_number = (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        let number = part.parse::<u8>().ok().filter(|_| is_number && count < 4)?;
        address = address << 8 | u32::from(number);
        count += 1;
    }
    let missing = 4 - count;
    if missing > 0 && !is_network {
        return None;
    }
    let address = address.checked_shl(8 * missing).unwrap_or(0);
    let of_class = match address >> 24 {
        0..=127 => 8,
        128..=191 => 16,
        192..=223 => 24,
        224..=239 => 8,
        _ => 32,
    };
    let bits = if missing == 0 { 32 } else { of_class.max(8 * count) };
    Some(Inet {
        is_v6: false,
        address: u128::from(address),
        bits,
    })
}

/// The bytes of an address of hardware, in any of the ways that it is written.
fn mac(text: &str) -> Option<[u8; 6]> {
    let signs = |sign: char| text.matches(sign).count();
    let wanted = match (signs(':'), signs('-'), signs('.')) {
        (5, 0, 0) => Some((':', 2)),
        (0, 5, 0) => Some(('-', 2)),
        (1, 0, 0) => Some((':', 6)),
        (0, 1, 0) => Some(('-', 6)),
        (0, 0, 2) => Some(('.', 4)),
        (0, 0, 0) => None,
        _ => return None,
    };
    let digits: String = match wanted {
        None => text.to_owned(),
        Some((sign, width)) => {
            let parts: Vec<&str> = text.split(sign).collect();
            let fits = |part: &&str| !part.is_empty() && (part.len() == width || width == 2 && part.len() == 1);
            if !parts.iter().all(fits) {
                return None;
            }
            parts.iter().map(|part| format!("{part:0>width$}")).collect()
        }
    };
    if digits.len() != 12 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let number = u64::from_str_radix(&digits, 16).ok()?;
    number.to_be_bytes()[2..].try_into().ok()
}

/// An address of hardware as a value.
pub fn mac_value(bytes: [u8; 6]) -> Value {
    Value::Binary(Binary {
        subtype: MAC_SUBTYPE,
        bytes: bytes.as_slice().into(),
    })
}

/// The bytes of an address of hardware.
pub fn mac_of(value: &Value) -> [u8; 6] {
    match value {
        Value::Binary(binary) => (&*binary.bytes).try_into().unwrap_or_default(),
        _ => [0; 6],
    }
}

/// The text of a value.
pub fn format(ty: &Type, value: &Value) -> String {
    match ty {
        Type::Macaddr => {
            let mut out = String::new();
            for (at, byte) in mac_of(value).iter().enumerate() {
                let sign = if at == 0 { "" } else { ":" };
                let _ = write!(out, "{sign}{byte:02x}");
            }
            out
        }
        Type::Cidr => Inet::of(value).format_whole(),
        _ => Inet::of(value).format(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::compare::compare;
    use std::cmp::Ordering;

    #[test]
    fn addresses_are_in_order_and_written_in_one_way() {
        // By PostgreSQL 15: SELECT a FROM (VALUES …) v (a) ORDER BY a::inet
        let ordered = [
            "0.0.0.0/0",
            "10.0.0.0/8",
            "10.1.2.3/8",
            "10.0.0.0/16",
            "10.0.0.0",
            "10.1.0.0/16",
            "10.1.2.3",
            "::/0",
            "::1",
            "::1.2.3.4",
            "::ffff:1.2.3.4",
            "1:2::/64",
        ];
        let values: Vec<Value> = ordered.iter().map(|text| parse(&Type::Inet, text).unwrap()).collect();
        for (text, value) in ordered.iter().zip(&values) {
            assert_eq!(format(&Type::Inet, value), *text);
            let mut bytes = Vec::new();
            Inet::of(value).to_binary(&Type::Inet, &mut bytes);
            assert_eq!(Inet::of_binary(&Type::Inet, &bytes), Some(Inet::of(value)));
        }
        for pair in values.windows(2) {
            assert_eq!(compare(&Type::Inet, &pair[0], &pair[1]), Ordering::Less);
        }
        for text in [
            "",
            "10.1",
            "10.0.0.1/33",
            " 10.0.0.1 ",
            "10.0.0.1/",
            "1.2.3.4.5",
            "::1/129",
            "1.2.3.256",
            "1.2.3.4/-1",
        ] {
            assert!(parse(&Type::Inet, text).is_err(), "{text}");
        }
        assert!(Inet::of_binary(&Type::Cidr, &[2, 8, 1, 4, 10, 0, 0, 1]).is_none());
        assert!(Inet::of_binary(&Type::Inet, &[2, 33, 0, 4, 10, 0, 0, 1]).is_none());
    }
}
