//! What of a text shows that it matches a query.
//!
//! The text is cut into parts, of which some are lexemes of the query. Stretches from one of these to another that match the query are covers. Without
//! `MaxFragments` the best cover is made longer or shorter until it has a good number of words; with it several covers are, which are cut where they
//! are long.
//!
//! Source: manual, chapter 12.3.4, and what PostgreSQL 15 answers.

use super::matching::{Found, Text, holds};
use super::tokens::{Kind, Tokens};
use super::words::is_too_long;
use crate::error::{error, fail};
use crate::types::regconfig::Config;
use crate::types::tsquery::{Operand, TsQuery};
use nestor_model::statement::{charge, work};
use nestor_model::{Document, Result, Value, ValueRef};

/// How headlines are made.
#[derive(Clone, Debug)]
pub struct Options {
    words_max: i64,
    words_min: i64,
    short_word: i64,
    fragments_max: i64,
    highlights_all: bool,
    start: String,
    stop: String,
    delimiter: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            words_max: 35,
            words_min: 15,
            short_word: 3,
            fragments_max: 0,
            highlights_all: false,
            start: "<b>".to_owned(),
            stop: "</b>".to_owned(),
            delimiter: " ... ".to_owned(),
        }
    }
}

impl Options {
    /// What a text says, as `MaxWords=20, StartSel='<i>'`.
    ///
    /// Errors: 42601, 22P02, 22023.
    pub fn parse(text: &str) -> Result<Self> {
        let mut out = Self::default();
        for (name, value) in pairs(text)? {
            let number = || -> Result<i64> {
                let read = crate::types::input::text(&crate::types::Type::Int4, &value)?;
                Ok(crate::types::integer(&read).unwrap_or(0))
            };
            match name.to_ascii_lowercase().as_str() {
                "maxwords" => out.words_max = number()?,
                "minwords" => out.words_min = number()?,
                "shortword" => out.short_word = number()?,
                "maxfragments" => out.fragments_max = number()?,
                "startsel" => out.start = value,
                "stopsel" => out.stop = value,
                "fragmentdelimiter" => out.delimiter = value,
                "highlightall" => {
                    let value = value.to_ascii_lowercase();
                    out.highlights_all = matches!(value.as_str(), "1" | "on" | "true" | "t" | "y" | "yes");
                }
                _ => return fail("22023", format!("unrecognized headline parameter: \"{name}\"")),
            }
        }
        let wrong = [
            (out.words_min >= out.words_max, "MinWords should be less than MaxWords"),
            (out.words_min <= 0, "MinWords should be positive"),
            (out.short_word < 0, "ShortWord should be >= 0"),
            (out.fragments_max < 0, "MaxFragments should be >= 0"),
        ];
        match wrong.into_iter().find(|(is_wrong, _)| *is_wrong && !out.highlights_all) {
            Some((_, message)) => fail("22023", message),
            None => Ok(out),
        }
    }

    /// How many parts a cover may have.
    fn cover_max(&self) -> usize {
        let one = self.words_max.saturating_mul(10).max(100);
        let all = one.saturating_mul(self.fragments_max.max(1));
        usize::try_from(all).unwrap_or(usize::MAX)
    }
}

