//! Which names of a statement are variables.
//!
//! A name is one of a variable where the grammar has an expression and the name is none of a table, a type, a function or an alias. That is told of
//! the tokens before it: in each pair of parentheses it is known whether tables, columns or expressions are named.

use super::Running;
use crate::parse::own;
use crate::parse::queries::BEHIND_TABLE;
use crate::types::Type;
use crate::types::names::folded;
use nestor_model::{Result, Value};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

/// A statement with parameters in place of variables.
pub(super) struct Named {
    pub(super) text: String,
    pub(super) given: Vec<(Type, Value)>,
    /// The variables that these are, where a column might have the name.
    pub(super) names: Vec<Option<String>>,
    /// Fields that records do not have, as errors tell of them.
    pub(super) missing: Vec<(String, String)>,
    /// The variables and their fields that the parameters are.
    pub(super) places: Vec<super::Place>,
}

/// The arguments of a trigger.
const ARGUMENTS: &str = "tg_argv";

/// What is named at a place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Expressions.
    Value,
    /// A table.
    Table,
    /// What stands behind a table: its alias, or a comma.
    BehindTable,
    /// Columns.
    Columns,
    /// What SET assigns to.
    Target,
    /// Names of anything else.
    Names,
}

/// A pair of parentheses, or the statement.
struct Frame {
    place: Place,
    /// It is a statement, in which words like FROM begin clauses.
    is_statement: bool,
    /// Its SET goes on behind commas.
    sets: bool,
}

/// Words that begin a statement that has parameters.
const TAKES: [&str; 9] = [
    "select", "with", "values", "insert", "update", "delete", "merge", "table", "call",
];

/// Words behind a table that are no alias either, beside those of [`BEHIND_TABLE`].
const NO_ALIAS: [&str; 8] = [
    "values",
    "select",
    "default",
    "when",
    "tablesample",
    "lateral",
    "with",
    "overriding",
];

