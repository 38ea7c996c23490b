//! Partitions as the grammar's library does not read them: columns without types behind PARTITION OF, and ATTACH and DETACH PARTITION.

use super::columns::written;
use super::own::Own;
use super::tokens::{closing, is, next_solid, solid};
use super::word::word;
use sqlparser::ast::{DataType, ForValues, ObjectName, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// The type of a column that has that of the partitioned table.
const TYPE: &str = "type of the partitioned table";

/// What stands behind the name of a column that has no type.
const OPTIONS: [&str; 10] = [
    "constraint",
    "not",
    "null",
    "default",
    "check",
    "unique",
    "primary",
    "references",
    "generated",
    "collate",
];

/// What begins a constraint of a table.
const CONSTRAINTS: [&str; 7] = ["constraint", "check", "unique", "primary", "foreign", "exclude", "like"];

/// Whether a column is to have the type that it has in the partitioned table.
pub fn is_inherited(ty: &DataType) -> bool {
    matches!(ty, DataType::Custom(name, _) if name.0.iter().any(|part| part.as_ident().is_some_and(|own| own.value == TYPE)))
}

/// Gives columns without types one.
pub(super) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.iter().any(|token| is(token, "partition")) {
        return;
    }
    let mut at = 0;
    while at < tokens.len() {
        if is(&tokens[at], "partition")
            && let Some(of) = next_solid(tokens, at + 1).filter(|of| is(&tokens[*of], "of"))
            && let Some(open) = list(tokens, of)
        {
            name_types(tokens, open);
        }
        at += 1;
    }
}

/// Where the columns begin behind `OF name`.
fn list(tokens: &[TokenWithSpan], of: usize) -> Option<usize> {
    for place in solid(tokens, of + 1).take(8) {
        match &tokens[place].token {
            Token::Word(_) if is(&tokens[place], "for") || is(&tokens[place], "default") => return None,
            Token::Word(_) | Token::Period => {}
            Token::LParen => return Some(place),
            _ => return None,
        }
    }
    None
}

fn name_types(tokens: &mut Vec<TokenWithSpan>, open: usize) {
    let Some(close) = closing(tokens, open) else { return };
    let mut names = Vec::new();
    let mut options = Vec::new();
    let (mut depth, mut begins) = (0usize, true);
    let places: Vec<usize> = solid(tokens, open + 1).take_while(|at| *at <= close).collect();
    for (n, at) in places.iter().enumerate() {
        let is_one = |words: &[&str]| words.iter().any(|word| is(&tokens[*at], word));
        match tokens[*at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            Token::Comma if depth == 0 => {
                begins = true;
                continue;
            }
            Token::Word(_) if begins && !is_one(&CONSTRAINTS) => {
                let next = |by: usize| places.get(n + by).map(|at| &tokens[*at]);
                let says_options =
                    next(1).is_some_and(|token| is(token, "with")) && next(2).is_some_and(|token| is(token, "options"));
                let is_bare = next(1).is_none_or(|token| {
                    matches!(token.token, Token::Comma | Token::RParen) || OPTIONS.iter().any(|word| is(token, word))
                });
                if says_options {
                    options.extend([places[n + 1], places[n + 2]]);
                }
                if says_options || is_bare {
                    names.push(*at);
                }
            }
            _ => {}
        }
        begins = false;
    }
    for at in options {
        tokens[at].token = Token::Whitespace(Whitespace::Space);
    }
    for at in names.into_iter().rev() {
        let span = tokens[at].span;
        let made = [Token::Whitespace(Whitespace::Space), Token::make_word(TYPE, Some('"'))];
        tokens.splice(at + 1..at + 1, made.map(|token| TokenWithSpan::new(token, span)));
    }
}

/// What becomes of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A table becomes one.
    Attach(ForValues),
    /// It becomes a table.
    Detach {
        /// Without keeping others out.
        concurrently: bool,
        /// Of one that was begun.
        finalize: bool,
    },
}

