//! Texts as they are searched: `tsvector`, lexemes in the order of their bytes, each with its places and weights.
//!
//! ```text
//! 'cat':3 'fat':2,4A      the text is 'a fat cat, FAT', say: "cat" is its third word; the fourth word counts more
//! 'cat' 'fat'             the same without places
//! ```
//!
//! Statements and documents hold this text, which each vector has one of. In binary format it is the number of lexemes, and of each its bytes, a
//! zero, how many places it has, and these: two bits of weight (`A` is 3, `D`, which is not shown, 0) and 14 of the place.
//!
//! Source: manual, chapters 8.11 and 12.

use crate::error::{error, fail};
use nestor_model::statement::{BYTES_PER_UNIT, charge, work};
use nestor_model::{Error, Result, Value};
use std::cmp::Ordering;
use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::CharIndices;

/// Bytes of a lexeme are fewer.
pub const LEXEME_BYTES_END: usize = 2047;
/// What all lexemes of a vector and their places may take.
const VECTOR_BYTES_END: usize = 1 << 20;
/// Places behind it count as it.
pub const PLACE_MAX: u16 = 16383;
/// A lexeme has fewer places.
const PLACES_END: usize = 256;

/// The place of a lexeme in a text, from 1, and its weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(u16);

impl Place {
    /// A place with a weight from 0 (`D`) to 3 (`A`).
    pub fn new(at: usize, weight: u8) -> Self {
        let at = u16::try_from(at).map_or(PLACE_MAX, |at| at.min(PLACE_MAX));
        Self(u16::from(weight & 3) << 14 | at)
    }

    /// Where it is.
    pub fn at(self) -> u16 {
        self.0 & PLACE_MAX
    }

    /// Its weight.
    pub fn weight(self) -> u8 {
        (self.0 >> 14) as u8
    }
}

/// A lexeme and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The lexeme.
    pub lexeme: String,
    /// Its places, in ascending order; none where they are not known.
    pub places: Vec<Place>,
}

/// The lexemes of a text, in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TsVector {
    /// The lexemes, each once.
    pub entries: Vec<Entry>,
}

impl TsVector {
    /// Of lexemes in any order, some of which may be there several times.
    ///
    /// Errors: 54000 for what is too large.
    pub fn new(mut entries: Vec<Entry>) -> Result<Self> {
        work(entries.len())?;
        let in_order = |pair: &[Entry]| pair[0].lexeme < pair[1].lexeme;
        if !entries.windows(2).all(in_order) {
            entries.sort_by(|a, b| a.lexeme.cmp(&b.lexeme));
            entries.dedup_by(|again, first| {
                let same = again.lexeme == first.lexeme;
                if same {
                    first.places.append(&mut again.places);
                }
                same
            });
        }
        for entry in &mut entries {
            settle(&mut entry.places);
        }
        let out = Self { entries };
        let bytes = out.bytes_of_lexemes();
        match bytes >= VECTOR_BYTES_END {
            true => fail(
                "54000",
                format!(
                    "string is too long for tsvector ({bytes} bytes, max {} bytes)",
                    VECTOR_BYTES_END - 1
                ),
            ),
            false => Ok(out),
        }
    }

    /// What a text says.
    ///
    /// Errors: 42601, 54000.
    pub fn parse(text: &str) -> Result<Self> {
        work(text.len() / BYTES_PER_UNIT)?;
        let mut reader = Reader::new(text, Mode::Vector);
        let (mut entries, mut total) = (Vec::new(), 0);
        while let Some(lexeme) = reader.word()? {
            if lexeme.len() >= LEXEME_BYTES_END {
                return Err(too_long(lexeme.len()));
            }
            total += lexeme.len();
            if total >= VECTOR_BYTES_END {
                let message = format!(
                    "string is too long for tsvector ({total} bytes, max {} bytes)",
                    VECTOR_BYTES_END - 1
                );
                return fail("54000", message);
            }
            let places = reader.places()?;
            charge(std::mem::size_of::<Entry>() + lexeme.len() + 2 * places.len())?;
            entries.push(Entry { lexeme, places });
        }
        Self::new(entries)
    }

    /// The vector that a value is.
    ///
    /// Errors: those of limits.
    pub fn of(value: &Value) -> Result<Self> {
        Self::parse(value.as_str().unwrap_or_default())
    }

