//! Comparisons with the rows of subqueries and the elements of arrays: `IN`, `ANY`, `ALL`, and arrays of subqueries.

use super::expr::comparison_of;
use super::query::cast_to;
use super::{Binder, Scope, ScopeColumn};
use crate::error::{self, fail, unsupported};
use crate::expr::{Comparison, Expr, Node};
use crate::functions::{self, coerce};
use crate::plan::{self, Plan};
use crate::types::Type;
use crate::types::cast::{self, Context};
use nestor_model::Result;
use nestor_planner::relation::{ApplyKind, Relation};
use sqlparser::ast::{BinaryOperator, Expr as Ast, Query};

impl Binder<'_> {
    pub(super) fn in_subquery(&mut self, left: &Ast, query: &Query, scope: &Scope) -> Result<Expr> {
        let left = self.expr(left, scope)?;
        let mut inner = self.within(scope, |binder| binder.query(query))?;
        let probe = match left.node() {
            Node::Row(items) => items.clone(),
            _ => vec![left],
        };
        if probe.len() != inner.columns.len() {
            let few = if probe.len() < inner.columns.len() {
                "many"
            } else {
                "few"
            };
            return fail("42601", format!("subquery has too {few} columns"));
        }
        let (mut probes, mut columns) = (Vec::new(), Vec::new());
        for (i, (probe, column)) in probe.into_iter().zip(&inner.columns).enumerate() {
            let own = Expr::column(i, column.name.clone(), column.ty.clone());
            let (a, b) = self.alike(probe, own, "=")?;
            let (a, b) = super::operators::in_order(a, b)?;
            probes.push(a);
            columns.push(b);
        }
        if columns
            .iter()
            .any(|column| !matches!(column.node(), Node::Column { .. }))
        {
            inner.plan = Relation::Project {
                input: Box::new(inner.plan),
                columns,
            };
        }
        Ok(self.subquery(inner.plan, ApplyKind::In { probe: probes }, Type::Bool))
    }

    pub(super) fn quantified(
        &mut self,
        left: &Ast,
        op: &BinaryOperator,
        right: &Ast,
        all: bool,
        scope: &Scope,
    ) -> Result<Expr> {
        let Some(op) = comparison_of(op) else {
            // Insensitive, negated, all, a regular expression.
            let flags = match op {
                BinaryOperator::PGRegexMatch => 8,
                BinaryOperator::PGRegexIMatch => 9,
                BinaryOperator::PGRegexNotMatch => 10,
                BinaryOperator::PGRegexNotIMatch => 11,
                BinaryOperator::PGLikeMatch => 0,
                BinaryOperator::PGILikeMatch => 1,
                BinaryOperator::PGNotLikeMatch => 2,
                BinaryOperator::PGNotILikeMatch => 3,
                _ => return unsupported(format!("operator {op} with ANY or ALL")),
            };
            return self.like_each(left, right, flags | i32::from(all) << 2, scope);
        };
        let query = match right {
            Ast::Subquery(query) => Some(query),
            Ast::Nested(inner) => match &**inner {
                Ast::Subquery(query) => Some(query),
                _ => None,
            },
            _ => None,
        };
        if let (Some(query), Comparison::Equal, false) = (query, op, all) {
            return self.in_subquery(left, query, scope);
        }
        let arg = self.expr(left, scope)?;
        if let (Some(query), Node::Row(_)) = (query, arg.node()) {
            // It holds for any if it is true for one of them; for all if it is not false for any.
            let inner = self.compared(op, &arg, query, all, scope)?;
            let probe = vec![Expr::bool(true)];
            let found = self.subquery(inner, ApplyKind::In { probe }, Type::Bool);
            return Ok(if all { Node::Not(found).into() } else { found });
        }
        let array = match query {
            Some(query) => self.array_subquery(query, scope)?,
            None => self.expr(right, scope)?,
        };
        if let (Node::Array(items, Type::Jsonb), Comparison::Equal, false) = (array.node(), op, all)
            && !items.iter().all(super::operators::is_plain)
        {
            return self.equals_one_of(&arg, items.clone(), false);
        }
        let array = match array.ty() {
            Type::Unknown => coerce(array, &arg.ty().array(), Context::Implicit)?,
            _ => array,
        };
        let Some(element) = array.ty().element().cloned() else {
            return fail("42809", "op ANY/ALL (array) requires array on right side");
        };
        let (x, y) = (arg.ty(), element);
        let ty = match (&x, &y) {
            (Type::Unknown, y) => y.clone(),
            (x, Type::Unknown) => x.clone(),
            (x, y) => match cast::common([x, y]) {
                Some(ty) => ty,
                None => return Err(error::no_operator(format!("{x} {} {y}", op.sign()), 2)),
            },
        };
        Ok(Node::Quantified {
            op,
            arg: coerce(arg, &ty, Context::Implicit)?,
            array: coerce(array, &ty.array(), Context::Implicit)?,
            all,
        }
        .into())
    }

    /// For each row of a subquery, how a row compares with it; `negated` turns what comes of it around.
    ///
    /// Errors: 42601 for rows of other lengths.
    pub(super) fn compared(
        &mut self,
        op: Comparison,
        row: &Expr,
        query: &Query,
        negated: bool,
        scope: &Scope,
    ) -> Result<Plan> {
        let inner = self.within(scope, |binder| binder.query(query))?;
        let count = match row.node() {
            Node::Row(items) => items.len(),
            _ => 1,
        };
        if count != inner.columns.len() {
            let few = if count < inner.columns.len() { "many" } else { "few" };
            return fail("42601", format!("subquery has too {few} columns"));
        }
        let theirs = (0..count).map(|i| self.column(&inner.columns, i)).collect();
        let found = self.comparison(op, plan::outward(row), Node::Row(theirs).into())?;
        Ok(Relation::Project {
            input: Box::new(inner.plan),
            columns: vec![if negated { Node::Not(found).into() } else { found }],
        })
    }

    /// `ARRAY(SELECT ...)`.
    pub(super) fn array_subquery(&mut self, query: &Query, scope: &Scope) -> Result<Expr> {
        let inner = self.within(scope, |binder| binder.query(query))?;
        let [column] = inner.columns.as_slice() else {
            return fail("42601", "subquery must return only one column");
        };
        let ty = match &column.ty {
            Type::Unknown => Type::Text,
            ty => ty.clone(),
        };
        let columns = [ScopeColumn::new(column.name.clone(), ty.clone())];
        let plan = cast_to(inner, &columns)?;
        Ok(self.subquery(plan, ApplyKind::Array, ty.array()))
    }

    /// `(from, to) OVERLAPS (from, to)`, where an interval may stand for the end.
    pub(super) fn overlaps(&mut self, a: &Expr, b: &Expr) -> Result<Expr> {
        let mut args = Vec::new();
        for span in [a, b] {
            let Node::Row(ends) = span.node() else {
                return fail("42601", "OVERLAPS takes rows");
            };
            let [from, to] = ends.as_slice() else {
                return fail("42601", "wrong number of parameters on side of OVERLAPS expression");
            };
            let to = match to.ty() {
                Type::Interval => functions::call("+", vec![from.clone(), to.clone()])?,
                _ => to.clone(),
            };
            args.extend([from.clone(), to]);
        }
        functions::call("overlaps", args)
    }
}
