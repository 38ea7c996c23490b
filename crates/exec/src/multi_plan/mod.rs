//! Which of several plans a query runs by.
//!
//! When the plan cache has an active entry for queries of this shape, [`find`] binds its plan and makes no other. Otherwise all
//! candidates are made. With one there is nothing to decide, and it is built; between several [`MultiPlan`] decides at the first
//! pull by a trial run (`trial`). Rows that the winner gave on trial are given out first, nothing is computed twice. A cached
//! plan is on trial too, alone: only when it gave enough rows within its limit are they given out, otherwise all candidates are
//! made and start anew. So whatever is decided and however often, each row of the result comes once.

mod trial;

use crate::batch::Batch;
use crate::build::{build, note_use};
use crate::by_columns::{Available, Consumer, choose};
use crate::catalog::indexes;
use crate::operator::{BoxOperator, Choice, Counters, Operator, Report, Step};
pub use crate::plan_cache::is_cacheable;
use crate::plan_cache::{CreatedFrom, Decision, PlanCache, Tried, Tuning};
use crate::row::Row;
use crate::row_batch::{Filled, RowBatch};
use nestor_model::{DocRef, Error, ErrorCode, RawDocBuf, Result};
use nestor_planner::check::check_find;
use nestor_planner::choose::candidates_for;
use nestor_planner::find::{Wanted, no_plan};
use nestor_planner::rank::CANDIDATES_MAX;
use nestor_planner::reuse::{CacheKey, Kept, Solution};
use nestor_planner::shape::Written;
use nestor_planner::{FindQuery, NodeKind, PlanNode};
use nestor_storage::Collection;
use std::collections::VecDeque;
use std::sync::Arc;
use trial::{Candidate, Trial, Turn};

/// What finds `query` in `collection`, for what becomes of its rows; `written` is what its shape is made of. A plan that `cache`
/// keeps for queries of its shape is bound to it, and no other is made. Without `columns` documents are read one by one.
///
/// Error: 291 when a hint leaves no plan.
pub fn find(
    query: &FindQuery,
    wanted: Wanted,
    written: Written<'_>,
    collection: &Arc<Collection>,
    cache: Option<&PlanCache>,
    columns: Option<Available<'_>>,
) -> Result<BoxOperator> {
    let indexes = indexes(collection)?;
    if let Some(reused) = cache.and_then(|cache| cache.reuse(query, wanted, written, collection, indexes)) {
        let plans = vec![reused.plan];
        check_find(query, &plans, wanted)?;
        return run_kept(plans, reused.kept, query, wanted, written, collection);
    }
    let plans = by_columns(
        candidates_for(query, wanted, indexes),
        query,
        wanted,
        collection,
        columns,
    )?;
    run_one_of(plans, wanted, query, written, collection)
}

/// The plans of a find, or one by columns in their place where that is better.
///
/// Errors: those of reading.
pub fn by_columns(
    plans: Vec<PlanNode>,
    query: &FindQuery,
    wanted: Wanted,
    collection: &Collection,
    columns: Option<Available<'_>>,
) -> Result<Vec<PlanNode>> {
    match columns {
        Some(at) => choose(plans, query, Consumer::of(wanted, query), collection, at),
        None => Ok(plans),
    }
}

/// As [`find`], by one of these plans.
pub fn run_one_of(
    plans: Vec<PlanNode>,
    wanted: Wanted,
    query: &FindQuery,
    written: Written<'_>,
    collection: &Arc<Collection>,
) -> Result<BoxOperator> {
    check_find(query, &plans, wanted)?;
    run_checked(plans, query, wanted, written, collection)
}

/// As [`run_one_of`], with plans that were checked.
pub(crate) fn run_checked(
    plans: Vec<PlanNode>,
    query: &FindQuery,
    wanted: Wanted,
    written: Written<'_>,
    collection: &Arc<Collection>,
) -> Result<BoxOperator> {
    match plans.as_slice() {
        [] => Err(no_plan(query, &collection.ns)),
        [only] => build(only, collection),
        _ => {
            let mut multi = MultiPlan::new(plans, query.limit, collection);
            if is_cacheable(query) {
                let at = CacheKey::of(query, written, indexes(collection)?);
                multi.cache = Some(Box::new(CacheUse::new(at, query, wanted, written)));
            }
            Ok(Box::new(multi))
        }
    }
}

