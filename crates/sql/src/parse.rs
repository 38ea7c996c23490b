//! From text to statements: the grammar is `sqlparser`'s, in PostgreSQL's dialect.

pub mod altered;
pub mod assigned;
pub mod attributes;
mod calls;
mod columns;
pub(crate) mod commands;
pub mod conflict;
pub(crate) mod copying;
pub(crate) mod created;
pub(crate) mod cursors;
pub mod databases;
mod depth;
pub(crate) mod dialect;
pub mod domains;
mod groups;
mod into;
pub mod likes;
mod literals;
mod locks;
pub mod maintain;
mod merge;
pub mod names;
mod operands;
mod options;
mod overriding;
pub mod own;
pub mod partitions;
pub(crate) mod prefixes;
pub mod procedural;
pub mod queries;
pub mod recursion;
pub mod roles;
pub mod routines;
pub mod schemas;
pub mod subscripts;
mod tokens;
pub mod trigger;
pub(crate) mod triggers;
mod views;
mod whole;
mod windows;
mod word;

pub use self::columns::{columns, with_column_renamed};
use self::dialect::Sql;
pub use self::options::sequence_of;
use crate::error::{error, fail, unsupported};
use nestor_model::{Error, Result};
use sqlparser::ast::{Expr, Statement};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

/// Most bytes of a statement.
pub const STATEMENT_BYTES_MAX: usize = 16 << 20;
/// Dots that may stand in one name, and in names with nothing but words between them.
const NAME_PARTS_MAX: usize = 1000;
/// Levels that parentheses and the like may nest.
const DEPTH_MAX: usize = 60;

/// Begins what is said of what is read and not supported.
const NOT_SUPPORTED: &str = "not supported: ";

/// The statements of a text.
///
/// Errors: 42601, 54001 for what nests too deep, 54000 for a text that is too long, 0A000 for commands that there are not.
pub fn parse(text: &str) -> Result<Vec<Statement>> {
    if text.len() > STATEMENT_BYTES_MAX {
        return fail("54000", "statement is too long");
    }
    let mut parser = parser(text, true)?;
    let statements = parser.parse_statements();
    let statements = statements.map_err(|e| unknown(&e, text).unwrap_or_else(|| refused(e, text)))?;
    statements.iter().try_for_each(|ast| own::of(ast).map(drop))?;
    statements.into_iter().map(into::plain).collect()
}

/// The statements of a text that a client sent, which is told of names that are too long.
///
/// Errors: those of [`parse`].
pub fn by_client(text: &str) -> Result<Vec<Statement>> {
    names::begin();
    let statements = parse(text)?;
    names::tell();
    Ok(statements)
}

/// The texts of the statements that a text consists of.
pub fn statements(text: &str) -> Vec<String> {
    let tokens = Tokenizer::new(&Sql, text).tokenize().unwrap_or_default();
    let all = tokens.split(|token| *token == Token::SemiColon);
    let all = all.map(|tokens| tokens.iter().map(columns::written).collect::<String>());
    all.filter(|text| !matches!(parse(text).as_deref(), Ok([]))).collect()
}

/// The expression that a text is.
///
/// Errors: those of [`parse`].
pub fn expression(text: &str) -> Result<Expr> {
    let mut parser = parser(text, true)?;
    parser.parse_expr().map_err(|e| refused(e, text))
}

/// The type that a text is.
///
/// Errors: those of [`parse`].
pub fn data_type(text: &str) -> Result<sqlparser::ast::DataType> {
    let mut parser = parser(text, true)?;
    parser.parse_data_type().map_err(|e| refused(e, text))
}

/// The names that stand in the text of an expression.
pub fn words(text: &str) -> Vec<String> {
    let tokens = Tokenizer::new(&Sql, text).tokenize().unwrap_or_default();
    let words = tokens.into_iter().filter_map(|token| match token {
        Token::Word(word) if word.quote_style.is_some() => Some(word.value),
        Token::Word(word) => Some(word.value.to_lowercase()),
        _ => None,
    });
    words.collect()
}

/// The names that a text calls.
pub fn calls(text: &str) -> Vec<String> {
    let tokens = Tokenizer::new(&Sql, text).tokenize().unwrap_or_default();
    let solid: Vec<&Token> = tokens
        .iter()
        .filter(|token| !matches!(token, Token::Whitespace(_)))
        .collect();
    let called = solid.windows(2).filter_map(|pair| match pair {
        [Token::Word(word), Token::LParen] if word.quote_style.is_some() => Some(word.value.clone()),
        [Token::Word(word), Token::LParen] => Some(word.value.to_lowercase()),
        _ => None,
    });
    called.collect()
}

