//! `LIKE` among the columns of a CREATE TABLE, which the grammar's library reads alone only: a column whose name is its text, which no statement has
//! unless it is quoted.

use super::columns::written;
use super::dialect::Sql;
use super::tokens::{is, next_solid, solid};
use crate::error::fail;
use nestor_model::Result;
use sqlparser::ast::{ColumnDef, ObjectName};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

/// Begins the name of such a column.
const NAME: &str = "columns of a table: ";

/// What is taken of another table besides its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Like {
    /// The table.
    pub table: ObjectName,
    /// What is said of its parts.
    pub comments: bool,
    /// Its CHECK constraints.
    pub constraints: bool,
    /// The defaults of its columns.
    pub defaults: bool,
    /// How columns are computed.
    pub generated: bool,
    /// That columns count.
    pub identity: bool,
    /// Its keys and indexes.
    pub indexes: bool,
}

/// Makes columns of them.
pub(super) fn name_all(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.iter().any(|token| is(token, "like")) {
        return;
    }
    let mut at = 0;
    while at < tokens.len() {
        if is(&tokens[at], "create")
            && let Some(open) = list(tokens, at)
        {
            name_within(tokens, open);
        }
        at += 1;
    }
}

/// Where the columns of the CREATE TABLE begin that begins at a place.
fn list(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    let mut is_table = false;
    for place in solid(tokens, at + 1).take(14) {
        match &tokens[place].token {
            Token::Word(_) => is_table |= is(&tokens[place], "table"),
            Token::Period => {}
            Token::LParen => return is_table.then_some(place),
            _ => return None,
        }
    }
    None
}

fn name_within(tokens: &mut Vec<TokenWithSpan>, open: usize) {
    let mut at = open + 1;
    loop {
        let Some(first) = next_solid(tokens, at) else { return };
        // To the comma behind it, or the end of the list.
        let mut depth = 0usize;
        let end = (first..tokens.len()).find(|at| {
            match tokens[*at].token {
                Token::LParen => depth += 1,
                Token::RParen if depth == 0 => return true,
                Token::RParen => depth -= 1,
                Token::Comma => return depth == 0,
                _ => {}
            }
            false
        });
        let Some(mut end) = end else { return };
        if is(&tokens[first], "like") {
            let text: String = tokens[first + 1..end]
                .iter()
                .map(|token| written(&token.token))
                .collect();
            let span = tokens[first].span;
            let made = [
                Token::make_word(&format!("{NAME}{}", text.trim()), Some('"')),
                Token::Whitespace(sqlparser::tokenizer::Whitespace::Space),
                Token::make_keyword("INT"),
            ];
            let count = made.len();
            tokens.splice(first..end, made.map(|token| TokenWithSpan::new(token, span)));
            end = first + count;
        }
        match tokens[end].token {
            Token::Comma => at = end + 1,
            _ => return,
        }
    }
}

/// What a column stands for, if it is such a one.
///
/// Errors: 42601.
pub fn of(def: &ColumnDef) -> Result<Option<Like>> {
    let text = match def.name.quote_style {
        Some(_) => def.name.value.strip_prefix(NAME),
        None => None,
    };
    let Some(text) = text else { return Ok(None) };
    let tokens = Tokenizer::new(&Sql, text).tokenize().unwrap_or_default();
    match read(&mut Parser::new(&Sql).with_tokens(tokens)) {
        Ok(like) => Ok(Some(like)),
        Err(error) => fail("42601", format!("syntax error: {error}")),
    }
}

fn read(parser: &mut Parser<'_>) -> std::result::Result<Like, ParserError> {
    let mut out = Like {
        table: parser.parse_object_name(false)?,
        comments: false,
        constraints: false,
        defaults: false,
        generated: false,
        identity: false,
        indexes: false,
    };
    loop {
        let word = |parser: &mut Parser<'_>| match parser.next_token().token {
            Token::Word(word) if word.quote_style.is_none() => word.value.to_uppercase(),
            Token::EOF => String::new(),
            other => other.to_string(),
        };
        let takes = match word(parser).as_str() {
            "" => return Ok(out),
            "INCLUDING" => true,
            "EXCLUDING" => false,
            other => return Err(ParserError::ParserError(format!("unexpected {other}"))),
        };
        let all = [
            ("COMMENTS", &mut out.comments),
            ("CONSTRAINTS", &mut out.constraints),
            ("DEFAULTS", &mut out.defaults),
            ("GENERATED", &mut out.generated),
            ("IDENTITY", &mut out.identity),
            ("INDEXES", &mut out.indexes),
        ];
        let said = word(parser);
        // Of these there is nothing to take.
        let is_nothing = matches!(said.as_str(), "COMPRESSION" | "STATISTICS" | "STORAGE");
        let mut is_known = is_nothing || said == "ALL";
        for (name, flag) in all {
            if said == name || said == "ALL" {
                *flag = takes;
                is_known = true;
            }
        }
        if !is_known {
            return Err(ParserError::ParserError(format!("unexpected {said}")));
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn tables_stand_among_columns() {
        let text = "CREATE TEMP TABLE a.b (LIKE \"X\".y INCLUDING ALL EXCLUDING INDEXES, c int CHECK (c::text LIKE 'x'), LIKE z, d int)";
        let all = super::super::parse(text).unwrap();
        let Some(sqlparser::ast::Statement::CreateTable(create)) = all.first() else {
            panic!("{all:?}");
        };
        let likes: Vec<_> = create.columns.iter().map(|def| super::of(def).unwrap()).collect();
        assert!(likes[0].as_ref().is_some_and(|like| like.comments && !like.indexes));
        assert!(likes[1].is_none() && likes[2].is_some() && likes[3].is_none());
        assert!(
            super::super::parse("CREATE TABLE a (LIKE b INCLUDING nothing)").is_ok_and(|all| {
                let Some(sqlparser::ast::Statement::CreateTable(create)) = all.first() else {
                    return false;
                };
                super::of(&create.columns[0]).is_err()
            })
        );
    }
}
