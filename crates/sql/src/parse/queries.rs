//! Forms of queries that the grammar's library does not read, written as ones that it does: aliases of USING, samples of tables, functions of
//! `ROWS FROM` whose columns are defined there, `GROUP BY DISTINCT`, `FETCH FIRST (…)`, `ONLY (t)` and `t *`, `(row).*`, TABLE, and a SELECT of nothing.
//!
//! What has no place of its own in the library's trees is a name, or a call of a function, that no statement has unless it is quoted.

use super::columns::written;
use super::dialect::ROWS_FROM;
use super::tokens::{closing, is, made, next_solid, opening, solid, text_of};
use crate::error::fail;
use crate::types::names::folded;
use nestor_model::Result;
use sqlparser::ast::{SetExpr, Statement, TableAliasColumnDef, TableFactor};
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// Begins the name of a last column of USING that is the alias of those columns.
const USING_ALIAS: &str = "alias of USING: ";
/// The function that the method, the arguments and the seed of TABLESAMPLE are arguments of.
pub(crate) const SAMPLE: &str = "sample of a table";
/// The function whose argument is the text of the columns of a function in `ROWS FROM`.
pub(crate) const DEFINITIONS: &str = "columns of a function";
/// The function that stands before the groups of `GROUP BY DISTINCT`.
pub(crate) const DISTINCT_GROUPS: &str = "distinct groups";
/// The function whose columns are those of the row that is its argument.
pub(crate) const FIELDS: &str = "fields of a row";
/// The table that a SELECT of nothing without FROM reads.
pub(crate) const ONE_ROW: &str = "one row";

/// Writes all of them.
pub(super) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let has = |word: &str| tokens.iter().any(|token| is(token, word));
    let (uses, samples, groups, selects) = (has("using"), has("tablesample"), has("group"), has("select"));
    let fetches = has("fetch");
    if has("table") {
        name_tables(tokens);
    }
    let rows_from = Token::make_word(ROWS_FROM, Some('"'));
    let defines = tokens.iter().any(|token| token.token == rows_from);
    if uses {
        name_aliases(tokens);
    }
    if samples {
        name_samples(tokens);
    }
    if defines {
        name_definitions(tokens, &rows_from);
    }
    if groups {
        name_groups(tokens);
    }
    if fetches {
        limit_by_expressions(tokens);
    }
    leave_out_descendants(tokens);
    name_functions(tokens);
    name_fields(tokens);
    if selects {
        name_nothing(tokens);
    }
}

/// `FETCH FIRST (…) ROWS ONLY` is `LIMIT (…)`: the grammar knows numbers there.
fn limit_by_expressions(tokens: &mut [TokenWithSpan]) {
    for at in 0..tokens.len() {
        let places: Vec<usize> = solid(tokens, at).take(3).collect();
        let [fetch, first, open] = places.as_slice() else {
            return;
        };
        let begins = is(&tokens[*fetch], "fetch")
            && ["first", "next"].iter().any(|word| is(&tokens[*first], word))
            && tokens[*open].token == Token::LParen;
        let Some(close) = closing(tokens, *open).filter(|_| begins && *fetch == at) else {
            continue;
        };
        let behind: Vec<usize> = solid(tokens, close + 1).take(2).collect();
        let [rows, only] = behind.as_slice() else { continue };
        if ["row", "rows"].iter().any(|word| is(&tokens[*rows], word)) && is(&tokens[*only], "only") {
            tokens[*fetch].token = Token::make_keyword("LIMIT");
            for gone in [*first, *rows, *only] {
                tokens[gone].token = Token::Whitespace(Whitespace::Space);
            }
        }
    }
}

