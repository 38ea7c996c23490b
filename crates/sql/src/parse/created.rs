//! Tables and views of queries as the grammar's library does not read them: names of columns before the query of CREATE TABLE AS, `WITH NO DATA` behind
//! it, CREATE RECURSIVE VIEW, and TABLESPACE.

use super::tokens::{closing, is, next_solid, solid, text_of};
use crate::error::fail;
use nestor_model::Result;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Whitespace};

/// What the rows of a query are called that are not wanted.
pub(crate) const NO_ROWS: &str = "rows without data";
/// What the rows of a query are called whose columns get names.
const NAMED: &str = "rows with names";

/// Spells them out.
pub(super) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let has = |word: &str| tokens.iter().any(|token| is(token, word));
    let wanted = has("create") && (has("table") && has("as") || has("recursive") && has("view"));
    if !wanted {
        return;
    }
    let is_end = |token: &TokenWithSpan| token.token == Token::SemiColon;
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for statement in tokens.split_inclusive(is_end) {
        let (body, end) = match statement.split_last() {
            Some((last, body)) if is_end(last) => (body, Some(last)),
            _ => (statement, None),
        };
        match recursive_view(body).or_else(|| table_as(body)) {
            Some(text) => {
                let span = body
                    .first()
                    .map(|token| token.span)
                    .unwrap_or(sqlparser::tokenizer::Span::empty());
                let made = Tokenizer::new(&super::Sql, &text).tokenize().unwrap_or_default();
                out.extend(made.into_iter().map(|token| TokenWithSpan::new(token, span)));
            }
            None => out.extend_from_slice(body),
        }
        out.extend(end.cloned());
    }
    *tokens = out;
}

/// Leaves out `TABLESPACE pg_default` of tables and indexes, which is where everything is.
///
/// Errors: 42704 for others.
pub(super) fn leave_out_tablespaces(tokens: &mut [TokenWithSpan]) -> Result<()> {
    for at in 0..tokens.len() {
        if !is(&tokens[at], "tablespace") {
            continue;
        }
        let before = (0..at)
            .rev()
            .find(|at| !matches!(tokens[*at].token, Token::Whitespace(_)));
        let Some(name) = next_solid(tokens, at + 1).filter(|_| {
            let is_clause = before.is_some_and(|before| tokens[before].token == Token::RParen);
            is_clause
                && solid(tokens, 0)
                    .next()
                    .is_some_and(|first| is(&tokens[first], "create"))
        }) else {
            continue;
        };
        let Token::Word(word) = &tokens[name].token else {
            continue;
        };
        if word.value != "pg_default" {
            return fail("42704", format!("tablespace \"{}\" does not exist", word.value));
        }
        for gone in [at, name] {
            tokens[gone].token = Token::Whitespace(Whitespace::Space);
        }
    }
    Ok(())
}

/// `CREATE RECURSIVE VIEW name (columns) AS query` is a view of WITH RECURSIVE.
fn recursive_view(body: &[TokenWithSpan]) -> Option<String> {
    let places: Vec<usize> = solid(body, 0).take(12).collect();
    let word = |n: usize, word: &str| places.get(n).is_some_and(|at| is(&body[*at], word));
    if !word(0, "create") {
        return None;
    }
    let at = (1..5).find(|n| word(*n, "recursive") && word(n + 1, "view"))?;
    let open = (at + 2..places.len()).find(|n| body[places[*n]].token == Token::LParen)?;
    let close = closing(body, places[open])?;
    let behind = next_solid(body, close + 1).filter(|behind| is(&body[*behind], "as"))?;
    let (before, name) = (
        text_of(&body[..places[at]]),
        text_of(&body[places[at + 2]..places[open]]),
    );
    let columns = text_of(&body[places[open] + 1..close]);
    let last = text_of(&body[places[open - 1]..=places[open - 1]]);
    let query = text_of(&body[behind + 1..]);
    Some(format!(
        "{before} VIEW {name} AS WITH RECURSIVE {last} ({columns}) AS ({query}) SELECT {columns} FROM {last}"
    ))
}

