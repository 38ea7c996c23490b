//! What is searched for in texts: `tsquery`, lexemes with operators between them.
//!
//! ```text
//! 'fat' & ( 'cat':*A | !'rat' ) <2> 'dog'       of "cat" the beginning of lexemes is meant, where these have the weight A; "dog" stands two words behind
//! ```
//!
//! `!` binds most, then `<->`, `&`, `|`. Statements and documents hold this text. In binary format a query is the number of its lexemes and operators,
//! and these: operators before their right operand, which stands before the left one.
//!
//! Source: manual, chapters 8.11 and 12.

use super::tsvector::{self, LEXEME_BYTES_END, Mode, Reader, quote, take_text, take_u16, weight_of};
use crate::error::{error, fail};
use nestor_model::statement::{BYTES_PER_UNIT, charge, work};
use nestor_model::{Error, Result, Value};
use std::cmp::Ordering;
use std::fmt::Write as _;

/// How many operators may be within each other.
const DEPTH_MAX: usize = 500;
/// The lexemes and operators of a query are fewer, and so are the bytes of its lexemes.
const SIZE_END: usize = 1 << 20;
/// The greatest distance that an operator may say.
pub const DISTANCE_MAX: i32 = 16384;

/// A lexeme that is looked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Operand {
    /// The lexeme, or what it begins with.
    pub lexeme: String,
    /// Whether lexemes that begin so are meant.
    pub is_prefix: bool,
    /// The weights that are meant, a bit for each from `D` (1) to `A` (8); 0 for all.
    pub weights: u8,
}

/// A part of a query.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// A lexeme.
    Operand(Operand),
    /// A word that no lexeme stands for, which is taken out of queries before they are values.
    Nothing,
    /// What is not there.
    Not(Box<Node>),
    /// What is all there; two or more, none of this kind.
    And(Vec<Node>),
    /// Of which one is there; two or more, none of this kind.
    Or(Vec<Node>),
    /// What stands one behind the other, from the left: the first, which is not of this kind, and others with their distances from those before them.
    Phrase(Box<Node>, Vec<(i32, Node)>),
}

impl Node {
    /// Both of these.
    pub fn and(left: Self, right: Self) -> Self {
        let mut parts = match left {
            Self::And(parts) => parts,
            other => vec![other],
        };
        match right {
            Self::And(more) => parts.extend(more),
            other => parts.push(other),
        }
        Self::And(parts)
    }

    /// One of these.
    pub fn or(left: Self, right: Self) -> Self {
        let mut parts = match left {
            Self::Or(parts) => parts,
            other => vec![other],
        };
        match right {
            Self::Or(more) => parts.extend(more),
            other => parts.push(other),
        }
        Self::Or(parts)
    }

    /// One behind the other.
    pub fn phrase(left: Self, distance: i32, right: Self) -> Self {
        match left {
            Self::Phrase(first, mut more) => {
                more.push((distance, right));
                Self::Phrase(first, more)
            }
            first => Self::Phrase(Box::new(first), vec![(distance, right)]),
        }
    }

    /// The parts that it consists of.
    pub fn parts(&self) -> Vec<&Self> {
        match self {
            Self::Operand(_) | Self::Nothing => Vec::new(),
            Self::Not(part) => vec![part],
            Self::And(parts) | Self::Or(parts) => parts.iter().collect(),
            Self::Phrase(first, more) => {
                let more = more.iter().map(|(_, part)| part);
                std::iter::once(&**first).chain(more).collect()
            }
        }
    }

    /// Whether something must not be there.
    pub fn negates(&self) -> bool {
        matches!(self, Self::Not(_)) || self.parts().into_iter().any(Self::negates)
    }

    /// How many operators are within each other.
    fn depth(&self) -> usize {
        let of_parts = self.parts().into_iter().map(Self::depth).max();
        of_parts.map_or(0, |depth| depth + 1)
    }

    /// How many lexemes and operators it has, each operator with two operands but `!`.
    pub fn size(&self) -> usize {
        let parts = self.parts();
        let operators = match self {
            Self::Not(_) => 1,
            _ => parts.len().saturating_sub(1),
        };
        let of_parts: usize = parts.into_iter().map(Self::size).sum();
        match self {
            Self::Operand(_) | Self::Nothing => 1,
            _ => operators + of_parts,
        }
    }

    /// Calls `f` with each lexeme.
    pub fn for_each<'n>(&'n self, f: &mut dyn FnMut(&'n Operand)) {
        match self {
            Self::Operand(operand) => f(operand),
            _ => self.parts().into_iter().for_each(|part| part.for_each(f)),
        }
    }

