//! Subscripts of what is assigned to, which the grammar's library does not read: `SET a[2] = …`, `INSERT INTO t (a[1])`. Their text is the last
//! part of the column's name, one that no statement has unless it is quoted.

use super::columns::written;
use super::tokens::{is, next_solid, solid};
use crate::error::fail;
use nestor_model::Result;
use sqlparser::ast::{AccessExpr, Expr, ObjectName};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Begins such a part.
const NAME: &str = "subscripts: ";

/// Names the subscripts of an assigned column that begins at a place; the place behind it.
fn column(tokens: &mut Vec<TokenWithSpan>, at: usize) -> usize {
    let places: Vec<usize> = solid(tokens, at).take(9).collect();
    let mut last = 0;
    loop {
        let is_word = |n: usize| {
            places
                .get(n)
                .is_some_and(|at| matches!(tokens[*at].token, Token::Word(_)))
        };
        if !is_word(last) {
            return at + 1;
        }
        match places.get(last + 1) {
            Some(dot) if tokens[*dot].token == Token::Period && is_word(last + 2) => last += 2,
            _ => break,
        }
    }
    let Some(open) = places.get(last + 1).filter(|at| tokens[**at].token == Token::LBracket) else {
        return places[last] + 1;
    };
    // All brackets that follow each other.
    let (mut depth, mut end, mut place) = (0usize, *open, *open);
    while place < tokens.len() {
        match tokens[place].token {
            Token::LBracket | Token::LParen => depth += 1,
            Token::RBracket | Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            end = place;
            match next_solid(tokens, place + 1) {
                Some(next) if tokens[next].token == Token::LBracket => place = next,
                _ => break,
            }
        } else {
            place += 1;
        }
    }
    if depth > 0 {
        return places[last] + 1;
    }
    let text: String = tokens[*open..=end].iter().map(|token| written(&token.token)).collect();
    let span = tokens[*open].span;
    let made = [Token::Period, Token::make_word(&format!("{NAME}{text}"), Some('"'))];
    tokens.splice(*open..=end, made.map(|token| TokenWithSpan::new(token, span)));
    places[last] + 3
}

/// Names the subscripts of a list of columns within parentheses that open at a place.
fn listed(tokens: &mut Vec<TokenWithSpan>, open: usize) {
    let mut at = open + 1;
    while let Some(place) = next_solid(tokens, at) {
        at = column(tokens, place);
        match next_solid(tokens, at) {
            Some(comma) if tokens[comma].token == Token::Comma => at = comma + 1,
            _ => return,
        }
    }
}

/// Names the subscripts of assignments behind SET.
fn assigned(tokens: &mut Vec<TokenWithSpan>, set: usize) {
    let ends = ["from", "where", "returning", "when"];
    let mut at = set + 1;
    loop {
        let Some(place) = next_solid(tokens, at) else { return };
        match tokens[place].token {
            Token::LParen => listed(tokens, place),
            _ => _ = column(tokens, place),
        }
        // Behind the next comma that is none of its value's.
        let (mut depth, mut next) = (0usize, None);
        for (at, token) in tokens.iter().enumerate().skip(place) {
            match &token.token {
                Token::LParen | Token::LBracket => depth += 1,
                Token::RParen | Token::RBracket if depth == 0 => return,
                Token::RParen | Token::RBracket => depth -= 1,
                Token::SemiColon => return,
                Token::Comma if depth == 0 => {
                    next = Some(at + 1);
                    break;
                }
                _ if depth == 0 && ends.iter().any(|word| is(token, word)) => return,
                _ => {}
            }
        }
        match next {
            Some(next) => at = next,
            None => return,
        }
    }
}

/// Names all of them.
pub(super) fn name_all(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.iter().any(|token| token.token == Token::LBracket) {
        return;
    }
    let mut at = 0;
    while at < tokens.len() {
        if is(&tokens[at], "set") {
            assigned(tokens, at);
        } else if is(&tokens[at], "insert") {
            // INSERT INTO s.t AS x (, and INSERT ( of MERGE.
            let places: Vec<usize> = solid(tokens, at + 1).take(8).collect();
            let open = places
                .iter()
                .find(|at| !matches!(tokens[**at].token, Token::Word(_) | Token::Period));
            let lists = |open: &usize| {
                let before = places.iter().take_while(|at| *at < open);
                !before.into_iter().any(|at| is(&tokens[*at], "values"))
            };
            let open = open.filter(|open| lists(open));
            if let Some(open) = open.filter(|at| tokens[**at].token == Token::LParen) {
                listed(tokens, *open);
            }
        }
        at += 1;
    }
}

/// A column's name without its subscripts, and these.
///
/// Errors: 42601.
pub fn taken(name: &ObjectName) -> Result<(ObjectName, Vec<AccessExpr>)> {
    let text = match name.0.last().and_then(|part| part.as_ident()) {
        Some(last) if last.quote_style.is_some() => last.value.strip_prefix(NAME),
        _ => None,
    };
    let Some(text) = text else {
        return Ok((name.clone(), Vec::new()));
    };
    let plain = ObjectName(name.0[..name.0.len() - 1].to_vec());
    match super::expression(&format!("a{text}"))? {
        Expr::CompoundFieldAccess { access_chain, .. } => Ok((plain, access_chain)),
        _ => fail("42601", format!("syntax error at or near \"{text}\"")),
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::ast::{AssignmentTarget, Statement};

    #[test]
    fn subscripts_stand_in_names() {
        let text = "UPDATE t SET a[1][2:3] = b[1], (c.d['k'], e) = (x[1], 2), f = ARRAY[1, 2] WHERE g[1] = 2";
        let all = super::super::parse(text).unwrap();
        let Some(Statement::Update(update)) = all.first() else {
            panic!("{all:?}");
        };
        let counts: Vec<usize> = update
            .assignments
            .iter()
            .flat_map(|own| match &own.target {
                AssignmentTarget::ColumnName(name) => vec![name.clone()],
                AssignmentTarget::Tuple(names) => names.clone(),
            })
            .map(|name| super::taken(&name).unwrap().1.len())
            .collect();
        assert_eq!(counts, [2, 1, 0, 0]);
        let all = super::super::parse("INSERT INTO s.t AS x (a[1], b) SELECT c[1], d FROM e").unwrap();
        let Some(Statement::Insert(insert)) = all.first() else {
            panic!("{all:?}");
        };
        assert_eq!(super::taken(&insert.columns[0]).unwrap().1.len(), 1);
    }
}
