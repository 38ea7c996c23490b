//! The words of a date, a time or an interval as they are written: numbers, names, dates with signs between their parts, times with
//! colons, and what begins with a sign. How such texts are taken apart is in the appendix "Date/Time Input Interpretation" of
//! PostgreSQL's manual.

use nestor_model::date::month_of;

/// More words than this no moment has.
const TOKENS_MAX: usize = 25;

/// Kinds of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Digits, with a point in them or not.
    Number,
    /// Letters.
    Text,
    /// Digits or letters with `-`, `/` or `.` between them: a date, or the name of a zone.
    Date,
    /// Digits with colons.
    Time,
    /// A sign and digits: an offset, or a number of an interval.
    Signed,
    /// A sign and letters.
    SignedText,
}

/// A word.
#[derive(Clone, Debug)]
pub(super) struct Token {
    /// Its kind.
    pub kind: Kind,
    /// The word, its letters small.
    pub text: String,
}

/// What names stand for in dates and times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// A month, from 1.
    Month(i64),
    /// A day of the week, which says nothing.
    Weekday,
    /// Before Christ or after.
    Era(bool),
    /// Of hours up to twelve: whether they are those after noon.
    Half(bool),
    /// The unit of the number behind it.
    Unit(Unit),
    /// A time follows, as ISO 8601 marks it.
    IsoTime,
    /// `at` and `on`.
    Noise,
    /// The clock of summer.
    Summer,
    /// This moment.
    Now,
    /// The day so many behind this one.
    Day(i64),
    /// The beginning of 1970.
    Epoch,
    /// Midnight in Greenwich.
    AllBalls,
    /// An infinity: whether it is the late one.
    Infinity(bool),
}

/// Units that stand before their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// `y`
    Year,
    /// `m`
    Month,
    /// `d`
    Day,
    /// `h`
    Hour,
    /// `mm`
    Minute,
    /// `s`
    Second,
    /// `j`
    Julian,
    /// `t`, behind which a time stands.
    Time,
    /// Parts of dates that cannot be written alone.
    Other,
}

const WEEKDAYS: [&[&str]; 7] = [
    &["sun", "sunday"],
    &["mon", "monday"],
    &["tue", "tues", "tuesday"],
    &["wed", "weds", "wednesday"],
    &["thu", "thur", "thurs", "thursday"],
    &["fri", "friday"],
    &["sat", "saturday"],
];

/// What a name stands for.
pub(super) fn word(name: &str) -> Option<Word> {
    if let Some(month) = month_of(name) {
        return Some(Word::Month(i64::from(month)));
    }
    if WEEKDAYS.iter().any(|names| names.contains(&name)) {
        return Some(Word::Weekday);
    }
    Some(match name {
        "ad" => Word::Era(false),
        "bc" => Word::Era(true),
        "am" => Word::Half(false),
        "pm" => Word::Half(true),
        "y" => Word::Unit(Unit::Year),
        "m" => Word::Unit(Unit::Month),
        "d" => Word::Unit(Unit::Day),
        "h" => Word::Unit(Unit::Hour),
        "mm" => Word::Unit(Unit::Minute),
        "s" => Word::Unit(Unit::Second),
        "j" | "jd" | "julian" => Word::Unit(Unit::Julian),
        "dow" | "doy" | "isodow" | "isoyear" => Word::Unit(Unit::Other),
        "t" => Word::IsoTime,
        "at" | "on" => Word::Noise,
        "dst" => Word::Summer,
        "now" => Word::Now,
        "today" => Word::Day(0),
        "tomorrow" => Word::Day(1),
        "yesterday" => Word::Day(-1),
        "epoch" => Word::Epoch,
        "allballs" => Word::AllBalls,
        "infinity" | "+infinity" => Word::Infinity(true),
        "-infinity" => Word::Infinity(false),
        _ => return None,
    })
}

/// Takes a text apart; nothing where a character belongs to no word.
pub(super) fn tokens(text: &str) -> Option<Vec<Token>> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    let run = |from: usize, takes: &dyn Fn(u8) -> bool| from + bytes[from..].iter().take_while(|b| takes(**b)).count();
    let digits = |from: usize| run(from, &|b| b.is_ascii_digit());
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    while let Some(first) = bytes.get(at) {
        let from = at;
        let kind = match first {
            first if first.is_ascii_whitespace() || *first == 0x0B => {
                at += 1;
                continue;
            }
            b'0'..=b'9' => {
                at = digits(from);
                match bytes.get(at) {
                    Some(b':') => {
                        at = run(at, &|b| b.is_ascii_digit() || b == b':' || b == b'.');
                        Kind::Time
                    }
                    Some(sign @ (b'-' | b'/' | b'.')) => {
                        at += 1;
                        if is_digit(at) {
                            at = digits(at);
                            match bytes.get(at) == Some(sign) {
                                true => {
                                    at = run(at, &|b| b.is_ascii_digit() || b == *sign);
                                    Kind::Date
                                }
                                false if *sign == b'.' => Kind::Number,
                                false => Kind::Date,
                            }
                        } else if *sign == b'.' && !bytes.get(at).is_some_and(u8::is_ascii_alphabetic) {
                            Kind::Number
                        } else {
                            // The month may be a name.
                            at = run(at, &|b| b.is_ascii_alphanumeric() || b == *sign);
                            Kind::Date
                        }
                    }
                    _ => Kind::Number,
                }
            }
            b'.' if is_digit(at + 1) => {
                at = digits(at + 1);
                Kind::Number
            }
            first if first.is_ascii_alphabetic() => {
                at = run(from, &|b| b.is_ascii_alphabetic());
                let goes_on = match bytes.get(at) {
                    Some(b'-' | b'/' | b'.') => true,
                    Some(b'+' | b'0'..=b'9') => word(&text[from..at].to_ascii_lowercase()).is_none(),
                    _ => false,
                };
                match goes_on {
                    true => {
                        at = run(at, &|b| b.is_ascii_alphanumeric() || b"+-/_.:".contains(&b));
                        Kind::Date
                    }
                    false => Kind::Text,
                }
            }
            sign @ (b'+' | b'-') => {
                at = run(at + 1, &|b| b.is_ascii_whitespace());
                let start = at;
                let kind = match bytes.get(at) {
                    Some(b'0'..=b'9') => {
                        at = run(at, &|b| b.is_ascii_digit() || b":.-".contains(&b));
                        Kind::Signed
                    }
                    Some(b'.') if is_digit(at + 1) => {
                        at = digits(at + 1);
                        Kind::Signed
                    }
                    Some(b) if b.is_ascii_alphabetic() => {
                        at = run(at, &|b| b.is_ascii_alphabetic());
                        Kind::SignedText
                    }
                    _ => return None,
                };
                let text = format!("{}{}", char::from(*sign), text[start..at].to_ascii_lowercase());
                out.push(Token { kind, text });
                continue;
            }
            first if first.is_ascii_punctuation() => {
                at += 1;
                continue;
            }
            _ => return None,
        };
        out.push(Token {
            kind,
            text: text[from..at].to_ascii_lowercase(),
        });
        if out.len() > TOKENS_MAX {
            return None;
        }
    }
    Some(out)
}
