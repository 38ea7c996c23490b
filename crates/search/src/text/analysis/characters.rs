//! Character filters: what is changed in a text before it is taken apart.

use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use nestor_model::Result;
use nestor_model::statement::work;
use std::collections::HashSet;

/// What is changed in a text.
#[derive(Debug)]
pub(super) enum CharFilter {
    /// Leaves out tags of HTML but for those with these names.
    HtmlStrip { kept: HashSet<String> },
    /// Brings compatible characters to one form, in lower case.
    Normalize,
    /// Writes other characters; the longest first.
    Mapping(Vec<(String, String)>),
    /// Writes spaces for zero-width non-joiners.
    Persian,
}

/// A text that was filtered, and where its characters come from.
pub(super) struct Filtered {
    pub(super) text: String,
    /// By places in `text`, ascending.
    origins: Vec<Origin>,
}

/// From a place of a filtered text on its characters come from here.
#[derive(Clone, Copy)]
struct Origin {
    own: u32,
    origin: u32,
    /// They are written in the place of others, so only as a whole.
    is_replaced: bool,
}

impl Filtered {
    /// The number of the origin that counts at a place.
    fn number(&self, at: u32) -> Option<usize> {
        self.origins.partition_point(|origin| origin.own <= at).checked_sub(1)
    }

    /// Where the byte at this place comes from.
    pub(super) fn origin(&self, at: u32) -> u32 {
        match self.number(at) {
            None => at,
            Some(number) => {
                let origin = self.origins[number];
                match origin.is_replaced {
                    true => origin.origin,
                    false => origin.origin + (at - origin.own),
                }
            }
        }
    }

    /// Where the bytes before this place end.
    pub(super) fn origin_of_end(&self, end: u32) -> u32 {
        let Some(last) = self.text[..end as usize].chars().next_back() else {
            return self.origin(0);
        };
        let last = last.len_utf8() as u32;
        let number = self.number(end - last);
        match number.filter(|number| self.origins[*number].is_replaced) {
            // What was replaced ends where what follows it begins.
            Some(number) => self.origins.get(number + 1).map_or(u32::MAX, |next| next.origin),
            None => self.origin(end - last) + last,
        }
    }

    fn begin(text: &str) -> Self {
        Self {
            text: String::with_capacity(text.len()),
            origins: Vec::new(),
        }
    }

    /// Adds a piece that stands at `origin` in the text that is filtered, or that is written for what stands there.
    fn push(&mut self, piece: &str, origin: usize, is_replaced: bool) {
        let (own, origin) = (self.text.len() as u32, origin as u32);
        let follows = match self.origins.last() {
            None => own == origin,
            Some(last) => !last.is_replaced && last.origin + (own - last.own) == origin,
        };
        if is_replaced || !follows {
            let new = Origin {
                own,
                origin,
                is_replaced,
            };
            match self.origins.last_mut() {
                Some(last) if last.own == own => *last = new,
                _ => self.origins.push(new),
            }
        }
        self.text.push_str(piece);
    }

    /// The same with the origins of the text that it was made from.
    fn after(mut self, before: Option<&Self>) -> Self {
        let Some(before) = before else {
            return self;
        };
        let mut places: Vec<u32> = self.origins.iter().map(|origin| origin.own).collect();
        places.push(0);
        // Where nothing was changed the places move together.
        places.extend(before.origins.iter().map(|origin| self.place_of(origin.own)));
        places.sort_unstable();
        places.dedup();
        let origins = places.into_iter().map(|own| {
            let between = self.origin(own);
            let is_replaced = |of: &Self, at: u32| of.number(at).is_some_and(|number| of.origins[number].is_replaced);
            Origin {
                own,
                origin: before.origin(between),
                is_replaced: is_replaced(&self, own) || is_replaced(before, between),
            }
        });
        self.origins = origins.collect();
        self
    }

    /// Where what stood at this place is now.
    fn place_of(&self, origin: u32) -> u32 {
        let next = self.origins.partition_point(|own| own.origin <= origin);
        let place = match next.checked_sub(1) {
            None => origin,
            Some(number) => {
                let last = self.origins[number];
                last.own + if last.is_replaced { 0 } else { origin - last.origin }
            }
        };
        place.min(self.text.len() as u32)
    }
}

/// A text as the filters leave it; none if there are no filters.
pub(super) fn filtered(filters: &[CharFilter], text: &str) -> Result<Option<Filtered>> {
    let mut done: Option<Filtered> = None;
    for filter in filters {
        let before = done.as_ref().map_or(text, |done| &done.text);
        work(1 + before.len() / super::BYTES_PER_UNIT)?;
        let next = match filter {
            CharFilter::HtmlStrip { kept } => without_tags(before, kept),
            CharFilter::Normalize => normalized(before),
            CharFilter::Mapping(mappings) => mapped(before, mappings),
            CharFilter::Persian => mapped(before, &[("\u{200C}".to_owned(), " ".to_owned())]),
        };
        done = Some(next.after(done.as_ref()));
    }
    Ok(done)
}

