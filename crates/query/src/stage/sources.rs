//! Stages that make documents of the server's own state, and those that need a service Nestor has not.

use super::args::{Options, long_of};
use super::{ParseContext, Place, Stage};
use nestor_model::namespace::{ADMIN, CONFIG};
use nestor_model::number::{Num, safe_i64};
use nestor_model::{DocRef, Error, ErrorCode, Result, Str, Value, ValueRef};
use std::sync::Arc;

/// A stage that reads the server's state.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum SourceStage {
    CollStats(CollStats),
    IndexStats,
    PlanCacheStats,
    CurrentOp(CurrentOp),
    ListSessions(SessionsOf),
    ListLocalSessions(SessionsOf),
    ListCatalog,
    ListClusterCatalog {
        /// `shards`.
        shards: bool,
    },
    QuerySettings {
        /// `showDebugQueryShape`.
        debug_shape: bool,
    },
    ListSampledQueries,
    /// Search indexes of the collection: the one of this id or this name, or all.
    ListSearchIndexes {
        /// `id`.
        id: Option<Str>,
        /// `name`.
        name: Option<Str>,
    },
    /// With the key that names are hidden by, if they are.
    QueryStats {
        /// `transformIdentifiers.hmacKey`.
        hmac_key: Option<Vec<u8>>,
    },
    /// A query in SQL, whose rows are the documents.
    Sql(Arc<SqlQuery>),
    /// A stage that needs what Nestor has not, by its name. No pipeline that parsed holds one.
    Unsupported(&'static str),
}

/// What `$sql` is asked for.
#[derive(Debug, Clone, Default)]
pub struct SqlQuery {
    /// The statement.
    pub text: String,
    /// The values of `$1`, `$2`, ... in it.
    pub parameters: Vec<Value>,
}

/// What `$currentOp` is asked for. `localOps`, `targetAllNodes` and `backtrace` make no difference where there is one node, and no operation waits for a latch.
#[derive(Debug, Clone, Copy)]
pub struct CurrentOp {
    /// `allUsers`: also operations of others than the caller.
    pub all_users: bool,
    /// `idleConnections`: also connections that wait for a command.
    pub idle_connections: bool,
    /// `idleSessions`: also transactions that wait for their next command.
    pub idle_sessions: bool,
    /// `idleCursors`: also cursors that wait for a getMore.
    pub idle_cursors: bool,
    /// `truncateOps`: long commands are shown cut off.
    pub truncated: bool,
}

/// Whose sessions `$listSessions` shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionsOf {
    /// The caller's.
    Caller,
    /// Those of these users: names with their databases, at least one.
    Users(Vec<(Str, Str)>),
    /// Everybody's.
    All,
}

/// What `$collStats` is asked for.
#[derive(Debug, Clone, Default)]
pub struct CollStats {
    /// `latencyStats`, and whether with histograms.
    pub latency: Option<bool>,
    /// `storageStats`, and by what number sizes are divided: between 1 and `i32::MAX`, as MongoDB keeps it in an int.
    pub storage_scale: Option<i64>,
    /// `count`.
    pub count: bool,
    /// `queryExecStats`.
    pub scans: bool,
}

