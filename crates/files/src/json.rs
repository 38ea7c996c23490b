//! JSON and Extended JSON: one document per line, or values one after the other, perhaps in one array.

use crate::records::{BadRecord, Place, Record, Records};
use nestor_model::extjson;
use std::io::{BufRead, BufReader, Read};

/// Longest text of one document; well above what 16 MiB of BSON can take in Extended JSON.
const TEXT_BYTES_MAX: usize = 256 * 1024 * 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Encodes the document `text`, which begins at line `line`.
fn encode(text: &[u8], line: u64) -> Result<Record, BadRecord> {
    let line_at = |offset: usize| line + text[..offset.min(text.len())].iter().filter(|b| **b == b'\n').count() as u64;
    let utf8 =
        std::str::from_utf8(text).map_err(|e| BadRecord::at_line(line_at(e.valid_up_to()), "the text is not UTF-8"))?;
    let document = extjson::parse_document(utf8).map_err(|e| BadRecord::at_line(line_at(e.offset), e.reason))?;
    Ok(Record {
        place: Place::Line(line),
        bson: document.to_raw().as_bytes().to_vec(),
    })
}

/// NDJSON: every line that is not blank is a document.
pub struct Lines<R> {
    input: BufReader<R>,
    line: u64,
    text: Vec<u8>,
    text_max: usize,
}

impl<R: Read> Lines<R> {
    /// Reads from the beginning of `input`.
    pub fn new(input: R) -> Self {
        Self {
            input: BufReader::with_capacity(1 << 18, input),
            line: 0,
            text: Vec::new(),
            text_max: TEXT_BYTES_MAX,
        }
    }

    /// Refuses lines with more bytes than this.
    pub fn with_text_max(self, text_max: usize) -> Self {
        Self { text_max, ..self }
    }
}

impl<R: Read> Records for Lines<R> {
    fn next_record(&mut self) -> Result<Option<Record>, BadRecord> {
        loop {
            self.text.clear();
            let count = self
                .input
                .by_ref()
                .take(self.text_max as u64)
                .read_until(b'\n', &mut self.text)?;
            if count == 0 {
                return Ok(None);
            }
            self.line += 1;
            if count == self.text_max {
                return Err(BadRecord::at_line(self.line, "the line is too long"));
            }
            let text = if self.line == 1 {
                self.text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.text)
            } else {
                &self.text
            };
            let text = text.trim_ascii();
            if !text.is_empty() {
                return encode(text, self.line).map(Some);
            }
        }
    }
}

/// Documents one after the other with any white space between them, or all of them in one array.
///
/// Only brackets and strings are looked at to find where a document ends; the parser sees to the rest.
pub struct Values<R> {
    input: BufReader<R>,
    line: u64,
    text: Vec<u8>,
    text_max: usize,
    at: Position,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    /// Nothing but white space was read yet.
    Start,
    /// Outside of any array: documents follow each other.
    Between,
    /// After `[`.
    ArrayStart,
    /// After a document of the array: a comma or the end must come.
    ArrayAfter,
    /// After a comma: a document must come.
    ArrayNext,
    /// After `]`: nothing may come.
    ArrayEnd,
}

impl<R: Read> Values<R> {
    /// Reads from the beginning of `input`.
    pub fn new(input: R) -> Self {
        Self {
            input: BufReader::with_capacity(1 << 18, input),
            line: 1,
            text: Vec::new(),
            text_max: TEXT_BYTES_MAX,
            at: Position::Start,
        }
    }

    /// Refuses documents whose text has more bytes than this.
    pub fn with_text_max(self, text_max: usize) -> Self {
        Self { text_max, ..self }
    }

    fn fail<T>(&self, reason: impl Into<String>) -> Result<T, BadRecord> {
        Err(BadRecord::at_line(self.line, reason))
    }

    /// The next byte that is no white space, left in the input.
    fn peek(&mut self) -> Result<Option<u8>, BadRecord> {
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                return Ok(None);
            }
            let white = buffer.iter().take_while(|b| b.is_ascii_whitespace()).count();
            self.line += newlines(&buffer[..white]);
            let next = buffer.get(white).copied();
            self.input.consume(white);
            if next.is_some() {
                return Ok(next);
            }
        }
    }

    fn skip_byte_order_mark(&mut self) -> Result<(), BadRecord> {
        // No JSON text begins with this byte, so nothing is lost by taking three.
        if self.input.fill_buf()?.first() == BYTE_ORDER_MARK.first() {
            let mut mark = [0; BYTE_ORDER_MARK.len()];
            self.input.read_exact(&mut mark)?;
            if mark != BYTE_ORDER_MARK {
                return self.fail("the text is not JSON");
            }
        }
        Ok(())
    }

    /// Takes the text from `{` to the `}` that closes it.
    fn document(&mut self) -> Result<Record, BadRecord> {
        let first_line = self.line;
        self.text.clear();
        let mut end = EndFinder::default();
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                return self.fail(format!(
                    "the file ends inside the document that begins at line {first_line}"
                ));
            }
            let found = end.advance(buffer);
            let taken = found.unwrap_or(buffer.len());
            self.text.extend_from_slice(&buffer[..taken]);
            self.line += newlines(&buffer[..taken]);
            self.input.consume(taken);
            if found.is_some() {
                return encode(&self.text, first_line);
            }
            if self.text.len() > self.text_max {
                return Err(BadRecord::at_line(
                    first_line,
                    "the document that begins here is too long",
                ));
            }
        }
    }
}

