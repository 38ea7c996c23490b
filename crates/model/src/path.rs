//! Dotted field paths, parsed once.

use crate::Str;
use std::fmt;

/// One component of a dotted path.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PathPart {
    /// The component's text.
    pub name: Str,
    /// The component as an array index, when it is one: digits only, no leading zero, fits `u32`.
    pub index: Option<u32>,
}

impl PathPart {
    /// Parses one component.
    pub fn new(name: &str) -> Self {
        let canonical = !name.is_empty()
            && name.len() <= 10
            && name.bytes().all(|b| b.is_ascii_digit())
            && (name.len() == 1 || !name.starts_with('0'));
        Self {
            name: name.into(),
            index: if canonical { name.parse().ok() } else { None },
        }
    }
}

/// A dotted path such as `a.b.0.c`. Components may be empty text (`a..b`); whether that is an error
/// is for the place that parses it to say.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Path {
    parts: Box<[PathPart]>,
    text: Str,
}

impl Path {
    /// Splits `text` at its dots. The empty text is a path of one empty component.
    pub fn new(text: &str) -> Self {
        Self {
            parts: text.split('.').map(PathPart::new).collect(),
            text: text.into(),
        }
    }

    /// The components, at least one.
    pub fn parts(&self) -> &[PathPart] {
        &self.parts
    }

    /// The path as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// First component's text.
    pub fn head(&self) -> &str {
        &self.parts[0].name
    }

    /// True when `self` equals `other` or is an ancestor of it (`a` of `a.b`; not `a` of `ab`).
    pub fn is_prefix_of(&self, other: &Path) -> bool {
        other.parts.len() >= self.parts.len()
            && self.parts.iter().zip(other.parts.iter()).all(|(a, b)| a.name == b.name)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_and_indexes() {
        let path = Path::new("a.0.01.b");
        let got: Vec<_> = path.parts().iter().map(|p| (p.name.as_str(), p.index)).collect();
        assert_eq!(got, [("a", None), ("0", Some(0)), ("01", None), ("b", None)]);
    }

    #[test]
    fn prefixes_are_of_components_not_of_text() {
        assert!(Path::new("a").is_prefix_of(&Path::new("a.b")));
        assert!(Path::new("a.b").is_prefix_of(&Path::new("a.b")));
        assert!(!Path::new("a").is_prefix_of(&Path::new("ab")));
        assert!(!Path::new("a.b").is_prefix_of(&Path::new("a")));
    }
}
