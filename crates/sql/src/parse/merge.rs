//! `INSERT DEFAULT VALUES` of MERGE, which the grammar's library does not read, as `INSERT VALUES (DEFAULT)`: columns that are given no value
//! have their defaults as well.

use super::tokens::{is, solid};
use sqlparser::tokenizer::{Token, TokenWithSpan};

const WORDS: [&str; 4] = ["then", "insert", "default", "values"];

/// Writes every `THEN INSERT DEFAULT VALUES` in the form that is read.
pub(super) fn give_defaults(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        let places: Vec<usize> = match is(&tokens[at], WORDS[0]) {
            true => solid(tokens, at).take(WORDS.len()).collect(),
            false => Vec::new(),
        };
        if places.len() == WORDS.len() && places.iter().zip(WORDS).all(|(at, word)| is(&tokens[*at], word)) {
            let (default, values) = (tokens[places[2]].clone(), tokens[places[3]].clone());
            let made = |token| TokenWithSpan {
                token,
                span: values.span,
            };
            let row = [made(Token::LParen), default, made(Token::RParen)];
            tokens.splice(places[2]..=places[3], std::iter::once(values.clone()).chain(row));
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn default_values_are_a_row_of_a_default() {
        let merge = |insert: &str| format!("MERGE INTO t USING s ON true WHEN NOT MATCHED THEN {insert}");
        let read = |insert: &str| super::super::parse(&merge(insert)).unwrap();
        assert_eq!(read("INSERT  DEFAULT\nVALUES"), read("INSERT VALUES (DEFAULT)"));
        assert!(super::super::parse(&merge("INSERT \"DEFAULT\" VALUES")).is_err());
    }
}
