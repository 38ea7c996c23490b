//! Resume tokens of change streams: `{_data: "<hexadecimal digits>"}`.
//!
//! The digits are bytes whose order is the order of events. Clients compare, keep and send back tokens, of which only the
//! time at the start is known to tools: it stands where tokens of MongoDB have it.
//!
//! ```text
//! at  size
//!  0     1  0x82: a time follows
//!  1     8  cluster time: seconds, then ordinal, big-endian
//!  9     1  version: 0x01
//! 10     1  0x00 a mark: before all events of its time; the end byte follows
//!           0x80 an event
//! 11     4  which operation of its commit, big-endian; 0 outside of transactions
//! 15     1  0x00 the event, 0x01 the `invalidate` that follows it
//! 16     4  fragment of an event that was split, from 1; 0 a whole event; big-endian
//! 20    16  UUID of the collection, zeros for events of a whole database
//! 36     1  0x04: end
//! ```
//!
//! A token without its end byte is read like a whole one, and what stands behind the end byte is not looked at.
//! Source: manual, "Resume Tokens"; errors as observed.

use nestor_model::{DocRef, Document, Error, ErrorCode, Result, Timestamp, ValueRef, doc};

const TIME: u8 = 0x82;
const VERSION: u8 = 0x01;
const MARK: u8 = 0x00;
const EVENT: u8 = 0x80;
const END: u8 = 0x04;

/// A place in the history, as clients keep it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Token {
    /// The time of the commit.
    pub time: Timestamp,
    /// The event; `None` for the place before all events of that time.
    pub event: Option<EventId>,
}

/// Which event of a commit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct EventId {
    /// Which operation of the commit, from 0.
    pub operation: u32,
    /// Whether it is the `invalidate` that follows the operation's own event.
    pub is_invalidate: bool,
    /// Which fragment of the event, from 1; 0 for a whole event.
    pub fragment: u32,
    /// The collection; zeros for events of a whole database.
    pub uuid: [u8; 16],
}

impl Token {
    /// The place before all events from `time` on.
    pub fn mark(time: Timestamp) -> Self {
        Self { time, event: None }
    }

    /// The token of the event that this token is of, whichever fragment it names.
    #[must_use]
    pub fn whole(mut self) -> Self {
        if let Some(event) = &mut self.event {
            event.fragment = 0;
        }
        self
    }

    /// The fragment that the token names; 0 when it names none.
    pub fn fragment(&self) -> u32 {
        self.event.map_or(0, |event| event.fragment)
    }

    /// The token of a fragment of the event.
    #[must_use]
    pub fn of_fragment(mut self, fragment: u32) -> Self {
        if let Some(event) = &mut self.event {
            event.fragment = fragment;
        }
        self
    }

    /// Whether the token is that of an `invalidate`.
    pub fn is_invalidate(&self) -> bool {
        self.event.is_some_and(|event| event.is_invalidate)
    }

    /// The digits of `_data`.
    pub fn data(&self) -> String {
        const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
        let mut text = String::with_capacity(74);
        let mut push = |bytes: &[u8]| {
            for byte in bytes {
                text.push(char::from(DIGITS[usize::from(byte >> 4)]));
                text.push(char::from(DIGITS[usize::from(byte & 15)]));
            }
        };
        push(&[TIME]);
        push(&self.time.to_u64().to_be_bytes());
        match &self.event {
            None => push(&[VERSION, MARK]),
            Some(event) => {
                push(&[VERSION, EVENT]);
                push(&event.operation.to_be_bytes());
                push(&[u8::from(event.is_invalidate)]);
                push(&event.fragment.to_be_bytes());
                push(&event.uuid);
            }
        }
        push(&[END]);
        text
    }

    /// The document that clients see.
    pub fn to_document(&self) -> Document {
        doc! { "_data": self.data() }
    }

    /// Reads what a client sends back.
    ///
    /// Errors: 40647 no string `_data`, 40648 `_typeBits` that is no binary value, 40649 empty, 9 no hexadecimal digits, 50811 no
    /// token, 15 cut off, 260 a version that is not known.
    pub fn parse(doc: DocRef<'_>) -> Result<Self> {
        let Some(ValueRef::String(data)) = doc.get("_data") else {
            return Err(Error::location(
                40647,
                format!("bad resume token: _data is missing or no string: {doc:?}"),
            ));
        };
        match doc.get("_typeBits") {
            None | Some(ValueRef::Binary { .. }) => {}
            Some(_) => {
                return Err(Error::location(40648, "bad resume token: _typeBits is no binary value"));
            }
        }
        if data.is_empty() {
            return Err(Error::location(40649, "bad resume token: _data is empty"));
        }
        Self::decode(&bytes_of(data)?)
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        let mut rest = bytes;
        if take::<1>(&mut rest)? != [TIME] {
            return Err(Error::location(
                50811,
                "bad resume token: it does not begin with a time",
            ));
        }
        let time = Timestamp::from_u64(u64::from_be_bytes(take(&mut rest)?));
        if take::<1>(&mut rest)? != [VERSION] {
            return Err(invalid("its version is not known"));
        }
        let event = match take::<1>(&mut rest)? {
            [MARK] => None,
            [EVENT] => {
                let operation = u32::from_be_bytes(take(&mut rest)?);
                let is_invalidate = match take::<1>(&mut rest)? {
                    [0] => false,
                    [1] => true,
                    _ => return Err(invalid("it names no event")),
                };
                Some(EventId {
                    operation,
                    is_invalidate,
                    fragment: u32::from_be_bytes(take(&mut rest)?),
                    uuid: take(&mut rest)?,
                })
            }
            _ => return Err(invalid("it is neither of an event nor a mark")),
        };
        match rest.first() {
            None | Some(&END) => Ok(Self { time, event }),
            Some(_) => Err(invalid("it does not end where it should")),
        }
    }
}

