//! Queries: WITH, set operations, VALUES, order and limits.

use super::from::{lift, one_row};
use super::recursion::NOT_RECURSIVE;
use super::select::Output;
use super::write::{is_writing, writing};
use super::{Binder, Bound, Cte, CtePlan, Scope, ScopeColumn, ident, locks};
use crate::error::{Field, error, fail, unsupported, with as with_fields};
use crate::expr::Expr;
use crate::functions::coerce;
use crate::parse;
use crate::plan::{self, Plan};
use crate::types::Type;
use crate::types::cast::{self, Context};
use nestor_model::Result;
use nestor_planner::relation::{Apply, ApplyKind, Intersect, Relation, SortKey, Tuple};
use sqlparser::ast::{
    CteAsMaterialized, Expr as Ast, LimitClause, OrderBy, OrderByExpr, OrderByKind, Query, SetExpr, SetOperator,
    SetQuantifier, Statement, With,
};
use std::sync::Arc;

impl Binder<'_> {
    /// Binds a query.
    ///
    /// Errors: those of its names and types; 0A000.
    pub fn query(&mut self, query: &Query) -> Result<Bound> {
        if !query.pipe_operators.is_empty() || query.for_clause.is_some() || query.settings.is_some() {
            return unsupported("a clause of this query");
        }
        let ctes = self.ctes.len();
        if let Some(with) = &query.with {
            self.with(with)?;
        }
        let out = self.deeper(|binder| binder.body(query));
        let own = self.ctes.split_off(ctes);
        let mut out = out?;
        // What is read once is computed where it is read, as far as it is wanted there.
        for id in own.iter().rev().filter_map(|cte| cte.opens) {
            if plan::uses(
                &out.plan,
                &|part| matches!(part, Relation::Shared { id: own, .. } if *own == id),
            ) == 1
            {
                out.plan = opened(out.plan, id);
            }
        }
        Ok(out)
    }

    fn body(&mut self, query: &Query) -> Result<Bound> {
        let order = match &query.order_by {
            None => &[],
            Some(OrderBy {
                kind: OrderByKind::Expressions(order),
                ..
            }) => order.as_slice(),
            Some(_) => return unsupported("ORDER BY ALL"),
        };
        let mut bound = match &*query.body {
            SetExpr::Select(select) => self.select(select, order, &query.locks)?,
            other => {
                if let Some(lock) = query.locks.first() {
                    return match other {
                        SetExpr::SetOperation { .. } => locks::not_allowed(lock, "UNION/INTERSECT/EXCEPT"),
                        _ => unsupported("FOR UPDATE of what is no SELECT"),
                    };
                }
                let bound = self.set(other)?;
                let is_set = matches!(other, SetExpr::SetOperation { .. });
                self.ordered(bound, order, is_set)?
            }
        };
        let (mut limit, mut offset) = (None, None);
        match &query.limit_clause {
            None => {}
            Some(LimitClause::LimitOffset {
                limit: most,
                offset: skip,
                limit_by,
            }) => {
                if !limit_by.is_empty() {
                    return unsupported("LIMIT BY");
                }
                limit = most.as_ref();
                offset = skip.as_ref().map(|skip| &skip.value);
            }
            Some(LimitClause::OffsetCommaLimit { .. }) => return fail("42601", "LIMIT #,# syntax is not supported"),
        }
        let mut ties = Vec::new();
        let one = Ast::value(sqlparser::ast::Value::Number("1".to_owned(), false));
        if let Some(fetch) = &query.fetch {
            if fetch.percent {
                return unsupported("FETCH PERCENT");
            }
            limit = Some(fetch.quantity.as_ref().unwrap_or(&one));
            if fetch.with_ties {
                let Relation::Sort { keys, .. } = &bound.plan else {
                    return fail("42601", "WITH TIES cannot be specified without ORDER BY clause");
                };
                ties = keys.clone();
            }
        }
        let number = |binder: &mut Self, expr: Option<&Ast>, clause: &str| -> Result<Option<Expr>> {
            let Some(expr) = expr else { return Ok(None) };
            let rows = binder.giving_rows();
            let bound = binder.expr(expr, &Scope::default())?;
            binder.check_no_rows(rows, clause)?;
            let bound = coerce(bound, &Type::Int8, Context::Assignment)?;
            binder.note_params(&bound);
            Ok(Some(bound))
        };
        let (limit, offset) = (number(self, limit, "LIMIT")?, number(self, offset, "OFFSET")?);
        if limit.is_none() && offset.is_none() {
            return Ok(bound);
        }
        let (takes, width) = (limit.is_some(), bound.plan.width());
        let mut numbers: Vec<Expr> = limit.into_iter().chain(offset).collect();
        let below = self.flush(one_row(), &mut numbers);
        let limited = |input: Plan, numbers: Vec<Expr>, ties| {
            let mut numbers = numbers.into_iter();
            Relation::Limit {
                input: Box::new(input),
                limit: if takes { numbers.next() } else { None },
                offset: numbers.next(),
                ties,
            }
        };
        bound.plan = match below.width() {
            0 => limited(bound.plan, numbers, ties),
            // Subqueries are columns of a row before the rows.
            before => {
                let inner = plan::map(&bound.plan, 0, &mut |expr, at| lift(expr, at, 1));
                for key in &mut ties {
                    key.by = lift(&key.by, 0, 1);
                }
                Relation::Project {
                    input: Box::new(Relation::Apply(Box::new(Apply {
                        input: below,
                        inner: limited(inner, numbers.iter().map(plan::outward).collect(), ties),
                        kind: ApplyKind::Lateral { keeps: false },
                        correlated: true,
                        told_by: None,
                        when: None,
                    }))),
                    columns: (0..width)
                        .map(|i| Expr::column(before + i, bound.columns[i].name.clone(), bound.columns[i].ty.clone()))
                        .collect(),
                }
            }
        };
        Ok(bound)
    }

    pub(super) fn with(&mut self, with: &With) -> Result<()> {
        for (at, cte) in with.cte_tables.iter().enumerate() {
            let name = ident(&cte.alias.name);
            if with.cte_tables[..at]
                .iter()
                .any(|other| ident(&other.alias.name) == name)
            {
                return fail("42712", format!("WITH query name \"{name}\" specified more than once"));
            }
        }
        for cte in super::recursion::in_order(with) {
            let name = ident(&cte.alias.name);
            let mut names: Vec<String> = cte.alias.columns.iter().map(|column| ident(&column.name)).collect();
            let clauses = parse::recursion::taken(&mut names)?;
            let bound = match (with.recursive, &clauses) {
                (false, Some(_)) => return fail("42601", NOT_RECURSIVE),
                _ if is_writing(&cte.query) => self.described(&cte.query)?,
                (true, clauses) => self.recursive(&name, &names, &cte.query, clauses.as_ref())?,
                (false, None) => self.query(&cte.query)?,
            };
            if is_writing(&cte.query) && bound.columns.is_empty() {
                self.name_nothing(&name);
                continue;
            }
            let columns = renamed(bound.columns, &names)?;
            let depth = self.outer.len();
            let id = self.id();
            // What depends on no row around it is computed once.
            let shares = !plan::reaches_out(&bound.plan, 1)
                && !matches!(cte.materialized, Some(CteAsMaterialized::NotMaterialized));
            let opens = !matches!(cte.materialized, Some(CteAsMaterialized::Materialized))
                && self.held.is_empty()
                && !plan::is_volatile(&bound.plan);
            let plan = match shares {
                true => Relation::Shared {
                    id,
                    plan: Arc::new(bound.plan),
                },
                false => bound.plan,
            };
            self.ctes.push(Cte {
                name,
                columns,
                plan: CtePlan::Inline(plan, depth),
                opens: (shares && opens).then_some(id),
            });
        }
        Ok(())
    }

    /// The columns of a part of WITH that writes, and no rows.
    ///
    /// Errors: 0A000 where it may not stand.
    fn described(&mut self, query: &Query) -> Result<Bound> {
        if !self.describes || !self.levels.is_empty() || !self.outer.is_empty() {
            return fail(
                "0A000",
                "WITH clause containing a data-modifying statement must be at the top level",
            );
        }
        let statement = Statement::Query(Box::new(query.clone()));
        let ctes = self.ctes.len();
        let write = match writing(&statement) {
            Some((inner, with)) => self.write(inner, with)?,
            None => return unsupported("a part of WITH of this form"),
        };
        self.ctes.truncate(ctes);
        let columns = write.returning.map_or_else(Vec::new, |returning| returning.columns);
        let (rows, width) = (Vec::new(), columns.len());
        Ok(Bound {
            plan: Relation::Values { rows, width },
            columns,
        })
    }

    /// Gives a name to rows that are known.
    ///
    /// Errors: 42P10 for more names of columns than there are.
    pub fn name_rows(
        &mut self,
        name: &str,
        (columns, names): (Vec<ScopeColumn>, &[String]),
        rows: &[Tuple],
    ) -> Result<()> {
        let width = columns.len();
        let constants = rows.iter().map(|row| {
            let values = row.iter().zip(&columns);
            values
                .map(|(value, column)| Expr::constant(value.clone(), column.ty.clone()))
                .collect()
        });
        let plan = Relation::Values {
            rows: constants.collect(),
            width,
        };
        let id = self.id();
        self.ctes.push(Cte {
            name: name.to_owned(),
            columns: renamed(columns, names)?,
            plan: CtePlan::Inline(
                Relation::Shared {
                    id,
                    plan: Arc::new(plan),
                },
                self.outer.len(),
            ),
            opens: None,
        });
        Ok(())
    }

    /// Gives a name to what returns nothing, so that nobody reads it.
    pub fn name_nothing(&mut self, name: &str) {
        self.ctes.push(Cte {
            name: name.to_owned(),
            columns: Vec::new(),
            plan: CtePlan::Nothing,
            opens: None,
        });
    }

    /// The rows of the body of a query, without order.
    pub(super) fn set(&mut self, body: &SetExpr) -> Result<Bound> {
        match body {
            SetExpr::Select(select) => self.select(select, &[], &[]),
            SetExpr::Query(query) => self.query(query),
            SetExpr::Values(values) => {
                let rows: Vec<&[Ast]> = values.rows.iter().map(|row| row.content.as_slice()).collect();
                self.values(&rows, &[])
            }
            SetExpr::SetOperation { .. } => self.deeper(|binder| binder.sets(body)),
            _ => unsupported("a statement that writes within a query"),
        }
    }

    /// The rows of set operations: from the first query on, however many there are.
    ///
    /// Errors: 54001 for operations that each need the rows of the one before.
    fn sets(&mut self, body: &SetExpr) -> Result<Bound> {
        let (mut first, mut behind) = (body, Vec::new());
        while let SetExpr::SetOperation {
            left,
            op,
            set_quantifier,
            right,
        } = first
        {
            behind.push((*op, *set_quantifier, right));
            first = left;
        }
        let mut bound = self.set(first)?;
        let mut depth = self.depth;
        for (op, quantifier, right) in behind.into_iter().rev() {
            let right = self.set(right)?;
            bound = self.combined(bound, right, op, quantifier)?;
            // Of unions all become one node.
            depth += match &bound.plan {
                Relation::Append { inputs } if inputs.len() > 2 => 0,
                Relation::Distinct { input, .. } if matches!(&**input, Relation::Append { inputs } if inputs.len() > 2) => {
                    0
                }
                _ => 1,
            };
            if depth > super::QUERY_DEPTH_MAX {
                return fail("54001", "queries nest too deep");
            }
        }
        Ok(bound)
    }

    pub(super) fn combined(
        &mut self,
        left: Bound,
        right: Bound,
        op: SetOperator,
        quantifier: SetQuantifier,
    ) -> Result<Bound> {
        let all = match quantifier {
            SetQuantifier::All => true,
            SetQuantifier::None | SetQuantifier::Distinct => false,
            _ => return unsupported("a set operation by name"),
        };
        let shown = match op {
            SetOperator::Union => "UNION",
            SetOperator::Intersect => "INTERSECT",
            SetOperator::Except | SetOperator::Minus => "EXCEPT",
        };
        if left.columns.len() != right.columns.len() {
            return fail(
                "42601",
                format!("each {shown} query must have the same number of columns"),
            );
        }
        let mut columns = Vec::new();
        for (a, b) in left.columns.iter().zip(&right.columns) {
            let Some(ty) = cast::common([&a.ty, &b.ty]) else {
                return fail(
                    "42804",
                    format!("{shown} types {} and {} cannot be matched", a.ty, b.ty),
                );
            };
            columns.push(ScopeColumn::new(a.name.clone(), ty));
        }
        let (left, right) = (cast_to(left, &columns)?, cast_to(right, &columns)?);
        let on: Vec<Expr> = (0..columns.len()).map(|i| self.column(&columns, i)).collect();
        let plan = match op {
            SetOperator::Union => {
                // A union is one of all that a union before it has; what that leaves out this one would.
                let mut inputs = match left {
                    Relation::Append { inputs } => inputs,
                    Relation::Distinct { input, .. } if !all && matches!(*input, Relation::Append { .. }) => {
                        match *input {
                            Relation::Append { inputs } => inputs,
                            other => vec![other],
                        }
                    }
                    other => vec![other],
                };
                inputs.push(right);
                let both = Relation::Append { inputs };
                match all {
                    true => both,
                    false => Relation::Distinct {
                        input: Box::new(both),
                        on,
                    },
                }
            }
            _ => Relation::Intersect(Box::new(Intersect {
                left,
                right,
                on,
                except: !matches!(op, SetOperator::Intersect),
                all,
            })),
        };
        Ok(Bound { plan, columns })
    }

    /// Rows of expressions. `types` are those that their columns are to have, as far as they are known.
    pub(super) fn values(&mut self, rows: &[&[Ast]], types: &[Type]) -> Result<Bound> {
        let width = rows.first().map_or(0, |row| row.len());
        let mut bound: Vec<Vec<Expr>> = Vec::with_capacity(rows.len());
        let scope = Scope::default();
        for row in rows {
            if row.len() != width {
                return fail("42601", "VALUES lists must all be the same length");
            }
            let exprs = row
                .iter()
                .enumerate()
                .map(|(i, expr)| match (is_default(expr), types.get(i)) {
                    // The place of a default is kept for who inserts.
                    (true, Some(_)) => Ok(Expr::column(super::WINDOW * 2, "DEFAULT", Type::Unknown)),
                    (true, None) => fail("42601", "DEFAULT is not allowed in this context"),
                    (false, _) => self.expr(expr, &scope),
                });
            bound.push(exprs.collect::<Result<_>>()?);
        }
        let mut columns = Vec::new();
        for i in 0..width {
            let own: Vec<Type> = bound.iter().map(|row| row[i].ty()).collect();
            let ty = match types.get(i) {
                Some(ty) => ty.clone(),
                None => match cast::common(&own) {
                    Some(ty) => ty,
                    None => return fail("42804", "VALUES types cannot be matched"),
                },
            };
            let context = if types.is_empty() {
                Context::Implicit
            } else {
                Context::Assignment
            };
            for row in &mut bound {
                if !matches!(row[i].node(), crate::expr::Node::Column { name, .. } if name == "DEFAULT") {
                    row[i] = coerce(row[i].clone(), &ty, context)?;
                }
            }
            columns.push(ScopeColumn::new(format!("column{}", i + 1), ty));
        }
        // Subqueries have a row of their own to stand beside.
        let pending = bound.iter().flatten().any(|expr| {
            let mut found = false;
            expr.for_each_column(&mut |index| found |= (super::PENDING..super::AGGREGATE).contains(&index));
            found
        });
        let plan = match pending {
            false => Relation::Values { rows: bound, width },
            true => {
                let inputs = bound.into_iter().map(|mut row| {
                    let input = self.flush(super::from::one_row(), &mut row);
                    Relation::Project {
                        input: Box::new(input),
                        columns: row,
                    }
                });
                Relation::Append {
                    inputs: inputs.collect(),
                }
            }
        };
        Ok(Bound { plan, columns })
    }

    /// Rows in an order of their own columns; those of sets in one of their columns alone.
    fn ordered(&mut self, bound: Bound, order: &[OrderByExpr], is_set: bool) -> Result<Bound> {
        if order.is_empty() {
            return Ok(bound);
        }
        let scope = Scope {
            columns: bound.columns.clone(),
        };
        let mut keys = Vec::new();
        for item in order {
            let by = match Output::place(&item.expr, &bound.columns, "ORDER BY")? {
                Some(at) => self.column(&bound.columns, at),
                None if is_set && !matches!(item.expr, Ast::Identifier(_)) => {
                    let told = error("0A000", "invalid UNION/INTERSECT/EXCEPT ORDER BY clause");
                    let detail = "Only result column names can be used, not expressions or functions.";
                    let hint = "Add the expression/function to every SELECT, or move the UNION into a FROM clause.";
                    return Err(with_fields(told, &[(Field::Detail, detail), (Field::Hint, hint)]));
                }
                None => self.expr(&item.expr, &scope)?,
            };
            keys.push(sort_key(by, item));
        }
        Ok(Bound {
            plan: Relation::Sort {
                input: Box::new(bound.plan),
                keys,
                limit: None,
            },
            columns: bound.columns,
        })
    }
}

