//! Operators by their signs, and the functions that they stand for.

use super::Binder;
use crate::error::fail;
use crate::expr::like::Kind;
use crate::expr::{Comparison, Expr, Node};
use crate::functions::{self, coerce, operators};
use crate::types::Type;
use crate::types::cast::Context;
use crate::types::json::order;
use nestor_model::Result;

impl Binder<'_> {
    /// Whether a value equals one of others, or none of them.
    pub(super) fn equals_one_of(&mut self, arg: &Expr, items: Vec<Expr>, negated: bool) -> Result<Expr> {
        let arg = repeated(arg.clone())?;
        let equal = items
            .into_iter()
            .map(|item| self.comparison(Comparison::Equal, arg.clone(), item));
        let found: Expr = Node::Or(equal.collect::<Result<_>>()?).into();
        Ok(if negated { Node::Not(found).into() } else { found })
    }

    /// A call of the function that an operator stands for; nothing where the name is none of these.
    ///
    /// Errors: those of the operator.
    pub(super) fn operator_function(&mut self, name: &str, args: &[Expr]) -> Result<Option<Expr>> {
        if functions::is_known(name) {
            return Ok(None);
        }
        let types: Vec<Type> = args.iter().map(Expr::ty).collect();
        let Some(operator) = operators::of(name, &types) else {
            return Ok(None);
        };
        let args = args.iter().zip(&operator.takes).map(|(arg, ty)| match ty {
            Some(ty) => coerce(arg.clone(), ty, Context::Implicit),
            None => Ok(arg.clone()),
        });
        let args = args.collect::<Result<Vec<_>>>()?;
        let like = |sign: &str| match sign {
            "~~" => Some((Kind::Like, false, false)),
            "!~~" => Some((Kind::Like, false, true)),
            "~~*" => Some((Kind::Like, true, false)),
            "!~~*" => Some((Kind::Like, true, true)),
            "~" => Some((Kind::Regex, false, false)),
            "!~" => Some((Kind::Regex, false, true)),
            "~*" => Some((Kind::Regex, true, false)),
            "!~*" => Some((Kind::Regex, true, true)),
            _ => None,
        };
        let compares = match operator.sign {
            "=" => Some(Comparison::Equal),
            "<>" => Some(Comparison::NotEqual),
            "<" => Some(Comparison::Less),
            "<=" => Some(Comparison::LessEqual),
            ">" => Some(Comparison::Greater),
            ">=" => Some(Comparison::GreaterEqual),
            _ => None,
        };
        Ok(Some(match (args.as_slice(), compares, like(operator.sign)) {
            ([a, b], Some(op), _) => self.comparison(op, a.clone(), b.clone())?,
            ([a, b], None, Some((kind, insensitive, negated))) => {
                let escape = (kind == Kind::Like).then_some('\\');
                self.matched(kind, insensitive, negated, a.clone(), b.clone(), escape)?
            }
            _ => functions::call(operator.sign, args)?,
        }))
    }
}

/// Whether a value is a constant that is the same in all orders of fields, or none of `jsonb`.
pub(super) fn is_plain(side: &Expr) -> bool {
    match side.node() {
        Node::Const(value, _) => !order::has_order(value.as_ref()),
        _ => side.ty() != Type::Jsonb,
    }
}

/// Two values of `jsonb` that are equal whatever the order of their fields, where a constant does not say that there are no fields to put in order.
pub(super) fn in_order(a: Expr, b: Expr) -> Result<(Expr, Expr)> {
    if a.ty() != Type::Jsonb || is_plain(&a) || is_plain(&b) {
        return Ok((a, b));
    }
    let side = |side: Expr| match side.node() {
        Node::Const(value, ty) => Ok(Expr::constant(order::in_order(value.as_ref()), ty.clone())),
        _ => functions::call(functions::documents::IN_ORDER, vec![side]),
    };
    Ok((side(a)?, side(b)?))
}

/// An operand that stands several times in what is made of it, as that of BETWEEN: within each other such would be twice as large at each level.
///
/// Errors: 54001.
pub(super) fn repeated(operand: Expr) -> Result<Expr> {
    match operand.is_large() {
        true => fail("54001", "an operand that is compared several times is too large"),
        false => Ok(operand),
    }
}

/// An operand of BETWEEN that is computed once, if it is large, and what stands for it in the comparisons.
///
/// Errors: 54001 for large rows.
pub(super) fn twice(operand: Expr) -> Result<(Option<Expr>, Expr)> {
    match operand.node() {
        Node::Row(_) => repeated(operand).map(|operand| (None, operand)),
        _ if operand.is_large() => {
            let again = Node::Compared(operand.ty()).into();
            Ok((Some(operand), again))
        }
        _ => Ok((None, operand)),
    }
}

/// A condition on [`Node::Compared`] of an operand, if there is one.
pub(super) fn computed_once(operand: Option<Expr>, condition: Expr) -> Expr {
    let Some(operand) = operand else { return condition };
    let fails = Node::IsBool {
        arg: condition.clone(),
        is: false,
        negated: false,
    };
    Node::Case {
        operand: Some(operand),
        arms: vec![(condition, Expr::bool(true)), (fails.into(), Expr::bool(false))],
        otherwise: None,
        ty: Type::Bool,
    }
    .into()
}

/// Two values that are compared: `character` is compared with `text` as such, without the blanks at its end.
///
/// Errors: none but those of casts.
pub(super) fn without_blanks(a: Expr, b: Expr) -> Result<(Expr, Expr)> {
    Ok(match (a.ty(), b.ty()) {
        (Type::Bpchar, Type::Text) => (coerce(a, &Type::Text, Context::Implicit)?, b),
        (Type::Text, Type::Bpchar) => (a, coerce(b, &Type::Text, Context::Implicit)?),
        _ => (a, b),
    })
}

/// The comparison of a sign.
pub(super) fn signed(sign: &str) -> Option<Comparison> {
    Some(match sign {
        "=" => Comparison::Equal,
        "<>" | "!=" => Comparison::NotEqual,
        "<" => Comparison::Less,
        "<=" => Comparison::LessEqual,
        ">" => Comparison::Greater,
        ">=" => Comparison::GreaterEqual,
        _ => return None,
    })
}
