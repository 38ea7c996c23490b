//! The parts that all reads share.

use crate::concern::read::Level;
use crate::names;
use crate::parameters::ColumnsUsed;
use crate::shape::Words;
use crate::statement::Statement;
use crate::statement::Wait;
use nestor_exec::Batch;
use nestor_exec::by_columns::Available;
use nestor_exec::catalog::id_collation;
use nestor_model::statement::manners;
use nestor_model::value::EMPTY_DOC;
use nestor_model::{DocRef, ErrorCode, Namespace, RawDoc, Result, ValueRef, bail};
use nestor_planner::timeseries::key_of_buckets;
use nestor_planner::{FindQuery, Hint};
use nestor_query::collation::Collator;
use nestor_query::env::{OpContext, Scope};
use nestor_query::expr::bind_variables;
use nestor_query::matcher::{Context, MatchExpr};
use nestor_storage::Guarantee;
use nestor_storage::{Collection, Index, Snapshot, View};
use std::sync::Arc;
use std::time::Duration;

/// How long a read without `maxTimeMS` waits for the log of the set.
const PATIENCE: Duration = Duration::from_secs(30);

/// The collection that a statement is about: by name, or by UUID.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// By name.
    Name(&'a str),
    /// By UUID.
    Uuid([u8; 16]),
}

impl Statement<'_> {
    /// A fresh snapshot to read from, once what the read concern demands is there.
    pub fn read_snapshot(&self) -> Result<Snapshot> {
        let concern = &self.terms.read_concern;
        if self.database.options.replica_set.is_none()
            && matches!(concern.level(), Level::Snapshot | Level::Linearizable)
        {
            bail!(
                NotAReplicaSet,
                "node needs to be a replica set member to use readConcern: {}",
                concern.level_name()
            );
        }
        if let Some(after) = concern.after_cluster_time {
            self.database.await_time("afterClusterTime", after, &self.interrupt)?;
        }
        if concern.level() == Level::Snapshot {
            let snapshot = self.database.snapshot_at(concern.at_cluster_time, &self.interrupt)?;
            let time = concern.at_cluster_time.unwrap_or_else(|| snapshot.optime());
            self.at_cluster_time.set(Some(time));
            return Ok(snapshot);
        }
        Ok(self.database.engine.snapshot())
    }

    /// Has the answer of a read on a member of a set wait until what it saw can never be rolled back, if the read concern wants that. The
    /// answer of a linearizable read waits for an entry that was committed after it: so the node was primary still.
    pub fn await_read_concern(&mut self) -> Result<()> {
        let engine = &self.database.engine;
        let is_over = self.effects.wait.is_some() || self.terms.in_transaction;
        if is_over || !engine.is_member() {
            return Ok(());
        }
        let lsn = match self.terms.read_concern.level() {
            Level::Majority | Level::Snapshot => engine.last_lsn(),
            Level::Linearizable => self.database.note("linearizable read")?,
            Level::Local | Level::Available | Level::Serializable => return Ok(()),
        };
        self.effects.wait = Some(Wait {
            lsn,
            guarantee: Guarantee::Committed,
            timeout: Some(self.interrupt.left().unwrap_or(PATIENCE)),
            is_read: true,
        });
        Ok(())
    }

    /// Whether it may read by columns.
    pub fn are_columns_used(&self) -> bool {
        self.database.node.parameters.columns() != ColumnsUsed::Off
    }

    /// The columns by which it may read a view.
    pub fn columns<'v>(&'v self, view: &'v dyn View) -> Option<Available<'v>> {
        let columns = &*self.database.columns;
        self.are_columns_used().then_some(Available { view, columns })
    }

    /// The namespace that `target` stands for in the statement's database.
    pub fn namespace(&self, view: &dyn View, target: Target<'_>) -> Result<Namespace> {
        match target {
            Target::Name(name) => names::collection(self.db(), name),
            Target::Uuid(uuid) => match view.catalog().by_uuid(&uuid) {
                Some(found) if found.ns.db == self.db() => Ok(found.ns.clone()),
                _ => bail!(
                    NamespaceNotFound,
                    "Unable to resolve UUID {} to a collection of database {}",
                    crate::uuid::Uuid(uuid),
                    self.db()
                ),
            },
        }
    }

    /// Time, randomness and the values of `let` for this operation, and the scope in which its expressions parse.
    pub fn operation(&self, variables: Option<RawDoc<'_>>) -> Result<(OpContext, Scope)> {
        self.operation_under(variables, None)
    }

    /// As [`Statement::operation`], with strings compared by `collator`.
    pub fn operation_under(
        &self,
        variables: Option<RawDoc<'_>>,
        collator: Option<Collator>,
    ) -> Result<(OpContext, Scope)> {
        let now_ms = crate::clock::now_ms();
        let mut op = OpContext::new(now_ms, self.database.last_time(), self.database.random()).with_collator(collator);
        if self.has_time_of_transaction {
            op.now_ms = self.transaction_started_ms().unwrap_or(now_ms);
        }
        op.caller.clone_from(&self.caller);
        op.library = Some((self.db().into(), self.database.script_library.clone()));
        let scope = match variables {
            Some(variables) => bind_variables(DocRef::Raw(variables), &mut op)?,
            None => Scope::new().with_collator(op.collator.clone()),
        };
        Ok((op, scope.with_strict_api(self.terms.strict_api)))
    }
}

