//! From statements as they were parsed to plans whose names and types are settled.
//!
//! Reading order: this file (scopes), [`names`], [`types`], [`from`] with [`partitions`], [`policies`] and [`sample`], [`query`] with [`recursion`], [`select`] with [`grouped`] and [`determined`], [`expr`] with [`call`], [`routines`], [`polymorphic`], [`compared`], [`window`] and [`places`] of errors, [`write`](mod@write) with [`conditions`], [`subscripts`], [`conflict`], [`through`], [`instead`] and [`always`], [`alter`].
//!
//! Subqueries, aggregates and window functions within expressions are bound where they stand, and stand in the expression as columns
//! with numbers from [`PENDING`] on; whoever builds the plan puts a node below that gives the column ([`Binder::flush`]).

pub mod alter;
mod always;
mod call;
mod compared;
mod conditions;
pub mod conflict;
pub mod declared;
mod determined;
pub mod domains;
pub mod duality;
pub mod entry;
pub mod exclusion;
mod expr;
mod files;
mod from;
mod grouped;
pub mod instead;
mod locks;
pub mod made;
pub mod merge;
mod named;
mod names;
pub mod numbers;
mod objects;
mod operators;
mod partitions;
mod places;
pub mod policies;
pub mod polymorphic;
mod query;
mod reached;
mod recursion;
mod rights;
mod routines;
mod rows;
mod sample;
mod select;
pub mod storage;
mod subscripts;
mod through;
pub mod types;
mod window;
pub mod write;

pub use made::{resolved, row_type};
pub use names::{ident, is_only, object_name, parts};

use self::policies::Finds;
use crate::catalog::schemas::PUBLIC;
use crate::catalog::{Catalog, Table};
use crate::error::{error, fail};
use crate::expr::{Expr, Node};
use crate::functions;
use crate::plan::{self, Plan};
use crate::types::Type;
use nestor_model::{Namespace, Result};
use nestor_planner::relation::{Apply, ApplyKind, Call, Relation};
use sqlparser::ast::{DataType, Ident, LockClause};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Number of the first column that stands for a subquery.
const PENDING: usize = 1 << 40;
/// Number of the first column that stands for an aggregate.
const AGGREGATE: usize = 1 << 41;
/// Number of the first column that stands for a window function.
const WINDOW: usize = 1 << 42;

/// Columns that a query or table gives.
#[derive(Clone, Debug)]
pub struct ScopeColumn {
    /// The table that it is of, as it is called here.
    pub table: Option<String>,
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// The modifier of its type.
    pub modifier: i32,
    /// Fields of the structs that it holds.
    pub fields: Vec<crate::catalog::Column>,
    /// `*` leaves it out, and so do names without a table.
    pub hidden: bool,
    /// An outer join may give null for the row of its table.
    pub optional: bool,
    /// The table that it is a column of, by its OID, and its number there from 1 on; zeros where it is computed.
    pub origin: (u32, u16),
}

impl ScopeColumn {
    /// A column of no table.
    pub fn new(name: impl Into<String>, ty: Type) -> Self {
        Self {
            table: None,
            name: name.into(),
            ty: ty.plain(),
            modifier: -1,
            fields: Vec::new(),
            hidden: false,
            optional: false,
            origin: (0, 0),
        }
    }
}

/// What names mean.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// The columns of rows.
    pub columns: Vec<ScopeColumn>,
}

/// A query bound: its plan and its columns.
#[derive(Clone, Debug)]
pub struct Bound {
    /// The plan.
    pub plan: Plan,
    /// Its columns.
    pub columns: Vec<ScopeColumn>,
}

/// A subquery that waits for a place in the plan.
struct Pending {
    inner: Plan,
    kind: ApplyKind<Expr>,
    ty: Type,
    /// The fields of what it gives, if that is a struct.
    fields: Vec<crate::catalog::Column>,
    /// It is this column of what another one gives.
    beside: Option<(usize, usize)>,
    /// How it is written, if it is a function that gives rows.
    written: Option<String>,
}

/// A name of WITH.
#[derive(Clone)]
struct Cte {
    name: String,
    columns: Vec<ScopeColumn>,
    plan: CtePlan,
    /// The number of its shared rows, if they may as well be computed where they are read.
    opens: Option<usize>,
}

