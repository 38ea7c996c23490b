//! `$search`, `$searchMeta` and `$vectorSearch`: what search indexes find.
//!
//! MongoDB hands these stages on to a server beside it, and checks itself what stands here; all else is read by who asks the index.
//! Source: manual, "$search", "$searchMeta", "$vectorSearch".

use super::args::not_object;
use super::{ParseContext, Stage};
use crate::matcher::{self, MatchExpr};
use nestor_model::number::Num;
use nestor_model::{DocRef, Document, Error, Result, ValueRef};
use std::sync::Arc;

/// What an index is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SearchKind {
    /// `$search`: the documents.
    Documents,
    /// `$searchMeta`: how many there are, and facets of them.
    Meta,
    /// `$vectorSearch`: the documents with the nearest vectors.
    Nearest,
}

/// A stage that asks a search index.
#[derive(Debug)]
pub struct SearchStage {
    /// What it is asked for.
    pub kind: SearchKind,
    /// The operand as it was written.
    pub operand: Document,
}

impl SearchStage {
    /// The name of the stage.
    pub fn name(&self) -> &'static str {
        match self.kind {
            SearchKind::Documents => "$search",
            SearchKind::Meta => "$searchMeta",
            SearchKind::Nearest => "$vectorSearch",
        }
    }

    /// Whether its documents have this metadata; `None` for metadata that MongoDB lets everybody ask for in vain.
    pub fn gives(&self, metadata: &str) -> Option<bool> {
        let asks_details = matches!(self.operand.get("scoreDetails"), Some(ValueRef::Bool(true)));
        match (metadata, self.kind) {
            ("scoreDetails", SearchKind::Documents) => Some(asks_details),
            ("score", kind) => Some(kind != SearchKind::Meta),
            ("scoreDetails" | "textScore" | "geoNearDistance" | "geoNearPoint", _) => Some(false),
            _ => None,
        }
    }
}

/// Errors: 9 for an array, 10065 for what else is no document, and those of what is checked before the index is asked.
pub(super) fn parse(
    stage: &'static str,
    value: ValueRef<'_>,
    context: &mut ParseContext<'_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    let kind = match stage {
        "$search" => SearchKind::Documents,
        "$searchMeta" => SearchKind::Meta,
        _ => SearchKind::Nearest,
    };
    let operand = match value {
        ValueRef::Document(operand) => operand,
        ValueRef::Array(_) => {
            return Err(Error::failed_to_parse(format!(
                "{stage} value must be an object. Found: array"
            )));
        }
        other => return Err(not_object(stage, other)),
    };
    match kind {
        SearchKind::Nearest => check_nearest(operand, context)?,
        SearchKind::Documents => check_flags(operand)?,
        // Of what gives no documents the index alone reads the options.
        SearchKind::Meta => {}
    }
    out.push(Stage::Search(Arc::new(SearchStage {
        kind,
        operand: operand.to_document(),
    })));
    Ok(())
}

/// Error: 13111 for options that are no bool.
fn check_flags(operand: DocRef<'_>) -> Result<()> {
    for name in ["returnStoredSource", "scoreDetails"] {
        if let Some(other) = operand.get(name).filter(|value| !matches!(value, ValueRef::Bool(_))) {
            return Err(Error::location(
                13111,
                format!("wrong type for field ({name}) {} != bool", other.bson_type().alias()),
            ));
        }
    }
    Ok(())
}

/// Errors: 8575100 for a limit that is no number, 7912700 for one that is less than 1, 10065 for a filter that is neither a document nor an
/// array, those of its conditions.
fn check_nearest(operand: DocRef<'_>, context: &mut ParseContext<'_>) -> Result<()> {
    match operand.get("filter") {
        // An array is for who asks the index to refuse.
        None | Some(ValueRef::Array(_)) => {}
        Some(ValueRef::Document(filter)) => {
            MatchExpr::parse_in(filter, context.scope, matcher::Context::Validator)?;
        }
        Some(filter) => return Err(not_object("filter", filter)),
    }
    match operand.get("limit").map(Num::from_ref) {
        None => Ok(()),
        Some(Some(limit)) if limit.to_f64() >= 1.0 => Ok(()),
        Some(Some(_)) => Err(Error::location(
            7_912_700,
            "$vectorSearch limit must be a positive number",
        )),
        Some(None) => Err(Error::location(8_575_100, "$vectorSearch limit must be a number")),
    }
}