impl Running<'_, '_> {
    /// The text of a statement with parameters in place of variables, and their values. Statements that are no queries and write nothing
    /// have no parameters.
    ///
    /// Errors: 55000 for records without a value.
    pub(super) fn with_parameters(&self, text: &str) -> Result<Named> {
        let tokens = own::tokens(text);
        let is_space = |token: &Token| matches!(token, Token::Whitespace(_));
        let solid: Vec<usize> = (0..tokens.len()).filter(|at| !is_space(&tokens[*at])).collect();
        let word = |at: usize| match solid.get(at).map(|at| &tokens[*at]) {
            Some(Token::Word(word)) => Some(folded(&word.value, word.quote_style)),
            _ => None,
        };
        let plain = |at: usize| match solid.get(at).map(|at| &tokens[*at]) {
            Some(Token::Word(word)) if word.quote_style.is_none() => word.value.to_lowercase(),
            _ => String::new(),
        };
        let is = |at: usize, token: &Token| solid.get(at).is_some_and(|at| tokens[*at] == *token);
        let mut out = Named {
            text: String::new(),
            given: Vec::new(),
            names: Vec::new(),
            missing: Vec::new(),
            places: Vec::new(),
        };
        let first = plain(0);
        let begin = match TAKES.contains(&first.as_str()) || is(0, &Token::LParen) {
            true => Some(0),
            // CREATE TABLE AS has those of its query.
            false if first == "create" && (1..5).any(|at| plain(at) == "table") => {
                let begins = |at: &usize| plain(*at - 1) == "as" && TAKES.contains(&plain(*at).as_str());
                (4..solid.len()).find(begins)
            }
            false => None,
        };
        let Some(mut at) = begin else {
            text.clone_into(&mut out.text);
            return Ok(out);
        };
        let mut shown: Vec<String> = tokens.iter().map(own::shown).collect();
        let mut known: Vec<(usize, Option<String>, usize)> = Vec::new();
        let mut frames = vec![Frame {
            place: Place::Value,
            is_statement: true,
            sets: false,
        }];
        while at < solid.len() {
            let token = &tokens[solid[at]];
            let here = plain(at);
            let before = if at > 0 { plain(at - 1) } else { String::new() };
            let Some(frame) = frames.last_mut() else { break };
            match token {
                Token::LParen => {
                    let next = plain(at + 1);
                    let is_statement =
                        ["select", "with", "values", "insert", "update", "delete"].contains(&next.as_str());
                    let place = match frame.place {
                        _ if is_statement => Place::Value,
                        Place::Table => Place::Table,
                        // `INSERT INTO t (columns)`, `AS t (columns)`
                        Place::BehindTable if before == "using" => Place::Columns,
                        Place::BehindTable => match is_call(&tokens, &solid, at) && !is_alias(&tokens, &solid, at) {
                            true => Place::Value,
                            false => Place::Columns,
                        },
                        Place::Target => Place::Columns,
                        Place::Value if before == "conflict" || before == "using" && frame.is_statement => {
                            Place::Columns
                        }
                        Place::Columns => Place::Columns,
                        _ => Place::Value,
                    };
                    frames.push(Frame {
                        place,
                        is_statement,
                        sets: false,
                    });
                    at += 1;
                    continue;
                }
                Token::RParen => {
                    if frames.len() > 1 {
                        frames.pop();
                    }
                    if let Some(frame) = frames.last_mut()
                        && frame.place == Place::Table
                    {
                        frame.place = Place::BehindTable;
                    }
                    at += 1;
                    continue;
                }
                Token::Comma => {
                    match frame.place {
                        Place::BehindTable => frame.place = Place::Table,
                        Place::Value if frame.sets => frame.place = Place::Target,
                        _ => {}
                    }
                    at += 1;
                    continue;
                }
                Token::Eq if frame.place == Place::Target => {
                    frame.place = Place::Value;
                    at += 1;
                    continue;
                }
                _ => {}
            }
            if let Token::Placeholder(name) = token {
                if let Some((place, None)) = self.resolve(name) {
                    let number = out.number(self, &mut known, (place, None), None)?;
                    shown[solid[at]] = format!("${number}");
                }
                at += 1;
                continue;
            }
            let Some(name) = word(at) else {
                at += 1;
                continue;
            };
            let behind_dot = at > 0 && is(at - 1, &Token::Period);
            let is_distinct = before == "distinct" && at > 1 && matches!(plain(at - 2).as_str(), "is" | "not");
            if !here.is_empty() && !behind_dot && clause(frame, &here, &before, &plain(at + 1), is_distinct) {
                at += 1;
                continue;
            }
            if frame.place == Place::Table {
                // A name with dots.
                while is(at + 1, &Token::Period) {
                    at += 2;
                }
                frame.place = Place::BehindTable;
                at += 1;
                continue;
            }
            let is_named_otherwise = frame.place != Place::Value
                || behind_dot
                || before == "as"
                || at > 0 && is(at - 1, &Token::DoubleColon)
                || is(at + 1, &Token::LParen)
                || is(at + 1, &Token::RArrow)
                || plain(at + 1) == "as" && is(at + 2, &Token::LParen)
                || stands_behind_value(&tokens, &solid, at);
            if is_named_otherwise {
                at += 1;
                continue;
            }
            // `record.*`, `block.variable`, `record.field`, `block.record.field`
            let mut parts = vec![name.clone()];
            while parts.len() < 3
                && is(at + 2 * parts.len() - 1, &Token::Period)
                && let Some(next) = word(at + 2 * parts.len())
            {
                parts.push(next);
            }
            let all = is(at + 1, &Token::Period) && is(at + 2, &Token::Mul);
            let mut taken = None;
            for count in (1..=parts.len()).rev() {
                if count == 1 && parts.len() > 1 {
                    break;
                }
                if let Some((place, field)) = self.resolve(&parts[..count].join(".")) {
                    taken = Some((place, field, count));
                    break;
                }
            }
            let Some((place, field, count)) = taken else {
                at += 1;
                continue;
            };
            let own = &self.variables[place];
            if count == 1 && all {
                if let Some(record) = &own.record {
                    let lists = !is_compared(&tokens, &solid, at);
                    own.seen()?;
                    let mut each = Vec::new();
                    for (field, _) in &record.fields {
                        let number = out.number(self, &mut known, (place, Some(field.name.clone())), None)?;
                        each.push(format!("${number}"));
                    }
                    shown[solid[at]] = match lists {
                        true => each.join(", "),
                        false => format!("ROW({})", each.join(", ")),
                    };
                    shown[solid[at + 1]].clear();
                    shown[solid[at + 2]].clear();
                    at += 3;
                    continue;
                }
            }
            // A field of what is no record is one of a table.
            if count == 1 && is(at + 1, &Token::Period) && own.record.is_none() {
                at += 1;
                continue;
            }
            if let (Some(field), Some(record)) = (&field, &own.record)
                && !record.fields.iter().any(|(own, _)| own.name == *field)
            {
                if record.fields.is_empty() && !record.is_fixed {
                    own.seen()?;
                }
                out.missing.push((own.name.clone(), field.clone()));
                at += 2 * count - 1;
                continue;
            }
            if name == ARGUMENTS && is(at + 1, &Token::LBracket) {
                // They are counted from 0.
                shown[solid[at + 1]] = "[1 + ".to_owned();
            }
            let is_alone = count == 1;
            let number = out.number(self, &mut known, (place, field), is_alone.then_some(name))?;
            shown[solid[at]] = format!("${number}");
            for other in 1..2 * count - 1 {
                shown[solid[at + other]].clear();
            }
            at += 2 * count - 1;
        }
        out.text = match out.given.is_empty() {
            true => text.to_owned(),
            false => shown.concat(),
        };
        Ok(out)
    }
}