impl SourceStage {
    /// The name of the stage.
    pub fn name(&self) -> &'static str {
        match self {
            Self::CollStats(_) => "$collStats",
            Self::IndexStats => "$indexStats",
            Self::PlanCacheStats => "$planCacheStats",
            Self::CurrentOp(_) => "$currentOp",
            Self::ListSessions(_) => "$listSessions",
            Self::ListLocalSessions(_) => "$listLocalSessions",
            Self::ListCatalog => "$listCatalog",
            Self::ListClusterCatalog { .. } => "$listClusterCatalog",
            Self::QuerySettings { .. } => "$querySettings",
            Self::ListSampledQueries => "$listSampledQueries",
            Self::ListSearchIndexes { .. } => "$listSearchIndexes",
            Self::QueryStats { .. } => "$queryStats",
            Self::Sql(_) => "$sql",
            Self::Unsupported(name) => name,
        }
    }
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
        "$currentOp" => {
            let options = current_op(value)?;
            if context.namespace.db != ADMIN {
                return Err(Error::new(
                    ErrorCode::InvalidNamespace,
                    "$currentOp must be run against the 'admin' database with {aggregate: 1}",
                ));
            }
            SourceStage::CurrentOp(options)
        }
        "$listSessions" => {
            if context.namespace.db != CONFIG || context.namespace.coll != "system.sessions" {
                return Err(Error::new(
                    ErrorCode::InvalidNamespace,
                    "$listSessions may only be run against config.system.sessions",
                ));
            }
            // The wrong namespace is told before the wrong place.
            if context.in_facet {
                return Err(not_in_facet(stage));
            }
            SourceStage::ListSessions(sessions(stage, value)?)
        }
        "$listLocalSessions" => SourceStage::ListLocalSessions(sessions(stage, value)?),
        "$listCatalog" => {
            empty(stage, 6_200_600, value)?;
            SourceStage::ListCatalog
        }
        "$listClusterCatalog" => SourceStage::ListClusterCatalog {
            shards: list_cluster_catalog(value, context)?,
        },
        "$querySettings" => {
            let ValueRef::Document(doc) = value else {
                return Err(Error::location(
                    7_746_800,
                    "$querySettings stage expects a document as argument",
                ));
            };
            let options = Options::read(stage, doc, &["showDebugQueryShape"])?;
            let debug_shape = options.strict_bool("showDebugQueryShape")?.unwrap_or(false);
            SourceStage::QuerySettings { debug_shape }
        }
        "$listSampledQueries" => {
            let ValueRef::Document(doc) = value else {
                return Err(Error::type_mismatch(
                    "$listSampledQueries expects a document as argument",
                ));
            };
            Options::read(stage, doc, &["namespace"])?.string("namespace")?;
            if context.namespace.db != ADMIN {
                return Err(Error::new(
                    ErrorCode::InvalidNamespace,
                    "$listSampledQueries must be run against the 'admin' database with {aggregate: 1}",
                ));
            }
            SourceStage::ListSampledQueries
        }
        "$listSearchIndexes" => list_search_indexes(value)?,
        "$queryStats" => SourceStage::QueryStats {
            hmac_key: query_stats(value, context)?,
        },
        "$sql" => SourceStage::Sql(Arc::new(sql(value, context)?)),
        _ => SourceStage::Unsupported(stage),
    };
    out.push(Stage::Source(source));
    Ok(())
}

/// `"SELECT ..."`, or `{query: "SELECT ... $1", parameters: [...]}`.
///
/// Errors: 14, 40414, 40415; 40602 elsewhere than first in the pipeline of an aggregate.
fn sql(value: ValueRef<'_>, context: &ParseContext<'_>) -> Result<SqlQuery> {
    if context.place != Place::Top {
        return Err(Error::location(
            40602,
            "$sql is only valid as the first stage of an aggregate's own pipeline",
        ));
    }
    match value {
        ValueRef::String(text) => Ok(SqlQuery {
            text: text.to_owned(),
            parameters: Vec::new(),
        }),
        ValueRef::Document(doc) => {
            let options = Options::read("$sql", doc, &["query", "parameters"])?;
            let Some(text) = options.string("query")? else {
                return Err(options.missing("query"));
            };
            let parameters = match options.given("parameters") {
                None => Vec::new(),
                Some(ValueRef::Array(values)) => values.iter().map(ValueRef::to_value).collect(),
                Some(other) => return Err(options.wrong_type("parameters", other, "array")),
            };
            Ok(SqlQuery {
                text: text.to_owned(),
                parameters,
            })
        }
        other => Err(Error::type_mismatch(format!(
            "$sql must be a string or an object, but found: {}",
            other.bson_type().alias()
        ))),
    }
}

/// Errors: 9 for what is no document, 40415, 14, 72 when both an id and a name are given.
fn list_search_indexes(value: ValueRef<'_>) -> Result<SourceStage> {
    let ValueRef::Document(doc) = value else {
        return Err(Error::failed_to_parse(format!(
            "The $listSearchIndexes stage specification must be an object. Found: {}",
            value.bson_type().alias()
        )));
    };
    let options = Options::read("$listSearchIndexes", doc, &["id", "name"])?;
    let (id, name) = (options.string("id")?, options.string("name")?);
    if id.is_some() && name.is_some() {
        return Err(Error::new(
            ErrorCode::InvalidOptions,
            "$listSearchIndexes takes either 'id' or 'name'",
        ));
    }
    Ok(SourceStage::ListSearchIndexes {
        id: id.map(Str::from),
        name: name.map(Str::from),
    })
}