fn invalid(why: &str) -> Error {
    Error::new(ErrorCode::InvalidResumeToken, format!("bad resume token: {why}"))
}

/// The next `N` bytes.
fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N]> {
    let Some((first, behind)) = rest.split_first_chunk::<N>() else {
        return Err(Error::new(ErrorCode::Overflow, "bad resume token: it is cut off"));
    };
    *rest = behind;
    Ok(*first)
}

fn bytes_of(digits: &str) -> Result<Vec<u8>> {
    let bad = || Error::failed_to_parse("bad resume token: _data is no string of pairs of hexadecimal digits");
    if !digits.len().is_multiple_of(2) {
        return Err(bad());
    }
    let digit = |c: u8| char::from(c).to_digit(16).ok_or_else(bad);
    let pairs = digits.as_bytes().chunks_exact(2);
    // A pair of digits is a byte.
    pairs
        .map(|pair| Ok((digit(pair[0])? << 4 | digit(pair[1])?) as u8))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::Value;

    fn event(inc: u32, operation: u32, is_invalidate: bool, fragment: u32) -> Token {
        Token {
            time: Timestamp { secs: 0x6500_0000, inc },
            event: Some(EventId {
                operation,
                is_invalidate,
                fragment,
                uuid: [0xAB; 16],
            }),
        }
    }

    fn parse(doc: &Document) -> Result<Token> {
        Token::parse(doc.as_ref())
    }

    #[test]
    fn bytes_are_as_written_down() {
        let token = event(2, 3, true, 4);
        let uuid = "AB".repeat(16);
        assert_eq!(
            token.data(),
            format!("8265000000000000020180000000030100000004{uuid}04")
        );
        let mark = Token::mark(token.time);
        assert_eq!(mark.data(), "826500000000000002010004");
        for token in [token, mark] {
            assert_eq!(parse(&token.to_document()).expect("a token"), token);
        }
    }

    #[test]
    fn order_of_digits_is_order_of_events() {
        let tokens = [
            Token::mark(event(1, 0, false, 0).time),
            event(1, 0, false, 0),
            event(1, 0, false, 1),
            event(1, 0, false, 2),
            event(1, 0, true, 0),
            event(1, 1, false, 0),
            event(1, 256, false, 0),
            Token::mark(event(2, 0, false, 0).time),
            event(2, 0, false, 0),
        ];
        for pair in tokens.windows(2) {
            assert!(pair[0] < pair[1], "{pair:?}");
            assert!(pair[0].data() < pair[1].data(), "{pair:?}");
        }
    }

    /// Source: functional suite, "Resume Token Structure Rejection" and the tolerance tests of `$changeStream`.
    #[test]
    fn what_is_read_and_what_is_refused() {
        let token = event(7, 0, false, 0);
        let data = token.data();
        let with = |data: String| parse(&doc! { "_data": data });
        for same in [
            data.to_lowercase(),
            data[..data.len() - 2].to_owned(),
            format!("{data}FF"),
            format!("{data}00"),
        ] {
            assert_eq!(with(same.clone()).expect("a token"), token, "{same}");
        }
        let mut more = token.to_document();
        more.push("another", 1);
        more.push(
            "_typeBits",
            Value::Binary(nestor_model::Binary {
                subtype: 0,
                bytes: [0u8].as_slice().into(),
            }),
        );
        assert_eq!(parse(&more).expect("a token"), token);
        for (doc, code) in [
            (doc! {}, 40647),
            (doc! { "_data": 42 }, 40647),
            (doc! { "_data": "" }, 40649),
            (doc! { "_data": "xyz" }, 9),
            (doc! { "_data": "ZZ" }, 9),
            (doc! { "_data": "abc" }, 9),
            (doc! { "_data": "00" }, 50811),
            (doc! { "_data": "00", "_typeBits": "x" }, 40648),
            (doc! { "_data": &data[..data.len() - 4] }, 15),
            (doc! { "_data": "82" }, 15),
            (doc! { "_data": data.replacen("0180", "0980", 1) }, 260),
            (doc! { "_data": data.replacen("0180", "0170", 1) }, 260),
        ] {
            let error = parse(&doc).expect_err("no token");
            assert_eq!(error.code().number(), code, "{doc:?}: {error}");
        }
    }
}
