//! The parts of a text: words, addresses, numbers, paths, tags, and what is between them.
//!
//! ```text
//! up-to-date at http://example.com/news?id=-12.5e3     "up-to-date" asciihword, then "up", "to" and "date" as hword_asciipart with blanks between;
//!                                                      "http://" protocol, "example.com/news?id=-12.5e3" url, "example.com" host, the rest url_path
//! ```
//!
//! A part is what the first of several ways to read it makes of a text, not the longest: `a.b` is a host, `a.b/` too, and `a/b` a path. Each way is
//! a machine of states that either finds an end or falls back to the last place at which it could have ended.
//!
//! Source: manual, chapter 12.5, and what PostgreSQL 15 answers.

use nestor_model::Result;
use nestor_model::statement::work;
use std::collections::HashSet;

/// What a part is. Numbers are those of `ts_token_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Kind {
    AsciiWord = 1,
    Word,
    NumWord,
    Email,
    Url,
    Host,
    Scientific,
    Version,
    NumPart,
    WordPart,
    AsciiPart,
    Blank,
    Tag,
    Protocol,
    NumHyphenated,
    AsciiHyphenated,
    Hyphenated,
    UrlPath,
    File,
    Float,
    Int,
    Uint,
    Entity,
}

/// Kinds with their names and what they are, by their numbers.
pub const KINDS: [(Kind, &str, &str); 23] = [
    (Kind::AsciiWord, "asciiword", "Word, all ASCII"),
    (Kind::Word, "word", "Word, all letters"),
    (Kind::NumWord, "numword", "Word, letters and digits"),
    (Kind::Email, "email", "Email address"),
    (Kind::Url, "url", "URL"),
    (Kind::Host, "host", "Host"),
    (Kind::Scientific, "sfloat", "Scientific notation"),
    (Kind::Version, "version", "Version number"),
    (
        Kind::NumPart,
        "hword_numpart",
        "Hyphenated word part, letters and digits",
    ),
    (Kind::WordPart, "hword_part", "Hyphenated word part, all letters"),
    (Kind::AsciiPart, "hword_asciipart", "Hyphenated word part, all ASCII"),
    (Kind::Blank, "blank", "Space symbols"),
    (Kind::Tag, "tag", "XML tag"),
    (Kind::Protocol, "protocol", "Protocol head"),
    (Kind::NumHyphenated, "numhword", "Hyphenated word, letters and digits"),
    (Kind::AsciiHyphenated, "asciihword", "Hyphenated word, all ASCII"),
    (Kind::Hyphenated, "hword", "Hyphenated word, all letters"),
    (Kind::UrlPath, "url_path", "URL path"),
    (Kind::File, "file", "File or path name"),
    (Kind::Float, "float", "Decimal notation"),
    (Kind::Int, "int", "Signed integer"),
    (Kind::Uint, "uint", "Unsigned integer"),
    (Kind::Entity, "entity", "XML entity"),
];

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'t> {
    /// What it is.
    pub kind: Kind,
    /// Its text.
    pub text: &'t str,
}

/// What a way to read a part came to: its kind and where it ends.
type End = Option<(Kind, usize)>;

/// Characters that a machine read in vain, from which on its states are remembered, so that it does not read them again from each place.
const REMEMBERED_FROM: usize = 64;
/// Characters whose reading is a unit of work.
const CHARS_PER_UNIT: usize = 16;

/// What the next part begins as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Anything,
    /// A part of a word with hyphens.
    Part,
    /// The host of an address, which ends there.
    Host(usize),
    /// The path of an address, which ends there.
    Path(usize),
}

/// States of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Host {
    /// Behind a point.
    FirstDomain,
    /// Behind the first letter behind a point.
    SecondDomain,
    /// Behind more letters behind a point.
    Domain,
    /// Behind a hyphen or underscore.
    FirstLabel,
    /// Behind letters and digits that do not end hosts.
    Label,
    FirstPort,
    Port,
}

