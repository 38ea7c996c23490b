//! What ALTER COLUMN does and the grammar's library does not read: `DROP IDENTITY`, `SET GENERATED`, `DROP EXPRESSION` and the COLLATE of another type; and
//! ALTER CONSTRAINT. They are spelled out as defaults that nobody can write.

use super::tokens::{is, made, solid};
use crate::error::fail;
use crate::types::names::folded;
use nestor_model::Result;
use sqlparser::ast::{Expr, Ident, ObjectName};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// The sign before what such a default is called.
const SIGN: char = '\u{1}';

/// What is done to a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Altered {
    /// `DROP IDENTITY`
    DropIdentity {
        /// Nothing happens to a column that has none.
        if_exists: bool,
    },
    /// `DROP EXPRESSION`
    DropExpression {
        /// Nothing happens to a column that has none.
        if_exists: bool,
    },
    /// `SET GENERATED`
    SetGenerated {
        /// Nobody may say another number.
        always: bool,
    },
}

impl Altered {
    const ALL: [Self; 6] = [
        Self::DropIdentity { if_exists: false },
        Self::DropIdentity { if_exists: true },
        Self::DropExpression { if_exists: false },
        Self::DropExpression { if_exists: true },
        Self::SetGenerated { always: false },
        Self::SetGenerated { always: true },
    ];

    fn words(self) -> &'static [&'static str] {
        match self {
            Self::DropIdentity { if_exists: false } => &["drop", "identity"],
            Self::DropIdentity { if_exists: true } => &["drop", "identity", "if", "exists"],
            Self::DropExpression { if_exists: false } => &["drop", "expression"],
            Self::DropExpression { if_exists: true } => &["drop", "expression", "if", "exists"],
            Self::SetGenerated { always: false } => &["set", "generated", "by", "default"],
            Self::SetGenerated { always: true } => &["set", "generated", "always"],
        }
    }

    fn name(self) -> String {
        format!("{SIGN}{}", self.words().join(" "))
    }

    /// What a default stands for, if it is one of these.
    pub fn of(default: &Expr) -> Option<Self> {
        let Expr::Identifier(name) = default else { return None };
        Self::ALL.into_iter().find(|own| own.name() == name.value)
    }
}

/// What begins the default that ALTER CONSTRAINT is spelled out as.
const CONSTRAINT: &str = "constraint";
/// The words behind its name.
const TIMING: [&str; 5] = ["not", "deferrable", "initially", "deferred", "immediate"];

/// When a constraint is looked at from now on, if a default stands for that: whether it may be later, and whether it is.
///
/// Errors: 42601 for words that do not go together.
pub fn timing_of(default: &Expr) -> Result<Option<(bool, bool)>> {
    let Expr::Identifier(name) = default else {
        return Ok(None);
    };
    let said = name
        .value
        .strip_prefix(SIGN)
        .and_then(|said| said.strip_prefix(CONSTRAINT));
    let Some(said) = said else { return Ok(None) };
    let words: Vec<&str> = said.split_whitespace().collect();
    Ok(Some(match words.as_slice() {
        ["not", "deferrable"] | ["not", "deferrable", "initially", "immediate"] => (false, false),
        ["initially", "immediate"] | ["initially", "immediate", "not", "deferrable"] => (false, false),
        ["deferrable"] | ["deferrable", "initially", "immediate"] | ["initially", "immediate", "deferrable"] => {
            (true, false)
        }
        ["initially", "deferred"]
        | ["deferrable", "initially", "deferred"]
        | ["initially", "deferred", "deferrable"] => (true, true),
        _ => return fail("42601", "constraint declared INITIALLY DEFERRED must be DEFERRABLE"),
    }))
}

/// What begins the default that the COLLATE of another type is spelled out as.
const COLLATE: &str = "collate";

/// The collation that a column has from now on, if a default stands for that.
pub fn collation_of(default: &Expr) -> Option<ObjectName> {
    let Expr::Identifier(name) = default else { return None };
    let said = name.value.strip_prefix(SIGN)?.strip_prefix(COLLATE)?;
    let quoted = |part: &str| Ident::with_quote('"', part);
    Some(ObjectName::from(
        said.trim_start().split(SIGN).map(quoted).collect::<Vec<_>>(),
    ))
}

