//! Tokenizers: which pieces of a text are tokens.

use super::Token;
use super::grams::Grams;
use nestor_model::Result;
use nestor_model::statement::work;
use nestor_query::regex::Regex;
use unicode_segmentation::UnicodeSegmentation;

/// Characters of the longest token of tokenizers that cut longer ones.
pub(super) const TOKEN_CHARS_MAX: usize = 255;

/// Which pieces of a text are tokens.
#[derive(Debug)]
pub(super) enum Tokenizer {
    /// Words as Unicode finds them (UAX #29).
    Standard { longest: usize },
    /// As the first, but addresses of pages and of mail are one token each.
    Addresses { longest: usize },
    /// Runs of letters.
    Letters,
    /// What lies between white space.
    Whitespace { longest: usize },
    /// The whole text.
    Keyword,
    /// The beginnings of the text.
    EdgeGrams(Grams),
    /// The pieces of the text that have these lengths.
    Grams(Grams),
    /// What lies between matches.
    Split(Regex),
    /// A group of each match.
    Group(Regex, usize),
}

impl Tokenizer {
    /// The tokens of a text, their positions counted from 0.
    pub(super) fn tokens(&self, text: &str) -> Result<Vec<Token>> {
        let mut out = Pieces::default();
        match self {
            Self::Standard { longest } => standard(text, *longest, &mut out),
            Self::Addresses { longest } => addresses(text, *longest, &mut out),
            Self::Letters => out.runs(text, char::is_alphabetic, TOKEN_CHARS_MAX),
            Self::Whitespace { longest } => out.runs(text, |c| !c.is_whitespace(), *longest),
            Self::Keyword if text.is_empty() => {}
            Self::Keyword => out.push(text, 0),
            Self::EdgeGrams(grams) => grams.edges(text, |at, piece| {
                out.push(piece, at);
                Ok(())
            })?,
            Self::Grams(grams) => grams.all(text, |at, piece| {
                out.push(piece, at);
                Ok(())
            })?,
            Self::Split(pattern) => {
                let mut from = 0;
                for_each_match(pattern, text, |groups| {
                    if let Some(Some((start, end))) = groups.first() {
                        out.push_some(&text[from..*start], from);
                        from = *end;
                    }
                })?;
                out.push_some(&text[from..], from);
            }
            Self::Group(pattern, group) => for_each_match(pattern, text, |groups| {
                if let Some(Some((start, end))) = groups.get(*group) {
                    out.push_some(&text[*start..*end], *start);
                }
            })?,
        }
        Ok(out.tokens)
    }
}

fn for_each_match(pattern: &Regex, text: &str, mut each: impl FnMut(&[Option<(usize, usize)>])) -> Result<()> {
    let mut from = 0;
    while from <= text.len() {
        work(1)?;
        let Some(groups) = pattern.captures_at(text, from)? else {
            return Ok(());
        };
        let Some(Some((start, end))) = groups.first().copied() else {
            return Ok(());
        };
        if end > start {
            each(&groups);
            from = end;
        } else {
            // An empty match separates nothing; the next one begins behind the next character.
            from = text[end..]
                .chars()
                .next()
                .map_or(text.len() + 1, |c| end + c.len_utf8());
        }
    }
    Ok(())
}

/// Tokens as they are found.
#[derive(Default)]
struct Pieces {
    tokens: Vec<Token>,
}

impl Pieces {
    fn push(&mut self, text: &str, start: usize) {
        self.tokens.push(Token {
            text: text.to_owned(),
            position: self.tokens.len() as u32,
            start: start as u32,
            end: (start + text.len()) as u32,
        });
    }

    fn push_some(&mut self, text: &str, start: usize) {
        if !text.is_empty() {
            self.push(text, start);
        }
    }

    /// A token, or its pieces if it is too long.
    fn push_cut(&mut self, text: &str, start: usize, longest: usize) {
        if text.len() <= longest {
            return self.push_some(text, start);
        }
        let (mut from, mut length) = (0, 0);
        for (at, _) in text.char_indices() {
            if length == longest {
                self.push_some(&text[from..at], start + from);
                (from, length) = (at, 0);
            }
            length += 1;
        }
        self.push_some(&text[from..], start + from);
    }

    fn runs(&mut self, text: &str, is_part: impl Fn(char) -> bool, longest: usize) {
        let mut begin = None;
        for (at, c) in text.char_indices() {
            match (begin, is_part(c)) {
                (None, true) => begin = Some(at),
                (Some(from), false) => {
                    self.push_cut(&text[from..at], from, longest);
                    begin = None;
                }
                _ => {}
            }
        }
        if let Some(from) = begin {
            self.push_cut(&text[from..], from, longest);
        }
    }
}

fn standard(text: &str, longest: usize, out: &mut Pieces) {
    for (at, piece) in text.split_word_bound_indices() {
        if is_word(piece) {
            out.push_cut(piece, at, longest);
        }
    }
}

/// Whether a piece between word boundaries is a token: it has a letter, a digit or an emoji.
fn is_word(piece: &str) -> bool {
    piece.chars().any(|c| c.is_alphanumeric() || is_emoji(c))
}

fn is_emoji(c: char) -> bool {
    matches!(c, '\u{1F1E6}'..='\u{1F1FF}' | '\u{1F300}'..='\u{1FAFF}' | '\u{2600}'..='\u{27BF}')
}

fn addresses(text: &str, longest: usize, out: &mut Pieces) {
    let mut rest = 0;
    let mut begin = None;
    let ends = text.char_indices().map(|(at, c)| (at, c.is_whitespace()));
    for (at, is_space) in ends.chain(std::iter::once((text.len(), true))) {
        match (begin, is_space) {
            (None, false) => begin = Some(at),
            (Some(from), true) => {
                begin = None;
                let word = text[from..at].trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '"', '\'']);
                let lead = word.len() - word.trim_start_matches(['(', '"', '\'', '<']).len();
                let word = &word[lead..];
                if is_address(word) {
                    offset(&text[rest..from], rest, longest, out);
                    out.push_cut(word, from + lead, longest);
                    rest = from + lead + word.len();
                }
            }
            _ => {}
        }
    }
    offset(&text[rest..], rest, longest, out);
}

/// The words of a piece that begins at `start`.
fn offset(piece: &str, start: usize, longest: usize, out: &mut Pieces) {
    for (at, word) in piece.split_word_bound_indices() {
        if is_word(word) {
            out.push_cut(word, start + at, longest);
        }
    }
}

fn is_address(word: &str) -> bool {
    let is_host = |host: &str| {
        let mut labels = host.split('.');
        let fits = |label: &str| !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-');
        host.contains('.') && labels.all(fits)
    };
    if let Some((scheme, rest)) = word.split_once("://") {
        let host = rest.split(['/', '?', '#', ':']).next().unwrap_or_default();
        return !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric()) && !host.is_empty();
    }
    match word.split_once('@') {
        Some((user, host)) => !user.is_empty() && !user.contains(['/', '<', '>']) && is_host(host),
        None => word.starts_with("www.") && is_host(word.split(['/', '?', '#', ':']).next().unwrap_or_default()),
    }
}