    /// As a value.
    ///
    /// Errors: those of limits.
    pub fn to_value(&self) -> Result<Value> {
        let text = self.format();
        charge(text.len())?;
        Ok(Value::String(text.into()))
    }

    /// Its text.
    pub fn format(&self) -> String {
        let mut out = String::new();
        for entry in &self.entries {
            if !out.is_empty() {
                out.push(' ');
            }
            quote(&entry.lexeme, &mut out);
            for (i, place) in entry.places.iter().enumerate() {
                out.push(if i == 0 { ':' } else { ',' });
                let _ = write!(out, "{}", place.at());
                if place.weight() > 0 {
                    out.push(char::from(b'D' - place.weight()));
                }
            }
        }
        out
    }

    /// In binary format.
    pub fn to_binary(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.entries.len() as u32).to_be_bytes());
        for entry in &self.entries {
            out.extend_from_slice(entry.lexeme.as_bytes());
            out.push(0);
            out.extend_from_slice(&(entry.places.len() as u16).to_be_bytes());
            for place in &entry.places {
                out.extend_from_slice(&place.0.to_be_bytes());
            }
        }
    }

    /// From binary format; `None` for bytes that are no vector.
    pub fn of_binary(mut bytes: &[u8]) -> Option<Result<Self>> {
        let mut entries: Vec<Entry> = Vec::new();
        let count = take_u32(&mut bytes)?;
        for _ in 0..count {
            let lexeme = take_text(&mut bytes)?;
            if lexeme.len() >= LEXEME_BYTES_END {
                return Some(Err(too_long(lexeme.len())));
            }
            let places = (0..take_u16(&mut bytes)?).map(|_| take_u16(&mut bytes).map(Place));
            let places: Vec<Place> = places.collect::<Option<_>>()?;
            let ascends = places.windows(2).all(|pair| pair[0].at() < pair[1].at());
            if lexeme.is_empty() || !ascends || places.len() >= PLACES_END || places.iter().any(|place| place.at() == 0)
            {
                return None;
            }
            if let Err(error) = charge(std::mem::size_of::<Entry>() + lexeme.len() + 2 * places.len()) {
                return Some(Err(error));
            }
            entries.push(Entry {
                lexeme: lexeme.to_owned(),
                places,
            });
        }
        let mut lexemes: Vec<&str> = entries.iter().map(|entry| entry.lexeme.as_str()).collect();
        lexemes.sort_unstable();
        let is_twice = lexemes.windows(2).any(|pair| pair[0] == pair[1]);
        (bytes.is_empty() && !is_twice).then(|| Self::new(entries))
    }

    /// The entry of a lexeme.
    pub fn entry(&self, lexeme: &str) -> Option<&Entry> {
        let at = self.entries.binary_search_by(|entry| entry.lexeme.as_str().cmp(lexeme));
        at.ok().map(|at| &self.entries[at])
    }

    /// The entries of lexemes that begin so.
    pub fn entries_with(&self, prefix: &str) -> &[Entry] {
        let from = self.entries.partition_point(|entry| entry.lexeme.as_str() < prefix);
        let rest = &self.entries[from..];
        let count = rest.partition_point(|entry| entry.lexeme.starts_with(prefix));
        &rest[..count]
    }

    /// How many places there are; a lexeme without any has one.
    pub fn places_counted(&self) -> usize {
        self.entries.iter().map(|entry| entry.places.len().max(1)).sum()
    }

    /// The last place that a lexeme has.
    pub fn last_place(&self) -> u16 {
        let last = |entry: &Entry| entry.places.last().map(|place| place.at());
        self.entries.iter().filter_map(last).max().unwrap_or(0)
    }

    /// The bytes of lexemes and their places, each of these behind an even number of bytes.
    fn bytes_of_lexemes(&self) -> usize {
        self.entries.iter().fold(0, |so_far, entry| {
            let end = so_far + entry.lexeme.len();
            match entry.places.len() {
                0 => end,
                count => end + end % 2 + 2 + 2 * count,
            }
        })
    }

    /// The order of vectors: by size, number of lexemes, then lexeme by lexeme, where more and later places come first.
    pub fn compare(&self, other: &Self) -> Ordering {
        let size = |own: &Self| own.bytes_of_lexemes() + 4 * own.entries.len();
        let sizes = size(self)
            .cmp(&size(other))
            .then(self.entries.len().cmp(&other.entries.len()));
        if sizes.is_ne() {
            return sizes;
        }
        for (a, b) in self.entries.iter().zip(&other.entries) {
            let has_places = |entry: &Entry| !entry.places.is_empty();
            let places = a.places.iter().zip(&b.places);
            let places = places.map(|(a, b)| b.at().cmp(&a.at()).then(b.weight().cmp(&a.weight())));
            let order = has_places(b)
                .cmp(&has_places(a))
                .then_with(|| a.lexeme.cmp(&b.lexeme))
                .then_with(|| b.places.len().cmp(&a.places.len()))
                .then_with(|| places.fold(Ordering::Equal, Ordering::then));
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    }
}

