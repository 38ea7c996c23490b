//! Patterns of dates and times: `to_char`, `to_date` and `to_timestamp`, as the manual's "Data Type Formatting Functions" has them.

mod read;
mod show;

pub(super) use read::{read, read_whole};
pub(super) use show::{Clock, show};

/// What a pattern consists of.
#[derive(Clone, Debug, PartialEq)]
enum Piece {
    /// A word that stands for a part of the time.
    Word(Word),
    /// A space or a sign between words.
    Separator(char),
    /// Anything else, and what stands in quotes.
    Literal(char),
}

/// A word of a pattern.
#[derive(Clone, Debug, PartialEq)]
struct Word {
    /// In capitals.
    name: &'static str,
    case: Case,
    /// `FM`: neither blanks nor zeros fill it.
    compact: bool,
    /// `th` or `TH` behind it; in capitals?
    ordinal: Option<bool>,
}

/// How a word is written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Case {
    Upper,
    /// The first letter in upper case.
    Title,
    Lower,
}

/// All words, of which the first that fits counts.
const WORDS: &[&str] = &[
    "A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DAY", "DDD", "DD", "DY", "D", "FF1", "FF2", "FF3", "FF4", "FF5",
    "FF6", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY", "IYY", "IY", "I", "J", "MI", "MM", "MONTH", "MON", "MS",
    "OF", "P.M.", "PM", "Q", "RM", "SSSSS", "SSSS", "SS", "TZH", "TZM", "TZ", "US", "WW", "W", "Y,YYY", "YYYY", "YYY",
    "YY", "Y",
];

/// Months in Roman numerals.
const ROMAN: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

fn word(rest: &str) -> Option<(&'static str, Case)> {
    WORDS.iter().find_map(|name| {
        let own = rest.get(..name.len())?;
        if own == *name {
            return Some((*name, Case::Upper));
        }
        if own == name.to_ascii_lowercase() {
            return Some((*name, Case::Lower));
        }
        let titled =
            matches!(*name, "DAY" | "DY" | "MONTH" | "MON") && own.starts_with(|c: char| c.is_ascii_uppercase());
        (titled && own[1..] == name[1..].to_ascii_lowercase()).then_some((*name, Case::Title))
    })
}

/// The pieces of a pattern, and whether it is to be met exactly (`FX`).
fn pieces(pattern: &str) -> (Vec<Piece>, bool) {
    let (mut out, mut exact, mut compact) = (Vec::new(), false, false);
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        let prefix = rest.get(..2).unwrap_or_default();
        match prefix {
            "FM" | "fm" => {
                (compact, rest) = (true, &rest[2..]);
                continue;
            }
            "FX" | "fx" => {
                (exact, rest) = (true, &rest[2..]);
                continue;
            }
            // Names of days and months are those of one language.
            "TM" | "tm" => {
                (compact, rest) = (true, &rest[2..]);
                continue;
            }
            _ => {}
        }
        if let Some((name, case)) = word(rest) {
            rest = &rest[name.len()..];
            let ordinal = match rest.get(..2) {
                Some("TH") => Some(true),
                Some("th") => Some(false),
                _ => None,
            };
            rest = &rest[if ordinal.is_some() { 2 } else { 0 }..];
            out.push(Piece::Word(Word {
                name,
                case,
                compact,
                ordinal,
            }));
            compact = false;
            continue;
        }
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut chars = quoted.char_indices();
            rest = "";
            while let Some((at, c)) = chars.next() {
                match c {
                    '"' => {
                        rest = &quoted[at + 1..];
                        break;
                    }
                    '\\' => out.extend(chars.next().map(|(_, c)| Piece::Literal(c))),
                    c => out.push(Piece::Literal(c)),
                }
            }
            continue;
        }
        if let Some(after) = rest.strip_prefix("\\\"") {
            out.push(Piece::Literal('"'));
            rest = after;
            continue;
        }
        let separates = c.is_ascii() && !c.is_ascii_alphanumeric() && !c.is_ascii_control();
        out.push(if separates {
            Piece::Separator(c)
        } else {
            Piece::Literal(c)
        });
        rest = &rest[c.len_utf8()..];
    }
    (out, exact)
}
