//! Groups: what expressions over them may use, and the node that makes them.

use super::window::Pending;
use super::{AGGREGATE, Binder, PENDING, Scope, WINDOW, determined, reached};
use crate::aggregates;
use crate::error::{error, fail};
use crate::expr::{Expr, Node};
use crate::plan::{self, Plan};
use crate::types::Type;
use nestor_model::{Result, Value};
use nestor_planner::relation::{ApplyKind, Call, Relation};
use std::cell::RefCell;
use std::collections::BTreeSet;

impl Binder<'_> {
    /// The subqueries that stand in expressions over groups, and in each other.
    fn pending_of(&self, exprs: &[Expr], windows: &mut [Pending]) -> Result<Vec<usize>> {
        let mut wanted: Vec<usize> = Vec::new();
        let note = |wanted: &mut Vec<usize>, index: usize| {
            if (PENDING..AGGREGATE).contains(&index) && !wanted.contains(&(index - PENDING)) {
                wanted.push(index - PENDING);
            }
        };
        for expr in exprs {
            expr.for_each_column(&mut |index| note(&mut wanted, index));
        }
        for window in windows {
            window.for_each(&mut |expr| {
                expr.for_each_column(&mut |index| note(&mut wanted, index));
                Ok(())
            })?;
        }
        let mut at = 0;
        while let Some(pending) = wanted.get(at).and_then(|number| self.pending.get(*number)) {
            if let Some((leader, _)) = pending.beside {
                note(&mut wanted, PENDING + leader);
            }
            if let ApplyKind::In { probe } = &pending.kind {
                for expr in probe {
                    expr.for_each_column(&mut |index| note(&mut wanted, index));
                }
            }
            plan::map(&pending.inner, 0, &mut |expr, depth| {
                expr.for_each_outer(&mut |levels, index| {
                    if levels == depth + 1 {
                        note(&mut wanted, index);
                    }
                });
                expr.clone()
            });
            at += 1;
        }
        Ok(wanted)
    }

    /// What the columns are computed by that have one value in each group without being grouped by, and that the expressions use.
    fn determined(
        &mut self,
        plan: &Plan,
        (groups, sets): (&[Expr], &[Vec<usize>]),
        exprs: &[Expr],
        windows: &mut [Pending],
    ) -> Result<Vec<(usize, Call<Expr>)>> {
        let mut used: BTreeSet<usize> = BTreeSet::new();
        let mut note = |expr: &Expr| {
            expr.for_each_column(&mut |index| {
                used.insert(index);
            })
        };
        exprs.iter().for_each(&mut note);
        for window in windows.iter_mut() {
            window.for_each(&mut |expr| {
                note(expr);
                Ok(())
            })?;
        }
        for at in self.pending_of(exprs, windows)? {
            let pending = &self.pending[at];
            if let ApplyKind::In { probe } = &pending.kind {
                probe.iter().for_each(|expr| {
                    expr.for_each_column(&mut |index| {
                        used.insert(index);
                    })
                });
            }
            plan::map(&pending.inner, 0, &mut |expr, depth| {
                expr.for_each_outer(&mut |levels, index| {
                    if levels == depth + 1 {
                        used.insert(index);
                    }
                });
                expr.clone()
            });
        }
        let is_group = |index: usize| {
            let is_it = |group: &Expr| matches!(group.node(), Node::Column { index: own, .. } if *own == index);
            groups.iter().any(is_it)
        };
        used.retain(|index| *index < PENDING && !is_group(*index));
        if used.is_empty() {
            return Ok(Vec::new());
        }
        let of_all = (0..groups.len()).filter(|at| sets.iter().all(|set| set.contains(at)));
        let of_all: Vec<Expr> = of_all.map(|at| groups[at].clone()).collect();
        let found = determined::by_keys(plan, &self.tables, &of_all);
        let mut out = Vec::new();
        for index in used.intersection(&found) {
            let Some(ty) = determined::type_of(plan, &self.tables, *index) else {
                continue;
            };
            let bound = aggregates::bind("any_value", vec![Expr::column(*index, "", ty)], false)?;
            let call = Call {
                function: bound.function,
                args: bound.args,
                distinct: false,
                filter: None,
                order: Vec::new(),
            };
            out.push((*index, call));
        }
        Ok(out)
    }

    /// Groups below the expressions, which then are over groups.
    pub(super) fn aggregated(
        &mut self,
        plan: Plan,
        (groups, sets, mut calls): (Vec<Expr>, Vec<Vec<usize>>, Vec<Call<Expr>>),
        scope: &Scope,
        (exprs, windows): (&mut [Expr], &mut [Pending]),
    ) -> Result<Plan> {
        let mut computed = Vec::new();
        for (index, call) in self.determined(&plan, (&groups, &sets), exprs, windows)? {
            computed.push((index, groups.len() + calls.len()));
            calls.push(call);
        }
        // Subqueries in arguments stand below.
        let mut below: Vec<Expr> = Vec::new();
        for call in &calls {
            // Rows that FILTER leaves out have no arguments.
            let own = call.args.iter().chain(call.order.iter().map(|key| &key.by));
            match &call.filter {
                Some(filter) => {
                    below.push(filter.clone());
                    below.extend(own.map(|expr| reached::guarded(filter, expr)));
                }
                None => below.extend(own.cloned()),
            }
        }
        below.extend(groups.iter().cloned());
        let plan = self.flush(plan, &mut below);
        let keys = below.split_off(below.len() - groups.len());
        let mut next = below.into_iter();
        for call in &mut calls {
            let is_guarded = call.filter.is_some();
            let own = call.args.iter_mut().chain(call.order.iter_mut().map(|key| &mut key.by));
            for (expr, found) in call.filter.iter_mut().zip(&mut next) {
                *expr = found;
            }
            for (expr, found) in own.zip(&mut next) {
                *expr = if is_guarded { reached::unguarded(&found) } else { found };
            }
        }
        let sets = if sets.is_empty() {
            vec![(0..groups.len()).collect()]
        } else {
            sets
        };
        let count = groups.len();
        // GROUPING tells of the set that a row is of, whose number is the last column.
        let set_column = count + calls.len();
        let masks: Vec<Vec<bool>> = sets
            .iter()
            .map(|set| (0..count).map(|i| set.contains(&i)).collect())
            .collect();
        let grouping = Grouping {
            groups: &groups,
            computed: &computed,
            set_column,
            masks: &masks,
            scope,
        };
        let grouped = |expr: &Expr| grouping.over(expr);
        for expr in exprs.iter_mut() {
            *expr = grouped(expr)?;
        }
        for window in windows.iter_mut() {
            window.for_each(&mut |expr| {
                *expr = grouped(expr)?;
                Ok(())
            })?;
        }
        for at in self.pending_of(exprs, windows)? {
            let pending = &mut self.pending[at];
            if let ApplyKind::In { probe } = &mut pending.kind {
                for expr in probe {
                    *expr = grouped(expr)?;
                }
            }
            let failed = RefCell::new(None);
            let inner = plan::map(&pending.inner, 0, &mut |expr, depth| {
                plan::replace_outer(expr, depth, &|index, name, ty| {
                    let column = Expr::column(index, name, ty.clone());
                    match grouping.place(&column) {
                        Some(at) => Expr::column(at, name, ty.clone()),
                        None if (AGGREGATE..WINDOW).contains(&index) => {
                            Expr::column(groups.len() + index - AGGREGATE, name, ty.clone())
                        }
                        None if index >= PENDING => column,
                        None => {
                            failed.borrow_mut().get_or_insert_with(|| grouping.shown(index, name));
                            column
                        }
                    }
                })
            });
            if let Some(name) = failed.into_inner() {
                return fail(
                    "42803",
                    format!("subquery uses ungrouped column \"{name}\" from outer query"),
                );
            }
            pending.inner = inner;
        }
        Ok(Relation::Aggregate {
            input: Box::new(plan),
            groups: keys,
            sets,
            calls,
            limit: None,
        })
    }
}

