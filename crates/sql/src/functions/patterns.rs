//! Functions over POSIX regular expressions.

use super::Row;
use super::args::int;
use super::text::{count, room, str, text};
use crate::error::fail;
use crate::expr::like::{is_like, similar_part};
use crate::types::regex::{Flags, compile};
use nestor_model::statement::{charge, work};
use nestor_model::{Array, Result, Value};

/// Where the groups of one occurrence stand, as offsets in bytes; the first is the whole.
type Groups = Vec<Option<(usize, usize)>>;

/// The offset in bytes of the character `start`, counted from 1; `None` is behind the end. Errors: 22023.
fn offset(s: &str, start: i64) -> Result<Option<usize>> {
    if start < 1 {
        return fail("22023", format!("invalid value for parameter \"start\": {start}"));
    }
    let skipped = usize::try_from(start - 1).unwrap_or(usize::MAX);
    let ends = std::iter::once(s.len());
    Ok(s.char_indices().map(|(at, _)| at).chain(ends).nth(skipped))
}

/// Calls `each` with the occurrences from `start` on until it says `false`. An empty one moves on by a character.
fn occurrences(s: &str, pattern: &str, start: i64, flags: &str, mut each: impl FnMut(Groups) -> bool) -> Result<()> {
    let regex = compile(pattern, Flags::of(flags)?)?;
    let mut at = offset(s, start)?;
    while let Some(from) = at.filter(|from| *from <= s.len()) {
        work(1)?;
        let Some(groups) = regex.captures_at(s, from)? else {
            break;
        };
        let Some((low, high)) = groups.first().copied().flatten() else {
            break;
        };
        at = match high > low {
            true => Some(high),
            false => s[high..].chars().next().map(|c| high + c.len_utf8()),
        };
        if !each(groups) {
            break;
        }
    }
    Ok(())
}

/// The occurrence `n`, counted from 1. Errors: 22023.
fn occurrence(s: &str, pattern: &str, start: i64, n: i64, flags: &str) -> Result<Option<Groups>> {
    if n < 1 {
        return fail("22023", format!("invalid value for parameter \"n\": {n}"));
    }
    let (mut left, mut found) = (n, None);
    occurrences(s, pattern, start, flags, |groups| {
        left -= 1;
        if left == 0 {
            found = Some(groups);
        }
        left > 0
    })?;
    Ok(found)
}

fn group(groups: &Groups, at: i64) -> Result<Option<(usize, usize)>> {
    match usize::try_from(at) {
        Ok(at) => Ok(groups.get(at).copied().flatten()),
        Err(_) => fail("22023", format!("invalid value for parameter \"subexpr\": {at}")),
    }
}

fn regexp_count(a: &[Value]) -> Result<Value> {
    let (start, flags) = (a.get(2).map_or(1, int), a.get(3).map_or("", str));
    let mut n = 0;
    occurrences(str(&a[0]), str(&a[1]), start, flags, |_| {
        n += 1;
        true
    })?;
    count(n)
}

fn regexp_instr(a: &[Value]) -> Result<Value> {
    let number = |at: usize, without: i64| a.get(at).map_or(without, int);
    let (s, behind) = (str(&a[0]), number(4, 0));
    if !(0..=1).contains(&behind) {
        return fail("22023", format!("invalid value for parameter \"endoption\": {behind}"));
    }
    let found = occurrence(s, str(&a[1]), number(2, 1), number(3, 1), a.get(5).map_or("", str))?;
    let range = found.map(|groups| group(&groups, number(6, 0))).transpose()?.flatten();
    count(range.map_or(0, |(low, high)| {
        s[..if behind == 1 { high } else { low }].chars().count() + 1
    }))
}

fn regexp_substr(a: &[Value]) -> Result<Value> {
    let number = |at: usize, without: i64| a.get(at).map_or(without, int);
    let s = str(&a[0]);
    let found = occurrence(s, str(&a[1]), number(2, 1), number(3, 1), a.get(4).map_or("", str))?;
    match found.map(|groups| group(&groups, number(5, 0))).transpose()?.flatten() {
        Some((low, high)) => text(&s[low..high]),
        None => Ok(Value::Null),
    }
}

pub(super) fn regexp_replace(s: &str, pattern: &str, with: &str, options: &str) -> Result<Value> {
    let n = i64::from(!options.contains('g'));
    regexp_replace_from(s, pattern, with, (1, n), options)
}

