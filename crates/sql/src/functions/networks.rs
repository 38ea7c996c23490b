//! Functions and operators of addresses of networks.

use super::Row;
use super::args::int;
use crate::error::fail;
use crate::types::network::{Inet, mac_of, mac_value};
use nestor_model::{Result, Value};

fn text(text: String) -> Result<Value> {
    Ok(Value::String(text.into()))
}

fn truth(value: bool) -> Result<Value> {
    Ok(Value::Bool(value))
}

fn own(value: &Value) -> Inet {
    Inet::of(value)
}

/// Bits of two addresses, one by one.
///
/// Errors: 22023 for addresses of two families.
fn each(a: &[Value], sign: fn(u128, u128) -> u128, name: &str) -> Result<Value> {
    let (a, b) = (own(&a[0]), own(&a[1]));
    if a.is_v6 != b.is_v6 {
        return fail("22023", format!("cannot {name} inet values of different sizes"));
    }
    let address = sign(a.address, b.address);
    let bits = a.bits.max(b.bits);
    Ok(Inet { address, bits, ..a }.to_value())
}

/// The address so much further on.
///
/// Errors: 22003.
fn moved(from: Inet, by: i64) -> Result<Value> {
    let address = match by >= 0 {
        true => from.address.checked_add(u128::from(by.unsigned_abs())),
        false => from.address.checked_sub(u128::from(by.unsigned_abs())),
    };
    match address.filter(|address| *address <= from.all()) {
        Some(address) => Ok(Inet { address, ..from }.to_value()),
        None => fail("22003", "result is out of range"),
    }
}

fn distance(a: Inet, b: Inet) -> Result<Value> {
    if a.is_v6 != b.is_v6 {
        return fail("22023", "cannot subtract inet values of different sizes");
    }
    let (apart, is_less) = (a.address.abs_diff(b.address), a.address < b.address);
    let apart = i64::try_from(apart)
        .ok()
        .map(|apart| if is_less { -apart } else { apart });
    match apart {
        Some(apart) => Ok(Value::Int64(apart)),
        None => fail("22003", "result is out of range"),
    }
}

/// The address with another length of its network's part.
///
/// Errors: 22023.
fn with_bits(of: Inet, bits: i64, is_network: bool) -> Result<Value> {
    let bits = if bits == -1 { i64::from(of.width()) } else { bits };
    let Some(bits) = u32::try_from(bits).ok().filter(|bits| *bits <= of.width()) else {
        return fail("22023", format!("invalid mask length: {bits}"));
    };
    let new = Inet { bits, ..of };
    Ok(if is_network { new.network() } else { new }.to_value())
}

/// The smallest network that both are in.
///
/// Errors: 22023.
fn merged(a: Inet, b: Inet) -> Result<Value> {
    if a.is_v6 != b.is_v6 {
        return fail("22023", "cannot merge addresses from different families");
    }
    let apart = 128 - (a.address ^ b.address).leading_zeros();
    let same = a.width() - apart;
    let bits = same.min(a.bits).min(b.bits);
    Ok(Inet { bits, ..a }.network().to_value())
}

/// A network in short: bytes that are none of it are left out, of an address of 32 bits.
fn short(of: Inet) -> String {
    if of.is_v6 {
        return of.format_whole();
    }
    let bytes = (of.address as u32).to_be_bytes();
    let count = of.bits.div_ceil(8).max(1) as usize;
    let shown: Vec<String> = bytes.iter().take(count).map(u8::to_string).collect();
    format!("{}/{}", shown.join("."), of.bits)
}

