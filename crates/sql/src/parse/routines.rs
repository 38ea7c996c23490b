//! ALTER FUNCTION, COMMENT ON FUNCTION and their like, and what CREATE FUNCTION says that the grammar's library does not read.

use super::assigned::{self, Assigned};
use super::own::Own;
use super::tokens::{is, solid};
use crate::error::unsupported;
use nestor_model::Result;
use sqlparser::ast::{FunctionBehavior, FunctionCalledOnNull, FunctionDesc, FunctionParallel, Ident, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

type Read<T> = std::result::Result<T, ParserError>;

/// What becomes of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It gets another name.
    Rename(Ident),
    /// It moves to another schema.
    Schema(Ident),
    /// It is said to be otherwise than it was.
    Says(Vec<Says>),
}

/// What is said of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Says {
    /// Whether it gives the same each time.
    Behavior(FunctionBehavior),
    /// What it gives where an argument is null.
    Nulls(FunctionCalledOnNull),
    /// Whether parallel plans may have it.
    Parallel(FunctionParallel),
    /// A setting that holds while it runs.
    Set(Assigned),
    /// What is so for all functions.
    Usual,
}

/// The words for a routine behind ALTER and COMMENT ON.
pub(super) const KINDS: [&str; 3] = ["FUNCTION", "PROCEDURE", "ROUTINE"];

/// The name of a routine, and the types of its arguments if they are said.
fn described(parser: &mut Parser<'_>) -> Read<FunctionDesc> {
    let mut text = format!("DROP FUNCTION {}", parser.parse_object_name(false)?);
    if parser.peek_token().token == Token::LParen {
        let mut open = 0;
        loop {
            let token = parser.next_token().token;
            match token {
                Token::LParen => open += 1,
                Token::RParen => open -= 1,
                Token::EOF => return parser.expected("a parenthesis", parser.peek_token()),
                _ => {}
            }
            text.push_str(&format!(" {}", super::own::shown(&token)));
            if open == 0 {
                break;
            }
        }
    }
    let read = Parser::new(&super::Sql).try_with_sql(&text)?.parse_statement()?;
    match read {
        Statement::DropFunction(dropped) => match dropped.func_desc.into_iter().next() {
            Some(described) => Ok(described),
            None => Err(ParserError::ParserError("expected a function".to_owned())),
        },
        _ => Err(ParserError::ParserError("expected a function".to_owned())),
    }
}

/// `COMMENT ON FUNCTION`, behind the first two words.
pub(super) fn comment(parser: &mut Parser<'_>) -> Read<Own> {
    let kind = super::word::word(&parser.next_token().token).to_lowercase();
    let routine = described(parser)?;
    parser.expect_keyword(Keyword::IS)?;
    let text = match parser.parse_keyword(Keyword::NULL) {
        true => None,
        false => Some(parser.parse_literal_string()?),
    };
    Ok(Own::CommentOnRoutine { kind, routine, text })
}

/// `ALTER FUNCTION`, behind the first word.
pub(super) fn alter(parser: &mut Parser<'_>) -> Read<Own> {
    let kind = super::word::word(&parser.next_token().token).to_lowercase();
    let routine = described(parser)?;
    let change = if parser.parse_keywords(&[Keyword::RENAME, Keyword::TO]) {
        Change::Rename(parser.parse_identifier()?)
    } else if parser.parse_keywords(&[Keyword::SET, Keyword::SCHEMA]) {
        Change::Schema(parser.parse_identifier()?)
    } else {
        let mut all = Vec::new();
        while parser.peek_token().token != Token::EOF && !parser.parse_keyword(Keyword::RESTRICT) {
            all.push(says(parser)?);
        }
        if all.is_empty() {
            return parser.expected("what becomes of a function", parser.peek_token());
        }
        Change::Says(all)
    };
    Ok(Own::AlterRoutine { kind, routine, change })
}

fn says(parser: &mut Parser<'_>) -> Read<Says> {
    if assigned::is_next(parser) {
        return assigned::read(parser).map(Says::Set);
    }
    let of_nulls = [Keyword::ON, Keyword::NULL, Keyword::INPUT];
    let word = super::word::word(&parser.next_token().token);
    Ok(match word.as_str() {
        "IMMUTABLE" => Says::Behavior(FunctionBehavior::Immutable),
        "STABLE" => Says::Behavior(FunctionBehavior::Stable),
        "VOLATILE" => Says::Behavior(FunctionBehavior::Volatile),
        "STRICT" => Says::Nulls(FunctionCalledOnNull::Strict),
        "CALLED" => {
            parser.expect_keywords(&of_nulls)?;
            Says::Nulls(FunctionCalledOnNull::CalledOnNullInput)
        }
        "RETURNS" => {
            parser.expect_keyword(Keyword::NULL)?;
            parser.expect_keywords(&of_nulls)?;
            Says::Nulls(FunctionCalledOnNull::Strict)
        }
        "PARALLEL" => Says::Parallel(match super::word::word(&parser.next_token().token).as_str() {
            "SAFE" => FunctionParallel::Safe,
            "RESTRICTED" => FunctionParallel::Restricted,
            "UNSAFE" => FunctionParallel::Unsafe,
            other => {
                return Err(ParserError::ParserError(format!(
                    "parameter \"parallel\" is not {other}"
                )));
            }
        }),
        "SECURITY" if parser.parse_keyword(Keyword::INVOKER) => Says::Usual,
        "NOT" if super::word::word(&parser.peek_token().token) == "LEAKPROOF" => {
            parser.next_token();
            Says::Usual
        }
        "COST" | "ROWS" => match parser.next_token().token {
            Token::Number(number, _) if is_usual(&word, &number) => Says::Usual,
            _ => return refused(&format!("a {word} of a function that others do not have")),
        },
        other => return refused(&format!("{other} of a function")),
    })
}

