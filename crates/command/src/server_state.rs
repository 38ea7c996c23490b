//! Stages that read the server's own state: `$collStats`, `$indexStats`, `$currentOp`, `$listSessions` and so on.

use crate::commands::collections::list_collections::describe;
use crate::commands::diagnostic::current_op::{
    Shown, describe as describe_operation, describe_cursor, describe_transaction,
};
use crate::commands::stats::coll_stats::{number, storage_stats};
use crate::facts::Table;
use crate::plans;
use nestor_database::database::Shared;
use nestor_database::observe::latency::CLASSES;
use nestor_database::oplog;
use nestor_database::query_stats;
use nestor_database::query_stats::transform::Transform;
use nestor_database::session_id::Owner;
use nestor_database::users::UserName;
use nestor_database::uuid::Uuid;
use nestor_exec::pipeline::{ServerState, resolve};
use nestor_exec::search::listed;
use nestor_model::namespace::ADMIN;
use nestor_model::{Document, Error, Namespace, Result, Timestamp, Value, bail, doc};
use nestor_query::env::OpContext;
use nestor_query::stage::{CollStats, CurrentOp, SessionsOf, SourceStage};
use nestor_storage::View;
use std::collections::HashMap;

/// The state that those stages read.
pub struct State {
    /// The part that the database keeps.
    pub shared: Shared,
    /// Which commands there are.
    pub commands: &'static Table,
}

impl ServerState for State {
    fn documents(
        &self,
        stage: &SourceStage,
        namespace: &Namespace,
        view: &dyn View,
        op: &OpContext,
    ) -> Result<Vec<Document>> {
        // Authorization has seen to it that nobody asks for others who may not.
        let caller = op.caller.as_ref().map(|caller| UserName::new(&caller.user, &caller.db));
        match stage {
            SourceStage::CollStats(asked) => Ok(vec![self.coll_stats(asked, namespace, view)?]),
            SourceStage::IndexStats => self.index_stats(namespace, view),
            SourceStage::ListCatalog => Ok(list_catalog(namespace, view)),
            SourceStage::CurrentOp(asked) => Ok(self.current_op(*asked, caller.as_ref())),
            SourceStage::ListLocalSessions(of) | SourceStage::ListSessions(of) => Ok(self.list_sessions(of, caller)),
            SourceStage::ListClusterCatalog { shards } => Ok(list_cluster_catalog(*shards, namespace, view)),
            SourceStage::PlanCacheStats => self.plan_cache_stats(namespace, view),
            SourceStage::QuerySettings { debug_shape } => Ok(self.list_query_settings(*debug_shape)),
            SourceStage::QueryStats { hmac_key } => Ok(self.list_query_stats(hmac_key.as_deref())),
            SourceStage::ListSearchIndexes { id, name } => Ok(listed(view, namespace, id.as_deref(), name.as_deref())),
            // No command samples queries, so there are none.
            SourceStage::ListSampledQueries => Ok(Vec::new()),
            // Its rows are the state of one statement only.
            SourceStage::Sql(_) => bail!(CommandNotSupported, "$sql is not supported here"),
            SourceStage::Unsupported(name) => bail!(CommandNotSupported, "{name} is not supported"),
        }
    }
}

impl State {
    fn coll_stats(&self, asked: &CollStats, ns: &Namespace, view: &dyn View) -> Result<Document> {
        let buckets = nestor_database::write::timeseries::found(view, ns)?.map(|(_, buckets)| buckets);
        let found = buckets.as_ref().or(view.catalog().get(ns));
        if found.is_some_and(|c| c.is_view()) {
            bail!(CommandNotSupportedOnView, "Namespace {ns} is a view, not a collection");
        }
        let mut out = doc! {
            "ns": ns.to_string(),
            "host": self.shared.host.clone(),
            "localTime": Value::DateTime(nestor_database::clock::now_ms()),
        };
        if let Some(with_histograms) = asked.latency {
            out.push("latencyStats", self.latency_stats(ns, with_histograms));
        }
        if asked.scans {
            let Some(collection) = found else {
                bail!(
                    NamespaceNotFound,
                    "Unable to retrieve queryExecStats in $collStats stage :: caused by :: Collection [{ns}] not found."
                );
            };
            let (total, tailable) = collection.state.scans();
            let scans = doc! { "total": total, "nonTailable": total - tailable };
            out.push("queryExecStats", doc! { "collectionScans": scans });
        }
        if let Some(scale) = asked.storage_scale {
            if found.is_none() {
                bail!(
                    NamespaceNotFound,
                    "Unable to retrieve storageStats in $collStats stage :: caused by :: Collection [{ns}] not found."
                );
            }
            out.push(
                "storageStats",
                storage_stats(&self.shared.engine, found.map(|c| &**c), view, scale)?,
            );
        }
        if asked.count {
            let Some(collection) = found else {
                bail!(
                    NamespaceNotFound,
                    "Unable to retrieve count in $collStats stage :: caused by :: Collection [{ns}] not found."
                );
            };
            let (documents, _) = oplog::sizes(&self.shared.engine, collection)?;
            out.push("count", number(documents));
        }
        Ok(out)
    }