/// States of paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum File {
    /// Behind a slash.
    First,
    Twiddle,
    /// Behind a slash and a point.
    FirstPoint,
    /// Behind the point that a text begins with.
    Begin,
    /// Behind two points.
    SecondPoint,
    /// Within a name.
    Name,
    /// Behind a point within a name.
    Extension,
}

/// Reads the parts of a text.
pub struct Tokens<'t> {
    text: &'t str,
    at: usize,
    next: Next,
    /// It is within a script or a style sheet.
    is_ignored: bool,
    /// A host is looked for, so that there is no e-mail address, and it ends before a slash.
    wants_host: bool,
    has_no_comment_end: bool,
    hosts_in_vain: HashSet<(Host, usize)>,
    files_in_vain: HashSet<(File, usize)>,
    read: usize,
}

fn is_letter(c: char) -> bool {
    c.is_ascii_alphabetic()
}

fn is_alpha(c: char) -> bool {
    // Digits of other scripts are letters to the C library.
    c.is_alphabetic() || !c.is_ascii() && is_decimal(c)
}

/// Whether a character is a digit of some script.
fn is_decimal(c: char) -> bool {
    DIGITS.iter().any(|zero| (*zero..*zero + 10).contains(&u32::from(c)))
}

/// The zeros of scripts.
const DIGITS: &[u32] = &[
    0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xDE6, 0xE50, 0xED0, 0xF20,
    0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50, 0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0,
    0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0xFF10,
];

fn is_word(c: char) -> bool {
    is_alpha(c) || c.is_ascii_digit()
}

/// Whether a character is a mark on the one before it.
fn is_special(c: char) -> bool {
    c >= '\u{300}' && !is_word(c) && nestor_query::text::is_mark(c)
}

fn is_url(c: char) -> bool {
    c.is_ascii_graphic() && !matches!(c, '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}')
}

