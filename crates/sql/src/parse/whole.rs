//! `TABLE name` as a statement, which the grammar knows in parentheses only: it becomes `SELECT * FROM name`.

use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Spells such statements out.
pub(super) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let is_table = |token: &Token| {
        let Token::Word(word) = token else { return false };
        word.quote_style.is_none() && word.value.eq_ignore_ascii_case("table")
    };
    let mut begins = true;
    let mut at = 0;
    while at < tokens.len() {
        let span = tokens[at].span;
        match &tokens[at].token {
            Token::Whitespace(_) => {}
            Token::SemiColon => begins = true,
            token if begins && is_table(token) => {
                let words = [Token::make_keyword("SELECT"), Token::Mul, Token::make_keyword("FROM")];
                tokens.splice(at..=at, words.map(|token| TokenWithSpan::new(token, span)));
                begins = false;
            }
            _ => begins = false,
        }
        at += 1;
    }
}