/// The key by which `$queryStats` hides names.
///
/// Errors: 9 for what is no document or has other fields, 73 elsewhere than on `admin`, 40414, 14, 2.
fn query_stats(value: ValueRef<'_>, context: &ParseContext<'_>) -> Result<Option<Vec<u8>>> {
    if context.namespace.db != ADMIN || !context.namespace.coll.is_empty() {
        return Err(Error::new(
            ErrorCode::InvalidNamespace,
            "$queryStats must be run against the 'admin' database with {aggregate: 1}",
        ));
    }
    let ValueRef::Document(doc) = value else {
        return Err(Error::new(
            ErrorCode::FailedToParse,
            format!(
                "$queryStats value must be an object. Found: {}",
                value.bson_type().alias()
            ),
        ));
    };
    let options = Options::read("$queryStats", doc, &["transformIdentifiers"])?;
    let Some(transform) = options.document("transformIdentifiers")? else {
        return Ok(None);
    };
    let options = Options::read("$queryStats.transformIdentifiers", transform, &["algorithm", "hmacKey"])?;
    match options.string("algorithm")? {
        None => return Err(options.missing("algorithm")),
        Some("hmac-sha-256") => {}
        Some(other) => {
            return Err(Error::bad_value(format!(
                "Enumeration value '{other}' for field '$queryStats.transformIdentifiers.algorithm' is not a valid value."
            )));
        }
    }
    match options.given("hmacKey") {
        None => Err(options.missing("hmacKey")),
        Some(ValueRef::Binary { subtype: 8, bytes }) => Ok(Some(bytes.to_vec())),
        Some(other) => Err(options.wrong_type("hmacKey", other, "binData of subtype 8")),
    }
}

fn not_in_facet(stage: &str) -> Error {
    Error::location(
        40600,
        format!("{stage} is not allowed to be used within a $facet stage"),
    )
}

/// The error for a stage that needs what Nestor has not.
pub(super) fn refusal(stage: &str) -> Error {
    match stage {
        "$searchBeta" => Error::location(31082, format!("{stage} is not supported")),
        _ => Error::new(
            ErrorCode::CommandNotSupported,
            format!("{stage} is not supported on a server without shards"),
        ),
    }
}

