//! Calls that have a grammar of their own which the library does not read: `substring(a SIMILAR b ESCAPE c)`, `trim(BOTH FROM a, b)` and
//! `normalize(a, NFC)`.

use super::tokens::{closing, is, solid};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Writes them as calls with commas.
pub(super) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        if is(&tokens[at], "normalize")
            && let Some(form) = normal_form(tokens, at + 1)
            && let Token::Word(word) = &tokens[form].token
        {
            tokens[form].token = Token::SingleQuotedString(word.value.to_uppercase());
        }
        let is_substring = is(&tokens[at], "substring");
        if (is_substring || is(&tokens[at], "trim"))
            && let [open, first] = solid(tokens, at + 1).take(2).collect::<Vec<_>>()[..]
            && tokens[open].token == Token::LParen
            && let Some(close) = closing(tokens, open)
        {
            match is_substring {
                true => with_commas(&mut tokens[open + 1..close]),
                false => by_side(tokens, at, (open, first, close)),
            }
        }
        at += 1;
    }
}

/// Where the word stands that names the form of `normalize(text, NFC)`, whose arguments begin at a place.
fn normal_form(tokens: &[TokenWithSpan], from: usize) -> Option<usize> {
    let open = solid(tokens, from)
        .next()
        .filter(|at| tokens[*at].token == Token::LParen)?;
    let close = closing(tokens, open)?;
    let inner: Vec<usize> = solid(&tokens[..close], open + 1).collect();
    let [.., comma, form] = inner[..] else { return None };
    let is_form = ["nfc", "nfd", "nfkc", "nfkd"]
        .iter()
        .any(|word| is(&tokens[form], word));
    (tokens[comma].token == Token::Comma && is_form).then_some(form)
}

/// Places of tokens of a list that are in no parentheses within it.
fn outer(tokens: &[TokenWithSpan]) -> Vec<usize> {
    let mut depth = 0usize;
    let mut out = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token.token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
            _ if depth == 0 => out.push(at),
            _ => {}
        }
    }
    out
}

/// `a SIMILAR b ESCAPE c` as three arguments.
fn with_commas(tokens: &mut [TokenWithSpan]) {
    let outer = outer(tokens);
    let find = |word: &str| outer.iter().copied().find(|at| is(&tokens[*at], word));
    if let (Some(similar), Some(escape)) = (find("similar"), find("escape"))
        && similar < escape
    {
        for at in [similar, escape] {
            tokens[at].token = Token::Comma;
        }
    }
}

/// `trim([side] FROM a, b)` as a call of the function of that side.
fn by_side(tokens: &mut Vec<TokenWithSpan>, at: usize, (open, first, close): (usize, usize, usize)) {
    let name = match () {
        () if is(&tokens[first], "leading") => Some("ltrim"),
        () if is(&tokens[first], "trailing") => Some("rtrim"),
        () if is(&tokens[first], "both") => Some("btrim"),
        () => None,
    };
    let from = match name {
        Some(_) => solid(tokens, first + 1).next().unwrap_or(first),
        None => first,
    };
    let has_comma = outer(&tokens[open + 1..close])
        .into_iter()
        .any(|place| tokens[open + 1 + place].token == Token::Comma);
    if is(&tokens[from], "from") && has_comma {
        tokens[at].token = Token::make_word(name.unwrap_or("btrim"), None);
        tokens.drain(first..from + 1);
    }
}
