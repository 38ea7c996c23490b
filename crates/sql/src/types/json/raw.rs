//! Parts of JSON as they are written: `json` keeps its text.

/// The text of a value and what follows it, of JSON that was read before.
fn value(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    for (at, c) in text.char_indices() {
        let ends = match c {
            _ if escaped => {
                escaped = false;
                false
            }
            '\\' if quoted => {
                escaped = true;
                false
            }
            '"' => {
                quoted = !quoted;
                !quoted && depth == 0
            }
            _ if quoted => false,
            '{' | '[' => {
                depth += 1;
                false
            }
            '}' | ']' if depth == 0 => return (text[..at].trim_end(), &text[at..]),
            '}' | ']' => {
                depth -= 1;
                depth == 0
            }
            ',' | ':' if depth == 0 => return (text[..at].trim_end(), &text[at..]),
            _ => false,
        };
        if ends {
            return text.split_at(at + c.len_utf8());
        }
    }
    (text.trim_end(), "")
}

/// The elements of an array, or names and values of an object by turns; `None` for a single value.
fn parts(text: &str) -> Option<Vec<&str>> {
    let text = text.trim();
    let mut rest = text.strip_prefix(['{', '['])?;
    let mut out = Vec::new();
    loop {
        rest = rest.trim_start();
        if rest.is_empty() || rest.starts_with(['}', ']']) {
            return Some(out);
        }
        let (part, after) = value(rest);
        out.push(part);
        let after = after.trim_start();
        rest = after.strip_prefix([',', ':']).unwrap_or(after);
    }
}

/// The elements of an array; `None` for anything else.
pub fn elements(text: &str) -> Option<Vec<&str>> {
    text.trim_start().starts_with('[').then(|| parts(text)).flatten()
}

/// Names, without quotes, and values of an object; `None` for anything else.
pub fn fields(text: &str) -> Option<Vec<(String, &str)>> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let parts = parts(text)?;
    let named = parts.chunks_exact(2).map(|pair| (unquoted(pair[0]), pair[1]));
    Some(named.collect())
}

/// What a string of JSON says; other values as they are written.
pub fn unquoted(text: &str) -> String {
    match text.starts_with('"') {
        true => super::parse(text)
            .ok()
            .and_then(|value| value.as_str().map(str::to_owned))
            .unwrap_or_default(),
        false => text.to_owned(),
    }
}

/// The value of a field; of several of the same name the last.
pub fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let found = fields(text)?.into_iter().rev().find(|(own, _)| own == name);
    found.map(|(_, value)| value)
}

/// The element at a place from 0, or from the end for negative ones.
pub fn element(text: &str, at: i64) -> Option<&str> {
    let all = elements(text)?;
    let at = if at < 0 { at + all.len() as i64 } else { at };
    usize::try_from(at).ok().and_then(|at| all.get(at).copied())
}

/// The value at a path of names and numbers.
pub fn at_path<'t>(text: &'t str, path: &[String]) -> Option<&'t str> {
    path.iter().try_fold(text.trim(), |at, step| match step.parse::<i64>() {
        Ok(n) if at.starts_with('[') => element(at, n),
        _ => field(at, step),
    })
}

/// JSON without fields that are null, and without spaces.
pub fn without_nulls(text: &str) -> String {
    if let Some(fields) = fields(text) {
        let kept = fields
            .into_iter()
            .filter(|(_, value)| *value != "null")
            .map(|(name, value)| {
                let mut out = String::new();
                super::quote(&name, &mut out);
                out + ":" + &without_nulls(value)
            });
        return format!("{{{}}}", kept.collect::<Vec<_>>().join(","));
    }
    match elements(text) {
        Some(items) => format!(
            "[{}]",
            items.into_iter().map(without_nulls).collect::<Vec<_>>().join(",")
        ),
        None => text.trim().to_owned(),
    }
}
