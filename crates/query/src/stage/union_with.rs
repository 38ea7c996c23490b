//! `$unionWith`: the documents of another pipeline after those of this one.

use super::args::Options;
use super::{ParseContext, Pipeline, Place, Stage, collection_named};
use nestor_model::{Error, Namespace, Result, ValueRef};
use std::sync::Arc;

/// A parsed `$unionWith`.
#[derive(Debug)]
pub struct UnionWith {
    /// The other collection; `None` when the pipeline starts with `$documents`.
    pub coll: Option<Namespace>,
    /// Runs on it; may be empty.
    pub pipeline: Pipeline,
}

/// `"collection"` or `{coll, pipeline}`. Errors: 9, 14, 40415.
pub(super) fn parse(
    stage: &'static str,
    value: ValueRef<'_>,
    context: &mut ParseContext<'_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    let db = context.namespace.db.clone();
    let (coll, pipeline) = match value {
        ValueRef::String(coll) => (Some(coll), None),
        ValueRef::Document(doc) => {
            let options = Options::read(stage, doc, &["coll", "pipeline"])?;
            (options.string("coll")?, options.array("pipeline")?)
        }
        _ => {
            return Err(Error::failed_to_parse(format!(
                "the $unionWith stage specification must be an object or string, but found {}",
                value.bson_type().alias()
            )));
        }
    };
    let coll = match coll {
        Some(coll) => Some(collection_named(stage, "coll", coll, context)?),
        None => None,
    };
    if coll.is_none() {
        let first = pipeline.and_then(|p| p.get(0)).and_then(ValueRef::as_document);
        if first.and_then(|stage| stage.get("$documents")).is_none() {
            return Err(Error::failed_to_parse(
                "$unionWith stage without explicit collection must have a pipeline with $documents as first stage",
            ));
        }
    }
    let namespace = coll.clone().unwrap_or_else(|| Namespace::new(db, ""));
    let pipeline = match pipeline {
        Some(pipeline) => context.nested(pipeline, Place::UnionWith, namespace)?,
        None => Pipeline::default(),
    };
    out.push(Stage::UnionWith(Arc::new(UnionWith { coll, pipeline })));
    Ok(())
}