impl Named {
    /// The number of the parameter that a variable or a field of one is.
    fn number(
        &mut self,
        running: &Running<'_, '_>,
        known: &mut Vec<(usize, Option<String>, usize)>,
        (place, field): (usize, Option<String>),
        name: Option<String>,
    ) -> Result<usize> {
        let name = name.filter(|name| running.is_of_user(name));
        let is_it = |(own, of, number): &&(usize, Option<String>, usize)| {
            *own == place && *of == field && self.names[number - 1].is_some() == name.is_some()
        };
        if let Some((.., number)) = known.iter().find(is_it) {
            return Ok(*number);
        }
        let own = &running.variables[place];
        let given = match (&field, &own.record) {
            (Some(field), Some(record)) => {
                let found = record.fields.iter().find(|(own, _)| own.name == *field);
                found.map_or((Type::Unknown, Value::Null), |(own, value)| {
                    (own.ty.clone(), value.clone())
                })
            }
            _ => own.seen()?,
        };
        self.given.push(given);
        self.names.push(name);
        self.places.push((place, field.clone()));
        let number = self.given.len();
        known.push((place, field, number));
        Ok(number)
    }
}

impl Running<'_, '_> {
    /// Whether a variable is one that somebody has named.
    fn is_of_user(&self, name: &str) -> bool {
        !matches!(name, "found" | "sqlstate" | "sqlerrm")
    }
}

