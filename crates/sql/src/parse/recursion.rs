//! `SEARCH` and `CYCLE` behind a part of WITH RECURSIVE, which the grammar's library does not read: their text is the name of a last column of
//! that part, one that no statement has unless it is quoted.

use super::columns::written;
use super::dialect::Sql;
use super::tokens::{is, next_solid, opening, solid};
use crate::error::fail;
use nestor_model::Result;
use sqlparser::ast::{Expr, Ident};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

/// Begins the name of such a column.
const NAME: &str = "clauses of WITH: ";

/// The clauses behind a part of WITH.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clauses {
    /// `SEARCH`
    pub search: Option<Search>,
    /// `CYCLE`
    pub cycle: Option<Cycle>,
}

/// `SEARCH DEPTH FIRST BY … SET …`
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// By depth, else by breadth.
    pub by_depth: bool,
    /// The columns.
    pub columns: Vec<Ident>,
    /// The column that rows are put in order by.
    pub sequence: Ident,
}

/// `CYCLE … SET … TO … DEFAULT … USING …`
#[derive(Clone, Debug, PartialEq)]
pub struct Cycle {
    /// The columns.
    pub columns: Vec<Ident>,
    /// The column that tells of a cycle.
    pub mark: Ident,
    /// What it holds of rows that close one, and of others; `true` and `false` if nothing is said.
    pub values: Option<(Expr, Expr)>,
    /// The column that has the rows on the way.
    pub path: Ident,
}

/// The names of columns behind a place, and the place behind them.
fn names(tokens: &[TokenWithSpan], places: &[usize], mut at: usize) -> Option<usize> {
    loop {
        matches!(tokens[*places.get(at)?].token, Token::Word(_)).then_some(())?;
        at += 1;
        match tokens[*places.get(at)?].token {
            Token::Comma => at += 1,
            _ => return Some(at),
        }
    }
}

/// Where the clauses end that begin at a place, if there are any.
fn end(tokens: &[TokenWithSpan], from: usize) -> Option<usize> {
    let places: Vec<usize> = solid(tokens, from).collect();
    let word = |at: usize, word: &str| places.get(at).is_some_and(|place| is(&tokens[*place], word));
    let mut at = 0;
    if word(0, "search") && (word(1, "depth") || word(1, "breadth")) && word(2, "first") && word(3, "by") {
        at = names(tokens, &places, 4)?;
        (word(at, "set") && places.len() > at + 1).then_some(())?;
        at += 2;
    }
    if word(at, "cycle")
        && let Some(set) = names(tokens, &places, at + 1)
        && word(set, "set")
        && (word(set + 2, "using") || word(set + 2, "to"))
    {
        let using = (set + 2..places.len()).find(|at| word(*at, "using"))?;
        (places.len() > using + 1).then_some(())?;
        at = using + 2;
    }
    (at > 0).then(|| places[at - 1] + 1)
}

/// Where the name of the column is put for a part of WITH whose query ends before a place, and whether it is the first name there.
fn column_list(tokens: &[TokenWithSpan], close: usize) -> Option<(usize, bool)> {
    let before = |at: usize| {
        (0..at)
            .rev()
            .find(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
    };
    let mut at = before(opening(tokens, close)?)?;
    if is(&tokens[at], "materialized") {
        at = before(at)?;
        if is(&tokens[at], "not") {
            at = before(at)?;
        }
    }
    is(&tokens[at], "as").then_some(())?;
    match before(at)? {
        last if tokens[last].token == Token::RParen => Some((last, false)),
        last => matches!(tokens[last].token, Token::Word(_)).then_some((last + 1, true)),
    }
}

/// Makes columns of such clauses.
pub(super) fn name_clauses(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at].token == Token::RParen
            && let Some(from) = next_solid(tokens, at + 1)
            && (is(&tokens[from], "search") || is(&tokens[from], "cycle"))
            && let Some(end) = end(tokens, from)
            && let Some((place, is_first)) = column_list(tokens, at)
        {
            let text: String = tokens[from..end].iter().map(|token| written(&token.token)).collect();
            let span = tokens[from].span;
            tokens.drain(from..end);
            let name = Token::make_word(&format!("{NAME}{text}"), Some('"'));
            let made = match is_first {
                true => vec![Token::LParen, name, Token::RParen],
                false => vec![Token::Comma, name],
            };
            let made = made.into_iter().map(|token| TokenWithSpan::new(token, span));
            at += made.len();
            tokens.splice(place..place, made);
        }
        at += 1;
    }
}