fn refused<T>(what: &str) -> Read<T> {
    // The words by which it is known that there is no such thing.
    Err(ParserError::ParserError(format!("{}{what}", super::NOT_SUPPORTED)))
}

/// Whether COST or ROWS is what functions have of which nothing is said.
fn is_usual(word: &str, number: &str) -> bool {
    number
        == if word.eq_ignore_ascii_case("cost") {
            "100"
        } else {
            "1000"
        }
}

/// Writes the mode of an argument of a function or a procedure that is made, dropped or altered before its name, where it may stand behind it.
pub(super) fn put_modes_first(tokens: &mut [TokenWithSpan]) {
    let has = |word: &str| tokens.iter().any(|token| is(token, word));
    let is_meant = ["create", "drop", "alter", "comment"].into_iter().any(has);
    if !is_meant || !(has("function") || has("procedure")) {
        return;
    }
    let is_mode = |token: &TokenWithSpan| ["in", "out", "inout", "variadic"].iter().any(|mode| is(token, mode));
    let is_word = |token: &TokenWithSpan| matches!(token.token, Token::Word(_));
    let places: Vec<usize> = solid(tokens, 0).collect();
    let (mut depth, mut is_routine) = (0, false);
    for (n, place) in places.iter().enumerate() {
        match &tokens[*place].token {
            Token::SemiColon => (depth, is_routine) = (0, false),
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ if depth == 0 && (is(&tokens[*place], "function") || is(&tokens[*place], "procedure")) => {
                is_routine = true
            }
            _ => {}
        }
        // The list of arguments is what stands in parentheses first.
        if is_routine && depth == 0 && tokens[*place].token == Token::RParen {
            is_routine = false;
        }
        if !(is_routine && depth == 1 && matches!(tokens[*place].token, Token::LParen | Token::Comma)) {
            continue;
        }
        if let [name, mode, ty] = places[n + 1..].iter().copied().take(3).collect::<Vec<_>>()[..]
            && is_word(&tokens[name])
            && !is_mode(&tokens[name])
            && is_mode(&tokens[mode])
            && is_word(&tokens[ty])
        {
            tokens.swap(name, mode);
        }
    }
}

/// Leaves out of CREATE FUNCTION what says that a function is as all are: COST and ROWS, of which there are no others here, and NOT LEAKPROOF.
///
/// Errors: 0A000 for other numbers, and for LEAKPROOF.
pub(super) fn leave_out(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    let has = |word: &str| tokens.iter().any(|token| is(token, word));
    if !has("create") || !(has("function") || has("procedure")) || !(has("cost") || has("rows") || has("leakproof")) {
        return Ok(());
    }
    let mut starts: Vec<usize> = vec![0];
    let ends = (0..tokens.len()).filter(|at| tokens[*at].token == Token::SemiColon);
    starts.extend(ends.map(|at| at + 1));
    for start in starts.into_iter().rev() {
        let places: Vec<usize> = solid(tokens, start)
            .take_while(|at| tokens[*at].token != Token::SemiColon)
            .collect();
        let word = |n: usize, word: &str| places.get(n).is_some_and(|at| is(&tokens[*at], word));
        let at = if word(1, "or") { 3 } else { 1 };
        if !word(0, "create") || !(word(at, "function") || word(at, "procedure")) {
            continue;
        }
        let (mut depth, mut gone) = (0, Vec::new());
        for (n, place) in places.iter().enumerate() {
            match &tokens[*place].token {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                _ => {}
            }
            let follows = || places.get(n + 1).map(|next| (*next, &tokens[*next].token));
            match follows() {
                Some((next, Token::Number(number, _))) if depth == 0 => {
                    if let Some(word) = ["cost", "rows"].into_iter().find(|own| word(n, own)) {
                        if !is_usual(word, number) {
                            return unsupported(format!(
                                "a {} of a function that others do not have",
                                word.to_uppercase()
                            ));
                        }
                        gone.push(*place..next + 1);
                    }
                }
                Some((next, _)) if depth == 0 && word(n, "not") && word(n + 1, "leakproof") => {
                    gone.push(*place..next + 1)
                }
                _ if depth == 0 && word(n, "leakproof") && !(n > 0 && word(n - 1, "not")) => {
                    return unsupported("LEAKPROOF");
                }
                _ => {}
            }
        }
        for range in gone.into_iter().rev() {
            tokens.drain(range);
        }
    }
    Ok(())
}