    /// The time that operations on a collection took. Operations of a transaction are counted under their own kind.
    fn latency_stats(&self, ns: &Namespace, with_histograms: bool) -> Document {
        let usage = self.shared.top.get(ns);
        let mut out = Document::new();
        for (class, name) in CLASSES {
            let sum = usage.as_ref().map(|usage| usage.latency(class)).unwrap_or_default();
            out.push(name, sum.document(with_histograms));
        }
        out
    }

    fn index_stats(&self, ns: &Namespace, view: &dyn View) -> Result<Vec<Document>> {
        let resolved = resolve(ns, view, None)?;
        // What unpacks or shows buckets is no stage that anybody wrote.
        let series = resolved.collection.as_ref().and_then(|found| found.buckets().cloned());
        let is_series = view.catalog().get(ns).is_some_and(|found| found.timeseries().is_some());
        let has_buckets = view.catalog().get(ns).is_some_and(|found| found.buckets().is_some());
        if !resolved.stages.is_empty() && !is_series && !has_buckets {
            // The stages of the view come first.
            return Err(Error::location(
                40602,
                "$indexStats is only valid as the first stage in a pipeline",
            ));
        }
        let Some(collection) = resolved.collection else {
            return Ok(Vec::new());
        };
        Ok(collection
            .indexes
            .iter()
            .map(|index| {
                let used = collection.state.index_use(index.id);
                let since = used.since_ms.unwrap_or(self.shared.started_ms);
                doc! {
                    "name": index.name.clone(),
                    "key": key_shown(index, series.as_ref().filter(|_| is_series)),
                    "host": self.shared.host.clone(),
                    "accesses": doc! { "ops": used.count, "since": Value::DateTime(since) },
                    "spec": index.spec.listed().clone(),
                }
            })
            .collect())
    }

    /// The entries of the plan cache. Error: 50933 for a collection that does not exist.
    fn plan_cache_stats(&self, ns: &Namespace, view: &dyn View) -> Result<Vec<Document>> {
        let Some(collection) = view.catalog().get(ns) else {
            return Err(Error::location(50933, format!("collection '{ns}' does not exist")));
        };
        let entries = self.shared.plan_cache.list(collection);
        Ok(entries
            .iter()
            .map(|entry| plans::cache_entry(entry, &self.shared.host))
            .collect())
    }

    /// The operations that run and the transactions that wait for the next one, and what the options ask for besides.
    /// Without `allUsers` they are the caller's, if there is one.
    fn current_op(&self, asked: CurrentOp, caller: Option<&UserName>) -> Vec<Document> {
        let only = caller.filter(|_| !asked.all_users);
        let owner = only.map(Owner::of);
        let shown = Shown {
            idle: asked.idle_connections,
            truncated: asked.truncated,
        };
        let connections = self.shared.connections.all();
        let mut out: Vec<Document> = connections
            .iter()
            .filter(|slot| only.is_none() || slot.is_of(only))
            .filter_map(|slot| describe_operation(self.commands, &self.shared.host, slot, &self.shared.cursors, shown))
            .collect();
        if asked.idle_sessions {
            let idle = self.shared.sessions.idle_transactions();
            out.extend(
                idle.iter()
                    .filter(|(lsid, _)| owner.is_none_or(|owner| lsid.owner == owner))
                    .map(|(lsid, facts)| describe_transaction(&self.shared.host, *lsid, facts)),
            );
        }
        if asked.idle_cursors {
            out.extend(
                self.shared
                    .cursors
                    .idle()
                    .iter()
                    .filter(|cursor| only.is_none() || cursor.user.as_deref() == only)
                    .map(|cursor| describe_cursor(&self.shared.host, cursor, shown)),
            );
        }
        out
    }

    fn list_query_stats(&self, hmac_key: Option<&[u8]>) -> Vec<Document> {
        let transform = hmac_key.map(Transform::new);
        let now = Timestamp {
            secs: u32::try_from(nestor_database::clock::now_ms() / 1_000).unwrap_or(u32::MAX),
            inc: 0,
        };
        let entries = self.shared.query_stats.list();
        entries
            .into_iter()
            .map(|(key, metrics)| {
                let shown = match &transform {
                    Some(transform) => transform.key(key.document.as_ref()),
                    None => key.document.clone(),
                };
                doc! {
                    "key": shown,
                    "keyHash": query_stats::hash_text(&key.hash),
                    "queryShapeHash": key.shape_hash.as_str(),
                    "metrics": metrics,
                    "asOf": now,
                }
            })
            .collect()
    }