/// Places in order, each once, with the greatest of the weights that it has; no more than a lexeme may have.
fn settle(places: &mut Vec<Place>) {
    if places.len() > 1 {
        places.sort_by_key(|place| place.at());
        let only_last = places[0].at() == PLACE_MAX;
        places.dedup_by(|again, first| {
            let same = again.at() == first.at();
            // The last place there is stands for all behind it: behind other places the weight is that of the first of them.
            if same && (first.at() < PLACE_MAX || only_last) {
                *first = Place::new(usize::from(first.at()), first.weight().max(again.weight()));
            }
            same
        });
        places.truncate(PLACES_END - 1);
    }
}

/// The error of a lexeme that is too long.
pub fn too_long(bytes: usize) -> Error {
    error(
        "54000",
        format!("word is too long ({bytes} bytes, max {} bytes)", LEXEME_BYTES_END - 1),
    )
}

/// A lexeme within quotes.
pub fn quote(lexeme: &str, out: &mut String) {
    out.push('\'');
    for c in lexeme.chars() {
        if matches!(c, '\'' | '\\') {
            out.push(c);
        }
        out.push(c);
    }
    out.push('\'');
}

/// Whether a character is between words, whatever the language.
pub fn is_space(c: char) -> bool {
    matches!(c, '\t'..='\r' | ' ' | '\u{1680}' | '\u{2000}'..='\u{2006}' | '\u{2008}'..='\u{200A}')
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{205F}' | '\u{3000}')
}

/// The weight that a letter says.
pub fn weight_of(letter: char) -> Option<u8> {
    match letter.to_ascii_uppercase() {
        letter @ 'A'..='D' => Some(b'D' - letter as u8),
        _ => None,
    }
}

/// What a text with words is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A vector.
    Vector,
    /// A query, where operators end words.
    Query,
    /// A query as search engines take them, where quotes and backslashes mean something else.
    Web,
}

/// Reads words that may be within quotes.
pub struct Reader<'t> {
    /// All of it.
    pub text: &'t str,
    chars: Peekable<CharIndices<'t>>,
    mode: Mode,
}

impl<'t> Reader<'t> {
    /// From the beginning of a text.
    pub fn new(text: &'t str, mode: Mode) -> Self {
        Self {
            text,
            chars: text.char_indices().peekable(),
            mode,
        }
    }

    /// The next character.
    pub fn peek(&mut self) -> Option<char> {
        self.chars.peek().map(|(_, c)| *c)
    }

    /// Takes the next character.
    pub fn next(&mut self) -> Option<char> {
        self.chars.next().map(|(_, c)| c)
    }

    /// Takes the next character if it is this one.
    pub fn takes(&mut self, wanted: char) -> bool {
        self.chars.next_if(|(_, c)| *c == wanted).is_some()
    }

    /// Takes what is between words.
    pub fn skip_space(&mut self) {
        while self.chars.next_if(|(_, c)| is_space(*c)).is_some() {}
    }

