//! Options of sequences in the order in which the grammar wants them: `START WITH 5 INCREMENT BY 2` and the other way round are the same.

use sqlparser::tokenizer::{Token, TokenWithSpan};

fn word(token: &TokenWithSpan) -> String {
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_uppercase(),
        _ => String::new(),
    }
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

/// Sorts the options of CREATE SEQUENCE, and of columns AS IDENTITY.
pub(super) fn put_in_order(tokens: &mut [TokenWithSpan]) {
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
