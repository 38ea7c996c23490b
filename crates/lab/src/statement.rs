//! Statements of a workload, in the words of every protocol. They are prepared once per connection; a call only puts
//! its parameters into bytes that stand ready.

use nestor_model::{Document, Value, doc};

/// What a parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number; `integer` in SQL, a 64-bit integer in BSON.
    Int,
    /// A whole number of 64 bits everywhere.
    Long,
    /// A text of so many bytes of ASCII.
    Text(usize),
}

/// What a statement does, which decides how its answer is read and what it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Returns rows.
    Reads,
    /// Changes rows and tells how many.
    Writes,
}

/// A statement. Its parameters stand in SQL in the order `$1`, `$2` …, each once.
#[derive(Clone, Debug)]
pub struct Statement {
    /// For messages.
    pub name: &'static str,
    /// Whether it reads or writes.
    pub role: Role,
    /// MongoDB's command, with [`mark`] and [`text_mark`] where parameters go.
    pub mongo: Document,
    /// PostgreSQL's text.
    pub sql: String,
    /// MySQL's, where it is not the same; with `$n` all the same.
    pub mysql: Option<String>,
    /// The parameters' kinds.
    pub parameters: Vec<Kind>,
}

impl Statement {
    /// A statement whose SQL is the same for all servers.
    pub fn new(name: &'static str, role: Role, parameters: Vec<Kind>, mongo: Document, sql: String) -> Self {
        Self {
            name,
            role,
            mongo,
            sql,
            mysql: None,
            parameters,
        }
    }

    /// With a text of its own for MySQL.
    pub fn mysql(mut self, text: String) -> Self {
        self.mysql = Some(text);
        self
    }
}

const MARK: i64 = 0x7A5A_3C1E_0F80_0000;
/// Begins the text that stands for a text; too unlikely elsewhere to be met.
const TEXT_MARK: &str = "\u{1}~";
/// Bytes of the shortest text that can be a parameter: the mark and a number of 4 digits.
const TEXT_MARK_BYTES: usize = TEXT_MARK.len() + 4;
const PARAMETERS_MAX: i64 = 1 << 20;

/// Stands in a command for parameter `number` (from 0), a whole number.
pub fn mark(number: usize) -> Value {
    Value::from(MARK + number as i64)
}

/// Stands in a command for parameter `number` (from 0), a text of `bytes` bytes, at least 6; `number` is below 10,000.
pub fn text_mark(number: usize, bytes: usize) -> Value {
    debug_assert!(bytes >= TEXT_MARK_BYTES, "a mark has its number in it");
    let mut text = format!("{TEXT_MARK}{number:04}");
    text.extend(std::iter::repeat_n('.', bytes.saturating_sub(text.len())));
    Value::from(text.as_str())
}

/// `$first, $first+1 …`, of `count` parameters from number `first` (from 0).
pub fn placeholders(first: usize, count: usize) -> String {
    let list: Vec<String> = (first..first + count)
        .map(|number| format!("${}", number + 1))
        .collect();
    list.join(", ")
}

/// Marks of `count` parameters from number `first` (from 0), for `$in`.
pub fn marks(first: usize, count: usize) -> Value {
    Value::from((first..first + count).map(mark).collect::<Vec<_>>())
}

/// A find of MongoDB's whose answer comes at once, however many documents it has.
pub fn find(collection: &str, filter: Document, projection: Document) -> Document {
    doc! { "find": collection, "filter": filter, "projection": projection, "batchSize": 1_000_000 }
}

/// An aggregation whose answer comes at once.
pub fn aggregate(collection: &str, stages: Vec<Document>) -> Document {
    let stages: Vec<Value> = stages.into_iter().map(Value::from).collect();
    doc! { "aggregate": collection, "pipeline": stages, "cursor": doc! { "batchSize": 1_000_000 } }
}

/// The places of parameters in the bytes of a command: where, and which.
pub(crate) fn places(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at + 8 <= bytes.len() {
        let number = i64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|i| bytes[at + i])).wrapping_sub(MARK);
        if (0..PARAMETERS_MAX).contains(&number) {
            found.push((at, number as usize));
            at += 8;
            continue;
        }
        if bytes[at..].starts_with(TEXT_MARK.as_bytes()) {
            let digits = bytes.get(at + TEXT_MARK.len()..at + TEXT_MARK_BYTES);
            let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
            if let Some(number) = digits.and_then(|digits| digits.parse().ok()) {
                found.push((at, number));
                at += TEXT_MARK_BYTES;
                continue;
            }
        }
        at += 1;
    }
    found
}

/// PostgreSQL's `$1` as MySQL's `?`. Texts within quotes have no `$`.
pub(crate) fn question_marks(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len());
    let mut rest = sql.chars().peekable();
    while let Some(letter) = rest.next() {
        if letter == '$' && rest.peek().is_some_and(char::is_ascii_digit) {
            while rest.next_if(char::is_ascii_digit).is_some() {}
            out.push('?');
        } else {
            out.push(letter);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found() {
        let command = doc! { "a": mark(1), "b": text_mark(0, 30), "c": marks(2, 2), "d": 7 };
        let found: Vec<usize> = places(command.to_raw().as_bytes())
            .into_iter()
            .map(|(_, number)| number)
            .collect();
        assert_eq!(found, [1, 0, 2, 3]);
    }

    #[test]
    fn parameters_of_mysql() {
        assert_eq!(
            question_marks("a = $1 and b in ($2, $13) and c = '$'"),
            "a = ? and b in (?, ?) and c = '$'"
        );
    }
}
