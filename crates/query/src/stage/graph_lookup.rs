//! `$graphLookup`: follows a relation through a collection.

use super::{ParseContext, Stage, collection_named};
use crate::Expr;
use crate::field_names::validate_path;
use crate::matcher::{self, MatchExpr};
use nestor_model::number::Num;
use nestor_model::{Error, Namespace, Path, Result, ValueRef};
use std::sync::Arc;

/// A parsed `$graphLookup`.
#[derive(Debug)]
pub struct GraphLookup {
    /// The collection searched.
    pub from: Namespace,
    /// Where the array of found documents goes.
    pub as_path: Path,
    /// Gives the values the search starts with.
    pub start_with: Expr,
    /// Field of a found document whose values are searched next.
    pub connect_from: Path,
    /// Field that is compared with the values.
    pub connect_to: Path,
    /// How many steps beyond the first at most.
    pub max_depth: Option<u64>,
    /// Field of the found documents that tells the step they were found in.
    pub depth_field: Option<Path>,
    /// Which documents may be found at all.
    pub restrict: Option<MatchExpr>,
}

/// Errors: 40100 to 40105, 40185, 40327, 40328, and 9.
pub(super) fn parse(
    _: &'static str,
    value: ValueRef<'_>,
    context: &mut ParseContext<'_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    let ValueRef::Document(doc) = value else {
        return Err(Error::location(
            40327,
            format!(
                "the $graphLookup stage specification must be an object, but found {}",
                value.bson_type().alias()
            ),
        ));
    };
    let (mut from, mut as_path, mut start_with, mut connect_from, mut connect_to) = (None, None, None, None, None);
    let (mut max_depth, mut depth_field, mut restrict) = (None, None, None);
    for (name, value) in doc {
        match name {
            "startWith" => start_with = Some(Expr::parse(value, context.scope)?),
            "maxDepth" => {
                let number = Num::from_ref(value)
                    .ok_or_else(|| Error::location(40100, "maxDepth requires a numeric argument"))?;
                let whole = number
                    .to_i64_exact()
                    .ok_or_else(|| Error::location(40102, "maxDepth could not be represented as a long long"))?;
                max_depth = Some(
                    u64::try_from(whole)
                        .map_err(|_| Error::location(40101, "maxDepth requires a nonnegative argument"))?,
                );
            }
            "restrictSearchWithMatch" => {
                let ValueRef::Document(filter) = value else {
                    return Err(Error::location(40185, "restrictSearchWithMatch must be an object"));
                };
                restrict =
                    Some(MatchExpr::parse_in(filter, context.scope, matcher::Context::Pipeline)?.without_text()?);
            }
            "from" | "as" | "connectFromField" | "connectToField" | "depthField" => {
                let ValueRef::String(text) = value else {
                    return Err(Error::location(
                        40103,
                        format!(
                            "expected string as argument for {name}, found: {}",
                            value.bson_type().alias()
                        ),
                    ));
                };
                if name != "from" {
                    validate_path(text)?;
                }
                match name {
                    "from" => from = Some(collection_named("$graphLookup", "from", text, context)?),
                    "as" => as_path = Some(Path::new(text)),
                    "connectFromField" => connect_from = Some(Path::new(text)),
                    "connectToField" => connect_to = Some(Path::new(text)),
                    _ => depth_field = Some(Path::new(text)),
                }
            }
            _ => {
                return Err(Error::location(
                    40104,
                    format!("unknown argument to $graphLookup: {name}"),
                ));
            }
        }
    }
    let missing = |name: &str| Error::location(40105, format!("$graphLookup requires '{name}' to be specified"));
    out.push(Stage::GraphLookup(Arc::new(GraphLookup {
        from: from
            .ok_or_else(|| Error::failed_to_parse("missing 'from' option to $graphLookup stage specification"))?,
        as_path: as_path.ok_or_else(|| missing("as"))?,
        start_with: start_with.ok_or_else(|| missing("startWith"))?,
        connect_from: connect_from.ok_or_else(|| missing("connectFromField"))?,
        connect_to: connect_to.ok_or_else(|| missing("connectToField"))?,
        max_depth,
        depth_field,
        restrict,
    })));
    Ok(())
}
