//! `jsonpath`: paths of SQL/JSON as trees, read from text and printed in PostgreSQL's form.
//!
//! A value of the type is held as the printed text; [`path`] gives the tree of one.

mod parse;

use super::compare::Comparison;
use super::json;
use super::regex::{self, Flags};
use crate::error::error;
use nestor_model::{Decimal128, Result, Value};
use nestor_query::regex::Regex;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// A path: its expression and how strict it is.
#[derive(Debug)]
pub struct Path {
    /// Structures have to be as the path says; `lax` otherwise.
    pub strict: bool,
    /// What it computes.
    pub expr: Expr,
}

/// An operator between numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Arithmetic {
    Plus,
    Minus,
    Times,
    Divide,
    Modulo,
}

/// An expression or a predicate.
#[derive(Debug)]
pub enum Expr {
    /// `$`.
    Root,
    /// `@`, of a filter.
    Current,
    /// `last`, of subscripts.
    Last,
    /// `$name`.
    Variable(String),
    /// A null, boolean, number or string.
    Literal(Value),
    /// What steps lead to.
    Steps(Box<Expr>, Vec<Step>),
    /// The negation of numbers.
    Negate(Box<Expr>),
    /// Numbers as they are.
    Same(Box<Expr>),
    /// A computation.
    Binary(Arithmetic, Box<Expr>, Box<Expr>),
    /// Both hold.
    And(Box<Expr>, Box<Expr>),
    /// One holds.
    Or(Box<Expr>, Box<Expr>),
    /// It does not hold.
    Not(Box<Expr>),
    /// It cannot be said.
    IsUnknown(Box<Expr>),
    /// A comparison.
    Compare(Comparison, Box<Expr>, Box<Expr>),
    /// A string begins with another one.
    StartsWith(Box<Expr>, Box<Expr>),
    /// A string matches a pattern, with flags.
    Like(Box<Expr>, String, String),
    /// There is something.
    Exists(Box<Expr>),
}

/// A step from a value to others.
#[derive(Debug)]
pub enum Step {
    /// `.name`.
    Key(String),
    /// `.*`.
    AnyKey,
    /// `[*]`.
    AnyElement,
    /// `[from to to, ...]`.
    Elements(Vec<(Expr, Option<Expr>)>),
    /// `.**{first to last}`; `None` is as deep as there are values.
    Any(Option<u32>, Option<u32>),
    /// `?(...)`.
    Filter(Box<Expr>),
    /// `.name()`.
    Method(Method),
    /// `.datetime(template)`.
    Datetime(Option<String>),
}

/// A method without arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Method {
    Type,
    Size,
    Double,
    Ceiling,
    Floor,
    Abs,
    KeyValue,
}

impl Method {
    /// All, with their names.
    pub const ALL: &[(Self, &str)] = &[
        (Self::Type, "type"),
        (Self::Size, "size"),
        (Self::Double, "double"),
        (Self::Ceiling, "ceiling"),
        (Self::Floor, "floor"),
        (Self::Abs, "abs"),
        (Self::KeyValue, "keyvalue"),
    ];

    fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(own, _)| *own == self)
            .map_or("", |(_, name)| name)
    }
}

thread_local! {
    /// The path that was read last on this thread: rows mostly share theirs.
    static LAST: RefCell<Option<(String, Rc<Path>)>> = const { RefCell::new(None) };
}

/// The path that a text is. Errors: 42601.
pub fn path(text: &str) -> Result<Rc<Path>> {
    let known = LAST.with_borrow(|last| match last {
        Some((known, path)) if known == text => Some(path.clone()),
        _ => None,
    });
    if let Some(path) = known {
        return Ok(path);
    }
    let path = Rc::new(parse::path(text).ok_or_else(|| error("42601", "syntax error in jsonpath"))??);
    LAST.with_borrow_mut(|last| *last = Some((text.to_owned(), path.clone())));
    Ok(path)
}

fn quoted(text: &str) -> String {
    let mut out = String::new();
    json::quote(text, &mut out);
    out
}

/// How tightly an expression binds where it is printed.
fn rank(expr: &Expr) -> u8 {
    match expr {
        Expr::Or(..) => 0,
        Expr::And(..) => 1,
        Expr::Compare(..) | Expr::StartsWith(..) | Expr::Like(..) => 2,
        Expr::Binary(Arithmetic::Plus | Arithmetic::Minus, ..) => 3,
        Expr::Binary(..) => 4,
        Expr::Negate(_) | Expr::Same(_) => 5,
        _ => 6,
    }
}

/// Within an expression of a rank.
struct Within<'e>(&'e Expr, u8);

