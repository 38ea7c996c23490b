//! `WITH RECURSIVE`, and its clauses `SEARCH` and `CYCLE`.
//!
//! The clauses add columns: rows of the query that begins have the first values of these, each step computes them of the row that it comes of.
//!
//! | column | at first | in a step |
//! |---|---|---|
//! | `SEARCH DEPTH FIRST BY a SET s` | `ARRAY[ROW(a)]` | `s \|\| ROW(a)` |
//! | `SEARCH BREADTH FIRST BY a SET s` | `ROW(0, a)` | `ROW(depth of s + 1, a)` |
//! | `CYCLE a SET m TO x DEFAULT y USING p`: `m` | `y` | `x` if `ROW(a)` is in `p`, else `y` |
//! | and `p` | `ARRAY[ROW(a)]` | `p \|\| ROW(a)` |
//!
//! Of rows whose `m` is `x` there are no further steps.

use super::query::{cast_to, renamed};
use super::{Binder, Bound, Cte, CtePlan, ScopeColumn, ident};
use crate::error::fail;
use crate::expr::{Comparison, Expr, Node};
use crate::functions::{self, coerce};
use crate::parse;
use crate::parse::recursion::{Clauses, Cycle};
use crate::plan::{self, Plan};
use crate::types::Type;
use crate::types::cast::{self, Context};
use nestor_model::{Result, Value};
use nestor_planner::relation::{ApplyKind, JoinKind, Recursive, Relation};
use sqlparser::ast::{
    Expr as Ast, Ident, LimitClause, Query, Select, SelectItem, SetExpr, SetOperator, SetQuantifier, TableFactor,
    TableWithJoins, With,
};

pub(super) const NOT_RECURSIVE: &str = "WITH query is not recursive";

/// The columns that the clauses add.
struct Added {
    columns: Vec<ScopeColumn>,
    /// The columns that rows are searched by, and whether by depth.
    search: Option<(Vec<usize>, bool)>,
    cycle: Option<OfCycle>,
}

struct OfCycle {
    columns: Vec<usize>,
    /// What rows that close a cycle have, and others.
    values: (Expr, Expr),
}

