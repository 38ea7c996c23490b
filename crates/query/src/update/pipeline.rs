//! Updates by pipeline: `[{$set: {...}}, {$unset: ...}, ...]`.
//!
//! The document runs through the stages as a whole; the oplog's diff is computed from the result.

use super::path::UpdatePath;
use super::{Touched, replace};
use crate::env::{Env, OpContext, Scope, check_user_variable};
use crate::expr::{Expr, check_document_depth};
use crate::projection::{Policy, Projection};
use nestor_model::{ArrayRef, DocRef, Document, RawDoc, RawDocBuf, Result, Str, Value, ValueRef, bail};

/// Stages after which it is looked how deep the document has become. Each makes it a few hundred levels deeper at most.
const CHECK_EVERY: usize = 8;

/// A compiled pipeline.
#[derive(Debug)]
pub(crate) struct Pipeline {
    stages: Vec<Stage>,
    /// Values of `c`, whose slots follow those of the operation's variables.
    constants: Vec<Value>,
    touched: Touched,
}

#[derive(Debug)]
enum Stage {
    /// `$set`, `$addFields`, `$unset`, `$project`.
    Project(Projection),
    /// `$replaceRoot`, `$replaceWith`, with the words its error uses for the expression.
    Replace(Expr, &'static str),
}

/// Checks that each stage has the form of one and a name that there is, whether updates may have it or not.
///
/// Errors: 14, 40323 and 40324 as of [`Pipeline::parse`].
pub fn check_form(stages: ArrayRef<'_>) -> Result<()> {
    for stage in stages {
        let (name, _) = named(stage)?;
        let of_updates = matches!(
            name,
            "$set" | "$addFields" | "$unset" | "$project" | "$replaceRoot" | "$replaceWith"
        );
        if !of_updates && !is_stage(name) {
            bail!(40324, "Unrecognized pipeline stage name: '{name}'");
        }
    }
    Ok(())
}

/// Name and specification of a stage.
fn named(stage: ValueRef<'_>) -> Result<(&str, ValueRef<'_>)> {
    let ValueRef::Document(stage) = stage else {
        bail!(TypeMismatch, "Each element of the 'pipeline' array must be an object");
    };
    let mut fields = stage.iter();
    match (fields.next(), fields.next()) {
        (Some(field), None) => Ok(field),
        _ => bail!(
            40323,
            "A pipeline stage specification object must contain exactly one field."
        ),
    }
}

impl Pipeline {
    /// `constants` is the statement's `c`.
    ///
    /// Errors: 14 (TypeMismatch) for stages that are no documents; 40323 unless a stage has one field;
    /// 40324 for unknown stages; 72 (InvalidOptions) for stages that updates may not have; those of the
    /// stages.
    pub fn parse(stages: ArrayRef<'_>, constants: Option<DocRef<'_>>, scope: &Scope) -> Result<Self> {
        let mut scope = scope.clone();
        // MongoDB does not optimize the pipelines of updates: what no document is there for never fails.
        scope.let_failures_be_late();
        let mut values = Vec::new();
        for (name, value) in constants.into_iter().flatten() {
            check_user_variable(name)?;
            scope.add(name);
            values.push(value.to_value());
        }
        let mut touched = Some(Vec::new());
        let mut compiled = Vec::new();
        for stage in stages {
            let (name, spec) = named(stage)?;
            compiled.push(Stage::parse(name, spec, &mut scope)?);
            touch(name, spec, &mut touched);
        }
        Ok(Self {
            stages: compiled,
            constants: values,
            touched: touched.map_or(Touched::All, Touched::Paths),
        })
    }

    /// The paths that may change.
    pub fn touched(&self) -> &Touched {
        &self.touched
    }