/// Replaces occurrence `n` of those from character `start` on; all of them when `n` is 0. Errors: 22023, 2201B.
fn regexp_replace_from(s: &str, pattern: &str, with: &str, (start, n): (i64, i64), options: &str) -> Result<Value> {
    if n < 0 {
        return fail("22023", format!("invalid value for parameter \"n\": {n}"));
    }
    let regex = compile(pattern, Flags::of(options)?)?;
    let Some(mut at) = offset(s, start)? else {
        return text(s);
    };
    let mut out = s[..at].to_owned();
    let mut seen = 0;
    while at <= s.len() {
        let Some(groups) = regex.captures_at(s, at)? else { break };
        let Some((from, to)) = groups.first().copied().flatten() else {
            break;
        };
        out.push_str(&s[at..from]);
        seen += 1;
        let is_meant = n == 0 || seen == n;
        if !is_meant {
            out.push_str(&s[from..to]);
        }
        let mut chars = if is_meant { with } else { "" }.chars();
        while let Some(c) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some(d @ '0'..='9') => {
                        let group = groups.get(d.to_digit(10).unwrap_or(0) as usize).copied().flatten();
                        if let Some((from, to)) = group {
                            out.push_str(&s[from..to]);
                        }
                    }
                    Some('&') => out.push_str(&s[from..to]),
                    Some('\\') => out.push('\\'),
                    Some(c) => out.extend(['\\', c]),
                    None => out.push('\\'),
                },
                c => out.push(c),
            }
        }
        room(out.len())?;
        at = to;
        if to == from {
            // An empty match: one character is passed over.
            let Some(c) = s[at..].chars().next() else { break };
            out.push(c);
            at += c.len_utf8();
        }
        if is_meant && n > 0 {
            break;
        }
    }
    out.push_str(s.get(at..).unwrap_or_default());
    text(out)
}

pub(super) fn regexp_match(s: &str, pattern: &str, options: &str) -> Result<Value> {
    if options.contains('g') {
        return fail("22023", "regexp_match() does not support the \"global\" option");
    }
    let regex = compile(pattern, Flags::of(options)?)?;
    let Some(groups) = regex.captures_at(s, 0)? else {
        return Ok(Value::Null);
    };
    Ok(captured(s, &groups))
}

/// The function that `LIKE` is of bytes.
pub(crate) const LIKE_BYTES: &str = "like bytes";
/// The function that gives `character` with the blanks at its end.
pub const PADDED: &str = "padded";

/// Whether bytes are `LIKE` others. Errors: 22025.
fn is_like_bytes(text: &[u8], pattern: &[u8], escape: Option<u8>) -> Result<bool> {
    let (mut text, mut pattern) = (text, pattern);
    // Where the last `%` stood, and what it is to take next.
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        let matched = match (pattern, text) {
            ([], []) => return Ok(true),
            ([b'%', rest @ ..], _) if escape != Some(b'%') => {
                retry = Some((rest, text));
                pattern = rest;
                continue;
            }
            ([sign], _) if escape == Some(*sign) => {
                return fail("22025", "LIKE pattern must not end with escape character");
            }
            ([sign, byte, rest @ ..], [first, after @ ..]) if escape == Some(*sign) => {
                (byte == first).then_some((rest, after))
            }
            ([b'_', rest @ ..], [_, after @ ..]) if escape != Some(b'_') => Some((rest, after)),
            ([byte, rest @ ..], [first, after @ ..]) => (byte == first).then_some((rest, after)),
            _ => None,
        };
        (pattern, text) = match (matched, retry) {
            (Some(both), _) => both,
            (None, Some((rest, [_, after @ ..]))) => {
                retry = Some((rest, after));
                (rest, after)
            }
            _ => return Ok(false),
        };
    }
}

/// The groups of the first occurrence, of all with the option `g`: an array for each.
pub(super) fn regexp_matches(s: &str, pattern: &str, options: &str) -> Result<Vec<Value>> {
    let regex = compile(pattern, Flags::of(options)?)?;
    let (mut out, mut at) = (Vec::new(), Some(0));
    while let Some(from) = at {
        let Some(groups) = regex.captures_at(s, from)? else {
            break;
        };
        let Some((low, high)) = groups.first().copied().flatten() else {
            break;
        };
        out.push(captured(s, &groups));
        charge(high - low + 64)?;
        at = match high > low {
            true => Some(high),
            false => s[high..].chars().next().map(|c| high + c.len_utf8()),
        };
        if !options.contains('g') {
            break;
        }
    }
    Ok(out)
}

