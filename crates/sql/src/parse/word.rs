//! Words among tokens.

use sqlparser::tokenizer::Token;

/// Whether a token is this word, without quotes.
pub(super) fn is(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(own) if own.quote_style.is_none() && own.value.eq_ignore_ascii_case(word))
}

/// An unquoted word in capitals; an empty one for what is none.
pub(super) fn word(token: &Token) -> String {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_uppercase(),
        _ => String::new(),
    }
}
