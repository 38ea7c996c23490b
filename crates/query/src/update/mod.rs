//! The update language: operators, replacements, pipelines.
//!
//! [`Update::parse`] compiles the `u` of an update once; [`Update::apply`] turns one document into the
//! next and says what changed; [`Update::upsert_document`] makes the document that an upsert inserts.
//! Nothing is half-applied: an error leaves no result.
//!
//! Operators work on bytes. The paths they touch form a tree ([`tree`]); one walk over the document
//! ([`walk`]) yields edits of its bytes ([`patch`]) and the oplog's diff ([`diff`]). What no path touches
//! is neither decoded nor encoded, only copied. An `$inc` costs a scan for its field and one copy of the
//! document.
//!
//! Reading order: `path`, `tree`, `operators`, `walk`, `patch`, `diff`; then `replace`, `pipeline`, `upsert`.

mod array_filters;
pub mod description;
pub mod diff;
mod modifiers;
mod operand;
mod operators;
mod patch;
mod path;
mod pipeline;
mod predicate;
mod replace;
#[cfg(test)]
mod tests;
mod touched;
mod tree;
mod upsert;
mod validate;
mod walk;

pub(crate) use predicate::Predicate;
pub use touched::Touched;
pub use validate::check_id;

use crate::env::{OpContext, Scope};
use array_filters::ArrayFilters;
use modifiers::Modifiers;
use nestor_model::{Error, ErrorCode, RawDoc, RawDocBuf, Result, Str, ValueRef, bail, values_equal};
use pipeline::Pipeline;
pub use pipeline::check_form as check_pipeline_form;
use replace::Replacement;

/// A compiled update.
#[derive(Debug)]
pub struct Update {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Modifiers(Modifiers),
    Replacement(Replacement),
    Pipeline(Pipeline),
}

/// The options of an update.
#[derive(Clone, Copy, Default)]
pub struct UpdateOptions<'a> {
    /// `arrayFilters`, as given.
    pub array_filters: Option<nestor_model::ArrayRef<'a>>,
    /// `c`: variables of a pipeline.
    pub constants: Option<nestor_model::DocRef<'a>>,
    /// `multi: true`.
    pub multi: bool,
}

/// The result of applying an update to one document.
#[derive(Clone, Debug)]
pub enum Applied {
    /// The document stays as it is, byte for byte.
    NoChange,
    /// The document changes.
    Changed(Changed),
}

/// A changed document.
#[derive(Clone, Debug)]
pub struct Changed {
    /// The new document. Its `_id` equals the old one's; size and depth are within limits.
    pub doc: RawDocBuf,
    /// The `o` of the oplog's update entry: `{$v: 2, diff: ...}`, or `None` when the entry is the whole
    /// new document.
    pub diff: Option<RawDocBuf>,
}

impl Update {
    /// Compiles the `u` of an update: a document of operators, a replacement document, or a pipeline.
    ///
    /// Errors: 9 (FailedToParse) for what is none of them, unknown operators, operators mixed with
    /// fields, a replacement with `multi`; those of operators, paths, array filters and stages.
    pub fn parse(update: ValueRef<'_>, options: UpdateOptions<'_>, scope: &mut Scope) -> Result<Self> {
        let doc = match update {
            ValueRef::Document(_) if options.constants.is_some() => {
                bail!(51198, "Constant values may only be specified for pipeline updates")
            }
            ValueRef::Document(doc) => doc,
            ValueRef::Array(_) if options.array_filters.is_some() => {
                bail!(
                    FailedToParse,
                    "arrayFilters may not be specified for pipeline-syle updates"
                )
            }
            ValueRef::Array(stages) => {
                return Ok(Self {
                    kind: Kind::Pipeline(Pipeline::parse(stages, options.constants, scope)?),
                });
            }
            _ => bail!(FailedToParse, "Update argument must be either an object or an array"),
        };
        let filters = match options.array_filters {
            Some(filters) => ArrayFilters::parse(filters, scope)?,
            None => ArrayFilters::default(),
        };
        let operators = doc.iter().next().is_some_and(|(name, _)| name.starts_with('$'));
        let kind = if operators {
            Kind::Modifiers(Modifiers::parse(doc, filters, scope)?)
        } else {
            if options.multi {
                bail!(
                    FailedToParse,
                    "multi update is not supported for replacement-style update"
                );
            }
            if !filters.is_empty() {
                bail!(
                    FailedToParse,
                    "The array filter for identifier '{}' was not used in the update {doc:?}",
                    filters.name(0)
                );
            }
            Kind::Replacement(Replacement::parse(doc)?)
        };
        Ok(Self { kind })
    }