/// Errors: 9621301 on a collection, 9621302 no document, 40415, 14, 40600.
/// Whether it is asked for `shards`.
fn list_cluster_catalog(value: ValueRef<'_>, context: &ParseContext<'_>) -> Result<bool> {
    const NAME: &str = "$listClusterCatalog";
    // On a collection this error comes before that of standing inside a $facet.
    if !context.namespace.coll.is_empty() {
        return Err(Error::location(
            9_621_301,
            format!("{NAME} must be run against the database with {{aggregate: 1}}, not a collection"),
        ));
    }
    if context.in_facet {
        return Err(not_in_facet(NAME));
    }
    let ValueRef::Document(doc) = value else {
        return Err(Error::location(9_621_302, format!("{NAME} must take an object")));
    };
    let names = ["shards", "balancingConfiguration", "tracked"];
    let options = Options::read(NAME, doc, &names)?;
    for name in names {
        // Null is of the wrong type here: it does not mean that the option is absent.
        if let Some(value) = doc.get(name).filter(|v| !matches!(v, ValueRef::Bool(_))) {
            return Err(options.wrong_type(name, value, "bool"));
        }
    }
    Ok(matches!(doc.get("shards"), Some(ValueRef::Bool(true))))
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

fn coll_stats(value: ValueRef<'_>) -> Result<CollStats> {
    let ValueRef::Document(doc) = value else {
        return Err(Error::location(
            5_447_000,
            format!("$collStats must take a nested object but found: {value:?}"),
        ));
    };
    // Checked in the order they are written. Of an option that is given twice the first counts that is not null.
    let mut out = CollStats::default();
    for (name, value) in doc {
        let spec = match (name, value) {
            ("latencyStats" | "storageStats" | "count" | "queryExecStats", ValueRef::Null | ValueRef::Undefined) => {
                continue;
            }
            ("latencyStats" | "storageStats" | "count" | "queryExecStats", ValueRef::Document(spec)) => spec,
            ("latencyStats" | "storageStats" | "count" | "queryExecStats", other) => {
                return Err(Error::type_mismatch(format!(
                    "BSON field '$collStats.{name}' is the wrong type '{}', expected type 'object'",
                    other.bson_type().alias()
                )));
            }
            _ => {
                return Err(Error::location(
                    40415,
                    format!("BSON field '$collStats.{name}' is an unknown field."),
                ));
            }
        };
        match name {
            "latencyStats" => {
                let options = Options::read("$collStats.latencyStats", spec, &["histograms"])?;
                // Null is of the wrong type here, too.
                if let Some(other) = spec.get("histograms").filter(|v| !matches!(v, ValueRef::Bool(_))) {
                    return Err(options.wrong_type("histograms", other, "bool"));
                }
                let with_histograms = spec.get("histograms").is_some_and(ValueRef::truthy);
                out.latency.get_or_insert(with_histograms);
            }
            "storageStats" => {
                check_scale(spec)?;
                let scale = spec.get("scale").and_then(safe_i64).unwrap_or(1);
                out.storage_scale.get_or_insert(scale.clamp(1, i32::MAX.into()));
            }
            _ if !spec.is_empty() => {
                return Err(Error::location(
                    31170,
                    format!("$collStats.{name} must be an empty object"),
                ));
            }
            "count" => out.count = true,
            _ => out.scans = true,
        }
    }
    Ok(out)
}

/// `scale` is a number of at least one; what else `storageStats` holds is not looked at.
fn check_scale(spec: DocRef<'_>) -> Result<()> {
    let Some(value) = spec.get("scale").filter(|v| !v.is_nullish()) else {
        return Ok(());
    };
    match Num::from_ref(value) {
        None => Err(Error::type_mismatch(format!(
            "BSON field '$collStats.storageStats.scale' is the wrong type '{}', expected types '[long, int, decimal, double]'",
            value.bson_type().alias()
        ))),
        Some(number) if long_of(number) < 1 => Err(Error::bad_value(format!(
            "BSON field '$collStats.storageStats.scale' value must be >= 1, actual value '{value:?}'"
        ))),
        Some(_) => Ok(()),
    }
}

fn plan_cache_stats(value: ValueRef<'_>) -> Result<SourceStage> {
    let ValueRef::Document(doc) = value else {
        return Err(Error::failed_to_parse("$planCacheStats value must be an object"));
    };
    if doc.iter().filter(|(name, _)| *name == "allHosts").count() > 1 {
        return Err(Error::failed_to_parse("$planCacheStats takes allHosts once"));
    }
    for (name, value) in doc {
        match (name, value) {
            ("allHosts", ValueRef::Bool(false)) => {}
            ("allHosts", ValueRef::Bool(true)) => {
                return Err(Error::location(
                    4_503_200,
                    "$planCacheStats stage supports allHosts parameter only for sharded clusters",
                ));
            }
            ("allHosts", other) => {
                return Err(Error::location(
                    13111,
                    format!("wrong type for field (allHosts) {} != bool", other.bson_type().alias()),
                ));
            }
            _ => {
                return Err(Error::failed_to_parse(format!(
                    "$planCacheStats does not take the option '{name}'"
                )));
            }
        }
    }
    Ok(SourceStage::PlanCacheStats)
}

fn current_op(value: ValueRef<'_>) -> Result<CurrentOp> {
    let ValueRef::Document(doc) = value else {
        return Err(Error::failed_to_parse(format!(
            "$currentOp options must be specified in an object, but found: {}",
            value.bson_type().alias()
        )));
    };
    let mut out = CurrentOp {
        all_users: false,
        idle_connections: false,
        idle_sessions: true,
        idle_cursors: false,
        truncated: false,
    };
    for (name, value) in doc {
        let mut no_difference = false;
        let option = match name {
            "allUsers" => &mut out.all_users,
            "idleConnections" => &mut out.idle_connections,
            "idleSessions" => &mut out.idle_sessions,
            "idleCursors" => &mut out.idle_cursors,
            "truncateOps" => &mut out.truncated,
            "localOps" | "backtrace" | "targetAllNodes" => &mut no_difference,
            _ => {
                return Err(Error::failed_to_parse(format!(
                    "unrecognized option '{name}' in $currentOp stage"
                )));
            }
        };
        let ValueRef::Bool(value) = value else {
            return Err(Error::failed_to_parse(format!(
                "the '{name}' parameter of the $currentOp stage must be a boolean value, but found: {}",
                value.bson_type().alias()
            )));
        };
        *option = value;
    }
    Ok(out)
}

fn sessions(stage: &'static str, value: ValueRef<'_>) -> Result<SessionsOf> {
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
    let mut users = Vec::new();
    for user in options
        .array("users")?
        .into_iter()
        .flatten()
        .filter(|user| !user.is_nullish())
    {
        let ValueRef::Document(user) = user else {
            return Err(options.wrong_type("users", user, "object"));
        };
        let user = Options::read("listSessionsUser", user, &["user", "db"])?;
        let name = user.string("user")?.ok_or_else(|| user.missing("user"))?;
        let db = user.string("db")?.ok_or_else(|| user.missing("db"))?;
        users.push((Str::from(name), Str::from(db)));
    }
    match (all, users.is_empty()) {
        (false, true) => Ok(SessionsOf::Caller),
        (true, true) => Ok(SessionsOf::All),
        (false, false) => Ok(SessionsOf::Users(users)),
        (true, false) => Err(Error::new(
            ErrorCode::UnsupportedFormat,
            format!("{stage} may not specify {{allUsers: true}} and {{users: [...]}} at the same time"),
        )),
    }
}