/// CREATE TABLE AS with names of columns, or with the words about its rows.
fn table_as(body: &[TokenWithSpan]) -> Option<String> {
    let places: Vec<usize> = solid(body, 0).collect();
    let word = |n: usize, word: &str| places.get(n).is_some_and(|at| is(&body[*at], word));
    if !word(0, "create") {
        return None;
    }
    let table = (1..4).find(|n| word(*n, "table"))?;
    // The name and what stands before it are words and dots.
    let is_of_name = |n: &usize| matches!(body[places[*n]].token, Token::Word(_) | Token::Period);
    let behind = (table + 1..places.len()).find(|n| !is_of_name(n) || word(*n, "as"))?;
    let mut names = None;
    let mut at = behind;
    if body[places[behind]].token == Token::LParen {
        let close = closing(body, places[behind])?;
        let listed = &body[places[behind] + 1..close];
        let is_list = solid(listed, 0).enumerate().all(|(n, at)| match listed[at].token {
            Token::Word(_) => n % 2 == 0,
            Token::Comma => n % 2 == 1,
            _ => false,
        });
        if !is_list {
            return None;
        }
        names = Some(text_of(listed));
        at = (behind..places.len()).find(|n| places[*n] > close)?;
    }
    // ON COMMIT and the like may stand before the query.
    let query = (at..places.len()).find(|n| word(*n, "as"))?;
    let count = places.len();
    let says = |words: &[&str]| {
        count > query + words.len()
            && words
                .iter()
                .enumerate()
                .all(|(n, own)| word(count - words.len() + n, own))
    };
    let (mut end, mut no_rows) = (body.len(), false);
    if says(&["with", "no", "data"]) {
        (end, no_rows) = (places[count - 3], true);
    } else if says(&["with", "data"]) {
        end = places[count - 2];
    }
    if names.is_none() && end == body.len() {
        return None;
    }
    let head = text_of(&body[..places[behind]]);
    let between = text_of(&body[places[at]..places[query]]);
    let mut rows = text_of(&body[places[query] + 1..end]);
    if rows
        .trim_start()
        .get(..5)
        .is_some_and(|first| first.eq_ignore_ascii_case("table"))
    {
        rows = format!("SELECT * FROM {}", &rows.trim_start()[5..]);
    }
    if let Some(names) = names {
        rows = format!("SELECT * FROM ({rows}) AS \"{NAMED}\" ({names})");
    }
    if no_rows {
        rows = format!("SELECT * FROM ({rows}) AS \"{NO_ROWS}\" LIMIT 0");
    }
    Some(format!("{head} {between} AS {rows}"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn tables_and_views_of_queries_are_spelled_out() {
        for (text, same) in [
            (
                "CREATE TEMP TABLE a.b (x, \"Y\") ON COMMIT DROP AS SELECT 1, 2; SELECT 1",
                "CREATE TEMP TABLE a.b ON COMMIT DROP AS SELECT * FROM (SELECT 1, 2) AS \"rows with names\" (x, \"Y\"); SELECT 1",
            ),
            ("CREATE TABLE t AS SELECT 1 WITH DATA", "CREATE TABLE t AS SELECT 1"),
            (
                "CREATE TABLE t AS TABLE s WITH NO DATA",
                "CREATE TABLE t AS SELECT * FROM (SELECT * FROM s) AS \"rows without data\" LIMIT 0",
            ),
            (
                "CREATE OR REPLACE RECURSIVE VIEW s.v (n) AS VALUES (1)",
                "CREATE OR REPLACE VIEW s.v AS WITH RECURSIVE v (n) AS (VALUES (1)) SELECT n FROM v",
            ),
        ] {
            assert_eq!(
                super::super::parse(text).unwrap(),
                super::super::parse(same).unwrap(),
                "{text}"
            );
        }
        let plain = "CREATE TABLE t (a int, b text GENERATED ALWAYS AS (a) STORED)";
        assert!(super::super::parse(plain).is_ok());
    }
}
