//! Locks of rows as the grammar's library reads them: `FOR NO KEY UPDATE` is `FOR UPDATE` and `FOR KEY SHARE` is `FOR SHARE`, which are the same
//! here, and of several tables each has a clause of its own.

use super::tokens::{is, solid};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// The place of what a lock is called by its last word, if one begins at `at`: `UPDATE` or `SHARE`.
fn strength(tokens: &[TokenWithSpan], at: usize) -> Option<(usize, usize)> {
    if !is(&tokens[at], "for") {
        return None;
    }
    let next: Vec<usize> = solid(tokens, at + 1).take(3).collect();
    let word = |n: usize, word: &str| next.get(n).is_some_and(|at| is(&tokens[*at], word));
    let last = match () {
        () if word(0, "update") || word(0, "share") => 0,
        () if word(0, "no") && word(1, "key") && word(2, "update") => 2,
        () if word(0, "key") && word(1, "share") => 1,
        () => return None,
    };
    Some((*next.first()?, *next.get(last)?))
}

/// The end of a name at `at`, which may have a schema, and whether a comma follows.
fn name(tokens: &[TokenWithSpan], at: usize) -> Option<(usize, bool)> {
    let mut places = solid(tokens, at);
    loop {
        let word = places.next()?;
        if !matches!(tokens[word].token, Token::Word(_)) {
            return None;
        }
        match places.next().map(|at| (at, &tokens[at].token)) {
            Some((_, Token::Period)) => {}
            Some((_, Token::Comma)) => return Some((word + 1, true)),
            _ => return Some((word + 1, false)),
        }
    }
}

/// The tables behind `OF`, whose place is `at`: where each begins and ends.
fn tables(tokens: &[TokenWithSpan], at: usize) -> Option<Vec<(usize, usize)>> {
    let mut out = Vec::new();
    let mut at = solid(tokens, at + 1).next()?;
    loop {
        let (end, goes_on) = name(tokens, at)?;
        out.push((at, end));
        if !goes_on {
            return Some(out);
        }
        let comma = solid(tokens, end).next()?;
        at = solid(tokens, comma + 1).next()?;
    }
}

/// Writes all locks in the form that is read.
pub(super) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        if let Some((first, last)) = strength(tokens, at) {
            tokens.drain(first..last);
            let of = solid(tokens, first + 1).next().filter(|of| is(&tokens[*of], "of"));
            if let Some((of, names)) = of.and_then(|of| Some((of, tables(tokens, of)?)))
                && names.len() > 1
            {
                let end = names.last().map_or(of, |(_, end)| *end);
                let next: Vec<usize> = solid(tokens, end).take(2).collect();
                let word = |n: usize, word: &str| next.get(n).is_some_and(|at| is(&tokens[*at], word));
                let end_of_clause = match () {
                    () if word(0, "nowait") => next[0] + 1,
                    () if word(0, "skip") && word(1, "locked") => next[1] + 1,
                    () => end,
                };
                let space = TokenWithSpan::wrap(Token::Whitespace(sqlparser::tokenizer::Whitespace::Space));
                let begin = &tokens[at..=of];
                let tail = &tokens[end..end_of_clause];
                let clauses = names.iter().flat_map(|(from, to)| {
                    let parts = [begin, std::slice::from_ref(&space), &tokens[*from..*to], tail];
                    let clause: Vec<TokenWithSpan> = parts.concat();
                    clause.into_iter().chain([space.clone()])
                });
                let clauses: Vec<TokenWithSpan> = clauses.collect();
                let length = clauses.len();
                tokens.splice(at..end_of_clause, clauses);
                at += length;
                continue;
            }
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn locks_are_spelled_out() {
        for (text, same) in [
            (
                "SELECT 1 FROM a FOR NO KEY UPDATE NOWAIT",
                "SELECT 1 FROM a FOR UPDATE NOWAIT",
            ),
            (
                "SELECT 1 FROM a LIMIT 1 FOR KEY SHARE OF a",
                "SELECT 1 FROM a LIMIT 1 FOR SHARE OF a",
            ),
            (
                "SELECT 1 FROM a, s.b FOR NO KEY UPDATE OF a, b SKIP LOCKED FOR SHARE OF a",
                "SELECT 1 FROM a, s.b FOR UPDATE OF a SKIP LOCKED FOR UPDATE OF b SKIP LOCKED FOR SHARE OF a",
            ),
            (
                "SELECT (SELECT 1 FROM a, b FOR UPDATE OF a, b) FROM c",
                "SELECT (SELECT 1 FROM a, b FOR UPDATE OF a FOR UPDATE OF b) FROM c",
            ),
        ] {
            assert_eq!(super::super::parse(text).unwrap(), super::super::parse(same).unwrap());
        }
        assert!(super::super::parse("SELECT 1 FROM a FOR UPDATE OF a,").is_err());
    }
}
