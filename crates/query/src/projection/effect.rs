//! The effect of a projection on one top-level field, for rules that look at the field before it instead.

use super::{Child, Compute, Mode, Projection};
use crate::expr::Expr;

/// The effect on a top-level field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect<'p> {
    /// It has the value that it had, or is missing as it was.
    Keeps,
    /// It has the value that this top-level field had, or is missing as that one was.
    Renames(&'p str),
    /// Anything else.
    Changes,
}

impl Projection {
    /// The effect on the top-level field `name`.
    ///
    /// ```text
    /// {$project: {a: 1, b: "$c", "d.e": 1}}    a and _id: Keeps, b: Renames("c"), d and all others: Changes
    /// ```
    pub fn effect(&self, name: &str) -> Effect<'_> {
        if !self.slices.is_empty() || self.positional.is_some() {
            return Effect::Changes;
        }
        match (self.root.child(name), self.mode) {
            (None, Mode::Exclusion) | (Some(Child::Kept), _) | (Some(Child::Listed), Mode::Inclusion) => Effect::Keeps,
            (Some(Child::Computed(Compute::Expr(expr))), _) => match expr.field_path().map(|path| path.parts()) {
                Some([only]) => Effect::Renames(&only.name),
                _ => Effect::Changes,
            },
            _ => Effect::Changes,
        }
    }
}

impl Projection {
    /// The expression that computes a top-level field.
    pub fn computed(&self, name: &str) -> Option<&Expr> {
        match self.root.child(name) {
            Some(Child::Computed(Compute::Expr(expr))) => Some(expr),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Scope;
    use crate::projection::Policy;
    use nestor_model::extjson;

    #[test]
    fn fields_are_kept_renamed_or_changed() {
        use Effect::{Changes, Keeps, Renames};
        for (policy, spec, field, expected) in [
            (Policy::Project, r#"{"a":1}"#, "a", Keeps),
            (Policy::Project, r#"{"a":1}"#, "_id", Keeps),
            (Policy::Project, r#"{"a":1,"_id":0}"#, "_id", Changes),
            (Policy::Project, r#"{"a":1}"#, "b", Changes),
            (Policy::Project, r#"{"a.b":1}"#, "a", Changes),
            (Policy::Project, r#"{"a":"$b"}"#, "a", Renames("b")),
            (Policy::Project, r#"{"a":"$b.c"}"#, "a", Changes),
            (Policy::Project, r#"{"a":0}"#, "a", Changes),
            (Policy::Project, r#"{"a.b":0}"#, "a", Changes),
            (Policy::Project, r#"{"a":0}"#, "b", Keeps),
            (Policy::AddFields, r#"{"a":{"$add":["$b",1]}}"#, "a", Changes),
            (Policy::AddFields, r#"{"a":"$b"}"#, "a", Renames("b")),
            (Policy::AddFields, r#"{"a.b":"$b"}"#, "a", Changes),
            (Policy::AddFields, r#"{"a.b":"$b"}"#, "b", Keeps),
        ] {
            let doc = extjson::parse_document(spec).expect("valid JSON");
            let parsed = Projection::parse(doc.as_ref(), &mut Scope::new(), policy).expect("a projection");
            assert_eq!(parsed.effect(field), expected, "{spec} {field}");
        }
    }
}