    /// How much it binds what stands beside it.
    fn priority(&self) -> u8 {
        match self {
            Self::Or(_) => 1,
            Self::And(_) => 2,
            Self::Phrase(..) => 3,
            Self::Not(_) => 4,
            Self::Operand(_) | Self::Nothing => 5,
        }
    }

    fn format(&self, around: u8, is_right: bool, out: &mut String) {
        let within = self.priority() < around || is_right && self.priority() == 3 && around == 3;
        if within {
            out.push_str("( ");
        }
        match self {
            Self::Nothing => {}
            Self::Operand(operand) => {
                quote(&operand.lexeme, out);
                if operand.is_prefix || operand.weights > 0 {
                    out.push(':');
                }
                if operand.is_prefix {
                    out.push('*');
                }
                let letters = (0..4).filter(|at| operand.weights & (8 >> at) != 0);
                out.extend(letters.map(|at| char::from(b'A' + at)));
            }
            Self::Not(part) => {
                out.push('!');
                part.format(4, false, out);
            }
            Self::And(parts) | Self::Or(parts) => {
                let sign = if matches!(self, Self::And(_)) { " & " } else { " | " };
                for (at, part) in parts.iter().enumerate() {
                    if at > 0 {
                        out.push_str(sign);
                    }
                    part.format(self.priority(), false, out);
                }
            }
            Self::Phrase(first, more) => {
                first.format(3, false, out);
                for (distance, part) in more {
                    match distance {
                        1 => out.push_str(" <-> "),
                        distance => {
                            let _ = write!(out, " <{distance}> ");
                        }
                    }
                    part.format(3, true, out);
                }
            }
        }
        if within {
            out.push_str(" )");
        }
    }

    fn to_binary(&self, out: &mut Vec<u8>) {
        match self {
            Self::Nothing => {}
            Self::Operand(operand) => {
                out.extend([1, operand.weights, u8::from(operand.is_prefix)]);
                out.extend_from_slice(operand.lexeme.as_bytes());
                out.push(0);
            }
            Self::Not(part) => {
                out.extend([2, 1]);
                part.to_binary(out);
            }
            Self::And(parts) | Self::Or(parts) => {
                let sign = if matches!(self, Self::And(_)) { 2 } else { 3 };
                for part in parts.iter().skip(1).rev() {
                    out.extend([2, sign]);
                    part.to_binary(out);
                }
                parts.iter().take(1).for_each(|part| part.to_binary(out));
            }
            Self::Phrase(first, more) => {
                for (distance, part) in more.iter().rev() {
                    out.extend([2, 4]);
                    out.extend_from_slice(&(*distance as i16).to_be_bytes());
                    part.to_binary(out);
                }
                first.to_binary(out);
            }
        }
    }

    /// The order of parts: lexemes after operators, these by kind, number and parts, from the last one.
    pub fn compare(&self, other: &Self) -> Ordering {
        let kind = |node: &Self| match node {
            Self::Operand(_) | Self::Nothing => 0,
            Self::Not(_) => 1,
            Self::And(_) => 2,
            Self::Or(_) => 3,
            Self::Phrase(..) => 4,
        };
        if let (Self::Operand(a), Self::Operand(b)) = (self, other) {
            let sums = checksum(b.lexeme.as_bytes()).cmp(&checksum(a.lexeme.as_bytes()));
            return sums.then_with(|| a.lexeme.cmp(&b.lexeme));
        }
        if let (Self::Phrase(a, more_a), Self::Phrase(b, more_b)) = (self, other) {
            return compare_phrases((a, more_a), (b, more_b));
        }
        let (ours, theirs) = (self.parts(), other.parts());
        let order = kind(other).cmp(&kind(self)).then(theirs.len().cmp(&ours.len()));
        let parts = ours.into_iter().rev().zip(theirs.into_iter().rev());
        order.then_with(|| parts.fold(Ordering::Equal, |so_far, (a, b)| so_far.then_with(|| a.compare(b))))
    }
}

