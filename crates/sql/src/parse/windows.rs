//! Forms that the grammar's library does not read, written as ones that it does: `EXCLUDE` of frames, `ROWS FROM` and `FROM ONLY`.

use super::dialect::{EXCLUDE, ROWS_FROM};
use super::tokens::{is, made, solid};
use crate::types::names;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// What follows `EXCLUDE` at a place, if it is one of frames: its name, and the place of the parenthesis behind it.
fn exclusion(tokens: &[TokenWithSpan], at: usize) -> Option<(&'static str, usize)> {
    let next: Vec<usize> = solid(tokens, at + 1).take(3).collect();
    let word = |n: usize, word: &str| next.get(n).is_some_and(|at| is(&tokens[*at], word));
    let closes = |n: usize| next.get(n).filter(|at| tokens[**at].token == Token::RParen).copied();
    match () {
        () if word(0, "current") && word(1, "row") => Some(("current", closes(2)?)),
        () if word(0, "no") && word(1, "others") => Some(("nothing", closes(2)?)),
        () if word(0, "group") => Some(("group", closes(1)?)),
        () if word(0, "ties") => Some(("ties", closes(1)?)),
        () => None,
    }
}

/// Where the frame begins in whose parentheses a place lies, and whether rows are ordered before it.
fn frame(tokens: &[TokenWithSpan], at: usize) -> Option<(usize, bool)> {
    let (mut depth, mut begin, mut ordered) = (0usize, None, false);
    for at in (0..at).rev() {
        match &tokens[at].token {
            Token::RParen => depth += 1,
            Token::LParen if depth == 0 => break,
            Token::LParen => depth -= 1,
            _ if depth > 0 => {}
            _ if ["rows", "range", "groups"].iter().any(|word| is(&tokens[at], word)) => begin = Some(at),
            _ if begin.is_some() && is(&tokens[at], "order") => ordered = true,
            _ => {}
        }
    }
    begin.map(|begin| (begin, ordered))
}

/// Moves what a frame excludes into a call at the end of the window's order.
pub(super) fn name_exclusions(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        if is(&tokens[at], "exclude")
            && let Some((what, end)) = exclusion(tokens, at)
            && let Some((begin, ordered)) = frame(tokens, at)
        {
            tokens.drain(at..end);
            let before = if ordered { "," } else { "ORDER BY" };
            let text = format!("{before} \"{EXCLUDE}\"('{what}') ");
            let call = made(&text, &tokens[begin]);
            tokens.splice(begin..begin, call);
        }
        at += 1;
    }
}

/// Puts parentheses around literals that frames begin or end so far from, which the grammar takes for intervals otherwise.
pub(super) fn wrap_offsets(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        if (is(&tokens[at], "preceding") || is(&tokens[at], "following"))
            && let Some(from) = offset_before(tokens, at)
        {
            let span = tokens[at].span;
            let token = |token: Token| TokenWithSpan { token, span };
            tokens.insert(at, token(Token::RParen));
            tokens.insert(from, token(Token::LParen));
            at += 2;
        }
        at += 1;
    }
}

/// Where the offset begins that ends at a place, if that is a literal.
fn offset_before(tokens: &[TokenWithSpan], end: usize) -> Option<usize> {
    let mut depth = 0usize;
    let begins = (0..end).rev().find(|at| {
        match tokens[*at].token {
            Token::RParen => depth += 1,
            Token::LParen if depth > 0 => depth -= 1,
            _ => {}
        }
        let words = ["between", "and", "rows", "range", "groups"];
        depth == 0 && words.iter().any(|word| is(&tokens[*at], word))
    })?;
    let from = solid(tokens, begins + 1).next().filter(|from| *from < end)?;
    matches!(tokens[from].token, Token::SingleQuotedString(_)).then_some(from)
}

/// Writes `ROWS FROM (` as the beginning of a call.
pub(super) fn name_rows_from(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        if is(&tokens[at], "rows")
            && let [from, open] = solid(tokens, at + 1).take(2).collect::<Vec<_>>()[..]
            && is(&tokens[from], "from")
            && tokens[open].token == Token::LParen
        {
            tokens[at].token = Token::make_word(ROWS_FROM, Some('"'));
            tokens.drain(at + 1..open);
        }
        at += 1;
    }
}

/// Whether a word stands behind ALTER, where ONLY is known.
fn is_altered(tokens: &[TokenWithSpan], at: usize) -> bool {
    let before = (0..at)
        .rev()
        .find(|at| !matches!(tokens[*at].token, Token::Whitespace(_)));
    before.is_some_and(|before| is(&tokens[before], "alter"))
}

/// Notes `ONLY` before the name of a table in that name, so that it is known of partitioned tables ([`names::only`]). Views keep their queries as texts: there
/// it is left out.
pub(super) fn note_only(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.iter().any(|token| is(token, "only")) {
        return;
    }
    let creates = tokens.iter().any(|token| is(token, "create"));
    let is_view = creates && tokens.iter().any(|token| is(token, "view"));
    let is_index = creates && tokens.iter().any(|token| is(token, "index"));
    let mut at = 0;
    while at < tokens.len() {
        let next: Vec<usize> = solid(tokens, at + 1).take(2).collect();
        if ["from", "join", "update", "table", "truncate"]
            .iter()
            .any(|word| is(&tokens[at], word))
            | (is_index && is(&tokens[at], "on"))
            && let [only, table] = next[..]
            && is(&tokens[only], "only")
            && matches!(tokens[table].token, Token::Word(_))
            && !is_altered(tokens, at)
        {
            if !is_view {
                mark(tokens, table);
            }
            tokens.drain(only..table);
        }
        at += 1;
    }
}

/// Marks the last part of the name that begins at a place.
fn mark(tokens: &mut [TokenWithSpan], name: usize) {
    let mut last = name;
    let parts: Vec<usize> = solid(tokens, name + 1).take(6).collect();
    for pair in parts.chunks_exact(2) {
        if tokens[pair[0]].token != Token::Period || !matches!(tokens[pair[1]].token, Token::Word(_)) {
            break;
        }
        last = pair[1];
    }
    if let Token::Word(word) = &tokens[last].token {
        let own = names::folded(&word.value, word.quote_style);
        tokens[last].token = Token::make_word(&names::only(&own), Some('"'));
    }
}
