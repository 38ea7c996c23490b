//! `$let`, `$literal`, `$const`.

use crate::env::{Env, Scope, Val, check_user_variable};
use crate::expr::args::{Named, error};
use crate::expr::parse::OpDef;
use crate::expr::{Expr, Operator, check_depth};
use nestor_model::{ArrayRef, DocRef, Result, ValueRef};

pub(crate) const OPERATORS: &[OpDef] = &[
    OpDef::custom("$let", parse_let),
    OpDef::custom("$literal", |_, value, _| Ok(Expr::constant_of(value))),
    OpDef::custom("$const", |_, value, _| Ok(Expr::constant_of(value))),
];

struct Let {
    first_slot: usize,
    /// The value of the variable in slot `first_slot + i`; none sees the others.
    values: Box<[Expr]>,
    body: Expr,
}

fn parse_let(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let args = Named {
        not_object: 16874,
        unknown: 16875,
        fields: &[("vars", Some(16876)), ("in", Some(16877))],
    }
    .split(name, value)?;
    let vars = match args[0] {
        ValueRef::Document(doc) => doc,
        // An array is a document of numbered fields here, and its names are refused.
        ValueRef::Array(ArrayRef::Raw(raw)) => DocRef::Raw(raw),
        ValueRef::Array(ArrayRef::Items([])) => DocRef::Fields(&[]),
        ValueRef::Array(_) => return check_user_variable("0").map(|()| Expr::ABSENT),
        other => {
            return Err(error(
                10065,
                format!(
                    "$let expected 'vars' to be an object, found {}",
                    other.bson_type().alias()
                ),
            ));
        }
    };
    let first_slot = scope.reserve(0);
    let mut names = Vec::new();
    let mut values = Vec::new();
    for (variable, value) in vars {
        check_user_variable(variable)?;
        values.push(Expr::parse(value, scope)?);
        names.push(variable);
        // Locals of the next value must not overwrite this one.
        scope.reserve(1);
    }
    scope.unbind(first_slot);
    for variable in names {
        scope.bind(variable);
    }
    let body = Expr::parse(args[1], scope);
    scope.unbind(first_slot);
    Ok(Expr::operator(Let {
        first_slot,
        values: values.into(),
        body: body?,
    }))
}

impl Operator for Let {
    fn eval<'a>(&'a self, env: &mut Env<'a>) -> Result<Val<'a>> {
        for (i, value) in self.values.iter().enumerate() {
            let value = value.eval_ref(env)?;
            if let Val::Owned(value) = &value {
                check_depth(value)?;
            }
            env.set(self.first_slot + i, value);
        }
        self.body.eval_ref(env)
    }

    fn visit(&self, visit: &mut dyn FnMut(&Expr)) {
        self.values.iter().for_each(&mut *visit);
        visit(&self.body);
    }

    fn name(&self) -> &'static str {
        "$let"
    }
}