/// The order of phrases: by their parts from the last one, a phrase with fewer first, then by distances from the left.
fn compare_phrases(
    (first, more): (&Node, &[(i32, Node)]),
    (other_first, other_more): (&Node, &[(i32, Node)]),
) -> Ordering {
    let parts = more.iter().rev().zip(other_more.iter().rev());
    let order = parts.fold(Ordering::Equal, |so_far, ((_, a), (_, b))| {
        so_far.then_with(|| a.compare(b))
    });
    let distances = more.iter().zip(other_more).map(|((a, _), (b, _))| b.cmp(a));
    order
        .then(other_more.len().cmp(&more.len()))
        .then_with(|| first.compare(other_first))
        .then_with(|| distances.fold(Ordering::Equal, Ordering::then))
}

/// The checksum of a lexeme that queries are in order of.
fn checksum(bytes: &[u8]) -> i32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        let mut row = (sum >> 24) ^ u32::from(*byte);
        for _ in 0..8 {
            row = if row & 1 == 1 {
                (row >> 1) ^ 0xEDB8_8320
            } else {
                row >> 1
            };
        }
        sum = row ^ (sum << 8);
    }
    !sum as i32
}

/// A query; one without lexemes finds nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TsQuery {
    /// What is looked for.
    pub root: Option<Node>,
}

impl TsQuery {
    /// A query.
    ///
    /// Errors: 54000 for too many lexemes, 54001 for too many operators within each other.
    pub fn new(root: Option<Node>) -> Result<Self> {
        let Some(root) = root else { return Ok(Self::default()) };
        check(&root)?;
        Ok(Self { root: Some(root) })
    }

    /// What a text says.
    ///
    /// Errors: 42601, 22023 for distances, 54000, 54001.
    pub fn parse(text: &str) -> Result<Self> {
        let found = parse(text, &mut |operand| Ok(Node::Operand(operand)))?;
        if found.is_none() {
            crate::notices::notice(&format!("text-search query doesn't contain lexemes: \"{text}\""));
        }
        Self::new(found)
    }

    /// The query that a value is.
    ///
    /// Errors: those of limits.
    pub fn of(value: &Value) -> Result<Self> {
        match value.as_str() {
            None | Some("") => Ok(Self::default()),
            Some(text) => Self::parse(text),
        }
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
        if let Some(root) = &self.root {
            root.format(0, false, &mut out);
        }
        out
    }

    /// How many lexemes and operators it has.
    pub fn size(&self) -> usize {
        self.root.as_ref().map_or(0, Node::size)
    }

    /// Its lexemes, from the left.
    pub fn operands(&self) -> Vec<&Operand> {
        let mut out = Vec::new();
        if let Some(root) = &self.root {
            root.for_each(&mut |operand| out.push(operand));
        }
        out
    }

    /// In binary format.
    pub fn to_binary(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.size() as u32).to_be_bytes());
        if let Some(root) = &self.root {
            root.to_binary(out);
        }
    }

    /// From binary format; `None` for bytes that are no query.
    pub fn of_binary(mut bytes: &[u8]) -> Option<Result<Self>> {
        let count = u32::from_be_bytes(super::input::take(&mut bytes)?);
        if count == 0 {
            return bytes.is_empty().then(|| Ok(Self::default()));
        }
        let mut left = count;
        let root = match of_binary(&mut bytes, &mut left, 0)? {
            Ok(root) => root,
            Err(error) => return Some(Err(error)),
        };
        (left == 0 && bytes.is_empty()).then(|| Self::new(Some(root)))
    }

    /// The order of queries: by size and the bytes of lexemes, then part by part.
    pub fn compare(&self, other: &Self) -> Ordering {
        let bytes = |own: &Self| own.operands().iter().map(|own| own.lexeme.len() + 1).sum::<usize>();
        let order = self
            .size()
            .cmp(&other.size())
            .then_with(|| bytes(self).cmp(&bytes(other)));
        match (&self.root, &other.root) {
            (Some(a), Some(b)) => order.then_with(|| a.compare(b)),
            _ => order,
        }
    }
}

