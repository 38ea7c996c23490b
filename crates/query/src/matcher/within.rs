//! Conditions on a field's document as conditions on that document alone.

use super::{Leaf, MatchExpr};
use nestor_model::Path;

impl MatchExpr {
    /// What this condition says of the document that stands at `path`: `{"a.b": 1}` is `{b: 1}` of the document at
    /// `a`. `None` when anything else than the fields of that document counts. There must be one document at `path`,
    /// and no array on the way.
    pub fn within(&self, path: &Path) -> Option<Self> {
        let each = |children: &[Self]| {
            children
                .iter()
                .map(|child| child.within(path))
                .collect::<Option<Vec<_>>>()
        };
        Some(match self {
            Self::And(children) => Self::And(each(children)?),
            Self::Or(children) => Self::Or(each(children)?),
            Self::Nor(children) => Self::Nor(each(children)?),
            Self::Not(child) => Self::Not(Box::new(child.within(path)?)),
            Self::Leaf(leaf) => Self::Leaf(Leaf {
                path: Path::new(leaf.path.as_str().strip_prefix(path.as_str())?.strip_prefix('.')?),
                predicate: leaf.predicate.clone(),
            }),
            // They say nothing of the document, or of it all.
            Self::AlwaysTrue
            | Self::AlwaysFalse
            | Self::Expr(_)
            | Self::JsonSchema(_)
            | Self::SampleRate(_)
            | Self::Text(_) => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scope;
    use nestor_model::extjson::{self, Form};

    #[test]
    fn only_what_lies_within_counts() {
        for (filter, expected) in [
            (r#"{"a.b.c": 1}"#, Some(r#"{"c":{"$eq":1}}"#)),
            (r#"{"a.b.c": {"$ne": 1}}"#, Some(r#"{"c":{"$not":{"$eq":1}}}"#)),
            (
                r#"{"$or": [{"a.b.c": 1}, {"a.b.d.0": {"$exists": true}}]}"#,
                Some(r#"{"$or":[{"c":{"$eq":1}},{"d.0":{"$exists":true}}]}"#),
            ),
            (r#"{"$or": [{"a.b.c": 1}, {"a.c": 1}]}"#, None),
            (r#"{"a.b": {"c": 1}}"#, None),
            (r#"{"a.bc": 1}"#, None),
            (r#"{"$expr": {"$eq": ["$a.b.c", 1]}}"#, None),
        ] {
            let doc = extjson::parse_document(filter).expect("valid JSON");
            let filter = MatchExpr::parse(doc.as_ref(), &mut Scope::new()).expect("a filter");
            let inner = filter.within(&Path::new("a.b"));
            let text = inner.map(|inner| extjson::to_string(&inner.serialize(), Form::Relaxed));
            assert_eq!(text.as_deref(), expected, "{filter:?}");
        }
    }
}
