//! `$replaceRoot` and `$replaceWith`: an expression's document takes the place of the whole.

use super::args::Options;
use super::{ParseContext, Stage};
use crate::Expr;
use nestor_model::{Error, Result, ValueRef};
use std::sync::Arc;

/// `{newRoot: expression}`. Errors: 40229 no document, 40414, 40415.
pub(super) fn parse_root(
    stage: &'static str,
    value: ValueRef<'_>,
    context: &mut ParseContext<'_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    let ValueRef::Document(doc) = value else {
        return Err(Error::location(
            40229,
            format!(
                "expected an object as specification for $replaceRoot stage, got {}",
                value.bson_type().alias()
            ),
        ));
    };
    let options = Options::read(stage, doc, &["newRoot"])?;
    let new_root = options.get("newRoot").ok_or_else(|| options.missing("newRoot"))?;
    out.push(Stage::ReplaceRoot(Arc::new(Expr::parse(new_root, context.scope)?)));
    Ok(())
}

/// The expression itself.
pub(super) fn parse_with(
    _: &'static str,
    value: ValueRef<'_>,
    context: &mut ParseContext<'_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    out.push(Stage::ReplaceRoot(Arc::new(Expr::parse(value, context.scope)?)));
    Ok(())
}