/// A part in binary format, of which at most `left` may come; `None` for bytes that are no query.
fn of_binary(bytes: &mut &[u8], left: &mut u32, depth: usize) -> Option<Result<Node>> {
    // Operators of one kind are within each other there.
    if depth > 8 * DEPTH_MAX {
        return Some(Err(too_deep()));
    }
    *left = left.checked_sub(1)?;
    let [kind, which] = super::input::take(bytes)?;
    if kind == 1 {
        let [is_prefix] = super::input::take(bytes)?;
        let lexeme = take_text(bytes)?;
        if lexeme.len() >= LEXEME_BYTES_END {
            return Some(Err(tsvector::too_long(lexeme.len())));
        }
        let valid = which < 16 && is_prefix < 2;
        return valid.then(|| {
            charge(lexeme.len() + std::mem::size_of::<Node>())?;
            Ok(Node::Operand(Operand {
                lexeme: lexeme.to_owned(),
                is_prefix: is_prefix == 1,
                weights: which,
            }))
        });
    }
    let distance = match (kind, which) {
        (2, 4) => take_u16(bytes)? as i16,
        (2, 1..=3) => 0,
        _ => return None,
    };
    let right = match of_binary(bytes, left, depth + 1)? {
        Ok(right) => right,
        error => return Some(error),
    };
    if which == 1 {
        return Some(Ok(Node::Not(Box::new(right))));
    }
    let first = match of_binary(bytes, left, depth + 1)? {
        Ok(first) => first,
        error => return Some(error),
    };
    Some(Ok(match which {
        2 => Node::and(first, right),
        3 => Node::or(first, right),
        _ => Node::phrase(first, i32::from(distance), right),
    }))
}

/// Refuses what no query can be.
///
/// Errors: 54000 for too many lexemes, 54001 for too many operators within each other.
pub fn check(root: &Node) -> Result<()> {
    if root.depth() > DEPTH_MAX {
        return Err(too_deep());
    }
    let size = root.size();
    work(size)?;
    let mut bytes = 0;
    root.for_each(&mut |operand| bytes += operand.lexeme.len() + 1);
    match size >= SIZE_END || bytes >= SIZE_END {
        true => fail("54000", "tsquery is too large"),
        false => Ok(()),
    }
}

fn too_deep() -> Error {
    error("54001", "stack depth limit exceeded")
}

/// Reads a query, of whose words `of_word` says what they become; `None` where there is nothing in it.
///
/// Errors: those of [`TsQuery::parse`], and those of `of_word`.
pub fn parse(text: &str, of_word: &mut dyn FnMut(Operand) -> Result<Node>) -> Result<Option<Node>> {
    work(text.len() / BYTES_PER_UNIT)?;
    let mut reader = Reader::new(text, Mode::Query);
    reader.skip_space();
    if reader.peek().is_none() {
        return Ok(None);
    }
    let mut built = Built::default();
    loop {
        operand(&mut reader, &mut built, of_word)?;
        loop {
            reader.skip_space();
            match reader.next() {
                None if built.is_open() => return Err(reader.wrong()),
                None => return Ok(built.finish()),
                Some(')') if built.close() => {}
                Some('&') => break built.operator(Operator::And)?,
                Some('|') => break built.operator(Operator::Or)?,
                Some('<') => {
                    let distance = distance(&mut reader)?;
                    break built.operator(Operator::Phrase(distance))?;
                }
                _ => return Err(reader.wrong()),
            }
        }
    }
}

/// Reads what stands before an operator.
fn operand(reader: &mut Reader<'_>, built: &mut Built, of_word: &mut dyn FnMut(Operand) -> Result<Node>) -> Result<()> {
    loop {
        reader.skip_space();
        match reader.peek() {
            Some('!') => built.operator(Operator::Not)?,
            Some('(') => built.operator(Operator::Open)?,
            Some(':') => return Err(reader.wrong()),
            _ => break,
        }
        reader.next();
    }
    let Some(lexeme) = reader.word()? else {
        let message = format!("no operand in tsquery: \"{}\"", reader.text);
        return fail("42601", message);
    };
    let (mut is_prefix, mut weights) = (false, 0);
    if reader.takes(':') {
        while let Some(c) = reader.peek() {
            match (c, weight_of(c)) {
                ('*', _) => is_prefix = true,
                (_, Some(weight)) => weights |= 1 << weight,
                _ => break,
            }
            reader.next();
        }
    }
    if lexeme.len() >= LEXEME_BYTES_END {
        return fail("54000", format!("word is too long in tsquery: \"{}\"", reader.text));
    }
    charge(lexeme.len() + std::mem::size_of::<Node>())?;
    built.push(of_word(Operand {
        lexeme,
        is_prefix,
        weights,
    })?);
    Ok(())
}

/// The distance that an operator says, behind its first sign.
fn distance(reader: &mut Reader<'_>) -> Result<i32> {
    if reader.takes('-') {
        return match reader.takes('>') {
            true => Ok(1),
            false => Err(reader.wrong()),
        };
    }
    let mut digits = 0;
    let mut distance: i32 = 0;
    while let Some(digit) = reader.peek().and_then(|c| c.to_digit(10)) {
        distance = distance.saturating_mul(10).saturating_add(digit as i32);
        digits += 1;
        reader.next();
    }
    match digits > 0 && reader.takes('>') {
        true => checked_distance(distance),
        false => Err(reader.wrong()),
    }
}

