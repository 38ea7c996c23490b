//! `$changeStream`: the changes of a collection, a database or the cluster, as documents. This is what a stream is asked for; how
//! it is read from the log is `exec`'s business.
//!
//! Source: manual, "$changeStream (aggregation)", "Change Streams", "$changeStreamSplitLargeEvent".

mod token;

pub use token::{EventId, Token};

use super::args::Options;
use super::{ParseContext, Stage};
use nestor_model::namespace::{ADMIN, CONFIG, LOCAL};
use nestor_model::{Error, ErrorCode, Namespace, Result, Timestamp, ValueRef, bail};
use std::sync::Arc;

/// A parsed `$changeStream`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeStream {
    /// The target of the stream.
    pub watched: Watched,
    /// Where it starts.
    pub start: Start,
    /// `fullDocument`.
    pub full_document: FullDocument,
    /// `fullDocumentBeforeChange`.
    pub before_change: BeforeChange,
    /// `showExpandedEvents`: further kinds of events, and further fields.
    pub expanded: bool,
    /// `showSystemEvents`: events of system collections too.
    pub system: bool,
    /// `showRawUpdateDescription`: describes updates as the log has them.
    pub raw_updates: bool,
    /// `matchCollectionUUIDForUpdateLookup`: looks documents up only in the collection that changed, not in another one that has
    /// taken its name.
    pub lookup_by_uuid: bool,
}

/// The target of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watched {
    /// A collection, by its name.
    Collection(Namespace),
    /// The collections of a database.
    Database(Namespace),
    /// All databases of clients.
    Cluster,
}

/// Where a stream starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With what is committed from now on.
    Now,
    /// `startAtOperationTime`: with the events of that time.
    At(Timestamp),
    /// `resumeAfter` and `startAfter`: behind a token.
    After(Token),
}

/// `fullDocument`: whether updates come with the document that they made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullDocument {
    /// Updates come without a document.
    Default,
    /// Updates come with the document as it is when the stream reads it.
    UpdateLookup,
    /// Updates come with the document right after the update, or null if that is not kept.
    WhenAvailable,
    /// Updates come with the document right after the update; an error if that is not kept.
    Required,
}

/// `fullDocumentBeforeChange`: whether changes come with the document as it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeforeChange {
    /// Changes come without that document.
    Off,
    /// Changes come with the document, or null if that is not kept.
    WhenAvailable,
    /// Changes come with the document; an error if that is not kept.
    Required,
}

const OPTIONS: [&str; 13] = [
    "resumeAfter",
    "startAfter",
    "startAtOperationTime",
    "fullDocument",
    "fullDocumentBeforeChange",
    "allChangesForCluster",
    "showExpandedEvents",
    "showSystemEvents",
    "showMigrationEvents",
    "showRawUpdateDescription",
    "allowToRunOnConfigDB",
    "allowToRunOnSystemNS",
    "matchCollectionUUIDForUpdateLookup",
];

/// Parses the stage on the namespace of `context`.
///
/// Errors: 6188500 no document, 40415 and 40413 options, 14 their types, 2 their values, those of tokens, 50865 and 40674 several
/// starts, 260 `resumeAfter` an `invalidate`, 72 a cluster's stream elsewhere than on `admin`, 73 a namespace without streams.
pub(super) fn parse(
    stage: &'static str,
    value: ValueRef<'_>,
    context: &mut ParseContext<'_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    let ValueRef::Document(spec) = value else {
        return Err(Error::location(
            6_188_500,
            format!(
                "$changeStream must take a nested object but found: {}",
                value.bson_type().alias()
            ),
        ));
    };
    let options = Options::read(stage, spec, &OPTIONS)?;
    let flag = |name| Ok::<_, Error>(options.strict_bool(name)?.unwrap_or(false));
    let all_changes = flag("allChangesForCluster")?;
    let expanded = flag("showExpandedEvents")?;
    let system = flag("showSystemEvents")?;
    // No data moves between shards here, so there are no events of that kind to show or to hide.
    flag("showMigrationEvents")?;
    let raw_updates = flag("showRawUpdateDescription")?;
    let on_config = flag("allowToRunOnConfigDB")?;
    let on_system = flag("allowToRunOnSystemNS")?;
    let lookup_by_uuid = flag("matchCollectionUUIDForUpdateLookup")?;
    let stream = ChangeStream {
        full_document: choice(
            &options,
            "fullDocument",
            &[
                ("default", FullDocument::Default),
                ("updateLookup", FullDocument::UpdateLookup),
                ("whenAvailable", FullDocument::WhenAvailable),
                ("required", FullDocument::Required),
            ],
        )?
        .unwrap_or(FullDocument::Default),
        before_change: choice(
            &options,
            "fullDocumentBeforeChange",
            &[
                ("off", BeforeChange::Off),
                ("whenAvailable", BeforeChange::WhenAvailable),
                ("required", BeforeChange::Required),
            ],
        )?
        .unwrap_or(BeforeChange::Off),
        start: start(&options)?,
        watched: watched(&context.namespace, all_changes, on_config, on_system)?,
        expanded,
        system,
        raw_updates,
        lookup_by_uuid,
    };
    out.push(Stage::ChangeStream(Arc::new(stream)));
    Ok(())
}

