//! Names that stand in texts.

use sqlparser::ast::Ident;

/// Bytes of a name.
pub const NAME_BYTES_MAX: usize = 63;

/// As much of a name as one may have.
pub fn shortened(name: &str) -> &str {
    cut(name, NAME_BYTES_MAX)
}

/// As many whole characters as these bytes hold.
fn cut(name: &str, bytes: usize) -> &str {
    let end = (0..=name.len().min(bytes)).rev().find(|at| name.is_char_boundary(*at));
    &name[..end.unwrap_or(0)]
}

/// The names that something gets which nobody named: of a table, of its columns, and a word for what it is; then with numbers behind that word. Of
/// a name that would be too long the longer part is cut.
pub fn made<'n>(first: &'n str, second: Option<&'n str>, label: &'n str) -> impl Iterator<Item = String> + 'n {
    let labels = std::iter::once(label.to_owned()).chain((1..).map(move |n| format!("{label}{n}")));
    labels.map(move |label| {
        let signs = label.len() + 1 + usize::from(second.is_some());
        let most = NAME_BYTES_MAX.saturating_sub(signs);
        let (mut one, mut other) = (first.len(), second.map_or(0, str::len));
        while one + other > most {
            match one > other {
                true => one -= 1,
                false => other -= 1,
            }
        }
        let one = cut(first, one);
        match second {
            Some(second) => format!("{one}_{}_{label}", cut(second, other)),
            None => format!("{one}_{label}"),
        }
    })
}

/// Begins the name of a table without those that stand below it.
const ONLY: &str = "\u{1}only ";

/// The name of a table without its partitions.
pub fn only(name: &str) -> String {
    format!("{ONLY}{name}")
}

/// The name of a table, whether or not it is meant without its partitions.
pub fn with_all(name: String) -> String {
    name.strip_prefix(ONLY).map(str::to_owned).unwrap_or(name)
}

/// Whether a table is meant without its partitions.
pub fn is_only(name: &str) -> bool {
    name.starts_with(ONLY)
}

/// The name that a word is: in quotes as it is, else in small letters.
pub fn folded(word: &str, quote: Option<char>) -> String {
    match quote {
        Some(_) => word.to_owned(),
        None => word.to_lowercase(),
    }
}

/// The name that an identifier is.
pub fn ident(ident: &Ident) -> String {
    folded(&ident.value, ident.quote_style)
}

/// The names in a text with dots between them: those in quotes as they are, others in small letters.
pub fn names_in(text: &str) -> Vec<String> {
    let (mut out, mut name, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = text.trim().chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                name.push('"');
            }
            '"' => quoted = !quoted,
            '.' if !quoted => out.push(std::mem::take(&mut name)),
            c if quoted => name.push(c),
            c => name.extend(c.to_lowercase()),
        }
    }
    out.push(name);
    out
}

/// Words that are no names unless they are quoted: all that are reserved in some place.
const RESERVED: &str = "all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean both case cast char \
    character check coalesce collate collation column concurrently constraint create cross current_catalog current_date \
    current_role current_schema current_time current_timestamp current_user dec decimal default deferrable desc distinct do \
    else end except exists extract false fetch float for foreign freeze from full grant greatest group grouping having ilike \
    in initially inner inout int integer intersect interval into is isnull join lateral leading least left like limit \
    localtime localtimestamp national natural nchar none normalize not notnull null nullif numeric offset on only or order \
    out outer overlaps overlay placing position precision primary real references returning right row select session_user \
    setof similar smallint some substring symmetric table tablesample then time timestamp to trailing treat trim true union \
    unique user using values varchar variadic verbose when where window with xmlattributes xmlconcat xmlelement xmlexists \
    xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable";

/// Whether a word is reserved in some place.
fn is_reserved(name: &str) -> bool {
    RESERVED.split(' ').any(|word| word == name)
}

/// A name as texts have it: in quotes unless it is of small letters, digits and underscores, and no reserved word.
pub fn quoted(name: &str) -> String {
    let plain = |(i, c): (usize, char)| c.is_ascii_lowercase() || c == '_' || i > 0 && c.is_ascii_digit();
    match !name.is_empty() && name.chars().enumerate().all(plain) && !is_reserved(name) {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// A setting's name as `SHOW` spells it.
pub fn spelled(name: &str) -> &str {
    match name {
        "datestyle" => "DateStyle",
        "intervalstyle" => "IntervalStyle",
        "timezone" => "TimeZone",
        name => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart_by_dots_and_quotes() {
        assert_eq!(names_in("Public.\"A.b\"\"c\".D"), ["public", "A.b\"c", "d"]);
        assert_eq!(names_in(" t "), ["t"]);
        assert_eq!(quoted("A.b\"c"), "\"A.b\"\"c\"");
        assert_eq!(
            ["order", "ordering", "2nd", ""].map(quoted),
            ["\"order\"", "ordering", "\"2nd\"", "\"\""]
        );
    }
}
