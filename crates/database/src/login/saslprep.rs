//! Preparing passwords and user names so that what looks alike is alike.
//!
//! Source: RFC 4013.

use nestor_model::{Result, bail};

/// The text in its prepared form.
///
/// Errors: 2 when it holds characters that no password may hold.
pub fn prepare(text: &str) -> Result<String> {
    match stringprep::saslprep(text) {
        Ok(prepared) => Ok(prepared.into_owned()),
        // The error does not say what is wrong with the password, because that would tell of the secret.
        Err(_) => bail!(
            BadValue,
            "the password cannot be prepared by SASLprep: it holds prohibited characters"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::prepare;

    /// RFC 4013, section 3.
    #[test]
    fn examples_of_the_rfc() {
        assert_eq!(prepare("I\u{AD}X").ok().as_deref(), Some("IX"));
        assert_eq!(prepare("user").ok().as_deref(), Some("user"));
        assert_eq!(prepare("USER").ok().as_deref(), Some("USER"));
        assert_eq!(prepare("\u{AA}").ok().as_deref(), Some("a"));
        assert_eq!(prepare("\u{2168}").ok().as_deref(), Some("IX"));
        assert_eq!(prepare("\u{7}").map_err(|e| e.code().number()), Err(2));
        assert_eq!(prepare("\u{627}\u{31}").map_err(|e| e.code().number()), Err(2));
    }
}
