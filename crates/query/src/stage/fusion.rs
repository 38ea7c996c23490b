//! `$rankFusion` and `$scoreFusion`: the documents of several pipelines over one collection, by the ranks or the scores that they have in them.
//!
//! ```text
//! $rankFusion   {input: {pipelines: {name: [stages], ...}}, combination: {weights: {name: number}}, scoreDetails: bool}
//! $scoreFusion  {input: {pipelines, normalization}, combination: {weights, method} | {method: "expression", expression}, scoreDetails}
//! ```
//!
//! The pipelines select documents and put them in order, but leave each as it is. Source: manual, "$rankFusion (aggregation)", "$scoreFusion
//! (aggregation)".

use super::args::Options;
use super::{ParseContext, Pipeline, Place, Stage, TABLE, no_single_field, unknown_stage};
use crate::Expr;
use crate::env::check_user_variable;
use crate::field_names::check_field_name;
use crate::sort::SortSpec;
use nestor_model::number::Num;
use nestor_model::{ArrayRef, DocRef, Error, Namespace, Result, Str, Value, ValueRef, bail};
use std::collections::HashSet;
use std::sync::Arc;

/// A parsed `$rankFusion` or `$scoreFusion`.
#[derive(Debug)]
pub struct Fusion {
    /// What the pipelines read: the collection or view that the stage was parsed for.
    pub namespace: Namespace,
    /// At least one, of distinct names.
    pub inputs: Vec<FusionInput>,
    /// What becomes the score of a document.
    pub method: FusionMethod,
    /// `scoreDetails`: documents are to tell how their scores came about.
    pub has_details: bool,
}

/// What becomes the score of a document.
#[derive(Debug)]
pub enum FusionMethod {
    /// The sum over ranks: `$rankFusion`.
    Ranks,
    /// What a combination makes of scores: `$scoreFusion`.
    Scores {
        /// What scores are first of all, before they are weighed.
        normalization: Normalization,
        /// What they are together.
        combination: Combination,
    },
}

/// What becomes of the scores of a pipeline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Normalization {
    /// Nothing.
    None,
    /// `1 / (1 + e^-x)`.
    Sigmoid,
    /// From 0, the least score of the pipeline, to 1, the greatest one.
    MinMaxScaler,
}

/// What the scores of a document in all pipelines are together; a pipeline that does not give it has the score 0.
#[derive(Debug)]
pub enum Combination {
    /// Their average.
    Average,
    /// An expression that has them as variables.
    Expression {
        /// The variables from outside come first, then those of the pipelines.
        expr: Expr,
        /// How many variables there are from outside.
        outer_globals: usize,
        /// As it was written.
        written: Value,
    },
}

impl FusionMethod {
    /// The name of the stage.
    pub fn stage(&self) -> &'static str {
        match self {
            Self::Ranks => "$rankFusion",
            Self::Scores { .. } => "$scoreFusion",
        }
    }
}

impl Normalization {
    /// As options have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Sigmoid => "sigmoid",
            Self::MinMaxScaler => "minMaxScaler",
        }
    }
}

/// A pipeline whose documents are ranked.
#[derive(Debug)]
pub struct FusionInput {
    /// Its name, without dots.
    pub name: Str,
    /// Its stages; all of them select or order documents.
    pub pipeline: Pipeline,
    /// Not negative and no NaN; may be infinite.
    pub weight: f64,
    /// Which of its documents share a rank.
    pub ties: Ties,
}

/// Which documents of an ordered sequence share a rank.
#[derive(Clone, Debug)]
pub enum Ties {
    /// Those with equal keys of this order.
    Keys(Arc<SortSpec>),
    /// Those with equal scores, if they have any.
    Scores,
    /// None.
    None,
}

/// Most pipelines in one stage.
const INPUTS_MAX: usize = 1000;

/// Stages that give documents in an order of their own.
const RANKED: [&str; 3] = ["$search", "$vectorSearch", "$geoNear"];

/// Stages that select or order documents and leave them as they are.
const SELECTING: [&str; 8] = [
    "$match",
    "$search",
    "$vectorSearch",
    "$geoNear",
    "$sort",
    "$limit",
    "$skip",
    "$sample",
];

/// Whether a stage makes one sequence of documents of several.
pub(super) fn is_fusion(name: &str) -> bool {
    matches!(name, "$rankFusion" | "$scoreFusion")
}

/// The error 10170100 of such a stage that is not the first one.
pub(super) fn fusion_not_first(stage: &str) -> Error {
    Error::location(
        10_170_100,
        format!("{stage} is only valid as the first stage in a pipeline"),
    )
}

