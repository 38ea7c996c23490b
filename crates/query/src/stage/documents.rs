//! `$documents`: documents given in the pipeline itself.

use super::{ParseContext, Stage};
use crate::Expr;
use nestor_model::{Result, ValueRef};
use std::sync::Arc;

/// An expression that must give an array of documents; checked when it is evaluated.
pub(super) fn parse(
    _: &'static str,
    value: ValueRef<'_>,
    context: &mut ParseContext<'_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    out.push(Stage::Documents(Arc::new(Expr::parse(value, context.scope)?)));
    Ok(())
}
