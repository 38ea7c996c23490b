//! Options of sequences in the order in which the grammar wants them: `START WITH 5 INCREMENT BY 2` and the other way round are the same.

use super::word::is;
use crate::error::unsupported;
use crate::types::names;
use nestor_model::Result;
use sqlparser::tokenizer::{Token, TokenWithSpan};

fn word(token: &TokenWithSpan) -> String {
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_uppercase(),
        _ => String::new(),
    }
}

/// The name of the sequence that gives a column its numbers.
pub fn sequence_of(table: &str, column: &str) -> String {
    names::made(table, Some(column), "seq").next().unwrap_or_default()
}

/// The place of an option that begins with a word, after `NO` or not.
fn rank(word: &str) -> Option<usize> {
    let order = [
        "AS",
        "INCREMENT",
        "MINVALUE",
        "MAXVALUE",
        "START",
        "CACHE",
        "CYCLE",
        "OWNED",
    ];
    order.iter().position(|own| *own == word)
}

/// Sorts the options between two tokens; what stands before the first one stays there.
fn sort(tokens: &mut [TokenWithSpan]) {
    let mut groups: Vec<(usize, Vec<TokenWithSpan>)> = vec![(0, Vec::new())];
    let mut is_negated = false;
    for (i, token) in tokens.iter().enumerate() {
        let own = word(token);
        let next = tokens[i + 1..].iter().map(word).find(|word| !word.is_empty());
        let begins = match own.as_str() {
            "NO" => next.as_deref().and_then(rank),
            own if is_negated => rank(own).and(None),
            own => rank(own),
        };
        if !matches!(token.token, Token::Whitespace(_)) {
            is_negated = own == "NO";
        }
        match (begins, groups.last_mut()) {
            (Some(rank), _) => groups.push((rank + 1, vec![token.clone()])),
            (None, Some((_, group))) => group.push(token.clone()),
            (None, None) => {}
        }
    }
    groups.sort_by_key(|(rank, _)| *rank);
    let sorted = groups.into_iter().flat_map(|(_, group)| group);
    for (place, token) in tokens.iter_mut().zip(sorted) {
        *place = token;
    }
}

/// Leaves out `SEQUENCE NAME` where it is the name that the sequence of an IDENTITY column has anyway, as pg_dump writes it.
///
/// Errors: 0A000 for other names.
pub(super) fn leave_out_names(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    if !tokens.iter().any(|token| is(&token.token, "sequence")) {
        return Ok(());
    }
    let said: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
        .collect();
    let is = |place: usize, wanted: &str| said.get(place).is_some_and(|at| word(&tokens[*at]) == wanted);
    let is_sign = |place: usize, sign: &Token| said.get(place).is_some_and(|at| tokens[*at].token == *sign);
    // The last part of the name at a place, and the place behind it.
    let name_at = |mut place: usize| {
        while is_sign(place + 1, &Token::Period) {
            place += 2;
        }
        let name = match said.get(place).map(|at| &tokens[*at].token) {
            Some(Token::Word(word)) if word.quote_style.is_some() => word.value.clone(),
            Some(Token::Word(word)) => word.value.to_lowercase(),
            _ => String::new(),
        };
        (name, place + 1)
    };
    let (mut gone, mut table, mut column) = (Vec::new(), String::new(), String::new());
    for place in 0..said.len() {
        if is(place, "TABLE") {
            let after = |from: usize, word: &str| from + usize::from(is(from, word));
            table = name_at(after(after(after(place + 1, "IF"), "EXISTS"), "ONLY")).0;
        } else if is(place, "COLUMN") {
            column = name_at(place + 1).0;
        } else if is_sign(place, &Token::LParen) && is(place + 1, "SEQUENCE") && is(place + 2, "NAME") {
            let (name, end) = name_at(place + 3);
            if name != sequence_of(&table, &column) {
                return unsupported(format!("the name \"{name}\" for the sequence of a column"));
            }
            gone.push((said[place] + 1, said[end - 1] + 1));
        }
    }
    for (from, to) in gone.into_iter().rev() {
        tokens.drain(from..to);
    }
    Ok(())
}

/// Sorts the options of CREATE SEQUENCE, and of columns AS IDENTITY.
pub(super) fn put_in_order(tokens: &mut [TokenWithSpan]) {
    let begins = |token: &TokenWithSpan| is(&token.token, "sequence") || is(&token.token, "identity");
    if !tokens.iter().any(begins) {
        return;
    }
    let words: Vec<usize> = (0..tokens.len())
        .filter(|i| !matches!(tokens[*i].token, Token::Whitespace(_)))
        .collect();
    let at = |place: usize| words.get(place).map(|i| (*i, &tokens[*i]));
    let mut regions = Vec::new();
    for place in 0..words.len() {
        let (Some((from, token)), Some((_, next))) = (at(place), at(place + 1)) else {
            break;
        };
        let before = place.checked_sub(1).and_then(at).map(|(_, token)| word(token));
        let end = match word(token).as_str() {
            "SEQUENCE" if matches!(before.as_deref(), Some("CREATE" | "TEMP" | "TEMPORARY")) => {
                let rest = tokens[from..].iter();
                let end = rest.clone().position(|token| token.token == Token::SemiColon);
                from + end.unwrap_or(rest.len())
            }
            "IDENTITY" if next.token == Token::LParen => {
                let rest = tokens[from..].iter();
                from + rest
                    .clone()
                    .position(|token| token.token == Token::RParen)
                    .unwrap_or(rest.len())
            }
            _ => continue,
        };
        regions.push((from + 1, end));
    }
    for (from, to) in regions {
        if let Some(region) = tokens.get_mut(from..to) {
            sort(region);
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_name_that_a_sequence_has_anyway_may_be_said() {
        let alter = |name: &str| {
            let said = if name.is_empty() {
                String::new()
            } else {
                format!("SEQUENCE NAME {name}")
            };
            super::super::parse(&format!(
                "ALTER TABLE ONLY public.t ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY ({said} START WITH 10)"
            ))
        };
        assert_eq!(alter("public.t_id_seq").unwrap(), alter("").unwrap());
        assert_eq!(crate::error::state(&alter("public.other").unwrap_err()), "0A000");
    }

    #[test]
    fn options_come_in_any_order() {
        for (text, same) in [
            (
                "CREATE SEQUENCE s START WITH 5 INCREMENT BY -2 NO MAXVALUE MINVALUE 1",
                "CREATE SEQUENCE s INCREMENT BY -2 MINVALUE 1 NO MAXVALUE START WITH 5",
            ),
            (
                "CREATE TABLE t (a int GENERATED ALWAYS AS IDENTITY (NO CYCLE START 3), start int); SELECT 1",
                "CREATE TABLE t (a int GENERATED ALWAYS AS IDENTITY (START 3 NO CYCLE), start int); SELECT 1",
            ),
        ] {
            assert_eq!(super::super::parse(text).unwrap(), super::super::parse(same).unwrap());
        }
    }
}
