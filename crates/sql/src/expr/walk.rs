//! Going through expressions: which columns they use, and the same expression over other columns.

use super::like::Match;
use super::{Expr, Node};
use crate::types::Type;

/// Parts of an expression that is made of others, at most.
const PARTS_MAX: usize = 5000;
/// How deep it may be.
const DEPTH_MAX: usize = 900;

impl Expr {
    /// Whether it has more parts, or is deeper, than an expression that is made of others should: what stands for columns may stand there many times, and
    /// have columns itself that stand for others.
    pub fn is_large(&self) -> bool {
        let mut left = PARTS_MAX;
        !self.fits(&mut left, DEPTH_MAX)
    }

    fn fits(&self, left: &mut usize, depth: usize) -> bool {
        if *left == 0 || depth == 0 {
            return false;
        }
        *left -= 1;
        self.parts().into_iter().all(|part| part.fits(left, depth - 1))
    }

    /// The expressions that it is made of.
    pub fn parts(&self) -> Vec<&Expr> {
        match self.node() {
            Node::Const(..) | Node::Column { .. } | Node::Outer { .. } | Node::Param(..) | Node::Compared(_) => {
                Vec::new()
            }
            Node::Call { args, .. } => args.iter().collect(),
            Node::Cast { arg, .. }
            | Node::Not(arg)
            | Node::IsNull(arg, _)
            | Node::IsBool { arg, .. }
            | Node::Field(arg, ..) => vec![arg],
            Node::And(items)
            | Node::Or(items)
            | Node::Coalesce(items, _)
            | Node::Extreme(items, _)
            | Node::Array(items, _)
            | Node::Row(items) => items.iter().collect(),
            Node::Compare(_, a, b) | Node::Distinct(a, b, _) | Node::Subscript(a, b) => vec![a, b],
            Node::Case {
                operand,
                arms,
                otherwise,
                ..
            } => {
                let arms = arms.iter().flat_map(|(condition, result)| [condition, result]);
                operand.iter().chain(arms).chain(otherwise).collect()
            }
            Node::InList(arg, items, _) => std::iter::once(arg).chain(items).collect(),
            Node::Quantified { arg, array, .. } => vec![arg, array],
            Node::Slice(array, from, to) => std::iter::once(array).chain(from).chain(to).collect(),
            Node::Match(like) => vec![&like.text, &like.pattern],
        }
    }

    /// The same expression made of other parts.
    pub fn map(&self, f: &mut dyn FnMut(&Expr) -> Expr) -> Expr {
        let mut list = |items: &[Expr]| -> Vec<Expr> { items.iter().map(&mut *f).collect() };
        match self.node() {
            Node::Const(..) | Node::Column { .. } | Node::Outer { .. } | Node::Param(..) | Node::Compared(_) => {
                self.clone()
            }
            Node::Call { function, args, ty } => Node::Call {
                function,
                args: list(args),
                ty: ty.clone(),
            }
            .into(),
            Node::Cast {
                arg,
                to,
                modifier,
                explicit,
            } => Node::Cast {
                arg: f(arg),
                to: to.clone(),
                modifier: *modifier,
                explicit: *explicit,
            }
            .into(),
            Node::And(items) => Node::And(list(items)).into(),
            Node::Or(items) => Node::Or(list(items)).into(),
            Node::Not(arg) => Node::Not(f(arg)).into(),
            Node::IsNull(arg, negated) => Node::IsNull(f(arg), *negated).into(),
            Node::IsBool { arg, is, negated } => Node::IsBool {
                arg: f(arg),
                is: *is,
                negated: *negated,
            }
            .into(),
            Node::Compare(op, a, b) => Node::Compare(*op, f(a), f(b)).into(),
            Node::Distinct(a, b, negated) => Node::Distinct(f(a), f(b), *negated).into(),
            Node::Case {
                operand,
                arms,
                otherwise,
                ty,
            } => Node::Case {
                operand: operand.as_ref().map(&mut *f),
                arms: arms.iter().map(|(c, r)| (f(c), f(r))).collect(),
                otherwise: otherwise.as_ref().map(&mut *f),
                ty: ty.clone(),
            }
            .into(),
            Node::Coalesce(items, ty) => Node::Coalesce(list(items), ty.clone()).into(),
            Node::Extreme(items, largest) => Node::Extreme(list(items), *largest).into(),
            Node::InList(arg, items, negated) => {
                Node::InList(f(arg), items.iter().map(&mut *f).collect(), *negated).into()
            }
            Node::Quantified { op, arg, array, all } => Node::Quantified {
                op: *op,
                arg: f(arg),
                array: f(array),
                all: *all,
            }
            .into(),
            Node::Array(items, ty) => Node::Array(list(items), ty.clone()).into(),
            Node::Row(items) => Node::Row(list(items)).into(),
            Node::Subscript(array, at) => Node::Subscript(f(array), f(at)).into(),
            Node::Slice(array, from, to) => {
                Node::Slice(f(array), from.as_ref().map(&mut *f), to.as_ref().map(&mut *f)).into()
            }
            Node::Field(arg, path, ty) => Node::Field(f(arg), path.clone(), ty.clone()).into(),
            Node::Match(like) => Node::Match(Match {
                text: f(&like.text),
                pattern: f(&like.pattern),
                ..like.clone()
            })
            .into(),
        }
    }