/// Parses a filter into its normal form.
pub fn parse_filter(filter: Option<RawDoc<'_>>, scope: &mut Scope) -> Result<Arc<MatchExpr>> {
    parse_filter_in(filter, scope, Context::Find)
}

/// As [`parse_filter`], with the operators that `context` allows.
pub fn parse_filter_in(filter: Option<RawDoc<'_>>, scope: &mut Scope, context: Context) -> Result<Arc<MatchExpr>> {
    let filter = filter.map_or(EMPTY_DOC, DocRef::Raw);
    Ok(Arc::new(MatchExpr::parse_in(filter, scope, context)?.normalize()))
}

/// The query of a filter, in a scope that is under its collation, for the index of `hint`.
///
/// Errors: those of the filter.
pub fn filtered(words: &Words<'_>, hint: &Hint, scope: &mut Scope) -> Result<FindQuery> {
    let mut query = FindQuery::all(parse_filter(words.filter, scope)?);
    query.collation = scope.collator().cloned();
    hint.apply(&mut query);
    Ok(query)
}

/// Makes a `$text` of a query one for the text index of its collection.
///
/// Errors: those of [`FindQuery::bind_text`] and of reading the indexes.
pub fn bind_text(query: &mut FindQuery, collection: Option<&Collection>) -> Result<()> {
    match collection {
        Some(collection) if query.filter.text().is_some() => {
            query.bind_text(nestor_exec::catalog::indexes(collection)?)
        }
        _ => Ok(()),
    }
}

/// The collation of an operation: the one it gives, or else the default of its collection.
///
/// Errors: those of [`Collator::parse`].
pub fn collator(given: Option<RawDoc<'_>>, on: Option<&Collection>) -> Result<Option<Collator>> {
    match given.filter(|collation| !collation.is_empty()) {
        Some(collation) => Collator::parse(DocRef::Raw(collation)),
        None => on.map(id_collation).transpose().map(Option::flatten),
    }
}

/// As [`collator`], for one statement of a command: the command's scope under the statement's collation, and the
/// operation under it.
pub fn statement(
    op: &OpContext,
    scope: &Scope,
    given: Option<RawDoc<'_>>,
    on: Option<&Collection>,
) -> Result<(OpContext, Scope)> {
    let collator = collator(given, on)?;
    let own = op.with_vars(op.vars.clone()).with_collator(collator.clone());
    Ok((own, scope.clone().with_collator(collator)))
}

/// The order in which records are to be read, when a hint or sort names `$natural`.
pub fn natural(spec: DocRef<'_>) -> Result<Option<bool>> {
    let Some(direction) = spec.get("$natural") else {
        return Ok(None);
    };
    match nestor_model::number::safe_i64(direction) {
        Some(1) => Ok(Some(true)),
        Some(-1) => Ok(Some(false)),
        _ => bail!(BadValue, "$natural hint must be 1 or -1"),
    }
}

/// As [`check_hint`], for what is at a namespace, with `bottom` below it: key patterns of a time-series collection are those of
/// measurements, and mean indexes of its buckets.
///
/// Errors: also 67 for key patterns that no index of measurements has.
pub fn check_hint_at(hint: Option<ValueRef<'_>>, at: Option<&Collection>, bottom: Option<&Collection>) -> Result<Hint> {
    let is_series = at.is_some_and(|at| at.timeseries().is_some());
    match (bottom.and_then(Collection::buckets), hint) {
        (Some(series), Some(ValueRef::Document(key)))
            if is_series && key.iter().all(|(path, _)| !path.starts_with('$')) =>
        {
            let key = key_of_buckets(key, series)?;
            check_hint(Some(ValueRef::Document(key.as_ref())), bottom)
        }
        _ => check_hint(hint, bottom),
    }
}

