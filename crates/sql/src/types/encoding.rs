//! Encodings of clients: what they send is read from theirs, and what they get is written in it. Texts are UTF-8 everywhere else.

use super::style;
use crate::error::{error, fail};
use nestor_model::{Error, Result};
use std::borrow::Cow;
use std::cell::Cell;

/// An encoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8.
    #[default]
    Utf8,
    /// Nothing is converted: it is what programs ask for in the locale `C`.
    Ascii,
    /// ISO 8859-1.
    Latin1,
    /// ISO 8859-15.
    Latin9,
    /// Windows' code page for the west of Europe, which `psql` there asks for.
    Win1252,
}

/// What ISO 8859-15 has otherwise than ISO 8859-1.
const LATIN9: [(u8, char); 8] = [
    (0xA4, '€'),
    (0xA6, 'Š'),
    (0xA8, 'š'),
    (0xB4, 'Ž'),
    (0xB8, 'ž'),
    (0xBC, 'Œ'),
    (0xBD, 'œ'),
    (0xBE, 'Ÿ'),
];

/// What Windows' code page 1252 has from 0x80 to 0x9F; U+0000 where it has nothing.
const WIN1252: [char; 32] = [
    '€', '\0', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\0', 'Ž', '\0', '\0', '‘', '’', '“', '”', '•',
    '–', '—', '˜', '™', 'š', '›', 'œ', '\0', 'ž', 'Ÿ',
];

thread_local! {
    /// A character that the client's encoding does not have.
    static LOST: Cell<Option<char>> = const { Cell::new(None) };
}

impl Encoding {
    /// The encoding of a name. Names are told apart by their letters and digits alone, as PostgreSQL does.
    pub fn of(name: &str) -> Option<Self> {
        let letters = name.chars().filter(char::is_ascii_alphanumeric);
        let plain: String = letters.map(|c| c.to_ascii_lowercase()).collect();
        match plain.as_str() {
            "utf8" | "unicode" => Some(Self::Utf8),
            "sqlascii" => Some(Self::Ascii),
            "latin1" | "iso88591" => Some(Self::Latin1),
            "latin9" | "iso885915" => Some(Self::Latin9),
            "win1252" | "windows1252" => Some(Self::Win1252),
            _ => None,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF8",
            Self::Ascii => "SQL_ASCII",
            Self::Latin1 => "LATIN1",
            Self::Latin9 => "LATIN9",
            Self::Win1252 => "WIN1252",
        }
    }

    /// Whether its texts are taken and given as they are.
    pub fn is_plain(self) -> bool {
        matches!(self, Self::Utf8 | Self::Ascii)
    }

    /// The character that a byte is.
    fn char_of(self, byte: u8) -> Option<char> {
        match self {
            Self::Latin9 => {
                let own = LATIN9.iter().find(|(own, _)| *own == byte);
                Some(own.map_or(char::from(byte), |(_, c)| *c))
            }
            Self::Win1252 if (0x80..0xA0).contains(&byte) => {
                Some(WIN1252[usize::from(byte) - 0x80]).filter(|c| *c != '\0')
            }
            _ => Some(char::from(byte)),
        }
    }

    /// The byte that a character is.
    fn byte_of(self, c: char) -> Option<u8> {
        if c.is_ascii() {
            return u8::try_from(c).ok();
        }
        let all = 0x80..=0xFF;
        match u8::try_from(c) {
            Ok(byte) if self.char_of(byte) == Some(c) => Some(byte),
            _ => all.into_iter().find(|byte| self.char_of(*byte) == Some(c)),
        }
    }