pub(super) const ROWS: &[Row] = &[
    ("abbrev", "inet->text", |a, _, _| text(own(&a[0]).format())),
    ("abbrev", "cidr->text", |a, _, _| text(short(own(&a[0])))),
    ("broadcast", "inet->inet", |a, _, _| {
        let own = own(&a[0]);
        let address = own.address | own.rest();
        Ok(Inet { address, ..own }.to_value())
    }),
    ("family", "inet->int4", |a, _, _| {
        Ok(Value::Int32(if own(&a[0]).is_v6 { 6 } else { 4 }))
    }),
    ("host", "inet->text", |a, _, _| text(own(&a[0]).shown_host())),
    ("hostmask", "inet->inet", |a, _, _| {
        let own = own(&a[0]);
        Ok(Inet::host(own.is_v6, own.rest()).to_value())
    }),
    ("inet_merge", "inet,inet->cidr", |a, _, _| {
        merged(own(&a[0]), own(&a[1]))
    }),
    ("inet_same_family", "inet,inet->bool", |a, _, _| {
        truth(own(&a[0]).is_v6 == own(&a[1]).is_v6)
    }),
    ("masklen", "inet->int4", |a, _, _| {
        Ok(Value::Int32(own(&a[0]).bits as i32))
    }),
    ("netmask", "inet->inet", |a, _, _| {
        let own = own(&a[0]);
        Ok(Inet::host(own.is_v6, own.mask()).to_value())
    }),
    ("network", "inet->cidr", |a, _, _| Ok(own(&a[0]).network().to_value())),
    ("set_masklen", "inet,int4->inet", |a, _, _| {
        with_bits(own(&a[0]), int(&a[1]), false)
    }),
    ("set_masklen", "cidr,int4->cidr", |a, _, _| {
        with_bits(own(&a[0]), int(&a[1]), true)
    }),
    ("text", "inet->text", |a, _, _| text(own(&a[0]).format_whole())),
    ("<<", "inet,inet->bool", |a, _, _| {
        let (a, b) = (own(&a[0]), own(&a[1]));
        truth(b.contains(a) && a.bits > b.bits)
    }),
    ("<<=", "inet,inet->bool", |a, _, _| {
        truth(own(&a[1]).contains(own(&a[0])))
    }),
    (">>", "inet,inet->bool", |a, _, _| {
        let (a, b) = (own(&a[0]), own(&a[1]));
        truth(a.contains(b) && b.bits > a.bits)
    }),
    (">>=", "inet,inet->bool", |a, _, _| {
        truth(own(&a[0]).contains(own(&a[1])))
    }),
    ("&&", "inet,inet->bool", |a, _, _| {
        let (a, b) = (own(&a[0]), own(&a[1]));
        truth(a.contains(b) || b.contains(a))
    }),
    ("~", "inet->inet", |a, _, _| {
        let own = own(&a[0]);
        let address = !own.address & own.all();
        Ok(Inet { address, ..own }.to_value())
    }),
    ("&", "inet,inet->inet", |a, _, _| each(a, |a, b| a & b, "AND")),
    ("|", "inet,inet->inet", |a, _, _| each(a, |a, b| a | b, "OR")),
    ("+", "inet,int8->inet", |a, _, _| moved(own(&a[0]), int(&a[1]))),
    ("+", "int8,inet->inet", |a, _, _| moved(own(&a[1]), int(&a[0]))),
    ("-", "inet,int8->inet", |a, _, _| {
        moved(own(&a[0]), int(&a[1]).saturating_neg())
    }),
    ("-", "inet,inet->int8", |a, _, _| distance(own(&a[0]), own(&a[1]))),
    ("trunc", "macaddr->macaddr", |a, _, _| {
        let mut bytes = mac_of(&a[0]);
        bytes[3..].fill(0);
        Ok(mac_value(bytes))
    }),
    ("~", "macaddr->macaddr", |a, _, _| {
        Ok(mac_value(mac_of(&a[0]).map(|byte| !byte)))
    }),
    ("&", "macaddr,macaddr->macaddr", |a, _, _| {
        let (mut own, other) = (mac_of(&a[0]), mac_of(&a[1]));
        own.iter_mut().zip(other).for_each(|(own, other)| *own &= other);
        Ok(mac_value(own))
    }),
    ("|", "macaddr,macaddr->macaddr", |a, _, _| {
        let (mut own, other) = (mac_of(&a[0]), mac_of(&a[1]));
        own.iter_mut().zip(other).for_each(|(own, other)| *own |= other);
        Ok(mac_value(own))
    }),
];
