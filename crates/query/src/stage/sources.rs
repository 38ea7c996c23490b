//! Stages that make documents of the server's own state, and those that need a service Nestor has not.

use super::args::Options;
use super::{ParseContext, Stage};
use nestor_model::{Document, Error, ErrorCode, Result, ValueRef};

/// A stage that reads the server's state.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum SourceStage {
    /// With its options: `latencyStats`, `storageStats`, `count`, `queryExecStats`.
    CollStats(Document),
    IndexStats,
    PlanCacheStats,
    /// With its options: `allUsers`, `idleSessions`, `idleCursors`, `localOps`, ...
    CurrentOp(Document),
    /// With its options: `users`, `allUsers`.
    ListSessions(Document),
    ListLocalSessions(Document),
    ListCatalog,
    ListClusterCatalog(Document),
    QuerySettings,
}

/// Parses any of them. Stages without an implementation answer as a server without that service does.
pub(super) fn parse(
    stage: &'static str,
    value: ValueRef<'_>,
    context: &mut ParseContext<'_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    let source = match stage {
        "$collStats" => SourceStage::CollStats(coll_stats(value)?),
        "$indexStats" => {
            empty(stage, 28803, value)?;
            SourceStage::IndexStats
        }
        "$planCacheStats" => plan_cache_stats(value)?,
        "$currentOp" => SourceStage::CurrentOp(current_op(value)?),
        "$listSessions" => {
            if context.namespace.db != "config" || context.namespace.coll != "system.sessions" {
                return Err(Error::new(
                    ErrorCode::InvalidNamespace,
                    "$listSessions may only be run against config.system.sessions",
                ));
            }
            SourceStage::ListSessions(sessions(stage, value)?)
        }
        "$listLocalSessions" => SourceStage::ListLocalSessions(sessions(stage, value)?),
        "$listCatalog" => {
            empty(stage, 6_200_600, value)?;
            SourceStage::ListCatalog
        }
        "$listClusterCatalog" => {
            let ValueRef::Document(doc) = value else {
                return Err(Error::location(9_621_302, "$listClusterCatalog must take an object"));
            };
            Options::read(stage, doc, &["shards", "balancingConfiguration", "tracked"])?;
            SourceStage::ListClusterCatalog(doc.to_document())
        }
        "$querySettings" => {
            let ValueRef::Document(doc) = value else {
                return Err(Error::location(
                    7_746_800,
                    "$querySettings stage expects a document as argument",
                ));
            };
            Options::read(stage, doc, &["showDebugQueryShape"])?;
            SourceStage::QuerySettings
        }
        "$search" | "$searchMeta" | "$searchBeta" | "$vectorSearch" | "$listSearchIndexes" | "$rankFusion"
        | "$scoreFusion" => {
            return Err(Error::location(
                31082,
                format!("{stage} needs a search index, which Nestor does not support yet"),
            ));
        }
        "$changeStream" | "$changeStreamSplitLargeEvent" | "$geoNear" => {
            return Err(Error::new(
                ErrorCode::CommandNotSupported,
                format!("{stage} is not supported yet"),
            ));
        }
        _ => {
            return Err(Error::new(
                ErrorCode::CommandNotSupported,
                format!("{stage} is not supported on a server without shards"),
            ));
        }
    };
    out.push(Stage::Source(source));
    Ok(())
}

fn empty(stage: &str, code: i32, value: ValueRef<'_>) -> Result<()> {
    match value {
        ValueRef::Document(doc) if doc.is_empty() => Ok(()),
        _ => Err(Error::location(
            code,
            format!("the {stage} stage specification must be an empty object"),
        )),
    }
}

fn coll_stats(value: ValueRef<'_>) -> Result<Document> {
    let ValueRef::Document(doc) = value else {
        return Err(Error::location(
            5_447_000,
            format!("$collStats must take a nested object but found: {value:?}"),
        ));
    };
    let options = Options::read(
        "$collStats",
        doc,
        &["latencyStats", "storageStats", "count", "queryExecStats"],
    )?;
    options.document("latencyStats")?;
    options.document("storageStats")?;
    for name in ["count", "queryExecStats"] {
        if options.document(name)?.is_some_and(|d| !d.is_empty()) {
            return Err(Error::location(
                31170,
                format!("$collStats.{name} must be an empty object"),
            ));
        }
    }
    Ok(doc.to_document())
}

fn plan_cache_stats(value: ValueRef<'_>) -> Result<SourceStage> {
    let ValueRef::Document(doc) = value else {
        return Err(Error::failed_to_parse("$planCacheStats value must be an object"));
    };
    for (name, value) in doc {
        match (name, value) {
            ("allHosts", ValueRef::Bool(false)) => {}
            ("allHosts", ValueRef::Bool(true)) => {
                return Err(Error::location(
                    4_503_200,
                    "$planCacheStats stage supports allHosts parameter only for sharded clusters",
                ));
            }
            ("allHosts", _) => return Err(Error::failed_to_parse("$planCacheStats allHosts must be a boolean")),
            _ => {
                return Err(Error::failed_to_parse(format!(
                    "$planCacheStats does not take the option '{name}'"
                )));
            }
        }
    }
    Ok(SourceStage::PlanCacheStats)
}

fn current_op(value: ValueRef<'_>) -> Result<Document> {
    let ValueRef::Document(doc) = value else {
        return Err(Error::failed_to_parse(format!(
            "$currentOp options must be specified in an object, but found: {}",
            value.bson_type().alias()
        )));
    };
    for (name, value) in doc {
        if !matches!(
            name,
            "idleConnections"
                | "idleSessions"
                | "allUsers"
                | "localOps"
                | "truncateOps"
                | "idleCursors"
                | "backtrace"
                | "targetAllNodes"
        ) {
            return Err(Error::failed_to_parse(format!(
                "unrecognized option '{name}' in $currentOp stage"
            )));
        }
        if !matches!(value, ValueRef::Bool(_)) {
            return Err(Error::failed_to_parse(format!(
                "the '{name}' parameter of the $currentOp stage must be a boolean value, but found: {}",
                value.bson_type().alias()
            )));
        }
    }
    Ok(doc.to_document())
}

fn sessions(stage: &'static str, value: ValueRef<'_>) -> Result<Document> {
    let ValueRef::Document(doc) = value else {
        return Err(Error::type_mismatch(format!(
            "{stage} options must be specified in an object, but found: {}",
            value.bson_type().alias()
        )));
    };
    let options = Options::read(stage, doc, &["users", "allUsers", "$_internalPredicate"])?;
    let all = match options.given("allUsers") {
        None => false,
        Some(ValueRef::Bool(all)) => all,
        Some(other) => return Err(options.wrong_type("allUsers", other, "bool")),
    };
    let users = options.array("users")?;
    if all && users.is_some_and(|u| !u.is_empty()) {
        return Err(Error::new(
            ErrorCode::UnsupportedFormat,
            format!("{stage} may not specify {{allUsers: true}} and {{users: [...]}} at the same time"),
        ));
    }
    Ok(doc.to_document())
}
