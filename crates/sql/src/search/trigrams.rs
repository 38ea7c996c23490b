//! Trigrams of texts, as the extension `pg_trgm` has them: how similar texts are, and which trigrams a text must have that a pattern matches.
//!
//! ```text
//! "The cat"   →   "  t", " th", "the", "he ", "  c", " ca", "cat", "at "        words in small letters, two blanks before and one behind each
//! LIKE '%the ca%'   →   "the", "he ", "  c", " ca"                              what is known of the words that a match has
//! ```
//!
//! A trigram is three bytes: its characters if each of them is one, and otherwise bytes of a checksum of them.
//!
//! Source: manual, F.35, and what PostgreSQL 15 answers.

use crate::types::compare::only;
use nestor_model::Result;
use nestor_model::statement::work;
use std::collections::{BTreeSet, HashMap};

/// A trigram.
pub type Trigram = [u8; 3];

/// Whether a character is part of a word.
fn is_of_word(c: char) -> bool {
    c.is_alphanumeric()
}

fn small(c: char) -> char {
    match c {
        // Small letters of it are two characters, of which one is meant.
        'İ' => 'i',
        c => only(c, c.to_lowercase()),
    }
}

/// A character for all those that comparisons without regard to case take for it.
fn folded(c: char) -> char {
    small(only(c, c.to_uppercase()))
}

/// The checksum of the bytes of three characters that are not one byte each.
fn checksum(bytes: &[u8]) -> u32 {
    // The table is that of the usual CRC-32, whose low bits come first; it is looked into by the high bits, as old releases did.
    let entry = |at: u32| {
        (0..8).fold(at, |crc, _| match crc & 1 {
            1 => (crc >> 1) ^ 0xEDB8_8320,
            _ => crc >> 1,
        })
    };
    let crc = bytes.iter().fold(u32::MAX, |crc, byte| {
        entry((crc >> 24 ^ u32::from(*byte)) & 0xFF) ^ crc << 8
    });
    !crc
}

fn trigram(chars: &[char]) -> Trigram {
    if let [Ok(a), Ok(b), Ok(c)] = chars.iter().map(|c| u8::try_from(u32::from(*c))).collect::<Vec<_>>()[..]
        && a.max(b).max(c) < 0x80
    {
        return [a, b, c];
    }
    let [a, b, c, _] = checksum(chars.iter().collect::<String>().as_bytes()).to_le_bytes();
    [a, b, c]
}

/// The words of a text, in small letters.
fn words(text: &str, letter: fn(char) -> char) -> impl Iterator<Item = Vec<char>> {
    let words = text.split(|c| !is_of_word(c)).filter(|word| !word.is_empty());
    words.map(move |word| word.chars().map(letter).collect())
}

/// A word with the blanks that its first and last trigrams have.
fn padded(word: Vec<char>) -> Vec<char> {
    [' ', ' '].into_iter().chain(word).chain([' ']).collect()
}

/// The trigrams of a text in its order, each with whether a word begins and ends with it.
///
/// Errors: those of the statement's limits.
fn in_order(text: &str) -> Result<Vec<(Trigram, bool, bool)>> {
    let mut out = Vec::new();
    for word in words(text, small) {
        work(word.len())?;
        let padded = padded(word);
        let last = padded.len() - 3;
        let each = padded.windows(3).enumerate();
        out.extend(each.map(|(at, own)| (trigram(own), at == 0, at == last)));
    }
    Ok(out)
}

/// The trigrams of a text, each once, in the order of their bytes.
///
/// Errors: those of the statement's limits.
pub fn of(text: &str) -> Result<Vec<Trigram>> {
    let all: BTreeSet<Trigram> = in_order(text)?.into_iter().map(|(own, ..)| own).collect();
    Ok(all.into_iter().collect())
}

/// The trigrams that an index has of a text, those of its letters without regard to case: `most` of them and one more, where there are more.
///
/// Errors: those of the statement's limits.
pub fn keys(text: &str, most: usize) -> Result<Vec<Trigram>> {
    let mut out = BTreeSet::new();
    for word in words(text, folded) {
        work(word.len())?;
        out.extend(padded(word).windows(3).map(trigram));
        if out.len() > most {
            break;
        }
    }
    Ok(out.into_iter().take(most.saturating_add(1)).collect())
}

/// A number by which trigrams are in the order in which they are shown: that of bytes with signs.
pub fn place(own: &Trigram) -> [i8; 3] {
    own.map(u8::cast_signed)
}

/// A trigram as it is shown: its characters, or its number where they are not one byte each.
pub fn shown(own: Trigram) -> String {
    let is_shown = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b' ';
    match own.iter().all(is_shown) {
        true => own.iter().copied().map(char::from).collect(),
        false => format!("0x{:02x}{:02x}{:02x}", own[0], own[1], own[2]),
    }
}

/// How much two sets are one, of which so many are in both.
fn ratio(common: usize, a: usize, b: usize) -> f32 {
    match a + b - common {
        0 => 0.0,
        all => common as f32 / all as f32,
    }
}

/// How similar two texts are: the trigrams that both have, of all that they have.
///
/// Errors: those of the statement's limits.
pub fn similarity(a: &str, b: &str) -> Result<f32> {
    let (a, b) = (of(a)?, of(b)?);
    let common = a.iter().filter(|own| b.binary_search(own).is_ok()).count();
    Ok(ratio(common, a.len(), b.len()))
}

