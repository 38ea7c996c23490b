//! The file with the cluster's key: `--keyFile`.
//!
//! Source: manual, "Keyfiles": 6 to 1024 characters of base64; whitespace does not count; nobody but the owner may read the file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Fewest and most characters of a key.
const KEY_CHARS: std::ops::RangeInclusive<usize> = 6..=1024;

/// Reads the key.
///
/// Errors: a sentence that names the file.
pub fn read(path: &Path) -> Result<String, String> {
    let text = read_private(path, "key file")?;
    parse(&text).map_err(|what| format!("key file {} {what}", path.display()))
}

/// Reads a file that must be its owner's alone. `what` it is, for the sentence of the error.
pub(crate) fn read_private(path: &Path, what: &str) -> Result<String, String> {
    let shown = path.display();
    let unreadable = |e| format!("cannot read {what} {shown}: {e}");
    let mode = fs::metadata(path).map_err(unreadable)?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(format!("permissions on {what} {shown} are too open: chmod 400 it"));
    }
    fs::read_to_string(path).map_err(unreadable)
}

fn parse(text: &str) -> Result<String, &'static str> {
    if text.trim_start().starts_with(['-', '[']) {
        return Err("lists several keys, of which only one is supported");
    }
    let key: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    if !key
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '='))
    {
        return Err("holds characters that are not base64");
    }
    match KEY_CHARS.contains(&key.len()) {
        true => Ok(key),
        false => Err("does not hold between 6 and 1024 characters"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys() {
        assert_eq!(parse("abc\n def=\n").as_deref(), Ok("abcdef="));
        for wrong in ["", "abcde", "abc!def", "- abcdef\n- ghijkl\n", &"a".repeat(1025)] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
