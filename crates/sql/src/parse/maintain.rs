//! ANALYZE, VACUUM, CHECKPOINT and REINDEX.

use sqlparser::ast::{Ident, ObjectName};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// ANALYZE
    Analyze,
    /// VACUUM
    Vacuum,
    /// CHECKPOINT
    Checkpoint,
    /// REINDEX, of which nothing is read.
    Reindex,
}

impl Kind {
    /// The tag of the command.
    pub fn tag(self) -> &'static str {
        match self {
            Self::Analyze => "ANALYZE",
            Self::Vacuum => "VACUUM",
            Self::Checkpoint => "CHECKPOINT",
            Self::Reindex => "REINDEX",
        }
    }
}

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Maintain {
    /// What is done.
    pub verb: Kind,
    /// ANALYZE, or VACUUM with it.
    pub analyzes: bool,
    /// The client is told of each table.
    pub tells: bool,
    /// Space is to be given back to the file system.
    pub gives_back: bool,
    /// The tables, with columns; none for all.
    pub tables: Vec<(ObjectName, Vec<Ident>)>,
}

/// The words that begin these statements.
pub(super) const VERBS: [&str; 5] = ["ANALYZE", "ANALYSE", "VACUUM", "CHECKPOINT", "REINDEX"];

pub(super) type Parsed<T> = std::result::Result<T, ParserError>;

fn refused<T>(message: String) -> Parsed<T> {
    Err(ParserError::ParserError(message))
}

fn word(parser: &Parser<'_>) -> String {
    match parser.peek_token().token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_uppercase(),
        _ => String::new(),
    }
}

/// Reads the statement.
pub(super) fn read(parser: &mut Parser<'_>) -> Parsed<Maintain> {
    let verb = match word(parser).as_str() {
        "VACUUM" => Kind::Vacuum,
        "CHECKPOINT" => Kind::Checkpoint,
        "REINDEX" => Kind::Reindex,
        _ => Kind::Analyze,
    };
    parser.next_token();
    let mut out = Maintain {
        verb,
        analyzes: verb == Kind::Analyze,
        tells: false,
        gives_back: false,
        tables: Vec::new(),
    };
    match verb {
        Kind::Checkpoint => return Ok(out),
        Kind::Reindex => {
            while parser.next_token().token != Token::EOF {}
            return Ok(out);
        }
        Kind::Analyze | Kind::Vacuum => {}
    }
    if parser.consume_token(&Token::LParen) {
        loop {
            option(parser, &mut out)?;
            if !parser.consume_token(&Token::Comma) {
                break;
            }
        }
        parser.expect_token(&Token::RParen)?;
    } else {
        loop {
            match (word(parser).as_str(), verb) {
                ("VERBOSE", _) => out.tells = true,
                ("ANALYZE" | "ANALYSE", Kind::Vacuum) => out.analyzes = true,
                ("FULL", Kind::Vacuum) => out.gives_back = true,
                // There is nothing to freeze.
                ("FREEZE", Kind::Vacuum) => {}
                _ => break,
            }
            parser.next_token();
        }
    }
    if parser.peek_token().token != Token::EOF {
        out.tables = parser.parse_comma_separated(|parser| {
            let name = parser.parse_object_name(false)?;
            let mut columns = Vec::new();
            if parser.consume_token(&Token::LParen) {
                columns = parser.parse_comma_separated(Parser::parse_identifier)?;
                parser.expect_token(&Token::RParen)?;
            }
            Ok((name, columns))
        })?;
    }
    Ok(out)
}

/// An option in parentheses, which may be turned on or off.
fn option(parser: &mut Parser<'_>, out: &mut Maintain) -> Parsed<()> {
    let name = word(parser);
    parser.next_token();
    let on = match word(parser).as_str() {
        "TRUE" | "ON" => {
            parser.next_token();
            true
        }
        "FALSE" | "OFF" => {
            parser.next_token();
            false
        }
        _ => true,
    };
    match (name.as_str(), out.verb) {
        ("VERBOSE", _) => out.tells = on,
        // Nobody is waited for.
        ("SKIP_LOCKED", _) => {}
        ("ANALYZE", Kind::Vacuum) => out.analyzes = on,
        ("FULL", Kind::Vacuum) => out.gives_back = on,
        ("FREEZE", Kind::Vacuum) => {}
        (name, verb) => {
            return refused(format!(
                "unrecognized {} option \"{}\"",
                verb.tag(),
                name.to_lowercase()
            ));
        }
    }
    Ok(())
}