/// Errors: 9 for what is no document; 14, 40413, 40414, 40415 for options; 2 without pipelines; 15998, 16410, 16411, 16412, 9921000 for names;
/// 9834300, 10473002, 10170100, 9191100, 9191103 for what pipelines may not be; 9460301, 9967500, 9967401, 13118, 9460300 for weights;
/// and those of the stages.
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
    let is_ranked = stage == "$rankFusion";
    let options = Options::read(stage, doc, &["input", "combination", "scoreDetails"])?;
    let input = options.document("input")?.ok_or_else(|| options.missing("input"))?;
    let input = match is_ranked {
        true => Options::read("$rankFusion.input", input, &["pipelines"])?,
        false => Options::read("$scoreFusion.input", input, &["pipelines", "normalization"])?,
    };
    let pipelines = input.document("pipelines")?.ok_or_else(|| input.missing("pipelines"))?;
    let has_details = match options.given("scoreDetails") {
        None => false,
        Some(ValueRef::Bool(has_details)) => has_details,
        Some(other) => return Err(options.wrong_type("scoreDetails", other, "bool")),
    };
    let combination = match (options.document("combination")?, is_ranked) {
        (None, _) => None,
        (Some(doc), true) => Some(Options::read("$rankFusion.combination", doc, &["weights"])?),
        (Some(doc), false) => {
            let known = ["weights", "method", "expression"];
            Some(Options::read("$scoreFusion.combination", doc, &known)?)
        }
    };
    let weights = match &combination {
        None => None,
        Some(combination) => match (combination.document("weights")?, is_ranked) {
            (None, true) => return Err(combination.missing("weights")),
            (weights, _) => weights,
        },
    };
    let mut inputs = inputs(stage, &input, pipelines, context)?;
    if let Some(weights) = weights {
        weigh(stage, &mut inputs, weights)?;
    }
    let method = match is_ranked {
        true => FusionMethod::Ranks,
        false => scores(&input, combination.as_ref(), &inputs, context)?,
    };
    out.push(Stage::Fusion(Arc::new(Fusion {
        namespace: context.namespace.clone(),
        inputs,
        method,
        has_details,
    })));
    Ok(())
}

/// Errors: 40414, 14, 2 for options; 9 for an expression that is missing or is in the way, those of variables and of the expression.
fn scores(
    input: &Options<'_>,
    combination: Option<&Options<'_>>,
    inputs: &[FusionInput],
    context: &ParseContext<'_>,
) -> Result<FusionMethod> {
    let normalization = match input.string("normalization")? {
        None => return Err(input.missing("normalization")),
        Some("none") => Normalization::None,
        Some("sigmoid") => Normalization::Sigmoid,
        Some("minMaxScaler") => Normalization::MinMaxScaler,
        Some(other) => bail!(
            BadValue,
            "the normalization of $scoreFusion must be one of none, sigmoid, minMaxScaler: {other}"
        ),
    };
    let scored = |input: &FusionInput| match input.pipeline.stages.first() {
        Some(Stage::Search(_)) => true,
        Some(Stage::Match(filter)) => filter.text().is_some(),
        _ => false,
    };
    if let Some(input) = inputs.iter().find(|input| !scored(input)) {
        bail!(
            BadValue,
            "the pipeline {} of $scoreFusion has no scores: it must begin with $search, $vectorSearch or a $match with $text",
            input.name
        );
    }
    let expression = combination.and_then(|combination| combination.given("expression"));
    let method = match combination {
        Some(combination) => combination.string("method")?,
        None => None,
    };
    let combination = match (method, expression) {
        (None | Some("avg"), None) => Combination::Average,
        (None | Some("avg"), Some(_)) => {
            return Err(Error::failed_to_parse(
                "an expression of $scoreFusion needs the method expression",
            ));
        }
        (Some("expression"), None) => {
            return Err(Error::failed_to_parse(
                "the method expression of $scoreFusion needs an expression",
            ));
        }
        (Some("expression"), Some(_))
            if combination.is_some_and(|combination| combination.given("weights").is_some()) =>
        {
            return Err(Error::failed_to_parse(
                "$scoreFusion takes either weights or an expression",
            ));
        }
        (Some("expression"), Some(written)) => {
            let mut scope = context.scope.clone();
            let outer_globals = scope.names().len();
            for input in inputs {
                check_user_variable(&input.name)?;
                scope.add(&input.name);
            }
            Combination::Expression {
                expr: Expr::parse(written, &mut scope)?,
                outer_globals,
                written: written.to_value(),
            }
        }
        (Some(other), _) => bail!(
            BadValue,
            "the method of $scoreFusion must be one of avg, expression: {other}"
        ),
    };
    Ok(FusionMethod::Scores {
        normalization,
        combination,
    })
}

