//! Which paths an update may change.

use nestor_model::{Path, Str};

/// The paths an update may change, so that only indexes over them need new keys.
#[derive(Clone, Debug)]
pub enum Touched {
    /// Any path.
    All,
    /// These and what lies below them. Array positions, written or resolved, are left out: `a.$[].b`
    /// and `a.0.b` are `a.b`, as an index on `a.b` sees both.
    Paths(Vec<Str>),
}

impl Touched {
    /// True when the update may change what `path` of an index or a filter reaches. Never wrongly false.
    pub fn affects(&self, path: &Path) -> bool {
        match self {
            Touched::All => true,
            Touched::Paths(touched) => touched.iter().any(|t| overlap(t, path)),
        }
    }

    /// [`Touched::affects`] for any of `paths`.
    pub fn affects_any(&self, paths: &[Path]) -> bool {
        paths.iter().any(|path| self.affects(path))
    }

    /// [`Touched::affects`] for a top-level field.
    pub(crate) fn affects_field(&self, name: &str) -> bool {
        match self {
            Touched::All => true,
            Touched::Paths(touched) => touched
                .iter()
                .any(|t| t.is_empty() || t.split('.').next() == Some(name)),
        }
    }
}

/// One is a prefix of the other, positions aside.
fn overlap(touched: &str, path: &Path) -> bool {
    let mut ours = touched.split('.').filter(|part| !part.is_empty());
    let mut theirs = path.parts().iter().map(|p| p.name.as_str()).filter(|p| !is_position(p));
    loop {
        match (ours.next(), theirs.next()) {
            (Some(a), Some(b)) if a == b => {}
            (Some(_), Some(_)) => return false,
            _ => return true,
        }
    }
}

/// All digits: an index, or a field that might be taken for one.
pub(crate) fn is_position(part: &str) -> bool {
    part.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlaps() {
        let touched = Touched::Paths(vec!["a.b".into(), "n".into()]);
        for yes in ["a", "a.b", "a.b.c", "a.0.b", "n", "n.3", "n.x"] {
            assert!(touched.affects(&Path::new(yes)), "{yes}");
        }
        for no in ["b", "a.c", "ab", "nn", "a.0.c"] {
            assert!(!touched.affects(&Path::new(no)), "{no}");
        }
        assert!(Touched::All.affects(&Path::new("x")));
    }
}