impl fmt::Display for Within<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match rank(self.0) <= self.1 {
            true => write!(f, "({})", Bare(self.0)),
            false => write!(f, "{}", Bare(self.0)),
        }
    }
}

/// Without parentheses.
struct Bare<'e>(&'e Expr);

impl fmt::Display for Bare<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rank = rank(self.0);
        match self.0 {
            Expr::Root => f.write_str("$"),
            Expr::Current => f.write_str("@"),
            Expr::Last => f.write_str("last"),
            Expr::Variable(name) => write!(f, "${}", quoted(name)),
            Expr::Literal(value) => {
                let mut out = String::new();
                json::print(value.as_ref(), &mut out);
                f.write_str(&out)
            }
            Expr::Steps(from, steps) => {
                // A number is told from its steps by parentheses.
                match **from {
                    Expr::Literal(Value::Decimal128(_) | Value::Int32(_) | Value::Int64(_)) => {
                        write!(f, "({})", Bare(from))?
                    }
                    _ => write!(f, "{}", Within(from, 5))?,
                }
                steps.iter().try_for_each(|step| write!(f, "{step}"))
            }
            Expr::Negate(of) => write!(f, "-{}", Within(of, 5)),
            Expr::Same(of) => write!(f, "+{}", Within(of, 5)),
            Expr::Binary(op, a, b) => {
                let sign = match op {
                    Arithmetic::Plus => "+",
                    Arithmetic::Minus => "-",
                    Arithmetic::Times => "*",
                    Arithmetic::Divide => "/",
                    Arithmetic::Modulo => "%",
                };
                write!(f, "{} {sign} {}", Within(a, rank), Within(b, rank))
            }
            Expr::And(a, b) => write!(f, "{} && {}", Within(a, rank), Within(b, rank)),
            Expr::Or(a, b) => write!(f, "{} || {}", Within(a, rank), Within(b, rank)),
            Expr::Not(of) => write!(f, "!({})", Bare(of)),
            Expr::IsUnknown(of) => write!(f, "({}) is unknown", Bare(of)),
            Expr::Compare(op, a, b) => {
                let sign = match op {
                    Comparison::Equal => "==",
                    Comparison::NotEqual => "!=",
                    other => other.sign(),
                };
                write!(f, "{} {sign} {}", Within(a, rank), Within(b, rank))
            }
            Expr::StartsWith(a, b) => write!(f, "{} starts with {}", Within(a, rank), Within(b, rank)),
            Expr::Like(of, pattern, flags) => {
                write!(f, "{} like_regex {}", Within(of, rank), quoted(pattern))?;
                match flags.is_empty() {
                    true => Ok(()),
                    false => write!(f, " flag {}", quoted(flags)),
                }
            }
            Expr::Exists(of) => write!(f, "exists ({})", Bare(of)),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(name) => write!(f, ".{}", quoted(name)),
            Self::AnyKey => f.write_str(".*"),
            Self::AnyElement => f.write_str("[*]"),
            Self::Elements(all) => {
                let all = all.iter().map(|(from, to)| match to {
                    None => Bare(from).to_string(),
                    Some(to) => format!("{} to {}", Bare(from), Bare(to)),
                });
                write!(f, "[{}]", all.collect::<Vec<_>>().join(","))
            }
            Self::Any(Some(0), None) => f.write_str(".**"),
            Self::Any(first, last) => {
                let shown = |level: &Option<u32>| level.map_or_else(|| "last".to_owned(), |level| level.to_string());
                match first == last {
                    true => write!(f, ".**{{{}}}", shown(first)),
                    false => write!(f, ".**{{{} to {}}}", shown(first), shown(last)),
                }
            }
            Self::Filter(condition) => write!(f, "?({})", Bare(condition)),
            Self::Method(method) => write!(f, ".{}()", method.name()),
            Self::Datetime(None) => f.write_str(".datetime()"),
            Self::Datetime(Some(template)) => write!(f, ".datetime({})", quoted(template)),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.strict { "strict " } else { "" })?;
        // An expression of several parts stands in parentheses.
        match rank(&self.expr) {
            6 => write!(f, "{}", Bare(&self.expr)),
            _ => write!(f, "({})", Bare(&self.expr)),
        }
    }
}

/// The pattern of `like_regex` with its flags. Errors: 2201B.
pub fn pattern(pattern: &str, flags: &str) -> Result<Regex> {
    let flags = Flags {
        insensitive: flags.contains('i'),
        dots_break: flags.contains('s'),
        lines: flags.contains('m'),
        literal: flags.contains('q'),
        ..Flags::default()
    };
    regex::compile(pattern, flags)
}

/// A number of a path.
fn number(n: Decimal128) -> Expr {
    Expr::Literal(Value::Decimal128(n))
}