impl<'t> Tokens<'t> {
    /// The parts of a text.
    pub fn new(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            next: Next::Anything,
            is_ignored: false,
            wants_host: false,
            has_no_comment_end: false,
            hosts_in_vain: HashSet::new(),
            files_in_vain: HashSet::new(),
            read: 0,
        }
    }

    /// The next part.
    ///
    /// Errors: those of the statement's interrupt.
    pub fn next(&mut self) -> Result<Option<Token<'t>>> {
        work(1 + std::mem::take(&mut self.read) / CHARS_PER_UNIT)?;
        if self.at >= self.text.len() {
            return Ok(None);
        }
        let from = self.at;
        let (kind, end) = match self.next {
            Next::Host(end) => {
                self.next = Next::Path(self.path_end(end));
                (Kind::Host, end)
            }
            Next::Path(end) => {
                self.next = Next::Anything;
                (Kind::UrlPath, end)
            }
            Next::Part => match self.part(from) {
                Some(found) => found,
                None => {
                    self.next = Next::Anything;
                    self.anything(from)
                }
            },
            Next::Anything => self.anything(from),
        };
        self.at = end;
        match kind {
            Kind::AsciiHyphenated | Kind::Hyphenated | Kind::NumHyphenated => {
                self.next = Next::Part;
                self.at = from;
            }
            Kind::Url => {
                let host = self.host_of(from);
                self.next = Next::Host(host);
                self.at = from;
            }
            _ => {}
        }
        let text = &self.text[from..end];
        Ok(Some(Token { kind, text }))
    }

    fn char(&mut self, at: usize) -> Option<char> {
        self.read += 1;
        self.text[at..].chars().next()
    }

    fn is(&mut self, at: usize, f: impl FnOnce(char) -> bool) -> bool {
        self.char(at).is_some_and(f)
    }

    /// Where characters of a kind end.
    fn while_is(&mut self, mut at: usize, f: fn(char) -> bool) -> usize {
        while let Some(c) = self.char(at).filter(|c| f(*c)) {
            at += c.len_utf8();
        }
        at
    }

    fn path_end(&mut self, at: usize) -> usize {
        self.while_is(at, is_url)
    }

    /// Where the host of an address ends.
    fn host_of(&mut self, from: usize) -> usize {
        self.wants_host = true;
        let (_, end) = self.anything(from);
        self.wants_host = false;
        end
    }

    fn anything(&mut self, from: usize) -> (Kind, usize) {
        let Some(first) = self.char(from) else {
            return (Kind::Blank, from);
        };
        let behind = from + first.len_utf8();
        let found = match first {
            '<' => self.tag(from),
            _ if self.is_ignored => None,
            first if is_letter(first) => self.ascii_word(behind),
            first if is_alpha(first) => Some(self.word(behind)),
            '0'..='9' => self.number(behind),
            '-' | '+' => self.signed(behind),
            '&' => self.entity(behind),
            '~' => self.file(File::Twiddle, behind),
            '/' => self.file(File::First, behind),
            '.' => self.file(File::Begin, behind),
            _ => None,
        };
        found.unwrap_or_else(|| (Kind::Blank, self.blank(behind)))
    }

    fn blank(&mut self, mut at: usize) -> usize {
        while let Some(c) = self.char(at) {
            let ends = match c {
                '<' => true,
                _ if self.is_ignored => false,
                '-' | '+' | '&' | '/' => true,
                c => is_word(c),
            };
            if ends {
                break;
            }
            at += c.len_utf8();
        }
        at
    }

    fn ascii_word(&mut self, at: usize) -> End {
        let at = self.while_is(at, is_letter);
        let here = Some((Kind::AsciiWord, at));
        let Some(c) = self.char(at) else { return here };
        let behind = at + c.len_utf8();
        match c {
            '.' => self
                .host(Host::FirstDomain, behind)
                .or_else(|| self.file(File::Extension, behind)),
            '-' => self
                .host(Host::FirstLabel, behind)
                .or_else(|| self.hyphenated(Kind::AsciiHyphenated, behind, None)),
            '_' => self.host(Host::FirstLabel, behind),
            '@' => self.email(behind),
            ':' => self.protocol(behind),
            '/' => self.file(File::First, behind),
            '0'..='9' => self.host(Host::Label, behind).or_else(|| Some(self.num_word(behind))),
            c if is_alpha(c) || is_special(c) => Some(self.word(behind)),
            _ => None,
        }
        .or(here)
    }

    fn word(&mut self, mut at: usize) -> (Kind, usize) {
        at = self.while_is(at, |c| is_alpha(c) || is_special(c));
        match self.char(at) {
            Some('0'..='9') => self.num_word(at + 1),
            Some('-') => self
                .hyphenated(Kind::Hyphenated, at + 1, None)
                .unwrap_or((Kind::Word, at)),
            _ => (Kind::Word, at),
        }
    }

    fn num_word(&mut self, at: usize) -> (Kind, usize) {
        let at = self.while_is(at, |c| is_word(c) || is_special(c));
        let found = match self.char(at) {
            Some('@') => self.email(at + 1),
            Some('/') => self.file(File::First, at + 1),
            Some('.') => self.file(File::Extension, at + 1),
            Some('-') => self.hyphenated(Kind::NumHyphenated, at + 1, None),
            _ => None,
        };
        found.unwrap_or((Kind::NumWord, at))
    }

    /// A word of a kind behind one of its hyphens.
    fn hyphenated(&mut self, mut kind: Kind, mut at: usize, mut so_far: End) -> End {
        loop {
            let Some(c) = self.char(at) else { return so_far };
            match c {
                c if is_letter(c) => {}
                '0'..='9' => {
                    // A part of digits alone is none.
                    let end = self.while_is(at, |c| c.is_ascii_digit());
                    if !self.is(end, |c| is_alpha(c) || is_special(c)) {
                        return so_far;
                    }
                    kind = Kind::NumHyphenated;
                }
                c if is_alpha(c) && kind == Kind::AsciiHyphenated => kind = Kind::Hyphenated,
                c if is_alpha(c) => {}
                _ => return so_far,
            }
            at += c.len_utf8();
            while let Some(c) = self.char(at) {
                match c {
                    c if is_letter(c) => {}
                    '0'..='9' => kind = Kind::NumHyphenated,
                    c if is_alpha(c) || is_special(c) => {
                        if kind == Kind::AsciiHyphenated {
                            kind = Kind::Hyphenated;
                        }
                    }
                    _ => break,
                }
                at += c.len_utf8();
            }
            so_far = Some((kind, at));
            if !self.is(at, |c| c == '-') {
                return so_far;
            }
            at += 1;
        }
    }

    /// A part of a word with hyphens, or the hyphen before one.
    fn part(&mut self, from: usize) -> End {
        let c = self.char(from)?;
        if c == '-' {
            let goes_on = self.is(from + 1, |c| is_word(c) || is_special(c));
            return goes_on.then_some((Kind::Blank, from + 1));
        }
        if !is_word(c) {
            return None;
        }
        let digits = self.while_is(from, |c| c.is_ascii_digit());
        if digits > from && !self.is(digits, |c| is_alpha(c) || is_special(c)) {
            return None;
        }
        let letters = self.while_is(from, is_letter);
        let end = self.while_is(from, |c| is_word(c) || is_special(c));
        let words = self.while_is(from, |c| is_alpha(c) || is_special(c));
        Some(match end {
            end if end == letters => (Kind::AsciiPart, end),
            end if end == words => (Kind::WordPart, end),
            end => (Kind::NumPart, end),
        })
    }

    fn email(&mut self, at: usize) -> End {
        if self.wants_host || at >= self.text.len() {
            return None;
        }
        self.wants_host = true;
        let found = self.anything(at);
        self.wants_host = false;
        match found {
            (Kind::Host, end) => Some((Kind::Email, end)),
            _ => None,
        }
    }

    fn protocol(&mut self, at: usize) -> End {
        let is_one = self.text[at..].starts_with("//");
        is_one.then_some((Kind::Protocol, at + 2))
    }

    /// A host from a state on.
    fn host(&mut self, mut state: Host, mut at: usize) -> End {
        let mut so_far: End = None;
        let mut tried = Vec::new();
        loop {
            if self.hosts_in_vain.contains(&(state, at)) {
                break;
            }
            tried.push((state, at));
            let c = self.char(at);
            let behind = at + c.map_or(0, char::len_utf8);
            let is_letter = c.is_some_and(is_letter);
            let is_digit = c.is_some_and(|c| c.is_ascii_digit());
            // What is a host up to here ends here, unless more of it follows; a digit goes back to the sign before it.
            let goes_on = is_digit || state == Host::Domain && is_letter;
            if matches!(state, Host::Domain | Host::Port) && !goes_on {
                so_far = Some((Kind::Host, at));
            }
            state = match (state, c) {
                (Host::FirstDomain, _) if is_letter => Host::SecondDomain,
                (Host::FirstDomain | Host::FirstLabel, _) if is_digit => Host::Label,
                (Host::FirstLabel, _) if is_letter => Host::Label,
                (Host::SecondDomain | Host::Domain, _) if is_letter => Host::Domain,
                (Host::SecondDomain | Host::Domain, _) if is_digit => Host::Label,
                (Host::Label, _) if is_letter || is_digit => Host::Label,
                (Host::FirstPort | Host::Port, _) if is_digit => Host::Port,
                (Host::SecondDomain | Host::Domain | Host::Label, Some('-' | '_')) => Host::FirstLabel,
                (Host::SecondDomain | Host::Domain | Host::Label, Some('.')) => Host::FirstDomain,
                (Host::SecondDomain | Host::Domain | Host::Label, Some('@')) => {
                    return self.email(behind).or(so_far);
                }
                (Host::Domain, Some(':')) => Host::FirstPort,
                (Host::Domain | Host::Port, Some('/')) if !self.wants_host => {
                    let end = self.path_end(behind);
                    return if end > behind { Some((Kind::Url, end)) } else { so_far };
                }
                _ => break,
            };
            at = behind;
        }
        if so_far.is_none() && tried.len() > REMEMBERED_FROM {
            self.hosts_in_vain.extend(tried);
        }
        so_far
    }

    /// A path from a state on.
    fn file(&mut self, mut state: File, mut at: usize) -> End {
        let mut so_far: End = None;
        let mut tried = Vec::new();
        loop {
            if self.files_in_vain.contains(&(state, at)) {
                break;
            }
            tried.push((state, at));
            let c = self.char(at);
            let behind = at + c.map_or(0, char::len_utf8);
            let is_plain = c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
            let ends = match (state, c) {
                (File::Name, _) => true,
                (File::SecondPoint, Some(c)) => c == '/' || crate::types::tsvector::is_space(c),
                (File::SecondPoint, None) => true,
                _ => false,
            };
            if ends {
                so_far = Some((Kind::File, at));
            }
            state = match (state, c) {
                (File::SecondPoint, Some('/')) => File::First,
                (File::SecondPoint, _) => break,
                (File::Begin, Some('.')) => File::SecondPoint,
                (File::Begin, Some('/')) => File::First,
                (File::Begin, _) => break,
                (_, _) if is_plain => File::Name,
                (File::Name, Some('-')) => File::Name,
                (File::Name, Some('.')) => File::Extension,
                (File::Name, Some('/')) => File::First,
                (File::First, Some('.')) => File::FirstPoint,
                (File::First, Some('~')) => File::Twiddle,
                (File::FirstPoint, Some('.')) => File::SecondPoint,
                (File::FirstPoint | File::Twiddle, Some('/')) => File::First,
                _ => break,
            };
            at = behind;
        }
        if so_far.is_none() && tried.len() > REMEMBERED_FROM {
            self.files_in_vain.extend(tried);
        }
        so_far
    }

    /// A number without a sign, or what begins as one.
    fn number(&mut self, at: usize) -> End {
        let at = self.while_is(at, |c| c.is_ascii_digit());
        let here = Some((Kind::Uint, at));
        let Some(c) = self.char(at) else { return here };
        let behind = at + c.len_utf8();
        let found = match c {
            '.' => self
                .host(Host::FirstDomain, behind)
                .or_else(|| self.decimal(behind, true)),
            'e' | 'E' => self.exponent(behind),
            '-' | '_' => self.host(Host::FirstLabel, behind),
            '@' => self.email(behind),
            '/' => self.file(File::First, behind),
            _ => None,
        };
        found
            .or_else(|| {
                if is_letter(c) {
                    self.host(Host::Label, behind)
                } else {
                    None
                }
            })
            .or_else(|| (is_alpha(c) || is_special(c)).then(|| self.num_word(behind)))
            .or(here)
    }

    fn signed(&mut self, at: usize) -> End {
        let end = self.while_is(at, |c| c.is_ascii_digit());
        if end == at {
            return None;
        }
        match self.char(end) {
            Some('.') if self.is(end + 1, |c| c.is_ascii_digit()) => self.decimal(end + 1, false),
            Some('e' | 'E') => self.exponent(end + 1).or(Some((Kind::Int, end))),
            _ => Some((Kind::Int, end)),
        }
    }

    /// What is behind a decimal point.
    fn decimal(&mut self, at: usize, may_be_version: bool) -> End {
        let end = self.while_is(at, |c| c.is_ascii_digit());
        if end == at {
            return None;
        }
        let found = match self.char(end) {
            Some('.') => match self.version(end) {
                // A version has no sign: what begins with one is something else then.
                Some(_) if !may_be_version => return None,
                version => version,
            },
            Some('e' | 'E') => self.exponent(end + 1),
            _ => None,
        };
        found.or(Some((Kind::Float, end)))
    }

    /// The third part of a version and those behind it.
    fn version(&mut self, mut at: usize) -> End {
        let mut so_far = None;
        while self.is(at, |c| c == '.') {
            let end = self.while_is(at + 1, |c| c.is_ascii_digit());
            if end == at + 1 {
                break;
            }
            so_far = Some((Kind::Version, end));
            at = end;
        }
        so_far
    }

    fn exponent(&mut self, at: usize) -> End {
        let digits = at + usize::from(self.is(at, |c| matches!(c, '+' | '-')));
        let end = self.while_is(digits, |c| c.is_ascii_digit());
        (end > digits).then_some((Kind::Scientific, end))
    }

    fn entity(&mut self, at: usize) -> End {
        let end = match self.char(at)? {
            '#' if self.is(at + 1, |c| matches!(c, 'x' | 'X')) => {
                let end = self.while_is(at + 2, |c| c.is_ascii_hexdigit());
                (end > at + 2).then_some(end)?
            }
            '#' => {
                let end = self.while_is(at + 1, |c| c.is_ascii_digit());
                (end > at + 1).then_some(end)?
            }
            ':' | '_' => self.while_is(at + 1, is_of_name),
            c if is_letter(c) => self.while_is(at + 1, is_of_name),
            _ => return None,
        };
        self.is(end, |c| c == ';').then_some((Kind::Entity, end + 1))
    }

    /// Begins or ends what is no text, behind the name of a tag.
    fn note_tag(&mut self, from: usize, at: usize) {
        match self.text[from..at].to_ascii_lowercase().as_str() {
            "<script" | "<style" => self.is_ignored = true,
            "</script" | "</style" => self.is_ignored = false,
            _ => {}
        }
    }

    fn tag(&mut self, from: usize) -> End {
        let at = from + 1;
        match self.char(at)? {
            '/' if self.is(at + 1, is_letter) => self.tag_name(from, at + 2),
            '!' => match self.char(at + 1)? {
                '-' if self.is(at + 2, |c| c == '-') => {
                    let end = self.comment_end(at + 3)?;
                    Some((Kind::Tag, end))
                }
                'D' | 'd' => self.tag_rest(from, at + 2),
                _ => None,
            },
            '?' if self.is(at + 1, |c| c == 'x') => self.tag_rest(from, at + 2),
            ':' | '_' => self.tag_name(from, at + 1),
            c if is_letter(c) => self.tag_name(from, at + 1),
            _ => None,
        }
    }

    /// Where a comment ends that goes on from a place.
    fn comment_end(&mut self, from: usize) -> Option<usize> {
        const END: &str = "-->";
        if self.has_no_comment_end {
            return None;
        }
        let end = self.text[from..].find(END);
        self.read += end.unwrap_or(self.text.len() - from);
        // What has no end from here on has none from later on.
        self.has_no_comment_end = end.is_none();
        end.map(|end| from + end + END.len())
    }

    fn tag_name(&mut self, from: usize, at: usize) -> End {
        let at = self.while_is(at, is_of_name);
        let c = self.char(at)?;
        match c {
            '/' => self.is(at + 1, |c| c == '>').then_some((Kind::Tag, at + 2)),
            '>' => {
                self.note_tag(from, at);
                Some((Kind::Tag, at + 1))
            }
            c if crate::types::tsvector::is_space(c) => {
                self.note_tag(from, at);
                self.tag_rest(from, at + c.len_utf8())
            }
            _ => None,
        }
    }

    /// What is behind the name of a tag.
    fn tag_rest(&mut self, from: usize, mut at: usize) -> End {
        loop {
            let c = self.char(at)?;
            match c {
                '>' => {
                    self.note_tag(from, at);
                    return Some((Kind::Tag, at + 1));
                }
                '\'' | '"' => {
                    at += 1;
                    loop {
                        let within = self.char(at)?;
                        at += within.len_utf8();
                        if within == c {
                            break;
                        }
                        if within == '\\' {
                            at += self.char(at)?.len_utf8();
                        }
                    }
                    continue;
                }
                c if crate::types::tsvector::is_space(c) => self.note_tag(from, at),
                c if is_letter(c) || c.is_ascii_digit() => {}
                '=' | '-' | '_' | '#' | '/' | ':' | '.' | '&' | '?' | '%' | '~' => {}
                _ => return None,
            }
            at += c.len_utf8();
        }
    }
}

fn is_of_name(c: char) -> bool {
    is_word(c) || matches!(c, ':' | '_' | '.' | '-')
}