/// Runs by a plan that was kept, and was checked, as long as it does as well as it did.
pub(crate) fn run_kept(
    plans: Vec<PlanNode>,
    kept: Kept,
    query: &FindQuery,
    wanted: Wanted,
    written: Written<'_>,
    collection: &Arc<Collection>,
) -> Result<BoxOperator> {
    let mut multi = MultiPlan::new(plans, query.limit, collection);
    multi.cache = Some(Box::new(CacheUse::new(kept.at, query, wanted, written)));
    multi.kept_works = Some(kept.works);
    Ok(Box::new(multi))
}

/// Where a choice is kept, and what of its query may still be wanted: to keep it, and to make all plans when the one that was
/// kept does badly.
struct CacheUse {
    at: CacheKey,
    query: FindQuery,
    wanted: Wanted,
    filter: Option<RawDocBuf>,
    sort: Option<RawDocBuf>,
    projection: Option<RawDocBuf>,
    collation: Option<RawDocBuf>,
}

impl CacheUse {
    fn new(at: CacheKey, query: &FindQuery, wanted: Wanted, written: Written<'_>) -> Self {
        let owned = |part: Option<DocRef<'_>>| part.map(DocRef::to_raw);
        Self {
            at,
            query: query.clone(),
            wanted,
            filter: owned(written.filter),
            sort: owned(written.sort),
            projection: owned(written.projection),
            collation: owned(written.collation),
        }
    }

    fn created_from(&self) -> CreatedFrom {
        let written = Written {
            filter: part(&self.filter),
            sort: part(&self.sort),
            projection: part(&self.projection),
            collation: part(&self.collation),
        };
        CreatedFrom::of(written, &self.query)
    }

    fn index_filter_set(&self) -> bool {
        self.query.allowed.is_some() && !self.query.any_otherwise
    }
}

fn part(kept: &Option<RawDocBuf>) -> Option<DocRef<'_>> {
    kept.as_ref().map(|doc| doc.as_raw().as_doc())
}

/// Runs by one of several plans. Once it is decided it looks to others like the plan that it runs by.
pub struct MultiPlan {
    collection: Arc<Collection>,
    plans: Vec<PlanNode>,
    limit: Option<u64>,
    /// Set when it starts to decide.
    tuning: Tuning,
    /// Set when the only plan is a cached one: the units of work it was cached with.
    kept_works: Option<u64>,
    cache: Option<Box<CacheUse>>,
    state: State,
    /// Rows of the winner's trial that were not given out yet.
    rows: VecDeque<Row>,
    /// Of the rows.
    rows_kept: crate::kept::Kept,
    /// There are no rows but those.
    is_over: bool,
    /// Rows that the consumer said it will pull.
    expected: usize,
    /// Rows may come in any order.
    any_order: bool,
    tried: Vec<Tried>,
    replanned: bool,
    undecided: Counters,
}

enum State {
    Start,
    /// The cached plan, and how many units of work it may take.
    Cached(Candidate, u64),
    Trial(Trial),
    Running(usize, BoxOperator),
    Failed,
}

impl MultiPlan {
    /// Decides between `plans`, best guess first, without the cache. `limit` is that of their query.
    pub fn new(mut plans: Vec<PlanNode>, limit: Option<u64>, collection: &Arc<Collection>) -> Self {
        plans.truncate(CANDIDATES_MAX);
        Self {
            collection: collection.clone(),
            plans,
            limit,
            tuning: Tuning::default(),
            kept_works: None,
            cache: None,
            state: State::Start,
            rows: VecDeque::new(),
            rows_kept: crate::kept::Kept::default(),
            is_over: false,
            expected: 0,
            any_order: false,
            tried: Vec::new(),
            replanned: false,
            undecided: Counters::default(),
        }
    }

