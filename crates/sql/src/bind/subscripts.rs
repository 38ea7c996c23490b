//! Assignments to parts of arrays and of `jsonb`: `SET a[2] = 5, doc['k'] = '1'`. What is written is the whole column, with the part in it.

use super::names::field;
use super::query::is_default;
use super::write::{Target, values_of};
use super::{Binder, Scope, ScopeColumn};
use crate::error::{fail, unsupported};
use crate::expr::{Expr, Node};
use crate::functions::{self, coerce};
use crate::plan::Plan;
use crate::types::Type;
use crate::types::cast::{self, Context};
use nestor_model::{Result, Value};
use nestor_planner::relation::Relation;
use sqlparser::ast::{AccessExpr, Expr as Ast, Insert, Subscript};

/// A target with its subscripts, if it has any.
pub(super) type Subscripted = (Target, Vec<AccessExpr>);

fn is_slice(step: &AccessExpr) -> bool {
    matches!(step, AccessExpr::Subscript(Subscript::Slice { .. }))
}

/// A part of JSON: a field of an object, an element of an array.
///
/// Errors: 42804 for a subscript that is neither a number nor a text.
pub(super) fn json_part(of: Expr, at: Expr) -> Result<Expr> {
    let ty = at.ty();
    let is_known = matches!(ty, Type::Int2 | Type::Int4 | Type::Unknown) || ty.is_text();
    if !is_known {
        return fail("42804", format!("subscript type {ty} is not supported"));
    }
    let at = coerce(at, &Type::Text, Context::Explicit)?;
    functions::call(functions::documents::PART, vec![of, at])
}

impl Binder<'_> {
    /// `ARRAY[...]`, with its elements, those of arrays within it among them, cast to a type of this modifier if one is given.
    ///
    /// Errors: 42P18 for one that is empty and has no type, 42804 for elements of types that do not go together.
    pub(super) fn array(&mut self, items: &[Ast], to: Option<(&Type, i32)>, scope: &Scope) -> Result<Expr> {
        let each = items.iter().map(|item| match item {
            Ast::Array(within) => self.array(&within.elem, to, scope),
            item => self.expr(item, scope),
        });
        let mut items: Vec<Expr> = each.collect::<Result<_>>()?;
        if let Some((to, modifier)) = to {
            // Where one is an array all are.
            let nests = items.iter().any(|item| matches!(item.ty(), Type::Array(_)));
            let to = if nests { to.clone().array() } else { to.clone() };
            let each = items.into_iter().map(|item| self.cast(item, &to, modifier));
            items = each.collect::<Result<_>>()?;
        }
        match (items.is_empty(), to) {
            (true, None) => fail("42P18", "cannot determine type of empty array"),
            (_, Some((to, _))) => Ok(Node::Array(items, to.clone()).into()),
            (false, None) => {
                let (items, ty) = self.unified(items, "ARRAY")?;
                // An array of arrays has the type of its elements.
                Ok(Node::Array(items, ty).into())
            }
        }
    }

    /// What a target holds whose part gets a value.
    ///
    /// Errors: 42804, 0A000.
    pub(super) fn with_part(
        &mut self,
        (old, column): (Expr, &str),
        steps: &[AccessExpr],
        value: Expr,
        scope: &Scope,
    ) -> Result<Expr> {
        let wanted = part_type(&old.ty(), steps)?;
        let from = value.ty();
        if !cast::exists(&from, &wanted, Context::Assignment) {
            return fail(
                "42804",
                format!(
                    "subscripted assignment to \"{column}\" requires type {wanted} but expression is of type {from}"
                ),
            );
        }
        let value = coerce(value, &wanted, Context::Assignment)?;
        let slices = steps.iter().any(is_slice);
        let is_json = old.ty() == Type::Jsonb;
        let number = |n: i32| Expr::constant(Value::Int32(n), Type::Int4);
        let mut args = vec![old, value];
        for step in steps {
            let AccessExpr::Subscript(step) = step else {
                return unsupported("an assignment to a field behind a subscript");
            };
            let mut bound = |expr: Option<&Ast>, open: i32| match expr {
                Some(expr) if is_json => {
                    let name = self.expr(expr, scope)?;
                    coerce(name, &Type::Text, Context::Explicit)
                }
                Some(expr) => coerce(self.expr(expr, scope)?, &Type::Int4, Context::Assignment),
                None => Ok(number(open)),
            };
            match step {
                Subscript::Index { index } => {
                    if slices {
                        args.push(number(1));
                    }
                    args.push(bound(Some(index), 0)?);
                }
                Subscript::Slice {
                    lower_bound,
                    upper_bound,
                    ..
                } => {
                    args.push(bound(lower_bound.as_ref(), i32::MIN)?);
                    args.push(bound(upper_bound.as_ref(), i32::MAX)?);
                }
            }
        }
        args.iter().for_each(|arg| self.note_params(arg));
        let name = match (is_json, slices) {
            (true, _) => functions::documents::WITH_FIELD,
            (false, true) => functions::arrays::WITH_SLICE,
            (false, false) => functions::arrays::WITH_ELEMENT,
        };
        functions::call(name, args)
    }

    /// What a target of an UPDATE holds before. The columns of the table that is written to are the first ones.
    ///
    /// Errors: 42703 for what is no column.
    pub(super) fn before(&self, target: &Target, width: usize, scope: &Scope) -> Result<Expr> {
        let is_it = |column: &ScopeColumn| column.name == target.column;
        let own = &scope.columns[..width.min(scope.columns.len())];
        let Some(at) = own.iter().position(is_it) else {
            return fail("42703", format!("column \"{}\" does not exist", target.column));
        };
        let column = self.column(&scope.columns, at);
        let path = target.path.get(1..).unwrap_or_default();
        match path.is_empty() {
            true => Ok(column),
            false => field(column, &scope.columns[at], path),
        }
    }

    /// Rows of an insert whose columns with subscripts are put together, and the targets that they have then.
    pub(super) fn with_parts(&mut self, all: Vec<Subscripted>, plan: Plan) -> Result<(Vec<Target>, Plan)> {
        let scope = Scope::default();
        let mut targets: Vec<Target> = Vec::new();
        let mut values: Vec<Expr> = Vec::new();
        for (at, (target, steps)) in all.into_iter().enumerate() {
            if steps.is_empty() {
                values.push(Expr::column(at, target.column.clone(), target.ty.clone()));
                targets.push(target);
                continue;
            }
            let given = Expr::column(at, target.column.clone(), part_type(&target.ty, &steps)?);
            let found = targets.iter().position(|own| own.path == target.path);
            let old = match found {
                Some(found) => values[found].clone(),
                None => Expr::constant(Value::Null, target.ty.clone()),
            };
            let new = self.with_part((old, &target.column), &steps, given, &scope)?;
            match found {
                Some(found) => values[found] = new,
                None => {
                    targets.push(target);
                    values.push(new);
                }
            }
        }
        for (target, value) in targets.iter().zip(&mut values) {
            if let Some(domain) = &target.domain {
                *value = coerce(value.clone(), domain, Context::Assignment)?;
            }
        }
        let plan = Relation::Project {
            input: Box::new(plan),
            columns: values,
        };
        Ok((targets, plan))
    }
}

