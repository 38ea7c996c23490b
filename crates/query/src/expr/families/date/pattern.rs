//! Format strings such as `%Y-%m-%d`: the specifiers, shared by printing and parsing.

use crate::expr::Expr;
use crate::expr::args::error;
use nestor_model::{Error, Result, ValueRef};

/// One piece of a format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Piece<'f> {
    Text(&'f str),
    /// The letter after `%`.
    Field(char),
}

/// Splits a format. Errors: 18535 a lone `%` at the end, 18536 a letter not in `letters`.
pub(crate) fn split<'f>(format: &'f str, letters: &str) -> Result<Vec<Piece<'f>>> {
    let mut pieces = Vec::new();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        if at > 0 {
            pieces.push(Piece::Text(&rest[..at]));
        }
        let mut chars = rest[at + 1..].chars();
        match chars.next() {
            None => return Err(error(18535, "unmatched '%' at end of format string")),
            Some('%') => pieces.push(Piece::Text(&rest[at..at + 1])),
            Some(letter) if letters.contains(letter) => pieces.push(Piece::Field(letter)),
            Some(letter) => {
                return Err(error(
                    18536,
                    format!("invalid format character '%{letter}' in format string"),
                ));
            }
        }
        rest = chars.as_str();
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    Ok(pieces)
}

/// Checks a format that is a constant, before any document is read. Errors: those of [`split`], and `wrong_type` of a
/// constant that is neither a string nor null.
pub(crate) fn check_constant(format: &Expr, letters: &str, wrong_type: impl Fn(ValueRef<'_>) -> Error) -> Result<()> {
    match format.constant().map(|v| v.as_ref()) {
        Some(ValueRef::String(format)) => split(format, letters).map(|_| ()),
        Some(other) if !other.is_nullish() => Err(wrong_type(other)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces() {
        let pieces = split("a%Y%%b", "Y").expect("valid");
        assert_eq!(
            pieces,
            [Piece::Text("a"), Piece::Field('Y'), Piece::Text("%"), Piece::Text("b")]
        );
        assert_eq!(split("%", "Y").expect_err("lone").code().number(), 18535);
        assert_eq!(split("%é", "Y").expect_err("unknown").code().number(), 18536);
    }
}