impl<R: Read> Records for Values<R> {
    fn next_record(&mut self) -> Result<Option<Record>, BadRecord> {
        use Position::{ArrayAfter, ArrayEnd, ArrayNext, ArrayStart, Between, Start};
        if self.at == Start {
            self.skip_byte_order_mark()?;
        }
        loop {
            let next = self.peek()?;
            self.at = match (self.at, next) {
                (Start | Between | ArrayEnd, None) => return Ok(None),
                (_, None) => return self.fail("the file ends inside the array"),
                (Start, Some(b'[')) => ArrayStart,
                (ArrayAfter, Some(b',')) => ArrayNext,
                (ArrayStart | ArrayAfter, Some(b']')) => ArrayEnd,
                (Start | Between, Some(b'{')) => {
                    self.at = Between;
                    return self.document().map(Some);
                }
                (ArrayStart | ArrayNext, Some(b'{')) => {
                    self.at = ArrayAfter;
                    return self.document().map(Some);
                }
                (Start | Between | ArrayStart | ArrayNext, Some(other)) => {
                    return self.fail(format!("a document begins with {{, not with {:?}", other as char));
                }
                (ArrayAfter, Some(_)) => return self.fail("a comma or ] must follow the document"),
                (ArrayEnd, Some(_)) => return self.fail("something follows the array"),
            };
            self.input.consume(1);
        }
    }
}

/// Finds the bracket that closes the first one, over any number of pieces of the text.
#[derive(Default)]
struct EndFinder {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl EndFinder {
    /// The offset in `piece` just after the closing bracket, if it is there.
    fn advance(&mut self, piece: &[u8]) -> Option<usize> {
        for (i, byte) in piece.iter().enumerate() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(i + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

fn newlines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|b| **b == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::tests::listed;

    /// Hands out one byte at a time, so that every state has to survive the end of a piece.
    struct Drops<'a>(&'a [u8]);

    impl Read for Drops<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let (Some((first, rest)), Some(slot)) = (self.0.split_first(), buffer.first_mut()) else {
                return Ok(0);
            };
            *slot = *first;
            self.0 = rest;
            Ok(1)
        }
    }

    /// The places of the documents, and the fault.
    fn places(text: &str) -> Vec<String> {
        let whole = listed(Values::new(text.as_bytes()));
        assert_eq!(
            whole,
            listed(Values::new(Drops(text.as_bytes()))),
            "in pieces as at once"
        );
        let place = |line: &String| match line.strip_prefix("file: ") {
            Some(fault) => fault.to_owned(),
            None => line.split(": ").next().unwrap_or_default().to_owned(),
        };
        whole.iter().map(place).collect()
    }

    #[test]
    fn values_one_after_the_other() {
        assert_eq!(places(""), [""; 0]);
        assert_eq!(places(" \n "), [""; 0]);
        assert_eq!(
            places("{}{}\n{\"a\":\n[1]}\n\n{}"),
            ["line 1", "line 1", "line 2", "line 5"]
        );
        assert_eq!(
            places("{\"a\": \"}\\\"{\"}{}"),
            ["line 1", "line 1"],
            "brackets in strings"
        );
        assert_eq!(places("\u{feff}{}"), ["line 1"]);
    }

    #[test]
    fn an_array_of_documents() {
        assert_eq!(places("[]"), [""; 0]);
        assert_eq!(places("[{},\n{} , {}\n]\n"), ["line 1", "line 2", "line 2"]);
    }

    #[test]
    fn faults_have_lines() {
        for (text, line, word) in [
            ("{}\n5", 2, "begins with {"),
            ("[{}\n{}]", 2, "comma"),
            ("[{},\n]", 2, "begins with {"),
            ("[{},\n\n", 3, "inside the array"),
            ("[{}]\n{}", 2, "follows the array"),
            ("{}\n{\"a\":\n1", 3, "inside the document"),
            ("{}\n{\"a\":\n nope}", 3, ""),
        ] {
            let fault = places(text).pop().unwrap_or_default();
            assert!(
                fault.starts_with(&format!("line {line}: ")) && fault.contains(word),
                "{text:?}: {fault}"
            );
        }
    }

    #[test]
    fn lines_are_documents() {
        let found = listed(Lines::new("\u{feff}{\"a\": 1}\r\n\n  \n{\"a\": 2}".as_bytes()));
        assert_eq!(found.len(), 2);
        assert!(
            found[0].starts_with("line 1: ") && found[1].starts_with("line 4: "),
            "{found:?}"
        );
        let found = listed(Lines::new("{}\n{\"a\": 1,,}\n{}".as_bytes()));
        assert!(
            found.last().is_some_and(|l| l.starts_with("file: line 2: ")),
            "{found:?}"
        );
        let found = listed(Lines::new(&b"{}\n{\"\xff\":1}"[..]));
        assert_eq!(
            found.last().map(String::as_str),
            Some("file: line 2: the text is not UTF-8")
        );
    }

    #[test]
    fn extended_json_keeps_its_types() {
        let text = r#"{"n": {"$numberLong": "5"}, "when": {"$date": "1970-01-01T00:00:01Z"}}"#;
        let record = Lines::new(text.as_bytes()).next_record().unwrap().unwrap();
        let doc = nestor_model::RawDoc::validate(&record.bson).unwrap();
        assert!(matches!(doc.get("n"), Some(nestor_model::ValueRef::Int64(5))));
        assert!(matches!(doc.get("when"), Some(nestor_model::ValueRef::DateTime(1000))));
    }
}