    /// True for a replacement document.
    pub fn is_replacement(&self) -> bool {
        matches!(self.kind, Kind::Replacement(_))
    }

    /// True for update operators (`{$set: ..}`), as opposed to a replacement or a pipeline.
    pub fn is_modifiers(&self) -> bool {
        matches!(self.kind, Kind::Modifiers(_))
    }

    /// True when applying needs the array position of the match (`$` in a path).
    pub fn needs_position(&self) -> bool {
        match &self.kind {
            Kind::Modifiers(modifiers) => modifiers.needs_position(),
            Kind::Replacement(_) | Kind::Pipeline(_) => false,
        }
    }

    /// The paths that may change.
    pub fn touched(&self) -> &Touched {
        match &self.kind {
            Kind::Modifiers(modifiers) => modifiers.touched(),
            Kind::Replacement(_) => &Touched::All,
            Kind::Pipeline(pipeline) => pipeline.touched(),
        }
    }

    /// Applies the update to a stored document. `position` is the array index at which the query
    /// matched, if it did in an array.
    ///
    /// Errors: 2, 14, 28, 34, 40 of operators; 66 (ImmutableField) when `_id` would change; 52, 53 for
    /// names and `_id` that cannot be stored; 15 (Overflow) for nesting; 17419 for size.
    pub fn apply(&self, doc: RawDoc<'_>, position: Option<usize>, op: &OpContext) -> Result<Applied> {
        match &self.kind {
            Kind::Modifiers(modifiers) => {
                let position: Option<Str> = position.map(operand::index_name);
                let Some(walked) = modifiers.walk(doc, position.as_deref(), op, false)? else {
                    return Ok(Applied::NoChange);
                };
                let diff = diff::oplog_entry(&walked.diff);
                let new = walked.patch.build(doc, walked.delta)?;
                if self.touched().affects_field("_id") {
                    check_id_unchanged(doc, new.as_raw())?;
                }
                Ok(Applied::Changed(Changed {
                    doc: new,
                    diff: Some(diff),
                }))
            }
            Kind::Replacement(replacement) => {
                let new = replacement.apply(doc, op.timestamp(), false)?;
                // It is compared as it was given, as in MongoDB: one without an `_id`, or with the `_id` behind other fields,
                // always counts as a change.
                if replacement.given().as_bytes() == doc.as_bytes() {
                    return Ok(Applied::NoChange);
                }
                Ok(Applied::Changed(Changed { doc: new, diff: None }))
            }
            Kind::Pipeline(pipeline) => {
                let new = pipeline.apply(doc, op)?;
                let Some(diff) = diff::compute(doc, new.as_raw()) else {
                    return Ok(Applied::NoChange);
                };
                // A diff that is not smaller than the document is no help.
                let diff = (diff.as_bytes().len() < new.as_bytes().len()).then_some(diff);
                Ok(Applied::Changed(Changed { doc: new, diff }))
            }
        }
    }
}

/// `_id` must be there as it was, by value.
fn check_id_unchanged(old: RawDoc<'_>, new: RawDoc<'_>) -> Result<()> {
    match (old.get("_id"), new.get("_id")) {
        (Some(a), Some(b)) if values_equal(a, b) => Ok(()),
        (None, None) => Ok(()),
        _ => Err(validate::immutable_id()),
    }
}

/// The error for a new version that is nested deeper than [`STORED_DEPTH_MAX`](nestor_model::raw::STORED_DEPTH_MAX).
pub fn too_deep() -> Error {
    let levels = nestor_model::raw::STORED_DEPTH_MAX + 1;
    Error::new(
        ErrorCode::Overflow,
        format!("Document exceeds maximum nesting depth of {levels}"),
    )
}
