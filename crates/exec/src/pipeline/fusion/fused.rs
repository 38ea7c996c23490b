//! The documents of a `$rankFusion` or `$scoreFusion`, and their scores. Documents are the same by their `_id`.
//!
//! For ranks: a document of rank `r` in a pipeline of weight `w` gets `w / (60 + r)` for it (reciprocal rank fusion), and its score is the sum. For
//! scores: what it has in a pipeline is normalized and weighed, 0 where the pipeline does not give it; its score is what the combination
//! makes of that.

use crate::batch::Batch;
use crate::kept::Kept;
use crate::row::{Row, RowDoc};
use nestor_model::extjson::{self, Form};
use nestor_model::number::Num;
use nestor_model::order::Key;
use nestor_model::statement::work;
use nestor_model::{Document, Error, ErrorCode, Result, Value, ValueRef, bail, compare, doc};
use nestor_query::env::{DocMeta, Env, OpContext};
use nestor_query::stage::{Combination, Fusion, FusionInput, FusionMethod, Normalization};
use nestor_storage::Bytes;
use std::collections::HashMap;

/// What is added to ranks, so that the first ones do not decide alone.
const RANK_CONSTANT: f64 = 60.0;

/// The documents so far.
pub(super) struct Fused {
    entries: Vec<Entry>,
    /// Where the entry of an `_id` is.
    places: HashMap<Key, usize>,
    /// Whether what documents got for each pipeline is still needed in the end.
    keeps_shares: bool,
    kept: Kept,
}

/// A document with its score.
pub(super) struct Entry {
    doc: RowDoc,
    record: Option<Bytes>,
    score: f64,
    /// The last pipeline that gave it.
    last: Option<usize>,
    /// What it got for each pipeline that gave it, if that is needed.
    shares: Vec<Share>,
}

/// What a document got for a pipeline.
struct Share {
    input: usize,
    rank: u64,
    /// Its score in the pipeline.
    score: Option<f64>,
    /// The same, normalized and weighed.
    value: f64,
    /// How the score came about.
    details: Option<Value>,
}

impl Fused {
    pub(super) fn of(fusion: &Fusion) -> Self {
        Self {
            entries: Vec::new(),
            places: HashMap::new(),
            keeps_shares: fusion.has_details || matches!(fusion.method, FusionMethod::Scores { .. }),
            kept: Kept::default(),
        }
    }

    /// Bytes that the documents take.
    pub(super) fn bytes(&self) -> usize {
        self.kept.bytes()
    }

    /// The statement is over and goes on later.
    pub(super) fn rest(&mut self) {
        self.kept.rest();
    }

    /// So many bytes more are held.
    ///
    /// Errors: 146.
    pub(super) fn keep(&mut self, bytes: usize, fusion: &Fusion, batch: &Batch<'_>) -> Result<()> {
        self.kept.grow(bytes)?;
        if self.kept.bytes() > batch.memory_bytes_max {
            return Err(Error::new(
                ErrorCode::ExceededMemoryLimit,
                format!(
                    "{} exceeded its memory limit of {} bytes",
                    fusion.method.stage(),
                    batch.memory_bytes_max
                ),
            ));
        }
        Ok(())
    }

    /// Adds what a pipeline gives.
    ///
    /// Errors: 146.
    pub(super) fn add(&mut self, fusion: &Fusion, input: usize, rank: u64, row: Row, batch: &Batch<'_>) -> Result<()> {
        let meta = row.meta.as_deref();
        let share = self.keeps_shares.then(|| Share {
            input,
            rank,
            score: meta.and_then(DocMeta::score),
            value: 0.0,
            details: meta
                .filter(|_| fusion.has_details)
                .and_then(|meta| meta.score_details().cloned()),
        });
        let place = self.place_of(row, fusion, batch)?;
        // A view may give a document several times; its first place counts.
        if self.entries[place].last == Some(input) {
            return Ok(());
        }
        if let Some(share) = &share {
            let bytes = size_of::<Share>() + share.details.as_ref().map_or(0, Value::weight);
            self.keep(bytes, fusion, batch)?;
        }
        let entry = &mut self.entries[place];
        entry.last = Some(input);
        if let FusionMethod::Ranks = fusion.method {
            entry.score += fusion.inputs[input].weight * (1.0 / (RANK_CONSTANT + rank as f64));
        }
        entry.shares.extend(share);
        Ok(())
    }

    /// The place of the row's document, which is put in if it is not there.
    fn place_of(&mut self, row: Row, fusion: &Fusion, batch: &Batch<'_>) -> Result<usize> {
        work(1)?;
        let id = Key(id_of(&row.doc).to_value());
        if let Some(place) = self.places.get(&id) {
            return Ok(*place);
        }
        let place = self.entries.len();
        let bytes = size_of::<Entry>() + size_of::<usize>() + id.0.weight() + row.doc.size();
        self.keep(bytes, fusion, batch)?;
        self.places.insert(id, place);
        self.entries.push(Entry {
            doc: row.doc,
            record: row.record,
            score: 0.0,
            last: None,
            shares: Vec::new(),
        });
        Ok(place)
    }

    /// All of them, from the highest score to the lowest, those of one score by their `_id`s.
    ///
    /// Errors: those of the combination of scores.
    pub(super) fn ordered(&mut self, fusion: &Fusion, op: &OpContext) -> Result<Vec<Entry>> {
        self.places = HashMap::new();
        let mut entries = std::mem::take(&mut self.entries);
        work(entries.len())?;
        if let FusionMethod::Scores {
            normalization,
            combination,
        } = &fusion.method
        {
            normalize(&mut entries, fusion, *normalization);
            for entry in &mut entries {
                work(fusion.inputs.len())?;
                entry.score = entry.combined(combination, fusion.inputs.len(), op)?;
            }
        }
        entries.sort_by(|a, b| {
            let by_score = b.score.total_cmp(&a.score);
            by_score.then_with(|| compare(id_of(&a.doc), id_of(&b.doc)))
        });
        Ok(entries)
    }
}

