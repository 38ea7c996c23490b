//! Names that stand in texts.

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

/// A name as texts have it: in quotes unless it is of small letters, digits and underscores.
pub fn quoted(name: &str) -> String {
    let plain = |(i, c): (usize, char)| c.is_ascii_lowercase() || c == '_' || i > 0 && c.is_ascii_digit();
    match !name.is_empty() && name.chars().enumerate().all(plain) {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
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
    }
}