    /// What is left.
    pub fn rest(&mut self) -> &'t str {
        let at = self.chars.peek().map_or(self.text.len(), |(at, _)| *at);
        &self.text[at..]
    }

    /// Goes on behind the next `bytes` bytes.
    pub fn skip(&mut self, bytes: usize) {
        let end = self.text.len() - self.rest().len() + bytes;
        while self.chars.next_if(|(at, _)| *at < end).is_some() {}
    }

    /// The error of a text that is none of its kind.
    pub fn wrong(&self) -> Error {
        let kind = if self.mode == Mode::Vector {
            "tsvector"
        } else {
            "tsquery"
        };
        error("42601", format!("syntax error in {kind}: \"{}\"", self.text))
    }

    fn ends_word(&self, c: char) -> bool {
        match self.mode {
            _ if is_space(c) => true,
            Mode::Vector => false,
            Mode::Query => matches!(c, ':') || is_operator(c),
            Mode::Web => matches!(c, ':' | '"') || is_operator(c),
        }
    }

    /// The next word; `None` where there is none.
    ///
    /// Errors: 42601.
    pub fn word(&mut self) -> Result<Option<String>> {
        self.skip_space();
        let quotes = self.mode != Mode::Web;
        let Some(first) = self.peek() else { return Ok(None) };
        if quotes && first == '\'' {
            self.next();
            return self.quoted().map(Some);
        }
        if self.mode != Mode::Vector && is_operator(first) {
            return Err(self.wrong());
        }
        let mut out = String::new();
        while let Some(c) = self.peek() {
            let is_first = out.is_empty();
            let ends = match c {
                ':' if !is_first && self.mode == Mode::Vector => true,
                c => !is_first && self.ends_word(c),
            };
            if ends {
                break;
            }
            self.next();
            match c {
                '\\' if quotes => out.push(self.escaped()?),
                c => out.push(c),
            }
        }
        Ok(Some(out))
    }

    fn escaped(&mut self) -> Result<char> {
        self.next()
            .ok_or_else(|| error("42601", format!("there is no escaped character: \"{}\"", self.text)))
    }

    fn quoted(&mut self) -> Result<String> {
        let mut out = String::new();
        loop {
            match self.next() {
                None => return Err(self.wrong()),
                Some('\\') => out.push(self.escaped()?),
                Some('\'') if !self.takes('\'') => break,
                Some(c) => out.push(c),
            }
        }
        match out.is_empty() {
            true => Err(self.wrong()),
            false => Ok(out),
        }
    }

    /// The places behind a word.
    fn places(&mut self) -> Result<Vec<Place>> {
        let mut out = Vec::new();
        if !self.takes(':') {
            return Ok(out);
        }
        loop {
            let mut at: usize = 0;
            let Some(first) = self.chars.next_if(|(_, c)| c.is_ascii_digit()) else {
                return Err(self.wrong());
            };
            let mut digit = Some(first);
            while let Some((_, c)) = digit {
                at = at.saturating_mul(10).saturating_add(c as usize - '0' as usize);
                digit = self.chars.next_if(|(_, c)| c.is_ascii_digit());
            }
            if at == 0 {
                let message = format!("wrong position info in tsvector: \"{}\"", self.text);
                return fail("42601", message);
            }
            let weight = match self.peek() {
                Some('*') => Some(3),
                Some(letter) => weight_of(letter),
                None => None,
            };
            if weight.is_some() {
                self.next();
            }
            out.push(Place::new(at, weight.unwrap_or(0)));
            match self.peek() {
                Some(',') => {
                    self.next();
                }
                Some(c) if !is_space(c) => return Err(self.wrong()),
                _ => return Ok(out),
            }
        }
    }
}

/// Whether a character is an operator of queries, or the first of one.
pub fn is_operator(c: char) -> bool {
    matches!(c, '!' | '&' | '|' | '(' | ')' | '<')
}

pub(super) fn take_u16(bytes: &mut &[u8]) -> Option<u16> {
    super::input::take(bytes).map(u16::from_be_bytes)
}

fn take_u32(bytes: &mut &[u8]) -> Option<u32> {
    super::input::take(bytes).map(u32::from_be_bytes)
}

/// The text before the next zero.
pub(super) fn take_text<'b>(bytes: &mut &'b [u8]) -> Option<&'b str> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let text = std::str::from_utf8(&bytes[..end]).ok()?;
    *bytes = &bytes[end + 1..];
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_format_is_that_of_postgresql() {
        // By PostgreSQL 15: SELECT tsvectorsend('a:1A,2 b')
        let bytes = b"\0\0\0\x02a\0\0\x02\xC0\x01\0\x02b\0\0\0";
        let own = TsVector::parse("b a:2,1A").unwrap();
        let mut sent = Vec::new();
        own.to_binary(&mut sent);
        assert_eq!(sent, bytes);
        assert_eq!(TsVector::of_binary(bytes).unwrap().unwrap(), own);
        for end in 0..bytes.len() {
            assert!(TsVector::of_binary(&bytes[..end]).is_none(), "{end}");
        }
        // The same lexeme twice, and places that do not ascend.
        assert!(TsVector::of_binary(b"\0\0\0\x02a\0\0\0a\0\0\0").is_none());
        assert!(TsVector::of_binary(b"\0\0\0\x01a\0\0\x02\0\x02\0\x01").is_none());
    }
}