impl Binder<'_> {
    /// A part of WITH RECURSIVE that may name itself.
    ///
    /// Errors: those of its queries; 42P19, 42804, 42601.
    pub(super) fn recursive(
        &mut self,
        name: &str,
        names: &[String],
        query: &Query,
        clauses: Option<&Clauses>,
    ) -> Result<Bound> {
        // A query of another form may not name itself.
        let plain = |binder: &mut Self, state, message: String| match clauses {
            Some(_) => fail("42601", NOT_RECURSIVE),
            None => binder.without(name, (state, message), |binder| binder.query(query)),
        };
        let (left, right, all) = match &*query.body {
            SetExpr::SetOperation {
                left,
                op: SetOperator::Union,
                set_quantifier,
                right,
            } => (left, right, matches!(set_quantifier, SetQuantifier::All)),
            _ => {
                let form = "does not have the form non-recursive-term UNION [ALL] recursive-term";
                return plain(self, "42P19", format!("recursive query \"{name}\" {form}"));
            }
        };
        let clause = match () {
            () if query.order_by.is_some() => Some("ORDER BY"),
            () if matches!(&query.limit_clause, Some(LimitClause::LimitOffset { limit: None, .. })) => Some("OFFSET"),
            () if query.limit_clause.is_some() || query.fetch.is_some() => Some("LIMIT"),
            () if !query.locks.is_empty() => Some("FOR UPDATE/SHARE"),
            () => None,
        };
        if let Some(clause) = clause {
            return plain(
                self,
                "0A000",
                format!("{clause} in a recursive query is not implemented"),
            );
        }
        if let Some(with) = &query.with {
            let begin = self.ctes.len();
            self.with(with)?;
            let inner = Query {
                with: None,
                ..query.clone()
            };
            let bound = self.recursive(name, names, &inner, clauses);
            self.ctes.truncate(begin);
            return bound;
        }
        let first = format!("recursive reference to query \"{name}\" must not appear within its non-recursive term");
        let mut base = self.without(name, ("42P19", first), |binder| {
            binder.deeper(|binder| binder.set(left))
        })?;
        if base.columns.iter().any(|column| column.ty == Type::Unknown) {
            let known = base.columns.iter().cloned().map(|column| match column.ty {
                Type::Unknown => ScopeColumn {
                    ty: Type::Text,
                    ..column
                },
                _ => column,
            });
            let columns: Vec<ScopeColumn> = known.collect();
            base = Bound {
                plan: cast_to(base, &columns)?,
                columns,
            };
        }
        let columns = renamed(base.columns.clone(), names)?;
        let added = clauses.map(|clauses| self.added(clauses, &columns)).transpose()?;
        let mut visible = columns.clone();
        visible.extend(added.iter().flat_map(|added| added.columns.clone()));
        let id = self.id();
        self.ctes.push(Cte {
            name: name.to_owned(),
            columns: visible.clone(),
            plan: CtePlan::Working(id),
            opens: None,
        });
        let step = self.deeper(|binder| match &added {
            None => binder.set(right),
            Some(added) => match select_with(name, left, right, added) {
                Ok(with_added) => binder.set(&with_added),
                Err(refused) => {
                    let plain = binder.set(right)?;
                    match plan::uses(
                        &plain.plan,
                        &|part| matches!(part, Relation::Working { id: own, .. } if *own == id),
                    ) {
                        0 => fail("42601", NOT_RECURSIVE),
                        _ => Err(refused),
                    }
                }
            },
        });
        self.ctes.pop();
        let step = step?;
        match plan::uses(
            &step.plan,
            &|part| matches!(part, Relation::Working { id: own, .. } if *own == id),
        ) {
            0 if clauses.is_some() => return fail("42601", NOT_RECURSIVE),
            0 => {
                let quantifier = if all { SetQuantifier::All } else { SetQuantifier::None };
                return self.combined(base, step, SetOperator::Union, quantifier);
            }
            1 => {}
            _ => {
                return fail(
                    "42P19",
                    format!("recursive reference to query \"{name}\" must not appear more than once"),
                );
            }
        }
        if let Some(within) = refused_within(&step.plan, id) {
            return fail(
                "42P19",
                format!("recursive reference to query \"{name}\" must not appear within {within}"),
            );
        }
        if step.columns.len() != visible.len() {
            return fail("42601", "each UNION query must have the same number of columns");
        }
        let mut exprs = Vec::new();
        for (i, (to, from)) in columns.iter().zip(&step.columns).enumerate() {
            let column = Expr::column(i, from.name.clone(), from.ty.clone());
            let overall = cast::common([&to.ty, &from.ty]);
            let cast = match overall.is_some_and(|overall| overall == to.ty) {
                true => coerce(column, &to.ty, Context::Implicit)?,
                false => {
                    return fail(
                        "42804",
                        format!(
                            "recursive query \"{name}\" column {} has type {} in non-recursive term but type {} overall",
                            i + 1,
                            to.ty,
                            from.ty
                        ),
                    );
                }
            };
            exprs.push(cast);
        }
        let (mut first, mut further) = (base.plan, step.plan);
        if let Some(added) = &added {
            let own = (0..columns.len()).map(|i| self.column(&columns, i));
            let mut begin: Vec<Expr> = own.collect();
            begin.extend(added.at_first(&columns)?);
            first = Relation::Project {
                input: Box::new(first),
                columns: begin,
            };
            if let Some(condition) = self.goes_on(added, columns.len())? {
                further = Relation::Filter {
                    input: Box::new(further),
                    condition,
                };
            }
            let values = added.in_step(&exprs)?;
            exprs.extend(values);
        }
        let step = Relation::Project {
            input: Box::new(further),
            columns: exprs,
        };
        let distinct = (!all).then(|| (0..visible.len()).map(|i| self.column(&visible, i)).collect());
        visible.iter_mut().for_each(|column| column.hidden = false);
        Ok(Bound {
            plan: Relation::Recursive(Box::new(Recursive {
                id,
                base: first,
                step,
                distinct,
            })),
            columns: visible,
        })
    }

    /// Binds what may not name a part of WITH.
    fn without<T>(
        &mut self,
        name: &str,
        (state, message): (&'static str, String),
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let begin = self.ctes.len();
        self.ctes.push(Cte {
            name: name.to_owned(),
            columns: Vec::new(),
            plan: CtePlan::Refused(state, message),
            opens: None,
        });
        let out = work(self);
        self.ctes.truncate(begin);
        out
    }

    /// Whether a FROM clause names the query around it that repeats itself.
    pub(super) fn names_recursion(&self, from: &[TableWithJoins]) -> bool {
        self.ctes.iter().enumerate().any(|(at, cte)| {
            let is_hidden = self.ctes[at + 1..].iter().any(|other| other.name == cte.name);
            matches!(cte.plan, CtePlan::Working(_)) && !is_hidden && called(&cte.name, from).is_some()
        })
    }

    /// The columns that clauses add to these. Within the query nobody sees them but who names them with their table.
    fn added(&mut self, clauses: &Clauses, columns: &[ScopeColumn]) -> Result<Added> {
        let hidden = |name: &Ident, ty: Type| ScopeColumn {
            hidden: true,
            ..ScopeColumn::new(ident(name), ty)
        };
        let is_used = |name: &Ident| columns.iter().any(|column| column.name == ident(name));
        let taken = |what: &str, name: &Ident| {
            let name = ident(name);
            fail(
                "42601",
                format!("{what} name \"{name}\" already used in WITH query column list"),
            )
        };
        let mut out = Added {
            columns: Vec::new(),
            search: None,
            cycle: None,
        };
        if let Some(search) = &clauses.search {
            let by = places(&search.columns, columns, "search")?;
            if is_used(&search.sequence) {
                return taken("search sequence column", &search.sequence);
            }
            let ty = match search.by_depth {
                true => Type::Record.array(),
                false => Type::Record,
            };
            out.columns.push(hidden(&search.sequence, ty));
            out.search = Some((by, search.by_depth));
        }
        if let Some(cycle) = &clauses.cycle {
            let of = places(&cycle.columns, columns, "cycle")?;
            let values = self.cycle_values(cycle)?;
            for (what, name) in [("cycle mark column", &cycle.mark), ("cycle path column", &cycle.path)] {
                if is_used(name) {
                    return taken(what, name);
                }
            }
            let same = |a: &Ident, b: &Ident| ident(a) == ident(b);
            if same(&cycle.mark, &cycle.path) {
                return fail(
                    "42601",
                    "cycle mark column name and cycle path column name are the same",
                );
            }
            if let Some(search) = &clauses.search {
                for (what, name) in [("mark", &cycle.mark), ("path", &cycle.path)] {
                    if same(&search.sequence, name) {
                        return fail(
                            "42601",
                            format!("search sequence column name and cycle {what} column name are the same"),
                        );
                    }
                }
            }
            out.columns.push(hidden(&cycle.mark, values.0.ty()));
            out.columns.push(hidden(&cycle.path, Type::Record.array()));
            out.cycle = Some(OfCycle { columns: of, values });
        }
        Ok(out)
    }

    /// What tells of cycles, and of none.
    fn cycle_values(&mut self, cycle: &Cycle) -> Result<(Expr, Expr)> {
        let Some((to, default)) = &cycle.values else {
            return Ok((Expr::bool(true), Expr::bool(false)));
        };
        let scope = super::Scope::default();
        let both = vec![self.expr(to, &scope)?, self.expr(default, &scope)?];
        let (mut both, _) = self.unified(both, "CYCLE")?;
        match (both.pop(), both.pop()) {
            (Some(default), Some(to)) => Ok((to, default)),
            _ => fail("42601", "a CYCLE clause has no values"),
        }
    }

    /// What has to hold of a row for a step to go on from it; its columns that were added stand from `at` on.
    fn goes_on(&mut self, added: &Added, at: usize) -> Result<Option<Expr>> {
        let Some(cycle) = &added.cycle else { return Ok(None) };
        let place = at + usize::from(added.search.is_some());
        let mark = Expr::column(place, "mark", cycle.values.0.ty());
        self.comparison(Comparison::NotEqual, mark, cycle.values.0.clone())
            .map(Some)
    }
}

