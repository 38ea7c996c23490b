//! `INSERT INTO t … OVERRIDING SYSTEM VALUE`, which the grammar does not know: it becomes `INSERT OVERWRITE INTO t …`, which nobody else may
//! write.

use super::word::is;
use crate::error::{fail, unsupported};
use nestor_model::Result;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Spells such statements out.
///
/// Errors: 42601 for `INSERT OVERWRITE`, 0A000 for OVERRIDING USER VALUE.
pub(super) fn spell_out(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    if !tokens.iter().any(|token| is(&token.token, "INSERT")) {
        return Ok(());
    }
    let words: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
        .collect();
    let is_at = |place: usize, wanted: &str| words.get(place).is_some_and(|at| is(&tokens[*at].token, wanted));
    let (mut into, mut said) = (None, Vec::new());
    for place in 0..words.len() {
        if is_at(place, "INSERT") {
            if is_at(place + 1, "OVERWRITE") {
                return fail("42601", "syntax error at or near \"OVERWRITE\"");
            }
            into = is_at(place + 1, "INTO").then(|| words[place + 1]);
        }
        if is_at(place, "OVERRIDING") && is_at(place + 2, "VALUE") {
            match into.take() {
                Some(into) if is_at(place + 1, "SYSTEM") => said.push((into, words[place], words[place + 2])),
                Some(_) if is_at(place + 1, "USER") => return unsupported("OVERRIDING USER VALUE"),
                _ => {}
            }
        }
    }
    for (into, from, to) in said.into_iter().rev() {
        let span = tokens[into].span;
        tokens.drain(from..=to);
        tokens.insert(into, TokenWithSpan::new(Token::make_keyword("OVERWRITE"), span));
    }
    Ok(())
}
