//! `$facet`: several pipelines over the same documents.

use super::{ParseContext, Pipeline, Place, Stage};
use crate::field_names::check_field_name;
use nestor_model::{Error, Result, Str, ValueRef};
use std::sync::Arc;

/// A parsed `$facet`.
#[derive(Debug)]
pub struct Facet {
    /// Output field and pipeline, in order; at least one.
    pub pipelines: Vec<(Str, Pipeline)>,
}

/// `{name: pipeline, ...}`. Errors: 40169 no document or empty, 40170 no array, 40171 no stage document,
/// those of field names, and of the pipelines.
pub(super) fn parse(
    _: &'static str,
    value: ValueRef<'_>,
    context: &mut ParseContext<'_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    let doc = match value {
        ValueRef::Document(doc) if !doc.is_empty() => doc,
        _ => {
            return Err(Error::location(
                40169,
                "the $facet specification must be a non-empty object",
            ));
        }
    };
    let mut pipelines = Vec::new();
    for (name, value) in doc {
        if name.is_empty() {
            return Err(Error::location(15998, "the names of $facet's fields cannot be empty"));
        }
        check_field_name(name)?;
        let ValueRef::Array(stages) = value else {
            return Err(Error::location(
                40170,
                format!(
                    "arguments to $facet must be arrays, {name} is type {}",
                    value.bson_type().alias()
                ),
            ));
        };
        let namespace = context.namespace.clone();
        pipelines.push((Str::from(name), context.nested(stages, Place::Facet, namespace)?));
    }
    out.push(Stage::Facet(Arc::new(Facet { pipelines })));
    Ok(())
}
