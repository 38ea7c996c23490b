//! The columns that the text of an expression names, and the text with one of them called otherwise. The text is one that the grammar
//! has printed: a condition or a generated column of one table, without subqueries.

use super::dialect::Sql;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, Tokenizer};

/// The column that a token names; `None` for names of functions and types.
fn column(tokens: &[Token], at: usize) -> Option<String> {
    let Token::Word(word) = &tokens[at] else { return None };
    let is_seen = |token: &&Token| !matches!(token, Token::Whitespace(_));
    let before = tokens[..at].iter().rev().find(is_seen);
    let after = tokens[at + 1..].iter().find(is_seen);
    let is_type = match before {
        Some(Token::DoubleColon) => true,
        Some(Token::Word(word)) => word.keyword == Keyword::AS,
        _ => false,
    };
    let is_function = matches!(after, Some(Token::LParen | Token::SingleQuotedString(_)));
    match word.quote_style {
        _ if is_type || is_function => None,
        Some(_) => Some(word.value.clone()),
        None => Some(word.value.to_lowercase()),
    }
}

fn tokens(text: &str) -> Vec<Token> {
    Tokenizer::new(&Sql, text).tokenize().unwrap_or_default()
}

/// A token as it is written.
pub(super) fn written(token: &Token) -> String {
    match token {
        Token::SingleQuotedString(text)
        | Token::EscapedStringLiteral(text)
        | Token::NationalStringLiteral(text)
        | Token::UnicodeStringLiteral(text) => format!("'{}'", text.replace('\'', "''")),
        Token::Word(word) if word.quote_style == Some('"') => format!("\"{}\"", word.value.replace('"', "\"\"")),
        token => token.to_string(),
    }
}

/// What the text of an expression may name a column by: its columns, and words of the grammar.
pub fn columns(text: &str) -> Vec<String> {
    let tokens = tokens(text);
    (0..tokens.len()).filter_map(|at| column(&tokens, at)).collect()
}

/// The text of an expression in which the column `from` is called `to`.
pub fn with_column_renamed(text: &str, from: &str, to: &str) -> String {
    let tokens = tokens(text);
    let new = written(&Token::make_word(to, Some('"')));
    let each = (0..tokens.len()).map(|at| match column(&tokens, at) {
        Some(name) if name == from => new.clone(),
        _ => written(&tokens[at]),
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_told_from_functions_and_types() {
        let renamed = |text: &str| with_column_renamed(text, "date", "day");
        assert_eq!(
            renamed("date > '2020-01-01'::date AND date(x) = \"date\""),
            "\"day\" > '2020-01-01'::date AND date(x) = \"day\""
        );
        assert_eq!(
            renamed("t.DATE <> date '2020-01-01' OR CAST(x AS date) = y"),
            "t.\"day\" <> date '2020-01-01' OR CAST(x AS date) = y"
        );
        assert_eq!(
            renamed("date = E'it\\'s' OR \"a\"\"b\" = 'o''clock'"),
            "\"day\" = 'it''s' OR \"a\"\"b\" = 'o''clock'"
        );
        assert!(columns("a + length(b)").iter().eq(["a", "b"]));
    }
}