/// `TABLE t` is `SELECT * FROM t` wherever a query may stand.
fn name_tables(tokens: &mut Vec<TokenWithSpan>) {
    let before = [
        "all",
        "analyze",
        "as",
        "distinct",
        "except",
        "explain",
        "for",
        "intersect",
        "union",
        "verbose",
    ];
    let begins = |tokens: &[TokenWithSpan], at: usize| {
        let last = tokens[..at]
            .iter()
            .rfind(|token| !matches!(token.token, Token::Whitespace(_)));
        last.is_none_or(|last| {
            let opens = matches!(last.token, Token::LParen | Token::RParen | Token::SemiColon);
            opens || before.iter().any(|word| is(last, word))
        })
    };
    let mut at = 0;
    while at < tokens.len() {
        let is_named = |tokens: &[TokenWithSpan]| {
            let name = next_solid(tokens, at + 1);
            name.is_some_and(|name| matches!(tokens[name].token, Token::Word(_)))
        };
        if is(&tokens[at], "table") && is_named(tokens) && begins(tokens, at) {
            let select = made("SELECT * FROM", &tokens[at]);
            tokens.splice(at..=at, select);
        }
        at += 1;
    }
}

/// `f(…) AS (a int)`: who defines columns need not say what the rows are called.
fn name_functions(tokens: &mut Vec<TokenWithSpan>) {
    let queries = [
        "select", "values", "with", "insert", "update", "delete", "merge", "table",
    ];
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at].token == Token::RParen
            && let [word, open, name, ty] = solid(tokens, at + 1).take(4).collect::<Vec<_>>()[..]
            && is(&tokens[word], "as")
            && tokens[open].token == Token::LParen
            && matches!(
                (&tokens[name].token, &tokens[ty].token),
                (Token::Word(_), Token::Word(_))
            )
            && !queries.iter().any(|word| is(&tokens[name], word))
            && let Some(begin) = opening(tokens, at)
            && let Some(function) = tokens[..begin]
                .iter()
                .rfind(|token| !matches!(token.token, Token::Whitespace(_)))
            && matches!(function.token, Token::Word(_))
        {
            let alias = TokenWithSpan::new(function.token.clone(), tokens[open].span);
            let space = TokenWithSpan::new(
                Token::Whitespace(sqlparser::tokenizer::Whitespace::Space),
                tokens[open].span,
            );
            tokens.splice(open..open, [space, alias]);
        }
        at += 1;
    }
}

/// `(row).*` in a list of what is selected.
fn name_fields(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at].token == Token::RParen
            && let [dot, star] = solid(tokens, at + 1).take(2).collect::<Vec<_>>()[..]
            && tokens[dot].token == Token::Period
            && tokens[star].token == Token::Mul
            && let Some(open) = opening(tokens, at)
        {
            let before = tokens[..open]
                .iter()
                .rfind(|token| !matches!(token.token, Token::Whitespace(_)));
            let begins = before.is_some_and(|token| {
                let words = ["select", "distinct", "all", "returning"];
                token.token == Token::Comma || words.iter().any(|word| is(token, word))
            });
            if begins {
                let span = tokens[open].span;
                tokens.drain(dot..star + 1);
                tokens.insert(open, TokenWithSpan::new(Token::make_word(FIELDS, Some('"')), span));
                at += 1;
            }
        }
        at += 1;
    }
}

/// `USING (a, b) AS x`
fn name_aliases(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        if is(&tokens[at], "using")
            && let Some(open) = next_solid(tokens, at + 1).filter(|at| tokens[*at].token == Token::LParen)
            && let Some(close) = closing(tokens, open)
            && let [word, alias] = solid(tokens, close + 1).take(2).collect::<Vec<_>>()[..]
            && is(&tokens[word], "as")
            && solid(tokens, open + 1)
                .take_while(|at| *at < close)
                .enumerate()
                .all(|(at, place)| match &tokens[place].token {
                    Token::Word(_) => at % 2 == 0,
                    Token::Comma => at % 2 == 1,
                    _ => false,
                })
            && let Token::Word(name) = &tokens[alias].token
        {
            let name = folded(&name.value, name.quote_style);
            let span = tokens[alias].span;
            tokens.drain(close + 1..alias + 1);
            let made = [
                Token::Comma,
                Token::make_word(&format!("{USING_ALIAS}{name}"), Some('"')),
            ];
            tokens.splice(close..close, made.map(|token| TokenWithSpan::new(token, span)));
        }
        at += 1;
    }
}