#[derive(Clone)]
enum CtePlan {
    /// It is put in wherever it is named. How many scopes there were around it.
    Inline(Plan, usize),
    /// The rows of the last step of a recursion.
    Working(usize),
    /// It writes, and returns nothing.
    Nothing,
    /// It is named where it may not be: the state and the message of the error.
    Refused(&'static str, String),
}

/// What is collected of a SELECT while its expressions are bound.
#[derive(Default)]
struct Level {
    aggregates: Vec<Call<Expr>>,
    /// How each of `aggregates` is written.
    written: Vec<String>,
    windows: Vec<window::Pending>,
    /// Aggregates may stand here.
    allows_aggregates: bool,
    /// And window functions.
    allows_windows: bool,
    /// Within the arguments of an aggregate.
    in_aggregate: bool,
    /// Named windows.
    named: HashMap<String, sqlparser::ast::WindowSpec>,
}

/// Binds one statement.
pub struct Binder<'c> {
    /// Knows tables.
    pub catalog: &'c dyn Catalog,
    /// The tables that scans name by number.
    pub tables: Vec<Arc<Table>>,
    /// The collections whose rows are held.
    pub held: Vec<Namespace>,
    /// Types of parameters, as far as they are known; `Unknown` otherwise.
    pub params: Vec<Type>,
    /// The domains that parameters are values of, whose types are those behind them.
    domains: BTreeMap<usize, Type>,
    outer: Vec<Scope>,
    /// Which level each scope of `outer` is of; none where it is that of no SELECT.
    outer_levels: Vec<Option<usize>>,
    pending: Vec<Pending>,
    ctes: Vec<Cte>,
    levels: Vec<Level>,
    next_id: usize,
    depth: usize,
    /// Functions that somebody has made and that were put in so far.
    routines: usize,
    /// Routines are called that are no queries.
    pub calls: bool,
    /// What is bound is a CALL.
    takes_procedures: bool,
    /// The expression is a default.
    is_default: bool,
    /// The columns that a statement defines for a function in FROM.
    defined_for_routine: Option<Vec<(String, Type)>>,
    /// The duality view that a statement turned out to write to, which is no matter of the binder's.
    pub duality: Option<Arc<Table>>,
    /// Parts of the WITH around the statement may write: it is only asked for the columns that it gives.
    pub describes: bool,
    /// The schema of the view whose query is bound: names that say no schema are those of it, and of `public`.
    view_schema: Option<String>,
    /// The tables whose policies are bound, by schema and name, the innermost last.
    policies_of: Vec<(String, String)>,
    /// The locks of the SELECT whose FROM is bound.
    locks: Vec<LockClause>,
    /// What becomes of the rows of the table that a view is written through to.
    writes: Finds,
    /// The names of tables that say no schema, with the one that each was found in; none unless somebody asks for them.
    pub named: Option<Vec<(Ident, String)>>,
}

/// Levels of queries within queries.
const QUERY_DEPTH_MAX: usize = 40;

impl<'c> Binder<'c> {
    /// Binds with these types of parameters.
    pub fn new(catalog: &'c dyn Catalog, params: Vec<Type>) -> Self {
        Self {
            catalog,
            tables: Vec::new(),
            held: Vec::new(),
            params,
            domains: BTreeMap::new(),
            outer: Vec::new(),
            outer_levels: Vec::new(),
            pending: Vec::new(),
            ctes: Vec::new(),
            levels: Vec::new(),
            next_id: 1,
            depth: 0,
            routines: 0,
            calls: false,
            takes_procedures: false,
            is_default: false,
            defined_for_routine: None,
            describes: false,
            duality: None,
            view_schema: None,
            policies_of: Vec::new(),
            locks: Vec::new(),
            writes: Finds::default(),
            named: None,
        }
    }

    /// Binds the query of a view of a schema.
    pub fn of_view(mut self, schema: &str) -> Self {
        self.view_schema = Some(schema.to_owned());
        self
    }

    /// The type of a name, and its modifier.
    ///
    /// Errors: those of [`types::data_type`].
    pub fn data_type(&self, ty: &DataType) -> Result<(Type, i32)> {
        let failed = std::cell::RefCell::new(None);
        let known = types::known_type(ty, &|schema, name| {
            let made = self.catalog.made_type(schema, name);
            made.or_else(|| match self.table(schema, name) {
                Ok(table) => table.map(|table| made::rows(&table)),
                Err(error) => {
                    failed.replace(Some(error));
                    None
                }
            })
        });
        match failed.into_inner() {
            Some(error) => Err(error),
            None => known,
        }
    }