pub(super) fn is_default(expr: &Ast) -> bool {
    matches!(expr, Ast::Identifier(name) if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default"))
}

/// A part of an order: nulls are larger than all else.
pub(super) fn sort_key(by: Expr, item: &OrderByExpr) -> SortKey<Expr> {
    use sqlparser::ast::OrderBySort;
    let descending = match &item.options.sort {
        Some(OrderBySort::Using(sign)) => sign.to_string().trim_end_matches('"').ends_with('>'),
        sort => matches!(sort, Some(OrderBySort::Desc)),
    };
    SortKey {
        by,
        descending,
        nulls_first: item.options.nulls_first.unwrap_or(descending),
    }
}

/// Columns under other names.
pub(super) fn renamed(mut columns: Vec<ScopeColumn>, names: &[String]) -> Result<Vec<ScopeColumn>> {
    if names.len() > columns.len() {
        return fail("42P10", "WITH query has fewer columns than names");
    }
    for (column, name) in columns.iter_mut().zip(names) {
        column.name.clone_from(name);
    }
    for column in &mut columns {
        column.table = None;
    }
    Ok(columns)
}

/// Rows with columns cast to these.
pub(super) fn cast_to(bound: Bound, columns: &[ScopeColumn]) -> Result<Plan> {
    if bound.columns.iter().zip(columns).all(|(a, b)| a.ty == b.ty) {
        return Ok(bound.plan);
    }
    // Literals of unknown type are still to be read.
    if let Relation::Project { input, columns: exprs } = &bound.plan {
        let exprs = exprs
            .iter()
            .zip(columns)
            .map(|(e, to)| coerce(e.clone(), &to.ty, Context::Implicit));
        return Ok(Relation::Project {
            input: input.clone(),
            columns: exprs.collect::<Result<_>>()?,
        });
    }
    let exprs = bound.columns.iter().enumerate().zip(columns).map(|((i, from), to)| {
        coerce(
            Expr::column(i, from.name.clone(), from.ty.clone()),
            &to.ty,
            Context::Implicit,
        )
    });
    Ok(Relation::Project {
        columns: exprs.collect::<Result<_>>()?,
        input: Box::new(bound.plan),
    })
}

/// The columns that are not hidden.
pub(super) fn visible(bound: Bound) -> Bound {
    let kept: Vec<usize> = (0..bound.columns.len()).filter(|i| !bound.columns[*i].hidden).collect();
    let exprs = kept.iter().map(|i| {
        let column = &bound.columns[*i];
        Expr::column(*i, column.name.clone(), column.ty.clone())
    });
    Bound {
        plan: Relation::Project {
            columns: exprs.collect(),
            input: Box::new(bound.plan),
        },
        columns: kept.iter().map(|i| bound.columns[*i].clone()).collect(),
    }
}

/// A plan that computes what is called by a number where it is read; not within what runs again and again.
fn opened(plan: Plan, id: usize) -> Plan {
    match plan {
        Relation::Shared { id: own, plan } if own == id => (*plan).clone(),
        Relation::Recursive(_) => plan,
        Relation::Apply(apply) if apply.correlated => {
            let input = opened(apply.input, id);
            Relation::Apply(Box::new(Apply { input, ..*apply }))
        }
        plan => plan::with_inputs(plan, &mut |input| opened(input, id)),
    }
}
