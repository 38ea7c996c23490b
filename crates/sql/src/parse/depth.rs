//! How deep the tree of a statement becomes, told of its tokens before there is one: a tree is walked by recursion, many times.
//!
//! Operators that stand behind each other make a tree as deep as there are of them, and what stands in parentheses comes on top of that, wherever
//! among the operands it stands. So an expression is as deep as it has operators, and its deepest operand besides. Tables of a FROM are joined one
//! after the other, and so are subqueries with what they are beside: these count whatever commas are between.

use super::tokens::is;
use crate::error::fail;
use nestor_model::Result;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// How deep a tree may be. The stack of the threads that run statements holds some times that.
const DEPTH_MAX: usize = 800;
/// Comparisons and the like that may stand behind each other without AND, OR and other operators between them.
const COMPARED_MAX: usize = 100;

/// Words that a subquery begins with.
const QUERIES: [&str; 4] = ["select", "with", "values", "table"];
/// Words that end the list of tables of a FROM.
const BEHIND_FROM: [&str; 12] = [
    "where",
    "group",
    "having",
    "order",
    "limit",
    "offset",
    "fetch",
    "window",
    "returning",
    "select",
    "set",
    "for",
];
/// Words that make a tree deeper by one.
const LINKS: [&str; 7] = ["and", "or", "not", "union", "except", "intersect", "join"];
/// Words of operators that stand between two that bind closer, or behind one.
const COMPARES: [&str; 17] = [
    "overlaps", "xor", "div", "rlike", "regexp", "member", "is", "isnull", "notnull", "in", "like", "ilike", "similar",
    "at", "collate", "operator", "between",
];

/// What is known of the expressions within one pair of parentheses, or of a CASE.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    is_case: bool,
    /// No token of it was met.
    is_new: bool,
    /// It is at the tables of a FROM.
    in_from: bool,
    /// Subqueries in it.
    subqueries: usize,
    /// Operators of the expression that goes on.
    links: usize,
    /// Comparisons of it since the last operator, and most of these.
    compared: usize,
    compared_most: usize,
    /// The deepest of its operands in parentheses.
    inner: usize,
    /// The deepest of the expressions before it.
    before: usize,
}

impl Level {
    /// How deep the expression that goes on is so far.
    fn depth(&self) -> usize {
        self.subqueries + self.links + self.compared_most + self.inner
    }

    /// One in parentheses.
    fn new() -> Self {
        Self {
            is_new: true,
            ..Self::default()
        }
    }

    /// Another expression begins.
    fn next(&mut self) {
        *self = Self {
            is_case: self.is_case,
            subqueries: self.subqueries,
            before: self.before.max(self.depth()),
            ..Self::default()
        };
    }
}

/// Refuses a statement whose tree would be too deep.
///
/// Errors: 54001.
pub(super) fn check(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut levels = vec![Level::default()];
    for token in tokens {
        let is_any = |words: &[&str]| words.iter().any(|word| is(token, word));
        let is_space = matches!(token.token, Token::Whitespace(_));
        if let [.., around, level] = levels.as_mut_slice()
            && level.is_new
            && !is_space
        {
            level.is_new = false;
            around.subqueries += usize::from(is_any(&QUERIES));
        }
        let Some(level) = levels.last_mut() else { break };
        match &token.token {
            Token::Whitespace(_) | Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_) => continue,
            Token::LParen | Token::LBracket => levels.push(Level::new()),
            Token::RParen | Token::RBracket => {
                // A CASE without END is no statement.
                while levels.len() > 1 && levels.last().is_some_and(|level| level.is_case) {
                    close(&mut levels);
                }
                close(&mut levels);
            }
            Token::Comma if level.in_from => level.links += 1,
            Token::Comma => level.next(),
            Token::SemiColon => {
                level.next();
                level.subqueries = 0;
            }
            Token::Period => continue,
            Token::Eq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq => compare(level)?,
            Token::Word(word) if word.quote_style.is_some() => continue,
            Token::Word(_) if is_any(&["from"]) => level.in_from = true,
            Token::Word(_) if level.in_from && is_any(&BEHIND_FROM) => level.in_from = false,
            Token::Word(_) if is_any(&["case"]) => levels.push(Level {
                is_case: true,
                ..Level::default()
            }),
            Token::Word(_) if level.is_case && is_any(&["end"]) => close(&mut levels),
            Token::Word(_) if level.is_case && is_any(&["when", "then", "else"]) => level.next(),
            Token::Word(_) if is_any(&COMPARES) => compare(level)?,
            Token::Word(_) if !is_any(&LINKS) => continue,
            _ => (level.links, level.compared) = (level.links + 1, 0),
        }
        if levels.last().is_some_and(|level| level.depth() > DEPTH_MAX) {
            return fail("54001", "statement has too many operators in one expression");
        }
    }
    Ok(())
}