    /// The table of a name.
    ///
    /// Errors: those of reading the catalog.
    fn table(&self, schema: Option<&str>, name: &str) -> Result<Option<Arc<Table>>> {
        let (None, Some(own)) = (schema, &self.view_schema) else {
            return self.catalog.table(schema, name);
        };
        for schema in ["pg_catalog", own, PUBLIC] {
            if let Some(table) = self.catalog.table(Some(schema), name)? {
                return Ok(Some(table));
            }
        }
        Ok(None)
    }

    fn id(&mut self) -> usize {
        self.next_id += 1;
        self.next_id
    }

    fn level(&mut self) -> Result<&mut Level> {
        self.levels
            .last_mut()
            .ok_or_else(|| error("XX000", "an expression stands in no query"))
    }

    /// Runs `work` one query deeper.
    fn deeper<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= QUERY_DEPTH_MAX {
            return fail("54001", "queries nest too deep");
        }
        self.depth += 1;
        let out = work(self);
        self.depth -= 1;
        out
    }

    /// Runs `work` where `scope` is that of the query around.
    fn within<T>(&mut self, scope: &Scope, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.outer.push(scope.clone());
        self.outer_levels.push(self.levels.len().checked_sub(1));
        let pending = std::mem::take(&mut self.pending);
        let out = self.deeper(work);
        self.pending = pending;
        self.outer_levels.pop();
        self.outer.pop();
        out
    }

    /// A column that stands for what `inner` gives for the row.
    fn subquery(&mut self, inner: Plan, kind: ApplyKind<Expr>, ty: Type) -> Expr {
        self.pending.push(Pending {
            inner,
            kind,
            ty: ty.clone(),
            fields: Vec::new(),
            beside: None,
            written: None,
        });
        Expr::column(PENDING + self.pending.len() - 1, "subquery", ty)
    }

    /// How many functions that give rows have been met so far.
    fn giving_rows(&self) -> usize {
        self.pending.iter().filter(|pending| pending.written.is_some()).count()
    }

    /// Refuses functions that give rows, of which there were so many before, in a clause.
    ///
    /// Errors: 0A000.
    fn check_no_rows(&self, before: usize, clause: &str) -> Result<()> {
        match self.giving_rows() > before {
            true => fail("0A000", format!("set-returning functions are not allowed in {clause}")),
            false => Ok(()),
        }
    }

    /// Lets the functions of one select list that give rows, from `begin` on, give them beside each other. One whose arguments wait for
    /// another's rows stays behind that.
    fn in_step(&mut self, begin: usize) {
        let mut leader = None;
        let (mut tables, mut members) = (Vec::new(), Vec::new());
        for (at, pending) in self.pending.iter().enumerate().skip(begin) {
            let (Relation::Function { call, args, width: 1 }, ApplyKind::Lateral { keeps: false }) =
                (&pending.inner, &pending.kind)
            else {
                continue;
            };
            let mut waits = false;
            for arg in args {
                arg.for_each_outer(&mut |_, index| {
                    let other = index.checked_sub(PENDING).and_then(|other| self.pending.get(other));
                    waits |= other.is_some_and(|other| other.written.is_some());
                });
            }
            if !waits {
                leader.get_or_insert(at);
                members.push(at);
                tables.push(functions::Table {
                    call: call.clone(),
                    args: args.clone(),
                    columns: vec![(String::new(), pending.ty.clone())],
                });
            }
        }
        let (Some(leader), true) = (leader, tables.len() > 1) else {
            return;
        };
        let width = tables.len();
        let all = functions::side_by_side(tables);
        self.pending[leader].inner = Relation::Function {
            call: all.call,
            args: all.args,
            width,
        };
        for (column, at) in members.into_iter().enumerate().skip(1) {
            self.pending[at].beside = Some((leader, column));
        }
    }

    /// Puts nodes on `plan` that give the columns which stand for subqueries in `exprs`, and puts their numbers into these.
    fn flush(&mut self, mut plan: Plan, exprs: &mut [Expr]) -> Plan {
        loop {
            // Subqueries whose own expressions have subqueries wait for those.
            let mut wanted: BTreeSet<usize> = BTreeSet::new();
            for expr in exprs.iter() {
                expr.for_each_column(&mut |index| {
                    if (PENDING..AGGREGATE).contains(&index) {
                        let beside = self.pending.get(index - PENDING).and_then(|pending| pending.beside);
                        wanted.insert(beside.map_or(index, |(first, _)| PENDING + first));
                    }
                });
            }
            let Some((first, mut when)) = reached::next(&wanted, exprs) else {
                return plan;
            };
            let Some(pending) = self.pending.get(first - PENDING) else {
                return plan;
            };
            let (mut inner, mut kind) = (pending.inner.clone(), pending.kind.clone());
            let mut waits: Vec<usize> = Vec::new();
            plan::map(&inner, 0, &mut |expr, depth| {
                expr.for_each_outer(&mut |levels, index| {
                    if levels == depth + 1 && (PENDING..AGGREGATE).contains(&index) && !waits.contains(&index) {
                        waits.push(index);
                    }
                });
                expr.clone()
            });
            if matches!(kind, ApplyKind::Lateral { .. }) {
                when = None;
            }
            if !waits.is_empty() {
                let column = |index: &usize| {
                    self.pending
                        .get(index - PENDING)
                        .map(|own| Expr::column(*index, "subquery", own.ty.clone()))
                };
                let mut before: Vec<Expr> = waits.iter().filter_map(column).collect();
                plan = self.flush_within(plan, &mut before, &when);
                inner = plan::map(&inner, 0, &mut |expr, depth| {
                    plan::replace_outer(expr, depth, &|index, name, ty| match waits
                        .iter()
                        .position(|own| *own == index)
                        .and_then(|at| before.get(at))
                    {
                        Some(found) => found.clone(),
                        None => Expr::column(index, name, ty.clone()),
                    })
                });
            }
            if let ApplyKind::In { probe } = &mut kind {
                plan = self.flush_within(plan, probe, &when);
            }
            let at = plan.width();
            let correlated = plan::is_correlated(&inner);
            plan = Relation::Apply(Box::new(Apply {
                input: plan,
                inner,
                kind,
                correlated,
                told_by: None,
                when,
            }));
            for expr in exprs.iter_mut() {
                *expr = expr.with_columns(&|index| {
                    let pending = self.pending.get(index.checked_sub(PENDING)?)?;
                    let column = match pending.beside {
                        Some((leader, column)) if PENDING + leader == first => column,
                        None if index == first => 0,
                        _ => return None,
                    };
                    Some(Expr::column(at + column, "subquery", pending.ty.clone()))
                });
            }
        }
    }

    /// As [`Binder::flush`], of a condition on rows: those that hold together are looked at in any order.
    fn flush_condition(&mut self, plan: Plan, condition: &mut Expr) -> Plan {
        let mut all = condition.conjuncts();
        let plan = self.flush(plan, &mut all);
        *condition = Expr::all(all);
        plan
    }

    /// As [`Binder::flush`], of expressions that are only computed for the rows for which a condition holds, if there is one.
    fn flush_within(&mut self, plan: Plan, exprs: &mut Vec<Expr>, when: &Option<Expr>) -> Plan {
        let Some(when) = when else {
            return self.flush(plan, exprs);
        };
        let mut guarded: Vec<Expr> = exprs.iter().map(|expr| reached::guarded(when, expr)).collect();
        let plan = self.flush(plan, &mut guarded);
        *exprs = guarded.iter().map(reached::unguarded).collect();
        plan
    }

    /// The types of parameters as clients are told of them: domains where they are values of such.
    pub fn declared_params(self) -> Vec<Type> {
        let mut out = self.params;
        for (number, domain) in self.domains {
            if let Some(ty) = out.get_mut(number) {
                *ty = domain;
            }
        }
        out
    }

    /// Makes a note of the type that a parameter turned out to have.
    fn note_params(&mut self, expr: &Expr) {
        if let Node::Cast { arg, to, .. } = expr.node()
            && to.is_constrained()
            && let Node::Param(number, _) = uncast(arg).node()
            && self.params.get(*number).is_none_or(|ty| *ty == Type::Unknown)
        {
            self.domains.insert(*number, to.clone());
        }
        if let Node::Param(number, ty) = expr.node() {
            if *ty != Type::Unknown {
                if self.params.len() <= *number {
                    self.params.resize(*number + 1, Type::Unknown);
                }
                if self.params[*number] == Type::Unknown {
                    self.params[*number] = ty.clone();
                }
            }
        }
        for part in expr.parts() {
            self.note_params(part);
        }
    }
}

/// An expression without the casts that nobody wrote.
fn uncast(expr: &Expr) -> &Expr {
    match expr.node() {
        Node::Cast {
            arg, explicit: false, ..
        } => uncast(arg),
        _ => expr,
    }
}
