//! Vectors and queries of texts.

use super::tokens::Tokens;
use crate::error::{Field, error, fail, with};
use crate::notices;
use crate::types::regconfig::Config;
use crate::types::tsquery::{Built, Node, Operand, Operator, TsQuery, check, parse};
use crate::types::tsvector::{Entry, LEXEME_BYTES_END, Mode, Place, Reader, TsVector, is_operator};
use nestor_model::statement::charge;
use nestor_model::{Result, Value, ValueRef};

/// Tells of a word that is too long to be found.
fn pass_over_word() {
    let message = "word is too long to be indexed";
    let detail = format!("Words longer than {LEXEME_BYTES_END} characters are ignored.");
    notices::tell_of(with(error("54000", message), &[(Field::Detail, &detail)]));
}

/// Whether a part of a text is too long to be found, which is told of then.
pub(super) fn is_too_long(text: &str) -> bool {
    let is_it = text.len() >= LEXEME_BYTES_END;
    if is_it {
        pass_over_word();
    }
    is_it
}

/// The lexemes of texts one behind the other, with their places.
#[derive(Default)]
pub struct Words {
    lexemes: Vec<(String, usize)>,
    /// The last place, of a stop word too.
    last: usize,
}

impl Words {
    /// Reads a text.
    ///
    /// Errors: those of the statement's limits.
    pub fn read(&mut self, config: Config, text: &str) -> Result<()> {
        let mut tokens = Tokens::new(text);
        while let Some(token) = tokens.next()? {
            let Some(dictionary) = config.dictionary(token.kind) else {
                continue;
            };
            if is_too_long(token.text) {
                continue;
            }
            self.last += 1;
            if let Some(lexeme) = dictionary.lexeme(token.text)? {
                charge(lexeme.len() + std::mem::size_of::<(String, usize)>())?;
                self.lexemes.push((lexeme, self.last));
            }
        }
        Ok(())
    }

    /// As a vector.
    ///
    /// Errors: 54000.
    pub fn into_vector(self) -> Result<TsVector> {
        let entries = self.lexemes.into_iter().map(|(lexeme, at)| Entry {
            lexeme,
            places: vec![Place::new(at, 0)],
        });
        TsVector::new(entries.collect())
    }

    /// As a query of all of them, joined by an operator that says their distances, or not.
    fn into_query(self, is_phrase: bool, (is_prefix, weights): (bool, u8)) -> Node {
        let mut out: Option<Node> = None;
        let mut before = 0;
        let mut add = |node: Node| {
            out = Some(match out.take() {
                None => node,
                Some(so_far) if is_phrase => Node::phrase(so_far, 1, node),
                Some(so_far) => Node::and(so_far, node),
            });
        };
        for (lexeme, at) in self.lexemes {
            // Stop words before the first lexeme do not count.
            while before > 0 && before + 1 < at {
                add(Node::Nothing);
                before += 1;
            }
            before = at;
            add(Node::Operand(Operand {
                lexeme,
                is_prefix,
                weights,
            }));
        }
        out.unwrap_or(Node::Nothing)
    }
}

/// The vector of a text.
///
/// Errors: 54000, and those of the statement's limits.
pub fn vector_of(config: Config, text: &str) -> Result<TsVector> {
    let mut words = Words::default();
    words.read(config, text)?;
    words.into_vector()
}

/// Which values of JSON are texts to be searched.
#[derive(Clone, Copy, Default)]
pub struct Filter {
    strings: bool,
    numbers: bool,
    booleans: bool,
    keys: bool,
}

impl Filter {
    /// Strings alone.
    pub const STRINGS: Self = Self {
        strings: true,
        numbers: false,
        booleans: false,
        keys: false,
    };