/// The groups of an occurrence as an array of text, or the whole of it if there are none.
fn captured(s: &str, groups: &[Option<(usize, usize)>]) -> Value {
    let part = |range: &Option<(usize, usize)>| match range {
        Some((from, to)) => Value::String(s[*from..*to].into()),
        None => Value::Null,
    };
    let parts = if groups.len() > 1 { &groups[1..] } else { groups };
    Value::Array(Array::new(parts.iter().map(part).collect()))
}

pub(super) fn regexp_split(s: &str, pattern: &str, options: &str) -> Result<Value> {
    if options.contains('g') {
        return fail(
            "22023",
            "regexp_split_to_array() does not support the \"global\" option",
        );
    }
    let regex = compile(pattern, Flags::of(options)?)?;
    let (mut out, mut at, mut search) = (Vec::new(), 0, 0);
    while search <= s.len() {
        let Some(Some((from, to))) = regex.captures_at(s, search)?.and_then(|groups| groups.first().copied()) else {
            break;
        };
        if to == from {
            let Some(c) = s[from..].chars().next() else { break };
            search = from + c.len_utf8();
            if from == at {
                continue;
            }
        } else {
            search = to;
        }
        out.push(Value::String(s[at..from].into()));
        at = to;
    }
    out.push(Value::String(s[at..].into()));
    Ok(Value::Array(Array::new(out)))
}

/// `LIKE` with `ANY` or `ALL` of an array is a call of this function; its last argument has bits for `ILIKE`, `NOT` and `ALL`.
pub(crate) const LIKE_EACH: &str = "like each";

/// What is known of `LIKE` with each pattern of an array, `null` where it is open.
///
/// Errors: those of the patterns that are met before the answer is known.
fn like_each(value: &Value, patterns: &Value, flags: i64) -> Result<Value> {
    let (insensitive, negated, all) = (flags & 1 != 0, flags & 2 != 0, flags & 4 != 0);
    let Value::Array(patterns) = patterns else {
        return Ok(Value::Null);
    };
    let mut unknown = false;
    for pattern in patterns.iter() {
        work(1)?;
        let found = match (value, pattern.to_value()) {
            (_, inner @ Value::Array(_)) => like_each(value, &inner, flags)?,
            (Value::Null, _) | (_, Value::Null) => Value::Null,
            (value, pattern) if flags & 8 != 0 => {
                let own = Flags {
                    insensitive,
                    ..Flags::default()
                };
                Value::Bool(compile(str(&pattern), own)?.captures_at(str(value), 0)?.is_some() != negated)
            }
            (value, pattern) => Value::Bool(is_like(str(value), str(&pattern), insensitive)? != negated),
        };
        match found {
            Value::Bool(found) if found != all => return Ok(Value::Bool(!all)),
            Value::Bool(_) => {}
            _ => unknown = true,
        }
    }
    Ok(if unknown { Value::Null } else { Value::Bool(all) })
}