fn inputs(
    stage: &str,
    options: &Options<'_>,
    pipelines: DocRef<'_>,
    context: &mut ParseContext<'_>,
) -> Result<Vec<FusionInput>> {
    if pipelines.is_empty() {
        bail!(BadValue, "{stage} needs at least one pipeline");
    }
    let (mut inputs, mut names) = (Vec::new(), HashSet::new());
    for (name, value) in pipelines {
        if inputs.len() == INPUTS_MAX {
            bail!(7749501, "{stage} must have no more than {INPUTS_MAX} pipelines");
        }
        if name.is_empty() {
            bail!(15998, "the name of a pipeline of {stage} cannot be empty");
        }
        check_field_name(name)?;
        if !names.insert(name) {
            bail!(9921000, "{stage} has several pipelines of the name {name}");
        }
        let ValueRef::Array(stages) = value else {
            return Err(options.wrong_type(&format!("pipelines.{name}"), value, "array"));
        };
        check_stages(stage, name, stages)?;
        let pipeline = context.nested(stages, Place::Fusion, context.namespace.clone())?;
        inputs.push(FusionInput {
            name: name.into(),
            ties: ties(&pipeline),
            pipeline,
            weight: 1.0,
        });
    }
    Ok(inputs)
}

/// Checks what stages there are, before they are parsed.
fn check_stages(fusion: &str, name: &str, stages: ArrayRef<'_>) -> Result<()> {
    let mut names = Vec::new();
    for stage in stages {
        let ValueRef::Document(stage) = stage else {
            return Err(Error::type_mismatch(format!(
                "each element of the pipeline {name} of {fusion} must be an object"
            )));
        };
        let mut fields = stage.iter();
        let (Some((stage, operand)), None) = (fields.next(), fields.next()) else {
            return Err(no_single_field());
        };
        if !TABLE.iter().any(|def| def.name == stage) {
            return Err(unknown_stage(stage));
        }
        names.push((stage, operand));
    }
    let Some((first, others)) = names.split_first() else {
        bail!(9834300, "the pipeline {name} of {fusion} cannot be empty");
    };
    if is_fusion(first.0) {
        bail!(
            10473002,
            "{} cannot be part of the pipeline {name} of {fusion}",
            first.0
        );
    }
    if let Some((stage, _)) = others.iter().find(|(stage, _)| is_fusion(stage)) {
        return Err(fusion_not_first(stage));
    }
    let is_ordered = RANKED.contains(&first.0) || names.iter().any(|(stage, _)| *stage == "$sort");
    if fusion == "$rankFusion" && !is_ordered {
        bail!(
            9191100,
            "the pipeline {name} of {fusion} has no order: it must begin with one of {} or have a $sort",
            RANKED.join(", ")
        );
    }
    if let Some((stage, _)) = names.iter().find(|(stage, operand)| !selects(stage, *operand)) {
        bail!(
            9191103,
            "the pipeline {name} of {fusion} may only select and order documents, which {stage} does not"
        );
    }
    Ok(())
}

/// Whether a stage leaves documents as they are.
fn selects(stage: &str, operand: ValueRef<'_>) -> bool {
    let sets = |option| {
        operand
            .as_document()
            .is_some_and(|operand| operand.get(option).is_some())
    };
    SELECTING.contains(&stage) && !(stage == "$geoNear" && (sets("distanceField") || sets("includeLocs")))
}

/// By what the documents of a pipeline are in order in the end.
fn ties(pipeline: &Pipeline) -> Ties {
    let by = pipeline.stages.iter().rev().find_map(|stage| match stage {
        Stage::Sort(spec) => Some(Ties::Keys(spec.clone())),
        Stage::Sample(_) => Some(Ties::None),
        _ => None,
    });
    by.unwrap_or(Ties::Scores)
}

fn weigh(stage: &str, inputs: &mut [FusionInput], weights: DocRef<'_>) -> Result<()> {
    if weights.iter().count() > inputs.len() {
        bail!(9460301, "{stage} has more weights than pipelines");
    }
    let mut weighed: Vec<&str> = Vec::new();
    for (name, value) in weights {
        let Some(input) = inputs.iter_mut().find(|input| input.name == name) else {
            bail!(9967500, "{stage} has a weight for {name:?}, which is no pipeline of it");
        };
        if weighed.contains(&name) {
            bail!(9967401, "{stage} has several weights for the pipeline {name}");
        }
        weighed.push(name);
        let Some(number) = Num::from_ref(value) else {
            bail!(
                13118,
                "the weight of the pipeline {name} of {stage} must be a number, not {}",
                value.bson_type().alias()
            );
        };
        let weight = number.to_f64();
        if weight.is_nan() || weight < 0.0 {
            bail!(
                9460300,
                "the weight of the pipeline {name} of {stage} must not be negative"
            );
        }
        input.weight = weight;
    }
    Ok(())
}

impl Fusion {
    /// Whether its documents have this metadata; `None` for metadata that has nothing to do with ranks.
    pub fn gives(&self, metadata: &str) -> Option<bool> {
        match metadata {
            "score" => Some(true),
            "scoreDetails" => Some(self.has_details),
            _ => None,
        }
    }
}