/// A text with names of two parts in place of `$1` and its like.
///
/// Errors: 42601 for a text that consists of no tokens, 42P02 for a number that has no name.
pub fn with_placeholders(text: &str, name: &dyn Fn(usize) -> Option<(String, String)>) -> Result<String> {
    let tokens = Tokenizer::new(&Sql, text).tokenize();
    let tokens = tokens.map_err(|e| error("42601", e.to_string()))?;
    let mut out = String::with_capacity(text.len());
    for token in &tokens {
        let number = match token {
            Token::Placeholder(own) => own.strip_prefix('$').and_then(|number| number.parse().ok()),
            _ => None,
        };
        match number {
            None => out.push_str(&columns::written(token)),
            Some(number) => match name(number) {
                Some((of, name)) => {
                    let both = [of, name].map(|part| columns::written(&Token::make_word(&part, Some('"'))));
                    out.push_str(&both.join("."));
                }
                None => return fail("42P02", format!("there is no parameter ${number}")),
            },
        }
    }
    Ok(out)
}

/// The tokens of a text, ready to be read; `wraps` says whether statements that the grammar does not know are wrapped.
fn parser(text: &str, wraps: bool) -> Result<Parser<'static>> {
    let dialect = &Sql;
    let is_of_client = names::is_next();
    let plain = literals::plain(text)?;
    let mut tokens = Tokenizer::new(dialect, &plain)
        .tokenize_with_location()
        .map_err(|e| error("42601", e.to_string()))?;
    if is_of_client {
        names::shorten(&mut tokens);
    }
    check_numbers(&tokens)?;
    check_names(&tokens)?;
    split_signs(&mut tokens);
    leave_out_national(&mut tokens);
    literals::join(&mut tokens)?;
    unquote_dollars(&mut tokens);
    end_copy(&mut tokens);
    copying::spell_out(&mut tokens);
    created::leave_out_tablespaces(&mut tokens)?;
    created::spell_out(&mut tokens);
    routines::leave_out(&mut tokens)?;
    routines::put_modes_first(&mut tokens);
    triggers::spell_out(&mut tokens);
    views::fill_options(&mut tokens);
    altered::spell_out(&mut tokens);
    options::leave_out_names(&mut tokens)?;
    options::put_in_order(&mut tokens);
    windows::wrap_offsets(&mut tokens);
    windows::name_exclusions(&mut tokens);
    windows::name_rows_from(&mut tokens);
    queries::spell_out(&mut tokens);
    windows::note_only(&mut tokens);
    recursion::name_clauses(&mut tokens);
    subscripts::name_all(&mut tokens);
    likes::name_all(&mut tokens);
    partitions::spell_out(&mut tokens);
    cursors::spell_out(&mut tokens);
    cursors::name_current(&mut tokens);
    name_zone(&mut tokens);
    give_options(&mut tokens);
    operands::wrap_sets(&mut tokens);
    calls::spell_out(&mut tokens);
    name_blanks(&mut tokens);
    overriding::spell_out(&mut tokens)?;
    conflict::spell_out(&mut tokens);
    whole::spell_out(&mut tokens);
    if wraps {
        own::wrap(&mut tokens);
    }
    merge::give_defaults(&mut tokens);
    locks::spell_out(&mut tokens);
    depth::check(&tokens)?;
    literals::keep_quotes(&mut tokens)?;
    let tokens = plainer(tokens);
    Ok(Parser::new(dialect)
        .with_recursion_limit(DEPTH_MAX)
        .with_tokens_with_locations(tokens))
}

/// `NATIONAL CHARACTER` and `NCHAR VARYING` are the types without that.
fn leave_out_national(tokens: &mut Vec<TokenWithSpan>) {
    let is = tokens::is;
    for at in (0..tokens.len()).rev() {
        let next = || tokens::next_solid(tokens, at + 1);
        let is_next = |words: &[&str]| next().is_some_and(|next| words.iter().any(|word| is(&tokens[next], word)));
        if is(&tokens[at], "national") && is_next(&["character", "char"]) {
            tokens.remove(at);
        } else if is(&tokens[at], "nchar") && is_next(&["varying"]) {
            tokens[at].token = Token::make_keyword("CHARACTER");
        }
    }
}