fn mapped(text: &str, mappings: &[(String, String)]) -> Filtered {
    let mut out = Filtered::begin(text);
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let found = mappings.iter().find(|(from, _)| rest.starts_with(from.as_str()));
        match found {
            Some((from, to)) => {
                out.push(to, at, true);
                at += from.len();
            }
            None => {
                let length = rest.chars().next().map_or(1, char::len_utf8);
                out.push(&rest[..length], at, false);
                at += length;
            }
        }
    }
    out.push("", text.len(), false);
    out
}

fn normalized(text: &str) -> Filtered {
    let mut out = Filtered::begin(text);
    let is_mark = |c: char| matches!(c, '\u{300}'..='\u{36F}' | '\u{1AB0}'..='\u{1AFF}' | '\u{1DC0}'..='\u{1DFF}' | '\u{3099}' | '\u{309A}');
    let mut begin = 0;
    let nexts = text
        .char_indices()
        .skip(1)
        .filter(|(_, c)| !is_mark(*c))
        .map(|(at, _)| at);
    for end in nexts.chain(std::iter::once(text.len())) {
        let piece = &text[begin..end];
        match piece.is_ascii() {
            true => out.push(&piece.to_ascii_lowercase(), begin, false),
            false => out.push(&folded(piece), begin, true),
        }
        begin = end;
    }
    out.push("", text.len(), false);
    out
}

/// Compatible characters in one form, in lower case.
pub(super) fn folded(text: &str) -> String {
    let lower = const { ComposingNormalizerBorrowed::new_nfkc() }
        .normalize(text)
        .to_lowercase();
    const { ComposingNormalizerBorrowed::new_nfkc() }
        .normalize(&lower)
        .into_owned()
}

/// A form of Unicode.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    Composed,
    Decomposed,
    CompatibleComposed,
    CompatibleDecomposed,
}

/// A text in a form of Unicode.
pub(super) fn in_form(form: Form, text: &str) -> String {
    match form {
        Form::Composed => const { ComposingNormalizerBorrowed::new_nfc() }
            .normalize(text)
            .into_owned(),
        Form::CompatibleComposed => const { ComposingNormalizerBorrowed::new_nfkc() }
            .normalize(text)
            .into_owned(),
        Form::Decomposed => const { DecomposingNormalizerBorrowed::new_nfd() }
            .normalize(text)
            .into_owned(),
        Form::CompatibleDecomposed => const { DecomposingNormalizerBorrowed::new_nfkd() }
            .normalize(text)
            .into_owned(),
    }
}

/// Tags between which text flows on; others end words.
const INLINE: [&str; 24] = [
    "a", "abbr", "acronym", "b", "basefont", "bdo", "big", "cite", "code", "dfn", "em", "font", "i", "kbd", "q", "s",
    "samp", "small", "span", "strike", "strong", "tt", "u", "var",
];

fn without_tags(text: &str, kept: &HashSet<String>) -> Filtered {
    let mut out = Filtered::begin(text);
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let length = match rest.as_bytes()[0] {
            b'<' => markup(rest),
            b'&' => {
                if let Some((c, length)) = entity(rest) {
                    out.push(c.encode_utf8(&mut [0; 4]), at, true);
                    at += length;
                    continue;
                }
                None
            }
            _ => None,
        };
        let Some((length, name)) = length else {
            let length = rest.chars().next().map_or(1, char::len_utf8);
            out.push(&rest[..length], at, false);
            at += length;
            continue;
        };
        match name {
            Some(name) if kept.contains(&name) => out.push(&rest[..length], at, false),
            Some(name) if !INLINE.contains(&&*name) => out.push("\n", at, true),
            _ => {}
        }
        at += length;
    }
    out.push("", text.len(), false);
    out
}

/// How long a tag, a comment or a script is at the beginning of a text, and the tag's name.
fn markup(text: &str) -> Option<(usize, Option<String>)> {
    if let Some(comment) = text.strip_prefix("<!--") {
        return Some((comment.find("-->").map_or(text.len(), |end| 4 + end + 3), None));
    }
    let body = text[1..].trim_start_matches('/');
    let name: String = body
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '-' || *c == ':')
        .collect();
    if !(body.starts_with(|c: char| c.is_alphabetic()) || body.starts_with(['!', '?'])) {
        return None;
    }
    let mut quote = None;
    let end = text.char_indices().skip(1).find(|(_, c)| match (quote, *c) {
        (None, '"' | '\'') => {
            quote = Some(*c);
            false
        }
        (Some(open), c) if open == c => {
            quote = None;
            false
        }
        (None, '>') => true,
        _ => false,
    });
    let end = end.map(|(at, _)| at + 1)?;
    let name = name.to_lowercase();
    if matches!(&*name, "script" | "style") && !text.starts_with("</") {
        let close = format!("</{name}");
        let lower = text[end..].to_ascii_lowercase();
        if let Some(at) = lower.find(&close) {
            let closed = lower[at..].find('>').map_or(text.len(), |more| end + at + more + 1);
            return Some((closed, Some(name)));
        }
    }
    Some((end, Some(name)))
}

fn entity(text: &str) -> Option<(char, usize)> {
    let end = text
        .char_indices()
        .take(12)
        .find(|(_, c)| *c == ';')
        .map(|(at, _)| at)?;
    let name = &text[1..end];
    let c = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        _ => {
            let number = name.strip_prefix('#')?;
            let number = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(number)?
        }
    };
    Some((c, end + 1))
}
