//! `$redact`: keeps, prunes or descends into each level of a document.

use super::{ParseContext, Stage};
use crate::Expr;
use crate::env::{Env, OpContext, Val};
use nestor_model::statement::work;
use nestor_model::{ArrayRef, DocRef, Document, Error, Result, Value, ValueRef};
use std::sync::Arc;

/// A parsed `$redact`: an expression over each embedded document, bound to `$$CURRENT`.
#[derive(Debug)]
pub struct Redact {
    expr: Expr,
    /// Slot of `$$CURRENT`.
    current: usize,
}

pub(super) fn parse(
    _: &'static str,
    value: ValueRef<'_>,
    context: &mut ParseContext<'_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    let mut scope = context.scope.clone().with_redact_variables();
    let current = scope.bind("CURRENT");
    out.push(Stage::Redact(Arc::new(Redact {
        expr: Expr::parse(value, &mut scope)?,
        current,
    })));
    Ok(())
}

/// The document that remains, if any. Error: 17053 when the expression gives none of the three decisions.
pub fn redact(stage: &Redact, doc: DocRef<'_>, op: &OpContext) -> Result<Option<Document>> {
    redact_level(stage, doc, doc, op)
}

fn redact_level(stage: &Redact, root: DocRef<'_>, doc: DocRef<'_>, op: &OpContext) -> Result<Option<Document>> {
    match decide(stage, root, doc, op)? {
        Decision::Keep => Ok(Some(doc.to_document())),
        Decision::Prune => Ok(None),
        Decision::Descend => {
            let mut out = Document::new();
            for (name, value) in doc {
                out.push(name, descend(stage, root, value, op)?);
            }
            Ok(Some(out))
        }
    }
}

enum Decision {
    Keep,
    Prune,
    Descend,
}

fn decide(stage: &Redact, root: DocRef<'_>, doc: DocRef<'_>, op: &OpContext) -> Result<Decision> {
    let mut env = Env::new(root, op);
    env.set(stage.current, Val::Ref(ValueRef::Document(doc)));
    let value = stage.expr.eval_ref(&mut env)?;
    match value.as_ref().as_str() {
        Some("keep") => Ok(Decision::Keep),
        Some("prune") => Ok(Decision::Prune),
        Some("descend") => Ok(Decision::Descend),
        _ => Err(Error::location(
            17053,
            "$redact's expression should not return anything aside from the variables $$KEEP, $$DESCEND, and $$PRUNE",
        )),
    }
}

/// The rest of a value below a document that descends; missing when it was pruned.
fn descend(stage: &Redact, root: DocRef<'_>, value: ValueRef<'_>, op: &OpContext) -> Result<Value> {
    Ok(match value {
        ValueRef::Document(doc) => redact_level(stage, root, doc, op)?.into(),
        ValueRef::Array(items) => Value::Array(descend_array(stage, root, items, op)?.into_iter().collect()),
        other => other.to_value(),
    })
}

fn descend_array(stage: &Redact, root: DocRef<'_>, items: ArrayRef<'_>, op: &OpContext) -> Result<Vec<Value>> {
    let mut out = Vec::new();
    for item in items {
        work(1)?;
        let kept = descend(stage, root, item, op)?;
        if !kept.is_missing() {
            out.push(kept);
        }
    }
    Ok(out)
}