/// The names and values of a list such as `a = 1, b = 'x y'`.
///
/// Errors: 42601.
fn pairs(text: &str) -> Result<Vec<(String, String)>> {
    let wrong = || error("42601", format!("invalid parameter list format: \"{text}\""));
    let mut chars = text.chars().peekable();
    let mut out = Vec::new();
    loop {
        while chars.next_if(|c| c.is_ascii_whitespace() || *c == ',').is_some() {}
        let Some(first) = chars.peek().copied() else {
            return Ok(out);
        };
        let mut name = String::new();
        if first == '"' {
            chars.next();
            name = quoted(&mut chars, '"', false).ok_or_else(wrong)?;
        } else {
            while let Some(c) = chars.next_if(|c| !c.is_ascii_whitespace() && *c != '=') {
                name.push(c);
            }
        }
        while chars.next_if(char::is_ascii_whitespace).is_some() {}
        chars.next_if_eq(&'=').ok_or_else(wrong)?;
        while chars.next_if(char::is_ascii_whitespace).is_some() {}
        let first = chars.peek().copied().ok_or_else(wrong)?;
        let mut value = String::new();
        match first {
            '\'' | '"' => {
                chars.next();
                value = quoted(&mut chars, first, true).ok_or_else(wrong)?;
            }
            'E' if chars.clone().nth(1) == Some('\'') => {
                chars.nth(1);
                value = quoted(&mut chars, '\'', true).ok_or_else(wrong)?;
            }
            _ => {
                while let Some(c) = chars.next_if(|c| !c.is_ascii_whitespace() && *c != ',') {
                    value.push(c);
                }
            }
        }
        out.push((name, value));
    }
}

/// What is up to a quote, which stands for itself when it comes twice.
fn quoted(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, quote: char, escapes: bool) -> Option<String> {
    let mut out = String::new();
    loop {
        match chars.next()? {
            c if c == quote && chars.next_if_eq(&quote).is_none() => return Some(out),
            '\\' if escapes && chars.next_if_eq(&'\\').is_some() => out.push('\\'),
            c => out.push(c),
        }
    }
}

/// A part of a text.
struct Word<'t> {
    text: &'t str,
    kind: Kind,
    /// Where its lexeme is, if the query has it.
    at: u16,
    /// The lexeme of the query that it is, by its number.
    operand: Option<usize>,
    /// It is there again because the query has its lexeme several times.
    is_again: bool,
    is_shown: bool,
    is_selected: bool,
    /// It is left out, or a space in its place.
    is_skipped: bool,
    is_space: bool,
}

impl Word<'_> {
    /// Whether it does not count as a word.
    fn is_no_word(&self) -> bool {
        matches!(
            self.kind,
            Kind::Blank | Kind::Tag | Kind::Url | Kind::NumHyphenated | Kind::AsciiHyphenated | Kind::Hyphenated
        )
    }

    fn is_interesting(&self) -> bool {
        self.operand.is_some() && !self.is_again
    }

    /// Whether a headline does not end well here.
    fn ends_badly(&self, short_word: i64) -> bool {
        let is_no_end = self.is_no_word()
            || matches!(
                self.kind,
                Kind::Scientific | Kind::Version | Kind::Float | Kind::Int | Kind::Uint | Kind::Protocol | Kind::Entity
            );
        (is_no_end || self.text.len() as i64 <= short_word) && !self.is_interesting()
    }
}

/// Some parts of a text that may match.
struct Within<'w, 't> {
    words: &'w [Word<'t>],
    operands: &'w [&'w Operand],
}

impl Text for Within<'_, '_> {
    fn find(&self, operand: &Operand, wants_places: bool) -> Found {
        // The same lexeme at another place of the query is another one.
        let number = self.operands.iter().position(|own| std::ptr::eq(*own, operand));
        let Some(number) = number else { return Found::No };
        let mut meant = self.words.iter().filter(|word| word.operand == Some(number));
        if !wants_places {
            return meant.next().map_or(Found::No, |_| Found::Somewhere);
        }
        let mut at: Vec<u16> = meant.map(|word| word.at).collect();
        at.dedup();
        if at.is_empty() { Found::No } else { Found::At(at) }
    }
}

/// A headline that is being made.
struct Headline<'t, 'q> {
    words: Vec<Word<'t>>,
    query: &'q TsQuery,
    operands: Vec<&'q Operand>,
    /// Some part of it may match.
    may_match: bool,
    options: &'q Options,
}

/// A stretch of a text that may be shown.
#[derive(Clone, Copy, Default)]
struct Fragment {
    from: usize,
    to: usize,
    words: i64,
    interesting: i64,
    is_taken: bool,
    is_out: bool,
}