/// A distance between lexemes.
///
/// Errors: 22023.
pub fn checked_distance(distance: i32) -> Result<i32> {
    match (0..=DISTANCE_MAX).contains(&distance) {
        true => Ok(distance),
        false => fail(
            "22023",
            format!("distance in phrase operator must be an integer value between zero and {DISTANCE_MAX} inclusive"),
        ),
    }
}

/// A sign of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// A parenthesis that has not been closed.
    Open,
    /// `|`
    Or,
    /// `&`
    And,
    /// `<->`, with its distance.
    Phrase(i32),
    /// `!`
    Not,
}

impl Operator {
    fn priority(self) -> u8 {
        match self {
            Self::Open => 0,
            Self::Or => 1,
            Self::And => 2,
            Self::Phrase(_) => 3,
            Self::Not => 4,
        }
    }
}

/// A query of operands and operators as they come.
#[derive(Debug, Default)]
pub struct Built {
    operands: Vec<Node>,
    operators: Vec<Operator>,
    /// Parentheses and negations that operands stand behind.
    depth: usize,
}

impl Built {
    /// An operand comes.
    pub fn push(&mut self, node: Node) {
        self.operands.push(node);
    }

    /// An operator comes.
    ///
    /// Errors: 54001.
    pub fn operator(&mut self, operator: Operator) -> Result<()> {
        match operator {
            Operator::Open | Operator::Not => {
                self.depth += 1;
                if self.depth > DEPTH_MAX {
                    return Err(too_deep());
                }
            }
            _ => self.apply(operator.priority()),
        }
        self.operators.push(operator);
        Ok(())
    }

    /// A parenthesis is closed; false if there is none.
    pub fn close(&mut self) -> bool {
        self.apply(1);
        match self.operators.last() {
            Some(Operator::Open) => {
                self.operators.pop();
                self.depth -= 1;
                true
            }
            _ => false,
        }
    }

    fn is_open(&self) -> bool {
        self.operators.contains(&Operator::Open)
    }

    /// The query.
    pub fn finish(mut self) -> Option<Node> {
        self.apply(1);
        self.operands.pop()
    }

    /// Applies operators that bind at least so much to their operands.
    fn apply(&mut self, least: u8) {
        while let Some(operator) = self.operators.pop_if(|operator| operator.priority() >= least) {
            let Some(right) = self.operands.pop() else { return };
            if operator == Operator::Not {
                self.depth -= 1;
                self.operands.push(Node::Not(Box::new(right)));
                continue;
            }
            let Some(left) = self.operands.pop() else {
                self.operands.push(right);
                continue;
            };
            self.operands.push(match operator {
                Operator::And => Node::and(left, right),
                Operator::Or => Node::or(left, right),
                Operator::Phrase(distance) => Node::phrase(left, distance, right),
                Operator::Open | Operator::Not => right,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_format_is_that_of_postgresql() {
        // By PostgreSQL 15: SELECT tsquerysend('a & b | !c <2> d:*AB')
        let bytes = b"\0\0\0\x08\x02\x03\x02\x04\0\x02\x01\x0C\x01d\0\x02\x01\x01\0\0c\0\x02\x02\x01\0\0b\0\x01\0\0a\0";
        let own = TsQuery::parse("a & b | !c <2> d:*AB").unwrap();
        let mut sent = Vec::new();
        own.to_binary(&mut sent);
        assert_eq!(sent, bytes);
        assert_eq!(TsQuery::of_binary(bytes).unwrap().unwrap(), own);
        for end in 0..bytes.len() {
            assert!(TsQuery::of_binary(&bytes[..end]).is_none(), "{end}");
        }
    }

    #[test]
    fn queries_are_in_order() {
        // By PostgreSQL 15: SELECT q::text AS shown FROM (VALUES …) v (q) ORDER BY q
        let ordered = ["'a'", "'b'", "'ab'", "!'a'", "'a' <-> 'b'", "'b' | 'a'", "'a' & 'b'"];
        let queries: Vec<TsQuery> = ordered.iter().map(|text| TsQuery::parse(text).unwrap()).collect();
        for pair in queries.windows(2) {
            assert_eq!(pair[0].compare(&pair[1]), Ordering::Less, "{pair:?}");
        }
    }
}