/// A sign behind an operator is one of what follows, unless the operator has a character that those of the standard have not: `a->-1`.
fn split_signs(tokens: &mut Vec<TokenWithSpan>) {
    let special = |c: char| "~!@#%^&|`?".contains(c);
    let is_sign = |c: char| matches!(c, '+' | '-');
    for at in (0..tokens.len()).rev() {
        let Token::CustomBinaryOperator(operator) = &tokens[at].token else {
            continue;
        };
        let plain = operator.trim_end_matches(is_sign);
        if plain.len() == operator.len() || plain.is_empty() || operator.contains(special) {
            continue;
        }
        let signs = operator[plain.len()..]
            .chars()
            .map(|sign| if sign == '-' { Token::Minus } else { Token::Plus });
        let first = Tokenizer::new(&Sql, plain).tokenize().unwrap_or_default();
        let span = tokens[at].span;
        let made: Vec<TokenWithSpan> = first
            .into_iter()
            .chain(signs)
            .map(|token| TokenWithSpan::new(token, span))
            .collect();
        tokens.splice(at..=at, made);
    }
}

/// A text between dollars is one in quotes, wherever it stands: the grammar knows it in expressions alone.
fn unquote_dollars(tokens: &mut [TokenWithSpan]) {
    for token in tokens {
        if let Token::DollarQuotedString(text) = &mut token.token {
            token.token = Token::SingleQuotedString(std::mem::take(&mut text.value));
        }
    }
}

/// `RESET TIME ZONE` is one of a setting.
fn name_zone(tokens: &mut Vec<TokenWithSpan>) {
    let is_reset = |at: &usize| tokens::is(&tokens[*at], "reset");
    let Some(at) = (0..tokens.len()).find(is_reset) else {
        return;
    };
    let next: Vec<usize> = tokens::solid(tokens, at + 1).take(2).collect();
    if let [time, zone] = next.as_slice()
        && tokens::is(&tokens[*time], "time")
        && tokens::is(&tokens[*zone], "zone")
    {
        tokens[*time].token = Token::make_word("timezone", None);
        tokens.remove(*zone);
    }
}

/// `trim(LEADING FROM text)` cuts blanks off: the grammar wants it said.
fn name_blanks(tokens: &mut Vec<TokenWithSpan>) {
    let is_side = |token: &TokenWithSpan| {
        ["both", "leading", "trailing"]
            .iter()
            .any(|word| tokens::is(token, word))
    };
    let mut found = Vec::new();
    for at in (0..tokens.len()).filter(|at| tokens::is(&tokens[*at], "trim")) {
        let next: Vec<usize> = tokens::solid(tokens, at + 1).take(3).collect();
        if let [open, first, second] = next.as_slice()
            && tokens[*open].token == Token::LParen
        {
            let from = if is_side(&tokens[*first]) { second } else { first };
            if tokens::is(&tokens[*from], "from") {
                found.push(*from);
            }
        }
    }
    for at in found.into_iter().rev() {
        let blank = tokens::made("' ' ", &tokens[at]);
        tokens.splice(at..at, blank);
    }
}

/// A query in parentheses behind EXPLAIN gets options before it: the grammar takes it for them.
fn give_options(tokens: &mut Vec<TokenWithSpan>) {
    let Some(at) = tokens::next_solid(tokens, 0).filter(|at| tokens::is(&tokens[*at], "explain")) else {
        return;
    };
    let next: Vec<usize> = tokens::solid(tokens, at + 1).take(2).collect();
    if let [open, word] = next.as_slice()
        && tokens[*open].token == Token::LParen
        && (tokens[*word].token == Token::LParen
            || ["select", "with", "values", "table"]
                .iter()
                .any(|own| tokens::is(&tokens[*word], own)))
    {
        let options = tokens::made("(FORMAT TEXT) ", &tokens[*open]);
        tokens.splice(*open..*open, options);
    }
}

/// Lets a COPY end where it ends: the grammar takes what follows its semicolon for its file.
fn end_copy(tokens: &mut Vec<TokenWithSpan>) {
    let is_space = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    let first = tokens.iter().find(|token| !is_space(token));
    let is_copy = first.is_some_and(|token| word::is(&token.token, "copy"));
    let last = tokens.iter().rposition(|token| !is_space(token));
    if let (true, Some(last)) = (is_copy, last)
        && tokens[last].token == Token::SemiColon
    {
        tokens.truncate(last);
    }
}