impl Added {
    /// The values of rows that a recursion begins with.
    fn at_first(&self, columns: &[ScopeColumn]) -> Result<Vec<Expr>> {
        let row = |places: &[usize]| {
            places
                .iter()
                .map(|at| Expr::column(*at, "", columns[*at].ty.clone()))
                .collect()
        };
        let list = |places: &[usize]| Expr::from(Node::Array(vec![Node::Row(row(places)).into()], Type::Record));
        let mut out = Vec::new();
        if let Some((by, by_depth)) = &self.search {
            out.push(match by_depth {
                true => list(by),
                false => {
                    let mut items: Vec<Expr> = row(by);
                    items.insert(0, Expr::constant(Value::Int64(0), Type::Int8));
                    Node::Row(items).into()
                }
            });
        }
        if let Some(cycle) = &self.cycle {
            out.push(cycle.values.1.clone());
            out.push(list(&cycle.columns));
        }
        Ok(out)
    }

    /// The values of rows that come of a step: `values` are those of the columns of the query, behind which those stand that were added.
    fn in_step(&self, values: &[Expr]) -> Result<Vec<Expr>> {
        let row = |places: &[usize]| Expr::from(Node::Row(places.iter().map(|at| values[*at].clone()).collect()));
        let before = |at: usize| {
            let column = &self.columns[at];
            Expr::column(values.len() + at, column.name.clone(), column.ty.clone())
        };
        let (mut out, mut at) = (Vec::new(), 0);
        if let Some((by, by_depth)) = &self.search {
            out.push(match by_depth {
                true => functions::call("||", vec![before(at), row(by)])?,
                false => {
                    let depth = functions::call(functions::arrays::DEPTH, vec![before(at)])?;
                    let one = Expr::constant(Value::Int64(1), Type::Int8);
                    let mut items = vec![functions::call("+", vec![depth, one])?];
                    items.extend(by.iter().map(|at| values[*at].clone()));
                    Node::Row(items).into()
                }
            });
            at += 1;
        }
        if let Some(cycle) = &self.cycle {
            let path = before(at + 1);
            let found = functions::call("array_position", vec![path.clone(), row(&cycle.columns)])?;
            let (to, default) = cycle.values.clone();
            let ty = to.ty();
            out.push(
                Node::Case {
                    operand: None,
                    arms: vec![(Node::IsNull(found, true).into(), to)],
                    otherwise: Some(default),
                    ty,
                }
                .into(),
            );
            out.push(functions::call("||", vec![path, row(&cycle.columns)])?);
        }
        Ok(out)
    }
}