    /// The text that bytes are.
    ///
    /// Errors: 22021, 22P05.
    pub fn decode(self, bytes: &[u8]) -> Result<Cow<'_, str>> {
        if self.is_plain() || bytes.is_ascii() {
            return match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Cow::Borrowed(text)),
                Err(wrong) => Err(invalid(&bytes[wrong.valid_up_to()..])),
            };
        }
        let mut out = String::with_capacity(bytes.len() + bytes.len() / 4);
        for byte in bytes {
            match self.char_of(*byte) {
                Some(c) => out.push(c),
                None => {
                    let name = self.name();
                    let message = format!(
                        "character with byte sequence 0x{byte:02x} in encoding \"{name}\" has no equivalent in encoding \"UTF8\""
                    );
                    return fail("22P05", message);
                }
            }
        }
        Ok(Cow::Owned(out))
    }

    /// Appends a text, with `?` for what it does not have; the first such character.
    fn append(self, text: &str, out: &mut Vec<u8>) -> Option<char> {
        if self.is_plain() || text.is_ascii() {
            out.extend_from_slice(text.as_bytes());
            return None;
        }
        let mut lost = None;
        for c in text.chars() {
            match self.byte_of(c) {
                Some(byte) => out.push(byte),
                None => {
                    lost = lost.or(Some(c));
                    out.push(b'?');
                }
            }
        }
        lost
    }

    /// The bytes of a text.
    ///
    /// Errors: 22P05.
    pub fn encode(self, text: &str) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(text.len());
        match self.append(text, &mut out) {
            Some(c) => Err(self.without(c)),
            None => Ok(out),
        }
    }

    fn without(self, c: char) -> Error {
        let mut buffer = [0; 4];
        let bytes: Vec<String> = c
            .encode_utf8(&mut buffer)
            .bytes()
            .map(|byte| format!("0x{byte:02x}"))
            .collect();
        error(
            "22P05",
            format!(
                "character with byte sequence {} in encoding \"UTF8\" has no equivalent in encoding \"{}\"",
                bytes.join(" "),
                self.name()
            ),
        )
    }
}

/// Appends a text for the client; what its encoding does not have is told by [`lost`].
pub fn put(text: &str, out: &mut Vec<u8>) {
    if let Some(c) = style::encoding().append(text, out) {
        LOST.set(LOST.take().or(Some(c)));
    }
}

/// Puts what was appended as UTF-8 from a place on into the client's encoding, as [`put`] does.
pub fn recode(out: &mut Vec<u8>, from: usize) {
    if style::encoding().is_plain() {
        return;
    }
    let own = out.split_off(from);
    put(&String::from_utf8_lossy(&own), out);
}

/// Appends a text that is no value, with `?` for what the client's encoding does not have.
pub fn put_about(text: &str, out: &mut Vec<u8>) {
    style::encoding().append(text, out);
}

/// Whether a text that was [`put`] had a character that the client's encoding does not have.
///
/// Errors: 22P05 if so.
pub fn lost() -> Result<()> {
    match LOST.take() {
        Some(c) => Err(style::encoding().without(c)),
        None => Ok(()),
    }
}

/// The text that the client has sent.
///
/// Errors: those of [`Encoding::decode`]; 22021 for the character that ends texts elsewhere, which no text of SQL has.
pub fn text(bytes: &[u8]) -> Result<Cow<'_, str>> {
    match bytes.iter().position(|byte| *byte == 0) {
        Some(at) => Err(invalid(&bytes[at..])),
        None => style::encoding().decode(bytes),
    }
}

/// The error of bytes that begin with no character.
fn invalid(bytes: &[u8]) -> Error {
    let length = match bytes.first() {
        Some(0xC0..=0xDF) => 2,
        Some(0xE0..=0xEF) => 3,
        Some(0xF0..=0xF7) => 4,
        _ => 1,
    };
    let shown: Vec<String> = bytes.iter().take(length).map(|byte| format!("0x{byte:02x}")).collect();
    let message = format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" "));
    error("22021", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_characters_and_back() {
        for encoding in [Encoding::Latin1, Encoding::Latin9, Encoding::Win1252] {
            for byte in 0..=255u8 {
                let Ok(text) = encoding.decode(std::slice::from_ref(&byte)).map(Cow::into_owned) else {
                    assert!(encoding == Encoding::Win1252 && [0x81, 0x8D, 0x8F, 0x90, 0x9D].contains(&byte));
                    continue;
                };
                assert_eq!(encoding.encode(&text).unwrap(), [byte], "{encoding:?} {text}");
            }
        }
        assert_eq!(Encoding::Latin9.encode("1 €").unwrap(), b"1 \xA4");
        assert_eq!(Encoding::Win1252.decode(b"\x80").unwrap(), "€");
        assert!(Encoding::Latin1.encode("€").is_err());
        assert!(Encoding::Latin9.encode("¤").is_err());
        assert!(Encoding::Utf8.decode(b"\xFF").is_err());
    }
}
