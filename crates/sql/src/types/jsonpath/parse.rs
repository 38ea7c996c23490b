//! The grammar of paths.

use super::{Arithmetic, Comparison, Expr, Method, Path, Step, number, pattern};
use crate::error::fail;
use crate::types::numeric;
use nestor_model::{Result, Value};

/// Levels that expressions may nest.
const DEPTH_MAX: usize = 100;

/// `None` for text that is no path; an error within for what is one and is not supported.
type Read<T> = Option<Result<T>>;

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Sign(&'static str),
    /// A name or keyword.
    Word(String),
    Text(String),
    Variable(String),
    Number(String),
}

const SIGNS: &[&str] = &[
    "**", "==", "!=", "<>", "<=", ">=", "&&", "||", "(", ")", "[", "]", "{", "}", ".", ",", "?", "@", "$", "*", "/",
    "%", "+", "-", "<", ">", "!", "=",
];

fn is_name(c: char) -> bool {
    !c.is_whitespace() && !r#"?%$.[]{}()|&!=<>@#,*:-+/\""#.contains(c)
}

/// A string or name with its escapes resolved, up to where `ends` holds; how many bytes it has.
fn unescaped(text: &str, ends: impl Fn(char) -> bool) -> Option<(String, usize)> {
    let mut out = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        if ends(c) {
            return Some((out, at));
        }
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next()?.1 {
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'v' => out.push('\u{b}'),
            escape @ ('x' | 'u') => {
                let digits = if escape == 'x' { 2 } else { 4 };
                let hex: String = chars.by_ref().take(digits).map(|(_, c)| c).collect();
                let code = u32::from_str_radix(&hex, 16).ok().filter(|code| *code != 0)?;
                out.push(char::from_u32(code)?);
            }
            other => out.push(other),
        }
    }
    Some((out, text.len()))
}

fn tokens(text: &str) -> Option<Vec<Token>> {
    let (mut out, mut rest) = (Vec::new(), text);
    while let Some(c) = rest.chars().next() {
        if c.is_whitespace() {
            rest = rest.trim_start();
            continue;
        }
        if let Some(after) = rest.strip_prefix("/*") {
            rest = after.split_once("*/")?.1;
            continue;
        }
        if let Some(body) = rest.strip_prefix('"') {
            let (string, length) = unescaped(body, |c| c == '"')?;
            rest = body.get(length..)?.strip_prefix('"')?;
            out.push(Token::Text(string));
            continue;
        }
        if let Some(body) = rest.strip_prefix('$') {
            if let Some(body) = body.strip_prefix('"') {
                let (name, length) = unescaped(body, |c| c == '"')?;
                rest = body.get(length..)?.strip_prefix('"')?;
                out.push(Token::Variable(name));
                continue;
            }
            if body.starts_with(is_name) {
                let length = body.find(|c| !is_name(c)).unwrap_or(body.len());
                out.push(Token::Variable(body[..length].to_owned()));
                rest = &body[length..];
                continue;
            }
        }
        let starts_number = c.is_ascii_digit() || (c == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit()));
        // The point behind a value begins a step, and no step begins with a digit.
        if starts_number {
            let length = number_length(rest);
            if rest[length..].starts_with(is_name) {
                return None;
            }
            out.push(Token::Number(rest[..length].to_owned()));
            rest = &rest[length..];
            continue;
        }
        if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            out.push(Token::Sign(sign));
            rest = &rest[sign.len()..];
            continue;
        }
        if !is_name(c) && c != '\\' {
            return None;
        }
        let (word, length) = unescaped(rest, |c| !is_name(c) && c != '\\')?;
        out.push(Token::Word(word));
        rest = &rest[length..];
    }
    Some(out)
}

/// Bytes of the number that a text begins with.
fn number_length(text: &str) -> usize {
    let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let mut at = digits(0);
    if text[at..].starts_with('.') {
        at += 1 + digits(at + 1);
    }
    if let Some(after) = text[at..].strip_prefix(['e', 'E']) {
        let sign = usize::from(after.starts_with(['+', '-']));
        let count = digits(at + 1 + sign);
        at += if count > 0 { 1 + sign + count } else { 0 };
    }
    at
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    /// Filters and subscripts around this place.
    filters: usize,
    subscripts: usize,
}

/// The path that a text is.
pub(super) fn path(text: &str) -> Read<Path> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
        depth: 0,
        filters: 0,
        subscripts: 0,
    };
    let strict = parser.word("strict");
    if !strict {
        parser.word("lax");
    }
    let expr = match parser.or()? {
        Ok(expr) => expr,
        Err(error) => return Some(Err(error)),
    };
    (parser.at == parser.tokens.len()).then_some(Ok(Path { strict, expr }))
}

/// Whether it is true or false, and no value.
fn is_predicate(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::And(..)
            | Expr::Or(..)
            | Expr::Not(_)
            | Expr::IsUnknown(_)
            | Expr::Compare(..)
            | Expr::StartsWith(..)
            | Expr::Like(..)
            | Expr::Exists(_)
    )
}