fn id_of(doc: &RowDoc) -> ValueRef<'_> {
    doc.as_doc().get("_id").unwrap_or(ValueRef::Missing)
}

/// Normalizes and weighs what documents have in the pipelines.
fn normalize(entries: &mut [Entry], fusion: &Fusion, normalization: Normalization) {
    let mut extremes = vec![(f64::INFINITY, f64::NEG_INFINITY); fusion.inputs.len()];
    for share in entries.iter().flat_map(|entry| &entry.shares) {
        let (least, greatest) = &mut extremes[share.input];
        let score = share.score.unwrap_or(0.0);
        (*least, *greatest) = (least.min(score), greatest.max(score));
    }
    for share in entries.iter_mut().flat_map(|entry| &mut entry.shares) {
        let score = share.score.unwrap_or(0.0);
        let (least, greatest) = extremes[share.input];
        let normalized = match normalization {
            Normalization::None => score,
            Normalization::Sigmoid => 1.0 / (1.0 + (-score).exp()),
            Normalization::MinMaxScaler if greatest > least => (score - least) / (greatest - least),
            Normalization::MinMaxScaler => 0.0,
        };
        share.value = normalized * fusion.inputs[share.input].weight;
    }
}

impl Entry {
    /// What a combination makes of the scores in `inputs` pipelines.
    fn combined(&self, combination: &Combination, inputs: usize, op: &OpContext) -> Result<f64> {
        match combination {
            Combination::Average => Ok(self.shares.iter().map(|share| share.value).sum::<f64>() / inputs as f64),
            Combination::Expression {
                expr, outer_globals, ..
            } => {
                let mut vars: Vec<Value> = op.vars.iter().take(*outer_globals).cloned().collect();
                vars.resize(*outer_globals, Value::Missing);
                vars.resize(*outer_globals + inputs, Value::Double(0.0));
                for share in &self.shares {
                    vars[outer_globals + share.input] = Value::Double(share.value);
                }
                let op = op.with_vars(vars);
                let score = expr.eval(&mut Env::new(self.doc.as_doc(), &op))?;
                match Num::from_ref(score.as_ref()) {
                    Some(score) => Ok(score.to_f64()),
                    None => bail!(
                        TypeMismatch,
                        "the expression of $scoreFusion must give a number, not {}",
                        score.bson_type().alias()
                    ),
                }
            }
        }
    }

    pub(super) fn into_row(self, fusion: &Fusion) -> Row {
        let details = fusion.has_details.then(|| self.details(fusion));
        Row {
            doc: self.doc,
            record: self.record,
            meta: Some(Box::new(DocMeta {
                fused_score: Some(self.score),
                fused_score_details: details.map(Value::from),
                ..DocMeta::default()
            })),
        }
    }

    /// How the score came about.
    fn details(&self, fusion: &Fusion) -> Document {
        let mut shares = self.shares.iter().peekable();
        let inputs = fusion.inputs.iter().enumerate().map(|(at, input)| {
            let share = shares.next_if(|share| share.input == at);
            Value::from(match (&fusion.method, share) {
                (FusionMethod::Ranks, Some(share)) => share.of_ranks(input),
                (FusionMethod::Ranks, None) => doc! { "inputPipelineName": input.name.clone(), "rank": "NA" },
                (FusionMethod::Scores { .. }, share) => of_scores(input, share),
            })
        });
        let inputs: Vec<Value> = inputs.collect();
        match &fusion.method {
            FusionMethod::Ranks => doc! {
                "value": self.score,
                "description": "reciprocal rank fusion: the sum of weight * (1 / (60 + rank)) over the input pipelines that give the document:",
                "details": inputs,
            },
            FusionMethod::Scores {
                normalization,
                combination,
            } => doc! {
                "value": self.score,
                "description": "the scores of the input pipelines, normalized, weighed and combined:",
                "normalization": normalization.name(),
                "combination": match combination {
                    Combination::Average => doc! { "method": "average" },
                    Combination::Expression { written, .. } => doc! {
                        "method": "custom expression",
                        "expression": extjson::to_string(written, Form::Relaxed),
                    },
                },
                "details": inputs,
            },
        }
    }
}

impl Share {
    fn of_ranks(&self, input: &FusionInput) -> Document {
        let mut shown = doc! {
            "inputPipelineName": input.name.clone(),
            "rank": i32::try_from(self.rank).map_or(Value::Int64(self.rank as i64), Value::Int32),
            "weight": input.weight,
        };
        match &self.details {
            Some(Value::Document(details)) => {
                for (name, value) in details.iter() {
                    shown.push(name, value);
                }
            }
            _ => {
                if let Some(score) = self.score {
                    shown.push("value", score);
                }
                shown.push("details", Vec::<Value>::new());
            }
        }
        shown
    }
}

/// What a document got for a pipeline by its score: nothing where the pipeline does not give it.
fn of_scores(input: &FusionInput, share: Option<&Share>) -> Document {
    let details = share.and_then(|share| share.details.clone());
    doc! {
        "inputPipelineName": input.name.clone(),
        "inputPipelineRawScore": share.and_then(|share| share.score).unwrap_or(0.0),
        "weight": input.weight,
        "value": share.map_or(0.0, |share| share.value),
        "details": details.into_iter().collect::<Vec<_>>(),
    }
}