/// A stretch of the trigrams of a text that is made longer at its end and shorter at its beginning.
struct Stretch {
    /// Its first trigram; `None` before there is one.
    from: Option<usize>,
    /// Where each trigram of the text was met last within it.
    last: Vec<Option<usize>>,
    /// How many different trigrams it has.
    own: usize,
    /// How many of them are wanted.
    common: usize,
}

/// How similar a text is to the most similar stretch of another: with `strict` such stretches begin and end with words, and else with trigrams that
/// both have.
///
/// Errors: those of the statement's limits.
pub fn word_similarity(a: &str, b: &str, strict: bool) -> Result<f32> {
    let wanted = of(a)?;
    let all = in_order(b)?;
    let mut numbers: HashMap<Trigram, usize> = HashMap::new();
    let mut is_wanted = Vec::new();
    let ids: Vec<usize> = all
        .iter()
        .map(|(own, ..)| {
            let next = numbers.len();
            let id = *numbers.entry(*own).or_insert(next);
            if id == next {
                is_wanted.push(wanted.binary_search(own).is_ok());
            }
            id
        })
        .collect();
    let mut stretch = Stretch {
        from: None,
        last: vec![None; is_wanted.len()],
        own: 0,
        common: 0,
    };
    let mut best: f32 = 0.0;
    for (at, id) in ids.iter().copied().enumerate() {
        let may_begin = if strict { all[at].1 } else { is_wanted[id] };
        if stretch.from.is_some() || may_begin {
            stretch.from.get_or_insert(at);
            if stretch.last[id].replace(at).is_none() {
                stretch.own += 1;
                stretch.common += usize::from(is_wanted[id]);
            }
        }
        let Some(from) = stretch.from else { continue };
        let may_end = if strict { all[at].2 } else { is_wanted[id] };
        if !may_end {
            continue;
        }
        // It begins later where that makes it more similar, and then stays so.
        let mut found = ratio(stretch.common, wanted.len(), stretch.own);
        let (mut begin, mut kept) = (from, (stretch.own, stretch.common));
        let (mut own, mut common) = kept;
        work(at - from + 1)?;
        for later in from..=at {
            let may_begin = !strict || all[later].1;
            let now = ratio(common, wanted.len(), own);
            if may_begin && now > found {
                (found, begin, kept) = (now, later, (own, common));
            }
            if stretch.last[ids[later]] == Some(later) {
                own -= 1;
                common -= usize::from(is_wanted[ids[later]]);
            }
        }
        for (gone, id) in ids.iter().enumerate().take(begin).skip(from) {
            if stretch.last[*id] == Some(gone) {
                stretch.last[*id] = None;
            }
        }
        stretch.from = Some(begin);
        (stretch.own, stretch.common) = kept;
        best = best.max(found);
    }
    Ok(best)
}

/// The trigrams that an index has of every text that consists of these characters, where `None` stands for any others.
pub fn required(pattern: &[Option<char>], begins: bool, ends: bool) -> Vec<Trigram> {
    // A character of no word, for the ends of the text.
    let edge = |is_known: bool| is_known.then_some(' ');
    let all: Vec<Option<char>> = std::iter::once(edge(begins))
        .chain(pattern.iter().copied())
        .chain([edge(ends)])
        .collect();
    let mut out = BTreeSet::new();
    let mut at = 0;
    while at < all.len() {
        let is_letter = |own: &Option<char>| own.is_some_and(is_of_word);
        if !is_letter(&all[at]) {
            at += 1;
            continue;
        }
        let end = all[at..]
            .iter()
            .position(|own| !is_letter(own))
            .map_or(all.len(), |n| at + n);
        let mut word: Vec<char> = Vec::new();
        if at > 0 && all[at - 1].is_some() {
            word.extend([' ', ' ']);
        }
        word.extend(all[at..end].iter().flatten().copied().map(folded));
        if all.get(end).is_some_and(Option::is_some) {
            word.push(' ');
        }
        out.extend(word.windows(3).map(trigram));
        at = end;
    }
    out.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown_of(all: Vec<Trigram>) -> String {
        all.into_iter().map(shown).collect::<Vec<_>>().join(",")
    }

    /// With PostgreSQL 15's answers.
    #[test]
    fn texts_have_trigrams() {
        assert_eq!(
            shown_of(of("The cat_x").expect("a text")),
            "  c,  t,  x, ca, th, x ,at ,cat,he ,the"
        );
        assert_eq!(of("").expect("none"), Vec::<Trigram>::new());
    }

    #[test]
    fn patterns_require_trigrams() {
        let chars = |text: &str| -> Vec<Option<char>> { text.chars().map(|c| (c != '%').then_some(c)).collect() };
        let of = |text: &str| shown_of(required(&chars(text), true, true));
        assert_eq!(of("%foo%"), "foo");
        assert_eq!(of("foo%"), "  f, fo,foo");
        assert_eq!(of("%foo"), "foo,oo ");
        assert_eq!(of("%a b%"), "  b");
        assert_eq!(of("%ab cd%"), "  c, cd,ab ");
        assert_eq!(of("%x%"), "");
    }

    #[test]
    fn letters_that_compare_alike_are_one() {
        assert_eq!(folded('ſ'), 's');
        assert_eq!(folded('Σ'), folded('ς'));
        assert_eq!(folded('İ'), 'i');
    }
}
