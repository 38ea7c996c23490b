//! CREATE DATABASE, DROP DATABASE, and ALTER DATABASE with settings.

use super::assigned::{self, Assigned};
use super::maintain::Parsed;
use super::word::word;
use sqlparser::ast::Ident;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Databases {
    /// CREATE DATABASE
    Create {
        /// The name.
        name: Ident,
        /// Its options, in lower case, with their values.
        options: Vec<(String, String)>,
    },
    /// ALTER DATABASE … SET and RESET
    Settings {
        /// The name.
        name: Ident,
        /// What sessions begin with.
        assigned: Assigned,
    },
    /// DROP DATABASE
    Drop {
        /// The name.
        name: Ident,
        /// Nothing happens when there is nothing.
        if_exists: bool,
        /// Whoever is connected to it is sent away.
        forced: bool,
    },
}

/// Reads the statement behind its first two words.
pub(super) fn read(parser: &mut Parser<'_>, creates: bool) -> Parsed<Databases> {
    if !creates {
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        let name = parser.parse_identifier()?;
        let _ = parser.parse_keyword(Keyword::WITH);
        let mut forced = false;
        if parser.consume_token(&Token::LParen) {
            match parser.parse_identifier()?.value.to_lowercase().as_str() {
                "force" => forced = true,
                other => {
                    return Err(ParserError::ParserError(format!(
                        "unrecognized DROP DATABASE option \"{other}\""
                    )));
                }
            }
            parser.expect_token(&Token::RParen)?;
        }
        return Ok(Databases::Drop {
            name,
            if_exists,
            forced,
        });
    }
    let name = parser.parse_identifier()?;
    let _ = parser.parse_keyword(Keyword::WITH);
    let mut options = Vec::new();
    while parser.peek_token().token != Token::EOF {
        let mut option = parser.parse_identifier()?.value.to_lowercase();
        if option == "connection" {
            parser.parse_identifier()?;
            option.push_str(" limit");
        }
        let _ = parser.consume_token(&Token::Eq);
        let is_negative = parser.consume_token(&Token::Minus);
        let value = match parser.next_token().token {
            Token::Word(word) => word.value,
            Token::SingleQuotedString(text) => text,
            Token::Number(digits, _) if is_negative => format!("-{digits}"),
            Token::Number(digits, _) => digits,
            other => return parser.expected("a value", sqlparser::tokenizer::TokenWithSpan::wrap(other)),
        };
        options.push((option, value));
    }
    Ok(Databases::Create { name, options })
}

/// Reads ALTER DATABASE behind its first two words.
pub(super) fn alter(parser: &mut Parser<'_>) -> Parsed<Databases> {
    let name = parser.parse_identifier()?;
    let sets = assigned::is_next(parser) && word(&parser.peek_nth_token(1).token) != "TABLESPACE";
    match sets {
        true => assigned::read(parser).map(|assigned| Databases::Settings { name, assigned }),
        false => Err(ParserError::ParserError(format!(
            "{}this form of ALTER DATABASE",
            super::NOT_SUPPORTED
        ))),
    }
}