/// Takes the alias out of the columns of USING, if they have one.
pub fn using_alias(names: &mut Vec<String>) -> Option<String> {
    let alias = names.last()?.strip_prefix(USING_ALIAS)?.to_owned();
    names.pop();
    Some(alias)
}

/// `TABLESAMPLE method (arguments) REPEATABLE (seed)`
fn name_samples(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        if is(&tokens[at], "tablesample")
            && let [method, open] = solid(tokens, at + 1).take(2).collect::<Vec<_>>()[..]
            && matches!(tokens[method].token, Token::Word(_))
            && tokens[open].token == Token::LParen
            && let Some(close) = closing(tokens, open)
        {
            let next: Vec<usize> = solid(tokens, close + 1).take(2).collect();
            let mut seed = None;
            if let [word, open] = next[..]
                && is(&tokens[word], "repeatable")
                && tokens[open].token == Token::LParen
                && let Some(close) = closing(tokens, open)
            {
                seed = Some((text_of(&tokens[open + 1..close]), close));
            }
            let arguments = text_of(&tokens[open + 1..close]);
            let name = written(&tokens[method].token).to_lowercase();
            let name = name.trim_matches('"').replace('\'', "''");
            let (seed, end) = match seed {
                Some((seed, end)) => (format!(", ROW({seed})"), end),
                None => (String::new(), close),
            };
            let text = format!("BERNOULLI (\"{SAMPLE}\"('{name}', ROW({arguments}){seed}))");
            let made = made(&text, &tokens[at]);
            at += made.len();
            tokens.splice(method..end + 1, made);
        }
        at += 1;
    }
}

/// Functions of `ROWS FROM` with the columns that they give.
fn name_definitions(tokens: &mut Vec<TokenWithSpan>, rows_from: &Token) {
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at].token == *rows_from
            && let Some(open) = next_solid(tokens, at + 1)
            && let Some(mut end) = closing(tokens, open)
        {
            let mut place = open + 1;
            while place < end {
                if tokens[place].token == Token::RParen
                    && let [word, from] = solid(tokens, place + 1).take(2).collect::<Vec<_>>()[..]
                    && is(&tokens[word], "as")
                    && tokens[from].token == Token::LParen
                    && let Some(close) = closing(tokens, from)
                {
                    let text = text_of(&tokens[from + 1..close]).replace('\'', "''");
                    let made = made(&format!(", \"{DEFINITIONS}\"('{text}')"), &tokens[word]);
                    let count = made.len();
                    tokens.drain(word..close + 1);
                    tokens.splice(place..place, made);
                    place += count;
                    end = closing(tokens, open).unwrap_or(place);
                }
                place += 1;
            }
            at = end;
        }
        at += 1;
    }
}

/// The columns that such a text is.
///
/// Errors: 42601.
pub fn definitions(text: &str) -> Result<Vec<TableAliasColumnDef>> {
    let found = super::parse(&format!("SELECT FROM f() AS t({text})"))?.pop();
    let columns = match found {
        Some(Statement::Query(query)) => match *query.body {
            SetExpr::Select(select) => select.from.into_iter().next().and_then(|item| match item.relation {
                TableFactor::Table { alias, .. } | TableFactor::Function { alias, .. } => alias,
                _ => None,
            }),
            _ => None,
        },
        _ => None,
    };
    match columns {
        Some(alias) => Ok(alias.columns),
        None => fail("42601", "syntax error in a column definition list"),
    }
}