/// Takes the clauses out of the names of the columns of a part of WITH, if it has any.
///
/// Errors: 42601.
pub fn taken(columns: &mut Vec<String>) -> Result<Option<Clauses>> {
    let Some(text) = columns.last().and_then(|name| name.strip_prefix(NAME)) else {
        return Ok(None);
    };
    let tokens = Tokenizer::new(&Sql, text).tokenize().unwrap_or_default();
    let mut parser = Parser::new(&Sql).with_tokens(tokens);
    let read = read(&mut parser);
    columns.pop();
    match read {
        Ok(clauses) => Ok(Some(clauses)),
        Err(error) => fail("42601", format!("syntax error: {error}")),
    }
}

fn read(parser: &mut Parser<'_>) -> std::result::Result<Clauses, ParserError> {
    let mut out = Clauses::default();
    let columns = |parser: &mut Parser<'_>| parser.parse_comma_separated(Parser::parse_identifier);
    if parser.parse_keyword(Keyword::SEARCH) {
        let by_depth = is_word(parser, "depth");
        parser.next_token();
        parser.expect_keywords(&[Keyword::FIRST, Keyword::BY])?;
        let columns = columns(parser)?;
        parser.expect_keyword(Keyword::SET)?;
        let sequence = parser.parse_identifier()?;
        out.search = Some(Search {
            by_depth,
            columns,
            sequence,
        });
    }
    if is_word(parser, "cycle") {
        parser.next_token();
        let columns = columns(parser)?;
        parser.expect_keyword(Keyword::SET)?;
        let mark = parser.parse_identifier()?;
        let mut values = None;
        if parser.parse_keyword(Keyword::TO) {
            let to = parser.parse_expr()?;
            parser.expect_keyword(Keyword::DEFAULT)?;
            values = Some((to, parser.parse_expr()?));
        }
        parser.expect_keyword(Keyword::USING)?;
        let path = parser.parse_identifier()?;
        out.cycle = Some(Cycle {
            columns,
            mark,
            values,
            path,
        });
    }
    match parser.peek_token().token {
        Token::EOF => Ok(out),
        _ => parser.expected("the end of the clauses", parser.peek_token()),
    }
}

fn is_word(parser: &Parser<'_>, word: &str) -> bool {
    matches!(parser.peek_token().token, Token::Word(own) if own.quote_style.is_none() && own.value.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_are_columns_of_their_part_of_with() {
        let text = "WITH RECURSIVE a (x, y) AS (SELECT 1) SEARCH DEPTH FIRST BY x, y SET o CYCLE x SET c TO 'y' DEFAULT 'n' USING p, \
                    b AS NOT MATERIALIZED (SELECT (2)) CYCLE \"Q\" SET c USING p, search AS (SELECT 3) SELECT * FROM a, b, (SELECT 1) cycle";
        let all = super::super::parse(text).unwrap();
        let Some(sqlparser::ast::Statement::Query(query)) = all.first() else {
            panic!("{all:?}");
        };
        let mut found = query.with.iter().flat_map(|with| &with.cte_tables).map(|cte| {
            let mut names = cte
                .alias
                .columns
                .iter()
                .map(|column| column.name.value.clone())
                .collect();
            let taken = taken(&mut names).unwrap();
            (names.len(), taken)
        });
        let (count, first) = found.next().unwrap();
        let first = first.unwrap();
        assert_eq!((count, first.search.unwrap().columns.len()), (2, 2));
        assert!(first.cycle.unwrap().values.is_some());
        let (count, second) = found.next().unwrap();
        assert_eq!(count, 0);
        assert_eq!(second.unwrap().cycle.unwrap().columns[0].value, "Q");
        assert_eq!(found.next().unwrap(), (0, None));
    }
}
