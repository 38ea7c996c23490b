//! Fences around the rows that policies leave ([`super::fenced`]), and what passes them.
//!
//! Conditions that a statement puts on such rows are computed of these alone, but for comparisons of columns with values: they can neither fail nor do
//! anything, so an index may serve them. Fences stand until nobody moves conditions any more: beneath joins, whose order is settled last, to the end.

use super::{Plan, behind_fence, with_inputs};
use crate::expr::{Expr, Node};
use crate::types::Type;
use nestor_planner::relation::Relation;

/// Whether a condition tells nothing of a row but by being true or not.
pub fn passes(condition: &Expr) -> bool {
    match condition.node() {
        Node::Compare(_, a, b) | Node::Distinct(a, b, _) => is_plain(a) && is_plain(b),
        Node::InList(a, items, _) => is_plain(a) && items.iter().all(is_plain),
        Node::IsNull(a, _) => matches!(a.node(), Node::Column { .. }),
        Node::IsBool { arg, .. } | Node::Not(arg) => passes(arg),
        Node::And(all) | Node::Or(all) => all.iter().all(passes),
        Node::Column { ty, .. } => *ty == Type::Bool,
        _ => false,
    }
}

/// Whether an expression is a value that is there already, of a type whose values all can be compared.
fn is_plain(expr: &Expr) -> bool {
    let is_there = match expr.node() {
        Node::Const(..) | Node::Column { .. } | Node::Outer { .. } | Node::Param(..) => true,
        // No value of the one is none of the other.
        Node::Cast {
            arg,
            to,
            modifier: -1,
            explicit: false,
        } => {
            let from = arg.ty();
            let is_wider = matches!(
                (&from, to),
                (Type::Int2, Type::Int4 | Type::Int8) | (Type::Int4, Type::Int8)
            );
            let is_text = |ty: &Type| matches!(ty, Type::Text | Type::Varchar | Type::Name);
            is_plain(arg) && (is_wider || is_text(&from) && is_text(to))
        }
        _ => false,
    };
    is_there
        && matches!(
            expr.ty(),
            Type::Bool
                | Type::Int2
                | Type::Int4
                | Type::Int8
                | Type::Float4
                | Type::Float8
                | Type::Numeric
                | Type::Text
                | Type::Varchar
                | Type::Bpchar
                | Type::Name
                | Type::Bytea
                | Type::Date
                | Type::Time
                | Type::Timestamp
                | Type::Timestamptz
                | Type::Uuid
                | Type::ObjectId
                | Type::Enum(_)
        )
}

/// Takes fences away, but for those beneath joins: what is pushed through a plan once is not pushed again but there.
pub fn opened(plan: Plan) -> Plan {
    match plan {
        Relation::Join(join) => Relation::Join(join),
        other => match behind_fence(other) {
            Ok(input) => opened(input),
            Err(other) => with_inputs(other, &mut opened),
        },
    }
}

/// Takes all fences away, once no rule moves conditions any more.
pub fn gone(plan: Plan) -> Plan {
    match behind_fence(plan) {
        Ok(input) => gone(input),
        Err(other) => with_inputs(other, &mut gone),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Comparison;
    use nestor_model::Value;

    #[test]
    fn what_may_fail_passes_no_fence() {
        let column = |ty: Type| Expr::column(0, "a", ty);
        let compared = |a: Expr, b: Expr| Expr::from(Node::Compare(Comparison::Equal, a, b));
        let one = || Expr::constant(Value::Int32(1), Type::Int4);
        assert!(passes(&compared(column(Type::Int4), one())));
        assert!(passes(&Node::InList(column(Type::Int4), vec![one()], true).into()));
        let quotient = |of: Expr| crate::functions::call("/", vec![one(), of]).expect("a quotient");
        assert!(!passes(&compared(quotient(column(Type::Int4)), one())));
        // What is the same for all rows would fail where there is a row, and not where there is none.
        assert!(!passes(&compared(column(Type::Int4), quotient(one()))));
        let number = Node::Cast {
            arg: column(Type::Text),
            to: Type::Int4,
            modifier: -1,
            explicit: true,
        };
        assert!(!passes(&compared(number.into(), one())));
        assert!(!passes(&compared(column(Type::Jsonb), column(Type::Jsonb))));
        let either = vec![
            compared(column(Type::Int4), one()),
            compared(quotient(column(Type::Int4)), one()),
        ];
        assert!(!passes(&Node::Or(either).into()));
    }
}