/// The parts of WITH, each behind those that it names. In WITH RECURSIVE one may name others that stand behind it; where it is no matter of
/// order (parts that name each other) they stay as they are written.
pub(super) fn in_order(with: &With) -> Vec<&sqlparser::ast::Cte> {
    let all: Vec<&sqlparser::ast::Cte> = with.cte_tables.iter().collect();
    if !with.recursive || all.len() < 2 {
        return all;
    }
    let names: Vec<String> = all.iter().map(|cte| ident(&cte.alias.name)).collect();
    let words: Vec<Vec<String>> = all.iter().map(|cte| parse::words(&cte.query.to_string())).collect();
    let needs = |at: usize, other: usize| at != other && words[at].contains(&names[other]);
    let forward = (0..all.len()).any(|at| (at + 1..all.len()).any(|other| needs(at, other)));
    if !forward {
        return all;
    }
    let mut out: Vec<usize> = Vec::new();
    while out.len() < all.len() {
        let is_next =
            |at: &usize| !out.contains(at) && (0..all.len()).all(|other| out.contains(&other) || !needs(*at, other));
        match (0..all.len()).find(is_next) {
            Some(at) => out.push(at),
            None => return all,
        }
    }
    out.into_iter().map(|at| all[at]).collect()
}

/// Within what a plan reads the rows of the last step of a recursion, if that may not be.
fn refused_within(plan: &Plan, id: usize) -> Option<&'static str> {
    let reads = |plan: &Plan| {
        plan::uses(
            plan,
            &|part| matches!(part, Relation::Working { id: own, .. } if *own == id),
        ) > 0
    };
    let found = match plan {
        Relation::Apply(apply) if reads(&apply.inner) => match &apply.kind {
            ApplyKind::Lateral { keeps: false } => None,
            ApplyKind::Lateral { keeps: true } => Some("an outer join"),
            _ => Some("a subquery"),
        },
        Relation::Join(join) => match join.kind {
            JoinKind::Left if reads(&join.right) => Some("an outer join"),
            JoinKind::Right if reads(&join.left) => Some("an outer join"),
            JoinKind::Full if reads(plan) => Some("an outer join"),
            _ => None,
        },
        Relation::Intersect(both) if both.except && (both.all || reads(&both.right)) && reads(plan) => Some("EXCEPT"),
        Relation::Intersect(both) if !both.except && both.all && reads(plan) => Some("INTERSECT"),
        _ => None,
    };
    found.or_else(|| plan.inputs().into_iter().find_map(|input| refused_within(input, id)))
}

