//! Names that are longer than names may be are cut, and whoever wrote them is told of that.

use crate::notices;
use crate::types::names::{NAME_BYTES_MAX, shortened};
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::cell::{Cell, RefCell};

thread_local! {
    static CUT: RefCell<Vec<(String, String)>> = const { RefCell::new(Vec::new()) };
    /// The next tokens are a client's own, and no text that was made of them, in which clauses may stand as names.
    static IS_NEXT: Cell<bool> = const { Cell::new(false) };
}

/// Whether a client's text is parsed, once.
pub(super) fn is_next() -> bool {
    IS_NEXT.replace(false)
}

/// Cuts names that are too long.
pub(super) fn shorten(tokens: &mut [TokenWithSpan]) {
    for token in tokens {
        let Token::Word(word) = &mut token.token else { continue };
        if word.value.len() <= NAME_BYTES_MAX {
            continue;
        }
        let whole = match word.quote_style {
            None => word.value.to_lowercase(),
            Some(_) => word.value.clone(),
        };
        word.value.truncate(shortened(&word.value).len());
        let cut = shortened(&whole).to_owned();
        CUT.with_borrow_mut(|all| all.push((whole, cut)));
    }
}

/// Forgets what was cut so far: a statement of a client is about to be parsed.
pub fn begin() {
    CUT.with_borrow_mut(Vec::clear);
    IS_NEXT.set(true);
}

/// Tells of what was cut since then.
pub fn tell() {
    CUT.take().iter().for_each(|(whole, cut)| told(whole, cut));
}

fn told(whole: &str, cut: &str) {
    let message = format!("identifier \"{whole}\" will be truncated to \"{cut}\"");
    notices::told("42622", &message);
}

/// A value that is a name, cut where it is too long; who gave it is told of that.
pub fn cut(text: &str) -> &str {
    let cut = shortened(text);
    if cut != text {
        told(text, cut);
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wrote_a_name_that_is_too_long_is_told() {
        let long = "a".repeat(70);
        begin();
        crate::parse::parse(&format!("SELECT 1 AS {long}, 2 AS b")).expect("a query");
        let cut = CUT.take();
        assert_eq!(cut, [(long.clone(), long[..NAME_BYTES_MAX].to_owned())]);
        assert_eq!(shortened(&"ä".repeat(40)).len(), 62);
    }
}