    /// The new document, with the `_id` of the old one.
    ///
    /// Errors: those of expressions; 40228 for a root that is no document; those of
    /// [`super::Update::apply`].
    pub fn apply(&self, old: RawDoc<'_>, op: &OpContext) -> Result<RawDocBuf> {
        let with_constants;
        let op = if self.constants.is_empty() {
            op
        } else {
            let vars = op.vars.iter().chain(&self.constants).cloned().collect();
            with_constants = op.with_vars(vars);
            &with_constants
        };
        let mut doc: Option<Document> = None;
        for (i, stage) in self.stages.iter().enumerate() {
            let input = doc.as_ref().map_or(DocRef::Raw(old), Document::as_ref);
            let made = stage.apply(input, op)?;
            if i % CHECK_EVERY == CHECK_EVERY - 1 {
                check_document_depth(&made)?;
            }
            doc = Some(made);
        }
        match doc {
            Some(doc) => replace::replace(old, doc.to_raw().as_raw(), None, true),
            None => Ok(old.to_buf()),
        }
    }
}

impl Stage {
    fn parse(name: &str, spec: ValueRef<'_>, scope: &mut Scope) -> Result<Self> {
        Ok(match name {
            "$set" | "$addFields" => match spec {
                ValueRef::Document(spec) => Self::Project(Projection::parse(spec, scope, Policy::AddFields)?),
                other => bail!(
                    40272,
                    "{name} specification stage must be an object, got {}",
                    other.bson_type().alias()
                ),
            },
            "$project" => match spec {
                ValueRef::Document(spec) => Self::Project(Projection::parse(spec, scope, Policy::Project)?),
                _ => bail!(15969, "$project specification must be an object"),
            },
            "$unset" => Self::Project(Projection::parse_unset(spec)?),
            "$replaceRoot" => Self::Replace(new_root(spec, scope)?, "'newRoot' expression"),
            "$replaceWith" => Self::Replace(Expr::parse(spec, scope)?, "'replacement document'"),
            name if is_stage(name) => bail!(InvalidOptions, "{name} is not allowed to be used within an update"),
            _ => bail!(40324, "Unrecognized pipeline stage name: '{name}'"),
        })
    }

    fn apply(&self, doc: DocRef<'_>, op: &OpContext) -> Result<Document> {
        let mut env = Env::new(doc, op);
        match self {
            Self::Project(projection) => projection.apply(&mut env, None),
            Self::Replace(expr, what) => match expr.eval(&mut env)? {
                Value::Document(doc) => Ok(doc),
                other => bail!(
                    40228,
                    "{what} must evaluate to an object, but resulting value was: {other:?}. Type of resulting value: '{}'. Input document: {doc:?}",
                    other.bson_type().alias()
                ),
            },
        }
    }
}

fn new_root(spec: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let ValueRef::Document(spec) = spec else {
        bail!(
            40229,
            "expected an object as specification for $replaceRoot stage, got {}",
            spec.bson_type().alias()
        );
    };
    let mut expr = None;
    for (name, value) in spec {
        if name != "newRoot" {
            bail!(
                40230,
                "unrecognized option to $replaceRoot stage: {name}, only valid option is 'newRoot'."
            );
        }
        expr = Some(Expr::parse(value, scope)?);
    }
    match expr {
        Some(expr) => Ok(expr),
        None => bail!(40231, "no newRoot specified for the $replaceRoot stage"),
    }
}

/// Adds what a stage may change; `None` stands for everything.
fn touch(stage: &str, spec: ValueRef<'_>, touched: &mut Option<Vec<Str>>) {
    let Some(paths) = touched else { return };
    let mut add = |path: &str| {
        if let Ok(path) = UpdatePath::parse(path) {
            paths.push(path.canonical());
        }
    };
    match (stage, spec) {
        ("$set" | "$addFields", ValueRef::Document(spec)) => spec.iter().for_each(|(name, _)| add(name)),
        ("$unset", ValueRef::String(path)) => add(path),
        ("$unset", ValueRef::Array(list)) => list.iter().filter_map(ValueRef::as_str).for_each(add),
        _ => *touched = None,
    }
}

/// Stages that exist elsewhere.
fn is_stage(name: &str) -> bool {
    const STAGES: &[&str] = &[
        "$match",
        "$sort",
        "$limit",
        "$skip",
        "$count",
        "$sample",
        "$unwind",
        "$redact",
        "$sortByCount",
        "$group",
        "$bucket",
        "$bucketAuto",
        "$facet",
        "$setWindowFields",
        "$densify",
        "$fill",
        "$lookup",
        "$graphLookup",
        "$unionWith",
        "$documents",
        "$geoNear",
        "$out",
        "$merge",
        "$search",
        "$searchMeta",
        "$vectorSearch",
        "$changeStream",
        "$changeStreamSplitLargeEvent",
        "$collStats",
        "$indexStats",
        "$planCacheStats",
        "$currentOp",
        "$listSessions",
        "$listLocalSessions",
        "$listSearchIndexes",
        "$listSampledQueries",
        "$shardedDataDistribution",
        "$querySettings",
        "$queryStats",
    ];
    STAGES.contains(&name)
}