fn ungrouped(column: &str) -> String {
    format!("column \"{column}\" must appear in the GROUP BY clause or be used in an aggregate function")
}

/// What groups have: columns that expressions over them may use.
struct Grouping<'g> {
    groups: &'g [Expr],
    /// Columns of rows that groups determine, and their places.
    computed: &'g [(usize, usize)],
    /// The place of the number of the grouping set.
    set_column: usize,
    /// Which of the groups each set has.
    masks: &'g [Vec<bool>],
    /// What the columns of rows are called.
    scope: &'g Scope,
}

impl Grouping<'_> {
    /// The place of an expression over rows among the columns of groups.
    fn place(&self, expr: &Expr) -> Option<usize> {
        let group = self.groups.iter().position(|group| group.is_same(expr));
        group.or_else(|| match expr.node() {
            Node::Column { index, .. } => {
                let computed = self.computed.iter().find(|(own, _)| own == index);
                computed.map(|(_, place)| *place)
            }
            _ => None,
        })
    }

    /// A column of rows, as errors name it.
    fn shown(&self, index: usize, name: &str) -> String {
        let table = self.scope.columns.get(index).and_then(|column| column.table.as_deref());
        table.map_or_else(|| name.to_owned(), |table| format!("{table}.{name}"))
    }

    /// An expression over rows as one over groups.
    ///
    /// Errors: 42803 when it uses a column that is the same for no group.
    fn over(&self, expr: &Expr) -> Result<Expr> {
        let groups = self.groups;
        if let Some(at) = self.place(expr) {
            let name = expr.to_string();
            return Ok(Expr::column(at, name, expr.ty()));
        }
        match expr.node() {
            Node::Column { index, name, ty } if *index >= AGGREGATE && *index < WINDOW => {
                Ok(Expr::column(groups.len() + index - AGGREGATE, name.clone(), ty.clone()))
            }
            Node::Column { index, .. } if *index >= PENDING => Ok(expr.clone()),
            Node::Column { index, name, .. } => fail("42803", ungrouped(&self.shown(*index, name))),
            Node::Call { function, args, .. } if function.name == "grouping" => {
                let places = args.iter().map(|arg| {
                    groups.iter().position(|group| group.is_same(arg)).ok_or_else(|| {
                        error(
                            "42803",
                            "arguments to GROUPING must be grouping expressions of the associated query level",
                        )
                    })
                });
                let places: Vec<usize> = places.collect::<Result<_>>()?;
                let value = |mask: &Vec<bool>| {
                    places
                        .iter()
                        .fold(0, |bits, place| bits << 1 | i32::from(!mask[*place]))
                };
                let set = Expr::column(self.set_column, "set", Type::Int8);
                let arms = self.masks.iter().enumerate().map(|(number, mask)| {
                    let is_set = Node::Compare(
                        crate::expr::Comparison::Equal,
                        set.clone(),
                        Expr::constant(Value::Int64(number as i64), Type::Int8),
                    );
                    (
                        Expr::from(is_set),
                        Expr::constant(Value::Int32(value(mask)), Type::Int4),
                    )
                });
                Ok(Node::Case {
                    operand: None,
                    arms: arms.collect(),
                    otherwise: None,
                    ty: Type::Int4,
                }
                .into())
            }
            _ => {
                let mut failed = None;
                let out = expr.map(&mut |part| match self.over(part) {
                    Ok(part) => part,
                    Err(error) => {
                        failed.get_or_insert(error);
                        part.clone()
                    }
                });
                match failed {
                    Some(error) => Err(error),
                    None => Ok(out),
                }
            }
        }
    }
}