    fn list_query_settings(&self, debug_shape: bool) -> Vec<Document> {
        let all = self.shared.query_settings.all();
        all.values()
            .map(|entry| {
                let mut out = entry.to_document();
                if debug_shape {
                    out.push("debugQueryShape", entry.shape.clone());
                }
                out
            })
            .collect()
    }

    /// The caller's sessions, which are all without a caller, those of some users, or all.
    fn list_sessions(&self, of: &SessionsOf, caller: Option<UserName>) -> Vec<Document> {
        let named: Option<Vec<UserName>> = match of {
            SessionsOf::Users(users) => Some(users.iter().map(|(user, db)| UserName::new(user, db)).collect()),
            SessionsOf::All => None,
            SessionsOf::Caller => caller.map(|caller| vec![caller]),
        };
        let wanted: Option<Vec<Owner>> = named.as_ref().map(|users| users.iter().map(Owner::of).collect());
        // A session knows the digest of its user only; the names of those who are connected are known.
        let connected = self.shared.connections.all();
        let connected = connected.iter().filter_map(|slot| crate::lock(&slot.user).clone());
        let names: HashMap<Owner, String> = connected
            .chain(named.into_iter().flatten())
            .map(|user| (Owner::of(&user), user.to_string()))
            .collect();
        let now = nestor_database::clock::now_ms();
        let sessions = self.shared.sessions.all().into_iter();
        let shown = sessions.filter(|(lsid, _)| wanted.as_ref().is_none_or(|wanted| wanted.contains(&lsid.owner)));
        shown
            .map(|(lsid, idle)| {
                let last = now - i64::try_from(idle.as_millis()).unwrap_or(0);
                let mut out = doc! { "_id": lsid.to_document(), "lastUse": Value::DateTime(last) };
                if let Some(user) = names.get(&lsid.owner) {
                    out.push("user", user.as_str());
                }
                out
            })
            .collect()
    }
}

fn list_catalog(ns: &Namespace, view: &dyn View) -> Vec<Document> {
    let catalog = view.catalog();
    let wanted = |db: &str, coll: &str| ns.coll.is_empty() || (ns.db == db && ns.coll == coll);
    catalog
        .databases()
        .flat_map(|database| database.collections())
        .filter(|c| wanted(&c.ns.db, &c.ns.coll))
        .map(|c| {
            let mut out = doc! { "db": c.ns.db.clone(), "name": c.ns.coll.clone() };
            let described = describe(c, false);
            out.push("type", described.get("type").map(Value::from));
            if !c.is_view() {
                out.push("ident", format!("collection-{}", c.id.0));
                out.push(
                    "md",
                    doc! {
                        "ns": c.ns.to_string(),
                        "options": c.options.shown(),
                        "indexes": c.all_indexes().map(|i| Value::from(doc! {
                            "spec": i.spec.listed().clone(),
                            "ready": c.building_by_id(i.id).is_none(),
                            "multikey": i.is_multikey(),
                        })).collect::<Vec<_>>(),
                    },
                );
                out.push("uuid", Uuid(c.uuid).to_value());
            }
            if let Some(definition) = &c.options.view {
                out.push("viewOn", definition.on.clone());
                out.push("pipeline", definition.pipeline.clone());
            }
            out.push("ns", c.ns.to_string());
            out
        })
        .collect()
}

/// What `listCollections` tells, of the databases' collections: of one database, or of all when asked on `admin`.
fn list_cluster_catalog(with_shards: bool, ns: &Namespace, view: &dyn View) -> Vec<Document> {
    view.catalog()
        .databases()
        .flat_map(|database| database.collections())
        .filter(|c| ns.db == ADMIN || c.ns.db == ns.db)
        .map(|c| {
            let described = describe(c, false);
            let mut out = doc! { "ns": c.ns.to_string(), "db": c.ns.db.clone() };
            for name in ["type", "options", "info", "idIndex"] {
                if let Some(value) = described.get(name) {
                    out.push(name, value.to_value());
                }
            }
            out.push("sharded", false);
            if with_shards {
                out.push("shards", Vec::new());
            }
            out
        })
        .collect()
}

/// The key of an index, of one of buckets as that of measurements.
fn key_shown(index: &nestor_storage::Index, series: Option<&nestor_model::TimeSeries>) -> Document {
    let of_measurements =
        series.and_then(|series| nestor_planner::timeseries::key_of_measurements(index.key_pattern.as_ref(), series));
    of_measurements.unwrap_or_else(|| index.key_pattern.clone())
}