/// The type of what a part of a value holds.
///
/// Errors: 42804 for values that have no parts, 0A000.
pub(super) fn part_type(of: &Type, steps: &[AccessExpr]) -> Result<Type> {
    let slices = steps.iter().any(is_slice);
    match of {
        Type::Jsonb if slices => fail("42804", "jsonb subscript does not support slices"),
        Type::Jsonb => Ok(Type::Jsonb),
        Type::Array(_) if slices => Ok(of.clone()),
        Type::Array(element) => Ok((**element).clone()),
        ty => fail(
            "42804",
            format!("cannot subscript type {ty} because it does not support subscripting"),
        ),
    }
}

/// A column of which parts are written is not written as a whole, too.
pub(super) fn check_parts(targets: &[Target], steps: &[Vec<AccessExpr>]) -> Result<()> {
    for (at, target) in targets.iter().enumerate() {
        let twice =
            |other: usize| targets[other].path == target.path && (steps[at].is_empty() || steps[other].is_empty());
        if (0..at).any(twice) {
            let column = &target.column;
            return fail("42701", format!("column \"{column}\" specified more than once"));
        }
    }
    Ok(())
}

/// Parts of columns have no default.
pub(super) fn check_no_default(insert: &Insert, steps: &[Vec<AccessExpr>]) -> Result<()> {
    let rows = insert
        .source
        .as_ref()
        .and_then(|query| values_of(query))
        .unwrap_or_default();
    let is_part = |at: usize| steps.get(at).is_some_and(|steps| !steps.is_empty());
    let has_default = |row: &[Ast]| {
        row.iter()
            .enumerate()
            .any(|(at, value)| is_part(at) && is_default(value))
    };
    match rows.iter().any(|row| has_default(&row.content)) {
        true => fail("0A000", "cannot set an array element to DEFAULT"),
        false => Ok(()),
    }
}
