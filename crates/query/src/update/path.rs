//! The paths of update operators: dotted names with `$`, `$[]` and `$[identifier]`.

use super::touched::is_position;
use nestor_model::raw::DEPTH_MAX;
use nestor_model::{PathPart, Result, Str, bail};
use std::cmp::Ordering;

/// One step of an update path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// A field name, or an index where an array is found.
    Field(PathPart),
    /// `$`: the array position the query matched.
    Positional,
    /// `$[]`: every element.
    All,
    /// `$[identifier]`: the elements that the array filter of that name accepts.
    Filtered(Str),
}

/// An update path as written and as steps.
#[derive(Clone, Debug)]
pub(crate) struct UpdatePath {
    pub text: Str,
    pub steps: Vec<Step>,
}

impl UpdatePath {
    /// Parses a path. Errors: 56 (EmptyFieldName) for empty components, 2 (BadValue) for a positional
    /// operator in first place or more than one `$`; 15 (Overflow) for more components than a document
    /// has levels.
    pub fn parse(text: &str) -> Result<Self> {
        if text.is_empty() {
            bail!(EmptyFieldName, "an empty update path is not valid");
        }
        let count = text.split('.').count();
        if count > DEPTH_MAX {
            bail!(Overflow, "an update path has {count} components, more than {DEPTH_MAX}");
        }
        let mut steps = Vec::with_capacity(count);
        let mut positional = 0;
        for (i, part) in text.split('.').enumerate() {
            if part.is_empty() {
                bail!(
                    EmptyFieldName,
                    "the update path '{text}' contains an empty field name, which is not allowed"
                );
            }
            let step = Step::parse(part);
            if i == 0 {
                match step {
                    Step::Positional => bail!(
                        BadValue,
                        "Cannot have positional (i.e. '$') element in the first position in path '{text}'"
                    ),
                    Step::All | Step::Filtered(_) => bail!(
                        BadValue,
                        "Cannot have array filter identifier (i.e. '$[<id>]') element in the first position in path '{text}'"
                    ),
                    Step::Field(_) => {}
                }
            }
            positional += usize::from(step == Step::Positional);
            steps.push(step);
        }
        if positional > 1 {
            bail!(
                BadValue,
                "Too many positional (i.e. '$') elements found in path '{text}'"
            );
        }
        Ok(Self {
            text: text.into(),
            steps,
        })
    }

    /// True when a step is not a plain name.
    pub fn is_dynamic(&self) -> bool {
        self.steps.iter().any(|s| !matches!(s, Step::Field(_)))
    }

    /// True when a step is `$`.
    pub fn has_positional(&self) -> bool {
        self.steps.contains(&Step::Positional)
    }

    /// The path without array positions; see [`super::Touched`].
    pub fn canonical(&self) -> Str {
        let names: Vec<&str> = self
            .steps
            .iter()
            .filter_map(|step| match step {
                Step::Field(part) if !is_position(&part.name) => Some(part.name.as_str()),
                _ => None,
            })
            .collect();
        names.join(".").into()
    }

    /// The text of the first `n` steps.
    pub fn prefix(&self, n: usize) -> &str {
        match self.text.match_indices('.').nth(n.saturating_sub(1)) {
            Some((at, _)) => &self.text[..at],
            None => &self.text,
        }
    }
}

impl Step {
    fn parse(part: &str) -> Self {
        if part == "$" {
            return Step::Positional;
        }
        match part.strip_prefix("$[").and_then(|rest| rest.strip_suffix(']')) {
            Some("") => Step::All,
            Some(id) => Step::Filtered(id.into()),
            None => Step::Field(PathPart::new(part)),
        }
    }
}

/// The order in which the fields of one level are visited and new ones appended: names of digits first,
/// as numbers, then all else as text. Source: manual, "Update Operators Process Document Fields in
/// Order" (since 5.0).
pub(crate) fn compare_names(a: &str, b: &str) -> Ordering {
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|c| c.is_ascii_digit());
    match (digits(a), digits(b)) {
        (true, true) => {
            let (x, y) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
            x.len().cmp(&y.len()).then_with(|| x.cmp(y)).then_with(|| a.cmp(b))
        }
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => a.cmp(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps() {
        let path = UpdatePath::parse("a.0.$.b.$[].$[e].$x.$[").expect("valid");
        let field = |name| Step::Field(PathPart::new(name));
        assert_eq!(
            path.steps,
            [
                field("a"),
                field("0"),
                Step::Positional,
                field("b"),
                Step::All,
                Step::Filtered("e".into()),
                field("$x"),
                field("$["),
            ]
        );
        assert_eq!(path.prefix(1), "a");
        assert_eq!(path.prefix(3), "a.0.$");
        assert_eq!(path.prefix(8), "a.0.$.b.$[].$[e].$x.$[");
        assert!(path.is_dynamic());
    }

    #[test]
    fn bad_paths() {
        for (text, code) in [
            ("", 56),
            ("a.", 56),
            (".a", 56),
            ("a..b", 56),
            ("$", 2),
            ("$.a", 2),
            ("$[].a", 2),
            ("$[x].a", 2),
            ("a.$.b.$", 2),
        ] {
            let error = UpdatePath::parse(text).expect_err(text);
            assert_eq!(error.code().number(), code, "{text}");
        }
    }

    #[test]
    fn names_of_digits_compare_as_numbers() {
        let mut names = vec!["b", "10", "a", "2", "1", "a10", "a2"];
        names.sort_by(|a, b| compare_names(a, b));
        assert_eq!(names, ["1", "2", "10", "a", "a10", "a2", "b"]);
    }
}
