//! Pipelines as text, for tests of rules.

use super::{RULES, rewrite};
use crate::plan::StageNode;
use nestor_model::extjson::{self, Form};
use nestor_model::{Namespace, Value, ValueRef};
use nestor_query::Scope;
use nestor_query::stage::{ParseContext, Pipeline, Place};

/// The stages of a pipeline in JSON.
pub(crate) fn parse(text: &str) -> Vec<StageNode> {
    let doc = extjson::parse_document(&format!(r#"{{"p":{text}}}"#)).unwrap_or_else(|e| panic!("{text}: {e}"));
    let stages = doc.get("p").and_then(ValueRef::as_array).expect("an array");
    let mut scope = Scope::new();
    let mut context = ParseContext::new(&mut scope, Namespace::new("test", "c"), Place::Top);
    context.keep_written = true;
    let pipeline = Pipeline::parse(stages, &mut context).unwrap_or_else(|e| panic!("{text}: {e}"));
    StageNode::all(&pipeline.stages, &pipeline.written)
}

/// The stages as explain prints them.
pub(crate) fn print(stages: &[StageNode]) -> String {
    let shown: Vec<Value> = stages.iter().map(|node| node.shown().into()).collect();
    extjson::to_string(&Value::from(shown), Form::Relaxed)
}

/// Asserts that the rule of this name makes `after` of `before`.
pub(crate) fn rewrites(rule: &str, before: &str, after: &str) {
    let at = RULES
        .iter()
        .position(|known| known.name == rule)
        .expect("a rule of this name");
    let mut stages = parse(before);
    rewrite(&mut stages, &RULES[at..=at]);
    assert_eq!(print(&stages), after, "{rule} of {before}");
}