fn compare(level: &mut Level) -> Result<()> {
    level.compared += 1;
    level.compared_most = level.compared_most.max(level.compared);
    match level.compared > COMPARED_MAX {
        true => fail("54001", "statement has too many comparisons in one expression"),
        false => Ok(()),
    }
}

/// What was in parentheses is an operand of what is around them.
fn close(levels: &mut Vec<Level>) {
    if levels.len() < 2 {
        return;
    }
    let Some(closed) = levels.pop() else { return };
    if let Some(level) = levels.last_mut() {
        level.inner = level.inner.max(closed.before.max(closed.depth()) + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::super::dialect::Sql;
    use super::*;
    use sqlparser::tokenizer::Tokenizer;

    fn fits(text: &str) -> bool {
        let tokens = Tokenizer::new(&Sql, text).tokenize_with_location().expect("tokens");
        check(&tokens).is_ok()
    }

    #[test]
    fn trees_too_deep() {
        let chain = |n: usize, sign: &str| vec!["1"; n].join(sign);
        let nested = |levels: usize, n: usize| {
            (0..levels).fold("1".to_owned(), |inner, _| format!("({inner} + {})", chain(n, "+")))
        };
        assert!(fits(&chain(800, "+")) && !fits(&chain(802, "+")));
        assert!(fits(&nested(10, 70)) && !fits(&nested(10, 90)) && !fits(&nested(2, 700)));
        // Wherever the parentheses stand.
        assert!(!fits(&format!("{} + ({})", chain(500, "+"), chain(500, "+"))));
        assert!(!fits(&format!("f(1, ({}), 2) + {}", chain(500, "+"), chain(500, "+"))));
        assert!(fits(&format!("({}), {}", chain(700, "+"), chain(700, "+"))));
        for behind in [
            " is null",
            " at time zone 'utc'",
            " collate \"C\"",
            " in (1)",
            " operator(+) 1",
            " = 1",
            "::int",
            "->'a'",
        ] {
            assert!(!fits(&format!("1{}", behind.repeat(900))), "{behind}");
        }
        let tables = |n: usize| (0..n).map(|n| format!("t{n}")).collect::<Vec<_>>().join(", ");
        assert!(fits(&format!("select 1 from {}", tables(700))) && !fits(&format!("select 1 from {}", tables(900))));
        assert!(!fits(&format!(
            "select 1 from (select 1 from {}) a, {}",
            tables(500),
            tables(500)
        )));
        assert!(fits(&format!(
            "select {} from t where a in ({})",
            tables(3000),
            tables(3000)
        )));
        let subqueries = |n: usize| vec!["(select 1)"; n].join(", ");
        assert!(fits(&format!("select {}", subqueries(700))) && !fits(&format!("select {}", subqueries(900))));
        assert!(fits(&format!("values {}", vec!["((select 1))"; 2000].join(", "))));
        // Each condition has its own comparison, and each arm of a CASE is one for itself.
        assert!(fits(&vec!["a = 1 and b in (2)"; 390].join(" or ")));
        assert!(fits(&format!(
            "case {} end",
            "when a = 1 and b = 2 then 3 ".repeat(2000)
        )));
        assert!(!fits(&format!(
            "case when {} then 1 end + {}",
            chain(500, "+"),
            chain(500, "+")
        )));
    }
}