/// Whether a statement attaches or detaches one.
pub(super) fn begins(words: &[String]) -> bool {
    let is_it = |pair: &[String]| matches!(pair[0].as_str(), "ATTACH" | "DETACH") && pair[1] == "PARTITION";
    let alters = matches!(words, [alter, what, ..] if alter == "ALTER" && (what == "TABLE" || what == "INDEX"));
    alters && words.windows(2).take(10).any(is_it)
}

/// Reads one behind ALTER.
pub(super) fn read(parser: &mut Parser<'_>) -> Result<Own, ParserError> {
    let is_index = parser.expect_one_of_keywords(&[Keyword::TABLE, Keyword::INDEX])? == Keyword::INDEX;
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let _ = parser.parse_keyword(Keyword::ONLY);
    let table = parser.parse_object_name(false)?;
    let _ = parser.consume_token(&Token::Mul);
    let attaches = parser.expect_one_of_keywords(&[Keyword::ATTACH, Keyword::DETACH])? == Keyword::ATTACH;
    parser.expect_keyword(Keyword::PARTITION)?;
    let partition = parser.parse_object_name(false)?;
    if is_index {
        return match attaches {
            true => Ok(Own::AttachIndex {
                index: table,
                partition,
            }),
            false => Err(ParserError::ParserError(
                "syntax error at or near \"DETACH\"".to_owned(),
            )),
        };
    }
    let change = match attaches {
        true => Change::Attach(bound(parser)?),
        false => {
            let concurrently = parser.parse_keyword(Keyword::CONCURRENTLY);
            let finalize = !concurrently && word(&parser.peek_token().token) == "FINALIZE";
            if finalize {
                parser.next_token();
            }
            Change::Detach { concurrently, finalize }
        }
    };
    Ok(Own::Partition {
        table,
        if_exists,
        partition,
        change,
    })
}

/// What is left, which says a bound.
fn bound(parser: &mut Parser<'_>) -> Result<ForValues, ParserError> {
    let mut text = "CREATE TABLE a PARTITION OF b".to_owned();
    while parser.peek_token().token != Token::EOF {
        text.push_str(&format!(" {}", written(&parser.next_token().token)));
    }
    let parsed = Parser::parse_sql(&super::Sql, &text)?;
    match parsed.into_iter().next() {
        Some(Statement::CreateTable(create)) if create.partition_by.is_none() => create
            .for_values
            .ok_or_else(|| ParserError::ParserError("expected FOR VALUES or DEFAULT".to_owned())),
        _ => Err(ParserError::ParserError("expected FOR VALUES or DEFAULT".to_owned())),
    }
}

/// The last part of a name.
pub fn last(name: &ObjectName) -> String {
    let last = name.0.last().and_then(|part| part.as_ident());
    last.map(crate::types::names::ident).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_partitions_get_a_type() {
        let text = "CREATE TABLE a PARTITION OF s.p (x NOT NULL, \"Y\" WITH OPTIONS DEFAULT 5, CONSTRAINT c CHECK (x > 0), z) FOR VALUES IN (1)";
        let all = super::super::parse(text).unwrap();
        let Some(Statement::CreateTable(create)) = all.first() else {
            panic!("no table");
        };
        assert_eq!(create.columns.len(), 3);
        assert!(create.columns.iter().all(|def| is_inherited(&def.data_type)));
        // What is kept has types.
        let kept = "CREATE TABLE a PARTITION OF p (x INT NOT NULL, CHECK (x > 0)) FOR VALUES IN (1)";
        let all = super::super::parse(kept).unwrap();
        let Some(Statement::CreateTable(create)) = all.first() else {
            panic!("no table");
        };
        assert!(!create.columns.iter().any(|def| is_inherited(&def.data_type)));
        for text in [
            "ALTER TABLE p ATTACH PARTITION a.b FOR VALUES FROM (1, MINVALUE) TO ('x', MAXVALUE)",
            "ALTER TABLE IF EXISTS p DETACH PARTITION b CONCURRENTLY",
            "ALTER TABLE p ATTACH PARTITION b DEFAULT",
        ] {
            let all = super::super::parse(text).unwrap();
            let own = super::super::own::of(&all[0]).unwrap();
            assert!(matches!(own, Some(Own::Partition { .. })), "{text}");
        }
    }
}