    /// The same expression with each column replaced by what `column` says; the others as they are.
    pub fn with_columns(&self, column: &dyn Fn(usize) -> Option<Expr>) -> Expr {
        if let Node::Column { index, .. } = self.node() {
            return column(*index).unwrap_or_else(|| self.clone());
        }
        self.map(&mut |part| part.with_columns(column))
    }

    /// The same expression over columns that stand so many places further right.
    pub fn shifted(&self, by: isize) -> Expr {
        match self.node() {
            Node::Column { index, name, ty } => {
                let index = index.checked_add_signed(by).unwrap_or(*index);
                Expr::column(index, name.clone(), ty.clone())
            }
            _ => self.map(&mut |part| part.shifted(by)),
        }
    }

    /// Calls back with each column that it uses.
    pub fn for_each_column(&self, f: &mut dyn FnMut(usize)) {
        if let Node::Column { index, .. } = self.node() {
            f(*index);
        }
        for part in self.parts() {
            part.for_each_column(f);
        }
    }

    /// Calls back with level and index of each column of enclosing queries.
    pub fn for_each_outer(&self, f: &mut dyn FnMut(usize, usize)) {
        if let Node::Outer { levels, index, .. } = self.node() {
            f(*levels, *index);
        }
        for part in self.parts() {
            part.for_each_outer(f);
        }
    }

    /// Whether it is the same for all rows of this query.
    pub fn is_constant(&self) -> bool {
        let mut constant = !self.is_volatile();
        self.for_each_column(&mut |_| constant = false);
        constant
    }

    /// Whether it is the same whoever asks: it depends on no row and no parameter.
    pub fn is_known(&self) -> bool {
        fn depends(expr: &Expr) -> bool {
            matches!(
                expr.node(),
                Node::Column { .. } | Node::Outer { .. } | Node::Param(..) | Node::Compared(_)
            ) || expr.parts().into_iter().any(depends)
        }
        !depends(self) && !self.is_volatile()
    }

    /// The expression of type `date` whose midnight it is, or itself.
    pub fn as_moment(&self) -> &Expr {
        match self.node() {
            Node::Cast {
                arg,
                to: Type::Timestamp,
                ..
            } if arg.ty() == Type::Date => arg,
            _ => self,
        }
    }

    /// Whether it may be another value each time.
    pub fn is_volatile(&self) -> bool {
        matches!(self.node(), Node::Call { function, .. } if function.volatile)
            || self.parts().into_iter().any(Expr::is_volatile)
    }

    /// Whether the statement's own thread has to compute it: it may be another value each time, asks the session for something, or looks up what a name stands for.
    pub fn is_of_session(&self) -> bool {
        match self.node() {
            Node::Call { function, .. } if function.volatile || function.of_session => true,
            Node::Cast { to, .. } if to.is_reg() => true,
            _ => self.parts().into_iter().any(Expr::is_of_session),
        }
    }

    /// Whether two expressions are written the same.
    pub fn is_same(&self, other: &Expr) -> bool {
        let (own, others) = (self.node(), other.node());
        if std::mem::discriminant(own) != std::mem::discriminant(others) || self.ty() != other.ty() {
            return false;
        }
        match (own, others) {
            (Node::Column { index: a, .. }, Node::Column { index: b, .. }) if a != b => false,
            (Node::Compare(op, a, b), Node::Compare(other, c, d)) => op == other && a.is_same(c) && b.is_same(d),
            _ => std::ptr::eq(own, others) || format!("{own:?}") == format!("{others:?}"),
        }
    }
}
