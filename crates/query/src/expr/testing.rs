//! Test helpers: expressions and documents as Extended JSON.

use crate::env::{Env, OpContext, Scope};
use crate::expr::Expr;
use nestor_model::{Result, Value, extjson};

/// Parses relaxed Extended JSON.
pub(crate) fn json(text: &str) -> Value {
    extjson::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Evaluates `expr` on `doc`.
pub(crate) fn eval_on(doc: &str, expr: &str) -> Result<Value> {
    let (doc, expr) = (json(doc), json(expr));
    let doc = doc.as_document().expect("a document").to_raw();
    let op = OpContext::new(1_700_000_000_000, nestor_model::Timestamp { secs: 1, inc: 2 }, 7);
    let expr = Expr::parse(expr.as_ref(), &mut Scope::new())?;
    expr.eval(&mut Env::new(doc.as_raw().into(), &op))
}

/// The result as text, or `error N`.
pub(crate) fn shown(doc: &str, expr: &str) -> String {
    match eval_on(doc, expr) {
        // Quotes inside Decimal("1") would only have to be escaped in the tables.
        Ok(value) => format!("{value:?}").replace("(\"", "(").replace("\")", ")"),
        Err(e) => format!("error {}", e.code().number()),
    }
}

/// Checks a table of expression and result (as [`shown`]) on one document.
#[track_caller]
pub(crate) fn check(doc: &str, cases: &[(&str, &str)]) {
    for (expr, expected) in cases {
        assert_eq!(&shown(doc, expr), expected, "{expr} on {doc}");
    }
}