    /// What a value of JSON says: one or several of `string`, `numeric`, `boolean`, `key` and `all`.
    ///
    /// Errors: 22023.
    pub fn of(value: &Value) -> Result<Self> {
        let mut out = Self::default();
        let hint = |message: String| {
            let hint = "Possible values are: \"string\", \"numeric\", \"boolean\", \"key\", and \"all\".";
            Err(with(error("22023", message), &[(Field::Hint, hint)]))
        };
        let mut add = |item: ValueRef<'_>| {
            let ValueRef::String(name) = item else {
                return hint("flag array element is not a string".to_owned());
            };
            let name = name.to_ascii_lowercase();
            let all = name == "all";
            if !all && !matches!(name.as_str(), "string" | "numeric" | "boolean" | "key") {
                return hint(format!("wrong flag in flag array: \"{name}\""));
            }
            out.strings |= all || name == "string";
            out.numbers |= all || name == "numeric";
            out.booleans |= all || name == "boolean";
            out.keys |= all || name == "key";
            Ok(())
        };
        match value {
            Value::Array(items) => items.iter().try_for_each(add)?,
            Value::Document(_) => {
                return fail("22023", "wrong flag type, only arrays and scalars are allowed");
            }
            other => add(other.as_ref())?,
        }
        Ok(out)
    }
}

/// Calls `f` with each text of JSON.
///
/// Errors: those of `f`.
pub fn for_each_text(value: ValueRef<'_>, filter: Filter, f: &mut dyn FnMut(&str) -> Result<()>) -> Result<()> {
    match value {
        ValueRef::Document(doc) => {
            for (key, value) in doc.iter() {
                if filter.keys {
                    f(key)?;
                }
                for_each_text(value, filter, f)?;
            }
            Ok(())
        }
        ValueRef::Array(items) => items.iter().try_for_each(|item| for_each_text(item, filter, f)),
        ValueRef::String(text) if filter.strings => f(text),
        ValueRef::Bool(b) if filter.booleans => f(if b { "true" } else { "false" }),
        ValueRef::Int32(_) | ValueRef::Int64(_) | ValueRef::Double(_) | ValueRef::Decimal128(_) if filter.numbers => {
            f(&crate::types::json::text(value))
        }
        _ => Ok(()),
    }
}

/// The vector of the texts of JSON, between which a place is left.
///
/// Errors: 54000, and those of the statement's limits.
pub fn vector_of_json(config: Config, value: &Value, filter: Filter) -> Result<TsVector> {
    let mut words = Words::default();
    for_each_text(value.as_ref(), filter, &mut |text| {
        let before = words.lexemes.len();
        words.read(config, text)?;
        words.last += usize::from(words.lexemes.len() > before);
        Ok(())
    })?;
    words.into_vector()
}

/// A query without words that no lexeme stands for.
///
/// Errors: 54000, 54001.
fn finished(found: Option<Node>, text: &str) -> Result<TsQuery> {
    let Some(root) = found else {
        notices::notice(&format!("text-search query doesn't contain lexemes: \"{text}\""));
        return Ok(TsQuery::default());
    };
    check(&root)?;
    let cleaned = cleaned(root).0;
    if cleaned.is_none() {
        notices::notice("text-search query contains only stop words or doesn't contain lexemes, ignored");
    }
    TsQuery::new(cleaned)
}

/// A part without words that are nothing, and how much of a distance is lost at its beginning and at its end with them.
fn cleaned(node: Node) -> (Option<Node>, i32, i32) {
    match node {
        Node::Operand(_) => (Some(node), 0, 0),
        Node::Nothing => (None, 0, 0),
        Node::Not(part) => {
            let (part, left, right) = cleaned(*part);
            (part.map(|part| Node::Not(Box::new(part))), left, right)
        }
        Node::And(parts) => cleaned_all(parts, Node::and),
        Node::Or(parts) => cleaned_all(parts, Node::or),
        Node::Phrase(first, more) => more.into_iter().fold(cleaned(*first), |so_far, (distance, part)| {
            let (left, left_begin, left_end) = so_far;
            let (right, right_begin, right_end) = cleaned(part);
            match (left, right) {
                (None, None) => {
                    let lost = left_begin + distance + right_begin;
                    (None, lost, lost)
                }
                (None, right) => (right, left_begin + distance + right_begin, right_end),
                (left, None) => (left, left_begin, left_end + distance + right_end),
                (Some(left), Some(right)) => {
                    let distance = distance.saturating_add(left_end + right_begin);
                    (Some(Node::phrase(left, distance, right)), left_begin, right_end)
                }
            }
        }),
    }
}

