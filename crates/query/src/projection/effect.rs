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

    /// The fields, in order, of what it makes of documents that have these top-level fields and no others, each with what computes it unless it is kept.
    /// `None` when it does more than to keep, leave out and compute whole fields.
    pub fn makes<'p>(&'p self, fields: &[&'p str]) -> Option<Vec<(&'p str, Option<&'p Expr>)>> {
        if !self.slices.is_empty() || self.positional.is_some() {
            return None;
        }
        let mut made = Vec::new();
        for name in fields {
            match (self.root.child(name), self.mode) {
                (None, Mode::Exclusion) | (Some(Child::Kept), _) | (Some(Child::Listed), Mode::Inclusion) => {
                    made.push((*name, None));
                }
                (Some(Child::Computed(Compute::Expr(expr))), Mode::Exclusion) => made.push((*name, Some(expr))),
                _ => {}
            }
        }
        for (name, child) in &self.root.children {
            match child {
                Child::Nested(_) | Child::Computed(Compute::ElemMatch { .. }) => return None,
                Child::Computed(Compute::Expr(expr)) if !made.iter().any(|(own, _)| *own == name) => {
                    made.push((name, Some(expr)));
                }
                _ => {}
            }
        }
        Some(made)
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

    #[test]
    fn fields_are_made_in_the_order_of_documents() {
        let fields = ["_id", "a", "b"];
        for (policy, spec, expected) in [
            (Policy::Project, r#"{"b":1,"a":1}"#, Some(vec!["_id", "a", "b"])),
            (
                Policy::Project,
                r#"{"c":{"$add":["$b",1]},"a":1}"#,
                Some(vec!["_id", "a", "c*"]),
            ),
            (
                Policy::Project,
                r#"{"a":{"$add":["$b",1]},"b":1}"#,
                Some(vec!["_id", "b", "a*"]),
            ),
            (Policy::Project, r#"{"_id":0,"c":"$a"}"#, Some(vec!["c*"])),
            (Policy::Project, r#"{"b":0}"#, Some(vec!["_id", "a"])),
            (
                Policy::AddFields,
                r#"{"c":"$a","a":"$b"}"#,
                Some(vec!["_id", "a*", "b", "c*"]),
            ),
            (Policy::AddFields, r#"{"a.c":"$b"}"#, None),
            (Policy::Project, r#"{"a.c":1}"#, None),
        ] {
            let doc = extjson::parse_document(spec).expect("valid JSON");
            let parsed = Projection::parse(doc.as_ref(), &mut Scope::new(), policy).expect("a projection");
            let shown = |(name, expr): (&str, Option<&Expr>)| match expr {
                Some(_) => format!("{name}*"),
                None => name.to_owned(),
            };
            let made = parsed.makes(&fields);
            let made = made.map(|made| made.into_iter().map(shown).collect::<Vec<_>>());
            assert_eq!(
                made,
                expected.map(|names| names.into_iter().map(String::from).collect()),
                "{spec}"
            );
            // The documents say the same.
            let document = extjson::parse_document(r#"{"_id":1,"a":2,"b":3}"#).expect("valid JSON");
            if let Some(made) = parsed.makes(&fields) {
                let op = crate::env::OpContext::default();
                let out = parsed
                    .apply(&mut crate::env::Env::new(document.as_ref(), &op), None)
                    .expect("it is made");
                let names: Vec<&str> = out.iter().map(|(name, _)| name).collect();
                assert_eq!(names, made.iter().map(|(name, _)| *name).collect::<Vec<_>>(), "{spec}");
            }
        }
    }
}
