//! What ON CONFLICT infers an index from, where the grammar knows columns alone: expressions, classes of operators, and a WHERE. It becomes the
//! name of a constraint that no statement has unless it is quoted.

use super::columns::written;
use super::dialect::Sql;
use super::tokens::{is, solid};
use sqlparser::ast::Expr;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

/// Begins such a name.
const NAME: &str = "index for ON CONFLICT ";

/// What an index is inferred from.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Its parts.
    pub parts: Vec<Expr>,
    /// Rows of which this holds have to be in it.
    pub predicate: Option<Expr>,
}

/// Spells such targets out.
pub(super) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        if is(&tokens[at], "conflict")
            && let Some((from, to)) = target(tokens, at)
        {
            let text: String = tokens[from..to].iter().map(|token| written(&token.token)).collect();
            let span = tokens[from].span;
            let made = [
                Token::make_keyword("ON"),
                Token::make_keyword("CONSTRAINT"),
                Token::make_word(&format!("{NAME}{}", text.trim()), Some('"')),
            ];
            // The words need spaces around them no more than other tokens do.
            tokens.splice(from..to, made.map(|token| TokenWithSpan::new(token, span)));
        }
        at += 1;
    }
}

/// From where to where the target behind `ON CONFLICT` stands, if the grammar does not know it.
fn target(tokens: &[TokenWithSpan], at: usize) -> Option<(usize, usize)> {
    let mut places = solid(tokens, at + 1);
    let from = places.next().filter(|at| tokens[*at].token == Token::LParen)?;
    let (mut depth, mut is_plain, mut last) = (0usize, true, None);
    for place in std::iter::once(from).chain(places) {
        let is_name = matches!(&tokens[place].token, Token::Word(_));
        match &tokens[place].token {
            Token::LParen => {
                depth += 1;
                is_plain &= depth == 1;
            }
            Token::RParen if depth == 0 => return None,
            Token::RParen => depth -= 1,
            _ if depth == 0 && is(&tokens[place], "do") => {
                return (!is_plain).then_some((from, place));
            }
            _ if depth == 0 => is_plain = false,
            Token::Comma => {}
            // Two names beside each other are a column and its class.
            _ => is_plain &= is_name && last != Some(true),
        }
        last = Some(is_name);
        if depth == 0 && tokens[place].token == Token::SemiColon {
            return None;
        }
    }
    None
}

/// What stands in the name of such a constraint.
///
/// Errors: those of the grammar.
pub fn of(name: &str) -> Option<Result<Target, ParserError>> {
    let text = name.strip_prefix(NAME)?;
    Some(read(text))
}

fn read(text: &str) -> Result<Target, ParserError> {
    let tokens = Tokenizer::new(&Sql, text).tokenize()?;
    let mut parser = Parser::new(&Sql).with_tokens(tokens);
    parser.expect_token(&Token::LParen)?;
    let parts = parser.parse_comma_separated(|parser| {
        let part = parser.parse_expr()?;
        // A class of operators.
        if matches!(parser.peek_token().token, Token::Word(_)) {
            parser.parse_object_name(false)?;
        }
        Ok(part)
    })?;
    parser.expect_token(&Token::RParen)?;
    let predicate = match parser.parse_keyword(sqlparser::keywords::Keyword::WHERE) {
        true => Some(parser.parse_expr()?),
        false => None,
    };
    match parser.peek_token().token {
        Token::EOF => Ok(Target { parts, predicate }),
        other => Err(ParserError::ParserError(format!("expected DO, found: {other}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlparser::ast::{ConflictTarget, OnInsert, Statement};

    fn target_of(text: &str) -> Option<Target> {
        let all = super::super::parse(text).unwrap();
        let Statement::Insert(insert) = &all[0] else {
            panic!("another statement")
        };
        match &insert.on {
            Some(OnInsert::OnConflict(conflict)) => match conflict.conflict_target.as_ref()? {
                ConflictTarget::OnConstraint(name) => of(&name.0[0].as_ident().unwrap().value).map(Result::unwrap),
                ConflictTarget::Columns(_) => None,
            },
            _ => None,
        }
    }

    #[test]
    fn targets_that_are_no_columns_are_read() {
        let begin = "INSERT INTO t VALUES (1) ON CONFLICT ";
        for plain in [
            "(a, \"b c\") DO NOTHING",
            "DO NOTHING",
            "ON CONSTRAINT c DO UPDATE SET a = (1)",
        ] {
            assert!(target_of(&format!("{begin}{plain}")).is_none(), "{plain}");
        }
        let found = target_of(&format!(
            "{begin}(lower(a), b) WHERE c = 'x;y' DO UPDATE SET a = 1 WHERE t.a = 2"
        ))
        .unwrap();
        assert_eq!(found.parts.len(), 2);
        assert_eq!(found.predicate.unwrap().to_string(), "c = 'x;y'");
        assert_eq!(
            target_of(&format!("{begin}(a text_ops) DO NOTHING"))
                .unwrap()
                .parts
                .len(),
            1
        );
        assert!(target_of(&format!("{begin}(a) WHERE b DO NOTHING")).is_some());
    }
}