macro_rules! get {
    ($read:expr) => {
        match $read? {
            Ok(found) => found,
            Err(error) => return Some(Err(error)),
        }
    };
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(own)) if *own == sign);
        self.at += usize::from(found);
        found
    }

    fn word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Word(own)) if own == word);
        self.at += usize::from(found);
        found
    }

    fn text(&mut self) -> Option<String> {
        let Some(Token::Text(text)) = self.peek().cloned() else {
            return None;
        };
        self.at += 1;
        Some(text)
    }

    fn or(&mut self) -> Read<Expr> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Some(fail("54001", "jsonpath nests too deep"));
        }
        let mut left = get!(self.and());
        while self.sign("||") {
            let right = get!(self.and());
            if !is_predicate(&left) || !is_predicate(&right) {
                return None;
            }
            left = Expr::Or(Box::new(left), Box::new(right));
        }
        self.depth -= 1;
        Some(Ok(left))
    }

    fn and(&mut self) -> Read<Expr> {
        let mut left = get!(self.comparison());
        while self.sign("&&") {
            let right = get!(self.comparison());
            if !is_predicate(&left) || !is_predicate(&right) {
                return None;
            }
            left = Expr::And(Box::new(left), Box::new(right));
        }
        Some(Ok(left))
    }

    fn comparison(&mut self) -> Read<Expr> {
        let left = get!(self.sum());
        let op = match self.peek() {
            Some(Token::Sign("==")) => Comparison::Equal,
            Some(Token::Sign("!=" | "<>")) => Comparison::NotEqual,
            Some(Token::Sign("<")) => Comparison::Less,
            Some(Token::Sign("<=")) => Comparison::LessEqual,
            Some(Token::Sign(">")) => Comparison::Greater,
            Some(Token::Sign(">=")) => Comparison::GreaterEqual,
            _ => return self.pattern(left),
        };
        self.at += 1;
        let right = get!(self.sum());
        (!is_predicate(&left) && !is_predicate(&right)).then_some(Ok(Expr::Compare(
            op,
            Box::new(left),
            Box::new(right),
        )))
    }

    /// `starts with` and `like_regex`, if one of them stands here.
    fn pattern(&mut self, left: Expr) -> Read<Expr> {
        if self.word("starts") {
            if !self.word("with") || is_predicate(&left) {
                return None;
            }
            let begins = match self.peek()?.clone() {
                Token::Text(text) => Expr::Literal(Value::String(text.into())),
                Token::Variable(name) => Expr::Variable(name),
                _ => return None,
            };
            self.at += 1;
            return Some(Ok(Expr::StartsWith(Box::new(left), Box::new(begins))));
        }
        if self.word("like_regex") {
            if is_predicate(&left) {
                return None;
            }
            let pattern = self.text()?;
            let flags = if self.word("flag") { self.text()? } else { String::new() };
            if flags.contains(|c| !"ismxq".contains(c)) {
                return None;
            }
            if flags.contains('x') {
                return Some(fail("0A000", "flag \"x\" of like_regex is not supported"));
            }
            if let Err(error) = self::pattern(&pattern, &flags) {
                return Some(Err(error));
            }
            return Some(Ok(Expr::Like(Box::new(left), pattern, flags)));
        }
        Some(Ok(left))
    }

    fn sum(&mut self) -> Read<Expr> {
        let mut left = get!(self.product());
        loop {
            let op = match self.peek() {
                Some(Token::Sign("+")) => Arithmetic::Plus,
                Some(Token::Sign("-")) => Arithmetic::Minus,
                _ => return Some(Ok(left)),
            };
            self.at += 1;
            left = get!(binary(op, left, self.product()));
        }
    }

    fn product(&mut self) -> Read<Expr> {
        let mut left = get!(self.signed());
        loop {
            let op = match self.peek() {
                Some(Token::Sign("*")) => Arithmetic::Times,
                Some(Token::Sign("/")) => Arithmetic::Divide,
                Some(Token::Sign("%")) => Arithmetic::Modulo,
                _ => return Some(Ok(left)),
            };
            self.at += 1;
            left = get!(binary(op, left, self.signed()));
        }
    }

    fn signed(&mut self) -> Read<Expr> {
        let mut signs = Vec::new();
        while signs.len() <= DEPTH_MAX {
            match () {
                () if self.sign("-") => signs.push(true),
                () if self.sign("+") => signs.push(false),
                () => break,
            }
        }
        let mut expr = get!(self.accessed());
        if !signs.is_empty() && is_predicate(&expr) {
            return None;
        }
        for negate in signs.into_iter().rev() {
            expr = match (negate, expr) {
                (true, Expr::Literal(Value::Decimal128(n))) => number(n.negate()),
                (false, Expr::Literal(Value::Decimal128(n))) => number(n),
                (true, expr) => Expr::Negate(Box::new(expr)),
                (false, expr) => Expr::Same(Box::new(expr)),
            };
        }
        Some(Ok(expr))
    }

    /// A value and its steps.
    fn accessed(&mut self) -> Read<Expr> {
        if self.sign("!") {
            let delimited = matches!(self.peek(), Some(Token::Sign("(")))
                || self.tokens.get(self.at) == Some(&Token::Word("exists".into()));
            let of = get!(self.primary());
            return (delimited && is_predicate(&of)).then_some(Ok(Expr::Not(Box::new(of))));
        }
        let from = get!(self.primary());
        if matches!(from, Expr::Exists(_) | Expr::IsUnknown(_)) {
            return Some(Ok(from));
        }
        let mut steps = Vec::new();
        while let Some(step) = self.step() {
            steps.push(get!(step));
        }
        Some(Ok(match steps.is_empty() {
            true => from,
            false => Expr::Steps(Box::new(from), steps),
        }))
    }

    fn primary(&mut self) -> Read<Expr> {
        let token = self.peek()?.clone();
        self.at += 1;
        Some(Ok(match token {
            Token::Sign("$") => Expr::Root,
            Token::Sign("@") if self.filters > 0 => Expr::Current,
            Token::Sign("(") => {
                let inner = get!(self.or());
                if !self.sign(")") {
                    return None;
                }
                if self.word("is") {
                    let known = self.word("unknown") && is_predicate(&inner);
                    return known.then_some(Ok(Expr::IsUnknown(Box::new(inner))));
                }
                inner
            }
            Token::Variable(name) => Expr::Variable(name),
            Token::Text(text) => Expr::Literal(Value::String(text.into())),
            Token::Number(text) => number(numeric::parse(&text).ok()?),
            Token::Word(word) => match word.as_str() {
                "true" => Expr::Literal(Value::Bool(true)),
                "false" => Expr::Literal(Value::Bool(false)),
                "null" => Expr::Literal(Value::Null),
                "last" if self.subscripts > 0 => Expr::Last,
                "exists" if self.sign("(") => {
                    let inner = get!(self.or());
                    if !self.sign(")") || is_predicate(&inner) {
                        return None;
                    }
                    Expr::Exists(Box::new(inner))
                }
                _ => return None,
            },
            Token::Sign(_) => return None,
        }))
    }

    /// The step that stands here; `None` when there is none, an inner `None` when it is wrong.
    fn step(&mut self) -> Option<Read<Step>> {
        match () {
            () if self.sign("?") => Some(self.filter()),
            () if self.sign("[") => Some(self.elements()),
            () if self.sign(".") => Some(self.member()),
            () => None,
        }
    }

    fn filter(&mut self) -> Read<Step> {
        if !self.sign("(") {
            return None;
        }
        self.filters += 1;
        let condition = get!(self.or());
        self.filters -= 1;
        (self.sign(")") && is_predicate(&condition)).then_some(Ok(Step::Filter(Box::new(condition))))
    }

    fn elements(&mut self) -> Read<Step> {
        if self.sign("*") {
            return self.sign("]").then_some(Ok(Step::AnyElement));
        }
        self.subscripts += 1;
        let mut all = Vec::new();
        loop {
            let from = get!(self.sum());
            let to = if self.word("to") { Some(get!(self.sum())) } else { None };
            if is_predicate(&from) || to.as_ref().is_some_and(is_predicate) {
                return None;
            }
            all.push((from, to));
            if !self.sign(",") {
                break;
            }
        }
        self.subscripts -= 1;
        self.sign("]").then_some(Ok(Step::Elements(all)))
    }

    fn member(&mut self) -> Read<Step> {
        if self.sign("*") {
            return Some(Ok(Step::AnyKey));
        }
        if self.sign("**") {
            return self.levels();
        }
        let (name, quoted) = match self.peek()?.clone() {
            Token::Word(name) => (name, false),
            Token::Text(name) => (name, true),
            _ => return None,
        };
        self.at += 1;
        if quoted || !self.sign("(") {
            return Some(Ok(Step::Key(name)));
        }
        let step = match name.as_str() {
            "datetime" => Step::Datetime(self.text()),
            name => Step::Method(Method::ALL.iter().find(|(_, own)| *own == name)?.0),
        };
        self.sign(")").then_some(Ok(step))
    }

    /// The levels of `.**`.
    fn levels(&mut self) -> Read<Step> {
        if !self.sign("{") {
            return Some(Ok(Step::Any(Some(0), None)));
        }
        let first = self.level()?;
        let last = if self.word("to") { self.level()? } else { first };
        self.sign("}").then_some(Ok(Step::Any(first, last)))
    }

    fn level(&mut self) -> Option<Option<u32>> {
        let token = self.peek()?.clone();
        self.at += 1;
        match token {
            Token::Number(digits) => digits.parse().ok().map(Some),
            Token::Word(word) if word == "last" => Some(None),
            _ => None,
        }
    }
}

fn binary(op: Arithmetic, left: Expr, right: Read<Expr>) -> Read<Expr> {
    let right = get!(right);
    (!is_predicate(&left) && !is_predicate(&right)).then_some(Ok(Expr::Binary(op, Box::new(left), Box::new(right))))
}
