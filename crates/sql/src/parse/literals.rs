//! Literals that the grammar's library does not read: texts with Unicode escapes of a character of their own (`U&'d!0061t' UESCAPE '!'`, names
//! too), and texts that go on in another line.

use super::tokens::solid;
use crate::error::{error, fail, unsupported};
use nestor_model::Result;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};
use std::borrow::Cow;

/// The text with all texts and names of Unicode escapes as plain ones.
///
/// Errors: 42601.
pub(super) fn plain(text: &str) -> Result<Cow<'_, str>> {
    let bytes = text.as_bytes();
    if !bytes
        .windows(3)
        .any(|part| matches!(part, [b'u' | b'U', b'&', b'\'' | b'"']))
    {
        return Ok(Cow::Borrowed(text));
    }
    let mut out = String::with_capacity(text.len());
    let (mut at, mut copied) = (0, 0);
    while at < bytes.len() {
        let begins = at == 0 || !is_of_name(bytes[at - 1]);
        match (bytes[at], bytes.get(at + 1)) {
            (b'u' | b'U', Some(b'&')) if begins && matches!(bytes.get(at + 2), Some(b'\'' | b'"')) => {
                let quote = bytes[at + 2];
                let end = quoted(bytes, at + 2, false);
                out.push_str(&text[copied..at]);
                let body = text.get(at + 3..end.saturating_sub(1)).unwrap_or_default();
                let (escape, after) = escape_of(text, end)?;
                let sign = char::from(quote);
                out.push(sign);
                out.push_str(&decoded(body, escape, sign)?);
                out.push(sign);
                (at, copied) = (after, after);
            }
            (b'e' | b'E', Some(b'\'')) if begins => at = quoted(bytes, at + 1, true),
            (b'\'' | b'"', _) => at = quoted(bytes, at, false),
            (b'-', Some(b'-')) => at += text[at..].find('\n').unwrap_or(bytes.len() - at),
            (b'/', Some(b'*')) => at = comment(bytes, at),
            (b'$', _) if begins => at = dollars(text, at),
            _ => at += 1,
        }
    }
    out.push_str(&text[copied..]);
    Ok(Cow::Owned(out))
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || !byte.is_ascii()
}