    /// Decides, if that is still to be done; `false` when the batch's budget was used up before.
    pub fn decide(&mut self, batch: &mut Batch<'_>) -> Result<bool> {
        loop {
            match std::mem::replace(&mut self.state, State::Failed) {
                State::Start => self.state = self.start(batch)?,
                State::Cached(candidate, works_max) => match self.follow(candidate, works_max, batch)? {
                    Followed::Decided => {}
                    Followed::Paused => return Ok(false),
                },
                State::Trial(mut trial) => {
                    if !trial.run(batch)? {
                        self.state = State::Trial(trial);
                        return Ok(false);
                    }
                    self.conclude(trial, batch)?;
                }
                State::Running(plan, root) => {
                    self.state = State::Running(plan, root);
                    self.tell_expected();
                    return Ok(true);
                }
                State::Failed => {
                    return Err(Error::new(ErrorCode::InternalError, "a plan was used after it failed"));
                }
            }
        }
    }

    /// The plans it decides between.
    pub fn plans(&self) -> &[PlanNode] {
        &self.plans
    }

    /// Which of the plans it runs by, once that is decided.
    pub fn chosen(&self) -> Option<usize> {
        match &self.state {
            State::Running(plan, _) => Some(*plan),
            _ => None,
        }
    }

    /// The plans in the order of their ranks: the one it runs by, then those that lost against it.
    pub fn ranked(&self) -> Vec<PlanNode> {
        let chosen = self.chosen();
        let losers = self
            .tried
            .iter()
            .map(|tried| tried.plan)
            .filter(|plan| Some(*plan) != chosen);
        let ranked = chosen.into_iter().chain(losers);
        ranked.filter_map(|plan| self.plans.get(plan).cloned()).collect()
    }

    /// How the candidates did on trial, the winner first; nothing without a trial.
    pub fn tried(&self) -> &[Tried] {
        &self.tried
    }

    fn start(&mut self, batch: &Batch<'_>) -> Result<State> {
        if let Some(cache) = batch.plan_cache {
            self.tuning = cache.tuning();
        }
        match (self.plans.as_slice(), self.kept_works) {
            ([only], Some(works)) => {
                let candidate = Candidate::new(0, only, &self.collection)?;
                Ok(State::Cached(candidate, self.tuning.works_cached(works)))
            }
            ([only], None) => Ok(State::Running(0, build(only, &self.collection)?)),
            _ => self.trial(),
        }
    }

    /// Gives the cached plan up for all there are.
    fn replan(&mut self, batch: &Batch<'_>) -> Result<State> {
        self.replanned = true;
        if let Some(cached) = &self.cache {
            if let Some(cache) = batch.plan_cache {
                cache.deactivate(&self.collection, cached.at.key);
            }
            let plans = candidates_for(&cached.query, cached.wanted, indexes(&self.collection)?);
            check_find(&cached.query, &plans, cached.wanted)?;
            self.plans = plans;
            self.plans.truncate(CANDIDATES_MAX);
        }
        self.trial()
    }

    fn trial(&self) -> Result<State> {
        let rows_max = self.tuning.rows_max(self.limit);
        let trial = Trial::new(&self.plans, rows_max, self.tuning, &self.collection)?;
        Ok(State::Trial(trial))
    }

    /// Goes on with the cached plan, until it has shown that it is still good or that it is not.
    fn follow(&mut self, mut candidate: Candidate, works_max: u64, batch: &mut Batch<'_>) -> Result<Followed> {
        let rows_max = self.tuning.rows_max(self.limit);
        loop {
            if batch.budget() == 0 {
                self.state = State::Cached(candidate, works_max);
                return Ok(Followed::Paused);
            }
            match candidate.work(rows_max, batch)? {
                Turn::On if candidate.works <= works_max => {}
                Turn::Enough => {
                    self.run_by(candidate);
                    return Ok(Followed::Decided);
                }
                Turn::On | Turn::Failed => {
                    self.state = self.replan(batch)?;
                    return Ok(Followed::Decided);
                }
            }
        }
    }

