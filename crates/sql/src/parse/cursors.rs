//! FETCH and MOVE as the grammar does not know them: without FROM, with negative numbers, MOVE at all.
//!
//! A MOVE is a FETCH into [`NOWHERE`], which no statement names unless it is quoted.

use sqlparser::tokenizer::{Token, TokenWithSpan};

/// The function that `WHERE CURRENT OF` is a call of, with the name of the cursor.
pub(crate) const CURRENT_OF: &str = "current of cursor";

/// Writes `WHERE CURRENT OF name` as a call.
pub(super) fn name_current(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        if is(&tokens[at].token, &["where"])
            && let [current, of, name] = super::tokens::solid(tokens, at + 1).take(3).collect::<Vec<_>>()[..]
            && is(&tokens[current].token, &["current"])
            && is(&tokens[of].token, &["of"])
            && let Token::Word(word) = &tokens[name].token
        {
            let said = match word.quote_style {
                Some(_) => word.value.clone(),
                None => word.value.to_lowercase(),
            };
            let span = tokens[name].span;
            let made = [
                Token::make_word(CURRENT_OF, Some('"')),
                Token::LParen,
                Token::SingleQuotedString(said),
                Token::RParen,
            ];
            tokens.splice(current..name + 1, made.map(|token| TokenWithSpan::new(token, span)));
        }
        at += 1;
    }
}

/// What a MOVE fetches into.
pub(crate) const NOWHERE: &str = "moved over";

fn is(token: &Token, words: &[&str]) -> bool {
    let Token::Word(word) = token else { return false };
    word.quote_style.is_none() && words.iter().any(|own| word.value.eq_ignore_ascii_case(own))
}

/// Spells out what such statements leave out.
pub(super) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let is_end = |token: &TokenWithSpan| token.token == Token::SemiColon;
    let first = |statement: &[TokenWithSpan]| {
        let mut seen = statement.iter();
        seen.position(|token| !matches!(token.token, Token::Whitespace(_)))
    };
    let begins =
        |statement: &[TokenWithSpan]| first(statement).is_some_and(|at| is(&statement[at].token, &["fetch", "move"]));
    if !tokens.split(is_end).any(begins) {
        return;
    }
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 4);
    for statement in tokens.split_inclusive(is_end) {
        if !begins(statement) {
            out.extend_from_slice(statement);
            continue;
        }
        let (body, end) = match statement.split_last() {
            Some((last, body)) if is_end(last) => (body, Some(last)),
            _ => (statement, None),
        };
        let words = body.iter().filter(|token| !matches!(token.token, Token::Whitespace(_)));
        let mut words: Vec<TokenWithSpan> = words.cloned().collect();
        let moves = is(&words[0].token, &["move"]);
        words[0].token = Token::make_keyword("FETCH");
        let span = words[0].span;
        let new = |token: Token| TokenWithSpan::new(token, span);
        // A sign is a part of the number behind it.
        while let Some(at) = words.windows(2).position(|pair| {
            matches!(
                (&pair[0].token, &pair[1].token),
                (Token::Minus | Token::Plus, Token::Number(..))
            )
        }) {
            let sign = words.remove(at);
            if let (Token::Minus, Token::Number(number, _)) = (sign.token, &mut words[at].token) {
                number.insert(0, '-');
            }
        }
        let named = words.len() - 1;
        let has_from = named > 0 && is(&words[named - 1].token, &["from", "in"]);
        if named > 0 && !has_from && matches!(words[named].token, Token::Word(_)) {
            words.insert(named, new(Token::make_keyword("FROM")));
        }
        if named == 1 || named == 2 && has_from {
            // Only the cursor is named.
            words.insert(1, new(Token::make_keyword("NEXT")));
        }
        if words.len() == 4 && is(&words[1].token, &["forward", "backward"]) {
            words.insert(2, new(Token::Number("1".to_owned(), false)));
        }
        if moves {
            words.push(new(Token::make_keyword("INTO")));
            words.push(new(Token::make_word(NOWHERE, Some('"'))));
        }
        for word in words {
            out.push(word);
            out.push(new(Token::Whitespace(sqlparser::tokenizer::Whitespace::Space)));
        }
        out.extend(end.cloned());
    }
    *tokens = out;
}