/// `GROUP BY DISTINCT` and `GROUP BY ALL`
fn name_groups(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        if is(&tokens[at], "group")
            && let [by, word] = solid(tokens, at + 1).take(2).collect::<Vec<_>>()[..]
            && is(&tokens[by], "by")
            && (is(&tokens[word], "distinct") || is(&tokens[word], "all"))
        {
            let made = match is(&tokens[word], "distinct") {
                true => made(&format!("\"{DISTINCT_GROUPS}\"(),"), &tokens[word]),
                false => Vec::new(),
            };
            tokens.splice(word..word + 1, made);
        }
        at += 1;
    }
}

/// `ONLY (t)` and `t *`: no table has others that inherit from it.
fn leave_out_descendants(tokens: &mut Vec<TokenWithSpan>) {
    let may_say = |token: &TokenWithSpan| token.token == Token::Mul || is(token, "only");
    if !tokens.iter().any(may_say) {
        return;
    }
    let names = ["from", "join", "update", "into", "table"];
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at].token != Token::Comma && !names.iter().any(|word| is(&tokens[at], word)) {
            at += 1;
            continue;
        }
        let next: Vec<usize> = solid(tokens, at + 1).take(2).collect();
        if let [only, open] = next[..]
            && is(&tokens[only], "only")
            && tokens[open].token == Token::LParen
            && let Some(close) = closing(tokens, open)
            && solid(tokens, open + 1)
                .take_while(|at| *at < close)
                .all(|at| matches!(tokens[at].token, Token::Word(_) | Token::Period))
        {
            tokens.remove(close);
            tokens.drain(only..open + 1);
        }
        // The name, with a schema before it or not.
        let places: Vec<usize> = solid(tokens, at + 1).take(5).collect();
        let is_sign = |n: usize, sign: &Token| places.get(n).is_some_and(|at| tokens[*at].token == *sign);
        let star = if is_sign(1, &Token::Period) { 3 } else { 1 };
        let is_name = places
            .first()
            .is_some_and(|at| matches!(tokens[*at].token, Token::Word(_)));
        if is_name && is_sign(star, &Token::Mul) && ends_table(tokens, places.get(star + 1).copied()) {
            tokens.remove(places[star]);
        }
        at += 1;
    }
}

/// Words behind a table, and its alias if it has one, with which something else begins.
pub(crate) const BEHIND_TABLE: [&str; 24] = [
    "where",
    "as",
    "join",
    "left",
    "right",
    "full",
    "inner",
    "cross",
    "natural",
    "on",
    "using",
    "set",
    "order",
    "group",
    "having",
    "limit",
    "offset",
    "fetch",
    "for",
    "union",
    "intersect",
    "except",
    "returning",
    "window",
];

/// Whether a token stands behind a table and behind no factor of a product.
fn ends_table(tokens: &[TokenWithSpan], at: Option<usize>) -> bool {
    match at {
        None => true,
        Some(at) => {
            matches!(tokens[at].token, Token::SemiColon | Token::RParen | Token::Comma)
                || BEHIND_TABLE.iter().any(|word| is(&tokens[at], word))
        }
    }
}

/// A SELECT without columns and without FROM.
fn name_nothing(tokens: &mut Vec<TokenWithSpan>) {
    let words = [
        "where",
        "order",
        "group",
        "having",
        "limit",
        "offset",
        "fetch",
        "for",
        "union",
        "intersect",
        "except",
        "window",
    ];
    let mut at = 0;
    while at < tokens.len() {
        if is(&tokens[at], "select") {
            let next = next_solid(tokens, at + 1);
            let is_empty = next.is_none_or(|next| {
                matches!(tokens[next].token, Token::SemiColon | Token::RParen)
                    || words.iter().any(|word| is(&tokens[next], word))
            });
            if is_empty {
                let made = made(&format!(" FROM \"{ONE_ROW}\" "), &tokens[at]);
                at += made.len();
                let place = at + 1 - made.len();
                tokens.splice(place..place, made);
            }
        }
        at += 1;
    }
}