/// Whether a word begins a clause of a statement, which says what is named from here on.
fn clause(frame: &mut Frame, word: &str, before: &str, next: &str, is_distinct: bool) -> bool {
    if !frame.is_statement {
        // In `extract(epoch FROM x)` and its like there are expressions only; parentheses around tables have joins.
        return match word {
            "on" | "using" | "join" if matches!(frame.place, Place::BehindTable | Place::Table | Place::Value) => {
                let was_tables = frame.place != Place::Value || word == "join";
                frame.place = if word == "join" { Place::Table } else { Place::Value };
                was_tables
            }
            "left" | "right" | "full" | "inner" | "cross" | "natural" | "outer"
                if frame.place == Place::BehindTable =>
            {
                true
            }
            _ => false,
        };
    }
    let place = match word {
        "from" if is_distinct => return true,
        "from" => Place::Table,
        "into" => Place::Table,
        "join" => Place::Table,
        "update" if before != "for" && before != "do" && before != "key" && before != "then" => Place::Table,
        "update" if before == "do" || before == "then" => Place::Value,
        "table" => Place::Table,
        "only" | "lateral" if frame.place == Place::Table => return true,
        "using" if frame.place == Place::BehindTable && !next.is_empty() => Place::Table,
        "using" => return true,
        "of" if before == "update" || before == "share" => Place::Names,
        "constraint" => Place::Names,
        "call" => Place::Value,
        "set" => {
            frame.sets = true;
            frame.place = Place::Target;
            return true;
        }
        "where" | "on" | "having" | "select" | "returning" | "values" | "by" | "limit" | "offset" | "when" | "do"
        | "and" | "then" | "default" => {
            if matches!(word, "where" | "returning" | "when") {
                frame.sets = false;
            }
            Place::Value
        }
        "left" | "right" | "full" | "inner" | "cross" | "natural" | "outer" if frame.place == Place::BehindTable => {
            return true;
        }
        "as" if frame.place == Place::BehindTable => return true,
        word if frame.place == Place::BehindTable && (BEHIND_TABLE.contains(&word) || NO_ALIAS.contains(&word)) => {
            Place::Value
        }
        _ => return false,
    };
    frame.place = place;
    true
}

/// Whether parentheses behind a table's name are those of a call.
fn is_call(tokens: &[Token], solid: &[usize], at: usize) -> bool {
    let word = |back: usize| at.checked_sub(back).and_then(|at| solid.get(at)).map(|at| &tokens[*at]);
    // `INTO t (`: columns; `FROM f (`: arguments.
    let mut back = 2;
    while matches!(word(back), Some(Token::Period)) {
        back += 2;
    }
    match word(back) {
        Some(Token::Word(word)) => !word.value.eq_ignore_ascii_case("into"),
        _ => true,
    }
}

/// Whether parentheses stand behind an alias.
fn is_alias(tokens: &[Token], solid: &[usize], at: usize) -> bool {
    let word = |back: usize| match at.checked_sub(back).and_then(|at| solid.get(at)).map(|at| &tokens[*at]) {
        Some(Token::Word(word)) => Some(word.value.to_lowercase()),
        Some(Token::RParen) => Some(")".to_owned()),
        _ => None,
    };
    match word(2).as_deref() {
        Some("as" | ")") => true,
        Some("from" | "join" | "lateral" | "using" | "only") | None => false,
        Some(_) => true,
    }
}

/// Whether a word stands directly behind a value, so that it is the name of a column of the result.
fn stands_behind_value(tokens: &[Token], solid: &[usize], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|at| &tokens[solid[at]]) else {
        return false;
    };
    match before {
        Token::RParen | Token::RBracket | Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_) => {
            let Token::Word(own) = &tokens[solid[at]] else {
                return false;
            };
            own.keyword == Keyword::NoKeyword
        }
        Token::Word(word) => word.quote_style.is_some() || word.keyword == Keyword::NoKeyword,
        _ => false,
    }
}

/// Whether all fields of a record, `record.*`, are compared as one row.
fn is_compared(tokens: &[Token], solid: &[usize], at: usize) -> bool {
    let compares = |token: Option<&Token>| {
        matches!(
            token,
            Some(Token::Eq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq)
        )
    };
    let get = |at: Option<usize>| at.and_then(|at| solid.get(at)).map(|at| &tokens[*at]);
    let is_word = |token: Option<&Token>, name: &str| matches!(token, Some(Token::Word(word)) if word.value.eq_ignore_ascii_case(name));
    let behind = get(Some(at + 3));
    let before = get(at.checked_sub(1));
    let is_distinct = is_word(before, "from") && is_word(get(at.checked_sub(2)), "distinct");
    compares(behind) || compares(before) || is_word(behind, "is") || is_distinct
}