/// The places of columns that a clause names.
///
/// Errors: 42601, 42701.
fn places(names: &[Ident], columns: &[ScopeColumn], clause: &str) -> Result<Vec<usize>> {
    let mut out = Vec::new();
    for name in names {
        let name = ident(name);
        let Some(at) = columns.iter().position(|column| column.name == name) else {
            return fail(
                "42601",
                format!("{clause} column \"{name}\" not in WITH query column list"),
            );
        };
        if out.contains(&at) {
            return fail("42701", format!("{clause} column \"{name}\" specified more than once"));
        }
        out.push(at);
    }
    Ok(out)
}

/// The SELECT of a step with the columns more that clauses have added to the rows which it comes of.
///
/// Errors: 42601, 0A000 for steps of other forms.
fn select_with(name: &str, left: &SetExpr, right: &SetExpr, added: &Added) -> Result<SetExpr> {
    if !matches!(left, SetExpr::Select(_) | SetExpr::Values(_)) {
        return fail(
            "42601",
            "with a SEARCH or CYCLE clause, the left side of the UNION must be a SELECT",
        );
    }
    let SetExpr::Select(select) = right else {
        return fail(
            "42601",
            "with a SEARCH or CYCLE clause, the right side of the UNION must be a SELECT",
        );
    };
    let Some(alias) = called(name, &select.from) else {
        return fail(
            "0A000",
            format!(
                "with a SEARCH or CYCLE clause, the recursive reference to WITH query \"{name}\" must be at the top level of its right-hand SELECT"
            ),
        );
    };
    let mut select: Select = (**select).clone();
    select.projection.extend(added.columns.iter().map(|column| {
        let name = Ident::with_quote('"', column.name.clone());
        SelectItem::UnnamedExpr(Ast::CompoundIdentifier(vec![alias.clone(), name]))
    }));
    Ok(SetExpr::Select(Box::new(select)))
}

/// What a part of WITH is called in a FROM clause.
fn called(name: &str, from: &[TableWithJoins]) -> Option<Ident> {
    fn of(name: &str, factor: &TableFactor) -> Option<Ident> {
        match factor {
            TableFactor::Table {
                name: own,
                alias,
                args: None,
                ..
            } => match own.0.as_slice() {
                [part] if part.as_ident().map(ident).as_deref() == Some(name) => match alias {
                    Some(alias) => Some(alias.name.clone()),
                    None => part.as_ident().cloned(),
                },
                _ => None,
            },
            TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => called(name, std::slice::from_ref(table_with_joins)),
            _ => None,
        }
    }
    let mut factors = from.iter().flat_map(|item| {
        let joined = item.joins.iter().map(|join| &join.relation);
        std::iter::once(&item.relation).chain(joined)
    });
    factors.find_map(|factor| of(name, factor))
}