    /// Runs by the winner, and keeps the choice.
    fn conclude(&mut self, trial: Trial, batch: &Batch<'_>) -> Result<()> {
        let (winner, tried) = trial.decide(&self.plans)?;
        if let Some(cache) = batch.plan_cache {
            cache.count_trial(&tried);
            if let Some(cached) = &self.cache {
                let plan = &self.plans[winner.plan];
                let kept = (cached.at.key, winner.works);
                cache.put(&self.collection, batch.view.catalog(), kept, || Decision {
                    at: cached.at,
                    solution: Solution::of(plan),
                    plan: plan.clone(),
                    query: cached.created_from(),
                    index_filter_set: cached.index_filter_set(),
                    created_ms: batch.op.now_ms,
                    tried: tried.clone(),
                });
            }
        }
        self.tried = tried;
        self.run_by(winner);
        Ok(())
    }

    fn run_by(&mut self, winner: Candidate) {
        note_use(&self.plans[winner.plan], &self.collection);
        self.rows = winner.rows;
        self.rows_kept = winner.kept;
        self.is_over = winner.is_over;
        self.state = State::Running(winner.plan, winner.root);
        self.tell_expected();
    }

    fn tell_expected(&mut self) {
        if let State::Running(_, root) = &mut self.state {
            if self.any_order {
                root.in_any_order();
            }
            root.expect(self.expected.saturating_sub(self.rows.len()));
        }
    }

    fn root(&self) -> Option<&dyn Operator> {
        match &self.state {
            State::Running(_, root) => Some(&**root),
            _ => None,
        }
    }
}

/// The outcome of running a cached plan.
enum Followed {
    /// It is known how to go on.
    Decided,
    /// The batch's budget is used up.
    Paused,
}

impl Operator for MultiPlan {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        loop {
            if let State::Running(_, root) = &mut self.state {
                let left = self.rows.len();
                return match self.rows.pop_front() {
                    Some(row) => {
                        self.rows_kept.shrink_by_one_of(left);
                        Ok(Step::Row(row))
                    }
                    None if self.is_over => Ok(Step::Eof),
                    None => root.next(batch),
                };
            }
            if !self.decide(batch)? {
                return Ok(Step::Pause);
            }
        }
    }

    fn next_batch(&mut self, batch: &mut Batch<'_>, out: &mut RowBatch) -> Result<Filled> {
        loop {
            if let State::Running(_, root) = &mut self.state {
                while !out.is_full()
                    && let Some(row) = self.rows.pop_front()
                {
                    self.rows_kept.shrink_by_one_of(self.rows.len() + 1);
                    out.push(row);
                }
                return match out.is_full() {
                    true => Ok(Filled::Full),
                    false if self.is_over => Ok(Filled::Eof),
                    false => root.next_batch(batch, out),
                };
            }
            if !self.decide(batch)? {
                return Ok(Filled::Pause);
            }
        }
    }

    fn in_any_order(&mut self) {
        self.any_order = true;
        self.tell_expected();
    }

    fn expect(&mut self, rows: usize) {
        self.expected = rows;
        self.tell_expected();
    }

    fn is_done(&self) -> bool {
        self.rows.is_empty() && (self.is_over || self.root().is_some_and(Operator::is_done))
    }

    fn save(&mut self) {
        match &mut self.state {
            State::Cached(candidate, _) => candidate.save(),
            State::Trial(trial) => trial.save(),
            State::Running(_, root) => {
                self.rows_kept.rest();
                root.save();
            }
            State::Start | State::Failed => {}
        }
    }

    fn report(&self) -> Report<'_> {
        let decided = Choice {
            by_trial: !self.tried.is_empty(),
            replanned: self.replanned,
            cached_as: self.cache.as_ref().map(|cached| (cached.at.shape, cached.at.key)),
        };
        let report = match &self.state {
            State::Running(_, root) => root.report(),
            other => Report::new(NodeKind::MultiPlan, &self.undecided).holding(match other {
                State::Cached(candidate, _) => candidate.memory(),
                State::Trial(trial) => trial.memory(),
                _ => 0,
            }),
        };
        Report {
            choice: Some(decided),
            memory: report.memory + self.rows_kept.bytes(),
            ..report
        }
    }
}
