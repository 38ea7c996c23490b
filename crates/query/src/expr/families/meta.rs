//! `$meta`: what stages noted about a document.

use crate::env::{Env, Scope, Val};
use crate::expr::Expr;
use crate::expr::args::error;
use crate::expr::parse::OpDef;
use nestor_model::{Result, Value, ValueRef};

pub(crate) const OPERATORS: &[OpDef] = &[OpDef::custom("$meta", parse_meta)];

const KINDS: &[&str] = &[
    "textScore",
    "searchScore",
    "score",
    "vectorSearchScore",
    "searchHighlights",
    "searchSequenceToken",
    "searchScoreDetails",
    "scoreDetails",
    "geoNearDistance",
    "geoNearPoint",
    "randVal",
    "recordId",
    "indexKey",
    "sortKey",
];

/// The static name of a kind of metadata.
pub(crate) fn known(kind: &str) -> Option<&'static str> {
    KINDS.iter().find(|k| **k == kind).copied()
}

fn parse_meta(name: &'static str, value: ValueRef<'_>, _: &mut Scope) -> Result<Expr> {
    let ValueRef::String(kind) = value else {
        return Err(error(17307, "$meta only supports string arguments"));
    };
    match known(kind) {
        Some(kind) => Ok(Expr::call_unfolded(name, meta, Box::new([Expr::constant_of(kind)]))),
        None => Err(error(17308, format!("unsupported argument to $meta: {kind}"))),
    }
}

fn meta<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let (Some(meta), Some(Value::String(kind))) = (env.meta, args[0].constant()) else {
        return Ok(Val::MISSING);
    };
    Ok(match kind.as_str() {
        "textScore" => meta.text_score.into(),
        "searchScore" => meta.search_score.into(),
        "vectorSearchScore" => meta.vector_search_score.into(),
        "score" => meta.score().into(),
        "geoNearDistance" => meta.geo_distance.into(),
        "geoNearPoint" => meta.geo_point.clone().into(),
        "randVal" => meta.rand_val.into(),
        "recordId" => meta.record_id.map(|id| id as i64).into(),
        "indexKey" => meta.index_key.clone().into(),
        "sortKey" => meta.sort_key.clone().into(),
        "searchHighlights" => meta.highlights.clone().into(),
        "searchScoreDetails" => meta.search_score_details.clone().into(),
        "scoreDetails" => meta.score_details().cloned().into(),
        "searchSequenceToken" => meta.sequence_token.clone().into(),
        _ => Val::MISSING,
    })
}
