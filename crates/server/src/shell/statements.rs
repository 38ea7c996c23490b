//! A text of SQL into its statements: where each ends.

/// Where a reader of SQL stands after a part of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Splitter {
    inside: Inside,
    /// Open parentheses.
    depth: usize,
    text: String,
}

/// What the reader is inside of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Inside {
    #[default]
    Code,
    /// `'…'`; with backslashes that escape in `E'…'`.
    Text { escapes: bool },
    /// `"…"`.
    Name,
    /// `$tag$ … $tag$`.
    Dollar(String),
    /// `-- …`.
    Line,
    /// `/* … */`, which nests.
    Block(usize),
}

impl Splitter {
    /// Takes a line, and gives the statements that end in it, without their semicolons.
    pub fn line(&mut self, line: &str) -> Vec<String> {
        let mut ended = Vec::new();
        let mut rest = line;
        while let Some(first) = rest.chars().next() {
            let step = self.step(first, rest);
            let (taken, after) = rest.split_at(step);
            rest = after;
            if first == ';' && self.inside == Inside::Code && self.depth == 0 {
                ended.extend(self.finish());
            } else {
                self.text.push_str(taken);
            }
        }
        self.text.push('\n');
        if self.inside == Inside::Line {
            self.inside = Inside::Code;
        }
        ended
    }

    /// What has been read and not ended, if it says anything; the next statement begins anew.
    pub fn finish(&mut self) -> Option<String> {
        let text = std::mem::take(self).text;
        has_code(&text).then(|| text.trim().to_owned())
    }

    /// Nothing of a statement has been read.
    pub fn is_empty(&self) -> bool {
        self.inside == Inside::Code && self.text.trim().is_empty()
    }

    /// What the reader waits for, as psql's prompts show it.
    pub fn waits_for(&self) -> char {
        match self.inside {
            Inside::Text { .. } => '\'',
            Inside::Name => '"',
            Inside::Dollar(_) => '$',
            Inside::Block(_) => '*',
            Inside::Code | Inside::Line if self.depth > 0 => '(',
            Inside::Code | Inside::Line if self.is_empty() => '=',
            Inside::Code | Inside::Line => '-',
        }
    }

    /// Reads the character at the front of `rest`, or the mark that begins with it; the bytes that it has.
    fn step(&mut self, first: char, rest: &str) -> usize {
        let one = first.len_utf8();
        match &mut self.inside {
            Inside::Code => match first {
                '\'' => {
                    self.inside = Inside::Text {
                        escapes: self.is_escaping(),
                    }
                }
                '"' => self.inside = Inside::Name,
                '(' | '[' => self.depth += 1,
                ')' | ']' => self.depth = self.depth.saturating_sub(1),
                '-' if rest.starts_with("--") => self.inside = Inside::Line,
                '/' if rest.starts_with("/*") => {
                    self.inside = Inside::Block(1);
                    return 2;
                }
                '$' if !self.is_in_word() => {
                    if let Some(tag) = dollar_tag(rest) {
                        self.inside = Inside::Dollar(tag.to_owned());
                        return tag.len();
                    }
                }
                _ => {}
            },
            Inside::Text { escapes: true } if first == '\\' => {
                return one + rest[one..].chars().next().map_or(0, char::len_utf8);
            }
            // A doubled quote ends one text and begins the next, which is the same.
            Inside::Text { .. } if first == '\'' => self.inside = Inside::Code,
            Inside::Name if first == '"' => self.inside = Inside::Code,
            Inside::Dollar(tag) if rest.starts_with(tag.as_str()) => {
                let bytes = tag.len();
                self.inside = Inside::Code;
                return bytes;
            }
            Inside::Block(depth) => {
                if rest.starts_with("/*") {
                    *depth += 1;
                    return 2;
                }
                if rest.starts_with("*/") {
                    match *depth {
                        1 => self.inside = Inside::Code,
                        _ => *depth -= 1,
                    }
                    return 2;
                }
            }
            Inside::Text { .. } | Inside::Name | Inside::Dollar(_) | Inside::Line => {}
        }
        one
    }

    fn is_in_word(&self) -> bool {
        self.text
            .ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$')
    }

    /// Whether the quote that comes belongs to `E'…'`.
    fn is_escaping(&self) -> bool {
        let mut before = self.text.chars().rev();
        matches!(before.next(), Some('e' | 'E')) && !before.next().is_some_and(|c| c.is_alphanumeric() || c == '_')
    }
}

/// The mark `$tag$` at the front of a text.
fn dollar_tag(text: &str) -> Option<&str> {
    let end = text[1..].find('$')? + 1;
    let tag = &text[1..end];
    let is_name =
        tag.chars().all(|c| c.is_alphanumeric() || c == '_') && !tag.starts_with(|c: char| c.is_ascii_digit());
    is_name.then(|| &text[..=end])
}

/// Whether a text is more than spaces and comments.
fn has_code(text: &str) -> bool {
    let mut reader = Splitter::default();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let step = reader.step(first, rest);
        let is_comment = matches!(reader.inside, Inside::Line | Inside::Block(_)) || rest.starts_with("*/");
        if !is_comment && !first.is_whitespace() {
            return true;
        }
        if first == '\n' && reader.inside == Inside::Line {
            reader.inside = Inside::Code;
        }
        rest = &rest[step..];
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> (Vec<String>, Option<String>) {
        let mut splitter = Splitter::default();
        let ended = text.lines().flat_map(|line| splitter.line(line)).collect();
        (ended, splitter.finish())
    }

    #[test]
    fn statements_end_at_their_semicolons() {
        for (text, ended, rest) in [
            ("select 1; select 2", vec!["select 1"], Some("select 2")),
            ("select ';' ;", vec!["select ';'"], None),
            ("select 'it''s;';x;", vec!["select 'it''s;'", "x"], None),
            (r"select e'\';' ; b", vec![r"select e'\';'"], Some("b")),
            (r"select '\'; b", vec![r"select '\'"], Some("b")),
            ("select \";\";", vec!["select \";\""], None),
            ("do $x$ a; $y$ ; $x$; b;", vec!["do $x$ a; $y$ ; $x$", "b"], None),
            ("select $1; b", vec!["select $1"], Some("b")),
            ("a -- ;\n; b", vec!["a -- ;"], Some("b")),
            ("/* ; /* ; */ ; */ a; -- end", vec!["/* ; /* ; */ ; */ a"], None),
            ("create rule (a; b); c", vec!["create rule (a; b)"], Some("c")),
            (";;\n;", vec![], None),
            ("select 'a\n;b';", vec!["select 'a\n;b'"], None),
        ] {
            let (got, left) = split(text);
            assert_eq!(
                (got, left.as_deref()),
                (ended.into_iter().map(str::to_owned).collect(), rest),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_waited_for() {
        for (line, expected) in [
            ("", '='),
            ("select", '-'),
            ("select (", '('),
            ("select '", '\''),
            ("select \"", '"'),
            ("/*", '*'),
            ("$$", '$'),
            ("select 1;", '='),
            ("-- x", '-'),
        ] {
            let mut splitter = Splitter::default();
            splitter.line(line);
            assert_eq!(splitter.waits_for(), expected, "{line}");
        }
    }
}
