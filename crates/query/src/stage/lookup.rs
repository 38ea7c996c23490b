//! `$lookup`: joins each document with those of another collection.

use super::args::Options;
use super::{ParseContext, Pipeline, Place, Stage, collection_named};
use crate::Expr;
use crate::env::check_user_variable;
use crate::field_names::validate_path;
use nestor_model::{Error, ErrorCode, Namespace, Path, Result, Str, Value, ValueRef};
use std::sync::Arc;

/// A parsed `$lookup`.
#[derive(Debug)]
pub struct Lookup {
    /// The other collection; `None` when the pipeline starts with `$documents`.
    pub from: Option<Namespace>,
    /// Where the array of matches goes.
    pub as_path: Path,
    /// Equality of two fields, if given.
    pub join: Option<LookupJoin>,
    /// Variables for the pipeline: name and expression over the outer document. Their values are the last
    /// globals of the pipeline's scope, in this order.
    pub variables: Vec<(Str, Expr)>,
    /// How many globals the pipeline's scope has before [`Lookup::variables`].
    pub outer_globals: usize,
    /// Runs on the other collection after the join; empty when none was given.
    pub pipeline: Pipeline,
    /// The pipeline as written.
    pub pipeline_text: Value,
    /// False for the form without a pipeline.
    pub has_pipeline: bool,
}

/// `localField` and `foreignField`.
#[derive(Debug)]
pub struct LookupJoin {
    /// The path in the outer document.
    pub local: Path,
    /// The path in the other collection.
    pub foreign: Path,
}

/// Errors: 9 for a spec that is no document or misses a field, 14 wrong types, 40413, 40415, and those of
/// paths, variables and the pipeline.
pub(super) fn parse(
    stage: &'static str,
    value: ValueRef<'_>,
    context: &mut ParseContext<'_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    let ValueRef::Document(doc) = value else {
        return Err(Error::failed_to_parse(format!(
            "the {stage} stage specification must be an object, but found {}",
            value.bson_type().alias()
        )));
    };
    if doc.get("from").is_none() && doc.get("pipeline").is_none() {
        return Err(Error::failed_to_parse("must specify 'pipeline' when 'from' is empty"));
    }
    let options = Options::read(
        stage,
        doc,
        &["from", "as", "localField", "foreignField", "let", "pipeline"],
    )?;
    let as_path = options
        .string("as")?
        .ok_or_else(|| Error::failed_to_parse("must specify 'as' field for a $lookup"))?;
    validate_path(as_path)?;
    let pipeline = match options.get("pipeline") {
        None => None,
        Some(ValueRef::Array(pipeline)) => Some(pipeline),
        Some(other) => return Err(options.wrong_type("pipeline", other, "array")),
    };
    let from = parse_from(&options, pipeline.is_some(), context)?;
    if let (None, Some(pipeline)) = (&from, pipeline) {
        let first = pipeline.get(0).and_then(ValueRef::as_document);
        if first.and_then(|stage| stage.get("$documents")).is_none() {
            return Err(Error::failed_to_parse(
                "$lookup without 'from' must have a pipeline with $documents as first stage",
            ));
        }
    }
    let join = parse_join(&options, pipeline.is_some())?;
    let bindings = options.document("let")?;
    if bindings.is_some() && pipeline.is_none() {
        return Err(Error::failed_to_parse(
            "$lookup with a 'let' argument must also specify 'pipeline'",
        ));
    }
    let mut variables = Vec::new();
    for (name, value) in bindings.into_iter().flatten() {
        check_user_variable(name)?;
        variables.push((Str::from(name), Expr::parse(value, context.scope)?));
    }
    let outer_globals = context.scope.names().len();
    let mut scope = context.scope.clone();
    variables.iter().for_each(|(name, _)| {
        scope.add(name);
    });
    let namespace = from
        .clone()
        .unwrap_or_else(|| Namespace::new(context.namespace.db.clone(), ""));
    let mut inner = ParseContext {
        scope: &mut scope,
        namespace: namespace.clone(),
        place: context.place,
        keep_written: context.keep_written,
        in_facet: context.in_facet,
        depth: context.depth,
    };
    let parsed = match pipeline {
        Some(pipeline) => inner.nested(pipeline, Place::Lookup, namespace)?,
        None => Pipeline::default(),
    };
    if let (Some(_), Some(Stage::Search(_) | Stage::Fusion(_))) = (&join, parsed.stages.first()) {
        return Err(Error::new(
            ErrorCode::CommandNotSupported,
            "$lookup with 'localField' and a pipeline that begins with a search is not supported: put the condition behind the search",
        ));
    }
    out.push(Stage::Lookup(Arc::new(Lookup {
        from,
        as_path: Path::new(as_path),
        join,
        variables,
        outer_globals,
        pipeline: parsed,
        pipeline_text: pipeline.map_or(Value::Missing, |p| Value::Array(p.to_array())),
        has_pipeline: pipeline.is_some(),
    })));
    Ok(())
}

fn parse_from(options: &Options<'_>, has_pipeline: bool, context: &ParseContext<'_>) -> Result<Option<Namespace>> {
    match options.given("from") {
        Some(ValueRef::String(coll)) => collection_named("$lookup", "from", coll, context).map(Some),
        Some(ValueRef::Document(from)) => {
            // Read for its own errors first: only a few internal databases may be named so, on sharded clusters.
            let from = Options::read("from", from, &["db", "coll"])?;
            from.string("db")?;
            from.string("coll")?;
            Err(Error::failed_to_parse(
                "$lookup with a document for 'from' is not supported: it must be a string",
            ))
        }
        Some(other) => Err(Error::failed_to_parse(format!(
            "$lookup argument 'from' must be a string, is type {}",
            other.bson_type().alias()
        ))),
        None if has_pipeline => Ok(None),
        None => Err(Error::failed_to_parse("must specify 'pipeline' when 'from' is empty")),
    }
}

fn parse_join(options: &Options<'_>, has_pipeline: bool) -> Result<Option<LookupJoin>> {
    // An empty path is as good as none.
    let path = |option| -> Result<Option<&str>> { Ok(options.string(option)?.filter(|path| !path.is_empty())) };
    match (path("localField")?, path("foreignField")?) {
        (Some(local), Some(foreign)) => {
            validate_path(local)?;
            validate_path(foreign)?;
            Ok(Some(LookupJoin {
                local: Path::new(local),
                foreign: Path::new(foreign),
            }))
        }
        (None, None) if has_pipeline => Ok(None),
        (None, None) => Err(Error::failed_to_parse(
            "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified",
        )),
        _ => Err(Error::failed_to_parse(
            "$lookup requires both or neither of 'localField' and 'foreignField' to be specified",
        )),
    }
}