pub(super) const ROWS: &[Row] = &[
    ("regexp_count", "text,text->int4", |a, _, _| regexp_count(a)),
    ("regexp_count", "text,text,int4->int4", |a, _, _| regexp_count(a)),
    ("regexp_count", "text,text,int4,text->int4", |a, _, _| regexp_count(a)),
    ("regexp_instr", "text,text->int4", |a, _, _| regexp_instr(a)),
    ("regexp_instr", "text,text,int4->int4", |a, _, _| regexp_instr(a)),
    ("regexp_instr", "text,text,int4,int4->int4", |a, _, _| regexp_instr(a)),
    ("regexp_instr", "text,text,int4,int4,int4->int4", |a, _, _| {
        regexp_instr(a)
    }),
    ("regexp_instr", "text,text,int4,int4,int4,text->int4", |a, _, _| {
        regexp_instr(a)
    }),
    ("regexp_instr", "text,text,int4,int4,int4,text,int4->int4", |a, _, _| {
        regexp_instr(a)
    }),
    ("regexp_substr", "text,text->text", |a, _, _| regexp_substr(a)),
    ("regexp_substr", "text,text,int4->text", |a, _, _| regexp_substr(a)),
    ("regexp_substr", "text,text,int4,int4->text", |a, _, _| regexp_substr(a)),
    ("regexp_substr", "text,text,int4,int4,text->text", |a, _, _| {
        regexp_substr(a)
    }),
    ("regexp_substr", "text,text,int4,int4,text,int4->text", |a, _, _| {
        regexp_substr(a)
    }),
    (LIKE_EACH, "?text,_text,int4->bool", |a, _, _| {
        like_each(&a[0], &a[1], int(&a[2]))
    }),
    ("regexp_like", "text,text,text->bool", |a, _, _| {
        if str(&a[2]).contains('g') {
            return fail("22023", "regexp_like() does not support the \"global\" option");
        }
        let regex = compile(str(&a[1]), Flags::of(str(&a[2]))?)?;
        Ok(Value::Bool(regex.is_match(str(&a[0]))?))
    }),
    ("regexp_replace", "text,text,text,int4->text", |a, _, _| {
        regexp_replace_from(str(&a[0]), str(&a[1]), str(&a[2]), (int(&a[3]), 1), "")
    }),
    ("regexp_replace", "text,text,text,int4,int4->text", |a, _, _| {
        regexp_replace_from(str(&a[0]), str(&a[1]), str(&a[2]), (int(&a[3]), int(&a[4])), "")
    }),
    ("regexp_replace", "text,text,text,int4,int4,text->text", |a, _, _| {
        regexp_replace_from(str(&a[0]), str(&a[1]), str(&a[2]), (int(&a[3]), int(&a[4])), str(&a[5]))
    }),
    ("regexp_replace", "text,text,text->text", |a, _, _| {
        regexp_replace(str(&a[0]), str(&a[1]), str(&a[2]), "")
    }),
    ("regexp_replace", "text,text,text,text->text", |a, _, _| {
        regexp_replace(str(&a[0]), str(&a[1]), str(&a[2]), str(&a[3]))
    }),
    ("regexp_match", "text,text->_text", |a, _, _| {
        regexp_match(str(&a[0]), str(&a[1]), "")
    }),
    ("regexp_match", "text,text,text->_text", |a, _, _| {
        regexp_match(str(&a[0]), str(&a[1]), str(&a[2]))
    }),
    ("regexp_like", "text,text->bool", |a, _, _| {
        Ok(Value::Bool(
            compile(str(&a[1]), Flags::default())?.is_match(str(&a[0]))?,
        ))
    }),
    ("regexp_split_to_array", "text,text->_text", |a, _, _| {
        regexp_split(str(&a[0]), str(&a[1]), "")
    }),
    ("regexp_split_to_array", "text,text,text->_text", |a, _, _| {
        regexp_split(str(&a[0]), str(&a[1]), str(&a[2]))
    }),
    (PADDED, "bpchar->text", |a, _, _| Ok(a[0].clone())),
    (LIKE_BYTES, "bytea,bytea,int4->bool", |a, _, _| {
        let (Value::Binary(text), Value::Binary(pattern)) = (&a[0], &a[1]) else {
            return Ok(Value::Null);
        };
        let escape = u8::try_from(int(&a[2])).ok();
        is_like_bytes(&text.bytes, &pattern.bytes, escape).map(Value::Bool)
    }),
    ("substring", "text,text,text->text", |a, _, _| {
        let mut chars = str(&a[2]).chars();
        let escape = match (chars.next(), chars.next()) {
            (escape, None) => escape,
            _ => return fail("22025", "invalid escape string"),
        };
        let (pattern, group) = similar_part(str(&a[1]), escape)?;
        let found = compile(&pattern, Flags::default())?.captures_at(str(&a[0]), 0)?;
        let part = found.and_then(|groups| groups.get(group).copied().flatten());
        Ok(part.map_or(Value::Null, |(from, to)| Value::String(str(&a[0])[from..to].into())))
    }),
    ("substring", "text,text->text", |a, _, _| {
        match regexp_match(str(&a[0]), str(&a[1]), "")? {
            Value::Array(items) => Ok(items.as_ref().get(0).map_or(Value::Null, |item| item.to_value())),
            other => Ok(other),
        }
    }),
];
