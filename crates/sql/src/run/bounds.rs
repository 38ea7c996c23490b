//! Conditions as bounds of columns: what the least and the greatest value of many rows tell of all of them.

use crate::expr::{Comparison, Expr, Node};
use crate::types::{Type, cast, compare};
use nestor_model::{Result, Value};
use nestor_planner::relation::{Env, Scalar};

/// A condition that bounds the values of a column.
#[derive(Clone)]
pub(super) struct Bound {
    /// The column.
    pub column: usize,
    /// The type as which it is compared: its own, or that of moments.
    ty: Type,
    op: Comparison,
    with: Value,
}

impl Bound {
    /// Those that are among some conditions.
    ///
    /// Errors: those of the values that columns are compared with.
    pub(super) fn all(conditions: &[Expr], env: &Env<'_>) -> Result<Vec<Self>> {
        let mut bounds = Vec::new();
        for condition in conditions {
            bounds.extend(bound(condition, env)?);
        }
        Ok(bounds)
    }

    /// The bound of a column of type `ty` by one of its values; `None` for types whose ends do not bound the others.
    pub(super) fn of(column: usize, ty: &Type, op: Comparison, with: Value) -> Option<Self> {
        has_range(ty).then(|| Self {
            column,
            ty: ty.clone(),
            op,
            with,
        })
    }

    /// Whether no value of type `ty` from `least` to `most` is within it.
    pub(super) fn excludes(&self, ty: &Type, least: Value, most: Value) -> bool {
        if matches!(self.with, Value::Null) {
            return true;
        }
        let compared = |value: Value| {
            let value = match self.ty == *ty {
                true => value,
                false => cast::cast(value, ty, &self.ty, -1, false).ok()?,
            };
            Some(compare::compare(&self.ty, &value, &self.with))
        };
        let (Some(least), Some(most)) = (compared(least), compared(most)) else {
            return false;
        };
        match self.op {
            Comparison::Equal => least.is_gt() || most.is_lt(),
            Comparison::NotEqual => least.is_eq() && most.is_eq(),
            Comparison::Less => least.is_ge(),
            Comparison::LessEqual => least.is_gt(),
            Comparison::Greater => most.is_le(),
            Comparison::GreaterEqual => most.is_lt(),
        }
    }
}

/// The bound that a condition is, if it compares a column with a value.
fn bound(condition: &Expr, env: &Env<'_>) -> Result<Option<Bound>> {
    let Node::Compare(op, a, b) = condition.node() else {
        return Ok(None);
    };
    let place = |expr: &Expr| match expr.as_moment().node() {
        Node::Column { index, ty, .. } => has_range(ty).then_some(*index),
        _ => None,
    };
    let (column, value, with, op) = match (place(a), place(b)) {
        (Some(column), _) if b.is_constant() => (column, a, b, *op),
        (_, Some(column)) if a.is_constant() => (column, b, a, op.mirrored()),
        _ => return Ok(None),
    };
    Ok(Some(Bound {
        column,
        ty: value.ty(),
        op,
        with: with.value(&[], env)?,
    }))
}

/// Types of which the least and the greatest value of a segment bound the others.
pub(super) fn has_range(ty: &Type) -> bool {
    matches!(
        ty,
        Type::Int2
            | Type::Int4
            | Type::Int8
            | Type::Float8
            | Type::Numeric
            | Type::Date
            | Type::Timestamp
            | Type::Timestamptz
            | Type::Text
            | Type::Varchar
    )
}