/// Leaves out what the grammar does not know and what means nothing here: `DEFERRABLE` of transactions, because those that only read
/// never wait for a snapshot that is safe.
fn plainer(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is = tokens::is;
    let has_modes = |token: &TokenWithSpan| ["begin", "start", "set"].iter().any(|word| is(token, word));
    if !tokens.iter().any(|token| is(token, "deferrable")) {
        return tokens;
    }
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let (mut begins, mut removes) = (true, false);
    for token in tokens {
        match &token.token {
            Token::Whitespace(_) => {}
            Token::SemiColon => (begins, removes) = (true, false),
            _ if begins => (begins, removes) = (false, has_modes(&token)),
            _ if removes && is(&token, "deferrable") => {
                let last = out
                    .iter()
                    .rposition(|token| !matches!(token.token, Token::Whitespace(_)));
                let stands = |last: &usize| is(&out[*last], "not") || out[*last].token == Token::Comma;
                if let Some(last) = last.filter(stands) {
                    out.truncate(last);
                }
                // `READ WRITE, NOT DEFERRABLE`
                let solid = |token: &TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
                if let Some(last) = out
                    .iter()
                    .rposition(solid)
                    .filter(|last| out[*last].token == Token::Comma)
                {
                    out.truncate(last);
                }
                continue;
            }
            _ => {}
        }
        out.push(token);
    }
    out
}

/// Refuses names of more parts than documents have levels.
fn check_names(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut parts = 0usize;
    for token in tokens {
        match &token.token {
            Token::Period => parts += 1,
            Token::Word(_) | Token::Whitespace(_) => {}
            _ => parts = 0,
        }
        if parts > NAME_PARTS_MAX {
            return fail("54001", "a name has too many parts");
        }
    }
    Ok(())
}

/// Refuses numbers that letters follow at once.
fn check_numbers(tokens: &[TokenWithSpan]) -> Result<()> {
    let follows = |pair: &[TokenWithSpan]| matches!((&pair[0].token, &pair[1].token), (Token::Number(..), Token::Word(word)) if word.quote_style.is_none());
    let is_parted = |token: &&TokenWithSpan| matches!(&token.token, Token::Number(digits, _) if digits.contains('_'));
    if let Some(token) = tokens.iter().find(is_parted) {
        let message = format!("trailing junk after numeric literal at \"{}\"", token.token);
        return fail("42601", message);
    }
    match tokens.windows(2).find(|pair| follows(pair)) {
        Some(pair) => fail(
            "42601",
            format!(
                "trailing junk after numeric literal at \"{}{}\"",
                pair[0].token, pair[1].token
            ),
        ),
        None => Ok(()),
    }
}

/// What the grammar's library says was found where something else is expected, and at which line and column.
fn placed(message: &str) -> (&str, Option<(usize, usize)>) {
    let Some((said, place)) = message.rsplit_once(" at Line: ") else {
        return (message, None);
    };
    let (line, column) = place.split_once(", Column: ").unwrap_or((place, ""));
    (said, line.parse().ok().zip(column.trim().parse().ok()))
}

/// What is said of a statement that the grammar refuses because it is a command that there is not.
fn unknown(error: &ParserError, text: &str) -> Option<Error> {
    let ParserError::ParserError(message) = error else {
        return None;
    };
    let command = commands::missing_at(text, placed(message).1)?;
    unsupported::<()>(command).err()
}

/// What is said of a text that the grammar refuses. An empty text stands for one that no client wrote: the error names no place then.
fn refused(error: ParserError, text: &str) -> Error {
    match error {
        ParserError::RecursionLimitExceeded => crate::error::error("54001", "statement nests too deep"),
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => {
            if let Some(what) = message.strip_prefix(NOT_SUPPORTED) {
                return crate::error::error("0A000", format!("{what} is not supported"));
            }
            let (said, place) = placed(&message);
            let place = place.and_then(|(line, column)| crate::error::position_of(text, line, column));
            let (expected, found) = said.split_once(", found: ").unwrap_or((said, ""));
            let shown = match found {
                "" => format!("syntax error: {said}"),
                "EOF" => "syntax error at end of input".to_owned(),
                found => format!("syntax error at or near \"{found}\""),
            };
            let error = crate::error::error("42601", shown);
            let error = match found.is_empty() {
                true => error,
                false => crate::error::with(error, &[(crate::error::Field::Detail, expected)]),
            };
            match (found, place) {
                ("EOF", _) if !text.is_empty() => crate::error::at(error, text.chars().count() + 1),
                (_, Some(place)) => crate::error::at(error, place),
                _ => error,
            }
        }
    }
}