/// Behind the text in quotes that begins at a place.
fn quoted(bytes: &[u8], open: usize, escapes: bool) -> usize {
    let mut at = open + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if escapes => at += 2,
            byte if byte == bytes[open] && bytes.get(at + 1) == Some(&byte) => at += 2,
            byte if byte == bytes[open] => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Behind the comment that begins at a place.
fn comment(bytes: &[u8], open: usize) -> usize {
    let (mut depth, mut at) = (1usize, open + 2);
    while at < bytes.len() && depth > 0 {
        match (bytes[at], bytes.get(at + 1)) {
            (b'/', Some(b'*')) => (depth, at) = (depth + 1, at + 2),
            (b'*', Some(b'/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    at
}

/// Behind the text between dollars that begins at a place, or behind the dollar if none does.
fn dollars(text: &str, open: usize) -> usize {
    let rest = &text[open + 1..];
    let end = rest
        .find(|c: char| !(c.is_alphanumeric() || c == '_'))
        .unwrap_or(rest.len());
    let is_tag = rest[end..].starts_with('$') && !rest.starts_with(|c: char| c.is_ascii_digit());
    let tag = &text[open..open + 1 + end + usize::from(is_tag)];
    let from = open + tag.len();
    match text[from..].find(tag).filter(|_| is_tag) {
        Some(close) => from + close + tag.len(),
        None => open + 1,
    }
}

/// The escape character that UESCAPE names behind a place, and where that ends.
fn escape_of(text: &str, from: usize) -> Result<(char, usize)> {
    let word = text[from..].trim_start();
    let named = word.get(..7).filter(|word| word.eq_ignore_ascii_case("uescape"));
    let Some(rest) = named
        .map(|_| word[7..].trim_start())
        .filter(|rest| rest.starts_with('\''))
    else {
        return Ok(('\\', from));
    };
    let mut chars = rest.chars().skip(1);
    let (escape, end) = (chars.next(), chars.next());
    let wrong = |c: char| c.is_ascii_hexdigit() || matches!(c, '+' | '\'' | '"') || c.is_whitespace();
    match escape.filter(|c| !wrong(*c) && end == Some('\'')) {
        Some(escape) => Ok((escape, text.len() - rest.len() + 2 + escape.len_utf8())),
        None => fail("42601", "invalid Unicode escape character"),
    }
}

/// A text whose escapes are read, with its quotes doubled as they were.
fn decoded(body: &str, escape: char, quote: char) -> Result<String> {
    let invalid = || error("42601", "invalid Unicode escape");
    let mut out = String::with_capacity(body.len());
    let mut rest = body;
    let mut high: Option<u32> = None;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c != escape || rest.starts_with(escape) {
            if high.is_some() {
                return fail("42601", "invalid Unicode surrogate pair");
            }
            if c == escape {
                rest = &rest[escape.len_utf8()..];
            }
            out.push(c);
            continue;
        }
        let (skips, length) = if rest.starts_with('+') { (1, 6) } else { (0, 4) };
        let digits = rest.get(skips..skips + length).ok_or_else(invalid)?;
        if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(invalid());
        }
        rest = &rest[skips + length..];
        let code = u32::from_str_radix(digits, 16).map_err(|_| invalid())?;
        let code = match (high.take(), code) {
            (None, 0xD800..0xDC00) => {
                high = Some(code);
                continue;
            }
            (Some(high), 0xDC00..0xE000) => 0x1_0000 + ((high - 0xD800) << 10) + (code - 0xDC00),
            (Some(_), _) | (None, 0xDC00..0xE000) => return fail("42601", "invalid Unicode surrogate pair"),
            (None, code) => code,
        };
        match char::from_u32(code).filter(|c| *c != '\0') {
            Some(c) if c == quote => out.extend([c, c]),
            Some(c) => out.push(c),
            None => return fail("42601", "invalid Unicode escape value"),
        }
    }
    match high {
        None => Ok(out),
        Some(_) => fail("42601", "invalid Unicode surrogate pair"),
    }
}

/// Whether the grammar would print a text otherwise than it is: it takes a quote behind another one, or behind a backslash, for one that is
/// doubled already.
fn is_printed_wrong(text: &str, quote: char) -> bool {
    text.match_indices(quote)
        .any(|(at, _)| text[..at].ends_with([quote, '\\']))
}

/// Gives texts that would be printed otherwise than they are a form that is not: declarations are kept as they are printed.
///
/// Errors: 0A000 for names of that kind, which have no other form.
pub(super) fn keep_quotes(tokens: &mut [TokenWithSpan]) -> Result<()> {
    // Labels of enums are names to the grammar, and printed as lists that take care of it.
    let mut is_label = false;
    for token in tokens {
        match &mut token.token {
            Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("enum") => {
                is_label = true
            }
            Token::RParen | Token::SemiColon => is_label = false,
            Token::SingleQuotedString(text) if !is_label && is_printed_wrong(text, '\'') => {
                token.token = Token::EscapedStringLiteral(std::mem::take(text));
            }
            Token::Word(word) if word.quote_style == Some('"') && is_printed_wrong(&word.value, '"') => {
                return unsupported("a name with a quote behind a quote or a backslash");
            }
            _ => {}
        }
    }
    Ok(())
}

/// Makes one text of several that stand in lines of their own.
///
/// Errors: 42601 for two in one line.
pub(super) fn join(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    let is_text = |token: &Token| matches!(token, Token::SingleQuotedString(_));
    let begins = |token: &Token| {
        is_text(token) || matches!(token, Token::EscapedStringLiteral(_) | Token::NationalStringLiteral(_))
    };
    let places: Vec<usize> = solid(tokens, 0).collect();
    let mut pairs = Vec::new();
    for pair in places.windows(2) {
        let [first, second] = [pair[0], pair[1]];
        if !begins(&tokens[first].token) || !is_text(&tokens[second].token) {
            continue;
        }
        let between = &tokens[first + 1..second];
        let ends_line = |token: &TokenWithSpan| {
            matches!(
                token.token,
                Token::Whitespace(Whitespace::Newline | Whitespace::SingleLineComment { .. })
            )
        };
        let is_block =
            |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(Whitespace::MultiLineComment(_)));
        if !between.iter().any(ends_line) || between.iter().any(is_block) {
            return fail("42601", format!("syntax error at or near \"{}\"", tokens[second].token));
        }
        pairs.push((first, second));
    }
    for (first, second) in pairs.into_iter().rev() {
        let Token::SingleQuotedString(more) = tokens[second].token.clone() else {
            continue;
        };
        if let Token::SingleQuotedString(text)
        | Token::EscapedStringLiteral(text)
        | Token::NationalStringLiteral(text) = &mut tokens[first].token
        {
            text.push_str(&more);
        }
        tokens.drain(first + 1..second + 1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn escapes_are_read_where_texts_are() {
        assert_eq!(
            plain("SELECT U&'d!0061t!+000061' uescape '!' x").unwrap(),
            "SELECT 'data' x"
        );
        assert_eq!(plain("SELECT U&\"d\\0061\" -- U&'x").unwrap(), "SELECT \"da\" -- U&'x");
        assert_eq!(
            plain("'U&''\\0061' $x$U&'\\0061'$x$ /* U&'\\0061' */").unwrap(),
            "'U&''\\0061' $x$U&'\\0061'$x$ /* U&'\\0061' */"
        );
        assert_eq!(plain("u&'\\D83D\\DE00\\0027''\\\\'").unwrap(), "'\u{1F600}''''\\'");
        for wrong in [
            "U&'\\006'",
            "U&'\\D83D'",
            "U&'\\DE00'",
            "U&'x' UESCAPE '+'",
            "U&'\\+110000'",
        ] {
            assert!(plain(wrong).is_err(), "{wrong}");
        }
    }
}