/// The headline of a text.
///
/// Errors: those of the statement's limits.
pub fn headline(config: Config, text: &str, query: &TsQuery, options: &Options) -> Result<String> {
    let operands = query.operands();
    let words = words(config, text, &operands)?;
    let whole = Within {
        words: &words,
        operands: &operands,
    };
    // Without negations no part of a text matches if the whole does not.
    let may_match = match &query.root {
        None => false,
        Some(root) => root.negates() || holds(root, &whole)?,
    };
    let mut made = Headline {
        words,
        query,
        operands,
        may_match,
        options,
    };
    match (options.highlights_all, options.fragments_max) {
        (true, 0) => {
            let all = made.words.len();
            made.show(0, all);
        }
        (_, 0) => made.best()?,
        _ => made.fragments()?,
    }
    let out = made.written();
    charge(out.len())?;
    Ok(out)
}

/// The parts of a text, and which of them are lexemes of a query.
fn words<'t>(config: Config, text: &'t str, operands: &[&Operand]) -> Result<Vec<Word<'t>>> {
    let mut tokens = Tokens::new(text);
    let mut out: Vec<Word<'t>> = Vec::new();
    let mut at: u16 = 0;
    while let Some(token) = tokens.next()? {
        if is_too_long(token.text) {
            continue;
        }
        charge(std::mem::size_of::<Word<'_>>())?;
        let plain = |operand, is_again, at| Word {
            text: token.text,
            kind: token.kind,
            at,
            operand,
            is_again,
            is_shown: false,
            is_selected: false,
            is_skipped: false,
            is_space: false,
        };
        let Some(dictionary) = config.dictionary(token.kind) else {
            out.push(plain(None, false, 0));
            continue;
        };
        at = (at + 1).min(crate::types::tsvector::PLACE_MAX);
        let lexeme = dictionary.lexeme(token.text)?;
        work(1 + operands.len() / 8)?;
        let is_it = |(_, operand): &(usize, &&Operand)| match &lexeme {
            Some(lexeme) if operand.is_prefix => lexeme.starts_with(&operand.lexeme),
            Some(lexeme) => *lexeme == operand.lexeme,
            None => false,
        };
        // The last lexeme of the query comes first.
        let mut found = operands
            .iter()
            .enumerate()
            .rev()
            .filter(is_it)
            .map(|(number, _)| number);
        let first = found.next();
        out.push(plain(first, false, if lexeme.is_some() { at } else { 0 }));
        for again in found {
            charge(std::mem::size_of::<Word<'_>>())?;
            out.push(plain(Some(again), true, at));
        }
    }
    Ok(out)
}

impl Headline<'_, '_> {
    fn bad_end(&self, at: usize) -> bool {
        self.words
            .get(at)
            .is_none_or(|word| word.ends_badly(self.options.short_word))
    }

    /// How many words and how many lexemes of the query a part counts as.
    fn counted(&self, at: usize) -> (i64, i64) {
        let word = &self.words[at];
        (i64::from(!word.is_no_word()), i64::from(word.is_interesting()))
    }

    fn next_lexeme(&self, from: usize) -> Option<usize> {
        let rest = self.words.get(from..)?;
        let at = rest.iter().position(|word| word.operand.is_some())?;
        Some(from + at)
    }

    /// The first and shortest cover from a part on.
    fn cover(&self, from: usize) -> Result<Option<(usize, usize)>> {
        let Some(root) = self.query.root.as_ref().filter(|_| self.may_match) else {
            return Ok(None);
        };
        let most = self.options.cover_max();
        let mut first = self.next_lexeme(from);
        while let Some(begin) = first {
            let behind = self.next_lexeme(begin + 1);
            let mut last = Some(begin);
            while let Some(end) = last.filter(|end| end - begin < most) {
                work(1 + (end - begin) / 8)?;
                let within = Within {
                    words: &self.words[begin..=end],
                    operands: &self.operands,
                };
                if holds(root, &within)? {
                    return Ok(Some((begin, end)));
                }
                last = self.next_lexeme(end + 1);
            }
            first = behind;
        }
        Ok(None)
    }

    /// Shows the parts from one up to another.
    fn show(&mut self, from: usize, end: usize) {
        let all = self.options.highlights_all;
        for word in &mut self.words[from..end] {
            word.is_selected = word.operand.is_some();
            word.is_space = !all && word.kind == Kind::Tag;
            word.is_skipped = word.is_no_word() && !matches!(word.kind, Kind::Blank | Kind::Tag);
            word.is_shown = !word.is_again;
        }
    }

    /// Shows as many words of the beginning as a headline has at least.
    fn show_beginning(&mut self) {
        let (mut count, mut end) = (0, 0);
        while end < self.words.len() && count < self.options.words_min {
            count += self.counted(end).0;
            end += 1;
        }
        self.show(0, end);
    }

    /// Shows the best cover with words around it.
    fn best(&mut self) -> Result<()> {
        let mut best: Option<(bool, i64, usize, usize)> = None;
        let mut from = 0;
        while let Some((begin, end)) = self.cover(from)? {
            let (first, last, interesting) = self.around(begin, end)?;
            let is_whole = first <= begin && last >= end;
            let is_better = best.is_none_or(|(best_whole, most, _, best_last)| {
                is_whole && !best_whole
                    || is_whole == best_whole && interesting > most
                    || is_whole == best_whole && interesting == most && !self.bad_end(last) && self.bad_end(best_last)
            });
            if is_better {
                best = Some((is_whole, interesting, first, last));
            }
            from = begin + 1;
        }
        match best {
            Some((.., first, last)) => self.show(first, last + 1),
            None => self.show_beginning(),
        }
        Ok(())
    }

    /// What is shown for a cover: the first and the last part, and how many lexemes of the query are among them.
    fn around(&self, begin: usize, end: usize) -> Result<(usize, usize, i64)> {
        let (least, most) = (self.options.words_min, self.options.words_max);
        let (mut count, mut interesting) = (0, 0);
        let (mut first, mut last) = (begin, begin);
        let mut at = begin;
        while at <= end && count < most {
            let (one, lexeme) = self.counted(at);
            count += one;
            interesting += lexeme;
            last = at;
            at += 1;
        }
        work(1 + (at - begin) / 8)?;
        if count < most {
            at -= 1;
            while at < self.words.len() && count < most {
                if at > end {
                    let (one, lexeme) = self.counted(at);
                    count += one;
                    interesting += lexeme;
                }
                last = at;
                if !self.bad_end(at) && count >= least {
                    break;
                }
                at += 1;
            }
            if count < least {
                first = 0;
                for at in (0..begin).rev() {
                    let (one, lexeme) = self.counted(at);
                    count += one;
                    interesting += lexeme;
                    if count >= most || !self.bad_end(at) && count >= least {
                        first = at;
                        break;
                    }
                }
            }
        } else {
            at = at.min(end);
            while count > least && self.bad_end(at) {
                let (one, lexeme) = self.counted(at);
                count -= one;
                interesting -= lexeme;
                let Some(before) = at.checked_sub(1) else { break };
                (last, at) = (before, before);
            }
        }
        Ok((first, last, interesting))
    }

    /// Covers, cut so that none has more words than a headline may have.
    fn all_covers(&self) -> Result<Vec<Fragment>> {
        let mut out = Vec::new();
        let mut from = 0;
        while let Some((begin, end)) = self.cover(from)? {
            let mut next = begin;
            while next <= end {
                work(1)?;
                charge(std::mem::size_of::<Fragment>())?;
                let fragment = self.fragment(next, end)?;
                next = fragment.to + 1;
                out.push(fragment);
            }
            from = begin + 1;
        }
        Ok(out)
    }

    /// The first of the fragments of a stretch: from a lexeme of the query to another.
    fn fragment(&self, from: usize, end: usize) -> Result<Fragment> {
        let begin = (from..=end).find(|at| self.words[*at].is_interesting()).unwrap_or(end);
        let (mut words, mut interesting) = (0, 0);
        let mut at = begin;
        while at <= end && words < self.options.words_max {
            let (one, lexeme) = self.counted(at);
            words += one;
            interesting += lexeme;
            at += 1;
        }
        work(1 + (at - from) / 8)?;
        let mut to = end;
        if end > at {
            for back in (begin..=at).rev() {
                to = back;
                if self.words[back].is_interesting() {
                    break;
                }
                words -= self.counted(back).0;
            }
        }
        Ok(Fragment {
            from: begin,
            to,
            words,
            interesting,
            ..Fragment::default()
        })
    }

    /// Shows several covers.
    fn fragments(&mut self) -> Result<()> {
        let mut covers = self.all_covers()?;
        let mut taken = 0;
        while taken < self.options.fragments_max {
            work(1 + covers.len() / 8)?;
            let open = covers
                .iter()
                .enumerate()
                .filter(|(_, cover)| !cover.is_taken && !cover.is_out);
            let open = open.filter(|(_, cover)| cover.interesting > 0 || cover.words < i64::from(i32::MAX));
            let best = open.min_by_key(|(_, cover)| (-cover.interesting, cover.words));
            let Some((best, _)) = best else { break };
            let (from, to) = self.stretched(covers[best]);
            covers[best] = Fragment {
                from,
                to,
                is_taken: true,
                ..covers[best]
            };
            self.show(from, to + 1);
            taken += 1;
            for (at, other) in covers.iter_mut().enumerate() {
                let overlaps = other.from <= to && other.to >= from;
                other.is_out |= at != best && overlaps;
            }
        }
        if taken == 0 {
            self.show_beginning();
        }
        Ok(())
    }

    /// A fragment with as many words around it as a headline may have, as far as others leave them.
    fn stretched(&self, fragment: Fragment) -> (usize, usize) {
        let Fragment {
            from, to, mut words, ..
        } = fragment;
        let most = self.options.words_max;
        if words >= most {
            return (from, to);
        }
        let (mut begin, mut before) = (from, 0);
        while begin > 0 && before < (most - fragment.words) / 2 && !self.words[begin - 1].is_shown {
            begin -= 1;
            let (one, _) = self.counted(begin);
            before += one;
            words += one;
        }
        while begin < from && self.bad_end(begin) {
            words -= self.counted(begin).0;
            begin += 1;
        }
        let mut end = to;
        while end + 1 < self.words.len() && words < most && !self.words[end + 1].is_shown {
            end += 1;
            words += self.counted(end).0;
        }
        while end > to && self.bad_end(end) {
            end -= 1;
        }
        (begin, end)
    }

    fn written(&self) -> String {
        let mut out = String::new();
        let (mut is_within, mut count) = (false, 0);
        for word in self.words.iter().filter(|word| !word.is_again) {
            if !word.is_shown {
                is_within = false;
                continue;
            }
            if !is_within {
                is_within = true;
                count += 1;
                if count > 1 {
                    out.push_str(&self.options.delimiter);
                }
            }
            match (word.is_space, word.is_skipped) {
                (true, _) => out.push(' '),
                (_, true) => {}
                _ if word.is_selected => {
                    out.push_str(&self.options.start);
                    out.push_str(word.text);
                    out.push_str(&self.options.stop);
                }
                _ => out.push_str(word.text),
            }
        }
        out
    }
}

/// JSON with a headline of each of its strings.
///
/// Errors: those of headlines.
pub fn headline_of_json(value: ValueRef<'_>, (config, query, options): (Config, &TsQuery, &Options)) -> Result<Value> {
    Ok(match value {
        ValueRef::String(text) => Value::String(headline(config, text, query, options)?.into()),
        ValueRef::Array(items) => {
            let items = items
                .iter()
                .map(|item| headline_of_json(item, (config, query, options)));
            Value::Array(nestor_model::Array::new(items.collect::<Result<_>>()?))
        }
        ValueRef::Document(doc) => {
            let mut out = Document::new();
            for (key, value) in doc.iter() {
                out.push(key, headline_of_json(value, (config, query, options))?);
            }
            out.into()
        }
        other => other.to_value(),
    })
}