fn cleaned_all(parts: Vec<Node>, join: fn(Node, Node) -> Node) -> (Option<Node>, i32, i32) {
    let mut so_far: Option<(Option<Node>, i32, i32)> = None;
    for part in parts {
        let next = cleaned(part);
        so_far = Some(match (so_far, next) {
            (None, next) => next,
            (Some((None, left, _)), (None, right, _)) => (None, left.max(right), left.max(right)),
            (Some((None, ..)), next) => next,
            (Some(so_far), (None, ..)) => so_far,
            (Some((Some(left), ..)), (Some(right), ..)) => (Some(join(left, right)), 0, 0),
        });
    }
    so_far.unwrap_or((None, 0, 0))
}

fn query_of_words(config: Config, text: &str, is_phrase: bool, of: (bool, u8)) -> Result<Node> {
    let mut words = Words::default();
    words.read(config, text)?;
    Ok(words.into_query(is_phrase, of))
}

/// `to_tsquery`: a query in the form of the type, whose words become lexemes.
///
/// Errors: those of reading queries.
pub fn query_of(config: Config, text: &str) -> Result<TsQuery> {
    let found = parse(text, &mut |operand| {
        query_of_words(config, &operand.lexeme, true, (operand.is_prefix, operand.weights))
    })?;
    finished(found, text)
}

/// `plainto_tsquery` and `phraseto_tsquery`: all words of a text, one behind the other or not.
///
/// Errors: those of limits.
pub fn query_of_text(config: Config, text: &str, is_phrase: bool) -> Result<TsQuery> {
    let found = match text.is_empty() {
        true => None,
        false => Some(query_of_words(config, text, is_phrase, (false, 0))?),
    };
    finished(found, text)
}

/// `websearch_to_tsquery`: a query as search engines take them. What is wrong with it is passed over.
///
/// Errors: those of limits.
pub fn query_of_web(config: Config, text: &str) -> Result<TsQuery> {
    let mut reader = Reader::new(text, Mode::Web);
    let mut built = Built::default();
    let mut is_first = true;
    let word = |text: &str| query_of_words(config, text, true, (false, 0));
    loop {
        // What an operator stands before.
        loop {
            reader.skip_space();
            let c = reader.peek();
            match c {
                None if is_first => return finished(None, text),
                None => {
                    built.push(Node::Nothing);
                    return finished(built.finish(), text);
                }
                Some('-') => {
                    reader.next();
                    built.operator(Operator::Not)?;
                    is_first = false;
                }
                Some('"') => {
                    reader.next();
                    let rest = reader.rest();
                    let end = rest.find('"');
                    let quoted = &rest[..end.unwrap_or(rest.len())];
                    reader.skip(quoted.len() + usize::from(end.is_some()));
                    built.push(word(quoted)?);
                    break;
                }
                Some(c) if is_operator(c) => {
                    reader.next();
                    is_first = false;
                }
                Some(_) => {
                    let Some(own) = reader.word()? else { continue };
                    built.push(word(&own)?);
                    break;
                }
            }
        }
        is_first = false;
        reader.skip_space();
        while reader.peek().is_some_and(is_operator) {
            reader.next();
            reader.skip_space();
        }
        match reader.peek() {
            None => return finished(built.finish(), text),
            Some(_) if is_or(reader.rest()) => {
                reader.skip(2);
                built.operator(Operator::Or)?;
            }
            Some(_) => built.operator(Operator::And)?,
        }
    }
}

/// Whether a text begins with the word `or`, behind which something stands.
fn is_or(text: &str) -> bool {
    let begins = text.get(..2).is_some_and(|word| word.eq_ignore_ascii_case("or"));
    let mut rest = text.get(2..).unwrap_or_default().chars();
    let ends = rest
        .next()
        .is_some_and(|c| !matches!(c, '-' | '_') && !c.is_alphanumeric());
    begins && ends && rest.any(|c| !crate::types::tsvector::is_space(c))
}