/// The hint that demands a scan by columns.
const BY_COLUMNS: &str = "$columns";

/// Finds what a hint names: an index by its name or key pattern, `$natural`, or `$columns`. Without a collection only the form
/// of the hint is checked.
///
/// Errors: 2 when no index that plans may use is meant, 9 for other types.
pub fn check_hint(hint: Option<ValueRef<'_>>, collection: Option<&Collection>) -> Result<Hint> {
    let unknown = || {
        nestor_model::Error::new(
            ErrorCode::BadValue,
            "error processing query: planner returned error :: caused by :: hint provided does not correspond to an existing index",
        )
    };
    // A hidden index is no more there for a hint than for the planner.
    let of_index = |name: &str| Hint {
        index: Some(name.into()),
        ..Hint::default()
    };
    let named = |index: &Index| of_index(&index.name);
    let usable = |c: &'_ Collection| -> Vec<Arc<Index>> { c.indexes.iter().filter(|i| !i.hidden).cloned().collect() };
    match hint {
        None | Some(ValueRef::Undefined) => Ok(Hint::default()),
        Some(ValueRef::String(name)) => match collection {
            None => Ok(Hint::default()),
            Some(c) if c.options.clustered.as_ref().is_some_and(|key| key.name == name) => Ok(of_index(name)),
            Some(c) => usable(c)
                .iter()
                .find(|i| i.name == name)
                .map(|i| named(i))
                .ok_or_else(unknown),
        },
        Some(ValueRef::Document(doc)) if doc.is_empty() => Ok(Hint::default()),
        Some(ValueRef::Document(doc)) => {
            if let Some(forward) = natural(doc)? {
                if doc.iter().count() > 1 {
                    bail!(BadValue, "$natural hint must be the only field");
                }
                return Ok(Hint {
                    natural: Some(forward),
                    ..Hint::default()
                });
            }
            if let Some(given) = doc.get(BY_COLUMNS) {
                if doc.iter().count() > 1 || nestor_model::number::safe_i64(given) != Some(1) {
                    bail!(BadValue, "{BY_COLUMNS} hint must be 1 and the only field");
                }
                if collection.is_some_and(|own| own.is_clustered() || own.ns.is_oplog() || own.buckets().is_some()) {
                    bail!(BadValue, "{BY_COLUMNS} hint: no columns are made of this collection");
                }
                return Ok(Hint {
                    columns: true,
                    ..Hint::default()
                });
            }
            let Some(c) = collection else {
                return Ok(Hint::default());
            };
            let is_id = doc.iter().count() == 1 && doc.get("_id").and_then(nestor_model::number::safe_i64) == Some(1);
            if let (Some(key), true) = (&c.options.clustered, is_id) {
                return Ok(of_index(&key.name));
            }
            let found: Vec<Arc<Index>> = usable(c)
                .into_iter()
                .filter(|index| nestor_model::values_equal(&index.key_pattern, doc))
                .collect();
            match found.as_slice() {
                [] => Err(unknown()),
                [index] => Ok(named(index)),
                many => bail!(
                    IndexNotFound,
                    "Hint matched multiple indexes, must hint by index name. Matched: {} and {}",
                    many[0].name,
                    many[1].name
                ),
            }
        }
        Some(other) => bail!(
            FailedToParse,
            "Hint must be a string or an object, found {}",
            other.bson_type().alias()
        ),
    }
}

/// A batch over `view` for this statement.
pub fn batch<'v>(statement: &'v Statement<'_>, view: &'v dyn View, op: &'v OpContext, disk_use: bool) -> Batch<'v> {
    let dir = disk_use.then_some(&statement.database.spill_dir);
    let mut batch = Batch::new(view, op, &statement.interrupt)
        .with_spill_dir(dir)
        .with_plan_cache(Some(&statement.database.plan_cache))
        .with_oplog(&*statement.database.open_oplog)
        .with_log(&*statement.database.read_log, statement.database.images_since_ms());
    batch.columns = statement.are_columns_used().then_some(&statement.database.columns);
    // It spills before it may hold no more.
    let wanted = manners().operator_bytes_max / 2;
    batch.memory_bytes_max = statement.database.blocking_memory_bytes_max().min(wanted);
    batch
}