/// Parses `$changeStreamSplitLargeEvent: {}`. Errors: 7182800 anything else.
pub(super) fn parse_split(
    stage: &'static str,
    value: ValueRef<'_>,
    _: &mut ParseContext<'_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    match value {
        ValueRef::Document(doc) if doc.is_empty() => {
            out.push(Stage::SplitLargeEvent);
            Ok(())
        }
        _ => Err(Error::location(
            7_182_800,
            format!("{stage} spec should be an empty object"),
        )),
    }
}

/// The value that a string stands for.
fn choice<T: Copy>(options: &Options<'_>, name: &str, values: &[(&str, T)]) -> Result<Option<T>> {
    let Some(text) = options.string(name)? else {
        return Ok(None);
    };
    match values.iter().find(|(value, _)| *value == text) {
        Some((_, value)) => Ok(Some(*value)),
        None => bail!(
            BadValue,
            "Enumeration value '{text}' for field '$changeStream.{name}' is not a valid value."
        ),
    }
}

fn start(options: &Options<'_>) -> Result<Start> {
    let token = |name| options.document(name)?.map(Token::parse).transpose();
    let resume_after: Option<Token> = token("resumeAfter")?;
    let start_after: Option<Token> = token("startAfter")?;
    let time = match options.given("startAtOperationTime") {
        None => None,
        Some(ValueRef::Timestamp(time)) => Some(time),
        Some(other) => return Err(options.wrong_type("startAtOperationTime", other, "timestamp")),
    };
    if resume_after.is_some() && start_after.is_some() {
        return Err(Error::location(
            50865,
            "Do not specify both 'resumeAfter' and 'startAfter' in a $changeStream stage",
        ));
    }
    if time.is_some() && (resume_after.is_some() || start_after.is_some()) {
        return Err(Error::location(
            40674,
            "Only one type of resume option is allowed, but multiple were found",
        ));
    }
    if resume_after.is_some_and(|token| token.is_invalidate()) {
        bail!(
            InvalidResumeToken,
            "Attempting to resume a change stream using 'resumeAfter' is not allowed from an invalidate notification"
        );
    }
    Ok(match (resume_after.or(start_after), time) {
        (Some(token), _) => Start::After(token),
        (None, Some(time)) => Start::At(time),
        (None, None) => Start::Now,
    })
}

fn watched(namespace: &Namespace, all_changes: bool, on_config: bool, on_system: bool) -> Result<Watched> {
    let is_database = namespace.coll.is_empty();
    if all_changes {
        if namespace.db != ADMIN || !is_database {
            bail!(
                InvalidOptions,
                "A $changeStream with 'allChangesForCluster:true' may only be opened on the 'admin' database, and with no \
                 collection name; found {namespace}"
            );
        }
        return Ok(Watched::Cluster);
    }
    let is_internal = matches!(namespace.db.as_str(), ADMIN | LOCAL) || (namespace.db == CONFIG && !on_config);
    if is_internal {
        return Err(Error::new(
            ErrorCode::InvalidNamespace,
            format!(
                "$changeStream may not be opened on the internal {} database",
                namespace.db
            ),
        ));
    }
    if namespace.coll.starts_with("system.") && !on_system {
        return Err(Error::new(
            ErrorCode::InvalidNamespace,
            format!("$changeStream may not be opened on the internal {namespace} collection"),
        ));
    }
    Ok(match is_database {
        true => Watched::Database(namespace.clone()),
        false => Watched::Collection(namespace.clone()),
    })
}

/// Checks what follows `$changeStream`, given the names of the stages as they were written and what they stand for.
///
/// Errors: 20 a stage that a stream does not allow, or one of a stream in another pipeline, 7182802 one that is not the last.
pub(super) fn check_followers(placed: &[&'static str], stages: &[Stage]) -> Result<()> {
    let of_changes = matches!(stages.first(), Some(Stage::ChangeStream(_)));
    let splits = |name: &&str| **name == *"$changeStreamSplitLargeEvent";
    if !of_changes {
        if placed.iter().any(splits) {
            bail!(
                IllegalOperation,
                "$changeStreamSplitLargeEvent can only be used in a $changeStream pipeline"
            );
        }
        return Ok(());
    }
    for stage in stages.iter().skip(1) {
        let allowed = matches!(
            stage,
            Stage::Match(_) | Stage::Project { .. } | Stage::ReplaceRoot(_) | Stage::Redact(_) | Stage::SplitLargeEvent
        );
        if !allowed {
            let named = placed.iter().skip(1).find(|name| !is_allowed(name));
            bail!(
                IllegalOperation,
                "{} is not permitted in a $changeStream pipeline",
                named.copied().unwrap_or("$sort")
            );
        }
    }
    let last = placed.len().saturating_sub(1);
    if placed.iter().take(last).any(splits) {
        return Err(Error::location(
            7_182_802,
            "$changeStreamSplitLargeEvent must be the last stage in the pipeline",
        ));
    }
    Ok(())
}

fn is_allowed(name: &str) -> bool {
    matches!(
        name,
        "$match"
            | "$project"
            | "$addFields"
            | "$set"
            | "$unset"
            | "$replaceRoot"
            | "$replaceWith"
            | "$redact"
            | "$changeStreamSplitLargeEvent"
    )
}

#[cfg(test)]
mod tests;