/// Spells `ALTER a TYPE text COLLATE "C"` out, as `ALTER a TYPE text, ALTER a SET DEFAULT ...`.
fn spell_out_collations(tokens: &mut Vec<TokenWithSpan>) {
    let places: Vec<usize> = solid(tokens, 0).collect();
    let word = |n: usize, word: &str| places.get(n).is_some_and(|at| is(&tokens[*at], word));
    let mut found = Vec::new();
    for n in 0..places.len() {
        if !word(n, "alter") {
            continue;
        }
        let name = n + 1 + usize::from(word(n + 1, "column"));
        let ty = name
            + 1
            + if word(name + 1, "set") && word(name + 2, "data") {
                2
            } else {
                0
            };
        if !word(ty, "type") {
            continue;
        }
        let (mut depth, mut end, mut collate) = (0usize, ty + 1, None);
        while let Some(at) = places.get(end) {
            match &tokens[*at].token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                Token::Comma | Token::SemiColon if depth == 0 => break,
                _ if depth == 0 && collate.is_none() && is(&tokens[*at], "using") => collate = Some(None),
                _ if depth == 0 && collate.is_none() && is(&tokens[*at], COLLATE) => collate = Some(Some(end)),
                _ => {}
            }
            end += 1;
        }
        if let Some(Some(collate)) = collate {
            found.push((name, collate, end));
        }
    }
    for (name, collate, end) in found.into_iter().rev() {
        let mut parts = Vec::new();
        let mut next = collate + 1;
        while let Some(Token::Word(part)) = places.get(next).map(|at| &tokens[*at].token) {
            parts.push(folded(&part.value, part.quote_style));
            let goes_on = places
                .get(next + 1)
                .is_some_and(|at| tokens[*at].token == Token::Period);
            next += if goes_on { 2 } else { 1 };
            if !goes_on {
                break;
            }
        }
        let said = parts.join(&SIGN.to_string()).replace('"', "\"\"");
        let column = tokens[places[name]].clone();
        let like = &tokens[places[collate]];
        let mut new = made(", ALTER COLUMN ", like);
        new.push(column);
        new.extend(made(&format!(" SET DEFAULT \"{SIGN}{COLLATE} {said}\""), like));
        let end = places.get(end).copied().unwrap_or(tokens.len());
        tokens.splice(end..end, new);
        let last = places.get(next).copied().unwrap_or(end);
        tokens.drain(places[collate]..last);
    }
}

/// Spells ALTER CONSTRAINT out.
fn spell_out_constraints(tokens: &mut Vec<TokenWithSpan>) {
    let places: Vec<usize> = solid(tokens, 0).collect();
    let word = |n: usize, word: &str| places.get(n).is_some_and(|at| is(&tokens[*at], word));
    let mut found = Vec::new();
    for n in 0..places.len() {
        if !word(n, "alter") || !word(n + 1, "constraint") {
            continue;
        }
        let said = (n + 3..places.len()).map_while(|at| TIMING.into_iter().find(|own| word(at, own)));
        let said: Vec<&str> = said.collect();
        if !said.is_empty() {
            found.push((places[n + 1], places[n + 3], places[n + 2 + said.len()], said.join(" ")));
        }
    }
    for (kind, from, to, said) in found.into_iter().rev() {
        let text = format!("SET DEFAULT \"{SIGN}{CONSTRAINT} {said}\"");
        let new = made(&text, &tokens[from]);
        tokens.splice(from..=to, new);
        tokens[kind].token = Token::make_keyword("COLUMN");
    }
}

/// Spells them out.
pub(super) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    if tokens.iter().any(|token| is(token, "alter")) && tokens.iter().any(|token| is(token, CONSTRAINT)) {
        spell_out_constraints(tokens);
    }
    if tokens.iter().any(|token| is(token, "alter")) && tokens.iter().any(|token| is(token, COLLATE)) {
        spell_out_collations(tokens);
    }
    let has = |word: &str| tokens.iter().any(|token| is(token, word));
    if !(has("alter") && (has("identity") || has("expression") || has("generated"))) {
        return;
    }
    let places: Vec<usize> = solid(tokens, 0).collect();
    let word = |n: usize, word: &str| places.get(n).is_some_and(|at| is(&tokens[*at], word));
    let mut found = Vec::new();
    for n in 2..places.len() {
        // `ALTER name DROP`, `ALTER COLUMN name DROP`: a column that is dropped may be called IDENTITY.
        let is_column = word(n - 2, "alter") || n > 2 && word(n - 2, "column") && word(n - 3, "alter");
        if !is_column || !matches!(tokens[places[n - 1]].token, Token::Word(_)) {
            continue;
        }
        let matching = Altered::ALL.into_iter().filter(|own| {
            let mut words = own.words().iter().enumerate();
            words.all(|(i, own)| word(n + i, own))
        });
        if let Some(own) = matching.max_by_key(|own| own.words().len()) {
            found.push((places[n], places[n + own.words().len() - 1], own));
        }
    }
    for (from, to, own) in found.into_iter().rev() {
        let text = format!("SET DEFAULT \"{}\"", own.name());
        let new = made(&text, &tokens[from]);
        tokens.splice(from..=to, new);
    }
}
